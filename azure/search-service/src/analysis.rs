//! From text to words: analyzers, tokenizers, token filters, character filters and normalizers.
//!
//! Offsets of tokens are bytes of the text as it was given, also behind character filters: highlights cut it there.

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

pub use analyze::analyze;
pub use analyzers::AnalyzerRegistry;
pub use language::azure_difference;
pub use normalizer::Normalizer;
