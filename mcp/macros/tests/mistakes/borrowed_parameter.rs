use bindpost::{Context, tool};

/// Says hello.
#[tool]
async fn hello(context: &Context, name: &str, tags: &[String]) -> String {
    format!("hello {name} {tags:?} {}", context.name())
}

fn main() {}
