async fn menu(State(menu): State<Menu>) -> Vec<Resource> {
    menu.resources()
}
#[doc = "The entry of [`menu`], for `entries![…]`."]
#[allow(clippy::all, clippy::pedantic, clippy::nursery, deprecated)]
fn menu_entry() -> ::bindpost::ResourceListEntry {
    ::bindpost::ResourceListEntry::with_signature(
        "menu",
        ::bindpost::Signature::new().parameter::<State<Menu>, _>(::bindpost::Argument::new("")),
        move |mut parts: ::bindpost::CallParts| async move {
            let p0 = parts.fill::<State<Menu>, _>("")?;
            ::std::result::Result::Ok(menu(p0).await)
        },
    )
    .access(::bindpost::AccessRule::default().with_scopes(["menu.read"]))
}
