//! Parses and checks the definition of an index.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use super::field::{IndexSchema, PrimitiveType};
use super::problem::{DefinitionObject, invalid_definition, read_element, read_object};
use super::scoring::ScoringProfile;
use super::semantic::SemanticSettings;
use super::settings::CorsOptions;
use super::{fields, settings};
use crate::ApiError;

/// The members of an index, of all API versions.
const MEMBERS: [&str; 19] = [
    "name",
    "description",
    "fields",
    "scoringProfiles",
    "defaultScoringProfile",
    "corsOptions",
    "suggesters",
    "analyzers",
    "tokenizers",
    "tokenFilters",
    "charFilters",
    "normalizers",
    "encryptionKey",
    "similarity",
    "semantic",
    "vectorSearch",
    "permissionFilterOption",
    "purviewEnabled",
    "sharePointConnectorAppRegistration",
];
const NAME_LENGTH: usize = 128;
const SCORING_PROFILES: usize = 100;
/// The members of custom analysis. They stay JSON here, and the `analysis` module reads them.
pub(super) const ANALYSIS: [&str; 5] =
    ["analyzers", "tokenizers", "tokenFilters", "charFilters", "normalizers"];

/// The definition of an index. Analyzer and normalizer names, custom analysis and the contents of
/// `vectorSearch` are checked by their own modules, based on `json`.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexDefinition {
    pub name: String,
    pub schema: IndexSchema,
    pub suggesters: Vec<Suggester>,
    pub scoring_profiles: Vec<ScoringProfile>,
    pub default_scoring_profile: Option<String>,
    pub semantic: SemanticSettings,
    /// The whole definition as it is returned, with all defaults and without `@odata` members at its root.
    pub json: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggester {
    pub name: String,
    /// The paths of searchable string fields.
    pub source_fields: Vec<String>,
}

impl IndexDefinition {
    pub fn parse(json: &Value) -> Result<Self, ApiError> {
        let given = read_object(json, "the index")?;
        given.allow_only(&MEMBERS)?;
        let name = given.required_text("name")?;
        check_name(name)?;
        given.text("description")?;
        given.object("encryptionKey")?;
        given.object("sharePointConnectorAppRegistration")?;
        let (fields, answers) = fields::parse(given.list("fields")?)?;
        let schema = IndexSchema::new(fields).ok_or_else(|| invalid_definition("No field is the key."))?;
        let by_permission =
            given.choice("permissionFilterOption", &[("enabled", true), ("disabled", false)])?;
        for (option, enabled) in
            [("permissionFilterOption", by_permission), ("purviewEnabled", given.boolean("purviewEnabled")?)]
        {
            if enabled == Some(true) {
                return Err(ApiError::not_supported(format!(
                    "'{option}' cannot be enabled: this service does not hide documents by permission. Filter by a field instead."
                )));
            }
        }
        let mut analyzers = HashSet::new();
        for part in ANALYSIS {
            let names = component_names(&given, part)?;
            if part == "analyzers" {
                analyzers = names;
            }
        }
        let suggesters = suggesters(&given, &schema, &analyzers)?;
        let scoring_profiles = scoring_profiles(&given, &schema)?;
        let default_scoring_profile =
            given.text("defaultScoringProfile")?.filter(|name| !name.is_empty()).map(str::to_owned);
        if let Some(default) = &default_scoring_profile
            && !scoring_profiles.iter().any(|profile| profile.name == *default)
        {
            return Err(invalid_definition(format!(
                "'defaultScoringProfile' is '{default}', but no scoring profile has this name."
            )));
        }
        let semantic = SemanticSettings::parse(given.object("semantic")?.as_ref(), &schema)?;
        let cors = given.object("corsOptions")?.as_ref().map(CorsOptions::parse).transpose()?;
        settings::vector_profiles(given.object("vectorSearch")?.as_ref(), &schema)?;

        let mut answer = given.members().clone();
        answer.retain(|member, _| !member.starts_with("@odata."));
        answer.insert("fields".to_owned(), Value::Array(answers));
        answer.insert("similarity".to_owned(), settings::similarity(given.value("similarity"))?);
        answer.insert("corsOptions".to_owned(), cors.as_ref().map_or(Value::Null, CorsOptions::to_json));
        for list in ANALYSIS.into_iter().chain(["suggesters", "scoringProfiles"]) {
            let entry = answer.entry(list).or_insert(Value::Null);
            if entry.is_null() {
                *entry = json!([]);
            }
        }
        for member in ["defaultScoringProfile", "encryptionKey", "semantic", "vectorSearch"] {
            answer.entry(member).or_insert(Value::Null);
        }
        Ok(Self {
            name: name.to_owned(),
            schema,
            suggesters,
            scoring_profiles,
            default_scoring_profile,
            semantic,
            json: Value::Object(answer),
        })
    }

