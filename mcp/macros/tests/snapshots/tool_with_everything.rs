/// Says hello.
#[tool(
    name = "say.hello",
    title = "Say hello",
    read_only,
    open_world = false,
    scopes = ["greetings.send"],
    user_roles = ["Host"],
    roles = ["Greeter"],
    timeout = "5s",
    icons = ["https://example.com/hello.png"],
    meta("example.com/tag" = "x"),
    task,
    rename_all = "camelCase",
    allow_unknown_arguments,
    ui = "hello.html",
    for_pages_only
)]
fn hello(
    context: Context,
    State(store): State<Store>,
    #[arg(min_length = 2, pattern = "^[A-Z]")] first_name: String,
    #[arg(one_of = ["warm", "cold"], default = "warm")] how: String,
) -> Result<Greeting, ToolError> {
    store.greet(context, first_name, how)
}
