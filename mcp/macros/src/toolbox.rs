//! `#[tools]`: generates the entries of an `impl` block.

use std::rc::Rc;

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned as _;
use syn::{Attribute, ImplItem, ItemImpl};

use crate::attributes::{EntryKind, EntryOptions, tokens_of};
use crate::entry;
use crate::function::{EntryFunction, FunctionScope, SiblingMethod};
use crate::mistakes::CompileErrors;

pub(crate) fn expand_impl(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut mistakes = CompileErrors::default();
    if !options.is_empty() {
        mistakes.add_at(options.span(), "`#[tools]` has no options; they go on the methods");
    }
    let mut block: ItemImpl = match syn::parse2(item.clone()) {
        Ok(block) => block,
        Err(_) => {
            let text = "`#[tools]` goes on an `impl` block; for a function write `#[tool]`";
            mistakes.add_at(item.span(), text);
            let mistakes = mistakes.into_tokens();
            return quote!(#item #mistakes);
        }
    };
    if let Some((path, _)) = &block.trait_ {
        mistakes.add_at(path.span(), "`#[tools]` goes on an inherent `impl` block, not on that of a trait");
    }
    let methods = block.items.iter().filter_map(|item| match item {
        ImplItem::Fn(method) => Some(SiblingMethod::new(&method.sig)),
        _ => None,
    });
    let siblings: Rc<[SiblingMethod]> = methods.collect();
    let mut entries = Vec::new();
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        let Some((kind, attribute)) = take_attribute(&mut method.attrs, &mut mistakes) else { continue };
        let options = EntryOptions::parse(kind, tokens_of(&attribute), &mut mistakes);
        let mut function =
            EntryFunction::read(&method.attrs, &mut method.sig, FunctionScope::InImpl, &mut mistakes);
        function.siblings = siblings.clone();
        let entry = entry::entry(kind, &options, &function, FunctionScope::InImpl, &mut mistakes);
        let conditions = method.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
        entries.push(quote! {
            #(#conditions)*
            entries.push(::std::convert::Into::<::bindpost::Entry>::into(#entry));
        });
    }
    if entries.is_empty() && !mistakes.has_errors() {
        let text = "no method has `#[tool]`, `#[resource]`, `#[resource_list]` or `#[prompt]`";
        mistakes.add_at(block.self_ty.span(), text);
    }
    let (generics, ty) = (&block.generics, &block.self_ty);
    let (parameters, _, conditions) = generics.split_for_impl();
    // With a mistake there are no entries, but the trait is implemented, so that its uses cause no
    // further errors.
    let (body, mistakes) = if mistakes.has_errors() {
        (quote!(::std::vec::Vec::new()), mistakes.into_tokens())
    } else {
        let body = quote! {
            #[allow(unused_variables)]
            let this = self;
            #[allow(unused_mut)]
            let mut entries = ::std::vec::Vec::new();
            #(#entries)*
            entries
        };
        (body, TokenStream::new())
    };
    quote! {
        #block

        #[allow(clippy::all, clippy::pedantic, clippy::nursery, deprecated)]
        impl #parameters ::bindpost::Toolbox for #ty #conditions {
            fn entries(self: ::std::sync::Arc<Self>) -> ::std::vec::Vec<::bindpost::Entry> {
                #body
            }
        }

        #mistakes
    }
}

/// Removes the attribute that makes a method an entry, and returns it.
fn take_attribute(
    attributes: &mut Vec<Attribute>,
    mistakes: &mut CompileErrors,
) -> Option<(EntryKind, Attribute)> {
    let kind_of = |attribute: &Attribute| {
        let last = attribute.path().segments.last()?.ident.to_string();
        EntryKind::ALL.into_iter().find(|kind| kind.attribute() == last)
    };
    let mut found = None;
    attributes.retain(|attribute| {
        let Some(kind) = kind_of(attribute) else { return true };
        if found.is_some() {
            mistakes.add_at(attribute.span(), "a method can be only one entry: keep one of these attributes");
        } else {
            found = Some((kind, attribute.clone()));
        }
        false
    });
    found
}
