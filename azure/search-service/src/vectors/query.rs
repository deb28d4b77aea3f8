//! `vectorQueries` and `vectorFilterMode` of a search request.

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::{IndexSchema, PrimitiveType, VectorAttributes};
use bindpost_net_json::JsonPlace;
use serde_json::Value;

use super::definition::{VectorObject, VectorSearch};
use super::metric::VectorMetric;
use super::value::{parse_vector, vector_length};

/// A vector query, checked against the index. Its fields exist and have the dimensions of its vector.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VectorQuery {
    pub vector: Vec<f32>,
    /// Paths of vector fields. Each field has its own ranking when results are fused.
    pub fields: Vec<String>,
    pub k: usize,
    pub exhaustive: bool,
    /// Accepted without effect, because vectors are not compressed.
    pub oversampling: Option<f64>,
    pub weight: f32,
    pub threshold: Option<VectorThreshold>,
    /// An OData filter that replaces the filter of the request.
    pub filter_override: Option<String>,
    /// Accepted without effect, because a document has one vector per field.
    pub per_document_vector_limit: usize,
}

/// The minimum quality of a hit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum VectorThreshold {
    /// The minimum cosine or product, or the maximum euclidean distance or number of different bits.
    VectorSimilarity(f64),
    /// The minimum `@search.score` before results are fused.
    SearchScore(f64),
}

impl VectorThreshold {
    pub(crate) fn is_met(self, metric: VectorMetric, distance: f32) -> bool {
        match self {
            Self::VectorSimilarity(value) if metric.smaller_is_better() => {
                f64::from(metric.similarity(distance)) <= value
            }
            Self::VectorSimilarity(value) => f64::from(metric.similarity(distance)) >= value,
            Self::SearchScore(value) => f64::from(metric.score(distance)) >= value,
        }
    }
}

/// When the filter is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::enum_variant_names, reason = "the names of the API")]
pub(crate) enum VectorFilterMode {
    /// Before the search: the nearest k of the documents that match the filter.
    #[default]
    PreFilter,
    /// After the search: those of the nearest k that match the filter.
    PostFilter,
    /// After the nearest k of the whole index. This equals `PostFilter`, because an index has no shards.
    StrictPostFilter,
}

impl VectorFilterMode {
    /// Parses the value of `vectorFilterMode`. Null is the default.
    pub(crate) fn parse(value: &Value) -> Result<Self, ApiError> {
        match value {
            Value::Null => Ok(Self::default()),
            Value::String(text) if text == "preFilter" => Ok(Self::PreFilter),
            Value::String(text) if text == "postFilter" => Ok(Self::PostFilter),
            Value::String(text) if text == "strictPostFilter" => Ok(Self::StrictPostFilter),
            other => Err(ApiError::invalid(format!(
                "'vectorFilterMode' must be preFilter, postFilter or strictPostFilter, but is {other}."
            ))),
        }
    }
}

/// The default of `k`.
const DEFAULT_K: usize = 50;
const MAX_K: usize = 10_000;
/// The maximum number of vector queries. Each one costs a search.
const MAX_QUERIES: usize = 100;
/// The maximum number of fields of one query, as in Azure.
const MAX_FIELDS: usize = 10;

const MEMBERS: [&str; 14] = [
    "kind",
    "k",
    "fields",
    "exhaustive",
    "oversampling",
    "weight",
    "threshold",
    "filterOverride",
    "perDocumentVectorLimit",
    "vector",
    // Members for kinds that need a model. Clients send them as null with the pages of a result.
    "text",
    "queryRewrites",
    "url",
    "base64Image",
];

impl VectorQuery {
    /// Parses the value of `vectorQueries`. Null is an empty list.
    pub(crate) fn parse_all(
        value: &Value,
        schema: &IndexSchema,
        search: &VectorSearch,
    ) -> Result<Vec<Self>, ApiError> {
        let items = match value {
            Value::Null => return Ok(Vec::new()),
            Value::Array(items) => items,
            _ => return Err(ApiError::invalid("'vectorQueries' must be an array.")),
        };
        if items.len() > MAX_QUERIES {
            return Err(ApiError::invalid(format!(
                "'vectorQueries' may have at most {MAX_QUERIES} queries."
            )));
        }
        let queries = items.iter().enumerate();
        queries
            .map(|(at, item)| {
                let members = VectorObject::new(item, JsonPlace::at(format!("vectorQueries[{at}]")))?;
                Self::parse(&members, schema, search)
            })
            .collect()
    }

