//! Accesses a storage account by its REST API: Get Blob, Put Blob, Create Container.
//!
//! Put Blob writes a whole blob in one request and is atomic: an interrupted upload leaves the old blob. An
//! account with a hierarchical namespace has folders: `a` and `a/b` cannot both be blobs, and the second
//! write fails with 409.

use std::sync::Arc;
use std::time::Duration;

use bindpost_azure_hosting::identity::AzureIdentity;
use bindpost_net_upstream::{RetryPolicy, RetryState, Secret, error_chain, retry_after};
use bytes::{Bytes, BytesMut};
use chrono::Utc;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, Method, Response, StatusCode, Url, Version, redirect};
use tokio::time::Instant;

use super::BlobSettings;
use super::connection::{StorageAccount, StorageCredential};
use super::endpoint::BlobEndpoint;
use super::error::{BlobError, BlobFailure, BlobOperation};
use super::path::BlobPath;
use super::shared_key::SharedKey;

/// The resource for which access tokens are requested.
pub const RESOURCE: &str = "https://storage.azure.com/";
/// The version of the API. It is old enough for every emulator and new enough for blobs of 5,000 MiB.
const VERSION: &str = "2020-10-02";
/// The maximum time between the start of the first attempt and of the last.
const RETRY_WINDOW: Duration = Duration::from_secs(10);
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How often one write creates its container, which may be deleted before the write.
const MAX_CREATIONS: u32 = 3;

/// The blob service of a storage account. Clones share their connections.
#[derive(Debug, Clone)]
pub struct AzureStore {
    client: Client,
    endpoint: BlobEndpoint,
    signing: RequestSigning,
    time_limit: Duration,
    size_limit: usize,
}

#[derive(Debug, Clone)]
enum RequestSigning {
    SharedKey(SharedKey),
    Sas(Secret),
    Identity(Arc<AzureIdentity>),
}

impl AzureStore {
    /// Creates the client. No request is sent yet.
    pub fn new(account: StorageAccount, settings: &BlobSettings) -> Result<AzureStore, BlobError> {
        let refused = |failure| BlobError::new(BlobOperation::Open, failure);
        let (endpoint, credential) = account.into_parts();
        let client =
            build_client(&endpoint).map_err(|error| refused(BlobFailure::Client(error_chain(error))))?;
        let signing = match credential {
            StorageCredential::SharedKey(key) => RequestSigning::SharedKey(key),
            StorageCredential::Sas(token) => RequestSigning::Sas(token),
            StorageCredential::Identity(sources) => RequestSigning::Identity(Arc::new(
                AzureIdentity::new(RESOURCE, sources).map_err(|error| refused(error.into()))?,
            )),
        };
        let BlobSettings { time_limit, size_limit, .. } = *settings;
        Ok(AzureStore { client, endpoint, signing, time_limit, size_limit })
    }

    /// Reads a whole blob, if it exists.
    pub async fn read(&self, path: &BlobPath) -> Result<Option<Bytes>, BlobError> {
        let mut tries = start_tries();
        let read = async {
            loop {
                match self.get(path).await {
                    Ok(found) => return Ok(found),
                    Err(failure) => pause_after(failure, &mut tries).await?,
                }
            }
        };
        let result = self.with_time_limit(read).await;
        result.map_err(|failure| {
            BlobError::new(BlobOperation::Read(path.clone()), failure).with_tries(tries.attempts())
        })
    }

    /// Writes a whole blob. A retry is safe, because it writes the same blob.
    pub async fn write(&self, path: &BlobPath, data: Bytes) -> Result<(), BlobError> {
        let mut tries = start_tries();
        let write = async {
            let mut creations = 0;
            loop {
                let failure = match self.put(path, data.clone()).await {
                    Ok(()) => return Ok(()),
                    Err(failure) if lacks_container(&failure) && creations < MAX_CREATIONS => {
                        creations += 1;
                        match self.create_container(path.container()).await {
                            Ok(()) => continue,
                            Err(failure) => BlobFailure::Container(Box::new(failure)),
                        }
                    }
                    Err(failure) => failure,
                };
                pause_after(failure, &mut tries).await?;
            }
        };
        let result = self.with_time_limit(write).await;
        result.map_err(|failure| {
            BlobError::new(BlobOperation::Write(path.clone()), failure).with_tries(tries.attempts())
        })
    }

