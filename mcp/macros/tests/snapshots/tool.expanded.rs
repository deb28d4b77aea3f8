#[doc = " Adds two numbers."]
pub async fn add(a: f64, b: f64) -> f64 {
    a + b
}
#[doc = "The entry of [`add`], for `entries![…]`."]
#[allow(clippy::all, clippy::pedantic, clippy::nursery, deprecated)]
pub fn add_entry() -> ::bindpost::ToolEntry {
    {
        #[allow(unused_imports)]
        use ::bindpost::returns::{
            ContentReturn as _, InfallibleReturn as _, SerializedReturn as _, StructuredReturn as _,
        };
        let returns = ::bindpost::returns::ReturnType::<f64>::new().of_value();
        ::bindpost::ToolEntry::with_signature(
            "add",
            ::bindpost::Signature::new()
                .parameter::<f64, _>(::bindpost::Argument::new("a").description("The first one."))
                .parameter::<f64, _>(::bindpost::Argument::new("b")),
            move |mut parts: ::bindpost::CallParts| async move {
                let p0 = parts.fill::<f64, _>("a")?;
                let p1 = parts.fill::<f64, _>("b")?;
                let returns = ::bindpost::returns::ReturnType::<f64>::new();
                let value = returns.settle(add(p0, p1).await)?;
                (&&&returns.of_value()).tool_result(value)
            },
        )
        .output_schema((&&&returns).output_schema())
        .description("Adds two numbers.")
        .hints(::bindpost::ToolHints {
            read_only: false,
            destructive: false,
            idempotent: false,
            open_world: true,
        })
    }
}