    fn parse(
        members: &VectorObject<'_>,
        schema: &IndexSchema,
        search: &VectorSearch,
    ) -> Result<Self, ApiError> {
        members.allow_only(&MEMBERS)?;
        match members.required_text("kind")? {
            "vector" => {}
            kind @ ("text" | "imageUrl" | "imageBinary") => {
                return Err(ApiError::not_supported(format!(
                    "'{}' is of kind '{kind}', which needs a model to create the vector. This service calls no models. \
                     Create the vector in your application and send it with kind 'vector'.",
                    members.place().path
                )));
            }
            other => {
                let message = "must be vector, text, imageUrl or imageBinary, not";
                return Err(members.error("kind", format_args!("{message} '{other}'")));
            }
        }
        let fields = fields(members, schema)?;
        let vector = vector(members, &fields)?;
        let query = Self {
            vector,
            k: members.integer_in("k", 1..=MAX_K)?.unwrap_or(DEFAULT_K),
            exhaustive: members.boolean("exhaustive")?.unwrap_or(false),
            oversampling: oversampling(members, &fields, search)?,
            weight: weight(members)?,
            threshold: threshold(members, &fields, search)?,
            filter_override: members.text("filterOverride")?.map(str::to_owned),
            per_document_vector_limit: members.integer_in("perDocumentVectorLimit", 0..=10_000)?.unwrap_or(0),
            fields: fields.into_iter().map(|(path, _)| path.to_owned()).collect(),
        };
        Ok(query)
    }
}

type Fields<'a> = Vec<(&'a str, &'a VectorAttributes)>;

fn fields<'a>(members: &VectorObject<'a>, schema: &'a IndexSchema) -> Result<Fields<'a>, ApiError> {
    let mut fields: Fields<'a> = Vec::new();
    for path in members.required_text("fields")?.split(',').map(str::trim).filter(|path| !path.is_empty()) {
        let Some(field) = schema.find(path) else {
            let message = format_args!("names the field '{path}', which is not in the index");
            return Err(members.error("fields", message));
        };
        let Some(vector) = &field.vector else {
            let message = format_args!("names the field '{path}', which is not a vector field");
            return Err(members.error("fields", message));
        };
        if fields.iter().all(|(other, _)| *other != path) {
            fields.push((path, vector));
        }
    }
    if fields.is_empty() {
        return Err(members.error("fields", "names no field"));
    }
    if fields.len() > MAX_FIELDS {
        return Err(members.error("fields", format_args!("names more than {MAX_FIELDS} fields")));
    }
    Ok(fields)
}

fn vector(members: &VectorObject<'_>, fields: &Fields<'_>) -> Result<Vec<f32>, ApiError> {
    let value = members.required_value("vector")?;
    // A query vector may have values that a narrow type cannot store, but bits must be bits.
    let packed = fields.iter().any(|(_, field)| field.packed_bits);
    let element = if packed { PrimitiveType::Byte } else { PrimitiveType::Single };
    let vector = parse_vector(element, value).map_err(|message| members.error("vector", message))?;
    for &(path, field) in fields {
        let wanted = vector_length(field);
        if vector.len() != wanted {
            let packing = if field.packed_bits { " in packed bytes" } else { "" };
            return Err(members.error(
                "vector",
                format_args!(
                    "has {} numbers, but the vector field '{path}' has {} dimensions{packing}, so {wanted} are required",
                    vector.len(),
                    field.dimensions
                ),
            ));
        }
    }
    Ok(vector)
}

fn oversampling(
    members: &VectorObject<'_>,
    fields: &Fields<'_>,
    search: &VectorSearch,
) -> Result<Option<f64>, ApiError> {
    let Some(factor) = members.number("oversampling")? else { return Ok(None) };
    if factor < 1.0 {
        return Err(members.error("oversampling", format_args!("must be 1 or more, not {factor}")));
    }
    let compressed = |field: &VectorAttributes| {
        search.profile(&field.profile).is_some_and(|profile| profile.compression.is_some())
    };
    if let Some((path, _)) = fields.iter().find(|(_, field)| !compressed(field)) {
        let message =
            format_args!("is only for compressed fields, and the profile of '{path}' has no compression");
        return Err(members.error("oversampling", message));
    }
    Ok(Some(factor))
}

fn weight(members: &VectorObject<'_>) -> Result<f32, ApiError> {
    let weight = members.number("weight")?.unwrap_or(1.0);
    let single = weight as f32;
    if single > 0.0 && single.is_finite() {
        return Ok(single);
    }
    Err(members.error("weight", format_args!("must be greater than 0, not {weight}")))
}

fn threshold(
    members: &VectorObject<'_>,
    fields: &Fields<'_>,
    search: &VectorSearch,
) -> Result<Option<VectorThreshold>, ApiError> {
    let Some(threshold) = members.object("threshold")? else { return Ok(None) };
    threshold.allow_only(&["kind", "value"])?;
    let value = threshold.required_number("value")?;
    let threshold = match threshold.required_text("kind")? {
        "vectorSimilarity" => VectorThreshold::VectorSimilarity(value),
        "searchScore" => VectorThreshold::SearchScore(value),
        other => {
            let message = format_args!("must be vectorSimilarity or searchScore, not '{other}'");
            return Err(threshold.error("kind", message));
        }
    };
    let mut metrics = fields.iter().filter_map(|(_, field)| Some(search.algorithm(field)?.metric));
    let first = metrics.next();
    if metrics.any(|metric| Some(metric) != first) {
        let message = "needs fields with the same metric. Use separate queries for them";
        return Err(members.error("threshold", message));
    }
    Ok(Some(threshold))
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
