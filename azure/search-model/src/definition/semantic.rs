//! Semantic configurations: the fields that describe a document. This service does not rank by them, but it answers
//! retrieve requests with them.

use super::field::{IndexSchema, PrimitiveType};
use super::problem::{DefinitionError, DefinitionObject, invalid_definition};
use crate::ApiError;

/// The semantic configurations of an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SemanticSettings {
    pub configurations: Vec<SemanticConfiguration>,
    /// The name of the configuration of requests that name none.
    pub default_configuration: Option<String>,
}

/// The paths of the fields that describe a document, by importance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SemanticConfiguration {
    pub name: String,
    pub title: Option<String>,
    pub content: Vec<String>,
    pub keywords: Vec<String>,
}

impl SemanticSettings {
    /// Returns the configuration with this name, or the default one. An index with a single configuration needs no
    /// default.
    pub fn find(&self, name: Option<&str>) -> Option<&SemanticConfiguration> {
        match (name.or(self.default_configuration.as_deref()), self.configurations.as_slice()) {
            (Some(name), all) => all.iter().find(|configuration| configuration.name == name),
            (None, [only]) => Some(only),
            (None, _) => None,
        }
    }

    /// Parses the value of `semantic`. The fields must exist and be texts.
    pub(super) fn parse(
        given: Option<&DefinitionObject<'_>>,
        schema: &IndexSchema,
    ) -> Result<Self, ApiError> {
        let Some(given) = given else { return Ok(Self::default()) };
        given.allow_only(&["defaultConfiguration", "configurations"])?;
        let mut configurations: Vec<SemanticConfiguration> = Vec::new();
        for configuration in given.objects("configurations")? {
            let configuration = SemanticConfiguration::parse(&configuration, schema)?;
            if configurations.iter().any(|known| known.name == configuration.name) {
                return Err(invalid_definition(format!(
                    "There are two semantic configurations '{}'.",
                    configuration.name
                )));
            }
            configurations.push(configuration);
        }
        let default = given.text("defaultConfiguration")?.filter(|name| !name.is_empty());
        if let Some(default) = default
            && !configurations.iter().any(|configuration| configuration.name == default)
        {
            return Err(invalid_definition(format!(
                "'defaultConfiguration' is '{default}', but no semantic configuration has this name."
            )));
        }
        Ok(Self { configurations, default_configuration: default.map(str::to_owned) })
    }
}

impl SemanticConfiguration {
    fn parse(given: &DefinitionObject<'_>, schema: &IndexSchema) -> Result<Self, ApiError> {
        given.allow_only(&["name", "prioritizedFields", "rankingOrder", "flightingOptIn"])?;
        let name = given.required_text("name")?;
        given.choice_in_any_case("rankingOrder", &[("BoostedRerankerScore", ()), ("RerankerScore", ())])?;
        given.boolean("flightingOptIn")?;
        let fields = given.required_object("prioritizedFields")?;
        fields.allow_only(&["titleField", "prioritizedContentFields", "prioritizedKeywordsFields"])?;
        let list = |member: &str| {
            let named = fields.objects(member)?;
            named.iter().map(|field| field_path(field, name, schema)).collect::<Result<Vec<_>, ApiError>>()
        };
        let title = fields.object("titleField")?.map(|field| field_path(&field, name, schema)).transpose()?;
        let (content, keywords) = (list("prioritizedContentFields")?, list("prioritizedKeywordsFields")?);
        if title.is_none() && content.is_empty() && keywords.is_empty() {
            return Err(invalid_definition(format!(
                "'prioritizedFields' of semantic configuration '{name}' names no field. Add a title, content or keywords field."
            )));
        }
        Ok(Self { name: name.to_owned(), title, content, keywords })
    }
}

/// Returns the path that a reference names.
fn field_path(
    given: &DefinitionObject<'_>,
    configuration: &str,
    schema: &IndexSchema,
) -> Result<String, ApiError> {
    given.allow_only(&["fieldName"])?;
    let path = given.required_text("fieldName")?;
    let refuse = |problem: &str| -> DefinitionError {
        given.error("fieldName", format_args!("names '{path}' for '{configuration}', {problem}"))
    };
    let field = schema.find(path).ok_or_else(|| refuse("which the index does not have"))?;
    if field.kind.primitive() != Some(PrimitiveType::String) {
        let problem = "but only Edm.String and Collection(Edm.String) can be ranked semantically";
        return Err(refuse(problem).into());
    }
    Ok(path.to_owned())
}
