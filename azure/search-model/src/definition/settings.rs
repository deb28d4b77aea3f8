//! Settings of an index besides its fields: CORS, similarity and vector profiles.

use serde_json::{Value, json};

use super::field::IndexSchema;
use super::problem::{DefinitionObject, invalid_definition, read_object};
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
    given.allow_only(&["k1", "b"])?;
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

/// Which web pages may query an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorsOptions {
    /// Origins such as `https://example.com`, or only `*`.
    pub allowed_origins: Vec<String>,
    /// How long browsers may keep the answer to a preflight request.
    pub max_age_seconds: u64,
}

/// The default of `maxAgeInSeconds`.
const PREFLIGHT_SECONDS: u64 = 300;

impl CorsOptions {
    /// Returns the options of a valid index definition.
    pub fn of_index(definition: &Value) -> Option<Self> {
        let given = read_object(definition, "the index").ok()?.object("corsOptions").ok()??;
        Self::parse(&given).ok()
    }

    pub(super) fn parse(given: &DefinitionObject<'_>) -> Result<Self, ApiError> {
        given.allow_only(&["allowedOrigins", "maxAgeInSeconds"])?;
        let origins = given.texts("allowedOrigins")?;
        if origins.is_empty() {
            return Err(given.error("allowedOrigins", "must have at least one origin, or only '*'").into());
        }
        if origins.len() > 1 && origins.contains(&"*") {
            let problem = "has '*', which allows all origins and must be the only element";
            return Err(given.error("allowedOrigins", problem).into());
        }
        for (at, origin) in origins.iter().enumerate() {
            if *origin != "*" && !is_origin(origin) {
                let problem = format_args!(
                    "must be an origin such as https://example.com or http://localhost:3000, not '{origin}'"
                );
                return Err(given.error(&format!("allowedOrigins[{at}]"), problem).into());
            }
        }
        let age = match given.value("maxAgeInSeconds") {
            None => PREFLIGHT_SECONDS,
            Some(value) => value
                .as_u64()
                .ok_or_else(|| given.wrong_type("maxAgeInSeconds", "a whole number of at least 0", value))?,
        };
        let allowed_origins = origins.into_iter().map(str::to_owned).collect();
        Ok(Self { allowed_origins, max_age_seconds: age })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"allowedOrigins": self.allowed_origins, "maxAgeInSeconds": self.max_age_seconds})
    }

    /// Returns whether all origins are allowed.
    pub fn allows_all(&self) -> bool {
        self.allowed_origins.iter().any(|allowed| allowed == "*")
    }

    /// Returns whether an origin is in the list. The scheme, the host and the port must be the same, where the port of
    /// the scheme may be omitted.
    pub fn lists(&self, origin: &str) -> bool {
        self.allowed_origins.iter().any(|allowed| comparable_origin(allowed) == comparable_origin(origin))
    }
}

/// Returns an origin in lower case, without a slash at its end and without the default port of its scheme.
fn comparable_origin(origin: &str) -> String {
    let origin = origin.strip_suffix('/').unwrap_or(origin).to_ascii_lowercase();
    let port = if origin.starts_with("https://") { ":443" } else { ":80" };
    origin.strip_suffix(port).map(str::to_owned).unwrap_or(origin)
}

fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    host.is_some_and(|host| {
        let host = host.strip_suffix('/').unwrap_or(host);
        !host.is_empty() && !host.contains(['/', '?', '#', ' '])
    })
}

/// Checks that the profile of every vector field exists in `vectorSearch.profiles`.
pub(super) fn vector_profiles(
    given: Option<&DefinitionObject<'_>>,
    schema: &IndexSchema,
) -> Result<(), ApiError> {
    let mut names = Vec::new();
    if let Some(given) = given {
        for profile in given.objects("profiles")? {
            names.push(profile.required_text("name")?);
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
