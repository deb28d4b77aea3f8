use bindpost::tool;

struct Order {
    id: String,
}

/// Finds an order.
#[tool]
async fn get_order(id: String) -> Order {
    Order { id }
}

fn main() {
    let _ = |order: Order| order.id;
}
