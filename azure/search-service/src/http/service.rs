//! One request from its head to its answer.

mod body;
mod definitions;

use std::any::Any;
use std::fmt::Display;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::ALLOW;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Body;
use serde_json::{Map, Value};

use crate::ApiError;
use crate::budget::{Budgets, RequestLimits, parsed_bytes};
use crate::keys::Keys;
use crate::resources::{Kind, Resources};

use super::answer::{Frame, Reply};
use super::backend::{Backend, Context, SearchCall, Via};
use super::guard;
use super::parameters;
use super::request::{self, Headers, Options};
use super::route::{self, OnIndex, OnIndexer, Route};

/// The service behind the listener: keys, definitions and the engine.
pub struct Service {
    /// `None` serves everyone who can reach the listener, so only on a loopback address.
    keys: Option<Arc<Keys>>,
    resources: Arc<Resources>,
    backend: Arc<dyn Backend>,
    budgets: Budgets,
    most_body_bytes: usize,
}

/// Four times Azure's largest batch.
const MOST_BODY_BYTES: usize = 64 * 1024 * 1024;
/// Azure's largest body of a query.
const MOST_QUERY_BYTES: usize = 16 * 1024 * 1024;

impl Service {
    pub fn new(resources: Arc<Resources>, backend: Arc<dyn Backend>, keys: Option<Arc<Keys>>) -> Self {
        let budgets = Budgets::new(RequestLimits::default());
        Self { keys, resources, backend, budgets, most_body_bytes: MOST_BODY_BYTES }
    }

    /// What requests may take.
    #[must_use]
    pub fn with_limits(mut self, limits: RequestLimits) -> Self {
        self.budgets = Budgets::new(limits);
        self
    }

    /// The largest body of a request; 64 MiB if nothing is said.
    #[must_use]
    pub fn with_most_body_bytes(mut self, bytes: usize) -> Self {
        self.most_body_bytes = bytes;
        self
    }

    /// Answers a request, whatever happens. `secure` says that it came over TLS.
    pub async fn handle<B>(&self, request: Request<B>, secure: bool) -> Response<Full<Bytes>>
    where
        B: Body<Data = Bytes>,
        B::Error: Display,
    {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let mut body = pin!(body);
        let headers = Headers(&parts.headers);
        let client_request_id = headers.client_request_id().map(str::to_owned);
        let frame = Frame { started, client_request_id, metadata: headers.metadata() };
        let answered = caught(self.answer(&parts, body.as_mut(), secure)).await;
        let reply = match answered {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => Reply::refusal(&error),
            Err(panic) => Reply::refusal(&ApiError::internal("answering a request", panic)),
        };
        if reply.status().is_client_error() {
            // A client that is still sending would not see why it was refused.
            body::discard(body).await;
        }
        // The query stays out: it may have a key.
        let (method, path, status) = (&parts.method, parts.uri.path(), reply.status().as_u16());
        tracing::debug!(%method, path, status, milliseconds = frame.elapsed_millis(), "answered");
        frame.response(reply)
    }

