//! The tools: get, create and cancel an order, and get the time.

use bindpost::{Args, Context, ToolError, tool, tools};
use chrono::{NaiveDate, SecondsFormat, Utc};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::store::{Line, NotCancelled, Order, Priority, Status, Store, find_item};

pub struct OrderTools {
    pub store: Store,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateOrderRequest {
    /// The customer's unique identifier
    customer_id: String,
    /// Order line items
    items: Vec<Line>,
    /// Special instructions or notes
    #[schemars(length(max = 500))]
    notes: Option<String>,
    /// Order priority level
    #[serde(default)]
    priority: Priority,
    /// Requested delivery date
    delivery_date: Option<NaiveDate>,
    /// Customer email for notifications
    #[schemars(email)]
    notification_email: Option<String>,
    /// Discount percentage
    #[schemars(range(min = 0, max = 100))]
    discount_percent: Option<f64>,
}

#[tools]
impl OrderTools {
    /// Retrieves order details
    #[tool(read_only, idempotent, title = "Get Order", rename_all = "camelCase")]
    pub async fn get_order(
        &self,
        /// Order ID
        order_id: String,
    ) -> Result<Order, ToolError> {
        self.store.get(&order_id).ok_or_else(|| unknown(&order_id))
    }

    /// Creates a new order
    #[tool(scopes = ["orders.write"], roles = ["Orders.Write"])]
    pub async fn create_order(
        &self,
        context: Context,
        Args(request): Args<CreateOrderRequest>,
    ) -> Result<Order, ToolError> {
        if request.items.is_empty() {
            return Err(ToolError::new("an order has at least one item"));
        }
        let mut total = 0.0;
        let mut not_there = Vec::new();
        for line in &request.items {
            match find_item(&line.item_id) {
                Some(item) => total += item.price * f64::from(line.quantity),
                None => not_there.push(format!("{:?}", line.item_id)),
            }
        }
        if !not_there.is_empty() {
            let text = format!("not on the menu: {}; read menu://categories/…", not_there.join(", "));
            return Err(ToolError::new(text));
        }
        total *= 1.0 - request.discount_percent.unwrap_or_default() / 100.0;
        context.progress(1.0, Some(1.0), Some("priced")).await;
        Ok(self.store.create(|id| Order {
            id,
            customer_id: request.customer_id,
            status: Status::Created,
            total: (total * 100.0).round() / 100.0,
            items: request.items,
            delivery_date: request.delivery_date,
            priority: request.priority,
            notes: request.notes,
            notification_email: request.notification_email,
            reason: None,
        }))
    }

    /// Cancels an order
    #[tool(destructive, scopes = ["orders.write"], roles = ["Orders.Write"], rename_all = "camelCase")]
    pub async fn cancel_order(
        &self,
        context: Context,
        /// Order ID
        order_id: String,
        /// Cancellation reason
        reason: Option<String>,
    ) -> Result<String, ToolError> {
        let by = context.caller().name().or(context.caller().id()).unwrap_or("unauthenticated");
        let reason = reason.map(|reason| format!("{reason} ({by})"));
        match self.store.cancel(&order_id, reason) {
            Ok(order) => Ok(format!("Order {} cancelled", order.id)),
            Err(NotCancelled::Unknown) => Err(unknown(&order_id)),
            Err(NotCancelled::Already(status)) => {
                Err(ToolError::new(format!("order {order_id} is {} already", json_word(status))))
            }
        }
    }
}

/// Returns server time
#[tool(anonymous, read_only)]
pub fn get_time() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true)
}

fn unknown(order_id: &str) -> ToolError {
    ToolError::new(format!("there is no order {order_id:?}"))
}

fn json_word(status: Status) -> &'static str {
    match status {
        Status::Created => "created",
        Status::Delivered => "delivered",
        Status::Cancelled => "cancelled",
    }
}
