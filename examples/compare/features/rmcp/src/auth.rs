use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::{Extension, ToolCallContext};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::*;
use rmcp::schemars::{self, JsonSchema};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, tool, tool_handler, tool_router};
use serde::Deserialize;

type Context = RequestContext<RoleServer>;

#[derive(Clone, Copy)]
struct Caller {
    name: &'static str,
    scopes: &'static [&'static str],
}

fn caller_of(headers: &HeaderMap) -> Option<Caller> {
    match headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")? {
        "ann-key" => Some(Caller { name: "ann", scopes: &[] }),
        "bob-key" => Some(Caller { name: "bob", scopes: &["orders.write"] }),
        _ => None,
    }
}

/// Checks the key and the scopes of a call. rmcp leaves both to middleware.
pub async fn authenticate(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, 1 << 20).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let called = match serde_json::from_slice(&body) {
        Ok(ClientJsonRpcMessage::Request(JsonRpcRequest {
            request: ClientRequest::CallToolRequest(call),
            ..
        })) => Some(call.params.name),
        _ => None,
    };
    let caller = caller_of(&parts.headers);
    match (called.as_deref(), caller) {
        (None | Some("opening_hours"), _) => {}
        (Some(_), None) => return challenge(StatusCode::UNAUTHORIZED, "Bearer"),
        (Some("cancel_order"), Some(caller)) if !caller.scopes.contains(&"orders.write") => {
            let missing = r#"Bearer error="insufficient_scope", scope="orders.write""#;
            return challenge(StatusCode::FORBIDDEN, missing);
        }
        (Some(_), Some(_)) => {}
    }
    if let Some(caller) = caller {
        parts.extensions.insert(caller);
    }
    next.run(Request::from_parts(parts, body.into())).await
}

fn challenge(status: StatusCode, text: &'static str) -> Response {
    (status, [(WWW_AUTHENTICATE, text)]).into_response()
}

#[derive(Deserialize, JsonSchema)]
struct CancelOrder {
    id: u32,
}

/// The handler of the mode `auth`.
pub struct Desk;

impl Desk {
    /// Returns the tools that the caller sees.
    fn tools_for(context: &Context) -> ToolRouter<Self> {
        let mut tools = Self::tool_router();
        let caller = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>());
        if caller.is_none_or(|caller| caller.name != "bob") {
            tools.disable_route("count_till");
        }
        tools
    }
}

#[tool_router]
impl Desk {
    /// Returns the opening hours.
    #[tool]
    fn opening_hours(&self) -> String {
        "9 to 18".into()
    }

    /// Returns the books of the caller.
    #[tool]
    fn my_books(&self, Extension(parts): Extension<Parts>) -> Result<String, String> {
        let caller = parts.extensions.get::<Caller>().ok_or("the caller is unknown")?;
        Ok(format!("books of {}", caller.name))
    }

    /// Cancels an order.
    #[tool]
    fn cancel_order(&self, Parameters(CancelOrder { id }): Parameters<CancelOrder>) -> String {
        format!("cancelled {id}")
    }

    /// Counts the money.
    #[tool]
    fn count_till(&self) -> String {
        "12.50".into()
    }
}

#[tool_handler]
impl ServerHandler for Desk {
    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = Self::tools_for(&context).list_all();
        Ok(ListToolsResult::with_all_items(tools).with_cache_scope(CacheScope::Private))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let tools = Self::tools_for(&context);
        tools.call(ToolCallContext::new(self, request, context)).await
    }
}
