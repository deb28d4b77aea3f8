//! Knowledge bases (called agents until late 2025): retrieval of documents for a question.
//!
//! There is no language model. A question is searched by keywords in every source, and the response is
//! extractive: it contains the texts of the matching documents that the semantic configuration names.
//!
//! Files, in reading order: `request.rs` (questions and sources), `grounding.rs` (texts and source data of a document).

mod grounding;
mod request;

use std::sync::Arc;
use std::time::Instant;

use bindpost_azure_search_model::ApiError;
use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use self::grounding::DocumentGrounding;
use self::request::{RetrievalRequest, RetrievalSource};
use crate::budget::{Budget, parsed_bytes};
use crate::engine::snapshot::IndexSnapshot;
use crate::resources::ResourceRegistry;
use crate::search::request::SearchRequest;
use crate::search::run;
use crate::search::scope::SynonymMaps;

/// The maximum number of documents per source in a response.
const PER_SOURCE: usize = 10;

/// The format of a retrieve request and its response, which has changed with the API versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetrievalFormat {
    /// 2025-05-01-preview: agents over `targetIndexes`.
    TargetIndexes,
    /// 2025-08-01-preview: agents over knowledge sources.
    Agents,
    /// From 2025-11-01-preview on: knowledge bases.
    KnowledgeBases,
}

/// Handles a retrieve request.
pub(crate) fn retrieve(
    base: &Value,
    request: &Value,
    format: RetrievalFormat,
    resources: &ResourceRegistry,
    synonyms: &SynonymMaps,
    index: &dyn Fn(&str) -> Result<Arc<IndexSnapshot>, ApiError>,
    budget: &Budget,
) -> Result<Value, ApiError> {
    let request = RetrievalRequest::parse(base, request, resources)?;
    let mut retrieval = KnowledgeRetrieval {
        format,
        activity: Vec::new(),
        references: Vec::new(),
        passages: Vec::new(),
        found: 0,
    };
    for source in &request.sources {
        let snapshot = index(&source.index)?;
        for question in &request.questions {
            retrieval.search_source(source, question, &snapshot, synonyms, budget)?;
        }
    }
    Ok(retrieval.into_response(request.with_activity))
}

struct KnowledgeRetrieval {
    format: RetrievalFormat,
    activity: Vec<Value>,
    references: Vec<Value>,
    passages: Vec<Value>,
    /// The number of documents so far, which is the id of the next one.
    found: usize,
}

impl KnowledgeRetrieval {
    fn search_source(
        &mut self,
        source: &RetrievalSource,
        question: &str,
        snapshot: &IndexSnapshot,
        synonyms: &SynonymMaps,
        budget: &Budget,
    ) -> Result<(), ApiError> {
        let started = Instant::now();
        let at = Utc::now();
        let filter = source.filter();
        let mut body = Map::new();
        body.insert("search".to_owned(), plain(question).into());
        body.insert("top".to_owned(), source.most_documents.min(PER_SOURCE).into());
        if let Some(filter) = &filter {
            body.insert("filter".to_owned(), filter.as_str().into());
        }
        if let Some(fields) = &source.search_fields {
            body.insert("searchFields".to_owned(), fields.as_str().into());
        }
        let found = run::run(&SearchRequest::parse(Value::Object(body))?, snapshot, synonyms, budget)?;
        let number = self.activity.len();
        let grounding = DocumentGrounding::new(source, snapshot)?;
        for document in &found.documents {
            let grounded = snapshot.documents.read(document.number, |json| {
                // Memory for the document, its copy in the response, and its text.
                budget.take_memory(parsed_bytes(json).saturating_mul(3));
                grounding.read(json)
            })?;
            let Some(grounded) = grounded else { continue };
            let id = self.found;
            self.found += 1;
            let mut passage = grounded.passage;
            passage.insert("ref_id".to_owned(), id.into());
            self.passages.push(Value::Object(passage));
            if source.with_references {
                self.references.push(json!({
                    "type": match self.format {
                        RetrievalFormat::TargetIndexes => "AzureSearchDoc",
                        _ => "searchIndex",
                    },
                    "id": id.to_string(),
                    "activitySource": number,
                    "docKey": grounded.key,
                    "sourceData": grounded.source_data,
                }));
            }
        }
        let mut activity = json!({
            "id": number,
            "queryTime": at.to_rfc3339_opts(SecondsFormat::Millis, true),
            "count": found.documents.len(),
            "elapsedMs": u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        let arguments = json!({"search": question, "filter": filter});
        if self.format == RetrievalFormat::TargetIndexes {
            activity["type"] = "AzureSearchQuery".into();
            activity["targetIndex"] = source.index.as_str().into();
            activity["query"] = arguments;
        } else {
            activity["type"] = "searchIndex".into();
            activity["knowledgeSourceName"] = source.name.as_str().into();
            activity["searchIndexArguments"] = arguments;
        }
        self.activity.push(activity);
        Ok(())
    }

    fn into_response(self, with_activity: bool) -> Value {
        let text = Value::Array(self.passages).to_string();
        let mut message = json!({"content": [{"type": "text", "text": text}]});
        if self.format != RetrievalFormat::KnowledgeBases {
            message["role"] = "assistant".into();
        }
        let activity = if with_activity { self.activity } else { Vec::new() };
        json!({"response": [message], "activity": activity, "references": self.references})
    }
}

/// Replaces punctuation by spaces. In a question it is not an operator.
fn plain(question: &str) -> String {
    question
        .chars()
        .map(|letter| if letter.is_alphanumeric() || letter == '\'' { letter } else { ' ' })
        .collect()
}