    async fn with_time_limit<T>(
        &self,
        work: impl Future<Output = Result<T, BlobFailure>>,
    ) -> Result<T, BlobFailure> {
        match tokio::time::timeout(self.time_limit, work).await {
            Ok(result) => result,
            Err(_) => Err(BlobFailure::TimedOut(self.time_limit)),
        }
    }

    async fn get(&self, path: &BlobPath) -> Result<Option<Bytes>, BlobFailure> {
        let response = self.send(Method::GET, self.endpoint.blob(path), &[], Bytes::new()).await?;
        match response.status() {
            StatusCode::OK => self.body(response).await.map(Some),
            StatusCode::NOT_FOUND => match response_failure(response) {
                // A 404 without the service's code means a wrong endpoint, not a missing blob.
                BlobFailure::Answer { code: Some(code), .. } if is_missing(&code) => Ok(None),
                failure => Err(failure),
            },
            _ => Err(response_failure(response)),
        }
    }

    async fn put(&self, path: &BlobPath, data: Bytes) -> Result<(), BlobFailure> {
        let headers = [("x-ms-blob-type", "BlockBlob"), ("content-type", "application/octet-stream")];
        let response = self.send(Method::PUT, self.endpoint.blob(path), &headers, data).await?;
        if response.status() == StatusCode::CREATED { Ok(()) } else { Err(response_failure(response)) }
    }

    async fn create_container(&self, container: &str) -> Result<(), BlobFailure> {
        let mut url = self.endpoint.container(container);
        url.set_query(Some("restype=container"));
        let response = self.send(Method::PUT, url, &[], Bytes::new()).await?;
        if response.status() == StatusCode::CREATED {
            return Ok(());
        }
        match response_failure(response) {
            // Another process created it in the meantime.
            BlobFailure::Answer { code: Some(code), .. } if code == "ContainerAlreadyExists" => Ok(()),
            failure => Err(failure),
        }
    }

    /// Sends one request. A rejected token is replaced once, because it may have been revoked.
    async fn send(
        &self,
        method: Method,
        url: Url,
        headers: &[(&'static str, &'static str)],
        body: Bytes,
    ) -> Result<Response, BlobFailure> {
        let RequestSigning::Identity(identity) = &self.signing else {
            return self.send_signed(method, url, headers, body, None).await;
        };
        let token = identity.token().await?;
        let response =
            self.send_signed(method.clone(), url.clone(), headers, body.clone(), Some(&token)).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        identity.forget(&token).await;
        let token = identity.token().await?;
        self.send_signed(method, url, headers, body, Some(&token)).await
    }

