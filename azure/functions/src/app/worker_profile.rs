//! `profiles` of `worker.config.json`: changes to the description that apply under conditions.

use serde_json::{Map, Value};

use super::settings::Settings;
use super::worker_config::HostPlatform;
use crate::json::member;

/// Applies the first profile whose conditions are all true. A condition that cannot be evaluated is false.
/// Without a profile, the worker runs as its plain description says, which always works.
pub(super) fn apply(config: &mut Map<String, Value>, settings: &Settings, platform: &HostPlatform) {
    let profiles = member(config, "profiles").and_then(Value::as_array);
    let holds = |profile: &&Map<String, Value>| {
        let conditions = member(profile, "conditions").and_then(Value::as_array);
        conditions.is_some_and(|all| {
            !all.is_empty() && all.iter().all(|one| condition_holds(one, settings, platform))
        })
    };
    let Some(profile) = profiles.into_iter().flatten().filter_map(Value::as_object).find(holds) else {
        return;
    };
    let changes = member(profile, "description").and_then(Value::as_object).cloned().unwrap_or_default();
    let description = config.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("description"));
    if let Some((_, Value::Object(description))) = description {
        for (name, value) in changes {
            description.retain(|other, _| !other.eq_ignore_ascii_case(&name));
            description.insert(name, value);
        }
    }
}

fn condition_holds(condition: &Value, settings: &Settings, platform: &HostPlatform) -> bool {
    let Some(condition) = condition.as_object() else { return false };
    let text = |name: &str| member(condition, name).and_then(Value::as_str).unwrap_or_default();
    let value = match (text("conditionType").to_ascii_lowercase().as_str(), text("conditionName")) {
        // A missing variable equals an empty one.
        ("environment", name) => settings.get(name).unwrap_or_default(),
        ("hostproperty", name) if name.eq_ignore_ascii_case("platform") => platform.os.as_str(),
        // The plan and the version of Azure's host do not apply to this host.
        _ => return false,
    };
    matches(text("conditionExpression"), value).unwrap_or(false)
}

/// Returns whether a value matches a regular expression of .NET. Only literal words, anchors, `.*`,
/// alternatives and `(?i)` are supported, because known workers use nothing else. Returns `None`
/// for other expressions.
fn matches(expression: &str, value: &str) -> Option<bool> {
    let mut any = false;
    for alternative in expression.split('|') {
        any |= alternative_matches(alternative, value)?;
    }
    Some(any)
}

fn alternative_matches(text: &str, value: &str) -> Option<bool> {
    let in_any_case = text.contains("(?i)");
    let text = text.replace("(?i)", "");
    let (from_start, text) = text.strip_prefix('^').map_or((false, text.as_str()), |rest| (true, rest));
    let (to_end, text) = text.strip_suffix('$').map_or((false, text), |rest| (true, rest));
    let fold = |text: &str| if in_any_case { text.to_lowercase() } else { text.to_owned() };
    let words: Vec<String> =
        text.split(".*").map(|word| literal(word).map(|word| fold(&word))).collect::<Option<_>>()?;
    let value = fold(value);

    let (first, rest) = words.split_first()?;
    let Some((last, middle)) = rest.split_last() else {
        return Some(match (from_start, to_end) {
            (true, true) => value == *first,
            (true, false) => value.starts_with(first),
            (false, true) => value.ends_with(first),
            (false, false) => value.contains(first),
        });
    };
    let mut left = match value.find(first) {
        Some(at) if at == 0 || !from_start => value.get(at + first.len()..)?,
        _ => return Some(false),
    };
    for word in middle {
        match left.find(word) {
            Some(at) => left = left.get(at + word.len()..)?,
            None => return Some(false),
        }
    }
    Some(if to_end { left.ends_with(last) } else { left.contains(last) })
}

/// Returns the text that an expression without operators matches.
fn literal(word: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = word.chars();
    while let Some(char) = rest.next() {
        match char {
            '\\' => text.push(rest.next().filter(|escaped| !escaped.is_ascii_alphanumeric())?),
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '^' | '$' => return None,
            char => text.push(char),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expressions_in_use_are_evaluated() {
        for (expression, value, expected) in [
            ("(?i)true$", "True", Some(true)),
            ("(?i)true$", "truest", Some(false)),
            ("^3\\.1[0-9]$", "3.11", None),
            ("^3\\.11$", "3.11", Some(true)),
            ("^3\\.11$", "3x11", Some(false)),
            ("^$|^(?i)python$", "", Some(true)),
            ("^$|^(?i)python$", "Python", Some(true)),
            ("^$|^(?i)python$", "node", Some(false)),
            ("^a.*b.*c$", "a1b2c", Some(true)),
            ("^a.*b.*c$", "abbc1", Some(false)),
            ("^a.*a$", "a", Some(false)),
            ("x.*y", "0x1y2", Some(true)),
            ("x.*y", "yx", Some(false)),
            ("^x.*", "xy", Some(true)),
            ("^x.*", "yx", Some(false)),
            ("EnableWorkerIndexing", "A,EnableWorkerIndexing", Some(true)),
            ("^EnableWorkerIndexing", "A,EnableWorkerIndexing", Some(false)),
            ("\\d+", "1", None),
        ] {
            assert_eq!(matches(expression, value), expected, "{expression} {value}");
        }
    }

    fn applied(conditions: Value) -> Value {
        let mut config = json!({
            "Description": {"DefaultExecutablePath": "a", "language": "x"},
            "profiles": [
                {"profileName": "never", "conditions": [], "description": {"defaultExecutablePath": "never"}},
                {"profileName": "p", "conditions": conditions, "description": {"defaultExecutablePath": "b"}},
                {"profileName": "late", "conditions": [{"conditionType": "environment", "conditionName": "ON", "conditionExpression": "1"}],
                 "description": {"language": "late"}},
            ],
        });
        let settings = Settings::new([("ON".to_owned(), "1".to_owned())], []);
        let platform = HostPlatform { os: "LINUX".to_owned(), architecture: "X64".to_owned() };
        apply(config.as_object_mut().unwrap(), &settings, &platform);
        config["Description"].take()
    }

    #[test]
    fn the_first_profile_whose_conditions_hold_changes_the_description() {
        let on = json!({"conditionType": "Environment", "conditionName": "ON", "conditionExpression": "^1$"});
        let linux = json!({"conditionType": "hostProperty", "conditionName": "platform", "conditionExpression": "(?i)linux"});
        let sku = json!({"conditionType": "hostProperty", "conditionName": "sku", "conditionExpression": "Dynamic"});
        let changed = json!({"defaultExecutablePath": "b", "language": "x"});
        let later = json!({"DefaultExecutablePath": "a", "language": "late"});
        assert_eq!(applied(json!([on, linux])), changed);
        assert_eq!(applied(json!([on, sku])), later);
        assert_eq!(applied(json!([on, {"conditionType": "moon"}])), later);
        assert_eq!(applied(json!([3])), later);
    }
}
