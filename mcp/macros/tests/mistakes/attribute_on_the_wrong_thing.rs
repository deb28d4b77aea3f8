use bindpost::{tool, tools};

/// An order.
#[tool]
struct Order {
    id: String,
}

#[tools]
fn orders() {}

struct Empty;

#[tools(all)]
impl Empty {
    fn nothing(&self) {}
}

fn main() {
    let _ = |order: Order| order.id;
    Empty.nothing();
    orders();
}
