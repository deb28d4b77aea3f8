//! Generates the entry of one function.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Expr, ExprLit, Ident, ItemFn, Lit, LitStr, Member};

use crate::attributes::{ArgumentCase, EntryKind, EntryOptions, TaskMode, text_expr};
use crate::function::{EntryFunction, FunctionScope};
use crate::mistakes::CompileErrors;

/// Returns the name of the generated function that creates the entry.
pub(crate) fn entry_ident(ident: &Ident) -> Ident {
    format_ident!("{}_entry", ident, span = ident.span())
}

/// Returns the unchanged function, and the generated function that creates its entry.
pub(crate) fn expand_function(kind: EntryKind, options: TokenStream, item: TokenStream) -> TokenStream {
    let mut mistakes = CompileErrors::default();
    let mut function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(_) => {
            let attribute = kind.attribute();
            let text = format!(
                "`#[{attribute}]` goes on a function; for methods put `#[tools]` on the `impl` block"
            );
            mistakes.add_at(item.span(), text);
            let mistakes = mistakes.into_tokens();
            return quote!(#item #mistakes);
        }
    };
    let options = EntryOptions::parse(kind, options, &mut mistakes);
    let read = EntryFunction::read(&function.attrs, &mut function.sig, FunctionScope::Alone, &mut mistakes);
    let entry = entry(kind, &options, &read, FunctionScope::Alone, &mut mistakes);
    let (vis, companion) = (&function.vis, entry_ident(&function.sig.ident));
    let ty = entry_type(kind, &options);
    let doc = format!("The entry of [`{}`], for `entries![…]`.", read.ident);
    // With a mistake all names still exist, so that their uses cause no further errors.
    let entry = if mistakes.has_errors() { quote!(loop {}) } else { entry };
    let mistakes = mistakes.into_tokens();
    quote! {
        #function

        #[doc = #doc]
        #[allow(clippy::all, clippy::pedantic, clippy::nursery, deprecated)]
        #vis fn #companion() -> ::bindpost::#ty {
            #entry
        }

        #mistakes
    }
}

fn is_template(options: &EntryOptions) -> bool {
    options.uri.as_ref().is_some_and(|uri| uri.value().contains('{'))
}

fn entry_type(kind: EntryKind, options: &EntryOptions) -> Ident {
    let name = match kind {
        EntryKind::Tool => "ToolEntry",
        EntryKind::Resource if is_template(options) => "TemplateEntry",
        EntryKind::Resource => "ResourceEntry",
        EntryKind::ResourceList => "ResourceListEntry",
        EntryKind::Prompt => "PromptEntry",
    };
    format_ident!("{name}")
}

