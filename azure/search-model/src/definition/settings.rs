//! Settings of an index besides its fields: CORS, similarity and semantic configurations.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::field::{IndexSchema, PrimitiveType};
use super::problem::{invalid_definition, read_object};
use crate::ApiError;

pub(super) const BM25: &str = "#Microsoft.Azure.Search.BM25Similarity";
const CLASSIC: &str = "#Microsoft.Azure.Search.ClassicSimilarity";

/// Returns the similarity with its defaults. Scores always use BM25 with k1 = 1.2 and b = 0.75. Other
/// values are stored and returned, but have no effect, as documented.
pub(super) fn similarity(given: Option<&Value>) -> Result<Value, ApiError> {
    let Some(value) = given else {
        return Ok(json!({"@odata.type": BM25, "k1": null, "b": null}));
    };
    let place = "'similarity' of the index";
    let given = read_object(value, place)?;
    match given.required_text("@odata.type")? {
        BM25 => {}
        CLASSIC => {
            return Err(ApiError::not_supported(format!(
                "ClassicSimilarity is not supported. Remove 'similarity' or use '{BM25}'."
            )));
        }
        other => {
            return Err(invalid_definition(format!("{place} has the unknown type '{other}'. Use '{BM25}'.")));
        }
    }
    let k1 = given.number("k1")?;
    if k1.is_some_and(|k1| k1 < 0.0) {
        return Err(given.error("k1", "must not be less than 0").into());
    }
    let b = given.number("b")?;
    if b.is_some_and(|b| !(0.0..=1.0).contains(&b)) {
        return Err(given.error("b", "must be from 0 to 1").into());
    }
    Ok(json!({"@odata.type": BM25, "k1": k1, "b": b}))
}

pub(super) fn cors(given: Option<&Value>) -> Result<Value, ApiError> {
    let Some(value) = given else { return Ok(Value::Null) };
    let place = "'corsOptions' of the index";
    let given = read_object(value, place)?;
    let origins = given.texts("allowedOrigins")?;
    if origins.is_empty() {
        return Err(invalid_definition(format!(
            "{place} needs 'allowedOrigins', with '*' or at least one origin."
        )));
    }
    if origins.len() > 1 && origins.contains(&"*") {
        return Err(invalid_definition(format!(
            "{place}: '*' allows all origins and must be the only element."
        )));
    }
    for origin in &origins {
        if *origin != "*" && !is_origin(origin) {
            return Err(invalid_definition(format!(
                "{place}: '{origin}' is not an origin. Write it as https://example.com or http://localhost:3000."
            )));
        }
    }
    let age = match given.value("maxAgeInSeconds") {
        None => 300,
        Some(value) => value
            .as_u64()
            .ok_or_else(|| given.wrong_type("maxAgeInSeconds", "a whole number of at least 0", value))?,
    };
    Ok(json!({"allowedOrigins": origins, "maxAgeInSeconds": age}))
}

fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    host.is_some_and(|host| {
        let host = host.strip_suffix('/').unwrap_or(host);
        !host.is_empty() && !host.contains(['/', '?', '#', ' '])
    })
}

/// Checks semantic configurations. They have no effect on ranking here, but the fields they name must
/// exist, as in Azure AI Search.
pub(super) fn semantic(given: Option<&Value>, schema: &IndexSchema) -> Result<(), ApiError> {
    let Some(value) = given else { return Ok(()) };
    let semantic = read_object(value, "'semantic' of the index")?;
    let mut names = HashSet::new();
    for value in semantic.list("configurations")? {
        let name = read_object(value, "a semantic configuration")?.required_text("name")?;
        if !names.insert(name) {
            return Err(invalid_definition(format!("There are two semantic configurations '{name}'.")));
        }
        let place = format!("semantic configuration '{name}'");
        let configuration = read_object(value, &place)?;
        let Some(prioritized) = configuration.value("prioritizedFields") else {
            return Err(invalid_definition(format!("{place} needs 'prioritizedFields'.")));
        };
        let place = format!("'prioritizedFields' of {place}");
        let prioritized = read_object(prioritized, &place)?;
        let content = prioritized.list("prioritizedContentFields")?;
        let keywords = prioritized.list("prioritizedKeywordsFields")?;
        let named: Vec<&Value> =
            prioritized.value("titleField").into_iter().chain(content).chain(keywords).collect();
        if named.is_empty() {
            return Err(invalid_definition(format!(
                "{place} names no field. Add a title, content or keywords field."
            )));
        }
        for value in named {
            let path = read_object(value, &place)?.required_text("fieldName")?;
            let field = schema.find(path).ok_or_else(|| {
                invalid_definition(format!("{place} names '{path}', which the index does not have."))
            })?;
            if field.kind.primitive() != Some(PrimitiveType::String) {
                return Err(invalid_definition(format!(
                    "{place} names '{path}', but only Edm.String and Collection(Edm.String) can be ranked semantically."
                )));
            }
        }
    }
    if let Some(default) = semantic.text("defaultConfiguration")?
        && !names.contains(default)
    {
        return Err(invalid_definition(format!(
            "'defaultConfiguration' is '{default}', but no semantic configuration has this name."
        )));
    }
    Ok(())
}

/// Checks that the profile of every vector field exists in `vectorSearch.profiles`.
pub(super) fn vector_profiles(given: Option<&Value>, schema: &IndexSchema) -> Result<(), ApiError> {
    let mut names = Vec::new();
    if let Some(value) = given {
        for profile in read_object(value, "'vectorSearch' of the index")?.list("profiles")? {
            names.push(read_object(profile, "a profile of 'vectorSearch'")?.required_text("name")?);
        }
    }
    for field in schema.leaves() {
        if let Some(vector) = &field.vector
            && !names.contains(&vector.profile.as_str())
        {
            return Err(invalid_definition(format!(
                "field '{}' names the vectorSearchProfile '{}', which is not among the profiles of 'vectorSearch' ({}).",
                field.path,
                vector.profile,
                if names.is_empty() { "there are none".to_owned() } else { names.join(", ") }
            )));
        }
    }
    Ok(())
}
