//! Hints on what to change in an index.

use bindpost_azure_search_model::definition::PrimitiveType;

use super::fields::FieldProfile;
use super::{DocumentSample, MAX_VALUES};
use crate::tools::reading::IndexDescription;

/// Minimum number of documents for hints about values.
const ENOUGH: usize = 20;
/// Average number of words from which a text is prose.
const PROSE: f64 = 8.0;
/// Average number of characters above which exact comparison is unlikely.
const LONG: f64 = 200.0;

/// Analyzers that split texts into words without stemming.
const WITHOUT_STEMS: [&str; 4] = ["standard.lucene", "standardasciifolding.lucene", "simple", "whitespace"];

pub(super) fn index_hints(index: &IndexDescription, sample: &DocumentSample) -> Vec<String> {
    let mut hints = Vec::new();
    if index.json.get("description").and_then(|text| text.as_str()).is_none_or(str::is_empty) {
        hints.push("The index has no description; one helps a model to choose it.".to_owned());
    }
    if sample.count == Some(0) {
        hints.push("The index is empty: upload documents or run its indexer.".to_owned());
    }
    let vectors = index.vectors();
    if index.texts(None).is_empty() && vectors.is_empty() {
        hints.push("No field is searchable: documents can only be filtered.".to_owned());
    }
    if !vectors.is_empty() && index.names("/semantic/configurations").is_empty() {
        hints.push(
            "The index has vectors but no semantic configuration: hybrid queries cannot use semantic ranking."
                .to_owned(),
        );
    }
    hints
}

pub(super) fn field_hints(described: &FieldProfile<'_>, sample: &DocumentSample) -> Vec<String> {
    let FieldProfile { field, fill, distinct, length, seen, .. } = described;
    let (path, seen) = (&field.path, *seen);
    let mut hints = Vec::new();
    let costly = [
        ("filterable", field.filterable),
        ("sortable", field.sortable),
        ("facetable", field.facetable),
        ("searchable", field.searchable),
    ];
    let costly: Vec<&str> = costly.into_iter().filter(|(_, set)| *set).map(|(name, _)| name).collect();
    if field.vector.is_some() {
        return vector_hints(described);
    }
    if *fill == Some(0.0) && seen > 0 {
        hints.push(match costly.is_empty() {
            true => format!("{path}: never set in {seen} documents."),
            false => format!("{path}: {} but never set in {seen} documents.", costly.join(", ")),
        });
        return hints;
    }
    if let (true, Some((values, more))) = (field.facetable && !field.key, distinct) {
        let documents = sample.count.map_or(seen, |count| count as usize);
        let nearly_all = documents >= ENOUGH && *values * 10 >= documents * 9;
        if *more || nearly_all {
            let told = if *more { format!("{MAX_VALUES} or more") } else { values.to_string() };
            hints.push(format!(
                "{path}: facetable with {told} values in {documents} documents; its facets are not useful."
            ));
        }
    }
    if let (Some((1, false)), true) = (distinct, seen >= ENOUGH && *fill == Some(1.0) && !field.key) {
        hints.push(format!(
            "{path}: the same value in all documents; filters and facets of it have no effect."
        ));
    }
    if let Some((characters, words)) =
        length.filter(|_| field.kind.primitive() == Some(PrimitiveType::String))
    {
        let exact = field.filterable || field.sortable || field.facetable;
        if characters > LONG && exact && !field.key {
            hints.push(format!(
                "{path}: texts of {} characters are {}; exact comparison of such long texts is rare, needs space and is \
                 limited to 32 KB.",
                characters.round(),
                costly.iter().filter(|name| **name != "searchable").copied().collect::<Vec<_>>().join(", ")
            ));
        }
        if let Some(analyzer) = field.index_analyzer.as_deref() {
            if words >= PROSE && analyzer.starts_with("keyword") {
                hints.push(format!(
                    "{path}: prose with the analyzer {analyzer}, which treats the whole text as one word; only the whole \
                     text finds it."
                ));
            } else if words >= PROSE && WITHOUT_STEMS.contains(&analyzer) {
                hints.push(format!(
                    "{path}: prose with {analyzer}, which does not stem words; a language analyzer (en.lucene) \
                     finds `hotels` by `hotel`."
                ));
            } else if words < 1.5 && characters < 40.0 && is_language(analyzer) {
                hints.push(format!(
                    "{path}: single words with {analyzer}; if they are codes or names, stemming causes wrong matches."
                ));
            }
        }
    }
    hints
}

fn vector_hints(described: &FieldProfile<'_>) -> Vec<String> {
    let path = &described.field.path;
    let mut hints = Vec::new();
    if let Some(fill) = described.fill.filter(|fill| *fill < 1.0) {
        let missing = ((1.0 - fill) * described.seen as f64).round();
        hints.push(format!(
            "{path}: {missing} of {} documents have no vector; vector queries never find them.",
            described.seen
        ));
    }
    if described.odd_vectors > 0 {
        hints.push(format!(
            "{path}: {} vectors have dimensions that differ from the definition.",
            described.odd_vectors
        ));
    }
    if described.field.retrievable {
        hints.push(format!(
            "{path}: vectors are retrievable and make results large; exclude them with `select`."
        ));
    }
    hints
}

/// Returns whether it is a language analyzer, such as `en.lucene` or `pt-BR.microsoft`.
fn is_language(analyzer: &str) -> bool {
    let name = analyzer.strip_suffix(".lucene").or(analyzer.strip_suffix(".microsoft"));
    name.is_some_and(|name| name.split('-').next().is_some_and(|language| language.len() == 2))
}
