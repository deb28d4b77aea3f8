//! The variants of a query and their results.

use bindpost_mcp_openapi::count_fitting;
use serde_json::{Map, Value, json};

use super::{ExplainRequest, searched_fields};
use crate::service::failure::{Kind, ServiceFailure};
use crate::tools::builder::{into_members, shortened};
use crate::tools::reading::IndexDescription;

/// Maximum number of scoring profiles that are tried by default.
const PROFILES: usize = 4;
/// Maximum number of fields for highlights.
const HIGHLIGHTED: usize = 20;

/// A named set of search parameters.
#[derive(Clone, Debug)]
pub(super) struct QueryVariant {
    pub(super) name: String,
    /// Override the parameters that all variants have.
    pub(super) parameters: Map<String, Value>,
}

impl QueryVariant {
    pub(super) const ANY: &'static str = "any";
    pub(super) const ALL: &'static str = "all";
    const FULL: &'static str = "full";

    fn new(name: impl Into<String>, parameters: Value) -> QueryVariant {
        QueryVariant { name: name.into(), parameters: into_members(parameters) }
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).and_then(Value::as_str)
    }

    /// Returns whether every word must match.
    pub(super) fn needs_all(&self) -> bool {
        self.text("searchMode") == Some("all")
    }

    /// Returns whether vectors find documents too, whatever their words.
    pub(super) fn has_vectors(&self) -> bool {
        self.parameters.get("vectorQueries").is_some()
    }
}

/// A hit of a variant.
#[derive(Clone, Debug)]
pub(super) struct VariantHit {
    pub(super) key: String,
    score: Value,
    reranker_score: Option<Value>,
    highlight: Option<Value>,
}

/// A variant with its results.
#[derive(Clone, Debug)]
pub(super) struct VariantRun {
    pub(super) variant: QueryVariant,
    pub(super) count: Option<u64>,
    pub(super) hits: Vec<VariantHit>,
    /// Why the response is partial.
    note: Option<String>,
    pub(super) failure: Option<ServiceFailure>,
}

impl VariantRun {
    /// Returns the rank of a key, counted from 1.
    pub(super) fn rank(&self, key: &str) -> Option<usize> {
        self.hits.iter().position(|hit| hit.key == key).map(|index| index + 1)
    }

    /// Returns the run as JSON of about this size. Hits that do not fit are omitted.
    pub(super) fn to_json(&self, bytes: usize) -> Value {
        let mut told = Map::from_iter([
            ("name".to_owned(), json!(self.variant.name)),
            ("parameters".to_owned(), json!(without_vectors(&self.variant.parameters))),
        ]);
        if let Some(failure) = &self.failure {
            told.insert("refused".to_owned(), failure.to_json());
            return Value::Object(told);
        }
        told.insert("count".to_owned(), json!(self.count));
        let hits = self.hits.iter().enumerate().map(|(index, hit)| {
            let mut told = json!({"rank": index + 1, "key": hit.key, "score": hit.score});
            if let Some(members) = told.as_object_mut() {
                let optional = [("rerankerScore", &hit.reranker_score), ("highlight", &hit.highlight)];
                members.extend(
                    optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))),
                );
            }
            told
        });
        let mut hits: Vec<Value> = hits.collect();
        let left_off = hits.len() - count_fitting(&hits, bytes);
        hits.truncate(hits.len() - left_off);
        told.insert("hits".to_owned(), hits.into());
        if left_off > 0 {
            told.insert("hitsLeftOff".to_owned(), json!(left_off));
        }
        if let Some(note) = &self.note {
            told.insert("note".to_owned(), json!(note));
        }
        Value::Object(told)
    }
}

/// Returns the parameters without the numbers of vectors.
fn without_vectors(parameters: &Map<String, Value>) -> Map<String, Value> {
    let mut shown = parameters.clone();
    let queries = shown.get_mut("vectorQueries").and_then(Value::as_array_mut).into_iter().flatten();
    for query in queries.filter_map(Value::as_object_mut) {
        if let Some(length) = query.get("vector").and_then(Value::as_array).map(Vec::len) {
            query.insert("vector".to_owned(), json!(format!("{length} numbers")));
        }
    }
    shown
}

