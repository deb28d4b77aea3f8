//! Knowledge bases (called agents until late 2025): retrieval of documents for a question.
//!
//! There is no language model. A question is searched by keywords in every source, and the response is
//! extractive: it contains the matching documents.

use std::sync::Arc;
use std::time::Instant;

use bindpost_azure_search_model::ApiError;
use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use crate::budget::{Budget, parsed_bytes};
use crate::documents::FieldSelection;
use crate::engine::snapshot::IndexSnapshot;
use crate::resources::{ResourceKind, ResourceRegistry};
use crate::search::request::SearchRequest;
use crate::search::run;
use crate::search::scope::SynonymMaps;

/// The maximum number of documents per source in a response.
const PER_SOURCE: usize = 10;
/// The maximum number of questions in one request.
const MOST_QUESTIONS: usize = 20;

/// Handles a retrieve request. `bases` selects the format of knowledge bases instead of agents.
pub(crate) fn retrieve(
    base: &Value,
    request: &Value,
    bases: bool,
    resources: &ResourceRegistry,
    synonyms: &SynonymMaps,
    index: &dyn Fn(&str) -> Result<Arc<IndexSnapshot>, ApiError>,
    budget: &Budget,
) -> Result<Value, ApiError> {
    let questions = questions(request)?;
    let parameters = parameters(request)?;
    let sources = base.get("knowledgeSources").and_then(Value::as_array);
    let mut retrieval =
        KnowledgeRetrieval { bases, activity: Vec::new(), references: Vec::new(), passages: Vec::new() };
    for source in sources.into_iter().flatten() {
        let name = source.get("name").and_then(Value::as_str).unwrap_or_default();
        let source = resources.find(ResourceKind::KnowledgeSource, name)?;
        let own = parameters
            .iter()
            .find(|given| given.get("knowledgeSourceName").and_then(Value::as_str) == Some(name));
        for question in &questions {
            retrieval.search_source(
                &RetrievalSource { name, definition: &source.value, parameters: own.copied() },
                question,
                synonyms,
                index,
                budget,
            )?;
        }
    }
    Ok(retrieval.into_response())
}

struct RetrievalSource<'a> {
    name: &'a str,
    definition: &'a Value,
    /// The parameters of the request for this source.
    parameters: Option<&'a Value>,
}

struct KnowledgeRetrieval {
    bases: bool,
    activity: Vec<Value>,
    references: Vec<Value>,
    passages: Vec<Value>,
}

impl KnowledgeRetrieval {
    fn search_source(
        &mut self,
        source: &RetrievalSource<'_>,
        question: &str,
        synonyms: &SynonymMaps,
        index: &dyn Fn(&str) -> Result<Arc<IndexSnapshot>, ApiError>,
        budget: &Budget,
    ) -> Result<(), ApiError> {
        let Some(search_index) =
            source.definition.get("searchIndexParameters").filter(|value| value.is_object())
        else {
            let kind = source.definition.get("kind").and_then(Value::as_str).unwrap_or_default();
            return Err(ApiError::not_supported(format!(
                "The knowledge source '{}' is of kind '{kind}'; only sources of kind searchIndex are supported.",
                source.name
            )));
        };
        let name = search_index.get("searchIndexName").and_then(Value::as_str).unwrap_or_default();
        let snapshot = index(name)?;
        let started = Instant::now();
        let at = Utc::now();
        let filter = source.parameters.and_then(|given| given.get("filterAddOn")).and_then(Value::as_str);
        let mut body = Map::new();
        body.insert("search".to_owned(), plain(question).into());
        body.insert("top".to_owned(), PER_SOURCE.into());
        if let Some(filter) = filter {
            body.insert("filter".to_owned(), filter.into());
        }
        let found = run::run(&SearchRequest::parse(Value::Object(body))?, &snapshot, synonyms, budget)?;
        let number = self.activity.len();
        let with_data = source.parameters.and_then(|given| given.get("includeReferenceSourceData"));
        let with_data = with_data.and_then(Value::as_bool).unwrap_or(true);
        let selection = selection(search_index, &snapshot)?;
        for document in &found.documents {
            let key = &snapshot.plan.definition.schema.key().name;
            let shown = snapshot.documents.read(document.number, |json| {
                // Memory for the document, its copy in the response, and its text.
                budget.take_memory(parsed_bytes(json).saturating_mul(3));
                let mut members = b"{".to_vec();
                selection.write(json, &mut members);
                members.push(b'}');
                let whole: Value = serde_json::from_slice(json).unwrap_or_default();
                (serde_json::from_slice::<Value>(&members).unwrap_or_default(), whole.get(key).cloned())
            })?;
            let Some((data, key)) = shown else { continue };
            let id = self.references.len();
            let mut reference = json!({
                "type": "searchIndex",
                "id": id.to_string(),
                "activitySource": number,
                "docKey": key,
            });
            if with_data {
                reference["sourceData"] = data.clone();
            }
            self.references.push(reference);
            self.passages.push(json!({"ref_id": id, "content": text_of(&data)}));
        }
        let arguments = json!({"search": question, "filter": filter});
        self.activity.push(json!({
            "type": "searchIndex",
            "id": number,
            "knowledgeSourceName": source.name,
            "queryTime": at.to_rfc3339_opts(SecondsFormat::Millis, true),
            "count": found.documents.len(),
            "elapsedMs": u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            "searchIndexArguments": arguments,
        }));
        Ok(())
    }

