//! Read requests of the tools: definitions, searches, documents, tokens.

use bindpost_azure_search_model::definition::{
    FieldType, IndexField, IndexSchema, PrimitiveType, VectorAttributes,
};
use serde_json::{Map, Value, json};

use crate::service::client::{SearchClient, ServiceRequest, ServiceResponse, odata_key};
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;

/// Maximum length of a text that is sent to be analyzed, in characters.
const ANALYZED: usize = 50_000;

/// A read-only view of the service.
#[derive(Clone, Debug)]
pub(crate) struct ServiceReader {
    client: SearchClient,
    /// Sent as `x-ms-client-request-id`.
    request_id: Option<String>,
}

impl ServiceReader {
    pub(crate) fn new(shared: &SearchServerState, request_id: Option<String>) -> ServiceReader {
        ServiceReader { client: shared.client.clone(), request_id }
    }

    pub(crate) fn of_client(client: &SearchClient) -> ServiceReader {
        ServiceReader { client: client.clone(), request_id: None }
    }

    /// Returns the definition of an index, or of the index of an alias.
    pub(crate) async fn index(&self, name: &str) -> Result<IndexDescription, ServiceFailure> {
        IndexDescription::read(self.definition(name).await?.body)
    }

    /// Returns the response with the definition and its ETag.
    pub(crate) async fn definition(&self, name: &str) -> Result<ServiceResponse, ServiceFailure> {
        if name.chars().count() > 128 {
            let message = "the name of the index is longer than 128 characters";
            return Err(ServiceFailure::new(Kind::InvalidRequest, message));
        }
        let read = |name: &str| self.send(self.client.get(format!("indexes{}", odata_key(name))));
        let missing = match read(name).await {
            Err(failure) if failure.kind == Kind::ResourceNotFound => failure,
            Err(failure) if failure.kind == Kind::Unauthorized => {
                let fix = "this tool reads the definition of the index: a query key is not enough";
                return Err(failure.with("fix", fix));
            }
            read => return read,
        };
        // Not every service accepts an alias in the path of a definition.
        let alias = self.send(self.client.get(format!("aliases{}", odata_key(name)))).await;
        match alias.as_ref().ok().and_then(|alias| alias_target(&alias.body)) {
            Some(index) => read(index).await,
            None => Err(missing.with("fix", "call listIndexes to see the existing indexes")),
        }
    }

    pub(crate) async fn search(
        &self,
        index: &str,
        body: Map<String, Value>,
    ) -> Result<SearchResponse, ServiceFailure> {
        let path = format!("indexes{}/docs/search.post.search", odata_key(index));
        self.send(self.client.post(path, Value::Object(body)).repeatable()).await.map(SearchResponse)
    }

