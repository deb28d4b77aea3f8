//! The rules for names of definitions.

use bindpost_azure_search_model::ApiError;
use serde_json::Value;

use super::ResourceKind;

/// The maximum length in bytes. Only ASCII characters are allowed.
const LONGEST: usize = 128;

/// Returns the name in the body of a definition.
pub(super) fn in_body(kind: ResourceKind, body: &Value) -> Result<Option<String>, ApiError> {
    match body {
        Value::Object(members) => match members.get("name") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(name)) => Ok(Some(name.clone())),
            Some(_) => Err(ApiError::invalid(format!("The 'name' of the {kind} must be a string."))),
        },
        _ => Err(ApiError::invalid(format!("The definition of the {kind} must be a JSON object."))),
    }
}

/// Checks a name. Indexes and aliases have the same rule, because they share their URLs.
pub(super) fn check(kind: ResourceKind, name: &str) -> Result<(), ApiError> {
    let is_index = matches!(kind, ResourceKind::Index | ResourceKind::Alias);
    let shortest = if is_index { 2 } else { 1 };
    let allowed = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || (is_index && byte == b'_')
    };
    let plain = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let wrong = !(shortest..=LONGEST).contains(&name.len())
        || !name.bytes().all(allowed)
        || !plain(name.bytes().next())
        || name.ends_with('-')
        || (is_index && (name.contains("--") || name.contains("__")));
    if !wrong {
        return Ok(());
    }
    let rule = if is_index {
        "must have 2 to 128 lowercase letters, digits, dashes or underscores, must start with a letter or digit, \
         must not end with a dash, and must not have two dashes or underscores in a row"
    } else {
        "must have 1 to 128 lowercase letters, digits or dashes, and must start and end with a letter or digit"
    };
    let shown: String = name.chars().take(LONGEST).collect();
    let code = "InvalidName";
    let message = format!("The name '{shown}' is not allowed for {} {kind}: it {rule}.", kind.article());
    Err(ApiError::new(http::StatusCode::BAD_REQUEST, code, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_indexes() {
        let long = "a".repeat(128);
        for name in ["hotels", "a1", "1a", "idx-hotels_2024", "ends_", long.as_str()] {
            assert!(check(ResourceKind::Index, name).is_ok(), "{name}");
        }
        let too_long = "a".repeat(129);
        for name in
            ["", "a", "Hotels", "-a", "a-", "_ab", "a--b", "a__b", "a b", "ä1", "a/b", too_long.as_str()]
        {
            assert!(check(ResourceKind::Index, name).is_err(), "{name}");
        }
    }

    #[test]
    fn names_of_other_kinds() {
        for name in ["a", "docdb-2024", "a--b"] {
            assert!(check(ResourceKind::Indexer, name).is_ok(), "{name}");
        }
        for name in ["", "a_b", "A", "-a", "a-"] {
            let error = check(ResourceKind::SynonymMap, name).unwrap_err();
            assert!(error.message.contains("lowercase letters, digits or dashes"), "{error}");
        }
    }
}
