//! What analysis and synonyms make of a word or a phrase in one field.

use super::SearchField;
use crate::ApiError;
use crate::syntax::synonyms::CompiledSynonyms;

/// The most terms that one search text may become, over all fields.
const MAX_TERMS: usize = 32_768;
/// The most phrases that the alternatives within one phrase may multiply to; further alternatives are left out.
const MAX_PHRASES: usize = 64;

/// Terms with their positions.
pub(super) type Row = Vec<(usize, String)>;

/// One place of an analyzed text.
#[derive(Debug)]
pub(super) struct Place {
    /// The position of its first term.
    at: usize,
    /// How many positions it takes in the text.
    width: usize,
    /// Rows, any of which may stand here; positions count from the place.
    pub(super) alternatives: Vec<Row>,
}

/// Counts terms, so that no text becomes too many of them.
#[derive(Debug, Default)]
pub(super) struct Words {
    terms: usize,
}

impl Words {
    pub(super) fn analyze(
        &mut self,
        field: &mut SearchField<'_>,
        text: &str,
    ) -> Result<Vec<Place>, ApiError> {
        let mut places = places(field, text);
        if let Some(synonyms) = field.synonyms.filter(|synonyms| !synonyms.is_empty()) {
            places = with_synonyms(places, synonyms);
        }
        self.terms += places.iter().flat_map(|place| &place.alternatives).map(Vec::len).sum::<usize>();
        if self.terms > MAX_TERMS {
            let message = format!(
                "Fields, analyzers and synonyms make more than {MAX_TERMS} terms of the search text. Shorten it, or \
                 search fewer fields."
            );
            return Err(ApiError::parameter("search", message));
        }
        Ok(places)
    }
}

fn places(field: &mut SearchField<'_>, text: &str) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    let mut tokens = field.analyzer.token_stream(text);
    while let Some(token) = tokens.next() {
        let row = vec![(0, token.text.clone())];
        match places.last_mut() {
            // Filters put variants of a term at its own position.
            Some(place) if place.at == token.position => {
                if !place.alternatives.contains(&row) {
                    place.alternatives.push(row);
                }
            }
            _ => places.push(Place { at: token.position, width: 1, alternatives: vec![row] }),
        }
    }
    places
}

fn with_synonyms(places: Vec<Place>, synonyms: &CompiledSynonyms) -> Vec<Place> {
    let terms: Vec<String> = places
        .iter()
        .map(|place| place.alternatives.first().and_then(|row| row.first()).map(|(_, text)| text.clone()))
        .map(Option::unwrap_or_default)
        .collect();
    let mut expanded = Vec::with_capacity(places.len());
    let mut places = places.into_iter();
    let mut rest = terms.as_slice();
    while let Some(place) = places.next() {
        let Some((taken, alternatives)) = synonyms.expand(rest) else {
            rest = rest.get(1..).unwrap_or_default();
            expanded.push(place);
            continue;
        };
        rest = rest.get(taken..).unwrap_or_default();
        // `nth` is used for its walk: the places that the rule took are gone.
        let last = if taken > 1 { places.nth(taken - 2) } else { None };
        let end = last.map_or(place.at + place.width, |last| last.at + last.width);
        let mut rows: Vec<Row> =
            alternatives.iter().map(|terms| terms.iter().cloned().enumerate().collect()).collect();
        if taken == 1 {
            // Variants beyond the first, which analysis put here, are no business of the rule.
            rows.extend(place.alternatives.into_iter().skip(1));
        }
        expanded.push(Place { at: place.at, width: end.saturating_sub(place.at), alternatives: rows });
    }
    expanded
}

/// All rows that a phrase may be, over the alternatives of its places. Gaps (stop words) stay gaps.
pub(super) fn phrases(places: &[Place]) -> Vec<Row> {
    // With how many positions each row is longer than the text so far.
    let mut rows: Vec<(Row, isize)> = vec![(Vec::new(), 0)];
    for place in places {
        let allowed = (MAX_PHRASES / rows.len()).max(1);
        let alternatives = || place.alternatives.iter().take(allowed);
        rows = rows
            .iter()
            .flat_map(|(row, longer)| {
                alternatives().map(move |alternative| {
                    let start = place.at.saturating_add_signed(*longer);
                    let mut row = row.clone();
                    row.extend(alternative.iter().map(|(at, text)| (start + at, text.clone())));
                    let width = alternative.last().map_or(0, |(at, _)| at + 1);
                    (row, longer + width as isize - place.width as isize)
                })
            })
            .collect();
    }
    rows.into_iter().map(|(row, _)| row).filter(|row| !row.is_empty()).collect()
}
