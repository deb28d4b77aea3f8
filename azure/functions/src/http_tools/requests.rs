//! [`FunctionRequests`]: answers the requests of the bridge by running functions in this process.

use std::collections::HashMap;
use std::sync::Arc;

use bindpost_azure_hosting::IDENTITY_HEADERS;
use bindpost_mcp_openapi::{BridgedCall, HandlerFuture, RequestHandler};
use bindpost_mcp_server::Context;
use bytes::Bytes;
use http::header::{ACCEPT_LANGUAGE, CONTENT_LENGTH, FORWARDED, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};

use crate::app::App;
use crate::entries::{ClientLogSink, TRACEPARENT, TRACESTATE, trace_context};
use crate::function::Function;
use crate::host::front::is_own_path;
use crate::invocation::FunctionRunner;
use crate::routes::MatchedRoute;
use crate::routes::front::{AppRoutes, WholeRequest, status_response};

const SESSION: HeaderName = HeaderName::from_static("x-mcp-session-id");
/// The header with a key. Tools need none, and the model must not choose one.
const KEY: HeaderName = HeaderName::from_static("x-functions-key");
/// The error for a request that the routes give to another function: by its arguments, or after a redirect.
const ANOTHER_FUNCTION: &str =
    "these arguments, or a redirect, address another function, which this tool does not call";
/// The setting of the platform with the name of the app's host.
const HOST_NAME: &str = "WEBSITE_HOSTNAME";

/// The address that functions see in requests of tools.
#[derive(Clone, Debug)]
pub(crate) struct OwnAddress {
    base: String,
    host: HeaderValue,
}

impl Default for OwnAddress {
    fn default() -> OwnAddress {
        OwnAddress { base: "http://localhost".to_owned(), host: HeaderValue::from_static("localhost") }
    }
}

impl OwnAddress {
    /// Returns the address of an app: the host name that the platform sets, or else `localhost`.
    pub(super) fn of_app(app: &App) -> OwnAddress {
        let name = app.settings.get(HOST_NAME).unwrap_or_default().trim();
        let is_host = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte));
        let Some(host) = HeaderValue::from_str(name).ok().filter(|_| is_host) else {
            return OwnAddress::default();
        };
        let is_local =
            ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"].iter().any(|local| name.starts_with(local));
        let scheme = if is_local { "http" } else { "https" };
        OwnAddress { base: format!("{scheme}://{name}"), host }
    }

    pub(super) fn base(&self) -> &str {
        &self.base
    }

    pub(super) fn host(&self) -> HeaderValue {
        self.host.clone()
    }

    pub(super) fn is_secure(&self) -> bool {
        self.base.starts_with("https:")
    }
}

/// Answers the requests of tools.
#[derive(Debug)]
pub(super) struct FunctionRequests {
    runner: Arc<FunctionRunner>,
    routes: Arc<AppRoutes>,
    /// The function of each operation, by the id of the operation.
    functions: Arc<HashMap<String, Arc<Function>>>,
    address: OwnAddress,
}

impl FunctionRequests {
    pub(super) fn new(
        runner: Arc<FunctionRunner>,
        routes: Arc<AppRoutes>,
        functions: Arc<HashMap<String, Arc<Function>>>,
        address: OwnAddress,
    ) -> FunctionRequests {
        FunctionRequests { runner, routes, functions, address }
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let (mut parts, body) = request.into_parts();
        let call = parts.extensions.remove::<BridgedCall>().ok_or("the request is not a call of a tool")?;
        let expected = self.functions.get(&call.operation).ok_or("this tool no longer exists")?;
        let path = parts.uri.path();
        let found = self.routes.table.find(&parts.method, path).filter(|_| !is_own_path(path));
        let Some(found) = found else { return Ok(status_response(StatusCode::NOT_FOUND)) };
        if !Arc::ptr_eq(&found.route.function, expected) {
            return Err(ANOTHER_FUNCTION.to_owned());
        }
        if body.len() as u64 > self.routes.max_body() {
            return Ok(status_response(StatusCode::PAYLOAD_TOO_LARGE));
        }
        let Some(_place) = self.routes.enter().await else {
            return Ok(status_response(StatusCode::TOO_MANY_REQUESTS));
        };
        self.write_headers(&mut parts, &call.context, body.len());
        Ok(self.run(found, parts, body, &call.context).await)
    }

    async fn run(
        &self,
        found: MatchedRoute<'_>,
        mut parts: Parts,
        body: Bytes,
        context: &Context,
    ) -> Response<Bytes> {
        let function = found.route.function.name.as_str();
        let logs = ClientLogSink { context, levels: &self.runner.log_levels, function };
        let trace = trace_context(context);
        let parent = trace.parent.as_deref().and_then(|parent| HeaderValue::from_str(parent).ok());
        if let Some(parent) = parent {
            parts.headers.insert(&TRACEPARENT, parent);
        }
        let request = WholeRequest { parts, is_secure: self.address.is_secure(), body, trace };
        self.routes.respond(&self.runner, found, request, &logs).await
    }

    /// Removes the headers that the model must not choose, and adds those of the caller that functions may see.
    fn write_headers(&self, parts: &mut Parts, context: &Context, body: usize) {
        let headers = &mut parts.headers;
        let chosen: Vec<HeaderName> = headers.keys().filter(|name| is_ours(name)).cloned().collect();
        for name in chosen {
            headers.remove(name);
        }
        headers.insert(HOST, self.address.host());
        if body > 0 || matches!(parts.method, Method::POST | Method::PUT | Method::PATCH) {
            headers.insert(CONTENT_LENGTH, body.into());
        }
        if let Some(id) = context.session_id().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(SESSION, id);
        }
        if let Some(request) = context.http() {
            copy_headers(request.headers(), headers);
        }
    }
}

impl RequestHandler for FunctionRequests {
    fn handle(&self, request: Request<Bytes>) -> HandlerFuture<'_> {
        Box::pin(self.answer(request))
    }
}

/// Copies the headers of the caller that functions may see. The endpoint has removed the identity headers, unless it trusts
/// the platform.
fn copy_headers(from: &HeaderMap, to: &mut HeaderMap) {
    for name in from.keys().filter(|name| **name == ACCEPT_LANGUAGE || is_identity(name)) {
        to.remove(name);
        for value in from.get_all(name) {
            to.append(name.clone(), value.clone());
        }
    }
}

/// Returns whether only the host sets this header. An OpenAPI document may have a parameter for it.
pub(super) fn is_ours(name: &HeaderName) -> bool {
    is_identity(name)
        || [KEY, SESSION, FORWARDED].contains(name)
        || *name == TRACEPARENT
        || *name == TRACESTATE
        || name.as_str().starts_with("x-forwarded-")
}

fn is_identity(name: &HeaderName) -> bool {
    IDENTITY_HEADERS.iter().any(|identity| name.as_str().starts_with(identity))
}
