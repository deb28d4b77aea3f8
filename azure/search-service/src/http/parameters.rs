//! Converts query parameters of GET into body parameters of POST, and back.

use bindpost_azure_search_model::ApiError;
use serde_json::{Map, Number, Value};

use super::request::{self, QueryOptions};

/// A parameter of a search: its name in GET, its name in the body of POST, and its type.
struct SearchParameter(&'static str, &'static str, ParameterType);

#[derive(Clone, Copy, PartialEq)]
enum ParameterType {
    Text,
    Boolean,
    Integer,
    Number,
    /// The query parameter may be repeated. The body has an array.
    Many,
}

use ParameterType::{Boolean, Integer, Many, Text};

const SEARCH: &[SearchParameter] = &[
    SearchParameter("search", "search", Text),
    SearchParameter("$count", "count", Boolean),
    SearchParameter("facet", "facets", Many),
    SearchParameter("$filter", "filter", Text),
    SearchParameter("highlight", "highlight", Text),
    SearchParameter("highlightPostTag", "highlightPostTag", Text),
    SearchParameter("highlightPreTag", "highlightPreTag", Text),
    SearchParameter("minimumCoverage", "minimumCoverage", ParameterType::Number),
    SearchParameter("$orderby", "orderby", Text),
    SearchParameter("queryType", "queryType", Text),
    SearchParameter("scoringParameter", "scoringParameters", Many),
    SearchParameter("scoringProfile", "scoringProfile", Text),
    SearchParameter("searchFields", "searchFields", Text),
    SearchParameter("searchMode", "searchMode", Text),
    SearchParameter("scoringStatistics", "scoringStatistics", Text),
    SearchParameter("sessionId", "sessionId", Text),
    SearchParameter("$select", "select", Text),
    SearchParameter("$skip", "skip", Integer),
    SearchParameter("$top", "top", Integer),
    SearchParameter("semanticConfiguration", "semanticConfiguration", Text),
    SearchParameter("semanticErrorHandling", "semanticErrorHandling", Text),
    SearchParameter("semanticMaxWaitInMilliseconds", "semanticMaxWaitInMilliseconds", Integer),
    SearchParameter("answers", "answers", Text),
    SearchParameter("captions", "captions", Text),
    SearchParameter("semanticQuery", "semanticQuery", Text),
    SearchParameter("queryRewrites", "queryRewrites", Text),
    SearchParameter("debug", "debug", Text),
    SearchParameter("queryLanguage", "queryLanguage", Text),
    SearchParameter("speller", "speller", Text),
    SearchParameter("semanticFields", "semanticFields", Text),
];

const SUGGEST: &[SearchParameter] = &[
    SearchParameter("search", "search", Text),
    SearchParameter("suggesterName", "suggesterName", Text),
    SearchParameter("$filter", "filter", Text),
    SearchParameter("fuzzy", "fuzzy", Boolean),
    SearchParameter("highlightPostTag", "highlightPostTag", Text),
    SearchParameter("highlightPreTag", "highlightPreTag", Text),
    SearchParameter("minimumCoverage", "minimumCoverage", ParameterType::Number),
    SearchParameter("$orderby", "orderby", Text),
    SearchParameter("searchFields", "searchFields", Text),
    SearchParameter("$select", "select", Text),
    SearchParameter("$top", "top", Integer),
];

const AUTOCOMPLETE: &[SearchParameter] = &[
    SearchParameter("search", "search", Text),
    SearchParameter("suggesterName", "suggesterName", Text),
    SearchParameter("autocompleteMode", "autocompleteMode", Text),
    SearchParameter("$filter", "filter", Text),
    SearchParameter("fuzzy", "fuzzy", Boolean),
    SearchParameter("highlightPostTag", "highlightPostTag", Text),
    SearchParameter("highlightPreTag", "highlightPreTag", Text),
    SearchParameter("minimumCoverage", "minimumCoverage", ParameterType::Number),
    SearchParameter("searchFields", "searchFields", Text),
    SearchParameter("$top", "top", Integer),
];

pub(super) fn search_parameters(options: &QueryOptions) -> Result<Map<String, Value>, ApiError> {
    from_options(options, SEARCH)
}

pub(super) fn suggest_parameters(options: &QueryOptions) -> Result<Map<String, Value>, ApiError> {
    from_options(options, SUGGEST)
}

pub(super) fn autocomplete_parameters(options: &QueryOptions) -> Result<Map<String, Value>, ApiError> {
    from_options(options, AUTOCOMPLETE)
}

