//! [`ServerRouter`]: answers the requests to a self-hosted app. Most are forwarded to its server.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};

use bindpost_mcp_http::listener::ConnectedClient;
use bindpost_mcp_http::{ReplyBody, RequestGuard};
use bytes::Bytes;
use http::header::{
    ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN, RETRY_AFTER, STRICT_TRANSPORT_SECURITY,
};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use uuid::Uuid;

use super::body::ServerBody;
use super::{SelfHostedState, discovery};
use crate::app::{App, HandlerRoute, HttpConfig};
use crate::forward::{ForwardError, ForwardedBody};
use crate::host::access::{AccessPolicy, ServerProfile};
use crate::host::front::{MCP_PATH, RoutedBody, SHORT_PATH, health_reply, text_reply};
use crate::host::keys::KeysError;
use crate::host::worker_launch::HOST_VERSION;
use crate::routes::access::RouteAccess;
use crate::routes::cors::RouteCors;
use crate::routes::throttle::RequestThrottle;

const INVOCATION_ID: HeaderName = HeaderName::from_static("x-azure-functions-invocationid");
const MS_INVOCATION_ID: HeaderName = HeaderName::from_static("x-ms-invocation-id");
const HOST_VERSION_HEADER: HeaderName = HeaderName::from_static("x-azure-functions-hostversion");
const SESSION_ID: &str = "mcp-session-id";
const PLAIN: &str = "text/plain; charset=utf-8";

/// The methods that are forwarded, as on the platform.
const METHODS: [Method; 7] =
    [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::HEAD, Method::OPTIONS];

/// Answers the requests to a self-hosted app.
pub(crate) struct ServerRouter {
    shared: Arc<SelfHostedState>,
    policy: AccessPolicy,
    access: RouteAccess,
    rules: RwLock<Arc<ForwardingRules>>,
}

/// Which requests are forwarded. A change of `host.json` or `local.settings.json` replaces the rules.
struct ForwardingRules {
    routes: Vec<HandlerRoute>,
    guard: RequestGuard,
    cors: RouteCors,
    http: HttpConfig,
    throttle: RequestThrottle,
}

/// A path that this host answers itself.
enum OwnPath {
    Alive,
    Ready,
    Nothing,
}

impl OwnPath {
    fn find(path: &str) -> Option<OwnPath> {
        match path.trim_end_matches('/') {
            "/_/healthz" | "/admin/host/ping" => Some(OwnPath::Alive),
            "/_/readyz" => Some(OwnPath::Ready),
            "/_" => Some(OwnPath::Nothing),
            path => path.starts_with("/_/").then_some(OwnPath::Nothing),
        }
    }
}

impl ForwardingRules {
    fn new(app: &App, policy: &AccessPolicy) -> ForwardingRules {
        let profile = ServerProfile::new(app, policy, false);
        let mut settings = profile.settings(policy, None, super::DRAIN);
        if policy.requires_key_everywhere(app) && settings.allowed_hosts.is_empty() {
            // A key is required anyway, so any host name is allowed.
            settings.allowed_hosts.push("*".to_owned());
        }
        let origins = policy.allowed_origins.iter().chain(&app.local.cors).cloned();
        let http = app.host.http.clone();
        ForwardingRules {
            routes: app.self_hosted().map(|handler| handler.routes.clone()).unwrap_or_default(),
            guard: RequestGuard::new(&settings),
            cors: RouteCors::new(origins, app.local.cors_credentials),
            throttle: RequestThrottle::new(http.max_concurrent_requests, http.max_outstanding_requests),
            http,
        }
    }

    fn route(&self, parts: &Parts) -> Option<&HandlerRoute> {
        let mut routes = self.routes.iter().filter(|_| METHODS.contains(&parts.method));
        routes.find(|route| route.template.match_path(parts.uri.path()).is_some())
    }
}

