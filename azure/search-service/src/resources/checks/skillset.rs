//! Skillsets. Only their shape is checked here, not what each skill does.

use std::collections::HashSet;

use bindpost_azure_search_model::ApiError;
use chrono::TimeDelta;

use crate::indexers::parse_duration;

use super::ResourceObject;

const PREFIX: &str = "#Microsoft.Skills.";

/// The members of every skill.
const COMMON: [&str; 5] = ["name", "description", "context", "inputs", "outputs"];
/// The other members of each kind of skill, of all API versions.
const SKILLS: [(&str, &[&str]); 25] = [
    ("Custom.AmlSkill", &["uri", "key", "resourceId", "timeout", "region", "degreeOfParallelism"]),
    (
        "Custom.ChatCompletionSkill",
        &[
            "uri",
            "httpHeaders",
            "httpMethod",
            "timeout",
            "batchSize",
            "degreeOfParallelism",
            "authResourceId",
            "authIdentity",
            "apiKey",
            "commonModelParameters",
            "extraParameters",
            "extraParametersBehavior",
            "responseFormat",
        ],
    ),
    (
        "Custom.WebApiSkill",
        &[
            "uri",
            "httpHeaders",
            "httpMethod",
            "timeout",
            "batchSize",
            "degreeOfParallelism",
            "authResourceId",
            "authIdentity",
        ],
    ),
    (
        "Text.AzureOpenAIEmbeddingSkill",
        &["resourceUri", "deploymentId", "apiKey", "authIdentity", "modelName", "dimensions"],
    ),
    (
        "Text.CustomEntityLookupSkill",
        &[
            "defaultLanguageCode",
            "entitiesDefinitionUri",
            "inlineEntitiesDefinition",
            "globalDefaultCaseSensitive",
            "globalDefaultAccentSensitive",
            "globalDefaultFuzzyEditDistance",
        ],
    ),
    (
        "Text.EntityRecognitionSkill",
        &["categories", "defaultLanguageCode", "includeTypelessEntities", "minimumPrecision"],
    ),
    ("Text.KeyPhraseExtractionSkill", &["defaultLanguageCode", "maxKeyPhraseCount", "modelVersion"]),
    ("Text.LanguageDetectionSkill", &["defaultCountryHint", "modelVersion"]),
    ("Text.MergeSkill", &["insertPreTag", "insertPostTag"]),
    ("Text.NamedEntityRecognitionSkill", &["categories", "defaultLanguageCode", "minimumPrecision"]),
    (
        "Text.PIIDetectionSkill",
        &[
            "defaultLanguageCode",
            "minimumPrecision",
            "maskingMode",
            "maskingCharacter",
            "modelVersion",
            "piiCategories",
            "domain",
        ],
    ),
    ("Text.SentimentSkill", &["defaultLanguageCode"]),
    (
        "Text.SplitSkill",
        &[
            "defaultLanguageCode",
            "textSplitMode",
            "maximumPageLength",
            "pageOverlapLength",
            "maximumPagesToTake",
            "unit",
            "azureOpenAITokenizerParameters",
        ],
    ),
    ("Text.TranslationSkill", &["defaultToLanguageCode", "defaultFromLanguageCode", "suggestedFrom"]),
    ("Text.V3.EntityLinkingSkill", &["defaultLanguageCode", "minimumPrecision", "modelVersion"]),
    (
        "Text.V3.EntityRecognitionSkill",
        &["categories", "defaultLanguageCode", "minimumPrecision", "modelVersion"],
    ),
    ("Text.V3.SentimentSkill", &["defaultLanguageCode", "includeOpinionMining", "modelVersion"]),
    ("Util.ConditionalSkill", &[]),
    ("Util.ContentUnderstandingSkill", &["extractionOptions", "chunkingProperties"]),
    ("Util.DocumentExtractionSkill", &["parsingMode", "dataToExtract", "configuration"]),
    (
        "Util.DocumentIntelligenceLayoutSkill",
        &["outputFormat", "outputMode", "markdownHeaderDepth", "extractionOptions", "chunkingProperties"],
    ),
    ("Util.ShaperSkill", &[]),
    ("Vision.ImageAnalysisSkill", &["defaultLanguageCode", "visualFeatures", "details"]),
    (
        "Vision.OcrSkill",
        &["defaultLanguageCode", "detectOrientation", "lineEnding", "textExtractionAlgorithm"],
    ),
    ("Vision.VectorizeSkill", &["modelVersion"]),
];

pub(super) fn skillset(top: &ResourceObject<'_>) -> Result<(), ApiError> {
    let mut names = HashSet::new();
    for skill in top.required_objects("skills")? {
        let given = skill.required_text("@odata.type")?;
        let known = given.strip_prefix(PREFIX).and_then(|name| SKILLS.iter().find(|known| known.0 == name));
        let Some((_, members)) = known else {
            let known = SKILLS.map(|(name, _)| name).join(", ");
            let problem = format_args!("must be {PREFIX} followed by one of {known}, not '{given}'");
            return Err(skill.error("@odata.type", problem));
        };
        skill.allow_only(&[COMMON.as_slice(), members].concat())?;
        skill.text("description")?;
        if skill.value("name").is_some() && !names.insert(skill.required_text("name")?) {
            let problem = "is also the name of another skill. Skill names must be unique";
            return Err(skill.error("name", problem));
        }
        for input in skill.required_objects("inputs")? {
            input.allow_only(&["name", "source", "sourceContext", "inputs"])?;
            input.required_text("name")?;
        }
        for output in skill.required_objects("outputs")? {
            output.allow_only(&["name", "targetName"])?;
            output.required_text("name")?;
        }
        timeout(&skill)?;
    }
    top.object("knowledgeStore")?;
    if let Some(projections) = top.object("indexProjections")? {
        projections.allow_only(&["selectors", "parameters"])?;
        projections.required_objects("selectors")?;
    }
    Ok(())
}

/// Checks how long a skill may wait for its service.
fn timeout(skill: &ResourceObject<'_>) -> Result<(), ApiError> {
    let Some(text) = skill.text("timeout")? else { return Ok(()) };
    let allowed = TimeDelta::seconds(1)..=TimeDelta::seconds(230);
    if parse_duration(text).is_some_and(|duration| allowed.contains(&duration)) {
        return Ok(());
    }
    let problem = format_args!("must be a duration from 'PT1S' to 'PT230S', such as 'PT30S', not '{text}'");
    Err(skill.error("timeout", problem))
}
