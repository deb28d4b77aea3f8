//! Hides secrets in definitions.
//!
//! The service hides them itself. This is a safeguard for a service that does not. Documents are data
//! and are not changed.

use serde_json::Value;

/// The placeholder of a secret. Sent back, it keeps the secret.
const HIDDEN: &str = "<redacted>";

/// Members of definitions that contain secrets.
const SECRETS: &[&str] = &[
    "connectionString",
    "storageConnectionString",
    "apiKey",
    "applicationSecret",
    "authResourceKey",
    "subscriptionKey",
];

/// Hides every secret in a definition, or in a list of definitions.
pub(crate) fn hide_secrets(definition: &mut Value) {
    match definition {
        Value::Array(items) => items.iter_mut().for_each(hide_secrets),
        Value::Object(members) => {
            // The key of an AI service is a member `key`. So are the flag of a key field and the
            // document key of an indexer run, which are not secrets.
            let kind = members.get("@odata.type").and_then(Value::as_str).unwrap_or_default();
            let has_key = kind.ends_with("ByKey") || kind.ends_with("AmlSkill");
            for (name, value) in members {
                let is_secret = SECRETS.contains(&name.as_str()) || has_key && name == "key";
                if name == "amlParameters"
                    && let Some(Value::String(secret)) = value.get_mut("key")
                {
                    *secret = HIDDEN.to_owned();
                }
                match value {
                    Value::String(secret) if is_secret && !is_secret_placeholder(secret) => {
                        *value = HIDDEN.into();
                    }
                    other => hide_secrets(other),
                }
            }
        }
        _ => {}
    }
}

/// Returns whether the text is a placeholder that services use for secrets.
fn is_secret_placeholder(text: &str) -> bool {
    text.is_empty() || text.starts_with('<') && text.ends_with('>')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_hidden_at_every_level() {
        let mut definition = json!({
            "credentials": {"connectionString": "AccountKey=abc"},
            "fields": [{"name": "id", "key": true}],
            "cognitiveServices": {"@odata.type": "#Microsoft.Azure.Search.CognitiveServicesByKey", "key": "abc"},
            "vectorSearch": {"vectorizers": [{"azureOpenAIParameters": {"apiKey": "abc", "modelName": "m"}}]},
            "knowledgeStore": {"storageConnectionString": "AccountKey=abc"},
            "skills": [{"@odata.type": "#Microsoft.Skills.Custom.AmlSkill", "key": "abc"}],
            "amlParameters": {"uri": "https://x", "key": "abc", "resourceId": null},
            "lastResult": {"errors": [{"key": "document-1"}]},
            "encryptionKey": {"accessCredentials": {"applicationSecret": "<unchanged>"}},
        });
        hide_secrets(&mut definition);
        assert!(!definition.to_string().contains("abc"), "{definition}");
        assert_eq!(definition["fields"][0]["key"], true);
        assert_eq!(definition["lastResult"]["errors"][0]["key"], "document-1");
        assert_eq!(definition["encryptionKey"]["accessCredentials"]["applicationSecret"], "<unchanged>");
        assert_eq!(definition["vectorSearch"]["vectorizers"][0]["azureOpenAIParameters"]["modelName"], "m");
    }
}
