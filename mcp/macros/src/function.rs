//! [`EntryFunction`]: the parameters and the return type of a function that becomes an entry.

use std::rc::Rc;

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Attribute, FnArg, Ident, Pat, ReturnType, Signature, Type};

use crate::attributes::{ArgOptions, doc_of};
use crate::mistakes::CompileErrors;

pub(crate) struct EntryFunction {
    pub(crate) ident: Ident,
    pub(crate) is_async: bool,
    pub(crate) takes_self: bool,
    pub(crate) doc: String,
    pub(crate) parameters: Vec<Parameter>,
    /// The return type.
    pub(crate) returns: TokenStream,
    /// The other methods of the same `impl` block, which may be completers.
    pub(crate) siblings: Rc<[SiblingMethod]>,
}

/// A method of the same `impl` block.
pub(crate) struct SiblingMethod {
    ident: Ident,
    is_async: bool,
    /// The types of the parameters, without `self` and the first one.
    others: Vec<Type>,
}

impl SiblingMethod {
    pub(crate) fn new(signature: &Signature) -> SiblingMethod {
        let types = signature.inputs.iter().filter_map(|input| match input {
            FnArg::Receiver(_) => None,
            FnArg::Typed(typed) => Some((*typed.ty).clone()),
        });
        SiblingMethod {
            ident: signature.ident.clone(),
            is_async: signature.asyncness.is_some(),
            others: types.skip(1).collect(),
        }
    }
}

pub(crate) struct Parameter {
    /// The name in Rust. It is empty if the parameter is a pattern like `State(store)`.
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) options: ArgOptions,
}

/// Where a function is defined.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FunctionScope {
    Alone,
    InImpl,
}