/// Returns the requested variants, or all that the index supports, and notes on variants that were omitted.
pub(super) fn choose(
    question: &ExplainRequest<'_>,
) -> Result<(Vec<QueryVariant>, Vec<String>), ServiceFailure> {
    let Some(wanted) = question.arguments.variants.as_ref().filter(|wanted| !wanted.is_empty()) else {
        return Ok(default_variants(question));
    };
    let mut variants: Vec<QueryVariant> = Vec::new();
    for (number, wanted) in wanted.iter().enumerate() {
        let variant = match wanted {
            Value::String(name) => variant_by_name(question, name)?,
            Value::Object(parameters) => {
                let mut parameters = parameters.clone();
                let name = match parameters.remove("name") {
                    Some(Value::String(name)) => name,
                    _ => format!("variant {}", number + 1),
                };
                QueryVariant { name, parameters }
            }
            _ => return Err(ServiceFailure::new(Kind::InvalidRequest, "a variant is a name or an object")),
        };
        if variants.iter().any(|other| other.name == variant.name) {
            let message = format!("two variants are named {:?}", variant.name);
            return Err(
                ServiceFailure::new(Kind::InvalidRequest, message).with("fix", "give each its own `name`")
            );
        }
        variants.push(variant);
    }
    Ok((variants, Vec::new()))
}

fn default_variants(question: &ExplainRequest<'_>) -> (Vec<QueryVariant>, Vec<String>) {
    let index = question.index;
    let mut left_out = Vec::new();
    let mut variants: Vec<QueryVariant> =
        [QueryVariant::ANY, QueryVariant::ALL, QueryVariant::FULL].into_iter().filter_map(plain).collect();
    let (profiles, in_need): (Vec<&str>, Vec<&str>) = index
        .names("/scoringProfiles")
        .into_iter()
        .partition(|name| parameters_of(index, name).iter().all(|wanted| is_given(question, wanted)));
    let in_need: Vec<String> =
        in_need.iter().map(|name| format!("{name} ({})", parameters_of(index, name).join(", "))).collect();
    if !in_need.is_empty() {
        left_out.push(format!(
            "Not tried: scoring profiles that need scoringParameters: {}.",
            in_need.join("; ")
        ));
    }
    variants.extend(profiles.iter().take(PROFILES).map(|name| profile(name)));
    if profiles.len() > PROFILES {
        left_out.push(format!(
            "Not tried: the scoring profiles {}; name them in `variants` as profile:NAME.",
            profiles.iter().skip(PROFILES).copied().collect::<Vec<_>>().join(", ")
        ));
    }
    variants.extend(semantic(index));
    match vector_queries(question) {
        Ok(queries) => {
            variants.push(vector(&queries));
            variants.push(hybrid(&queries));
        }
        Err(reason) if !index.vectors().is_empty() => {
            left_out.push(format!("Not tried: vector and hybrid. {reason}"))
        }
        Err(_) => {}
    }
    (variants, left_out)
}

/// Returns the parameters of the functions of a scoring profile.
fn parameters_of<'i>(index: &'i IndexDescription, profile: &str) -> Vec<&'i str> {
    let list = |value: Option<&'i Value>| value.and_then(Value::as_array).into_iter().flatten();
    let profile = list(index.json.get("scoringProfiles"))
        .find(|one| one.get("name").and_then(Value::as_str) == Some(profile));
    let functions = list(profile.and_then(|profile| profile.get("functions")));
    let wanted = functions.filter_map(|function| {
        let tags = function.pointer("/tag/tagsParameter");
        tags.or_else(|| function.pointer("/distance/referencePointParameter"))?.as_str()
    });
    wanted.collect()
}

/// Returns whether the caller gave this scoring parameter, written `name-values`.
fn is_given(question: &ExplainRequest<'_>, parameter: &str) -> bool {
    let given = question.arguments.scoring_parameters.iter().flatten();
    given.filter_map(|given| given.strip_prefix(parameter)).any(|rest| rest.starts_with('-'))
}

