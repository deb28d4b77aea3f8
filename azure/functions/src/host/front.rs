//! [`RequestRouter`]: routes requests by path. MCP requests go to the endpoint, health probes are answered
//! here.

mod body;

use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};

use bindpost_mcp_http::listener::ConnectedClient;
use bindpost_mcp_http::{Endpoint, ReplyBody};
use bytes::Bytes;
use futures_util::TryFutureExt as _;
use futures_util::future::{BoxFuture, Either};
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::routes::front::FunctionRoutes;

/// The path at which Azure Functions serves MCP.
pub(crate) const MCP_PATH: &str = "/runtime/webhooks/mcp";
/// The paths at which it serves HTTP+SSE: the stream, and the path for posted messages.
pub(crate) const SSE_PATHS: (&str, &str) = ("/runtime/webhooks/mcp/sse", "/runtime/webhooks/mcp/message");
/// The usual path of MCP servers.
pub(crate) const SHORT_PATH: &str = "/mcp";
/// The path below which functions are run by their names.
const RUN_PATH: &str = "/admin/functions";

pub(crate) use self::body::RoutedBody;

pub(crate) type Reply = Response<ReplyBody>;

/// The health of the host, as the health endpoints report it.
pub(crate) trait HealthProbes: Send + Sync + 'static {
    /// Returns the reason if new calls are not served.
    fn readiness(&self) -> Result<(), String>;
    /// Returns the reason if the host has failed permanently.
    fn liveness(&self) -> Result<(), String>;
}

/// Routes every request of the listener.
pub(crate) struct RequestRouter<C> {
    /// The current MCP endpoint. A change of the server profile replaces it.
    endpoint: RwLock<Endpoint>,
    condition: Arc<C>,
    routes: FunctionRoutes,
}

