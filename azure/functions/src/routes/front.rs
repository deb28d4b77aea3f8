//! [`FunctionRoutes`]: answers the requests for functions with an HTTP trigger.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bindpost_mcp_http::listener::ConnectedClient;
use bindpost_mcp_http::{Endpoint, ReplyBody};
use bindpost_mcp_server::transport::{ByteBudget, ByteReservation};
use bytes::{Bytes, BytesMut};
use http::header::{
    ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, ORIGIN, RETRY_AFTER, STRICT_TRANSPORT_SECURITY,
};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use serde_json::Value;

use super::access::RouteAccess;
use super::cors::RouteCors;
use super::request::{self, HttpForm};
use super::response;
use super::stream::{StreamError, StreamServers, StreamedRequest};
use super::throttle::{RequestPlace, RequestThrottle};
use super::{MatchedRoute, RouteTable};
use crate::app::{App, HttpConfig};
use crate::forward::{ForwardError, UploadBody, UploadFailure, UploadLimits};
use crate::function::AuthorizationLevel;
use crate::host::HostState;
use crate::host::access::AccessPolicy;
use crate::host::console::{self, ConsoleLogSink};
use crate::host::front::{Reply, RoutedBody};
use crate::host::generation::AppGeneration;
use crate::host::keys::KeysError;
use crate::invocation::{FunctionFailure, FunctionRunner, LogSink, TraceContext};
use crate::worker::InvocationError;

/// Responses of this size and more count as memory held for clients until they are written.
const LARGE_RESPONSE: usize = 64 * 1024;
/// The largest body of a request to run a function.
const LONGEST_ADMIN_BODY: u64 = 64 * 1024;

/// The routes of one generation of an app, and how they are served.
#[derive(Debug)]
pub(crate) struct AppRoutes {
    pub(crate) table: RouteTable,
    form: HttpForm,
    config: HttpConfig,
    cors: RouteCors,
    throttle: RequestThrottle,
    servers: StreamServers,
    detailed_errors: bool,
}

impl AppRoutes {
    pub(crate) fn new(table: RouteTable, app: &App, form: HttpForm, detailed_errors: bool) -> AppRoutes {
        let config = app.host.http.clone();
        AppRoutes {
            table,
            form,
            cors: RouteCors::new(app.local.cors.clone(), app.local.cors_credentials),
            throttle: RequestThrottle::new(config.max_concurrent_requests, config.max_outstanding_requests),
            config,
            servers: StreamServers::default(),
            detailed_errors,
        }
    }
}

/// A request whose body has arrived.
pub(crate) struct WholeRequest {
    pub(crate) parts: Parts,
    pub(crate) is_secure: bool,
    pub(crate) body: Bytes,
    pub(crate) trace: TraceContext,
}

impl AppRoutes {
    /// Returns whether the worker answers requests itself, so that responses stream.
    pub(crate) fn streams(&self) -> bool {
        self.form.streams
    }

    /// Returns the prefix of all routes.
    pub(crate) fn prefix(&self) -> &str {
        &self.config.route_prefix
    }

    /// Returns the maximum size of a request body.
    pub(crate) fn max_body(&self) -> u64 {
        self.config.max_body
    }

    /// Waits until a request may run. Returns `None` if too many run or wait.
    pub(crate) async fn enter(&self) -> Option<RequestPlace> {
        self.throttle.enter().await
    }

    /// Runs the function of a route, and returns its response. A failure is logged.
    pub(crate) async fn respond(
        &self,
        runner: &FunctionRunner,
        found: MatchedRoute<'_>,
        request: WholeRequest,
        logs: &impl LogSink,
    ) -> Response<Bytes> {
        let MatchedRoute { route, values } = found;
        let function = &route.function;
        let WholeRequest { parts, is_secure, body, trace } = request;
        let reads_body = !runner.is_own_worker() || function.has_blobs();
        let event = request::event(&parts, is_secure, values, body, self.form, reads_body);
        match runner.run(function, event, trace, logs).await {
            Ok(outcome) => response::response(outcome, function).unwrap_or_else(|error| {
                tracing::error!(target: "function", function = function.name.as_str(), "failed: {error}");
                self.error(error)
            }),
            Err(failure) => {
                console::log_failure(&function.name, &failure);
                self.failed(&failure)
            }
        }
    }

