use bindpost::tool;

/// Tells the time.
#[tool(anonymous, scopes = ["time.read"])]
fn get_time() -> String {
    "now".to_owned()
}

/// Tells the time.
#[tool(scopes = "time.read", rename_all = "SCREAMING", task = "never")]
fn get_date(#[arg(complete = all)] zone: String) -> String {
    zone
}

fn main() {}
