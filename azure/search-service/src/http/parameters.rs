//! Options of GET as parameters of POST, and back.

use serde_json::{Map, Number, Value};

use crate::ApiError;

use super::request::{self, Options};

/// One parameter of a search: its name as an option of GET, its name in the body of POST, and its type.
struct Parameter(&'static str, &'static str, Shape);

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Text,
    Boolean,
    Integer,
    Number,
    /// The option may be there several times; the body has an array.
    Many,
}

use Shape::{Boolean, Integer, Many, Text};

const SEARCH: &[Parameter] = &[
    Parameter("search", "search", Text),
    Parameter("$count", "count", Boolean),
    Parameter("facet", "facets", Many),
    Parameter("$filter", "filter", Text),
    Parameter("highlight", "highlight", Text),
    Parameter("highlightPostTag", "highlightPostTag", Text),
    Parameter("highlightPreTag", "highlightPreTag", Text),
    Parameter("minimumCoverage", "minimumCoverage", Shape::Number),
    Parameter("$orderby", "orderby", Text),
    Parameter("queryType", "queryType", Text),
    Parameter("scoringParameter", "scoringParameters", Many),
    Parameter("scoringProfile", "scoringProfile", Text),
    Parameter("searchFields", "searchFields", Text),
    Parameter("searchMode", "searchMode", Text),
    Parameter("scoringStatistics", "scoringStatistics", Text),
    Parameter("sessionId", "sessionId", Text),
    Parameter("$select", "select", Text),
    Parameter("$skip", "skip", Integer),
    Parameter("$top", "top", Integer),
    Parameter("semanticConfiguration", "semanticConfiguration", Text),
    Parameter("semanticErrorHandling", "semanticErrorHandling", Text),
    Parameter("semanticMaxWaitInMilliseconds", "semanticMaxWaitInMilliseconds", Integer),
    Parameter("answers", "answers", Text),
    Parameter("captions", "captions", Text),
    Parameter("semanticQuery", "semanticQuery", Text),
    Parameter("queryRewrites", "queryRewrites", Text),
    Parameter("debug", "debug", Text),
    Parameter("queryLanguage", "queryLanguage", Text),
    Parameter("speller", "speller", Text),
    Parameter("semanticFields", "semanticFields", Text),
];

const SUGGEST: &[Parameter] = &[
    Parameter("search", "search", Text),
    Parameter("suggesterName", "suggesterName", Text),
    Parameter("$filter", "filter", Text),
    Parameter("fuzzy", "fuzzy", Boolean),
    Parameter("highlightPostTag", "highlightPostTag", Text),
    Parameter("highlightPreTag", "highlightPreTag", Text),
    Parameter("minimumCoverage", "minimumCoverage", Shape::Number),
    Parameter("$orderby", "orderby", Text),
    Parameter("searchFields", "searchFields", Text),
    Parameter("$select", "select", Text),
    Parameter("$top", "top", Integer),
];

const AUTOCOMPLETE: &[Parameter] = &[
    Parameter("search", "search", Text),
    Parameter("suggesterName", "suggesterName", Text),
    Parameter("autocompleteMode", "autocompleteMode", Text),
    Parameter("$filter", "filter", Text),
    Parameter("fuzzy", "fuzzy", Boolean),
    Parameter("highlightPostTag", "highlightPostTag", Text),
    Parameter("highlightPreTag", "highlightPreTag", Text),
    Parameter("minimumCoverage", "minimumCoverage", Shape::Number),
    Parameter("searchFields", "searchFields", Text),
    Parameter("$top", "top", Integer),
];

pub(super) fn of_search(options: &Options) -> Result<Map<String, Value>, ApiError> {
    from_options(options, SEARCH)
}

pub(super) fn of_suggest(options: &Options) -> Result<Map<String, Value>, ApiError> {
    from_options(options, SUGGEST)
}

pub(super) fn of_autocomplete(options: &Options) -> Result<Map<String, Value>, ApiError> {
    from_options(options, AUTOCOMPLETE)
}

/// Options that ask for these parameters of a search, each with `&` before it.
///
/// What an option cannot say, such as a vector, is left out.
pub fn to_options(parameters: &Map<String, Value>) -> String {
    let mut options = String::new();
    for Parameter(option, member, _) in SEARCH {
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

fn from_options(options: &Options, known: &[Parameter]) -> Result<Map<String, Value>, ApiError> {
    let mut parameters = Map::new();
    for (name, value) in options.iter() {
        let Some(Parameter(option, member, shape)) = known.iter().find(|known| known.0 == name) else {
            refuse_unknown(name, known)?;
            continue;
        };
        let value = typed(option, value, *shape)?;
        match parameters.get_mut(*member) {
            Some(Value::Array(values)) => values.push(value),
            Some(_) => {
                return Err(ApiError::invalid(format!(
                    "The option '{option}' is there twice. Give it once."
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

/// Options of others are ignored, but not those that look like a mistake.
fn refuse_unknown(name: &str, known: &[Parameter]) -> Result<(), ApiError> {
    let same = |known: &&Parameter| {
        known.0.trim_start_matches('$').eq_ignore_ascii_case(name.trim_start_matches('$')) || known.1 == name
    };
    if let Some(meant) = known.iter().find(same) {
        return Err(ApiError::invalid(format!("The option '{name}' is written '{}' here.", meant.0)));
    }
    if name.starts_with('$') {
        let names: Vec<_> = known.iter().map(|known| known.0).filter(|name| name.starts_with('$')).collect();
        return Err(ApiError::invalid(format!(
            "There is no option '{name}' here, only {}.",
            names.join(", ")
        )));
    }
    Ok(())
}

fn typed(option: &str, value: &str, shape: Shape) -> Result<Value, ApiError> {
    match shape {
        Text | Many => Ok(Value::from(value)),
        Boolean => request::boolean(option, value).map(Value::Bool),
        Integer => value
            .parse::<i64>()
            .map(Value::from)
            .map_err(|_| ApiError::invalid(format!("The option '{option}' must be a whole number."))),
        Shape::Number => value
            .parse()
            .ok()
            .and_then(Number::from_f64)
            .map(Value::Number)
            .ok_or_else(|| ApiError::invalid(format!("The option '{option}' must be a number."))),
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
        of_search(&Options::parse(Some(query)).unwrap()).map(Value::Object)
    }

    #[test]
    fn options_become_the_body_of_post() {
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
    fn mistakes_are_refused_and_strangers_ignored() {
        for (query, hint) in [
            ("filter=x", "'$filter'"),
            ("$searchMode=all", "'searchMode'"),
            ("facets=x", "'facet'"),
            ("$expand=x", "$filter"),
            ("$top=many", "whole number"),
            ("$count=yes", "true or false"),
            ("minimumCoverage=NaN", "number"),
            ("search=a&search=b", "twice"),
        ] {
            let error = search(query).unwrap_err();
            assert!(error.message.contains(hint), "{query}: {error}");
        }
        assert_eq!(search("utm_source=x&api-key=y").unwrap(), json!({}));
    }

    #[test]
    fn parameters_become_options_again() {
        let query = "search=a%20%26b&$count=true&facet=cat&facet=tags&$filter=x%20eq%20%27%C3%A4%27&$skip=50";
        let Value::Object(parameters) = search(query).unwrap() else { panic!("no object") };
        assert_eq!(to_options(&parameters), format!("&{query}"));
    }
}