    async fn answer<B>(&self, parts: &Parts, body: Pin<&mut B>, secure: bool) -> Result<Reply, ApiError>
    where
        B: Body<Data = Bytes>,
        B::Error: Display,
    {
        guard::check_host(parts)?;
        let (route, methods) = route::find(parts.uri.path())?;
        let options = Options::parse(parts.uri.query())?;
        let headers = Headers(&parts.headers);
        match &self.keys {
            Some(keys) => guard::check_key(keys, &headers, &options, &route)?,
            None => guard::check_page(&headers, &parts.method)?,
        }
        if !methods.contains(&parts.method) {
            return Ok(wrong_method(&parts.method, methods));
        }
        let context = Context {
            base: base(parts, secure),
            api_version: options.api_version()?.to_owned(),
            metadata: headers.metadata(),
            query_source_authorization: headers
                .get("x-ms-query-source-authorization")
                .map(|token| token.strip_prefix("Bearer ").unwrap_or(token).to_owned()),
            budget: self.budgets.request(),
        };
        let most = if guard::only_queries(&route) { MOST_QUERY_BYTES } else { usize::MAX };
        let most = most.min(self.most_body_bytes);
        let body = body::read(body, &headers, most, &context.budget).await?;
        let call = Call { method: &parts.method, options: &options, headers, context: &context, body };
        match route {
            Route::All(set) => self.all(call, set).await,
            Route::One(set, name) => self.one(call, set, name).await,
            Route::Index(name, on) => {
                // Whoever asks for documents may use an alias.
                let index = self.resources.find_index(&name)?;
                self.on_index(call, &index.name, on).await
            }
            Route::Indexer(name, on) => {
                self.resources.find(Kind::Indexer, &name)?;
                self.on_indexer(call, &name, on).await
            }
            Route::ResetSkills(name) => {
                self.resources.find(Kind::Skillset, &name)?;
                self.backend.reset_skills(&context, &name, call.object()?).await?;
                Ok(Reply::empty(StatusCode::NO_CONTENT))
            }
            Route::Retrieve(name) => {
                self.resources.find(Kind::KnowledgeBase, &name)?;
                self.backend.retrieve(&context, &name, call.object()?).await
            }
            Route::SourceStatus(name) => {
                self.resources.find(Kind::KnowledgeSource, &name)?;
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

    async fn on_index(&self, call: Call<'_>, index: &str, on: OnIndex) -> Result<Reply, ApiError> {
        let (backend, context) = (&self.backend, call.context);
        match on {
            OnIndex::Search => {
                let search = call.search(index, parameters::of_search)?;
                backend.search(context, search).await
            }
            OnIndex::Suggest => {
                let search = call.search(index, parameters::of_suggest)?;
                backend.suggest(context, search).await
            }
            OnIndex::Autocomplete => {
                let search = call.search(index, parameters::of_autocomplete)?;
                backend.autocomplete(context, search).await
            }
            OnIndex::Lookup(key) => backend.lookup(context, index, &key, call.options.one("$select")?).await,
            OnIndex::Count => Ok(Reply::text(backend.count(context, index).await?.to_string())),
            OnIndex::Documents => backend.index_documents(context, index, call.body).await,
            OnIndex::Analyze => backend.analyze(context, index, call.object()?).await,
            OnIndex::Statistics => {
                call.value("IndexStatistics", backend.index_statistics(context, index).await?)
            }
        }
    }

    async fn on_indexer(&self, call: Call<'_>, name: &str, on: OnIndexer) -> Result<Reply, ApiError> {
        let (backend, context) = (&self.backend, call.context);
        match on {
            OnIndexer::Run => {
                backend.run_indexer(context, name).await?;
                return Ok(Reply::empty(StatusCode::ACCEPTED));
            }
            OnIndexer::Status => {
                return call.value("IndexerExecutionInfo", backend.indexer_status(context, name).await?);
            }
            OnIndexer::Reset => backend.reset_indexer(context, name).await?,
            OnIndexer::ResetDocuments => {
                let request = request::object_or_nothing(&call.body)?;
                let overwrite = call.options.boolean("overwrite")?;
                backend.reset_documents(context, name, request, overwrite).await?;
            }
            OnIndexer::Resync => backend.resync_indexer(name, call.object()?).await?,
        }
        Ok(Reply::empty(StatusCode::NO_CONTENT))
    }
}

/// A request that has been let in, without its path.
struct Call<'a> {
    method: &'a Method,
    options: &'a Options,
    headers: Headers<'a>,
    context: &'a Context,
    body: Bytes,
}

impl Call<'_> {
    /// The body, which must be a JSON object.
    fn object(&self) -> Result<Value, ApiError> {
        self.context.budget.try_take(parsed_bytes(&self.body))?;
        request::object(&self.body)
    }

    /// The parameters of a search, from the options of GET or the body of POST.
    fn search(
        &self,
        index: &str,
        from_options: fn(&Options) -> Result<Map<String, Value>, ApiError>,
    ) -> Result<SearchCall, ApiError> {
        let (parameters, via) = if self.method == Method::GET {
            (from_options(self.options)?, Via::Get)
        } else {
            match self.object()? {
                Value::Object(parameters) => (parameters, Via::Post),
                _ => (Map::new(), Via::Post),
            }
        };
        Ok(SearchCall { index: index.to_owned(), parameters, via })
    }

    /// A JSON object of a named type.
    fn value(&self, name: &str, mut value: Value) -> Result<Reply, ApiError> {
        if let (Value::Object(members), Some(context)) = (&mut value, self.context.of_type(name)) {
            members.insert("@odata.context".to_owned(), Value::from(context));
        }
        Reply::json(StatusCode::OK, &value)
    }
}

fn wrong_method(method: &Method, methods: &[Method]) -> Reply {
    let names = methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
    let error = ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "MethodNotAllowed",
        format!("This address does not know {method}, only {names}."),
    );
    Reply::refusal(&error).with_header(ALLOW, &names)
}

/// Where the client found the service. What is no plain host is not sent back.
fn base(parts: &Parts, secure: bool) -> String {
    let scheme = if secure { "https" } else { "http" };
    let given = parts.uri.authority().map(|authority| authority.as_str());
    let host = Headers(&parts.headers).get("host").or(given).unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    let host = if !host.is_empty() && host.bytes().all(plain) { host } else { "localhost" };
    format!("{scheme}://{host}")
}

/// Runs a future to its end or to its panic, and then says what the panic said.
async fn caught<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(future);
    let polled = poll_fn(|context| {
        // Nothing of the request is used again after a panic.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panic)),
        }
    });
    polled.await.map_err(|panic| said(panic.as_ref()))
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a panic: {}", text.unwrap_or("without words"))
}
