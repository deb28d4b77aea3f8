#[doc = " Asks for a summary."]
fn summary(subject: String, tone: Option<String>) -> String {
    format!("Summarise {subject}, {tone:?}")
}
#[doc = "The entry of [`summary`], for `entries![…]`."]
#[allow(clippy::all, clippy::pedantic, clippy::nursery, deprecated)]
fn summary_entry() -> ::bindpost::PromptEntry {
    ::bindpost::PromptEntry::with_signature(
        "summary",
        ::bindpost::Signature::new()
            .parameter::<String, _>(::bindpost::Argument::new("subject").description("Of what."))
            .parameter::<Option<String>, _>(::bindpost::Argument::new("tone")),
        move |mut parts: ::bindpost::CallParts| async move {
            let p0 = parts.fill::<String, _>("subject")?;
            let p1 = parts.fill::<Option<String>, _>("tone")?;
            ::std::result::Result::Ok(summary(p0, p1))
        },
    )
    .description("Asks for a summary.")
    .completer("tone", tones)
}
