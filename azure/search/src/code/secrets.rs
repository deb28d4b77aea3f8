//! The secrets in definitions. Files have references to variables such as `${HOTELS_CONNECTION_STRING}`
//! instead of them.
//!
//! Secrets are the members that services hide, headers of skills, and codes and keys in the query of a URL.

use std::ops::Range;

use serde_json::{Map, Value};

use super::SecretLookup;

/// Members with secrets, in any case.
const SECRETS: [&str; 6] = [
    "connectionString",
    "storageConnectionString",
    "apiKey",
    "applicationSecret",
    "authResourceKey",
    "subscriptionKey",
];
/// A secret only in AI services and in Azure Machine Learning. Fields of an index have it too.
const KEY: &str = "key";
/// Each member of it is a secret.
const HEADERS: &str = "httpHeaders";
/// Services never return it. `null` stands for the one that they have.
const CONNECTION_STRING: &str = "connectionString";
/// Parameters in the query of a URL that are secrets.
const PARAMETERS: [&str; 5] = ["code", "sig", "key", "api-key", "subscription-key"];
/// Sent to a service, it keeps the connection string that it has.
const UNCHANGED: &str = "<unchanged>";

/// A member that has a secret, or a URL with one.
struct SecretPlace<'a> {
    path: String,
    /// Names of the elements around it, and its own.
    names: Vec<String>,
    member: &'a str,
    value: &'a mut Value,
    /// The same member of the other definition.
    other: Option<&'a Value>,
}

