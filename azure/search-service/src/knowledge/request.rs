//! A retrieve request: its questions, and the sources of its knowledge base with the parameters for each.

use bindpost_azure_search_model::ApiError;
use bindpost_net_json::{JsonPlace, ObjectReader};
use serde_json::Value;

use crate::resources::{ResourceKind, ResourceRegistry};

/// The maximum number of questions in one request.
const MOST_QUESTIONS: usize = 20;

/// An object of the request or of the knowledge base.
type RetrievalObject<'a> = ObjectReader<'a, ApiError>;

pub(super) struct RetrievalRequest {
    pub questions: Vec<String>,
    pub sources: Vec<RetrievalSource>,
    pub with_activity: bool,
}

/// A knowledge source over an index, with the parameters of the request.
pub(super) struct RetrievalSource {
    pub name: String,
    pub index: String,
    pub semantic_configuration: Option<String>,
    /// The fields to search, separated by commas. `None` searches all searchable fields.
    pub search_fields: Option<String>,
    /// The fields of the source data, separated by commas. `None` returns all fields.
    pub source_data: Option<String>,
    pub with_references: bool,
    pub with_source_data: bool,
    pub most_documents: usize,
    filters: Vec<String>,
}

impl RetrievalRequest {
    pub(super) fn parse(
        base: &Value,
        request: &Value,
        resources: &ResourceRegistry,
    ) -> Result<Self, ApiError> {
        let base = RetrievalObject::new(base, JsonPlace::of("the knowledge base"))?;
        let request = RetrievalObject::new(request, JsonPlace::of("the request"))?;
        let questions = questions(&request)?;
        let mut sources = Vec::new();
        let parameters = request.objects("knowledgeSourceParams")?;
        for given in base.objects("knowledgeSources")? {
            let name = given.required_text("name")?;
            let mut own = None;
            for parameters in &parameters {
                if parameters.required_text("knowledgeSourceName")? == name {
                    own = Some(parameters);
                }
            }
            let source = resources.find(ResourceKind::KnowledgeSource, name)?;
            sources.push(RetrievalSource::parse(name, &source.value, &given, own)?);
        }
        // Agents of 2025-05-01-preview name indexes.
        let parameters = request.objects("targetIndexParams")?;
        for given in base.objects("targetIndexes")? {
            let index = given.required_text("indexName")?;
            let mut own = None;
            for parameters in &parameters {
                if parameters.text("indexName")?.is_none_or(|name| name == index) {
                    own = Some(parameters);
                }
            }
            sources.push(RetrievalSource::of_index(index, &given, own)?);
        }
        let default = base.object_or_empty("outputConfiguration")?.boolean("includeActivity")?;
        let with_activity = request.boolean("includeActivity")?.or(default).unwrap_or(true);
        Ok(Self { questions, sources, with_activity })
    }
}

impl RetrievalSource {
    /// Parses a knowledge source. `given` is its entry in the knowledge base.
    fn parse(
        name: &str,
        definition: &Value,
        given: &RetrievalObject<'_>,
        own: Option<&RetrievalObject<'_>>,
    ) -> Result<Self, ApiError> {
        let definition =
            RetrievalObject::new(definition, JsonPlace::of(format!("the knowledge source '{name}'")))?;
        let Some(search_index) = definition.object("searchIndexParameters")? else {
            let kind = definition.text("kind")?.unwrap_or_default();
            return Err(ApiError::not_supported(format!(
                "The knowledge source '{name}' is of kind '{kind}'; only sources of kind searchIndex are supported."
            )));
        };
        let option = |member: &str| match own.map(|own| own.boolean(member)).transpose()?.flatten() {
            Some(value) => Ok(value),
            None => Ok::<_, ApiError>(given.boolean(member)?.unwrap_or(true)),
        };
        let mut filters: Vec<String> =
            search_index.text("baseFilter")?.map(str::to_owned).into_iter().collect();
        filters.extend(filter_of(own)?);
        let most = own.map(|own| own.integer_in("maxOutputDocuments", 1..=usize::MAX)).transpose()?.flatten();
        // The list replaced the text in 2025-11-01-preview.
        let source_data = match field_names(&search_index, "sourceDataFields")? {
            Some(names) => Some(names),
            None => search_index
                .text("sourceDataSelect")?
                .filter(|select| !select.trim().is_empty())
                .map(str::to_owned),
        };
        Ok(Self {
            name: name.to_owned(),
            index: search_index.required_text("searchIndexName")?.to_owned(),
            semantic_configuration: search_index.text("semanticConfigurationName")?.map(str::to_owned),
            // `*` names all searchable fields.
            search_fields: field_names(&search_index, "searchFields")?.filter(|names| names != "*"),
            source_data,
            with_references: option("includeReferences")?,
            with_source_data: option("includeReferenceSourceData")?,
            most_documents: most.unwrap_or(usize::MAX),
            filters,
        })
    }

    /// A target index of an agent.
    fn of_index(
        index: &str,
        given: &RetrievalObject<'_>,
        own: Option<&RetrievalObject<'_>>,
    ) -> Result<Self, ApiError> {
        let default = given.boolean("defaultIncludeReferenceSourceData")?;
        let own_option = own.map(|own| own.boolean("includeReferenceSourceData")).transpose()?.flatten();
        Ok(Self {
            name: index.to_owned(),
            index: index.to_owned(),
            semantic_configuration: None,
            search_fields: None,
            source_data: None,
            with_references: true,
            with_source_data: own_option.or(default).unwrap_or(true),
            most_documents: usize::MAX,
            filters: filter_of(own)?.into_iter().collect(),
        })
    }

    /// Returns the filter of the source and of the request together.
    pub(super) fn filter(&self) -> Option<String> {
        match self.filters.as_slice() {
            [] => None,
            [only] => Some(only.clone()),
            several => {
                Some(several.iter().map(|filter| format!("({filter})")).collect::<Vec<_>>().join(" and "))
            }
        }
    }
}

fn filter_of(parameters: Option<&RetrievalObject<'_>>) -> Result<Option<String>, ApiError> {
    let filter = parameters.map(|parameters| parameters.text("filterAddOn")).transpose()?.flatten();
    Ok(filter.filter(|filter| !filter.trim().is_empty()).map(str::to_owned))
}

/// Returns the names in a list of `{"name": …}`, separated by commas. `None` if there are none.
fn field_names(given: &RetrievalObject<'_>, member: &str) -> Result<Option<String>, ApiError> {
    let mut names = Vec::new();
    for field in given.objects(member)? {
        names.push(field.required_text("name")?);
    }
    Ok((!names.is_empty()).then(|| names.join(",")))
}

/// Returns the questions: the last message of a user (agents), or all intents (bases).
fn questions(request: &RetrievalObject<'_>) -> Result<Vec<String>, ApiError> {
    let mut questions = Vec::new();
    for intent in request.objects("intents")? {
        questions.extend(intent.text("search")?.map(str::to_owned));
    }
    if questions.is_empty() {
        let mut last = None;
        for message in request.objects("messages")? {
            if message.text("role")?.is_none_or(|role| role.eq_ignore_ascii_case("user")) {
                last = Some(message);
            }
        }
        for part in last.map(|message| message.objects("content")).transpose()?.into_iter().flatten() {
            questions.extend(part.text("text")?.map(str::to_owned));
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