    fn into_response(self) -> Value {
        let text = Value::Array(self.passages).to_string();
        let mut message = json!({"content": [{"type": "text", "text": text}]});
        if !self.bases {
            message["role"] = "assistant".into();
        }
        json!({"response": [message], "activity": self.activity, "references": self.references})
    }
}

/// Returns the questions: the last message of a user (agents), or all intents (bases).
fn questions(request: &Value) -> Result<Vec<String>, ApiError> {
    let list = |name: &str| request.get(name).and_then(Value::as_array);
    let mut questions = Vec::new();
    for intent in list("intents").into_iter().flatten() {
        questions.extend(intent.get("search").and_then(Value::as_str).map(str::to_owned));
    }
    if questions.is_empty() {
        let is_user = |message: &&Value| {
            message.get("role").and_then(Value::as_str).is_none_or(|role| role.eq_ignore_ascii_case("user"))
        };
        let last = list("messages").into_iter().flatten().rfind(is_user);
        let content = last.and_then(|message| message.get("content")).and_then(Value::as_array);
        for part in content.into_iter().flatten() {
            questions.extend(part.get("text").and_then(Value::as_str).map(str::to_owned));
        }
    }
    questions.retain(|question| !question.trim().is_empty());
    if questions.is_empty() || questions.len() > MOST_QUESTIONS {
        return Err(ApiError::invalid(format!(
            "The request must have 1 to {MOST_QUESTIONS} questions: either 'intents' with a 'search' each, or 'messages' in which the last user message has text."
        )));
    }
    Ok(questions)
}

fn parameters(request: &Value) -> Result<Vec<&Value>, ApiError> {
    match request.get("knowledgeSourceParams") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => Ok(list.iter().collect()),
        Some(_) => {
            Err(ApiError::parameter("knowledgeSourceParams", "'knowledgeSourceParams' must be an array."))
        }
    }
}

/// Replaces punctuation by spaces. In a question it is not an operator.
fn plain(question: &str) -> String {
    question
        .chars()
        .map(|letter| if letter.is_alphanumeric() || letter == '\'' { letter } else { ' ' })
        .collect()
}

/// Returns the fields to show: those of the source, or all fields.
fn selection(parameters: &Value, snapshot: &IndexSnapshot) -> Result<FieldSelection, ApiError> {
    let schema = &snapshot.plan.definition.schema;
    let select = match parameters.get("sourceDataSelect").or_else(|| parameters.get("sourceDataFields")) {
        Some(Value::String(select)) => select.clone(),
        Some(Value::Array(fields)) => {
            let names = fields.iter().filter_map(|field| field.get("name").and_then(Value::as_str));
            names.collect::<Vec<_>>().join(",")
        }
        _ => String::new(),
    };
    if select.trim().is_empty() {
        Ok(FieldSelection::all(schema))
    } else {
        FieldSelection::parse(&select, schema)
    }
}

/// Returns the texts of a document, joined by newlines.
fn text_of(data: &Value) -> String {
    let texts = data.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str());
    texts.collect::<Vec<_>>().join("\n")
}