    /// Returns the response for a function that failed. It says nothing of the function to clients, as on the platform.
    fn failed(&self, failure: &FunctionFailure) -> Response<Bytes> {
        if let FunctionFailure::Worker(InvocationError::NoWorker { .. }) = failure {
            return text_response(
                StatusCode::SERVICE_UNAVAILABLE,
                "Function host is not running.".to_owned(),
            );
        }
        // The request has no value for the path of a blob, or one that no path may have. The function did not run.
        if let FunctionFailure::Path { .. } | FunctionFailure::Place { .. } = failure {
            let reason = failure.client_message().unwrap_or_default();
            return text_response(StatusCode::BAD_REQUEST, format!("{reason}\n"));
        }
        self.error(failure)
    }

    fn error(&self, reason: impl std::fmt::Display) -> Response<Bytes> {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        match self.detailed_errors {
            true => text_response(status, format!("{reason}\n")),
            false => status_response(status),
        }
    }
}

/// Answers the requests for functions with an HTTP trigger, with the routes of the current generation.
pub(crate) struct FunctionRoutes {
    shared: Arc<HostState>,
    access: RouteAccess,
    /// The origins that the operator allows, besides those of `local.settings.json`.
    cors: RouteCors,
}

impl FunctionRoutes {
    /// Creates the routes of an app. Opens its keys, if a function needs them.
    pub(crate) fn new(shared: Arc<HostState>, policy: &AccessPolicy) -> Result<FunctionRoutes, KeysError> {
        let access = RouteAccess::new(policy.keys, shared.app.state_folder.clone());
        access.prepare(shared.generation().routes.table.routes().iter().map(|route| route.level))?;
        let cors = RouteCors::new(policy.allowed_origins.iter().cloned(), false);
        Ok(FunctionRoutes { shared, access, cors })
    }

    /// Returns whether a function has a route for this path, with any method.
    pub(crate) fn has_route(&self, path: &str) -> bool {
        self.shared.generation().routes.table.methods_at(path).is_some()
    }

    /// Answers a request. Returns `None` if no function answers its path and method.
    pub(crate) async fn answer(
        &self,
        endpoint: &Endpoint,
        request: Request<Incoming>,
        client: &ConnectedClient,
    ) -> Option<Response<RoutedBody>> {
        let generation = self.shared.generation();
        let routes = &generation.routes;
        let (mut parts, body) = request.into_parts();
        let cors = self.cors_for(&parts, routes);
        let path = parts.uri.path().to_owned();
        if let Some(reason) = endpoint.host_problem(&parts) {
            return Some(text_reply(StatusCode::FORBIDDEN, format!("{reason}\n")).map(RoutedBody::Reply));
        }
        if let Some(reply) = cors.preflight(&parts) {
            return Some(reply.map(|()| RoutedBody::Reply(ReplyBody::from(Bytes::new()))));
        }
        endpoint.remove_identity_headers(&mut parts.headers);
        let found = routes.table.find(&parts.method, &path)?;
        let asked = parts.headers.clone();
        let request = Request::from_parts(parts, body);
        let mut reply = self.run(&generation, found, request, client).await;
        let headers = reply.headers_mut();
        for (name, value) in &routes.config.custom_headers {
            headers.entry(name).or_insert_with(|| value.clone());
        }
        if let Some(hsts) = routes.config.hsts.as_ref().filter(|_| client.is_secure()) {
            headers.insert(STRICT_TRANSPORT_SECURITY, hsts.clone());
        }
        cors.add_headers(&asked, headers);
        Some(reply)
    }

