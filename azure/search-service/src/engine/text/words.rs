//! Analysis and synonyms of a word or a phrase in one field.

use std::collections::HashSet;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::syntax::synonyms::CompiledSynonyms;

use super::SearchField;

/// The maximum number of terms for one search text, over all fields.
pub(crate) const MAX_TERMS: usize = 32_768;
/// The maximum number of bytes of all these terms.
const MAX_BYTES: usize = 16 << 20;
/// The maximum number of phrases from the alternatives within one phrase. Further alternatives are ignored.
const MAX_PHRASES: usize = 64;
/// The maximum number of terms in all these phrases. A long phrase has fewer alternatives.
const MAX_PHRASE_TERMS: usize = 4_096;

/// Terms with their positions.
pub(super) type Row = Vec<(usize, String)>;

/// One position of an analyzed text.
#[derive(Debug)]
pub(super) struct AnalyzedPosition {
    /// The position of the first term.
    at: usize,
    /// How many positions of the text it covers.
    width: usize,
    /// Alternative rows of terms. Their positions are relative to this position.
    pub(super) alternatives: Vec<Row>,
}

/// Expands words into terms and limits the number of terms.
#[derive(Debug, Default)]
pub(super) struct TermExpander {
    pub(super) terms: usize,
    bytes: usize,
}

impl TermExpander {
    pub(super) fn analyze(
        &mut self,
        field: &mut SearchField<'_>,
        text: &str,
    ) -> Result<Vec<AnalyzedPosition>, ApiError> {
        let places = self.places(field, text)?;
        match field.synonyms.filter(|synonyms| !synonyms.is_empty()) {
            Some(synonyms) => self.with_synonyms(places, synonyms),
            None => Ok(places),
        }
    }

    fn count(&mut self, term: &str) -> Result<(), ApiError> {
        self.terms += 1;
        self.bytes += term.len();
        if self.terms > MAX_TERMS || self.bytes > MAX_BYTES { Err(too_many_terms()) } else { Ok(()) }
    }

    /// Analyzes a text. Each term is counted when it is produced, so an analyzer with millions of terms
    /// is stopped early.
    fn places(&mut self, field: &mut SearchField<'_>, text: &str) -> Result<Vec<AnalyzedPosition>, ApiError> {
        let mut places: Vec<AnalyzedPosition> = Vec::new();
        // The terms at the last position. N-grams may put thousands there.
        let mut seen: HashSet<String> = HashSet::new();
        let mut tokens = field.analyzer.token_stream(text);
        while let Some(token) = tokens.next() {
            self.count(&token.text)?;
            let row = || vec![(0, token.text.clone())];
            match places.last_mut() {
                // Filters put variants of a term at the same position.
                Some(place) if place.at == token.position => {
                    if seen.insert(token.text.clone()) {
                        place.alternatives.push(row());
                    }
                }
                _ => {
                    seen.clear();
                    seen.insert(token.text.clone());
                    places.push(AnalyzedPosition { at: token.position, width: 1, alternatives: vec![row()] });
                }
            }
        }
        Ok(places)
    }

    fn with_synonyms(
        &mut self,
        places: Vec<AnalyzedPosition>,
        synonyms: &CompiledSynonyms,
    ) -> Result<Vec<AnalyzedPosition>, ApiError> {
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
            // `nth` skips the positions that the rule has replaced.
            let last = if taken > 1 { places.nth(taken - 2) } else { None };
            let end = last.map_or(place.at + place.width, |last| last.at + last.width);
            for term in alternatives.iter().flatten() {
                self.count(term)?;
            }
            let mut rows: Vec<Row> =
                alternatives.iter().map(|terms| terms.iter().cloned().enumerate().collect()).collect();
            if taken == 1 {
                // Further variants from the analyzer are independent of the rule.
                rows.extend(place.alternatives.into_iter().skip(1));
            }
            expanded.push(AnalyzedPosition {
                at: place.at,
                width: end.saturating_sub(place.at),
                alternatives: rows,
            });
        }
        Ok(expanded)
    }

    /// Returns all rows of terms that match a phrase, over the alternatives of its positions. Gaps from
    /// stop words stay.
    pub(super) fn phrases(&mut self, places: &[AnalyzedPosition]) -> Result<Vec<Row>, ApiError> {
        let longest: usize =
            places.iter().filter_map(|place| place.alternatives.iter().map(Vec::len).max()).sum();
        let most = MAX_PHRASES.min(MAX_PHRASE_TERMS / longest.max(1)).max(1);
        // Each row with the number of positions by which it is longer than the text so far.
        let mut rows: Vec<(Row, isize)> = vec![(Vec::new(), 0)];
        for place in places {
            let allowed = (most / rows.len()).max(1);
            let Some((first, others)) = place.alternatives.split_first() else { continue };
            let others = others.get(..others.len().min(allowed - 1)).unwrap_or_default();
            let mut next = Vec::with_capacity(rows.len() * (others.len() + 1));
            for (mut row, mut longer) in rows {
                // Rows are copied only where they differ. The first alternative reuses the existing row.
                let copies = others.iter().map(|other| (row.clone(), longer, other)).collect::<Vec<_>>();
                append(&mut row, &mut longer, place, first);
                next.push((row, longer));
                for (mut row, mut longer, other) in copies {
                    append(&mut row, &mut longer, place, other);
                    next.push((row, longer));
                }
            }
            rows = next;
        }
        let rows: Vec<Row> = rows.into_iter().map(|(row, _)| row).filter(|row| !row.is_empty()).collect();
        // The terms of the first row have already been counted.
        for (_, term) in rows.iter().skip(1).flatten() {
            self.count(term)?;
        }
        Ok(rows)
    }
}

fn append(row: &mut Row, longer: &mut isize, place: &AnalyzedPosition, alternative: &Row) {
    let start = place.at.saturating_add_signed(*longer);
    row.extend(alternative.iter().map(|(at, text)| (start + at, text.clone())));
    let width = alternative.last().map_or(0, |(at, _)| at + 1);
    *longer += width as isize - place.width as isize;
}

pub(crate) fn too_many_terms() -> ApiError {
    let message = format!(
        "Fields, analyzers and synonyms expand the search text to more than {MAX_TERMS} terms or {} MiB. \
         Shorten it, or search fewer fields.",
        MAX_BYTES >> 20
    );
    ApiError::parameter("search", message)
}
