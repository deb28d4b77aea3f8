//! Handles one request, from its head to its response.

mod body;
mod definitions;

use std::any::Any;
use std::fmt::Display;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Instant;

use bindpost_azure_search_model::ApiError;
use bytes::Bytes;
use http::header::ALLOW;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Body;
use serde_json::{Map, Value};

use crate::budget::{RequestLimits, ServiceBudget, parsed_bytes};
use crate::keys::ApiKeys;
use crate::resources::{ResourceKind, ResourceRegistry};

use super::answer::{HttpReply, ReplyContext};
use super::backend::{Backend, RequestContext, SearchCall, SearchMethod};
use super::cors::{self, CorsGrant};
use super::guard;
use super::parameters;
use super::request::{self, QueryOptions, RequestHeaders};
use super::route::{self, IndexOperation, IndexerOperation, Route};

/// The HTTP service: API keys, definitions and the engine.
pub struct HttpService {
    /// `None` accepts unauthenticated requests. Use it only on a loopback address.
    keys: Option<Arc<ApiKeys>>,
    resources: Arc<ResourceRegistry>,
    backend: Arc<dyn Backend>,
    budgets: ServiceBudget,
    most_body_bytes: usize,
}

/// The maximum size of a request body: four times the largest batch of Azure.
const MOST_BODY_BYTES: usize = 64 * 1024 * 1024;
/// The maximum size of a query body, as in Azure.
const MOST_QUERY_BYTES: usize = 16 * 1024 * 1024;

impl HttpService {
    pub fn new(
        resources: Arc<ResourceRegistry>,
        backend: Arc<dyn Backend>,
        keys: Option<Arc<ApiKeys>>,
    ) -> Self {
        let budgets = ServiceBudget::new(RequestLimits::default());
        Self { keys, resources, backend, budgets, most_body_bytes: MOST_BODY_BYTES }
    }

    /// Sets the limits of requests.
    #[must_use]
    pub fn with_limits(mut self, limits: RequestLimits) -> Self {
        self.budgets = ServiceBudget::new(limits);
        self
    }

    /// Sets the maximum size of a request body. Default: 64 MiB.
    #[must_use]
    pub fn with_max_body_bytes(mut self, bytes: usize) -> Self {
        self.most_body_bytes = bytes;
        self
    }

    /// Handles a request and always returns a response. `secure` is true for TLS.
    pub async fn handle<B>(&self, request: Request<B>, secure: bool) -> Response<Full<Bytes>>
    where
        B: Body<Data = Bytes>,
        B::Error: Display,
    {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let mut body = pin!(body);
        let headers = RequestHeaders(&parts.headers);
        let client_request_id = headers.client_request_id().map(str::to_owned);
        let frame = ReplyContext { started, client_request_id, metadata: headers.metadata() };
        let page = CorsGrant::find(&parts, &self.resources);
        let answered = catch_panic(self.try_handle(&parts, body.as_mut(), page.as_ref(), secure)).await;
        let reply = match answered {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => HttpReply::from_error(&error),
            Err(panic) => HttpReply::from_error(&ApiError::internal("processing a request", panic)),
        };
        let reply = match &page {
            Some(page) => page.apply(reply),
            None => reply,
        };
        if reply.status().is_client_error() {
            // A client that is still sending would not read the error.
            body::discard(body).await;
        }
        // The query string is not logged, because it may contain a key.
        let (method, path, status) = (&parts.method, parts.uri.path(), reply.status().as_u16());
        tracing::debug!(%method, path, status, milliseconds = frame.elapsed_millis(), "answered");
        frame.response(reply)
    }

