/// Says hello.
#[tool(readonly, name = 7)]
fn hello(name: &str) -> String {
    name.to_owned()
}
