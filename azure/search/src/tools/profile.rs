//! `profileIndex`: describes the content of an index, field by field, from a sample of its documents.
//! It is also a resource.

mod fields;
mod hints;

use std::sync::Arc;

use bindpost_azure_search_model::definition::{IndexField, PrimitiveType};
use bindpost_mcp_server::{CallParts, Context, Entry, Json, Signature, TemplateEntry, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::resources;
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::builder::{READS, ToolOutline, into_members};
use crate::tools::reading::{IndexDescription, SearchResponse, ServiceReader};

/// Default number of documents in the sample.
const SAMPLE: usize = 200;
const LARGEST_SAMPLE: usize = 1000;
/// Number of documents per request, so that large documents do not exceed the response limit.
const PAGE: usize = 100;
/// Number of documents whose vectors are read. A vector may have thousands of numbers.
const VECTORS: usize = 20;
/// Maximum number of values of a field to count.
const MAX_VALUES: usize = 1000;

/// Returns the tool and the resource.
pub(crate) fn entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    let properties = json!({
        "indexName": {"type": "string"},
        "sample": {"type": "integer", "minimum": 1, "maximum": LARGEST_SAMPLE, "default": SAMPLE,
            "description": "Documents to read"},
        "clientRequestId": {"type": "string"}
    });
    let description = "Profiles an index from a sample of its documents: per field type, attributes, fill rate, distinct \
                       values, examples, range, lengths, vectors, and hints on what to change. Use it first to see what \
                       can be searched, filtered and sorted.";
    let tool =
        ToolOutline::new("profileIndex", description, READS, properties, &["indexName"]).typed(shared, run);
    let (served, completed) = (Arc::clone(shared), Arc::clone(shared));
    let read = move |parts: CallParts| {
        let shared = Arc::clone(&served);
        async move {
            let name: String = parts.context.required_argument("name")?;
            let reader = ServiceReader::new(&shared, None);
            profile(&shared, &reader, &name, SAMPLE).await.map(Json).map_err(ToolError::from)
        }
    };
    let template = TemplateEntry::with_signature(
        "search://indexes/{name}/profile",
        "Profile of an index",
        Signature::new(),
        read,
    )
    .description("Per field fill rate, distinct values, examples and hints, from a sample of the documents.")
    .mime_type("application/json")
    .complete_with("name", move |typed| resources::index_names(completed.clone(), typed));
    vec![tool.into(), template.into()]
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProfileArguments {
    index_name: String,
    sample: Option<usize>,
    client_request_id: Option<String>,
}

async fn run(
    shared: Arc<SearchServerState>,
    _: Context,
    arguments: ProfileArguments,
) -> Result<Value, ToolError> {
    let reader = ServiceReader::new(&shared, arguments.client_request_id);
    let sample = arguments.sample.unwrap_or(SAMPLE);
    Ok(profile(&shared, &reader, &arguments.index_name, sample).await?)
}

/// A sample of an index's documents.
struct DocumentSample {
    documents: Vec<Value>,
    /// A few documents with only their vectors.
    vectors: Vec<Value>,
    /// How often values occur in the whole index, for the requested fields.
    facets: Option<SearchResponse>,
    /// Number of documents in the index.
    count: Option<u64>,
}

async fn profile(
    shared: &SearchServerState,
    reader: &ServiceReader,
    name: &str,
    sample: usize,
) -> Result<Value, ServiceFailure> {
    let index = reader.index(name).await?;
    let statistics = reader.statistics(&index.name).await?;
    let sample = read_sample(reader, &index, sample, &statistics).await?;
    let leaves = index.schema.leaves();
    let described: Vec<fields::FieldProfile> =
        leaves.iter().map(|field| fields::describe(field, &index, &sample)).collect();
    let mut hints = hints::index_hints(&index, &sample);
    hints.extend(described.iter().flat_map(|field| hints::field_hints(field, &sample)));
    let read = sample.documents.len();
    let note = match sample.count {
        Some(count) if count as usize <= read => "All documents were read.".to_owned(),
        _ => format!(
            "A sample: fill rates, ranges and lengths are those of the first {read} documents, not of all. `distinct` \
             covers the whole index if distinctOf is `index`."
        ),
    };
    let mut told: Vec<Value> = described.into_iter().map(|field| field.told).collect();
    let mut answer = json!({
        "index": index.name,
        "description": index.json.get("description").cloned().unwrap_or_default(),
        "documents": sample.count,
        "sampled": read,
        "note": note,
        "storageBytes": statistics.get("storageSize"),
        "vectorBytes": statistics.get("vectorIndexSize"),
        "key": index.key(),
        "suggesters": index.names("/suggesters"),
        "scoringProfiles": index.names("/scoringProfiles"),
        "defaultScoringProfile": index.json.get("defaultScoringProfile").cloned().unwrap_or_default(),
        "semanticConfigurations": index.names("/semantic/configurations"),
        "hints": hints,
    });
    let room = shared.answer_bytes.saturating_sub(answer.to_string().len() + 256);
    let fit = bindpost_mcp_openapi::count_fitting(&told, room);
    let left_off = told.len() - fit;
    told.truncate(fit);
    if let Some(members) = answer.as_object_mut() {
        members.insert("fields".to_owned(), told.into());
        if left_off > 0 {
            members.insert("fieldsLeftOff".to_owned(), left_off.into());
        }
    }
    Ok(answer)
}

async fn read_sample(
    reader: &ServiceReader,
    index: &IndexDescription,
    wanted: usize,
    statistics: &Value,
) -> Result<DocumentSample, ServiceFailure> {
    let retrievable = |vectors: bool| -> Vec<&str> {
        let fields = index.schema.fields().iter();
        fields
            .filter(|field| field.retrievable && field.vector.is_some() == vectors)
            .map(|field| field.name.as_str())
            .collect()
    };
    let page = |select: &[&str], top: usize, skip: usize| {
        let mut body =
            json!({"search": "*", "select": select.join(","), "top": top, "skip": skip, "count": true});
        // Without an order, pages might overlap.
        if let (true, Some(members)) = (index.schema.key().sortable, body.as_object_mut()) {
            members.insert("orderby".to_owned(), json!(format!("{} asc", index.key())));
        }
        body
    };
    let (plain, vectors) = (retrievable(false), retrievable(true));
    let mut documents = Vec::new();
    let mut count = statistics.get("documentCount").and_then(Value::as_u64);
    while documents.len() < wanted {
        let top = PAGE.min(wanted - documents.len());
        let found = reader.search(&index.name, into_members(page(&plain, top, documents.len()))).await?;
        count = found.count().or(count);
        let read = found.documents().len();
        documents.extend_from_slice(found.documents());
        if read < top {
            break;
        }
    }
    let vectors = match vectors.is_empty() {
        true => Vec::new(),
        false => {
            let found =
                reader.search(&index.name, into_members(page(&vectors, VECTORS.min(wanted), 0))).await?;
            found.documents().to_vec()
        }
    };
    Ok(DocumentSample { documents, vectors, facets: facets(reader, index).await?, count })
}

/// Returns the value counts of all facetable fields that the service can count.
async fn facets(
    reader: &ServiceReader,
    index: &IndexDescription,
) -> Result<Option<SearchResponse>, ServiceFailure> {
    let leaves = index.schema.leaves().into_iter().filter(|field| is_counted(field));
    let facets: Vec<String> = leaves.map(|field| format!("{},count:{MAX_VALUES}", field.path)).collect();
    if facets.is_empty() {
        return Ok(None);
    }
    let body = json!({"search": "*", "top": 0, "facets": facets});
    match reader.search(&index.name, into_members(body)).await {
        Ok(found) => Ok(Some(found)),
        // The sample contains values too.
        Err(failure) if failure.kind == Kind::InvalidRequest => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn is_counted(field: &IndexField) -> bool {
    let countable =
        [PrimitiveType::String, PrimitiveType::Boolean, PrimitiveType::Int32, PrimitiveType::Int64];
    // Keys are unique, so there is nothing to count.
    field.facetable && !field.key && field.kind.primitive().is_some_and(|kind| countable.contains(&kind))
}
