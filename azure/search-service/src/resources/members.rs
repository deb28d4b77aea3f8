//! Members that a response always contains, even if the definition does not.
//!
//! The index hook fills in the definitions of indexes.

use serde_json::{Map, Value, json};

use super::ResourceKind;

/// Adds missing members as Azure AI Search does: null, an empty list, or the only possible value.
pub(super) fn complete(kind: ResourceKind, shown: &mut Value) {
    let Value::Object(members) = shown else { return };
    let nulls: &[&str] = match kind {
        ResourceKind::DataSource => {
            if let Some(Value::Object(container)) = members.get_mut("container") {
                add(container, "query", Value::Null);
            }
            &[
                "description",
                "subtype",
                "identity",
                "dataChangeDetectionPolicy",
                "dataDeletionDetectionPolicy",
                "encryptionKey",
            ]
        }
        ResourceKind::Indexer => {
            add(members, "fieldMappings", json!([]));
            add(members, "outputFieldMappings", json!([]));
            &["description", "skillsetName", "schedule", "parameters", "disabled", "cache", "encryptionKey"]
        }
        ResourceKind::Skillset => {
            &["description", "cognitiveServices", "knowledgeStore", "indexProjections", "encryptionKey"]
        }
        ResourceKind::SynonymMap => {
            // Clients with old API versions omit it. Newer clients require it.
            add(members, "format", json!("solr"));
            &["encryptionKey"]
        }
        ResourceKind::KnowledgeSource => &["description", "encryptionKey"],
        ResourceKind::KnowledgeBase => {
            add(members, "models", json!([]));
            &["description", "encryptionKey"]
        }
        ResourceKind::Index | ResourceKind::Alias => &[],
    };
    for member in nulls {
        add(members, member, Value::Null);
    }
}

fn add(members: &mut Map<String, Value>, member: &str, value: Value) {
    let entry = members.entry(member).or_insert(Value::Null);
    if entry.is_null() {
        *entry = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_members_stay_and_missing_members_are_added() {
        let mut indexer = json!({"name": "i", "disabled": true, "fieldMappings": null});
        complete(ResourceKind::Indexer, &mut indexer);
        assert_eq!((&indexer["disabled"], &indexer["fieldMappings"]), (&json!(true), &json!([])));
        assert!(indexer.as_object().unwrap().contains_key("schedule"));
        let mut synonyms = json!({"name": "s", "synonyms": "a,b"});
        complete(ResourceKind::SynonymMap, &mut synonyms);
        assert_eq!(
            synonyms,
            json!({"name": "s", "format": "solr", "synonyms": "a,b", "encryptionKey": null})
        );
    }
}