    async fn send_signed(
        &self,
        method: Method,
        mut url: Url,
        extra: &[(&'static str, &'static str)],
        body: Bytes,
        token: Option<&Secret>,
    ) -> Result<Response, BlobFailure> {
        let mut headers = HeaderMap::new();
        for (name, value) in extra {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let date = Utc::now().format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        headers.insert("x-ms-date", header_value(&date)?);
        headers.insert("x-ms-version", HeaderValue::from_static(VERSION));
        let authorization = match (&self.signing, token) {
            (RequestSigning::SharedKey(key), _) => {
                Some(key.authorization(&method, &url, &headers, body.len()))
            }
            (RequestSigning::Sas(sas), _) => {
                let query = url.query().map(|query| format!("{query}&")).unwrap_or_default();
                url.set_query(Some(&format!("{query}{}", sas.reveal())));
                None
            }
            (RequestSigning::Identity(_), token) => token.map(|token| format!("Bearer {}", token.reveal())),
        };
        if let Some(authorization) = authorization {
            let mut value = header_value(&authorization)?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let mut request = self.client.request(method.clone(), url).headers(headers);
        if method == Method::PUT {
            // The service requires the length even of an empty body.
            request = request.header(header::CONTENT_LENGTH, body.len()).body(body);
        }
        request.send().await.map_err(|error| {
            let service = self.endpoint.to_string();
            if error.is_connect() {
                BlobFailure::Unreachable { service, causes: error_chain(error) }
            } else {
                BlobFailure::Broken { service, causes: error_chain(error) }
            }
        })
    }

    /// Reads a body up to the size limit.
    async fn body(&self, mut response: Response) -> Result<Bytes, BlobFailure> {
        let too_large = Err(BlobFailure::TooLarge(self.size_limit));
        let length = response.content_length().unwrap_or_default();
        if length > self.size_limit as u64 {
            return too_large;
        }
        if !marks_its_end(&response) {
            return Err(BlobFailure::NoLength { service: self.endpoint.to_string() });
        }
        // The service announces the length, so only a limited buffer is allocated for it.
        let mut data = BytesMut::with_capacity(usize::try_from(length).unwrap_or_default().min(8 << 20));
        loop {
            let piece = response.chunk().await.map_err(|error| BlobFailure::Broken {
                service: self.endpoint.to_string(),
                causes: error_chain(error),
            })?;
            match piece {
                None => return Ok(data.freeze()),
                Some(piece) if data.len() + piece.len() > self.size_limit => return too_large,
                Some(piece) => data.extend_from_slice(&piece),
            }
        }
    }
}

/// Begins the attempts of one operation.
fn start_tries() -> RetryState {
    let until = Instant::now() + RETRY_WINDOW;
    let pause = Duration::from_millis(200);
    RetryState::start(RetryPolicy { tries: 3, pause, retry_after: RETRY_WINDOW, until })
}

/// Waits until the next attempt may begin, or returns the failure if there is none.
async fn pause_after(failure: BlobFailure, tries: &mut RetryState) -> Result<(), BlobFailure> {
    tracing::debug!(%failure, attempt = tries.attempts(), "a request to the storage service failed");
    if failure.is_transient() && tries.wait(failure.retry_after()).await { Ok(()) } else { Err(failure) }
}

/// Returns whether a truncated body can be distinguished from a complete one.
fn marks_its_end(response: &Response) -> bool {
    response.version() >= Version::HTTP_2
        || response.content_length().is_some()
        || response.headers().contains_key(header::TRANSFER_ENCODING)
}

fn header_value(value: &str) -> Result<HeaderValue, BlobFailure> {
    HeaderValue::from_str(value)
        .map_err(|_| BlobFailure::Client("a header contains invalid characters".into()))
}

/// Returns the failure for a response without success.
fn response_failure(response: Response) -> BlobFailure {
    let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let is_word = |code: &&str| {
        (1..=100).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    BlobFailure::Answer {
        status: response.status(),
        code: text("x-ms-error-code").filter(is_word).map(str::to_owned),
        retry_after: retry_after(response.headers()),
    }
}

fn is_missing(code: &str) -> bool {
    matches!(code, "BlobNotFound" | "ContainerNotFound" | "ResourceNotFound")
}

fn lacks_container(failure: &BlobFailure) -> bool {
    matches!(failure, BlobFailure::Answer { code: Some(code), .. } if code == "ContainerNotFound")
}

fn build_client(endpoint: &BlobEndpoint) -> Result<Client, reqwest::Error> {
    let builder = || -> ClientBuilder {
        let builder = bindpost_net_upstream::client_builder()
            .user_agent(concat!("bindpost/", env!("CARGO_PKG_VERSION")))
            // A redirect would send our signature to another server.
            .redirect(redirect::Policy::none())
            .referer(false)
            // A blob is what was stored, even if its properties say that it is compressed.
            .no_gzip()
            .connect_timeout(CONNECT_TIME);
        if endpoint.is_loopback() { builder.no_proxy() } else { builder }
    };
    // A machine without root certificates can still use an emulator.
    match builder().build() {
        Err(_) if endpoint.is_plain() => builder().tls_certs_only([]).build(),
        built => built,
    }
}
