//! The attributes of bindpost. They are sugar: what they write is what a person could write against the
//! public API, and the function they are on stays as it is. Use them through the crate `bindpost`.
//!
//! `attributes` reads what the user wrote, `function` what it is on; `entry` writes the entry of one
//! function, `toolbox` those of an `impl` block.

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

/// Makes a tool of a function.
///
/// The doc comment is the description, the parameters are the arguments: their types give the schema,
/// their doc comments the descriptions, `#[arg(…)]` what else is to be said. A parameter whose type
/// implements `FromCall` (`Context`, `State<T>`, `Args<T>`) is filled from the call instead.
///
/// | Option | Means |
/// |---|---|
/// | `name = "…"` | its name, instead of the function's |
/// | `description = "…"` | instead of the doc comment |
/// | `title = "…"` | its name for people |
/// | `read_only`, `destructive`, `idempotent`, `open_world` | the hints; all are false unless given, but `open_world` |
/// | `anonymous` | anybody may call it |
/// | `scopes = ["…"]` | what a user must have granted, all of them; an API key must have them |
/// | `user_roles = ["…"]` | roles that a user must have besides, all of them |
/// | `roles = ["…"]` | roles that an application must have which acts for itself, all of them |
/// | `timeout = Duration::from_secs(5)` | how long a call may take |
/// | `blocking` | the function waits without `.await` (files, locks, long sums): it runs on a thread of its own, so that nobody else waits and `timeout` counts |
/// | `icons = ["https://…"]` | its pictures |
/// | `meta("example.com/key" = value)` | members of its `_meta` |
/// | `task`, `task = "required"` | whether a call may, or must, go on as a task |
/// | `rename_all = "camelCase"` | how arguments are named, unless `#[arg(name = "…")]` says it |
///
/// `#[arg(…)]` on a parameter takes `name`, `description`, `default`, `one_of`, `format`, `minimum`,
/// `maximum`, `min_length`, `max_length`, `min_items`, `max_items`, `pattern`, `required`.
///
/// Besides the function there is then `<function>_entry()`, which `entries![…]` calls.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand_function(EntryKind::Tool, options.into(), item.into()).into()
}

/// Makes a resource of a function: `#[resource("config://settings")]`, or a family of them:
/// `#[resource("menu://categories/{category_id}")]`.
///
/// A parameter with the name of a variable holds it. The options are `name`, `description`, `title`,
/// `mime_type` (`application/json` unless given), `size`, `anonymous`, `scopes`, `user_roles`, `roles`, `timeout`,
/// `blocking`, `icons`, `meta` and `rename_all`, as for `#[tool]`; `#[arg(complete = function)]` on a parameter suggests values for it.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand_function(EntryKind::Resource, options.into(), item.into()).into()
}

/// Makes a list of resources of a function that returns `Vec<Resource>`: `#[resource_list("menu")]` lists
/// those whose URIs start with `menu:`, whenever a client asks.
///
/// The options are `anonymous`, `scopes`, `user_roles` and `roles`: they matter where lists show what a caller may use.
#[proc_macro_attribute]
pub fn resource_list(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand_function(EntryKind::ResourceList, options.into(), item.into()).into()
}

/// Makes a prompt of a function. Its arguments are texts; `Option` makes one optional, and
/// `#[arg(complete = function)]` suggests values for one.
///
/// The options are `name`, `description`, `title`, `anonymous`, `scopes`, `user_roles`, `roles`, `timeout`, `blocking`,
/// `icons`, `meta` and `rename_all`, as for `#[tool]`.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    entry::expand_function(EntryKind::Prompt, options.into(), item.into()).into()
}

/// Makes entries of the methods of an `impl` block that have `#[tool]`, `#[resource]`,
/// `#[resource_list]` or `#[prompt]`. They take `&self`; register the value with `ServerBuilder::add`.
#[proc_macro_attribute]
pub fn tools(options: TokenStream, item: TokenStream) -> TokenStream {
    toolbox::expand_impl(options.into(), item.into()).into()
}

/// The entries of functions with `#[tool]`, `#[resource]`, `#[resource_list]` or `#[prompt]`, by their
/// names: `entries![get_time, menu::category]`.
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
