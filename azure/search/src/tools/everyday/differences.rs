//! Compares a definition that a client wants to save with the current one of the service.

use serde_json::{Map, Value, json};

/// Maximum number of differences.
const MAX_DIFFERENCES: usize = 20;
/// Maximum size of a value, in bytes of JSON.
const LONGEST: usize = 300;

/// Returns the differences, `{path, yours, current}` each, and the number of further ones.
///
/// Defaults of the service are not differences. A member that is missing in `yours` is one only if the
/// current value is an array, or an object at the root.
pub(crate) fn differences(yours: &Value, current: &Value) -> (Vec<Value>, usize) {
    let mut found = Vec::new();
    compare("", yours, current, &mut found);
    let more = found.len().saturating_sub(MAX_DIFFERENCES);
    found.truncate(MAX_DIFFERENCES);
    (found, more)
}

fn compare(path: &str, yours: &Value, current: &Value, found: &mut Vec<Value>) {
    match (yours, current) {
        (Value::Object(yours), Value::Object(current)) => compare_members(path, yours, current, found),
        (Value::Array(yours), Value::Array(current)) => compare_items(path, yours, current, found),
        (yours, current) if yours == current => {}
        (yours, current) if is_nothing(yours) && is_nothing(current) => {}
        // `1` and `1.0` are the same number.
        (Value::Number(yours), Value::Number(current)) if yours.as_f64() == current.as_f64() => {}
        (yours, current) => {
            let path = if path.is_empty() { "/" } else { path };
            found.push(
                json!({"path": path, "yours": shortened_value(yours), "current": shortened_value(current)}),
            );
        }
    }
}

fn compare_members(
    path: &str,
    yours: &Map<String, Value>,
    current: &Map<String, Value>,
    found: &mut Vec<Value>,
) {
    let is_root = path.is_empty();
    let names = yours.keys().chain(current.keys().filter(|name| !yours.contains_key(*name)));
    for name in names.filter(|name| !name.starts_with("@odata.etag") && !name.starts_with("@odata.context")) {
        let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        match (yours.get(name), current.get(name)) {
            (Some(yours), Some(current)) => compare(&path, yours, current, found),
            (Some(yours), None) => compare(&path, yours, &Value::Null, found),
            (None, Some(filled @ Value::Array(_))) => compare(&path, &Value::Null, filled, found),
            // `similarity` is the only object at the root that the service fills in.
            (None, Some(filled @ Value::Object(_))) if is_root && name != "similarity" => {
                compare(&path, &Value::Null, filled, found);
            }
            _ => {}
        }
    }
}

/// Items with names are compared by name, others by position.
fn compare_items(path: &str, yours: &[Value], current: &[Value], found: &mut Vec<Value>) {
    let name_of = |item: &Value| item.get("name").and_then(Value::as_str).map(str::to_owned);
    let named = |items: &[Value]| !items.is_empty() && items.iter().all(|item| name_of(item).is_some());
    if !named(yours) || !named(current) {
        let most = yours.len().max(current.len());
        for at in 0..most {
            let (yours, current) = (yours.get(at), current.get(at));
            compare(
                &format!("{path}/{at}"),
                yours.unwrap_or(&Value::Null),
                current.unwrap_or(&Value::Null),
                found,
            );
        }
        return;
    }
    let find = |items: &[Value], name: &str| {
        items.iter().find(|item| name_of(item).as_deref() == Some(name)).cloned().unwrap_or_default()
    };
    let missing = current.iter().filter(|item| !yours.iter().any(|other| name_of(other) == name_of(item)));
    for name in yours.iter().chain(missing).filter_map(name_of) {
        compare(&format!("{path}/{name}"), &find(yours, &name), &find(current, &name), found);
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_nothing),
        _ => false,
    }
}

/// Returns a value, or the beginning of its JSON if it is long.
fn shortened_value(value: &Value) -> Value {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} …", text.get(..end).unwrap_or_default()).into(),
        None => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_real_differences_are_returned() {
        let yours = json!({"name": "a", "analyzers": null, "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "new", "type": "Edm.String"},
            {"name": "size", "type": "Edm.Int32", "facetable": true}]});
        let current = json!({"name": "a", "@odata.etag": "\"0x1\"", "analyzers": [], "suggesters": [], "fields": [
            {"name": "size", "type": "Edm.Int64", "facetable": true, "searchable": false},
            {"name": "id", "type": "Edm.String", "key": true, "searchable": true},
            {"name": "old", "type": "Edm.String"}],
            "scoringProfiles": [{"name": "p"}]});
        let (found, more) = differences(&yours, &current);
        assert_eq!(more, 0);
        let paths: Vec<&str> = found.iter().filter_map(|one| one["path"].as_str()).collect();
        assert_eq!(paths, ["/fields/new", "/fields/size/type", "/fields/old", "/scoringProfiles"]);
        assert_eq!(
            found[1],
            json!({"path": "/fields/size/type", "yours": "Edm.Int32", "current": "Edm.Int64"})
        );
        assert_eq!(found[2]["yours"], Value::Null);
    }

    #[test]
    fn many_differences_are_counted_and_long_values_cut() {
        let yours: Vec<u32> = (0..50).collect();
        let current: Vec<u32> = (100..150).collect();
        let (found, more) = differences(&json!(yours), &json!(current));
        assert_eq!((found.len(), more), (MAX_DIFFERENCES, 30));
        let (found, _) = differences(&json!("x"), &json!("y".repeat(10_000)));
        assert!(found[0].to_string().len() < 400 + LONGEST);
    }
}
