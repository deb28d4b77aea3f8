use bindpost::tool;

struct Orders;

impl Orders {
    /// Finds an order.
    #[tool]
    async fn get_order(&self, id: String) -> String {
        id
    }
}

fn main() {}