impl ServerRouter {
    pub(super) fn new(shared: Arc<SelfHostedState>, policy: AccessPolicy) -> Result<ServerRouter, KeysError> {
        let access = RouteAccess::new(policy.keys, shared.app.state_folder.clone()).with_system_keys();
        let rules = ForwardingRules::new(&shared.app, &policy);
        access.prepare(rules.routes.iter().map(|route| route.level))?;
        Ok(ServerRouter { shared, policy, access, rules: RwLock::new(Arc::new(rules)) })
    }

    /// Applies the routes, levels and origins of a changed app.
    pub(super) fn replace_rules(&self, app: &App) -> Result<(), KeysError> {
        let rules = ForwardingRules::new(app, &self.policy);
        self.access.prepare(rules.routes.iter().map(|route| route.level))?;
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
        Ok(())
    }

    /// Answers a request.
    pub(crate) async fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
        client: ConnectedClient,
    ) -> Result<Response<RoutedBody>, Infallible> {
        let reply = match OwnPath::find(request.uri().path()) {
            None => return Ok(self.forward(request, &client).await),
            Some(OwnPath::Nothing) => text_reply(StatusCode::NOT_FOUND, PLAIN, String::new()),
            Some(_) if !matches!(*request.method(), Method::GET | Method::HEAD) => {
                let mut reply = text_reply(StatusCode::METHOD_NOT_ALLOWED, PLAIN, String::new());
                reply.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
                reply
            }
            Some(OwnPath::Alive) => health_reply(self.shared.liveness()),
            Some(OwnPath::Ready) => health_reply(self.shared.readiness().await),
        };
        Ok(reply.map(RoutedBody::Reply))
    }

    /// Checks a request and forwards it.
    async fn forward(&self, request: Request<Incoming>, client: &ConnectedClient) -> Response<RoutedBody> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (mut parts, body) = request.into_parts();
        let refuse = |status: StatusCode, text: String| {
            close_if_unread(&body, text_reply(status, PLAIN, text)).map(RoutedBody::Reply)
        };
        if let Some(uri) = short_form(&parts) {
            parts.uri = uri;
        }
        let allows_origin = parts.headers.get(ORIGIN).is_some_and(|origin| rules.cors.allows(origin));
        let problem = match allows_origin {
            true => rules.guard.host_problem(&parts),
            false => rules.guard.problem(&parts),
        };
        if let Some(reason) = problem {
            return refuse(StatusCode::FORBIDDEN, format!("{reason}\n"));
        }
        if let Some(reply) = rules.cors.preflight(&parts) {
            return reply.map(|()| RoutedBody::Reply(ReplyBody::from(Bytes::new())));
        }
        let Some(route) = rules.route(&parts) else {
            return refuse(StatusCode::NOT_FOUND, "no route of the app has this path\n".to_owned());
        };
        if !self.access.permits(route.level, &route.function, &parts).await {
            return refuse(StatusCode::UNAUTHORIZED, String::new());
        }
        let Some(place) = rules.throttle.enter().await else {
            return refuse(StatusCode::TOO_MANY_REQUESTS, String::new());
        };
        let (server, process) = match self.shared.serving() {
            Ok(serving) => serving,
            Err(reason) => {
                let text = format!("the server of the app is not running: {reason}\n");
                let mut reply = refuse(StatusCode::BAD_GATEWAY, text);
                reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
                return reply;
            }
        };
        rules.guard.remove_identity_headers(&mut parts.headers);
        set_platform_headers(&mut parts);
        let (asked, is_get) = (parts.headers.clone(), parts.method == Method::GET);
        let forwarder = server
            .forwarder(&process, || SelfHostedState::forward_options(&self.policy, rules.http.max_body));
        let forwarded = forwarder.forward(Request::from_parts(parts, body), client).await;
        let mut response = match forwarded {
            Ok(response) => response,
            Err(error) => return unforwarded(&error).map(RoutedBody::Reply),
        };
        self.note_session(&response);
        let headers = response.headers_mut();
        for (name, value) in &rules.http.custom_headers {
            headers.entry(name).or_insert_with(|| value.clone());
        }
        if let Some(hsts) = rules.http.hsts.as_ref().filter(|_| client.is_secure()) {
            headers.insert(STRICT_TRANSPORT_SECURITY, hsts.clone());
        }
        rules.cors.add_headers(&asked, headers);
        // A stream that answers no request would stay open until the client ends it.
        let is_idle_stream = is_get && is_event_stream(&response);
        let draining = is_idle_stream.then(|| self.shared.draining.subscribe());
        response.map(|body| RoutedBody::Forwarded(Box::new(ServerBody::new(body, draining, place))))
    }

    /// Tells once that the server has sessions.
    fn note_session(&self, response: &Response<ForwardedBody>) {
        if response.headers().contains_key(SESSION_ID)
            && !self.shared.told_sessions.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(target: "host", "{}", discovery::SESSIONS_NOTICE);
        }
    }
}

