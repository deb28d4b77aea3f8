//! Explains why a document is not among the hits, or where it ranks.

use std::collections::{BTreeMap, BTreeSet};

use bindpost_mcp_server::nearest::{letter_count, nearest_within};
use serde_json::{Value, json};

use super::terms::{QueryWord, join_words};
use super::variants::{QueryVariant, VariantRun, request};
use super::{ExplainRequest, QueryTerms, filtered, searched_fields};
use crate::service::failure::{Kind, ServiceFailure};
use crate::tools::reading::values_at;

/// Maximum rank to search for: the largest page.
const DEEPEST: usize = 1000;
/// Maximum number of fields to compare.
const MAX_FIELDS: usize = 30;

/// Comparison of one field of the document with the words of the query.
struct FieldComparison {
    path: String,
    matched: Vec<String>,
    missing: Vec<String>,
    /// Words of the field with a similar spelling to a missing word, as (wanted, found).
    near: Vec<(String, String)>,
    note: Option<String>,
}

/// Returns the document as JSON, and the reasons, the most specific one first.
pub(super) async fn explain(
    question: &ExplainRequest<'_>,
    key: &str,
    ran: &[VariantRun],
    terms: &QueryTerms,
) -> Result<(Value, Vec<String>), ServiceFailure> {
    let document = match question.reader.document(&question.index.name, key).await {
        Ok(document) => document,
        // The key contains characters that are invalid in keys.
        Err(failure) if failure.kind == Kind::InvalidRequest => None,
        Err(failure) => return Err(failure),
    };
    let Some(document) = document else {
        let reason = format!(
            "No document with the key {key:?} in {}: it was never indexed, was deleted, or has another key (keys \
             are case-sensitive).",
            question.index.name
        );
        return Ok((json!({"key": key, "exists": false}), vec![reason]));
    };
    let mut reasons = Vec::new();
    let passing = filtered::check(question, key, &document).await?;
    reasons.extend(passing.reason);
    let compared = compare(question, &document, terms).await?;
    let mut places = BTreeMap::new();
    for ran in ran.iter().filter(|ran| ran.failure.is_none()) {
        let place = find_rank(question, key, ran).await?;
        if passing.passes != Some(false) {
            reasons.extend(rank_reason(ran, &place, &compared, terms));
        }
        places.insert(ran.variant.name.clone(), place.to_json());
    }
    reasons.extend(word_reasons(&compared, terms));
    reasons.extend(synonyms(question, &compared));
    let fields: Vec<Value> = compared
        .iter()
        .filter(|field| !field.matched.is_empty() || field.note.is_some() || !field.near.is_empty())
        .map(|field| {
            let mut told = json!({"field": field.path, "matched": field.matched, "missing": field.missing});
            if let (Some(note), Some(members)) = (&field.note, told.as_object_mut()) {
                members.insert("note".to_owned(), json!(note));
            }
            told
        })
        .collect();
    let told = json!({
        "key": key, "exists": true, "passesFilter": passing.passes, "variants": places, "matches": fields,
    });
    Ok((told, reasons))
}

/// The rank of the document in a variant.
#[derive(Debug)]
enum DocumentRank {
    /// Among the returned hits, at this rank.
    Shown(usize),
    /// It matches at this rank.
    Below(usize),
    /// It matches, but below the maximum rank.
    FarBelow,
    Unmatched,
    /// Not among the first thousand. It is unknown whether it matches.
    Unknown,
}

impl DocumentRank {
    fn to_json(&self) -> Value {
        match self {
            DocumentRank::Shown(rank) | DocumentRank::Below(rank) => json!({"rank": rank, "matches": true}),
            DocumentRank::FarBelow => json!({"rank": null, "matches": true}),
            DocumentRank::Unmatched => json!({"rank": null, "matches": false}),
            DocumentRank::Unknown => json!({"rank": null, "matches": null}),
        }
    }
}

