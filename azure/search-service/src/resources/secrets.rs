//! Secrets in definitions. They are stored, never returned, and kept when a client sends back a
//! definition it read.

use serde_json::{Map, Value};

use super::ResourceKind;

/// The value that clients see, and send back to keep a secret.
const REDACTED: &str = "<redacted>";
const UNCHANGED: &str = "<unchanged>";

/// Returns a copy without secrets. The connection string of a data source becomes null,
/// as in Azure AI Search.
pub(super) fn hide(kind: ResourceKind, value: &Value) -> Value {
    let mut shown = value.clone();
    if kind == ResourceKind::DataSource
        && let Some(secret) = shown.pointer_mut("/credentials/connectionString")
    {
        *secret = Value::Null;
    }
    redact(&mut shown);
    shown
}

/// Copies secrets from the `old` definition into the new one where they are unchanged.
pub(super) fn restore_secrets(kind: ResourceKind, new: &mut Value, old: Option<&Value>) {
    if kind == ResourceKind::DataSource {
        restore_connection_string(new, old);
    }
    if let Some(old) = old {
        restore(new, old);
    }
}

/// Restores the connection string of a data source. `<redacted>` removes it, and a missing value keeps it.
fn restore_connection_string(new: &mut Value, old: Option<&Value>) {
    let Value::Object(members) = new else { return };
    let kept = old.and_then(|old| old.pointer("/credentials/connectionString")).cloned();
    let credentials = members.entry("credentials").or_insert(Value::Null);
    if credentials.is_null() {
        *credentials = Value::Object(Map::new());
    }
    let Value::Object(credentials) = credentials else { return };
    let given = credentials.entry("connectionString").or_insert(Value::Null);
    match given.as_str() {
        Some(REDACTED) => *given = Value::Null,
        Some(UNCHANGED) => *given = kept.unwrap_or(Value::Null),
        None if given.is_null() => *given = kept.unwrap_or(Value::Null),
        _ => {}
    }
}

fn redact(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let by_key = is_account_by_key(members);
            for (name, value) in members {
                if is_secret(name, by_key) {
                    hide_texts(value);
                } else {
                    redact(value);
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(redact),
        _ => {}
    }
}

/// Hides every text of a secret, also one that was sent as a list or an object.
fn hide_texts(value: &mut Value) {
    match value {
        Value::String(secret) => *secret = REDACTED.to_owned(),
        Value::Array(elements) => elements.iter_mut().for_each(hide_texts),
        Value::Object(members) => members.values_mut().for_each(hide_texts),
        _ => {}
    }
}

/// Restores the texts of a secret that a client has sent back as it read them.
fn restore_texts(new: &mut Value, old: &Value) {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            for (name, value) in new {
                if let Some(old) = old.get(name) {
                    restore_texts(value, old);
                }
            }
        }
        (Value::Array(new), Value::Array(old)) => {
            new.iter_mut().zip(old).for_each(|(new, old)| restore_texts(new, old));
        }
        (new, old) if matches!(new.as_str(), Some(REDACTED | UNCHANGED)) => *new = old.clone(),
        _ => {}
    }
}

fn restore(new: &mut Value, old: &Value) {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            let by_key = is_account_by_key(new);
            for (name, value) in new {
                let Some(old) = old.get(name) else { continue };
                if is_secret(name, by_key) {
                    restore_texts(value, old);
                } else {
                    restore(value, old);
                }
            }
        }
        (Value::Array(new), Value::Array(old)) => {
            for (position, value) in new.iter_mut().enumerate() {
                // Named elements may be in another order.
                let name = value.get("name").cloned();
                let same = match name {
                    Some(name) => old.iter().find(|old| old.get("name") == Some(&name)),
                    None => old.get(position),
                };
                if let Some(old) = same {
                    restore(value, old);
                }
            }
        }
        _ => {}
    }
}

