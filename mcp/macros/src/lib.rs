//! The attributes of bindpost. They generate code that could be written by hand against the public API,
//! and leave the annotated function unchanged. Use them through the crate `bindpost`.
//!
//! `attributes` parses the options, `function` the annotated function. `entry` generates the entry of one
//! function, `toolbox` the entries of an `impl` block.

mod attributes;
mod entry;
mod function;
mod mistakes;
#[cfg(test)]
mod snapshots;
mod toolbox;

use attributes::EntryKind;
use proc_macro::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Path, Token, parse_macro_input};

/// Turns a function into a tool.
///
/// The doc comment is the description of the tool. The parameters are its arguments: their types
/// determine the schema, their doc comments are the descriptions, and `#[arg(…)]` sets further options.
/// A parameter whose type implements `FromCall` (`Context`, `State<T>`, `Args<T>`) is filled from the
/// call instead.
///
/// | Option | Meaning |
/// |---|---|
/// | `name = "…"` | the name; default: the name of the function |
/// | `description = "…"` | the description; default: the doc comment |
/// | `title = "…"` | a human-readable name |
/// | `read_only`, `destructive`, `idempotent`, `open_world` | behavior hints for clients; default: `open_world` is true, the others are false |
/// | `anonymous` | unauthenticated callers may call it |
/// | `scopes = ["…"]` | scopes that a user's token or an API key must have, all of them |
/// | `user_roles = ["…"]` | roles that a user must have in addition, all of them |
/// | `roles = ["…"]` | roles that an application without a user must have, all of them |
/// | `timeout = Duration::from_secs(5)` | the timeout of a call |
/// | `blocking` | the function blocks (files, locks, long computations): it runs on a separate thread, so that other calls are not delayed and `timeout` works |
/// | `icons = ["https://…"]` | URLs of its icons |
/// | `meta("example.com/key" = value)` | members of its `_meta` |
/// | `task`, `task = "required"` | a call may run, or must run, as a task |
/// | `rename_all = "camelCase"` | the case of argument names without `#[arg(name = "…")]` |
/// | `ui = "chart.html"` | the page that hosts show with the results (MCP Apps): a file beside the source file, or an `AppPage` |
/// | `for_pages_only` | only pages call the tool, not the model |
/// | `allow_unknown_arguments` | arguments that the function does not have are ignored; default: they are rejected |
///
/// `#[arg(…)]` on a parameter accepts `name`, `description`, `default`, `one_of`, `format`, `minimum`,
/// `maximum`, `min_length`, `max_length`, `min_items`, `max_items`, `pattern`, `required`.
///
/// The attribute also generates the function `<function>_entry()`, which `entries![…]` calls.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand_function(EntryKind::Tool, options.into(), item.into()).into()
}

/// Turns a function into a resource: `#[resource("config://settings")]`, or into a resource
/// template: `#[resource("menu://categories/{category_id}")]`.
///
/// A parameter with the name of a template variable gets its value. The options are `name`,
/// `description`, `title`, `mime_type` (default: `application/json`), `size`, `anonymous`, `scopes`,
/// `user_roles`, `roles`, `timeout`, `blocking`, `icons`, `meta` and `rename_all`, as for `#[tool]`.
/// `#[arg(complete = function)]` on a parameter suggests values for it.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand_function(EntryKind::Resource, options.into(), item.into()).into()
}

/// Turns a function that returns `Vec<Resource>` into a list of resources. `#[resource_list("menu")]`
/// lists the resources whose URIs start with `menu:`. The function runs for each list request.
///
/// The options are `anonymous`, `scopes`, `user_roles` and `roles`. They apply if lists show only
/// permitted entries.
#[proc_macro_attribute]
pub fn resource_list(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand_function(EntryKind::ResourceList, options.into(), item.into()).into()
}

/// Turns a function into a prompt. Its arguments are strings. `Option` makes one optional, and
/// `#[arg(complete = function)]` suggests values for one.
///
/// The options are `name`, `description`, `title`, `anonymous`, `scopes`, `user_roles`, `roles`,
/// `timeout`, `blocking`, `icons`, `meta` and `rename_all`, as for `#[tool]`.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand_function(EntryKind::Prompt, options.into(), item.into()).into()
}

/// Turns the methods of an `impl` block into entries, if they have `#[tool]`, `#[resource]`,
/// `#[resource_list]` or `#[prompt]`. The methods take `&self`. Register the value with `ServerBuilder::add`.
#[proc_macro_attribute]
pub fn tools(options: TokenStream, item: TokenStream) -> TokenStream {
    toolbox::expand_impl(options.into(), item.into()).into()
}

/// Returns the entries of functions with `#[tool]`, `#[resource]`, `#[resource_list]` or `#[prompt]`,
/// by their names: `entries![get_time, menu::category]`.
#[proc_macro]
pub fn entries(names: TokenStream) -> TokenStream {
    let names = parse_macro_input!(names with Punctuated::<Path, Token![,]>::parse_terminated);
    let entries = names.into_iter().map(|mut path| {
        if let Some(last) = path.segments.last_mut() {
            last.ident = entry::entry_ident(&last.ident);
        }
        quote!(::std::convert::Into::<::bindpost::Entry>::into(#path()))
    });
    quote!(::std::vec![#(#entries),*]).into()
}
