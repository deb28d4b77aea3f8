#[doc = " The items of a category."]
async fn category(category_id: String) -> Result<Vec<Item>, ToolError> {
    items(&category_id)
}
#[doc = "The entry of [`category`], for `entries![…]`."]
#[allow(clippy::all, clippy::pedantic, clippy::nursery, deprecated)]
fn category_entry() -> ::bindpost::TemplateEntry {
    {
        #[allow(unused_imports)]
        use ::bindpost::returns::{
            InfallibleReturn as _, ResourceReturn as _, SerializedResourceReturn as _,
        };
        ::bindpost::TemplateEntry::with_signature(
            "menu://categories/{category_id}",
            "Menu Category",
            ::bindpost::Signature::new().parameter::<String, _>(::bindpost::Argument::new("category_id")),
            move |mut parts: ::bindpost::CallParts| async move {
                let p0 = parts.fill::<String, _>("category_id")?;
                let returns = ::bindpost::returns::ReturnType::<Result<Vec<Item>, ToolError>>::new();
                let value = returns.settle(category(p0).await)?;
                ::std::result::Result::Ok((&&returns.of_value()).contents(value))
            },
        )
        .description("The items of a category.")
        .mime_type("application/json")
        .completer("category_id", categories)
    }
}