    /// Answers `POST /admin/functions/<name>`: runs a function with a timer trigger now, as the platform does. The response
    /// does not wait for the run.
    pub(crate) async fn run_timer(
        &self,
        endpoint: &Endpoint,
        function: &str,
        request: Request<Incoming>,
        client: &ConnectedClient,
    ) -> Reply {
        let (parts, body) = request.into_parts();
        if let Some(reason) = endpoint.host_problem(&parts) {
            return close_if_unread(&body, text_reply(StatusCode::FORBIDDEN, format!("{reason}\n")));
        }
        if parts.method != Method::POST {
            let mut reply = status_reply(StatusCode::METHOD_NOT_ALLOWED);
            reply.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            return close_if_unread(&body, reply);
        }
        // A web page cannot send JSON to another origin without asking, which is not allowed here.
        let content_type =
            parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
        {
            let text = "send the body {\"input\": \"\"} with the content type application/json\n".to_owned();
            return close_if_unread(&body, text_reply(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
        }
        if !self.access.permits(AuthorizationLevel::Admin, function, &parts).await {
            return close_if_unread(&body, status_reply(StatusCode::UNAUTHORIZED));
        }
        let server = self.shared.server();
        let body = match read_body(body, LONGEST_ADMIN_BODY, client, server.budget()).await {
            Ok((body, _)) => body,
            Err(reply) => return reply,
        };
        let is_object = matches!(serde_json::from_slice(&body), Ok(Value::Object(_)));
        if !body.is_empty() && !is_object {
            return text_reply(StatusCode::BAD_REQUEST, "the body must be a JSON object\n".to_owned());
        }
        if self.shared.draining.load(Ordering::SeqCst) {
            return busy(StatusCode::SERVICE_UNAVAILABLE);
        }
        if !self.shared.timers.request_run(function) {
            let text = "no function with a timer trigger has this name\n".to_owned();
            return text_reply(StatusCode::NOT_FOUND, text);
        }
        status_reply(StatusCode::ACCEPTED)
    }

    /// Runs the function of a route, and returns its response or the reason why there is none.
    async fn run(
        &self,
        generation: &AppGeneration,
        found: MatchedRoute<'_>,
        request: Request<Incoming>,
        client: &ConnectedClient,
    ) -> Response<RoutedBody> {
        let (routes, runner) = (&generation.routes, generation.runner.clone());
        let MatchedRoute { route, .. } = &found;
        let function = &route.function;
        let (parts, body) = request.into_parts();
        if !self.access.permits(route.level, &function.name, &parts).await {
            return close_if_unread(&body, status_reply(StatusCode::UNAUTHORIZED)).map(RoutedBody::Reply);
        }
        let Some(place) = routes.enter().await else {
            return close_if_unread(&body, busy(StatusCode::TOO_MANY_REQUESTS)).map(RoutedBody::Reply);
        };
        let trace = trace_context(&parts);
        if routes.form.streams {
            let streamed = StreamedRequest {
                runner,
                function: function.clone(),
                request: Request::from_parts(parts, body),
                values: found.values,
                form: routes.form,
                trace,
                client,
                place,
                most_bytes: routes.config.max_body,
            };
            return match streamed.answer(&routes.servers).await {
                Ok(response) => response.map(|body| RoutedBody::Streamed(Box::new(body))),
                Err(StreamError::Function(failure)) => routed(routes.failed(&failure)),
                Err(StreamError::NoResponse) => routed(routes.error(StreamError::NoResponse)),
                Err(StreamError::Forward(error)) => refuse_unforwarded(&error).map(RoutedBody::Reply),
            };
        }
        let server = self.shared.server();
        let budget = server.budget();
        let (body, _held) = match read_body(body, routes.config.max_body, client, budget).await {
            Ok(body) => body,
            Err(reply) => return reply.map(RoutedBody::Reply),
        };
        let logs = ConsoleLogSink { levels: &runner.log_levels, function: &function.name };
        let request = WholeRequest { parts, is_secure: client.is_secure(), body, trace };
        let response = routes.respond(&runner, found, request, &logs).await;
        response.map(|body| RoutedBody::Reply(reply_body(body, budget)))
    }

    /// Returns the CORS settings that apply to the origin of a request.
    fn cors_for(&self, parts: &Parts, routes: &AppRoutes) -> RouteCors {
        let origin = parts.headers.get(ORIGIN);
        match origin.is_some_and(|origin| self.cors.allows(origin)) {
            true => self.cors.clone(),
            false => routes.cors.clone(),
        }
    }
}

/// Returns the response for a request that was not forwarded to a worker.
fn refuse_unforwarded(error: &ForwardError) -> Reply {
    // The server is a part of the worker, so clients learn no more than of another failure.
    let status = match error.status() {
        StatusCode::BAD_GATEWAY => StatusCode::INTERNAL_SERVER_ERROR,
        status => status,
    };
    tracing::warn!(target: "host", "a request was not forwarded to the worker: {error}");
    let reply = status_reply(status);
    if error.leaves_body() { close(reply) } else { reply }
}

/// Reads a whole body within its limits. The second value reserves the memory.
async fn read_body(
    body: Incoming,
    most: u64,
    client: &ConnectedClient,
    budget: &Arc<ByteBudget>,
) -> Result<(Bytes, Option<ByteReservation>), Reply> {
    if body.is_end_stream() {
        return Ok((Bytes::new(), None));
    }
    if body.size_hint().lower() > most {
        return Err(close(status_reply(StatusCode::PAYLOAD_TOO_LARGE)));
    }
    let limits = UploadLimits { bytes: most, ..UploadLimits::default() };
    let (body, _) = UploadBody::new(body, limits, client);
    let mut body = pin!(body);
    let no_room = || close(busy(StatusCode::SERVICE_UNAVAILABLE));
    let mut held = budget.reserve(0).ok_or_else(no_room)?;
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|failure| {
            close(status_reply(match failure {
                UploadFailure::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
                UploadFailure::TooSlow => StatusCode::REQUEST_TIMEOUT,
                UploadFailure::Broken => StatusCode::BAD_REQUEST,
            }))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
        if !held.grow_to(first.len() + all.capacity()) {
            return Err(no_room());
        }
    }
    Ok((if all.is_empty() { first } else { all.freeze() }, Some(held)))
}

fn reply_body(body: Bytes, budget: &Arc<ByteBudget>) -> ReplyBody {
    if body.len() < LARGE_RESPONSE {
        return ReplyBody::from(body);
    }
    let held = budget.reserve_anyway(body.len());
    ReplyBody::from(Bytes::from_owner(HeldResponse { body, _held: held }))
}

/// A large response, which counts as memory held for a client.
struct HeldResponse {
    body: Bytes,
    _held: ByteReservation,
}

impl AsRef<[u8]> for HeldResponse {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

fn routed(response: Response<Bytes>) -> Response<RoutedBody> {
    response.map(|body| RoutedBody::Reply(ReplyBody::from(body)))
}

pub(crate) fn status_response(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}

fn status_reply(status: StatusCode) -> Reply {
    status_response(status).map(ReplyBody::from)
}

fn text_response(status: StatusCode, text: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn text_reply(status: StatusCode, text: String) -> Reply {
    text_response(status, text).map(ReplyBody::from)
}

fn busy(status: StatusCode) -> Reply {
    let mut reply = status_reply(status);
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    reply
}

/// Closes the connection, because the rest of the body would be read as the next request.
fn close(mut reply: Reply) -> Reply {
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}

fn close_if_unread(body: &Incoming, reply: Reply) -> Reply {
    if body.is_end_stream() { reply } else { close(reply) }
}

fn trace_context(parts: &Parts) -> TraceContext {
    let header =
        |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    TraceContext { parent: header("traceparent"), state: header("tracestate") }
}