/// The target of a path.
#[derive(Debug, PartialEq, Eq)]
enum RouteTarget {
    /// The MCP endpoint, with this path.
    Mcp(&'static str),
    /// The same by the short form of its path, unless a function has this route.
    ShortForm(&'static str),
    /// Runs a function with a timer trigger.
    RunTimer(String),
    Home,
    Alive,
    Ready,
    Nowhere,
}

/// Returns the target of a path. Like the platform, it ignores case, and everything below the MCP path is
/// MCP.
fn route(path: &str) -> RouteTarget {
    let path = path.trim_end_matches('/');
    match path {
        "" => return RouteTarget::Home,
        "/_/healthz" | "/admin/host/ping" => return RouteTarget::Alive,
        "/_/readyz" => return RouteTarget::Ready,
        _ => {}
    }
    let below = |start: &str| {
        let (head, rest) = path.split_at_checked(start.len())?;
        (head.eq_ignore_ascii_case(start) && (rest.is_empty() || rest.starts_with('/'))).then_some(rest)
    };
    let endpoint_path = |below: &str| {
        let last = below.rsplit('/').next().unwrap_or_default();
        if last.eq_ignore_ascii_case("sse") {
            SSE_PATHS.0
        } else if last.eq_ignore_ascii_case("message") {
            SSE_PATHS.1
        } else {
            MCP_PATH
        }
    };
    if let Some(function) = below(RUN_PATH).and_then(|rest| rest.strip_prefix('/')) {
        return RouteTarget::RunTimer(function.to_owned());
    }
    match (below(MCP_PATH), below(SHORT_PATH)) {
        (Some(below), _) => RouteTarget::Mcp(endpoint_path(below)),
        (None, Some(below)) => RouteTarget::ShortForm(endpoint_path(below)),
        (None, None) => RouteTarget::Nowhere,
    }
}

/// Returns whether the host answers this path itself, whatever routes functions have.
pub(crate) fn is_own_path(path: &str) -> bool {
    route(path).is_own()
}

impl RouteTarget {
    /// Returns whether the path belongs to the platform, and not to a function.
    fn is_own(&self) -> bool {
        matches!(
            self,
            RouteTarget::Mcp(_) | RouteTarget::RunTimer(_) | RouteTarget::Alive | RouteTarget::Ready
        )
    }
}

impl<C: HealthProbes> RequestRouter<C> {
    pub(crate) fn new(endpoint: Endpoint, condition: Arc<C>, routes: FunctionRoutes) -> RequestRouter<C> {
        RequestRouter { endpoint: RwLock::new(endpoint), condition, routes }
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        self.endpoint.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the endpoint for a request on a connection that was opened with the endpoint `known`. Usually
    /// that is `known` itself, which needs no lock.
    pub(crate) fn endpoint_after(&self, known: &Endpoint) -> Endpoint {
        if known.is_closed() { self.endpoint() } else { known.clone() }
    }

    /// Sends all further requests to another endpoint. Returns the previous one, which the caller must close.
    pub(crate) fn replace(&self, endpoint: Endpoint) -> Endpoint {
        let mut current = self.endpoint.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *current, endpoint)
    }

    /// Answers a request. MCP requests go to this endpoint.
    ///
    /// Not an `async fn`: its future would contain the request twice.
    pub(crate) fn handle(
        self: Arc<Self>,
        endpoint: Endpoint,
        mut request: Request<Incoming>,
        client: ConnectedClient,
    ) -> impl Future<Output = Result<Response<RoutedBody>, Infallible>> + Send + use<C> {
        if let Some(names) = client.next_header_names() {
            request.extensions_mut().insert(names);
        }
        let target = route(request.uri().path());
        // The paths of the platform are stronger than the routes of functions.
        let is_function = !target.is_own() && self.routes.has_route(request.uri().path());
        if let RouteTarget::Mcp(path) | RouteTarget::ShortForm(path) = target
            && !is_function
        {
            if let Some(uri) = with_path(request.uri(), path) {
                *request.uri_mut() = uri;
            }
            let answer = endpoint.handle_from(request, client);
            return Either::Left(answer.map_ok(|reply| reply.map(RoutedBody::Reply)));
        }
        let answer: BoxFuture<'static, _> = match is_function {
            true => Box::pin(async move {
                let found = self.routes.answer(&endpoint, request, &client).await;
                Ok(found.unwrap_or_else(|| not_found().map(RoutedBody::Reply)))
            }),
            false => Box::pin(async move {
                let reply = self.answer_own(target, &endpoint, request, &client).await;
                Ok(reply.map(RoutedBody::Reply))
            }),
        };
        Either::Right(answer)
    }

    /// Answers a request for a path of the host, or for none.
    async fn answer_own(
        &self,
        target: RouteTarget,
        endpoint: &Endpoint,
        request: Request<Incoming>,
        client: &ConnectedClient,
    ) -> Reply {
        match target {
            RouteTarget::RunTimer(function) => {
                self.routes.run_timer(endpoint, &function, request, client).await
            }
            RouteTarget::Nowhere => not_found(),
            _ if !matches!(*request.method(), Method::GET | Method::HEAD) => {
                let mut reply =
                    text_reply(StatusCode::METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", String::new());
                reply.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
                reply
            }
            RouteTarget::Alive => health_reply(self.condition.liveness()),
            RouteTarget::Ready => health_reply(self.condition.readiness()),
            RouteTarget::Home | RouteTarget::Mcp(_) | RouteTarget::ShortForm(_) => {
                let text =
                    format!("A function app, served as an MCP server by bindpost.\nMCP is at {MCP_PATH}\n");
                text_reply(StatusCode::OK, "text/plain; charset=utf-8", text)
            }
        }
    }
}

fn not_found() -> Reply {
    let text = format!("nothing is served here; MCP is at {MCP_PATH}\n");
    text_reply(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", text)
}

fn with_path(uri: &Uri, path: &'static str) -> Option<Uri> {
    if uri.path() == path {
        return None;
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(match uri.query() {
        None => PathAndQuery::from_static(path),
        Some(query) => PathAndQuery::try_from(format!("{path}?{query}")).ok()?,
    });
    Uri::from_parts(parts).ok()
}

pub(crate) fn health_reply(condition: Result<(), String>) -> Reply {
    let (status, body): (StatusCode, Value) = match condition {
        Ok(()) => (StatusCode::OK, json!({"status": "ok"})),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, json!({"status": "unavailable", "reason": reason})),
    };
    text_reply(status, "application/json", body.to_string())
}

pub(crate) fn text_reply(status: StatusCode, content_type: &'static str, text: String) -> Reply {
    let mut reply = Response::new(ReplyBody::from(Bytes::from(text)));
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_paths_as_the_platform_does() {
        for (path, expected) in [
            ("/runtime/webhooks/mcp", RouteTarget::Mcp(MCP_PATH)),
            ("/runtime/webhooks/mcp/", RouteTarget::Mcp(MCP_PATH)),
            ("/Runtime/WebHooks/MCP", RouteTarget::Mcp(MCP_PATH)),
            ("/runtime/webhooks/mcp/anything", RouteTarget::Mcp(MCP_PATH)),
            ("/runtime/webhooks/mcp/sse", RouteTarget::Mcp(SSE_PATHS.0)),
            ("/runtime/webhooks/mcp/SSE/", RouteTarget::Mcp(SSE_PATHS.0)),
            ("/runtime/webhooks/mcp/message", RouteTarget::Mcp(SSE_PATHS.1)),
            ("/mcp", RouteTarget::ShortForm(MCP_PATH)),
            ("/mcp/sse", RouteTarget::ShortForm(SSE_PATHS.0)),
            ("/mcp/message", RouteTarget::ShortForm(SSE_PATHS.1)),
            ("/mcpx", RouteTarget::Nowhere),
            ("/runtime/webhooks/other", RouteTarget::Nowhere),
            ("/", RouteTarget::Home),
            ("/_/healthz", RouteTarget::Alive),
            ("/admin/host/ping", RouteTarget::Alive),
            ("/Admin/functions/Tick/", RouteTarget::RunTimer("Tick".to_owned())),
            ("/admin/functions", RouteTarget::Nowhere),
            ("/admin/functionsx/a", RouteTarget::Nowhere),
            ("/_/readyz", RouteTarget::Ready),
        ] {
            assert_eq!(route(path), expected, "{path}");
        }
    }

    #[test]
    fn keeps_the_query() {
        let uri: Uri = "/mcp/message?sessionId=a&code=b".parse().unwrap();
        assert_eq!(with_path(&uri, SSE_PATHS.1).unwrap(), "/runtime/webhooks/mcp/message?sessionId=a&code=b");
    }
}
