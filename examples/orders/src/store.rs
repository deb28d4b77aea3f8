//! The data of the server: orders and a menu, in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An order.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// Order ID
    pub id: String,
    /// Customer ID
    pub customer_id: String,
    /// Order status
    pub status: Status,
    /// Total price after the discount
    pub total: f64,
    /// Ordered items
    pub items: Vec<Line>,
    /// Order priority level
    pub priority: Priority,
    /// Special instructions or notes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Customer email for notifications
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notification_email: Option<String>,
    /// Requested delivery date
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_date: Option<NaiveDate>,
    /// Cancellation reason
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The status of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Created,
    Delivered,
    Cancelled,
}

/// The priority of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    Low,
    #[default]
    Normal,
    High,
    Urgent,
}

// No doc comment, because it would become the description of every item of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Menu item ID
    pub item_id: String,
    /// Quantity to order
    #[schemars(range(min = 1, max = 100))]
    pub quantity: u32,
    /// Special modifications
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modifications: Option<String>,
}

/// A category of the menu.
#[derive(Clone, Copy, Debug)]
pub struct Category {
    pub id: &'static str,
    pub name: &'static str,
    pub items: &'static [Item],
}

/// An item of the menu.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Item {
    pub id: &'static str,
    pub name: &'static str,
    pub price: f64,
}

const fn item(id: &'static str, name: &'static str, price: f64) -> Item {
    Item { id, name, price }
}

/// The menu.
pub const MENU: &[Category] = &[
    Category {
        id: "appetizers",
        name: "Appetizers",
        items: &[item("soup", "Soup of the day", 6.5), item("olives", "Marinated olives", 4.0)],
    },
    Category {
        id: "mains",
        name: "Mains",
        items: &[item("pasta", "Pasta with sage", 12.0), item("curry", "Green curry", 13.5)],
    },
    Category {
        id: "drinks",
        name: "Drinks",
        items: &[item("tea", "Mint tea", 3.25), item("water", "Water", 2.0)],
    },
];

/// Returns the item with this id.
pub fn find_item(id: &str) -> Option<&'static Item> {
    MENU.iter().flat_map(|category| category.items).find(|item| item.id == id)
}

/// Why an order was not cancelled.
#[derive(Debug, PartialEq, Eq)]
pub enum NotCancelled {
    Unknown,
    Already(Status),
}

/// All orders. Clones are cheap and share the same store.
#[derive(Clone, Debug)]
pub struct Store(Arc<Mutex<Orders>>);

#[derive(Debug)]
struct Orders {
    all: BTreeMap<String, Order>,
    last: u32,
}

impl Store {
    /// Returns a store with two orders.
    pub fn with_samples() -> Store {
        let line = |item_id: &str, quantity| Line { item_id: item_id.into(), quantity, modifications: None };
        let order = |id: &str, status, total, items| Order {
            id: id.into(),
            customer_id: "alice".into(),
            status,
            total,
            items,
            priority: Priority::Normal,
            notes: None,
            notification_email: None,
            delivery_date: None,
            reason: None,
        };
        let first = order("123", Status::Created, 18.5, vec![line("pasta", 1), line("soup", 1)]);
        let second = order("124", Status::Delivered, 6.5, vec![line("tea", 2)]);
        let all = BTreeMap::from([(first.id.clone(), first), (second.id.clone(), second)]);
        Store(Arc::new(Mutex::new(Orders { all, last: 124 })))
    }

    fn lock(&self) -> MutexGuard<'_, Orders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the order with this id.
    pub fn get(&self, id: &str) -> Option<Order> {
        self.lock().all.get(id).cloned()
    }

    /// Stores a new order under a new id.
    pub fn create(&self, make: impl FnOnce(String) -> Order) -> Order {
        let mut orders = self.lock();
        orders.last += 1;
        let order = make(orders.last.to_string());
        orders.all.insert(order.id.clone(), order.clone());
        order
    }

    /// Cancels an order that is not delivered yet.
    pub fn cancel(&self, id: &str, reason: Option<String>) -> Result<Order, NotCancelled> {
        let mut orders = self.lock();
        let order = orders.all.get_mut(id).ok_or(NotCancelled::Unknown)?;
        if order.status != Status::Created {
            return Err(NotCancelled::Already(order.status));
        }
        order.status = Status::Cancelled;
        order.reason = reason;
        Ok(order.clone())
    }
}