    pub fn suggester(&self, name: &str) -> Option<&Suggester> {
        self.suggesters.iter().find(|suggester| suggester.name == name)
    }

    pub fn scoring_profile(&self, name: &str) -> Option<&ScoringProfile> {
        self.scoring_profiles.iter().find(|profile| profile.name == name)
    }

    /// Returns the paths that suggesters read.
    pub fn suggester_paths(&self) -> BTreeSet<String> {
        self.suggesters.iter().flat_map(|suggester| suggester.source_fields.iter().cloned()).collect()
    }

    /// Returns all analyzers that fields use, built-in or custom.
    pub fn analyzer_names(&self) -> BTreeSet<&str> {
        let leaves = self.schema.leaves().into_iter();
        leaves
            .flat_map(|field| [field.index_analyzer.as_deref(), field.search_analyzer.as_deref()])
            .flatten()
            .collect()
    }
}

fn check_name(name: &str) -> Result<(), ApiError> {
    let fits = (2..=NAME_LENGTH).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    if fits {
        return Ok(());
    }
    Err(invalid_definition(format!(
        "The index name '{name}' is not allowed. Names must have 2 to {NAME_LENGTH} lower-case letters, digits and single dashes, and must not start or end with a dash."
    )))
}

/// Returns the names in one part of custom analysis. They must be unique.
fn component_names<'a>(given: &DefinitionObject<'a>, part: &str) -> Result<HashSet<&'a str>, ApiError> {
    let mut names = HashSet::new();
    for element in given.objects(part)? {
        let name = element.required_text("name")?;
        if !names.insert(name) {
            return Err(invalid_definition(format!("'{part}' has two elements named '{name}'.")));
        }
    }
    Ok(names)
}

fn suggesters(
    given: &DefinitionObject<'_>,
    schema: &IndexSchema,
    custom_analyzers: &HashSet<&str>,
) -> Result<Vec<Suggester>, ApiError> {
    let list = given.list("suggesters")?;
    if list.len() > 1 {
        return Err(invalid_definition(format!("The index has {} suggesters. It can have one.", list.len())));
    }
    let mut suggesters = Vec::new();
    for (at, value) in list.iter().enumerate() {
        let name = read_element(value, "the index", "suggesters", at)?.required_text("name")?;
        let place = format!("suggester '{name}'");
        let given = read_object(value, &place)?;
        given.allow_only(&["name", "searchMode", "sourceFields"])?;
        match given.text("searchMode")? {
            None | Some("analyzingInfixMatching") => {}
            Some(other) => {
                return Err(invalid_definition(format!(
                    "{place} has the searchMode '{other}'. Only analyzingInfixMatching is supported."
                )));
            }
        }
        let mut source_fields = Vec::new();
        for path in given.texts("sourceFields")? {
            let Some(field) = schema.find(path) else {
                return Err(invalid_definition(format!(
                    "{place} names the field '{path}', which the index does not have."
                )));
            };
            let analyzer = match (&field.index_analyzer, field.kind.primitive()) {
                (Some(analyzer), Some(PrimitiveType::String)) => analyzer,
                _ => {
                    return Err(invalid_definition(format!(
                        "{place} names the field '{path}', but its source fields must be searchable strings."
                    )));
                }
            };
            if custom_analyzers.contains(analyzer.as_str()) {
                return Err(invalid_definition(format!(
                    "{place} names the field '{path}' with the custom analyzer '{analyzer}'. Source fields need a built-in analyzer."
                )));
            }
            if source_fields.iter().any(|known| known == path) {
                return Err(invalid_definition(format!("{place} names the field '{path}' twice.")));
            }
            source_fields.push(path.to_owned());
        }
        if source_fields.is_empty() {
            return Err(invalid_definition(format!("{place} needs at least one field in 'sourceFields'.")));
        }
        suggesters.push(Suggester { name: name.to_owned(), source_fields });
    }
    Ok(suggesters)
}

fn scoring_profiles(
    given: &DefinitionObject<'_>,
    schema: &IndexSchema,
) -> Result<Vec<ScoringProfile>, ApiError> {
    let list = given.list("scoringProfiles")?;
    if list.len() > SCORING_PROFILES {
        return Err(invalid_definition(format!(
            "The index has {} scoring profiles. At most {SCORING_PROFILES} are allowed.",
            list.len()
        )));
    }
    let mut profiles: Vec<ScoringProfile> = Vec::new();
    for (at, value) in list.iter().enumerate() {
        let profile = ScoringProfile::parse(value, at, schema)?;
        if profiles.iter().any(|known| known.name == profile.name) {
            return Err(invalid_definition(format!("There are two scoring profiles '{}'.", profile.name)));
        }
        profiles.push(profile);
    }
    Ok(profiles)
}

#[cfg(test)]
mod tests;
