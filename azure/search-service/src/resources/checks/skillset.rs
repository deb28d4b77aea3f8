//! Skillsets. Only their shape is checked here, not what each skill does.

use std::collections::HashSet;

use bindpost_azure_search_model::ApiError;

use super::ResourceObject;

const PREFIX: &str = "#Microsoft.Skills.";
const SKILLS: [&str; 25] = [
    "Custom.AmlSkill",
    "Custom.ChatCompletionSkill",
    "Custom.WebApiSkill",
    "Text.AzureOpenAIEmbeddingSkill",
    "Text.CustomEntityLookupSkill",
    "Text.EntityRecognitionSkill",
    "Text.KeyPhraseExtractionSkill",
    "Text.LanguageDetectionSkill",
    "Text.MergeSkill",
    "Text.NamedEntityRecognitionSkill",
    "Text.PIIDetectionSkill",
    "Text.SentimentSkill",
    "Text.SplitSkill",
    "Text.TranslationSkill",
    "Text.V3.EntityLinkingSkill",
    "Text.V3.EntityRecognitionSkill",
    "Text.V3.SentimentSkill",
    "Util.ConditionalSkill",
    "Util.ContentUnderstandingSkill",
    "Util.DocumentExtractionSkill",
    "Util.DocumentIntelligenceLayoutSkill",
    "Util.ShaperSkill",
    "Vision.ImageAnalysisSkill",
    "Vision.OcrSkill",
    "Vision.VectorizeSkill",
];

pub(super) fn skillset(top: &ResourceObject<'_>) -> Result<(), ApiError> {
    let mut names = HashSet::new();
    for skill in top.required_objects("skills")? {
        let given = skill.required_text("@odata.type")?;
        if !given.strip_prefix(PREFIX).is_some_and(|name| SKILLS.contains(&name)) {
            let known = SKILLS.join(", ");
            let problem = format_args!("must be {PREFIX} followed by one of {known}, not '{given}'");
            return Err(skill.error("@odata.type", problem));
        }
        if skill.value("name").is_some() && !names.insert(skill.required_text("name")?) {
            let problem = "is also the name of another skill. Skill names must be unique";
            return Err(skill.error("name", problem));
        }
        for puts in ["inputs", "outputs"] {
            for put in skill.required_objects(puts)? {
                put.required_text("name")?;
            }
        }
    }
    top.object("knowledgeStore")?;
    if let Some(projections) = top.object("indexProjections")? {
        projections.required_objects("selectors")?;
    }
    Ok(())
}
