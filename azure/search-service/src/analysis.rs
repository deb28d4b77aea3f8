//! Text analysis: analyzers, tokenizers, token filters, character filters and normalizers.
//!
//! Token offsets are byte offsets into the original text, even after character filters have changed it.
//! Highlighting cuts the original text at these offsets.

mod analyze;
mod analyzer;
mod analyzers;
mod char_filter;
mod filters;
mod language;
mod normalizer;
mod parts;
mod pattern;
mod settings;
mod tokenizer;

#[cfg(test)]
mod tests;

pub(crate) use analyze::analyze;
pub(crate) use analyzers::{AnalyzerRegistry, PAIRS_ANALYZER, SUGGEST_ANALYZER};
pub(crate) use normalizer::Normalizer;
