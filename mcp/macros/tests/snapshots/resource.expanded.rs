#[doc = " The settings."]
fn settings() -> Json<Settings> {
    Json(Settings::default())
}
#[doc = "The entry of [`settings`], for `entries![…]`."]
#[allow(clippy::all, clippy::pedantic, clippy::nursery, deprecated)]
fn settings_entry() -> ::bindpost::ResourceEntry {
    {
        #[allow(unused_imports)]
        use ::bindpost::returns::{
            InfallibleReturn as _, ResourceReturn as _, SerializedResourceReturn as _,
        };
        ::bindpost::ResourceEntry::with_signature(
            "config://settings",
            "settings",
            ::bindpost::Signature::new(),
            move |#[allow(unused_mut, unused_variables)] mut parts: ::bindpost::CallParts| async move {
                let returns = ::bindpost::returns::ReturnType::<Json<Settings>>::new();
                let value = returns.settle(settings())?;
                ::std::result::Result::Ok((&&returns.of_value()).contents(value))
            },
        )
        .description("The settings.")
        .mime_type("application/json")
        .anonymous()
    }
}
