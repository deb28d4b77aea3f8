//! Mistakes are collected, so that all of them are reported at once.

use proc_macro2::{Span, TokenStream};

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct Mistakes(Option<syn::Error>);

impl Mistakes {
    pub(crate) fn add(&mut self, mistake: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(mistake),
            none => *none = Some(mistake),
        }
    }

    pub(crate) fn at(&mut self, span: Span, text: impl std::fmt::Display) {
        self.add(syn::Error::new(span, text));
    }

    pub(crate) fn are_there(&self) -> bool {
        self.0.is_some()
    }

    /// One compile error each.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.0.map(|all| all.into_compile_error()).unwrap_or_default()
    }
}