/// Returns how many documents contain any of the words if the filter excludes all of them. Returns
/// `None` if it does not, or if the number is unknown.
pub(super) async fn count_without_filter(question: &ExplainRequest<'_>, ran: &[VariantRun]) -> Option<u64> {
    question.arguments.filter.as_deref().filter(|filter| !filter.trim().is_empty())?;
    let any = ran.iter().find(|ran| ran.variant.name == QueryVariant::ANY && ran.count == Some(0))?;
    let mut body = request(question, &any.variant);
    body.remove("filter");
    body.insert("top".to_owned(), json!(0));
    question.reader.search(&question.index.name, body).await.ok()?.count()
}

fn plain(name: &str) -> Option<QueryVariant> {
    let parameters = match name {
        QueryVariant::ANY => json!({"queryType": "simple", "searchMode": "any"}),
        QueryVariant::ALL => json!({"queryType": "simple", "searchMode": "all"}),
        QueryVariant::FULL => json!({"queryType": "full", "searchMode": "any"}),
        _ => return None,
    };
    Some(QueryVariant::new(name, parameters))
}

fn profile(name: &str) -> QueryVariant {
    QueryVariant::new(format!("profile:{name}"), json!({"scoringProfile": name}))
}

fn semantic(index: &IndexDescription) -> Option<QueryVariant> {
    let configurations = index.names("/semantic/configurations");
    let default = index.json.pointer("/semantic/defaultConfiguration").and_then(Value::as_str);
    let name = default.filter(|name| configurations.contains(name)).or(configurations.first().copied())?;
    Some(QueryVariant::new("semantic", json!({"queryType": "semantic", "semanticConfiguration": name})))
}

fn vector(queries: &Value) -> QueryVariant {
    QueryVariant::new("vector", json!({"search": null, "vectorQueries": queries}))
}

fn hybrid(queries: &Value) -> QueryVariant {
    QueryVariant::new("hybrid", json!({"vectorQueries": queries}))
}

fn variant_by_name(question: &ExplainRequest<'_>, name: &str) -> Result<QueryVariant, ServiceFailure> {
    let index = question.index;
    let invalid = |message: String| ServiceFailure::new(Kind::InvalidRequest, message);
    if let Some(variant) = plain(name) {
        return Ok(variant);
    }
    if let Some(wanted) = name.strip_prefix("profile:") {
        let profiles = index.names("/scoringProfiles");
        return match profiles.contains(&wanted) {
            true => Ok(profile(wanted)),
            false => Err(invalid(format!("unknown scoring profile {wanted:?}"))
                .with("scoringProfiles", json!(profiles))),
        };
    }
    match name {
        "semantic" => {
            semantic(index).ok_or_else(|| invalid("the index has no semantic configuration".to_owned()))
        }
        "vector" => vector_queries(question).map(|queries| vector(&queries)).map_err(invalid),
        "hybrid" => vector_queries(question).map(|queries| hybrid(&queries)).map_err(invalid),
        _ => Err(invalid(format!("unknown variant {name:?}")).with(
            "fix",
            "any, all, full, profile:NAME, semantic, vector, hybrid, or an object of search parameters",
        )),
    }
}

