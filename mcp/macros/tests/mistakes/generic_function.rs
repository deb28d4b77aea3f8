use bindpost::tool;

/// Shows something.
#[tool]
async fn show<T: ToString + Send>(what: T, how: impl ToString) -> impl ToString {
    what.to_string() + &how.to_string()
}

fn main() {}
