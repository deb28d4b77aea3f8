//! The orders server on bindpost: `ORDERS_KEY=secret cargo run -p compare-bindpost -- 8080`.

use std::collections::HashMap;
use std::sync::Mutex;

use anyhow::Context;
use bindpost::http::{ApiKeys, Auth, SessionMode, Settings, bind};
use bindpost::{ProtocolError, Server, entries, prompt, tool, tools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, JsonSchema)]
struct Order {
    id: String,
    status: String,
    total: f64,
}

#[derive(Clone, Serialize)]
struct MenuItem {
    id: &'static str,
    name: &'static str,
    price: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OrderItem {
    item_id: String,
    #[schemars(range(min = 1, max = 100))]
    quantity: u32,
}

struct Orders {
    orders: Mutex<HashMap<String, Order>>,
    menu: HashMap<&'static str, Vec<MenuItem>>,
}

#[tools]
impl Orders {
    /// Looks up an order.
    #[tool(read_only, rename_all = "camelCase")]
    async fn get_order(
        &self,
        /// The order's id
        order_id: String,
    ) -> Result<Order, String> {
        let order = self.orders.lock().unwrap().get(&order_id).cloned();
        order.ok_or_else(|| format!("unknown order: {order_id}"))
    }

    /// Places an order.
    #[tool(rename_all = "camelCase")]
    async fn create_order(
        &self,
        _customer_id: String,
        #[arg(min_items = 1)] items: Vec<OrderItem>,
        #[arg(one_of = ["low", "normal", "high", "urgent"], default = "normal")] _priority: String,
        #[arg(max_length = 500)] _notes: Option<String>,
    ) -> Result<Order, String> {
        let mut total = 0.0;
        for OrderItem { item_id, quantity } in &items {
            let item = self.menu.values().flatten().find(|item| item.id == item_id);
            let item = item.ok_or_else(|| format!("unknown item: {item_id}"))?;
            total += item.price * f64::from(*quantity);
        }
        let mut orders = self.orders.lock().unwrap();
        let order = Order { id: (123 + orders.len()).to_string(), status: "open".into(), total };
        orders.insert(order.id.clone(), order.clone());
        Ok(order)
    }

    /// The items of a category.
    #[resource("menu://categories/{categoryId}", name = "Menu category", rename_all = "camelCase")]
    async fn category(&self, category_id: String) -> Result<Vec<MenuItem>, ProtocolError> {
        let unknown = || ProtocolError::UnknownResource(format!("menu://categories/{category_id}"));
        self.menu.get(category_id.as_str()).cloned().ok_or_else(unknown)
    }
}

/// The server's time; no key required.
#[tool(read_only, anonymous)]
fn get_time() -> String {
    chrono::Utc::now().to_rfc3339()
}

/// Asks for a summary of an order.
#[prompt(rename_all = "camelCase")]
fn order_summary(
    /// The order's id
    order_id: String,
    #[arg(default = "friendly")] tone: String,
) -> String {
    format!("Summarize order {order_id} for the customer in a {tone} tone.")
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let port: u16 = std::env::args().nth(1).context("the port is missing")?.parse()?;
    let keys = ApiKeys::new().key("orders", std::env::var("ORDERS_KEY")?);
    let order = |id: &str, status: &str, total| {
        (id.to_owned(), Order { id: id.into(), status: status.into(), total })
    };
    let item = |id, name, price| MenuItem { id, name, price };
    let orders = Orders {
        orders: Mutex::new(HashMap::from([order("123", "open", 18.5), order("124", "delivered", 7.25)])),
        menu: HashMap::from([
            ("appetizers", vec![item("rolls", "Spring rolls", 6.5), item("soup", "Tomato soup", 5.25)]),
            ("drinks", vec![item("lemonade", "Lemonade", 3.5), item("tea", "Green tea", 2.75)]),
        ]),
    };

    let server = Server::builder("orders-compare", "1.0.0")
        .add(orders)
        .add(entries![get_time, order_summary])
        .build()?;
    let settings =
        Settings { auth: Some(Auth::new(keys)), sessions: SessionMode::Stateless, ..Settings::default() };
    Ok(bind(("127.0.0.1", port)).await?.serve(server, settings).await?)
}