    /// Returns the document with this key, or `None` if it does not exist.
    pub(crate) async fn document(&self, index: &str, key: &str) -> Result<Option<Value>, ServiceFailure> {
        let call = self.client.get(format!("indexes{}/docs{}", odata_key(index), odata_key(key)));
        match self.send(call).await {
            Ok(answer) => Ok(Some(answer.body)),
            // A key with invalid characters cannot be looked up.
            Err(failure) if failure.kind == Kind::ResourceNotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Returns the tokens that an analyzer produces from a text, in order.
    pub(crate) async fn tokens(
        &self,
        index: &str,
        analyzer: &str,
        text: &str,
    ) -> Result<Vec<String>, ServiceFailure> {
        let text: String = text.chars().take(ANALYZED).collect();
        let path = format!("indexes{}/search.analyze", odata_key(index));
        let call = self.client.post(path, json!({"text": text, "analyzer": analyzer})).repeatable();
        let body = self.send(call).await?.body;
        let tokens = body.get("tokens").and_then(Value::as_array).into_iter().flatten();
        Ok(tokens.filter_map(|token| token.get("token")?.as_str().map(str::to_owned)).collect())
    }

    /// Returns the document count and the storage size of an index.
    pub(crate) async fn statistics(&self, index: &str) -> Result<Value, ServiceFailure> {
        let call = self.client.get(format!("indexes{}/search.stats", odata_key(index)));
        self.send(call).await.map(|answer| answer.body)
    }

    async fn send(&self, call: ServiceRequest<'_>) -> Result<ServiceResponse, ServiceFailure> {
        call.request_id(self.request_id.as_deref()).send().await
    }
}

/// Returns the index of an alias.
pub(crate) fn alias_target(alias: &Value) -> Option<&str> {
    alias.get("indexes")?.get(0)?.as_str()
}

/// The response to a search.
#[derive(Clone, Debug)]
pub(crate) struct SearchResponse(pub(crate) ServiceResponse);

impl SearchResponse {
    pub(crate) fn documents(&self) -> &[Value] {
        self.0.body.get("value").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn count(&self) -> Option<u64> {
        self.0.body.get("@odata.count")?.as_u64()
    }

    /// Returns the buckets of a facet: value and count.
    pub(crate) fn facet(&self, path: &str) -> Vec<(&Value, u64)> {
        let buckets = self.0.body.get("@search.facets").and_then(|facets| facets.get(path));
        let buckets = buckets.and_then(Value::as_array).into_iter().flatten();
        buckets.filter_map(|bucket| Some((bucket.get("value")?, bucket.get("count")?.as_u64()?))).collect()
    }

    /// Returns why the response is partial (206), as a sentence.
    pub(crate) fn partial_reason(&self) -> Option<String> {
        let reason = self.0.body.get("@search.semanticPartialResponseReason").and_then(Value::as_str);
        match (self.0.status, reason) {
            (_, Some(reason)) => Some(format!(
                "Semantic ranking was not applied: these are the results of keywords and vectors. Reason of the service: {reason}. \
                 The embedded service has no semantic ranker and always returns this."
            )),
            (206, None) => Some("The service returned a partial response (206).".to_owned()),
            _ => None,
        }
    }
}

/// An index as the service describes it.
#[derive(Clone, Debug)]
pub(crate) struct IndexDescription {
    /// The name of the index, even if an alias was requested.
    pub(crate) name: String,
    pub(crate) schema: IndexSchema,
    pub(crate) json: Value,
}

impl IndexDescription {
    pub(crate) fn read(json: Value) -> Result<IndexDescription, ServiceFailure> {
        let broken = || ServiceFailure::new(Kind::ServerError, "the service returned no index definition");
        let name = json.get("name").and_then(Value::as_str).ok_or_else(broken)?.to_owned();
        let schema = IndexSchema::new(fields(&json, false)).ok_or_else(broken)?;
        Ok(IndexDescription { name, schema, json })
    }

    /// Returns the name of the key field.
    pub(crate) fn key(&self) -> &str {
        &self.schema.key().name
    }

    /// Returns the searchable text fields: those with the given paths, or all.
    pub(crate) fn texts(&self, only: Option<&[String]>) -> Vec<&IndexField> {
        let leaves = self.schema.leaves().into_iter();
        leaves
            .filter(|field| field.searchable && field.vector.is_none())
            .filter(|field| only.is_none_or(|only| only.contains(&field.path)))
            .collect()
    }

    pub(crate) fn vectors(&self) -> Vec<&IndexField> {
        self.schema.leaves().into_iter().filter(|field| field.vector.is_some()).collect()
    }

    /// Returns the names in an array of the definition, such as `scoringProfiles`.
    pub(crate) fn names(&self, pointer: &str) -> Vec<&str> {
        let list = self.json.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|element| element.get("name")?.as_str()).collect()
    }
}

/// Returns the fields of a definition or of a complex field. Missing attributes get Azure's defaults.
/// Nothing is rejected, because the service has validated the definition.
fn fields(json: &Value, below_collection: bool) -> Vec<IndexField> {
    let list = json.get("fields").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|json| field(json, below_collection)).collect()
}

fn field(json: &Value, below_collection: bool) -> Option<IndexField> {
    let text = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = parse_type(json.get("type")?.as_str()?)?;
    let mut field = IndexField::new(json.get("name")?.as_str()?, kind);
    let multiple = below_collection || kind.is_collection();
    if kind.primitive().is_none() {
        field.fields = fields(json, multiple);
        return Some(field);
    }
    let is_text = kind.primitive() == Some(PrimitiveType::String);
    let is_point = kind.primitive() == Some(PrimitiveType::GeographyPoint);
    let dimensions = json.get("dimensions").and_then(Value::as_u64);
    field.vector = dimensions.map(|dimensions| VectorAttributes {
        dimensions: usize::try_from(dimensions).unwrap_or(usize::MAX),
        profile: text("vectorSearchProfile").unwrap_or_default(),
        packed_bits: text("vectorEncoding").as_deref() == Some("packedBit"),
    });
    let is_vector = field.vector.is_some();
    let flag = |name: &str, default: bool| json.get(name).and_then(Value::as_bool).unwrap_or(default);
    field.key = flag("key", false);
    field.searchable = flag("searchable", is_text || is_vector);
    field.filterable = flag("filterable", !is_vector);
    field.sortable = flag("sortable", !is_vector && !multiple);
    field.facetable = flag("facetable", !is_vector && !is_point);
    field.retrievable = flag("retrievable", true);
    field.stored = flag("stored", true);
    field.normalizer = text("normalizer");
    if field.searchable && is_text {
        let both = text("analyzer").unwrap_or_else(|| "standard.lucene".to_owned());
        field.index_analyzer = Some(text("indexAnalyzer").unwrap_or_else(|| both.clone()));
        field.search_analyzer = Some(text("searchAnalyzer").unwrap_or(both));
    }
    let maps = json.get("synonymMaps").and_then(Value::as_array).into_iter().flatten();
    field.synonym_maps = maps.filter_map(|map| map.as_str().map(str::to_owned)).collect();
    Some(field)
}

fn parse_type(name: &str) -> Option<FieldType> {
    let inner = name.strip_prefix("Collection(").and_then(|rest| rest.strip_suffix(')'));
    let primitive = match inner.unwrap_or(name) {
        "Edm.String" => PrimitiveType::String,
        "Edm.Boolean" => PrimitiveType::Boolean,
        "Edm.Int32" => PrimitiveType::Int32,
        "Edm.Int64" => PrimitiveType::Int64,
        "Edm.Double" => PrimitiveType::Double,
        "Edm.DateTimeOffset" => PrimitiveType::DateTimeOffset,
        "Edm.GeographyPoint" => PrimitiveType::GeographyPoint,
        "Edm.Single" => PrimitiveType::Single,
        "Edm.Half" => PrimitiveType::Half,
        "Edm.Int16" => PrimitiveType::Int16,
        "Edm.SByte" => PrimitiveType::SByte,
        "Edm.Byte" => PrimitiveType::Byte,
        "Edm.ComplexType" if inner.is_some() => return Some(FieldType::ManyComplex),
        "Edm.ComplexType" => return Some(FieldType::Complex),
        _ => return None,
    };
    Some(if inner.is_some() { FieldType::Many(primitive) } else { FieldType::One(primitive) })
}

/// Returns the name of a type in definitions.
pub(crate) fn type_name(kind: FieldType) -> String {
    let name = match kind.primitive() {
        None => "ComplexType".to_owned(),
        Some(primitive) => format!("{primitive:?}"),
    };
    match kind.is_collection() {
        true => format!("Collection(Edm.{name})"),
        false => format!("Edm.{name}"),
    }
}

/// Returns all values of a document at a path such as `rooms/tags`. Collections are traversed and nulls
/// are skipped.
pub(crate) fn values_at<'a>(document: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut values = vec![document];
    for name in path.split('/') {
        values = values.into_iter().flat_map(elements).filter_map(|value| value.get(name)).collect();
    }
    values.into_iter().flat_map(elements).filter(|value| !value.is_null()).collect()
}

fn elements(value: &Value) -> &[Value] {
    match value {
        Value::Array(elements) => elements,
        one => std::slice::from_ref(one),
    }
}

/// Returns a string as an OData literal.
pub(crate) fn odata_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_through_collections() {
        let document = json!({"rooms": [{"tags": ["a", null]}, {"tags": ["b"]}, {}], "city": null, "n": 1});
        assert_eq!(values_at(&document, "rooms/tags"), [&json!("a"), &json!("b")]);
        assert_eq!(values_at(&document, "n"), [&json!(1)]);
        assert!(values_at(&document, "city").is_empty());
        assert!(values_at(&document, "n/deeper").is_empty());
    }

    #[test]
    fn types_are_read_and_written_alike() {
        for name in ["Edm.String", "Collection(Edm.Single)", "Edm.ComplexType", "Collection(Edm.ComplexType)"]
        {
            assert_eq!(type_name(parse_type(name).unwrap()), name);
        }
        assert_eq!(parse_type("Edm.Unheard"), None);
    }
}