/// Returns the query string for these parameters of a search. Each parameter starts with `&`.
///
/// Parameters without a query string form, such as vectors, are skipped.
pub(crate) fn to_options(parameters: &Map<String, Value>) -> String {
    let mut options = String::new();
    for SearchParameter(option, member, _) in SEARCH {
        let values = match parameters.get(*member) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(values)) => values.as_slice(),
            Some(value) => std::slice::from_ref(value),
        };
        for value in values {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            options.push_str(&format!("&{option}={}", encode(&text)));
        }
    }
    options
}

fn from_options(options: &QueryOptions, known: &[SearchParameter]) -> Result<Map<String, Value>, ApiError> {
    let mut parameters = Map::new();
    for (name, value) in options.iter() {
        let Some(SearchParameter(option, member, shape)) = known.iter().find(|known| known.0 == name) else {
            refuse_unknown(name, known)?;
            continue;
        };
        let value = typed(option, value, *shape)?;
        match parameters.get_mut(*member) {
            Some(Value::Array(values)) => values.push(value),
            Some(_) => {
                return Err(ApiError::invalid(format!(
                    "The query parameter '{option}' is repeated. Send it once."
                )));
            }
            None if *shape == Many => {
                parameters.insert((*member).to_owned(), Value::Array(vec![value]));
            }
            None => {
                parameters.insert((*member).to_owned(), value);
            }
        }
    }
    Ok(parameters)
}

/// Rejects an unknown query parameter that looks like a mistake. Other unknown parameters are ignored.
fn refuse_unknown(name: &str, known: &[SearchParameter]) -> Result<(), ApiError> {
    let same = |known: &&SearchParameter| {
        known.0.trim_start_matches('$').eq_ignore_ascii_case(name.trim_start_matches('$')) || known.1 == name
    };
    if let Some(meant) = known.iter().find(same) {
        return Err(ApiError::invalid(format!(
            "The query parameter '{name}' is not known. Use '{}'.",
            meant.0
        )));
    }
    if name.starts_with('$') {
        let names: Vec<_> = known.iter().map(|known| known.0).filter(|name| name.starts_with('$')).collect();
        return Err(ApiError::invalid(format!(
            "The query parameter '{name}' is not supported here. Use one of: {}.",
            names.join(", ")
        )));
    }
    Ok(())
}

fn typed(option: &str, value: &str, shape: ParameterType) -> Result<Value, ApiError> {
    match shape {
        Text | Many => Ok(Value::from(value)),
        Boolean => request::boolean(option, value).map(Value::Bool),
        Integer => value.parse::<i64>().map(Value::from).map_err(|_| {
            ApiError::invalid(format!("The query parameter '{option}' must be a whole number."))
        }),
        ParameterType::Number => value
            .parse()
            .ok()
            .and_then(Number::from_f64)
            .map(Value::Number)
            .ok_or_else(|| ApiError::invalid(format!("The query parameter '{option}' must be a number."))),
    }
}

fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn search(query: &str) -> Result<Value, ApiError> {
        search_parameters(&QueryOptions::parse(Some(query)).unwrap()).map(Value::Object)
    }

    #[test]
    fn query_parameters_become_the_body_of_post() {
        let query = "api-version=2025-09-01&search=a%20b&$count=true&facet=cat,count:5&facet=tags&$top=5&$skip=10\
                     &$filter=id%20eq%20%271%27&$orderby=a%20desc,b&minimumCoverage=80.5&scoringParameter=x-1\
                     &queryType=full&$select=id,t";
        assert_eq!(
            search(query).unwrap(),
            json!({
                "search": "a b", "count": true, "facets": ["cat,count:5", "tags"], "top": 5, "skip": 10,
                "filter": "id eq '1'", "orderby": "a desc,b", "minimumCoverage": 80.5,
                "scoringParameters": ["x-1"], "queryType": "full", "select": "id,t",
            })
        );
    }

    #[test]
    fn rejects_mistakes_and_ignores_other_parameters() {
        for (query, hint) in [
            ("filter=x", "'$filter'"),
            ("$searchMode=all", "'searchMode'"),
            ("facets=x", "'facet'"),
            ("$expand=x", "$filter"),
            ("$top=many", "whole number"),
            ("$count=yes", "true or false"),
            ("minimumCoverage=NaN", "number"),
            ("search=a&search=b", "repeated"),
        ] {
            let error = search(query).unwrap_err();
            assert!(error.message.contains(hint), "{query}: {error}");
        }
        assert_eq!(search("utm_source=x&api-key=y").unwrap(), json!({}));
    }

    #[test]
    fn parameters_become_query_parameters_again() {
        let query = "search=a%20%26b&$count=true&facet=cat&facet=tags&$filter=x%20eq%20%27%C3%A4%27&$skip=50";
        let Value::Object(parameters) = search(query).unwrap() else { panic!("no object") };
        assert_eq!(to_options(&parameters), format!("&{query}"));
    }
}
