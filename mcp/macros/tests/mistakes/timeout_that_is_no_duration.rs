use bindpost::tool;

/// Waits.
#[tool(timeout = 5)]
fn seconds() -> String {
    "a".to_owned()
}

/// Waits.
#[tool(timeout = "5 minutes")]
fn minutes() -> String {
    "a".to_owned()
}

fn main() {}