    async fn try_handle<B>(
        &self,
        parts: &Parts,
        body: Pin<&mut B>,
        page: Option<&CorsGrant>,
        secure: bool,
    ) -> Result<HttpReply, ApiError>
    where
        B: Body<Data = Bytes>,
        B::Error: Display,
    {
        guard::check_host(parts)?;
        if cors::is_preflight(parts) {
            return cors::preflight(parts, page);
        }
        let (route, methods) = route::find(parts.uri.path())?;
        let options = QueryOptions::parse(parts.uri.query())?;
        let headers = RequestHeaders(&parts.headers);
        match &self.keys {
            Some(keys) => guard::check_key(keys, &headers, &options, &route)?,
            // Without keys, `*` does not open the index to every page that a browser on this machine shows.
            None if page.is_some_and(CorsGrant::names_origin) => guard::check_target(&headers)?,
            None => guard::check_origin(&headers, &parts.method)?,
        }
        if !methods.contains(&parts.method) {
            return Ok(wrong_method(&parts.method, methods));
        }
        let context = RequestContext {
            base: base_url(parts, secure),
            api_version: options.api_version()?,
            metadata: headers.metadata(),
            query_source_authorization: headers
                .get("x-ms-query-source-authorization")
                .map(|token| token.strip_prefix("Bearer ").unwrap_or(token).to_owned()),
            budget: self.budgets.new_request_budget(),
        };
        let most = if guard::is_query_route(&route) { MOST_QUERY_BYTES } else { usize::MAX };
        let most = most.min(self.most_body_bytes);
        let body = body::read(body, &headers, most, &context.budget).await?;
        let call =
            AuthorizedRequest { method: &parts.method, options: &options, headers, context: &context, body };
        match route {
            Route::All(set) => self.handle_collection(call, set).await,
            Route::One(set, name) => self.handle_definition(call, set, name).await,
            Route::Index(name, on) => {
                // Requests for documents may use an alias.
                let index = self.resources.find_index(&name)?;
                self.handle_index(call, &index.name, on).await
            }
            Route::Indexer(name, on) => {
                self.resources.find(ResourceKind::Indexer, &name)?;
                self.handle_indexer(call, &name, on).await
            }
            Route::ResetSkills(name) => {
                self.resources.find(ResourceKind::Skillset, &name)?;
                self.backend.reset_skills(&context, &name, call.object()?).await?;
                Ok(HttpReply::empty(StatusCode::NO_CONTENT))
            }
            Route::Retrieve(name) => {
                self.resources.find(ResourceKind::KnowledgeBase, &name)?;
                self.backend.retrieve(&context, &name, call.object()?).await
            }
            Route::SourceStatus(name) => {
                self.resources.find(ResourceKind::KnowledgeSource, &name)?;
                call.value("KnowledgeSourceStatus", self.backend.knowledge_source_status(&name).await?)
            }
            Route::ServiceStatistics => {
                call.value("ServiceStatistics", self.backend.service_statistics(&context).await?)
            }
            Route::IndexStatistics => {
                call.value("IndexStatisticsSummary", self.backend.all_index_statistics(&context).await?)
            }
        }
    }

    async fn handle_index(
        &self,
        call: AuthorizedRequest<'_>,
        index: &str,
        on: IndexOperation,
    ) -> Result<HttpReply, ApiError> {
        let (backend, context) = (&self.backend, call.context);
        match on {
            IndexOperation::Search => {
                let search = call.search(index, parameters::search_parameters)?;
                backend.search(context, search).await
            }
            IndexOperation::Suggest => {
                let search = call.search(index, parameters::suggest_parameters)?;
                backend.suggest(context, search).await
            }
            IndexOperation::Autocomplete => {
                let search = call.search(index, parameters::autocomplete_parameters)?;
                backend.autocomplete(context, search).await
            }
            IndexOperation::Lookup(key) => {
                backend.lookup(context, index, &key, call.options.one("$select")?).await
            }
            IndexOperation::Count => Ok(HttpReply::text(backend.count(context, index).await?.to_string())),
            IndexOperation::Documents => backend.index_documents(context, index, call.body).await,
            IndexOperation::Analyze => backend.analyze(context, index, call.object()?).await,
            IndexOperation::Statistics => {
                call.value("IndexStatistics", backend.index_statistics(context, index).await?)
            }
        }
    }