fn is_secret(member: &str, in_account_by_key: bool) -> bool {
    const SECRETS: [&str; 5] =
        ["apiKey", "applicationSecret", "connectionString", "storageConnectionString", "httpHeaders"];
    SECRETS.iter().any(|secret| member.eq_ignore_ascii_case(secret)) || (in_account_by_key && member == "key")
}

/// Whether this is an account such as `#Microsoft.Azure.Search.CognitiveServicesByKey`. Elsewhere `key`
/// is not a secret.
fn is_account_by_key(members: &Map<String, Value>) -> bool {
    members.get("@odata.type").and_then(Value::as_str).is_some_and(|of| of.ends_with("ByKey"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_connection_string_is_kept_replaced_or_removed() {
        let old = json!({"credentials": {"connectionString": "secret"}});
        let settled = |new: Value| {
            let mut new = new;
            restore_secrets(ResourceKind::DataSource, &mut new, Some(&old));
            new.pointer("/credentials/connectionString").cloned().unwrap()
        };
        assert_eq!(settled(json!({"credentials": {"connectionString": null}})), "secret");
        assert_eq!(settled(json!({"credentials": {"connectionString": "<unchanged>"}})), "secret");
        assert_eq!(settled(json!({"credentials": null})), "secret");
        assert_eq!(settled(json!({})), "secret");
        assert_eq!(settled(json!({"credentials": {"connectionString": "new"}})), "new");
        assert_eq!(settled(json!({"credentials": {"connectionString": "<redacted>"}})), Value::Null);
        let misspelled = json!({"credentials": {"connectionstring": "secret"}});
        assert!(!hide(ResourceKind::DataSource, &misspelled).to_string().contains("secret"));
    }

    #[test]
    fn keys_of_models_are_hidden_and_survive_a_round_trip() {
        let old = json!({"models": [
            {"name": "a", "azureOpenAIParameters": {"apiKey": "one"}},
            {"name": "b", "azureOpenAIParameters": {"apiKey": "two"}},
        ]});
        let mut new = hide(ResourceKind::KnowledgeBase, &old);
        assert!(!new.to_string().contains("one"), "{new}");
        new["models"].as_array_mut().unwrap().reverse();
        restore_secrets(ResourceKind::KnowledgeBase, &mut new, Some(&old));
        assert_eq!(new["models"][0]["azureOpenAIParameters"]["apiKey"], "two");
        assert_eq!(new["models"][1]["azureOpenAIParameters"]["apiKey"], "one");
    }

    #[test]
    fn headers_and_storage_connections_are_hidden_and_survive_a_round_trip() {
        let old = json!({
            "knowledgeStore": {"storageConnectionString": "AccountKey=one"},
            "skills": [
                {"name": "call", "uri": "https://api.example", "httpHeaders": {"x-key": "two", "accept": "three"}},
                {"name": "odd", "apiKey": ["four"], "APIKEY": "five"},
            ],
        });
        let mut new = hide(ResourceKind::Skillset, &old);
        for secret in ["one", "two", "three", "four", "five"] {
            assert!(!new.to_string().contains(secret), "{new}");
        }
        new["skills"][0]["httpHeaders"]["x-key"] = "changed".into();
        restore_secrets(ResourceKind::Skillset, &mut new, Some(&old));
        assert_eq!(new["skills"][0]["httpHeaders"], json!({"x-key": "changed", "accept": "three"}));
        assert_eq!(new["skills"][1], old["skills"][1]);
        assert_eq!(new["knowledgeStore"], old["knowledgeStore"]);
    }

    #[test]
    fn a_member_called_key_is_secret_only_in_an_account() {
        let skillset = json!({
            "cognitiveServices": {"@odata.type": "#Microsoft.Azure.Search.CognitiveServicesByKey", "key": "k"},
            "knowledgeStore": {"key": "path"},
        });
        let shown = hide(ResourceKind::Skillset, &skillset);
        assert_eq!(shown["cognitiveServices"]["key"], "<redacted>");
        assert_eq!(shown["knowledgeStore"]["key"], "path");
    }
}
