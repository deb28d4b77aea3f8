//! [`RequestHandler`]: answers requests in this process, instead of a service behind an address.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Uri};
use reqwest::Url;

use crate::failure::{AttemptError, UpstreamError};
use crate::upstream::UpstreamRequest;

/// The response of a handler, or the reason why it rejects the request. Callers see the reason.
pub type HandlerFuture<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, String>> + Send + 'a>>;

/// Answers requests in this process. See [`Upstream::handled_by`](crate::Upstream::handled_by).
pub trait RequestHandler: fmt::Debug + Send + Sync {
    /// Answers a request. Its URI is absolute, and its extensions are those of the [`UpstreamRequest`]. Dropping the future
    /// cancels the request.
    fn handle(&self, request: Request<Bytes>) -> HandlerFuture<'_>;
}

/// Passes one request to a handler.
pub(crate) async fn pass_request(
    handler: &dyn RequestHandler,
    request: &UpstreamRequest,
    method: Method,
    url: &Url,
    headers: HeaderMap,
    body: Option<Bytes>,
) -> Result<Response<Bytes>, AttemptError> {
    let invalid = || UpstreamError::Address("the request cannot be sent".to_owned());
    let uri: Uri = url.as_str().parse().map_err(|_| AttemptError::Final(invalid()))?;
    let mut passed = Request::new(body.unwrap_or_default());
    *passed.method_mut() = method;
    *passed.uri_mut() = uri;
    *passed.headers_mut() = headers;
    *passed.extensions_mut() = request.extensions.clone();
    handler.handle(passed).await.map_err(|reason| AttemptError::Final(UpstreamError::Rejected(reason)))
}
