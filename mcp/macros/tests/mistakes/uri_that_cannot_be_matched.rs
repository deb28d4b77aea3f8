use bindpost::{resource, resource_list};

/// No scheme.
#[resource("settings")]
fn settings() -> String {
    String::new()
}

/// Two variables in a row.
#[resource("menu://{category}{item}")]
fn item(category: String, item: String) -> String {
    category + &item
}

/// Never closed.
#[resource("menu://{category")]
fn category(category: String) -> String {
    category
}

/// None at all.
#[resource]
fn nothing() -> String {
    String::new()
}

#[resource_list("menu://")]
fn all() -> Vec<bindpost::protocol::Resource> {
    Vec::new()
}

fn main() {}
