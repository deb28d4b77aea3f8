#[doc = " Says hello."]
fn hello(
    context: Context,
    State(store): State<Store>,
    first_name: String,
    how: String,
) -> Result<Greeting, ToolError> {
    store.greet(context, first_name, how)
}
#[doc = "The entry of [`hello`], for `entries![…]`."]
#[allow(clippy::all, clippy::pedantic, clippy::nursery, deprecated)]
fn hello_entry() -> ::bindpost::ToolEntry {
    {
        #[allow(unused_imports)]
        use ::bindpost::returns::{
            ContentReturn as _, InfallibleReturn as _, SerializedReturn as _, StructuredReturn as _,
        };
        let returns = ::bindpost::returns::ReturnType::<Result<Greeting, ToolError>>::new().of_value();
        ::bindpost::ToolEntry::with_signature(
            "say.hello",
            ::bindpost::Signature::new()
                .parameter::<Context, _>(::bindpost::Argument::new("context"))
                .parameter::<State<Store>, _>(::bindpost::Argument::new(""))
                .parameter::<String, _>(
                    ::bindpost::Argument::new("firstName").min_length(2).pattern("^[A-Z]"),
                )
                .parameter::<String, _>(
                    ::bindpost::Argument::new("how").default_value("warm").one_of(["warm", "cold"]),
                ),
            move |mut parts: ::bindpost::CallParts| async move {
                let p0 = parts.fill::<Context, _>("context")?;
                let p1 = parts.fill::<State<Store>, _>("")?;
                let p2 = parts.fill::<String, _>("firstName")?;
                let p3 = parts.fill_or::<String, _>("how", "warm")?;
                let returns = ::bindpost::returns::ReturnType::<Result<Greeting, ToolError>>::new();
                let value = returns.settle(hello(p0, p1, p2, p3))?;
                (&&&returns.of_value()).tool_result(value)
            },
        )
        .output_schema((&&&returns).output_schema())
        .description("Says hello.")
        .title("Say hello")
        .hints(::bindpost::ToolHints {
            read_only: true,
            destructive: false,
            idempotent: false,
            open_world: false,
        })
        .scopes(["greetings.send"])
        .user_roles(["Host"])
        .roles(["Greeter"])
        .timeout(::std::time::Duration::from_millis(5000u64))
        .icons(["https://example.com/hello.png"])
        .with_meta("example.com/tag", "x")
        .task(::bindpost::TaskSupport::WhenPossible)
        .allow_unknown_arguments()
        .page(::bindpost::AppPage::new("ui://say.hello/page", ::std::include_str!("hello.html")))
        .for_pages_only()
    }
}
