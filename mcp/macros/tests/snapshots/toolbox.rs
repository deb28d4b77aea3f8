#[tools]
impl<S: Store> Orders<S> {
    pub fn new(store: S) -> Orders<S> {
        Orders { store }
    }

    /// Finds an order.
    #[tool(read_only)]
    pub async fn get_order(&self, id: String) -> Result<Order, ToolError> {
        self.store.get(&id).await
    }

    /// All orders of a day.
    #[resource("orders://{day}")]
    fn orders(&self, #[arg(complete = self.days)] day: String) -> Vec<Order> {
        self.store.of_day(&day)
    }
}