/// Returns the expression that creates the entry. In an `impl` block, `this` is an `Arc` of the value.
pub(crate) fn entry(
    kind: EntryKind,
    options: &EntryOptions,
    function: &EntryFunction,
    place: FunctionScope,
    mistakes: &mut CompileErrors,
) -> TokenStream {
    let case = options.rename_all.unwrap_or(ArgumentCase::Snake);
    let rename = |name: &str| case.apply(name);
    let signature = function.signature(rename);
    let fill = function.fill(rename);
    let mut call = function.call(place);
    if options.blocking {
        if function.is_async {
            let text = "`blocking` is not allowed on an async function: remove one of the two";
            mistakes.add_at(function.ident.span(), text);
        }
        call = quote!(::bindpost::blocking(move || #call).await?);
    }
    let returns = &function.returns;
    // The type of the value selects the most specific return trait.
    let settled = quote_spanned! {returns.span()=>
        let returns = ::bindpost::returns::ReturnType::<#returns>::new();
        let value = returns.settle(#call)?;
    };
    let result = match kind {
        EntryKind::Tool => quote_spanned! {returns.span()=>
            #settled (&&&returns.of_value()).tool_result(value)
        },
        EntryKind::Resource => quote_spanned! {returns.span()=>
            #settled ::std::result::Result::Ok((&&returns.of_value()).contents(value))
        },
        EntryKind::ResourceList | EntryKind::Prompt => quote! { ::std::result::Result::Ok(#call) },
    };
    let share = (function.takes_self).then(|| quote!(let this = ::std::clone::Clone::clone(&this);));
    let unused = function.parameters.is_empty().then(|| quote!(#[allow(unused_mut, unused_variables)]));
    let run = quote! {
        move |#unused mut parts: ::bindpost::CallParts| {
            #share
            async move { #fill #result }
        }
    };
    // The entry has one clone of the value, and each call has another.
    let run = if function.takes_self { quote!({ #share #run }) } else { run };
    let name = options.name.as_ref().map_or_else(|| function.ident.to_string(), LitStr::value);
    let name = name.trim_start_matches("r#");
    let settings = settings(kind, name, options, function, mistakes);
    match kind {
        EntryKind::Tool => {
            check_tool_name(options, function, name, mistakes);
            quote! {{
                #[allow(unused_imports)]
                use ::bindpost::returns::{
                    ContentReturn as _, InfallibleReturn as _, SerializedReturn as _, StructuredReturn as _,
                };
                let returns = ::bindpost::returns::ReturnType::<#returns>::new().of_value();
                ::bindpost::ToolEntry::with_signature(#name, #signature, #run)
                    .output_schema((&&&returns).output_schema())
                    #settings
            }}
        }
        EntryKind::Resource => {
            let uri = uri_of(options, function, mistakes);
            let ty = entry_type(kind, options);
            quote! {{
                #[allow(unused_imports)]
                use ::bindpost::returns::{InfallibleReturn as _, ResourceReturn as _, SerializedResourceReturn as _};
                ::bindpost::#ty::with_signature(#uri, #name, #signature, #run) #settings
            }}
        }
        EntryKind::ResourceList => {
            let scheme = scheme_of(options, function, mistakes);
            quote!(::bindpost::ResourceListEntry::with_signature(#scheme, #signature, #run) #settings)
        }
        EntryKind::Prompt => {
            quote!(::bindpost::PromptEntry::with_signature(#name, #signature, #run) #settings)
        }
    }
}

/// Returns the builder calls for the options.
fn settings(
    kind: EntryKind,
    name: &str,
    options: &EntryOptions,
    function: &EntryFunction,
    mistakes: &mut CompileErrors,
) -> TokenStream {
    let mut calls = Vec::new();
    if kind != EntryKind::ResourceList {
        let described = options.description.clone();
        let described = described.or_else(|| (!function.doc.is_empty()).then(|| text_expr(&function.doc)));
        match described {
            Some(text) => calls.push(quote!(.description(#text))),
            None => {
                let text = format!(
                    "the model reads the description to know when to use this: write a doc comment above \
                     `#[{}]`, or `description = \"…\"`",
                    kind.attribute()
                );
                mistakes.add_at(function.ident.span(), text);
            }
        }
    }
    calls.extend(options.title.iter().map(|title| quote!(.title(#title))));
    if kind == EntryKind::Tool {
        let read_only = options.read_only.unwrap_or(false);
        let destructive = options.destructive.unwrap_or(false);
        let idempotent = options.idempotent.unwrap_or(false);
        let open_world = options.open_world.unwrap_or(true);
        calls.push(quote! {
            .hints(::bindpost::ToolHints {
                read_only: #read_only,
                destructive: #destructive,
                idempotent: #idempotent,
                open_world: #open_world,
            })
        });
    }
    if kind == EntryKind::Resource {
        let mime_type = options.mime_type.clone().unwrap_or_else(|| text_expr("application/json"));
        calls.push(quote!(.mime_type(#mime_type)));
        match &options.size {
            Some(size) if is_template(options) => {
                mistakes.add_at(size.span(), "a resource template cannot have a `size`");
            }
            size => calls.extend(size.iter().map(|size| quote!(.size(#size)))),
        }
    }
    let demands_rights =
        [&options.scopes, &options.user_roles, &options.roles].into_iter().any(Option::is_some);
    if options.anonymous && demands_rights {
        let text = "`anonymous` cannot be combined with `scopes`, `user_roles` or `roles`: keep one";
        mistakes.add_at(function.ident.span(), text);
    }
    if kind == EntryKind::ResourceList {
        if options.anonymous {
            calls.push(quote!(.access(::bindpost::AccessRule::anonymous())));
        } else if demands_rights {
            let scopes = options.scopes.iter().map(|scopes| quote!(.with_scopes(#scopes)));
            let user_roles = options.user_roles.iter().map(|roles| quote!(.with_user_roles(#roles)));
            let roles = options.roles.iter().map(|roles| quote!(.with_roles(#roles)));
            calls.push(
                quote!(.access(::bindpost::AccessRule::default() #(#scopes)* #(#user_roles)* #(#roles)*)),
            );
        }
    } else {
        calls.extend(options.anonymous.then(|| quote!(.anonymous())));
        calls.extend(options.scopes.iter().map(|scopes| quote!(.scopes(#scopes))));
        calls.extend(options.user_roles.iter().map(|roles| quote!(.user_roles(#roles))));
        calls.extend(options.roles.iter().map(|roles| quote!(.roles(#roles))));
    }
    calls.extend(options.timeout.iter().map(|timeout| quote!(.timeout(#timeout))));
    calls.extend(options.icons.iter().map(|icons| quote!(.icons(#icons))));
    calls.extend(options.meta.iter().map(|(name, value)| quote!(.with_meta(#name, #value))));
    calls.extend(options.task.iter().map(|task| match task {
        TaskMode::WhenPossible => quote!(.task(::bindpost::TaskSupport::WhenPossible)),
        TaskMode::Required => quote!(.task(::bindpost::TaskSupport::Required)),
    }));
    calls.extend(options.allow_unknown_arguments.then(|| quote!(.allow_unknown_arguments())));
    calls.extend(options.ui.iter().map(|ui| page(ui, name, mistakes)));
    calls.extend(options.for_pages_only.then(|| quote!(.for_pages_only())));
    calls.extend(completers(kind, options, function, mistakes));
    quote!(#(#calls)*)
}

/// Returns the builder call for `ui`. The path of a file is relative to the source file.
fn page(ui: &Expr, tool: &str, mistakes: &mut CompileErrors) -> TokenStream {
    let Expr::Lit(ExprLit { lit: Lit::Str(file), .. }) = ui else { return quote!(.page(#ui)) };
    if file.value().starts_with("ui://") {
        let text = "`ui` is the file of the page, or an `AppPage`; for the resource of a page that the server has, \
                    write `meta(\"ui\" = json!({\"resourceUri\": \"ui://…\"}))`";
        mistakes.add_at(file.span(), text);
    }
    let uri = format!("ui://{tool}/page");
    quote_spanned!(file.span()=> .page(::bindpost::AppPage::new(#uri, ::std::include_str!(#file))))
}

/// Returns the builder calls for `#[arg(complete = …)]`, whose value is a function or `self.method`.
fn completers(
    kind: EntryKind,
    options: &EntryOptions,
    function: &EntryFunction,
    mistakes: &mut CompileErrors,
) -> Vec<TokenStream> {
    let case = options.rename_all.unwrap_or(ArgumentCase::Snake);
    let mut calls = Vec::new();
    for parameter in &function.parameters {
        let Some(complete) = &parameter.options.complete else { continue };
        if kind != EntryKind::Prompt && !(kind == EntryKind::Resource && is_template(options)) {
            let text = "`complete` is supported only for arguments of prompts and variables of resources";
            mistakes.add_at(complete.span(), text);
            continue;
        }
        let name = parameter.wire_name(|name| case.apply(name));
        let completer = match complete {
            Expr::Field(field) if is_self(&field.base) => match &field.member {
                Member::Named(method) => function.method_completer(method),
                Member::Unnamed(_) => quote!(#complete),
            },
            function => quote!(#function),
        };
        calls.push(quote!(.completer(#name, #completer)));
    }
    calls
}

fn is_self(expr: &Expr) -> bool {
    matches!(expr, Expr::Path(path) if path.path.is_ident("self"))
}

fn check_tool_name(
    options: &EntryOptions,
    function: &EntryFunction,
    name: &str,
    mistakes: &mut CompileErrors,
) {
    let fits = (1..=128).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b));
    if !fits {
        let span = options.name.as_ref().map_or(function.ident.span(), LitStr::span);
        mistakes.add_at(span, "a tool's name has 1 to 128 letters, digits, `_`, `-`, `.` or `/`");
    }
}

fn uri_of(options: &EntryOptions, function: &EntryFunction, mistakes: &mut CompileErrors) -> String {
    let Some(literal) = &options.uri else {
        let text = "a resource needs a URI: `#[resource(\"config://settings\")]`, or one with variables: \
                    `#[resource(\"menu://categories/{category_id}\")]`";
        mistakes.add_at(function.ident.span(), text);
        return String::new();
    };
    let uri = literal.value();
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    let fits = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    if !fits {
        mistakes.add_at(literal.span(), "a URI starts with a scheme, like `menu:` in `menu://categories`");
    }
    let mut depth = 0_i32;
    let mut balanced = true;
    let mut after_variable = false;
    for letter in uri.chars() {
        match letter {
            '{' => {
                if after_variable {
                    let text = "two adjacent variables are ambiguous: put text between them";
                    mistakes.add_at(literal.span(), text);
                }
                depth += 1;
            }
            '}' => depth -= 1,
            _ => {}
        }
        after_variable = letter == '}';
        balanced &= (0..=1).contains(&depth);
    }
    if !balanced || depth != 0 {
        mistakes.add_at(literal.span(), "a variable is one name in braces: `{category_id}`");
    }
    uri
}

fn scheme_of(options: &EntryOptions, function: &EntryFunction, mistakes: &mut CompileErrors) -> String {
    match &options.uri {
        Some(scheme) if scheme.value().contains(':') => {
            mistakes.add_at(scheme.span(), "a resource list has one scheme: write `menu` for `menu://…`");
            String::new()
        }
        Some(scheme) => scheme.value(),
        None => {
            let text = "the scheme is missing: write `#[resource_list(\"menu\")]` for `menu://…`";
            mistakes.add_at(function.ident.span(), text);
            String::new()
        }
    }
}
