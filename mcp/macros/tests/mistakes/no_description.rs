use bindpost::{prompt, resource, tool};

#[tool]
fn hello() -> String {
    "hello".to_owned()
}

#[resource("config://settings")]
fn settings() -> String {
    "{}".to_owned()
}

#[prompt]
fn ask() -> String {
    "How are you?".to_owned()
}

fn main() {}
