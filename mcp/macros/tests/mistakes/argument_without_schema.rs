use bindpost::tool;

#[derive(serde::Deserialize)]
struct Order {
    id: String,
}

/// Saves an order.
#[tool]
async fn save(order: Order) -> String {
    order.id
}

fn main() {}