async fn find_rank(
    question: &ExplainRequest<'_>,
    key: &str,
    ran: &VariantRun,
) -> Result<DocumentRank, ServiceFailure> {
    if let Some(rank) = ran.rank(key) {
        return Ok(DocumentRank::Shown(rank));
    }
    let index = &question.index.name;
    let mut body = request(question, &ran.variant);
    body.remove("highlight");
    let mut only = body.clone();
    // With vectors a filter would change which neighbours are found.
    let asked = !ran.variant.has_vectors() && filtered::restrict_to_key(question, key, &mut only);
    if asked && question.reader.search(index, only).await?.count() == Some(0) {
        return Ok(DocumentRank::Unmatched);
    }
    body.insert("top".to_owned(), json!(DEEPEST));
    let found = question.reader.search(index, body).await?;
    let keys =
        found.documents().iter().map(|document| document.get(question.index.key()).and_then(Value::as_str));
    let rank = keys.into_iter().position(|other| other == Some(key));
    Ok(match (rank, asked) {
        (Some(index), _) => DocumentRank::Below(index + 1),
        (None, true) => DocumentRank::FarBelow,
        // All hits were read.
        (None, false) if found.count().is_none_or(|count| count <= DEEPEST as u64) => DocumentRank::Unmatched,
        (None, false) => DocumentRank::Unknown,
    })
}

/// Compares the words of every searched field with those of the query, after the analysis of the field.
async fn compare(
    question: &ExplainRequest<'_>,
    document: &Value,
    terms: &QueryTerms,
) -> Result<Vec<FieldComparison>, ServiceFailure> {
    let mut compared = Vec::new();
    for field in searched_fields(question).into_iter().take(MAX_FIELDS) {
        let (Some(group), Some(analyzer)) = (terms.tokens_for_field(&field.path), &field.index_analyzer)
        else {
            continue;
        };
        let mut one = FieldComparison {
            path: field.path.clone(),
            matched: Vec::new(),
            missing: group.tokens.clone(),
            near: Vec::new(),
            note: None,
        };
        if !field.retrievable {
            one.note = Some("not retrievable: its words cannot be compared".to_owned());
            compared.push(one);
            continue;
        }
        let texts: Vec<&str> =
            values_at(document, &field.path).into_iter().filter_map(|value| value.as_str()).collect();
        if texts.is_empty() {
            one.note = Some("empty in this document".to_owned());
            compared.push(one);
            continue;
        }
        let tokens = match question.reader.tokens(&question.index.name, analyzer, &texts.join("\n")).await {
            Ok(tokens) => tokens,
            Err(failure) if matches!(failure.kind, Kind::Unauthorized | Kind::InvalidRequest) => {
                one.note = Some("this key is not allowed to analyze text".to_owned());
                compared.push(one);
                continue;
            }
            Err(failure) => return Err(failure),
        };
        let there: BTreeSet<&str> = tokens.iter().map(String::as_str).collect();
        (one.matched, one.missing) =
            group.tokens.iter().cloned().partition(|token| there.contains(token.as_str()));
        one.near = one
            .missing
            .iter()
            .filter_map(|wanted| Some((wanted.clone(), nearest_token(wanted, &there)?.to_owned())))
            .collect();
        compared.push(one);
    }
    Ok(compared)
}

/// Returns a token that differs by one or two letters, as a fuzzy search would find.
fn nearest_token<'a>(wanted: &str, there: &BTreeSet<&'a str>) -> Option<&'a str> {
    let most = match letter_count(wanted) {
        0..=3 => return None,
        4..=6 => 1,
        _ => 2,
    };
    nearest_within(wanted, there.iter().copied(), most)
}

fn rank_reason(
    ran: &VariantRun,
    place: &DocumentRank,
    compared: &[FieldComparison],
    terms: &QueryTerms,
) -> Option<String> {
    let VariantRun { variant, count, .. } = ran;
    let name = &variant.name;
    let of = count.map_or(String::new(), |count| format!(" of {count}"));
    Some(match place {
        DocumentRank::Shown(rank) => format!("{name}: found at rank {rank}{of}."),
        DocumentRank::Below(rank) => {
            format!("{name}: it matches, but ranks {rank}{of}, below the hits shown.")
        }
        DocumentRank::FarBelow => format!("{name}: it matches, but ranks below the first {DEEPEST}{of}."),
        DocumentRank::Unknown => format!(
            "{name}: it is not among the first {DEEPEST}{of}; it is unknown whether it matches, because the key \
             is not filterable."
        ),
        DocumentRank::Unmatched => {
            format!("{name}: it does not match{}.", mismatch_reason(variant, compared, terms))
        }
    })
}

