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
::core::compile_error! { "`name` is a text: `name = \"…\"`" }
::core::compile_error! { "a parameter owns what it holds, because nobody else does: take `String`" }
