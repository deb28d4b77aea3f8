#[doc = " Says hello."]
fn hello(name: &str) -> String {
    name.to_owned()
}
#[doc = "The entry of [`hello`], for `entries![…]`."]
#[allow(clippy::all, clippy::pedantic, clippy::nursery, deprecated)]
fn hello_entry() -> ::bindpost::ToolEntry {
    loop {}
}
::core::compile_error! { "`#[tool]` has no option `readonly`; did you mean `read_only`?" }
::core::compile_error! { "`name` must be a string: `name = \"…\"`" }
::core::compile_error! { "a parameter cannot be a reference: use the owned type `String`" }