/// Returns why a variant does not match, as far as the words explain it.
fn mismatch_reason(variant: &QueryVariant, compared: &[FieldComparison], terms: &QueryTerms) -> String {
    if variant.parameters.get("search").is_some_and(Value::is_null) {
        return ": it is not among the nearest vectors, or has none".to_owned();
    }
    if terms.words.plain.is_empty() || variant.parameters.contains_key("search") {
        return String::new();
    }
    // A variant may search fewer fields than the others.
    let own: Option<Vec<&str>> =
        variant.text("searchFields").map(|fields| fields.split(',').map(str::trim).collect());
    let is_searched =
        |field: &&FieldComparison| own.as_ref().is_none_or(|fields| fields.contains(&field.path.as_str()));
    let compared: Vec<&FieldComparison> = compared.iter().filter(is_searched).collect();
    let matched = compared.iter().any(|field| !field.matched.is_empty());
    let nowhere = found_nowhere(&compared, terms);
    match (variant.needs_all(), nowhere.is_empty()) {
        (true, false) => {
            format!(
                ": searchMode all requires every word, but no searched field contains {}",
                join_words(&nowhere)
            )
        }
        (false, _) if !matched => ": no searched field contains a word of the query".to_owned(),
        _ if !terms.words.negated.is_empty() => ", perhaps because of a negated word".to_owned(),
        _ => ": single words match, but not as the query combines them (phrases, required words, fields)"
            .to_owned(),
    }
}

/// Returns the words of the query that no searched field of the document contains, with their tokens.
/// Fields with different analyzers have different tokens. A word is found if one of its tokens is.
fn found_nowhere(compared: &[&FieldComparison], terms: &QueryTerms) -> Vec<QueryWord> {
    let matched: Vec<&String> = compared.iter().flat_map(|field| &field.matched).collect();
    let there = terms.as_words(matched.iter().copied());
    let missing = compared.iter().filter(|field| field.note.is_none()).flat_map(|field| &field.missing);
    let mut nowhere = terms.as_words(missing.filter(|token| !matched.contains(token)));
    nowhere.retain(|word| !there.iter().any(|found| found.word == word.word));
    nowhere
}

/// Returns which words match in which fields, and which almost match.
fn word_reasons(compared: &[FieldComparison], terms: &QueryTerms) -> Vec<String> {
    if terms.words.plain.is_empty() {
        return Vec::new();
    }
    let mut reasons = Vec::new();
    let matching: Vec<String> = compared
        .iter()
        .filter(|field| !field.matched.is_empty())
        .map(|field| format!("{} in {}", join_words(&terms.as_words(&field.matched)), field.path))
        .collect();
    match matching.is_empty() {
        true => {
            reasons.push("Words: no searched field of the document contains a word of the query.".to_owned())
        }
        false => reasons.push(format!("Words that match: {}.", matching.join("; "))),
    }
    let nowhere = found_nowhere(&compared.iter().collect::<Vec<_>>(), terms);
    if !matching.is_empty() && !nowhere.is_empty() {
        reasons.push(format!("Words in no searched field: {}.", join_words(&nowhere)));
    }
    let mut told = BTreeSet::new();
    for field in compared {
        for (wanted, there) in &field.near {
            let word = nowhere.iter().find(|word| word.tokens.contains(wanted));
            if let Some(QueryWord { word: wanted, .. }) = word.filter(|word| told.insert(word.word.as_str()))
            {
                reasons.push(format!(
                    "{wanted} is similar to {there} in {}, possibly a misspelling: queryType full with {wanted}~ would find it.",
                    field.path
                ));
            }
        }
    }
    let hidden: Vec<&str> =
        compared.iter().filter(|field| field.note.is_some()).map(|field| field.path.as_str()).collect();
    if !hidden.is_empty()
        && compared.iter().any(|field| field.note.as_deref().is_some_and(|n| n.starts_with("not ")))
    {
        reasons.push(format!("Not compared: {}.", hidden.join(", ")));
    }
    reasons
}

fn synonyms(question: &ExplainRequest<'_>, compared: &[FieldComparison]) -> Option<String> {
    let fields = searched_fields(question).into_iter().filter(|field| !field.synonym_maps.is_empty());
    let maps: BTreeSet<&String> = fields.flat_map(|field| &field.synonym_maps).collect();
    let missing = compared.iter().any(|field| !field.missing.is_empty());
    (missing && !maps.is_empty()).then(|| {
        let maps: Vec<&str> = maps.into_iter().map(String::as_str).collect();
        format!("Synonym maps ({}) may match further words that are not compared.", maps.join(", "))
    })
}
