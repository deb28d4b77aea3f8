//! Skillsets. Only their shape is checked here, not what each skill does.

use std::collections::HashSet;

use crate::ApiError;

use super::place::ResourceProperty;

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

pub(super) fn skillset(top: &ResourceProperty<'_>) -> Result<(), ApiError> {
    let mut names = HashSet::new();
    for skill in top.required("skills")?.elements()? {
        skill.object()?;
        let odata_type = skill.required("@odata.type")?;
        let known = odata_type.text()?.strip_prefix(PREFIX).is_some_and(|name| SKILLS.contains(&name));
        if !known {
            let given = odata_type.text()?;
            let known = SKILLS.join(", ");
            return Err(odata_type
                .error(format_args!("is '{given}', but must be {PREFIX} followed by one of: {known}")));
        }
        if let Some(name) = skill.optional("name")
            && !names.insert(name.non_empty_text()?)
        {
            return Err(name.error("is also the name of another skill. Skill names must be unique"));
        }
        for puts in ["inputs", "outputs"] {
            for put in skill.required(puts)?.elements()? {
                put.object()?;
                put.required("name")?.non_empty_text()?;
            }
        }
    }
    if let Some(store) = top.optional("knowledgeStore") {
        store.object()?;
    }
    if let Some(projections) = top.optional("indexProjections") {
        for selector in projections.required("selectors")?.elements()? {
            selector.object()?;
        }
    }
    Ok(())
}
