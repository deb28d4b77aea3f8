//! Settings that change `host.json`: `AzureFunctionsJobHost__extensions__mcp__serverName`.

use serde_json::{Map, Value};

use super::settings::Settings;

/// The prefix of settings that override `host.json`.
const PREFIX: &str = "AzureFunctionsJobHost";
/// A section of `host.json` that settings may override without the prefix.
const LANGUAGE_WORKERS: &str = "languageWorkers";
/// The maximum depth of a path into `host.json`.
const DEEPEST: usize = 16;

/// Applies the settings that override `host.json`, then replaces `%NAME%` in its strings.
pub(super) fn apply(host: &mut Map<String, Value>, settings: &Settings) {
    let mut overrides: Vec<(Vec<String>, &str)> =
        settings.iter().filter_map(|(name, value)| Some((host_json_path(name)?, value))).collect();
    // Elements of arrays are sorted by number: 2 before 10.
    let number_first = |part: &String| (part.parse::<usize>().unwrap_or(usize::MAX), part.to_lowercase());
    overrides.sort_by_cached_key(|(path, _)| path.iter().map(number_first).collect::<Vec<_>>());
    for (path, value) in overrides {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        if let [first, rest @ ..] = parts.as_slice() {
            set(member_mut(host, first), rest, value);
        }
    }
    host.values_mut().for_each(|value| expand(value, settings));
}

/// Returns the path into `host.json` that a setting overrides, if any.
fn host_json_path(name: &str) -> Option<Vec<String>> {
    let name = name.replace("__", ":");
    let mut parts: Vec<String> = name.split(':').map(str::to_owned).collect();
    match parts.first()? {
        first if first.eq_ignore_ascii_case(PREFIX) => drop(parts.remove(0)),
        first if first.eq_ignore_ascii_case(LANGUAGE_WORKERS) => {}
        _ => return None,
    }
    let is_valid = !parts.is_empty() && parts.len() <= DEEPEST && parts.iter().all(|part| !part.is_empty());
    is_valid.then_some(parts)
}

fn set(place: &mut Value, path: &[&str], text: &str) {
    let [first, rest @ ..] = path else {
        *place = Value::String(text.to_owned());
        return;
    };
    if let (Value::Array(items), Ok(index)) = (&mut *place, first.parse::<usize>()) {
        match items.get_mut(index) {
            Some(item) => set(item, rest, text),
            None => {
                let mut item = Value::Null;
                set(&mut item, rest, text);
                items.push(item);
            }
        }
        return;
    }
    if !place.is_object() {
        *place = Value::Object(Map::new());
    }
    if let Value::Object(object) = place {
        set(member_mut(object, first), rest, text);
    }
}

/// Returns the member, matched without regard to case. It is created if it does not exist.
fn member_mut<'a>(object: &'a mut Map<String, Value>, name: &str) -> &'a mut Value {
    let spelling = match object.contains_key(name) {
        true => None,
        false => object.keys().find(|key| key.eq_ignore_ascii_case(name)).cloned(),
    };
    object.entry(spelling.unwrap_or_else(|| name.to_owned())).or_insert(Value::Null)
}

fn expand(value: &mut Value, settings: &Settings) {
    match value {
        Value::String(text) if text.contains('%') => *text = settings.expand(text),
        Value::Array(items) => items.iter_mut().for_each(|item| expand(item, settings)),
        Value::Object(object) => object.values_mut().for_each(|value| expand(value, settings)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn applied(host: Value, settings: &[(&str, &str)]) -> Value {
        let Value::Object(mut host) = host else { panic!() };
        let values = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        apply(&mut host, &Settings::new([], values));
        host.into()
    }

    #[test]
    fn a_setting_finds_its_member_in_any_case() {
        let host = json!({"Extensions": {"mcp": {"ServerName": "a", "x": 1}}});
        let settings = [
            ("azurefunctionsjobhost__extensions__MCP__serverName", "b"),
            ("AzureFunctionsJobHost:version", "2.0"),
        ];
        let expected = json!({"Extensions": {"mcp": {"ServerName": "b", "x": 1}}, "version": "2.0"});
        assert_eq!(applied(host, &settings), expected);
    }

    #[test]
    fn missing_members_are_created() {
        let settings =
            [("AzureFunctionsJobHost__a__b__c", "1"), ("languageWorkers__python__arguments", "-X dev")];
        let expected =
            json!({"a": {"b": {"c": "1"}}, "languageWorkers": {"python": {"arguments": "-X dev"}}});
        assert_eq!(applied(json!({"a": 5}), &settings), expected);
    }

    #[test]
    fn elements_of_arrays_are_sorted_by_number() {
        let settings = [
            ("AzureFunctionsJobHost__l__10", "k"),
            ("AzureFunctionsJobHost__l__2", "c"),
            ("AzureFunctionsJobHost__l__0", "z"),
        ];
        assert_eq!(applied(json!({"l": ["a", "b"]}), &settings), json!({"l": ["z", "b", "c", "k"]}));
    }

    #[test]
    fn other_settings_change_nothing() {
        let deep = format!("AzureFunctionsJobHost{}", "__a".repeat(17));
        let settings = [
            ("AzureFunctionsJobHost", "x"),
            ("AzureFunctionsJobHost____a", "x"),
            ("Other__a", "x"),
            (&deep, "x"),
        ];
        assert_eq!(applied(json!({"a": 1}), &settings), json!({"a": 1}));
    }

    #[test]
    fn settings_named_in_strings_are_expanded() {
        let host = json!({"a": ["%NAME%", {"b": "x %NAME% y", "c": "%NONE%"}]});
        assert_eq!(applied(host, &[("NAME", "n")]), json!({"a": ["n", {"b": "x n y", "c": "%NONE%"}]}));
    }
}