/// Returns the vector queries: the caller's vector in all fields of its dimension, or the text if the
/// service can vectorize it. Otherwise returns why there are none.
fn vector_queries(question: &ExplainRequest<'_>) -> Result<Value, String> {
    let index = question.index;
    let fields = index.vectors();
    let joined = |fields: Vec<&str>| fields.join(",");
    if fields.is_empty() {
        return Err("The index has no vector field.".to_owned());
    }
    let k = question.arguments.top().max(50);
    if let Some(numbers) = &question.arguments.vector {
        let fits = |vector: &bindpost_azure_search_model::definition::VectorAttributes| {
            vector.dimensions == numbers.len()
                || (vector.packed_bits && vector.dimensions / 8 == numbers.len())
        };
        let fitting: Vec<&str> = fields
            .iter()
            .filter(|field| field.vector.as_ref().is_some_and(fits))
            .map(|field| field.path.as_str())
            .collect();
        if fitting.is_empty() {
            let dimensions: Vec<String> = fields
                .iter()
                .filter_map(|field| Some(format!("{} has {}", field.path, field.vector.as_ref()?.dimensions)))
                .collect();
            let (given, dimensions) = (numbers.len(), dimensions.join(", "));
            return Err(format!("`vector` has {given} numbers; {dimensions}."));
        }
        return Ok(json!([{"kind": "vector", "vector": numbers, "fields": joined(fitting), "k": k}]));
    }
    let profiles = index.json.pointer("/vectorSearch/profiles").and_then(Value::as_array);
    let vectorized = |profile: &str| {
        profiles.into_iter().flatten().any(|one| {
            one.get("name").and_then(Value::as_str) == Some(profile)
                && one.get("vectorizer").is_some_and(Value::is_string)
        })
    };
    let texts: Vec<&str> = fields
        .iter()
        .filter(|field| field.vector.as_ref().is_some_and(|vector| vectorized(&vector.profile)))
        .map(|field| field.path.as_str())
        .collect();
    match texts.is_empty() {
        true => {
            Err("No vector profile has a vectorizer: give `vector`, the embedding of the query.".to_owned())
        }
        false => {
            let text = &question.arguments.search;
            Ok(json!([{"kind": "text", "text": text, "fields": joined(texts), "k": k}]))
        }
    }
}

/// Returns the complete request of a variant.
pub(super) fn request(question: &ExplainRequest<'_>, variant: &QueryVariant) -> Map<String, Value> {
    let arguments = question.arguments;
    let mut body = Map::from_iter([
        ("search".to_owned(), json!(arguments.search)),
        ("top".to_owned(), json!(arguments.top())),
    ]);
    if let Some(filter) = &arguments.filter {
        body.insert("filter".to_owned(), json!(filter));
    }
    if let Some(fields) = arguments.selected_fields() {
        body.insert("searchFields".to_owned(), json!(fields.join(",")));
    }
    if let Some(parameters) = &arguments.scoring_parameters {
        body.insert("scoringParameters".to_owned(), json!(parameters));
    }
    for (name, value) in &variant.parameters {
        match value.is_null() {
            true => body.remove(name),
            false => body.insert(name.clone(), value.clone()),
        };
    }
    // The key and the count are always requested, because hits are identified by key and counted.
    body.insert("count".to_owned(), json!(true));
    body.insert("select".to_owned(), json!(question.index.key()));
    body
}

pub(super) async fn run(question: &ExplainRequest<'_>, variant: QueryVariant) -> VariantRun {
    let mut body = request(question, &variant);
    let words =
        body.get("search").and_then(Value::as_str).is_some_and(|text| !["", "*"].contains(&text.trim()));
    let fields: Vec<&str> =
        searched_fields(question).into_iter().take(HIGHLIGHTED).map(|field| field.path.as_str()).collect();
    if words && !fields.is_empty() {
        body.entry("highlight").or_insert_with(|| json!(fields.join(",")));
    }
    let mut ran = VariantRun { variant, count: None, hits: Vec::new(), note: None, failure: None };
    let found = match question.reader.search(&question.index.name, body).await {
        Ok(found) => found,
        Err(failure) => {
            ran.failure = Some(failure);
            return ran;
        }
    };
    ran.count = found.count();
    ran.note = found.partial_reason();
    let key = question.index.key();
    let hits = found.documents().iter().filter_map(|document| {
        let reranker = document.get("@search.rerankerScore").filter(|score| score.is_number());
        Some(VariantHit {
            key: document.get(key)?.as_str()?.to_owned(),
            score: document.get("@search.score").cloned().unwrap_or_default(),
            reranker_score: reranker.cloned(),
            highlight: highlight(document),
        })
    });
    ran.hits = hits.take(question.arguments.top()).collect();
    ran
}

/// Returns the first highlight: the field and the passage.
fn highlight(document: &Value) -> Option<Value> {
    let highlights = document.get("@search.highlights")?.as_object()?;
    let (field, passage) = highlights.iter().find_map(|(field, passages)| {
        Some((field, passages.get(0)?.as_str()?)).filter(|(field, _)| !field.starts_with('@'))
    })?;
    Some(json!({"field": field, "text": shortened(passage, 160)}))
}