/// Calls `visit` for each secret of a definition, with the same place of another definition.
fn each_place(definition: &mut Value, other: Option<&Value>, visit: &mut dyn FnMut(SecretPlace<'_>)) {
    walk(definition, other, "", &mut Vec::new(), visit);
}

fn walk(
    value: &mut Value,
    other: Option<&Value>,
    path: &str,
    names: &mut Vec<String>,
    visit: &mut dyn FnMut(SecretPlace<'_>),
) {
    match value {
        Value::Object(members) => walk_members(members, other, path, names, visit),
        Value::Array(elements) => {
            for (place, element) in elements.iter_mut().enumerate() {
                let name = element.get("name").cloned();
                let others = other.and_then(Value::as_array);
                let other = match &name {
                    Some(_) => others.and_then(|all| all.iter().find(|one| one.get("name") == name.as_ref())),
                    None => others.and_then(|all| all.get(place)),
                };
                let name = name.as_ref().and_then(Value::as_str).map_or(place.to_string(), str::to_owned);
                walk(element, other, &format!("{path}/{name}"), names, visit);
            }
        }
        _ => {}
    }
}

fn walk_members(
    members: &mut Map<String, Value>,
    other: Option<&Value>,
    path: &str,
    names: &mut Vec<String>,
    visit: &mut dyn FnMut(SecretPlace<'_>),
) {
    let kind = members.get("@odata.type").and_then(Value::as_str).unwrap_or_default();
    let has_key = kind.ends_with("ByKey") || kind.ends_with("AmlSkill") || path.ends_with("amlParameters");
    let depth = names.len();
    if let Some(name) = members.get("name").and_then(Value::as_str) {
        names.push(name.to_owned());
    }
    for (member, value) in members.iter_mut() {
        let other = other.and_then(|other| other.get(member));
        let path = if path.is_empty() { member.clone() } else { format!("{path}/{member}") };
        let is_secret =
            SECRETS.iter().any(|secret| secret.eq_ignore_ascii_case(member)) || has_key && member == KEY;
        let has_parameters = value.as_str().is_some_and(|text| !secret_parameters(text).is_empty());
        if member == HEADERS && value.is_object() {
            for (header, value) in value.as_object_mut().into_iter().flatten() {
                let mut names = names.clone();
                names.push(header.clone());
                let other = other.and_then(|headers| headers.get(header));
                visit(SecretPlace { path: format!("{path}/{header}"), names, member: HEADERS, value, other });
            }
        } else if is_secret && (value.is_string() || value.is_null()) || has_parameters {
            let mut names = names.clone();
            names.push(member.clone());
            visit(SecretPlace { path, names, member, value, other });
        } else {
            walk(value, other, &path, names, visit);
        }
    }
    names.truncate(depth);
}

/// Returns where the secrets are in the query of a URL.
fn secret_parameters(text: &str) -> Vec<Range<usize>> {
    let query = text.find('?').filter(|_| text.contains("://")).map_or(text.len(), |mark| mark + 1);
    let mut end = query;
    let parameters = text.get(query..).unwrap_or_default().split('&');
    let secrets = parameters.filter_map(|parameter| {
        let begin = end;
        end = begin + parameter.len() + 1;
        let (name, value) = parameter.split_once('=')?;
        let is_secret = PARAMETERS.iter().any(|secret| secret.eq_ignore_ascii_case(name));
        let begin = begin + name.len() + 1;
        (is_secret && !value.is_empty()).then(|| begin..begin + value.len())
    });
    secrets.collect()
}

/// Returns the variable that a text such as `${NAME}` refers to.
fn reference(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (!name.is_empty() && is_name).then_some(name)
}

/// Whether a value is no secret: a reference, or a connection that needs none.
fn is_harmless(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    reference(text).is_some()
        || text.is_empty()
        || lower.trim_end_matches(';') == "usedevelopmentstorage=true"
        || lower.starts_with("resourceid=") && !lower.contains("key=") && !lower.contains("password=")
}

/// Replaces each secret by a reference to a variable. References of an existing definition are kept.
pub(crate) fn mask(definition: &mut Value, existing: Option<&Value>) {
    each_place(definition, existing, &mut |place| {
        let existing = place.other.and_then(Value::as_str);
        let text = place.value.as_str().unwrap_or_default().to_owned();
        let parameters = secret_parameters(&text);
        if !parameters.is_empty() && place.member != HEADERS {
            *place.value = match existing.filter(|existing| existing.contains("${")) {
                Some(existing) => existing.into(),
                None => {
                    let mut url = text.clone();
                    for range in parameters.into_iter().rev() {
                        let value = url.get(range.clone());
                        if value.is_some_and(|value| reference(value).is_none()) {
                            url.replace_range(range, &format!("${{{}}}", variable(&place.names)));
                        }
                    }
                    url.into()
                }
            };
            return;
        }
        let is_absent = place.value.is_null() && place.member != CONNECTION_STRING;
        if is_absent || place.value.is_string() && is_harmless(&text) && !text.is_empty() {
            return;
        }
        let kept = existing.filter(|existing| is_harmless(existing) && !existing.is_empty());
        *place.value = match kept {
            Some(existing) => existing.into(),
            None => format!("${{{}}}", variable(&place.names)).into(),
        };
    });
}

/// Returns the name of the variable for a place: `HOTELS_CONNECTION_STRING`.
fn variable(names: &[String]) -> String {
    let mut variable = String::new();
    for name in names {
        if !variable.is_empty() {
            variable.push('_');
        }
        let mut ends_word = false;
        for letter in name.chars() {
            if letter.is_ascii_uppercase() && ends_word {
                variable.push('_');
            }
            ends_word = letter.is_ascii_lowercase() || letter.is_ascii_digit();
            variable.push(if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' });
        }
    }
    if variable.starts_with(|first: char| first.is_ascii_digit()) { format!("_{variable}") } else { variable }
}

/// Returns the paths of secrets that are no references.
pub(crate) fn written_out(definition: &Value) -> Vec<String> {
    let mut found = Vec::new();
    each_place(&mut definition.clone(), None, &mut |place| {
        let Some(text) = place.value.as_str() else { return };
        let parameters = secret_parameters(text);
        let is_reference =
            |range: &Range<usize>| text.get(range.clone()).is_some_and(|value| reference(value).is_some());
        let is_safe = match place.member != HEADERS && !parameters.is_empty() {
            true => parameters.iter().all(is_reference),
            false => is_harmless(text),
        };
        if !is_safe {
            found.push(place.path);
        }
    });
    found
}

/// Replaces references by the values of their variables. Where a variable is not set, the service keeps
/// the secret that it has. Returns the variables that are not set, of secrets that it does not have.
pub(crate) fn resolve(definition: &mut Value, live: Option<&Value>, secrets: &SecretLookup) -> Vec<String> {
    let mut missing = Vec::new();
    each_place(definition, live, &mut |place| {
        let Some(text) = place.value.as_str() else { return };
        let whole = reference(text).map(|_| 0..text.len());
        let ranges = match whole {
            Some(whole) => vec![whole],
            None => secret_parameters(text),
        };
        let mut filled = text.to_owned();
        let mut unset = None;
        for range in ranges.into_iter().rev() {
            let Some(name) = filled.get(range.clone()).and_then(reference) else { continue };
            match secrets(name).filter(|secret| !secret.is_empty()) {
                Some(secret) => filled.replace_range(range, &secret),
                None => unset = Some(name.to_owned()),
            }
        }
        *place.value = match (unset, place.other) {
            (None, _) => filled.into(),
            (Some(_), Some(Value::Null)) if place.member == CONNECTION_STRING => UNCHANGED.into(),
            (Some(_), Some(Value::String(kept))) => kept.as_str().into(),
            (Some(name), _) => {
                missing.push(name);
                return;
            }
        };
    });
    missing
}

/// Removes secrets, so that definitions can be compared.
pub(crate) fn blank(definition: &mut Value) {
    each_place(definition, None, &mut |place| {
        let text = place.value.as_str().unwrap_or_default().to_owned();
        *place.value = match secret_parameters(&text).first() {
            Some(first) if place.member != HEADERS => text.get(..first.start).unwrap_or_default().into(),
            _ => Value::Null,
        };
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn lookup(variables: &'static [(&'static str, &'static str)]) -> SecretLookup {
        Arc::new(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn every_secret_becomes_a_reference_to_a_variable() {
        let mut definition = json!({
            "name": "hotels", "credentials": {"connectionString": null},
            "vectorizers": [{"name": "openai", "azureOpenAIParameters": {"apiKey": "one", "modelName": "m"}}],
            "cognitiveServices": {"@odata.type": "#Microsoft.Azure.Search.CognitiveServicesByKey", "key": "<redacted>"},
            "skills": [{"name": "call", "uri": "https://f.example/api/x?v=1&code=two", "httpHeaders": {"x-key": "three"}}],
            "fields": [{"name": "id", "key": true}],
        });
        mask(&mut definition, None);
        assert_eq!(
            definition,
            json!({
                "name": "hotels", "credentials": {"connectionString": "${HOTELS_CONNECTION_STRING}"},
                "vectorizers": [{"name": "openai",
                    "azureOpenAIParameters": {"apiKey": "${HOTELS_OPENAI_API_KEY}", "modelName": "m"}}],
                "cognitiveServices": {"@odata.type": "#Microsoft.Azure.Search.CognitiveServicesByKey",
                    "key": "${HOTELS_KEY}"},
                "skills": [{"name": "call", "uri": "https://f.example/api/x?v=1&code=${HOTELS_CALL_URI}",
                    "httpHeaders": {"x-key": "${HOTELS_CALL_X_KEY}"}}],
                "fields": [{"name": "id", "key": true}],
            })
        );
        assert!(written_out(&definition).is_empty());
        let masked = definition.clone();
        mask(&mut definition, None);
        assert_eq!(definition, masked);
    }

    #[test]
    fn references_of_the_file_are_kept() {
        let existing = json!({"name": "s", "credentials": {"connectionString": "${MINE}"}});
        let mut definition = json!({"name": "s", "credentials": {"connectionString": null}});
        mask(&mut definition, Some(&existing));
        assert_eq!(definition, existing);
        let local = json!({"name": "s", "credentials": {"connectionString": "UseDevelopmentStorage=true"}});
        mask(&mut definition, Some(&local));
        assert_eq!(definition["credentials"]["connectionString"], "${MINE}");
    }

    #[test]
    fn secrets_in_files_are_found() {
        let definition = json!({
            "credentials": {"connectionString": "AccountKey=abc"}, "other": {"connectionString": "ResourceId=/x;"},
            "skills": [{"name": "call", "uri": "https://x?code=abc"}],
        });
        assert_eq!(written_out(&definition), ["credentials/connectionString", "skills/call/uri"]);
    }

    #[test]
    fn variables_are_read_and_without_them_the_service_keeps_its_secret() {
        let file = json!({"name": "s", "credentials": {"connectionString": "${A}"}, "skills": [
            {"name": "call", "uri": "https://x?code=${B}&v=1", "httpHeaders": {"h": "${C}"}}]});
        let live = json!({"name": "s", "credentials": {"connectionString": null}, "skills": [
            {"name": "call", "uri": "https://x?code=old&v=1", "httpHeaders": {"h": "<redacted>"}}]});
        let mut set = file.clone();
        assert!(resolve(&mut set, Some(&live), &lookup(&[("A", "1"), ("B", "2"), ("C", "3")])).is_empty());
        assert_eq!(set["credentials"]["connectionString"], "1");
        assert_eq!(set["skills"][0]["uri"], "https://x?code=2&v=1");
        assert_eq!(set["skills"][0]["httpHeaders"]["h"], "3");
        let mut unset = file.clone();
        assert!(resolve(&mut unset, Some(&live), &lookup(&[])).is_empty());
        assert_eq!(unset["credentials"]["connectionString"], UNCHANGED);
        assert_eq!(unset["skills"][0]["uri"], "https://x?code=old&v=1");
        assert_eq!(unset["skills"][0]["httpHeaders"]["h"], "<redacted>");

        let mut new = file;
        assert_eq!(resolve(&mut new, None, &lookup(&[("B", "2")])), ["A", "C"]);
    }
}
