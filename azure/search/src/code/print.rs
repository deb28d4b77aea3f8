//! Writes JSON as people read it: the members in the order of a reader, and each field, rule and query on
//! its own line.

use serde_json::{Map, Value};

/// The order of the first members. Others follow in the order of their names.
const ORDER: [&str; 40] = [
    "version",
    "apiVersion",
    "id",
    "search",
    "judgements",
    "expect",
    "reject",
    "name",
    "@odata.type",
    "kind",
    "type",
    "description",
    "format",
    "synonyms",
    "indexes",
    "dataSourceName",
    "skillsetName",
    "targetIndexName",
    "disabled",
    "schedule",
    "credentials",
    "container",
    "key",
    "searchable",
    "filterable",
    "sortable",
    "facetable",
    "retrievable",
    "stored",
    "analyzer",
    "indexAnalyzer",
    "searchAnalyzer",
    "normalizer",
    "synonymMaps",
    "dimensions",
    "vectorSearchProfile",
    "fields",
    "suggesters",
    "scoringProfiles",
    "defaultScoringProfile",
];

/// Maximum length of a line.
const LINE: usize = 100;
/// Maximum length of a line with an object of plain values, such as a field.
const PLAIN_LINE: usize = 170;

/// Returns a definition as the text of a file.
pub(crate) fn readable(definition: &Value) -> String {
    let mut out = String::new();
    write(definition, 0, "", &mut out, true);
    out.push('\n');
    out
}

/// Returns a value on one line.
pub(crate) fn one_line(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> = in_order(members)
                .into_iter()
                .map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), one_line(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(one_line).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn in_order(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let place = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
    let mut members: Vec<(&String, &Value)> = members.iter().collect();
    members.sort_by_key(|(name, _)| place(name));
    members
}

/// Writes a value that is `level` levels deep, behind the name of its member.
fn write(value: &Value, level: usize, member: &str, out: &mut String, is_root: bool) {
    let has_lines = member == "synonyms" && value.is_array();
    let line = one_line(value);
    let is_plain = matches!(value, Value::Object(members) if members.values().all(is_plain_member));
    // The indentation, the line, and the name before it.
    let fits = level * 2 + line.chars().count() + member.len() <= if is_plain { PLAIN_LINE } else { LINE };
    if fits && !is_root && !has_lines {
        out.push_str(&line);
        return;
    }
    let (open, close) = match value {
        Value::Object(members) if !members.is_empty() => ('{', '}'),
        Value::Array(items) if !items.is_empty() => ('[', ']'),
        _ => {
            out.push_str(&line);
            return;
        }
    };
    out.push(open);
    let indent = "  ".repeat(level + 1);
    let mut separator = "\n";
    let mut begin = |out: &mut String| {
        out.push_str(separator);
        out.push_str(&indent);
        separator = ",\n";
    };
    match value {
        Value::Object(members) => {
            for (name, value) in in_order(members) {
                begin(out);
                out.push_str(&format!("{}: ", Value::from(name.as_str())));
                write(value, level + 1, name, out, false);
            }
        }
        Value::Array(items) => {
            for item in items {
                begin(out);
                write(item, level + 1, "", out, false);
            }
        }
        _ => {}
    }
    out.push('\n');
    out.push_str(&"  ".repeat(level));
    out.push(close);
}

/// Whether a value is short enough for a line with others: no object, and a list only of plain values.
fn is_plain_member(value: &Value) -> bool {
    match value {
        Value::Object(_) => false,
        Value::Array(items) => items.iter().all(|item| !item.is_object() && !item.is_array()),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_has_its_name_first_and_one_line_for_each_field() {
        let index = json!({
            "similarity": {"@odata.type": "x"},
            "fields": [
                {"type": "Edm.String", "name": "id", "key": true},
                {"type": "Collection(Edm.ComplexType)", "name": "rooms", "fields": [
                    {"name": "kind", "analyzer": "en.lucene", "searchable": true, "type": "Edm.String"},
                    {"type": "Edm.Double", "name": "rate"}]},
            ],
            "name": "hotels",
        });
        let text = "{\n  \"name\": \"hotels\",\n  \"fields\": [\n    {\"name\": \"id\", \"type\": \"Edm.String\", \"key\": true},\n    \
                    {\n      \"name\": \"rooms\",\n      \"type\": \"Collection(Edm.ComplexType)\",\n      \"fields\": [\n        \
                    {\"name\": \"kind\", \"type\": \"Edm.String\", \"searchable\": true, \"analyzer\": \"en.lucene\"},\n        \
                    {\"name\": \"rate\", \"type\": \"Edm.Double\"}\n      ]\n    }\n  ],\n  \"similarity\": {\"@odata.type\": \"x\"}\n}\n";
        assert_eq!(readable(&index), text);
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), index);
    }

    #[test]
    fn every_rule_of_a_synonym_map_has_its_line() {
        let text = readable(&json!({"name": "words", "synonyms": ["a, b", "c => d"]}));
        assert_eq!(
            text,
            "{\n  \"name\": \"words\",\n  \"synonyms\": [\n    \"a, b\",\n    \"c => d\"\n  ]\n}\n"
        );
    }
}
