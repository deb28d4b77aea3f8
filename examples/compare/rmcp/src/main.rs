//! The orders server on rmcp: `ORDERS_KEY=secret cargo run -- 8080`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use anyhow::Context;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use garde::Validate;
use rmcp::handler::server::router::prompt::PromptRouter;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::*;
use rmcp::schemars::{self, JsonSchema};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{
    Json, RoleServer, ServerHandler, prompt, prompt_handler, prompt_router, tool, tool_handler, tool_router,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;

#[derive(Clone, Serialize, JsonSchema)]
struct Order {
    id: String,
    status: String,
    total: f64,
}

#[derive(Serialize)]
struct MenuItem {
    id: &'static str,
    name: &'static str,
    price: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GetOrder {
    /// The order's id
    order_id: String,
}

#[derive(Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
#[expect(dead_code, reason = "customer and priority are not used yet")]
struct CreateOrder {
    customer_id: String,
    #[garde(length(min = 1), dive)]
    items: Vec<OrderItem>,
    #[serde(default)]
    priority: Priority,
    #[garde(length(chars, max = 500))]
    notes: Option<String>,
}

#[derive(Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
struct OrderItem {
    item_id: String,
    #[garde(range(min = 1, max = 100))]
    quantity: u32,
}

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Priority {
    Low,
    #[default]
    Normal,
    High,
    Urgent,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OrderSummary {
    /// The order's id
    order_id: String,
    tone: Option<String>,
}

struct Orders {
    orders: Mutex<HashMap<String, Order>>,
    menu: HashMap<&'static str, Vec<MenuItem>>,
    tool_router: ToolRouter<Self>,
    prompt_router: PromptRouter<Self>,
}

#[tool_router]
impl Orders {
    /// Looks up an order.
    #[tool(annotations(read_only_hint = true))]
    async fn get_order(
        &self,
        Parameters(GetOrder { order_id }): Parameters<GetOrder>,
    ) -> Result<Json<Order>, String> {
        let order = self.orders.lock().unwrap().get(&order_id).cloned();
        order.map(Json).ok_or_else(|| format!("unknown order: {order_id}"))
    }

    /// Places an order.
    #[tool]
    async fn create_order(&self, Parameters(order): Parameters<CreateOrder>) -> Result<Json<Order>, String> {
        order.validate().map_err(|report| report.to_string())?;
        let mut total = 0.0;
        for OrderItem { item_id, quantity } in &order.items {
            let item = self.menu.values().flatten().find(|item| item.id == item_id);
            let item = item.ok_or_else(|| format!("unknown item: {item_id}"))?;
            total += item.price * f64::from(*quantity);
        }
        let mut orders = self.orders.lock().unwrap();
        let id = (123 + orders.len()).to_string();
        let order = Order { id: id.clone(), status: "open".into(), total };
        orders.insert(id, order.clone());
        Ok(Json(order))
    }

    /// The server's time; no key required.
    #[tool(annotations(read_only_hint = true))]
    async fn get_time(&self) -> String {
        chrono::Utc::now().to_rfc3339()
    }
}

#[prompt_router]
impl Orders {
    /// Asks for a summary of an order.
    #[prompt]
    async fn order_summary(
        &self,
        Parameters(OrderSummary { order_id, tone }): Parameters<OrderSummary>,
    ) -> Vec<PromptMessage> {
        let tone = tone.as_deref().unwrap_or("friendly");
        let text = format!("Summarize order {order_id} for the customer in a {tone} tone.");
        vec![PromptMessage::new_text(Role::User, text)]
    }
}

#[tool_handler(router = self.tool_router)]
#[prompt_handler(router = self.prompt_router)]
impl ServerHandler for Orders {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("orders-compare", "1.0.0"))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("menu://categories/{categoryId}", "Menu category")
            .with_description("The items of a category.")
            .with_mime_type("application/json");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        ReadResourceRequestParams { uri, .. }: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let category = uri.strip_prefix("menu://categories/").and_then(|id| self.menu.get(id));
        let Some(items) = category else {
            return Err(ErrorData::resource_not_found(format!("resource not found: {uri}"), None));
        };
        let json = serde_json::to_string(items)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let contents = ResourceContents::text(json, uri).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

// Accepts requests with the key, and requests that need none.
async fn require_key(
    State(key): State<Arc<str>>,
    request: Request,
    next: Next,
) -> Result<Response, StatusCode> {
    let given = request.headers().get("x-api-key");
    if given.is_some_and(|given| given.as_bytes().ct_eq(key.as_bytes()).into()) {
        return Ok(next.run(request).await);
    }
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?;
    if !is_open(&body) {
        return Err(StatusCode::UNAUTHORIZED);
    }
    Ok(next.run(Request::from_parts(parts, body.into())).await)
}

// Returns whether a request needs no key: those to find and call `get_time`. Only the body contains the
// tool name.
fn is_open(body: &[u8]) -> bool {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    match message["method"].as_str() {
        Some("initialize" | "notifications/initialized" | "server/discover" | "ping" | "tools/list") => true,
        Some("tools/call") => message["params"]["name"] == "get_time",
        _ => false,
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let port: u16 = std::env::args().nth(1).context("the port is missing")?.parse()?;
    let key: Arc<str> = std::env::var("ORDERS_KEY")?.into();
    let order = |id: &str, status: &str, total| {
        (id.to_owned(), Order { id: id.into(), status: status.into(), total })
    };
    let item = |id, name, price| MenuItem { id, name, price };
    let server = Arc::new(Orders {
        orders: Mutex::new(HashMap::from([order("123", "open", 18.5), order("124", "delivered", 7.25)])),
        menu: HashMap::from([
            ("appetizers", vec![item("rolls", "Spring rolls", 6.5), item("soup", "Tomato soup", 5.25)]),
            ("drinks", vec![item("lemonade", "Lemonade", 3.5), item("tea", "Green tea", 2.75)]),
        ]),
        tool_router: Orders::tool_router(),
        prompt_router: Orders::prompt_router(),
    });

    let config =
        StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let service: StreamableHttpService<_, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config);
    let app = axum::Router::new()
        .route_service("/mcp", service)
        .layer(middleware::from_fn_with_state(key, require_key));
    axum::serve(TcpListener::bind(("127.0.0.1", port)).await?, app).await?;
    Ok(())
}