/// Returns the URI below `/mcp` of a request below the path at which Azure Functions serves MCP.
fn short_form(parts: &Parts) -> Option<http::Uri> {
    let (head, rest) = parts.uri.path().split_at_checked(MCP_PATH.len())?;
    if !head.eq_ignore_ascii_case(MCP_PATH) || !(rest.is_empty() || rest.starts_with('/')) {
        return None;
    }
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut uri = parts.uri.clone().into_parts();
    uri.path_and_query = Some(format!("{SHORT_PATH}{rest}{query}").parse().ok()?);
    http::Uri::from_parts(uri).ok()
}

/// Sets the headers by which the platform tells the server about the request.
fn set_platform_headers(parts: &mut Parts) {
    if let Ok(id) = HeaderValue::try_from(Uuid::new_v4().to_string()) {
        parts.headers.insert(INVOCATION_ID, id.clone());
        parts.headers.insert(MS_INVOCATION_ID, id);
    }
    parts.headers.insert(HOST_VERSION_HEADER, HeaderValue::from_static(HOST_VERSION));
}

fn is_event_stream(response: &Response<ForwardedBody>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let stream = b"text/event-stream";
    kind.get(..stream.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(stream))
}

/// Returns the response for a request that was not forwarded, or that the server did not answer.
fn unforwarded(error: &ForwardError) -> Response<ReplyBody> {
    tracing::warn!(target: "host", "a request got no response: {error}");
    let text = match error {
        ForwardError::NotConnected(_) => "the server of the app does not accept connections\n".to_owned(),
        ForwardError::NoResponse(_) => {
            "the server of the app closed the connection without a valid response\n".to_owned()
        }
        error => format!("{error}\n"),
    };
    let reply = text_reply(error.status(), PLAIN, text);
    if error.leaves_body() { close(reply) } else { reply }
}

/// Closes the connection, because the rest of the body would be read as the next request.
fn close(mut reply: Response<ReplyBody>) -> Response<ReplyBody> {
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}

fn close_if_unread(body: &Incoming, reply: Response<ReplyBody>) -> Response<ReplyBody> {
    if body.is_end_stream() { reply } else { close(reply) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_platform_becomes_the_usual_one() {
        let uri = |uri: &str| {
            let (parts, ()) = Request::get(uri).body(()).unwrap().into_parts();
            short_form(&parts).map(|uri| uri.to_string())
        };
        assert_eq!(uri("/runtime/webhooks/mcp").as_deref(), Some("/mcp"));
        assert_eq!(uri("/Runtime/WebHooks/MCP/sse?code=a").as_deref(), Some("/mcp/sse?code=a"));
        for other in ["/mcp", "/runtime/webhooks/mcpx", "/runtime", "/"] {
            assert_eq!(uri(other), None, "{other}");
        }
    }
}
