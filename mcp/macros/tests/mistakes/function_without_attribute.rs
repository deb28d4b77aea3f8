use bindpost::{Server, entries};

fn hello() -> String {
    "hello".to_owned()
}

struct Orders;

fn main() {
    let _ = Server::builder("orders", "1.0.0").add(entries![hello]).add(Orders);
}
