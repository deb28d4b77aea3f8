//! Normalizers. They make whole values comparable before filters, facets and sorting compare them.

use std::borrow::Cow;

use super::analyzer::TokenFilter;
use super::char_filter::{CharFilter, max_output};
use super::filters::step::{FilterStep, TextTransform};
use super::language::{FRENCH_ARTICLES, elision};

/// Changes a value without splitting it.
#[derive(Debug, Clone)]
pub struct Normalizer {
    char_filters: Vec<CharFilter>,
    shapes: Vec<TextTransform>,
}

pub(super) const NAMES: [&str; 5] = ["asciifolding", "elision", "lowercase", "standard", "uppercase"];

impl Normalizer {
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.char_filters.is_empty() && self.shapes.iter().all(|shape| leaves_unchanged(shape, text)) {
            return Cow::Borrowed(text);
        }
        let mut value = text.to_owned();
        for filter in &self.char_filters {
            value = filter.apply(&value, max_output(text.len())).text;
        }
        for shape in &self.shapes {
            shape.apply(&mut value);
        }
        if value == text { Cow::Borrowed(text) } else { Cow::Owned(value) }
    }

    /// Returns the predefined normalizer with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let shapes = match name {
            "asciifolding" => vec![TextTransform::Fold],
            "elision" => match elision(&FRENCH_ARTICLES) {
                TokenFilter::Step(FilterStep::Shape(shape)) => vec![shape],
                _ => return None,
            },
            "lowercase" => vec![TextTransform::Lower],
            "standard" => vec![TextTransform::Lower, TextTransform::Fold],
            "uppercase" => vec![TextTransform::Upper],
            _ => return None,
        };
        Some(Self { char_filters: Vec::new(), shapes })
    }

    /// Builds a normalizer. The error is the name of the first component that a normalizer cannot have.
    pub(super) fn from_parts(
        char_filters: Vec<(String, CharFilter)>,
        filters: Vec<(String, TokenFilter)>,
    ) -> Result<Self, String> {
        let mut normalizer = Self { char_filters: Vec::new(), shapes: Vec::new() };
        for (name, filter) in char_filters {
            match filter {
                CharFilter::HtmlStrip => return Err(name),
                filter => normalizer.char_filters.push(filter),
            }
        }
        for (name, filter) in filters {
            match filter {
                TokenFilter::Step(FilterStep::Shape(
                    shape @ (TextTransform::Lower
                    | TextTransform::Upper
                    | TextTransform::Fold
                    | TextTransform::Elision(_)
                    | TextTransform::Script(_)),
                )) => normalizer.shapes.push(shape),
                _ => return Err(name),
            }
        }
        Ok(normalizer)
    }
}

/// Whether a cheap check shows that the text stays the same. Many values are already normalized.
fn leaves_unchanged(shape: &TextTransform, text: &str) -> bool {
    match shape {
        TextTransform::Lower => text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()),
        TextTransform::Fold => text.is_ascii(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_normalized_whole() {
        for (name, text, expected) in [
            ("lowercase", "Grand Hôtel", "grand hôtel"),
            ("asciifolding", "Grand Hôtel", "Grand Hotel"),
            ("standard", "Grand Hôtel", "grand hotel"),
            ("uppercase", "Grand Hôtel", "GRAND HÔTEL"),
            ("elision", "l'hôtel", "hôtel"),
        ] {
            assert_eq!(Normalizer::named(name).unwrap().apply(text), expected);
        }
        assert!(NAMES.iter().all(|name| Normalizer::named(name).is_some()));
    }

    #[test]
    fn an_unchanged_value_is_not_copied() {
        let standard = Normalizer::named("standard").unwrap();
        assert!(matches!(standard.apply("plain text"), Cow::Borrowed("plain text")));
        assert!(matches!(standard.apply("東京"), Cow::Borrowed("東京")));
        assert!(matches!(standard.apply("Plain"), Cow::Owned(_)));
    }
}