    async fn handle_indexer(
        &self,
        call: AuthorizedRequest<'_>,
        name: &str,
        on: IndexerOperation,
    ) -> Result<HttpReply, ApiError> {
        let (backend, context) = (&self.backend, call.context);
        match on {
            IndexerOperation::Run => {
                backend.run_indexer(context, name).await?;
                return Ok(HttpReply::empty(StatusCode::ACCEPTED));
            }
            IndexerOperation::Status => {
                return call.value("IndexerExecutionInfo", backend.indexer_status(context, name).await?);
            }
            IndexerOperation::Reset => backend.reset_indexer(context, name).await?,
            IndexerOperation::ResetDocuments => {
                let request = request::parse_optional_object(&call.body)?;
                let overwrite = call.options.boolean("overwrite")?;
                backend.reset_documents(context, name, request, overwrite).await?;
            }
            IndexerOperation::Resync => backend.resync_indexer(name, call.object()?).await?,
        }
        Ok(HttpReply::empty(StatusCode::NO_CONTENT))
    }
}

/// A request that passed authentication and authorization, without its path.
struct AuthorizedRequest<'a> {
    method: &'a Method,
    options: &'a QueryOptions,
    headers: RequestHeaders<'a>,
    context: &'a RequestContext,
    body: Bytes,
}

impl AuthorizedRequest<'_> {
    /// Parses the body, which must be a JSON object.
    fn object(&self) -> Result<Value, ApiError> {
        self.context.budget.try_take_memory(parsed_bytes(&self.body))?;
        request::parse_object(&self.body)
    }

    /// Returns the parameters of a search, from the query of GET or the body of POST.
    fn search(
        &self,
        index: &str,
        from_options: fn(&QueryOptions) -> Result<Map<String, Value>, ApiError>,
    ) -> Result<SearchCall, ApiError> {
        let (parameters, via) = if self.method == Method::GET {
            (from_options(self.options)?, SearchMethod::Get)
        } else {
            match self.object()? {
                Value::Object(parameters) => (parameters, SearchMethod::Post),
                _ => (Map::new(), SearchMethod::Post),
            }
        };
        Ok(SearchCall { index: index.to_owned(), parameters, via })
    }

    /// Returns a response with a JSON object of a named type.
    fn value(&self, name: &str, mut value: Value) -> Result<HttpReply, ApiError> {
        if let (Value::Object(members), Some(context)) = (&mut value, self.context.type_context(name)) {
            members.insert("@odata.context".to_owned(), Value::from(context));
        }
        HttpReply::json(StatusCode::OK, &value)
    }
}

fn wrong_method(method: &Method, methods: &[Method]) -> HttpReply {
    let names = methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
    let error = ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "MethodNotAllowed",
        format!("The method {method} is not allowed here. Use {names}."),
    );
    HttpReply::from_error(&error).with_header(ALLOW, &names)
}

/// Returns the base URL that the client used. An invalid host is replaced by `localhost`.
fn base_url(parts: &Parts, secure: bool) -> String {
    let scheme = if secure { "https" } else { "http" };
    let given = parts.uri.authority().map(|authority| authority.as_str());
    let host = RequestHeaders(&parts.headers).get("host").or(given).unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    let host = if !host.is_empty() && host.bytes().all(plain) { host } else { "localhost" };
    format!("{scheme}://{host}")
}

/// Runs a future to its end. Returns the message of a panic as an error.
async fn catch_panic<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(future);
    let polled = poll_fn(|context| {
        // Nothing of the request is used after a panic.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panic)),
        }
    });
    polled.await.map_err(|panic| panic_message(panic.as_ref()))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a panic: {}", text.unwrap_or("no message"))
}
