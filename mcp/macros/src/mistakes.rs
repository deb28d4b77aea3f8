//! [`CompileErrors`]: collects mistakes, so that all of them are reported together.

use proc_macro2::{Span, TokenStream};

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct CompileErrors(Option<syn::Error>);

impl CompileErrors {
    pub(crate) fn add(&mut self, mistake: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(mistake),
            none => *none = Some(mistake),
        }
    }

    pub(crate) fn add_at(&mut self, span: Span, text: impl std::fmt::Display) {
        self.add(syn::Error::new(span, text));
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.0.is_some()
    }

    /// Returns one compile error for each mistake.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.0.map(|all| all.into_compile_error()).unwrap_or_default()
    }
}
