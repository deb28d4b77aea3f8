use bindpost::tool;

/// Says hello.
#[tool(readonly, colour = "red", name = 7, title =, idempotent, idempotent)]
fn hello() -> String {
    "hello".to_owned()
}

/// Adds.
#[tool]
fn add(#[arg(min = 1)] a: u32, #[arg(maximun = 7, unit = "kg")] b: u32) -> u32 {
    a + b
}

fn main() {}
