use bindpost::tool;

#[derive(Debug)]
enum StoreError {
    Gone,
}

/// Finds an order.
#[tool]
async fn get_order(id: String) -> Result<String, StoreError> {
    if id.is_empty() { Err(StoreError::Gone) } else { Ok(id) }
}

fn main() {}