impl EntryFunction {
    /// Reads a function, and removes `#[arg]` and doc comments from its parameters.
    pub(crate) fn read(
        attributes: &[Attribute],
        signature: &mut Signature,
        place: FunctionScope,
        mistakes: &mut CompileErrors,
    ) -> EntryFunction {
        if let Some(parameter) = signature.generics.params.first() {
            let text =
                "an entry cannot be generic, because clients send no types: write one function for each type";
            mistakes.add_at(parameter.span(), text);
        }
        if let Some(variadic) = &signature.variadic {
            mistakes.add_at(variadic.span(), "an entry must have a fixed number of parameters");
        }
        let mut takes_self = false;
        let mut parameters = Vec::new();
        for input in &mut signature.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    takes_self = true;
                    let written = receiver.to_token_stream().to_string().replace(' ', "");
                    if place == FunctionScope::Alone {
                        let text = "a method can be an entry only in an `impl` block with `#[tools]`";
                        mistakes.add_at(receiver.span(), text);
                    } else if written != "&self" {
                        let text = "calls run concurrently and share the value: use `&self`, and put mutable \
                                    state behind a lock";
                        mistakes.add_at(receiver.span(), text);
                    }
                }
                FnArg::Typed(typed) => {
                    let options = ArgOptions::take_from(&mut typed.attrs, mistakes);
                    refuse_type(&typed.ty, mistakes);
                    let name = match &*typed.pat {
                        Pat::Ident(pattern) => {
                            let name = pattern.ident.to_string();
                            name.trim_start_matches("r#").trim_start_matches('_').to_owned()
                        }
                        _ => String::new(),
                    };
                    parameters.push(Parameter { name, ty: (*typed.ty).clone(), options });
                }
            }
        }
        let returns = match &signature.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, ty) => {
                if let Type::ImplTrait(hidden) = &**ty {
                    let text = "the return type of an entry must be named: replace `impl …`";
                    mistakes.add_at(hidden.span(), text);
                }
                ty.to_token_stream()
            }
        };
        EntryFunction {
            ident: signature.ident.clone(),
            is_async: signature.asyncness.is_some(),
            takes_self,
            doc: doc_of(attributes),
            parameters,
            returns,
            siblings: Rc::new([]),
        }
    }

    /// Returns the closure that completes an argument by a method of the value `this`.
    pub(crate) fn method_completer(&self, method: &Ident) -> TokenStream {
        let sibling = self.siblings.iter().find(|sibling| sibling.ident == *method);
        let others = sibling.map(|sibling| sibling.others.as_slice()).unwrap_or_default();
        let names: Vec<Ident> = (0..others.len()).map(variable).collect();
        let share = quote!(let this = ::std::clone::Clone::clone(&this););
        if sibling.is_some_and(|sibling| sibling.is_async) {
            quote! {{
                #share
                move |typed: ::std::string::String #(, #names: #others)*| {
                    #share
                    async move { this.#method(typed #(, #names)*).await }
                }
            }}
        } else {
            quote! {{
                #share
                move |typed: &str #(, #names: #others)*| this.#method(typed #(, #names)*)
            }}
        }
    }

    /// Returns the call of the function with the parameters `p0`, `p1`, …
    pub(crate) fn call(&self, place: FunctionScope) -> TokenStream {
        let ident = &self.ident;
        let given = (0..self.parameters.len()).map(variable);
        let call = match (place, self.takes_self) {
            (FunctionScope::Alone, _) => quote!(#ident(#(#given),*)),
            (FunctionScope::InImpl, false) => quote!(Self::#ident(#(#given),*)),
            (FunctionScope::InImpl, true) => quote!(Self::#ident(&this, #(#given),*)),
        };
        if self.is_async { quote!(#call.await) } else { call }
    }

    /// Returns the statements that fill `p0`, `p1`, … from `parts`.
    pub(crate) fn fill(&self, rename: impl Fn(&str) -> String) -> TokenStream {
        let statements = self.parameters.iter().enumerate().map(|(at, parameter)| {
            let (variable, ty) = (variable(at), &parameter.ty);
            let name = parameter.wire_name(&rename);
            match &parameter.options.default {
                None => quote_spanned! {ty.span()=>
                    let #variable = parts.fill::<#ty, _>(#name)?;
                },
                Some(default) => quote_spanned! {ty.span()=>
                    let #variable = parts.fill_or::<#ty, _>(#name, #default)?;
                },
            }
        });
        quote!(#(#statements)*)
    }

    /// Returns the expression for the signature.
    pub(crate) fn signature(&self, rename: impl Fn(&str) -> String) -> TokenStream {
        let parameters = self.parameters.iter().map(|parameter| {
            let ty = &parameter.ty;
            let argument = parameter.argument(&rename);
            quote_spanned!(ty.span()=> .parameter::<#ty, _>(#argument))
        });
        quote!(::bindpost::Signature::new() #(#parameters)*)
    }
}

impl Parameter {
    pub(crate) fn wire_name(&self, rename: impl Fn(&str) -> String) -> String {
        match &self.options.name {
            Some(name) => name.value(),
            None => rename(&self.name),
        }
    }

    fn argument(&self, rename: impl Fn(&str) -> String) -> TokenStream {
        let name = self.wire_name(rename);
        let options = &self.options;
        let description = options.description.iter().map(|text| quote!(.description(#text)));
        let default = options.default.iter().map(|value| quote!(.default_value(#value)));
        let required = options.required.iter().map(|required| quote!(.required(#required)));
        let keywords = options.keywords.iter().map(|(keyword, value)| quote!(.#keyword(#value)));
        quote!(::bindpost::Argument::new(#name) #(#description)* #(#default)* #(#keywords)* #(#required)*)
    }
}

/// Returns the variable that holds a parameter.
fn variable(at: usize) -> Ident {
    Ident::new(&format!("p{at}"), proc_macro2::Span::call_site())
}

/// Rejects types that can never be a parameter, whatever traits they implement.
fn refuse_type(ty: &Type, mistakes: &mut CompileErrors) {
    match ty {
        Type::Reference(borrowed) => {
            let owned = match &*borrowed.elem {
                Type::Path(path) if path.path.is_ident("str") => "`String`".to_owned(),
                Type::Slice(slice) => format!("`Vec<{}>`", slice.elem.to_token_stream()),
                other => format!("`{}`", other.to_token_stream()),
            };
            let text = format!("a parameter cannot be a reference: use the owned type {owned}");
            mistakes.add_at(borrowed.span(), text);
        }
        Type::ImplTrait(hidden) => {
            mistakes.add_at(hidden.span(), "the type of a parameter must be named: replace `impl …`");
        }
        _ => {}
    }
}
