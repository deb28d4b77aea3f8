use bindpost::tool;

/// Shows a chart.
#[tool(ui = "chart.html")]
fn chart() -> String {
    "a chart".to_owned()
}

/// Shows a table.
#[tool(ui = "ui://sales/table")]
fn table() -> String {
    "a table".to_owned()
}

/// Shows a list.
#[tool(ui = 7)]
fn list() -> String {
    "a list".to_owned()
}

fn main() {}
