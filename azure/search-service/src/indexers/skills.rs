//! Skillsets: the skills that need no model. They run over each document before it is indexed.

mod expression;
mod merge;
mod split;
pub(crate) mod tree;

use bindpost_azure_search_model::ApiError;
use bindpost_net_json::JsonPlace;
use expression::SkillExpression;
use serde_json::{Map, Value};
use split::TextSplitter;
use tree::{EnrichmentNode, EnrichmentPath};

use super::definition::IndexerObject;

/// Skills in the order of execution.
#[derive(Debug)]
pub(crate) struct Skillset {
    pub name: String,
    skills: Vec<Skill>,
    /// Parts of the definition that runs ignore. They are reported once per run.
    pub notes: Vec<String>,
}

#[derive(Debug)]
struct Skill {
    name: String,
    context: EnrichmentPath,
    inputs: Vec<SkillInput>,
    /// Names of outputs, and their names in the tree.
    outputs: Vec<(String, String)>,
    kind: SkillKind,
}

#[derive(Debug)]
enum SkillKind {
    Split(TextSplitter),
    Merge {
        before: String,
        after: String,
    },
    Shape,
    Conditional,
    /// A skill that is stored and skipped.
    Elsewhere(String),
}

#[derive(Debug)]
struct SkillInput {
    name: String,
    from: SkillInputSource,
}

#[derive(Debug)]
enum SkillInputSource {
    Path(EnrichmentPath),
    Expression(SkillExpression),
    Parts { context: Option<EnrichmentPath>, inputs: Vec<SkillInput> },
}

/// A problem of a skill with a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkillWarning {
    pub skill: String,
    pub message: String,
}

const DEEPEST_INPUTS: usize = 8;
const LARGEST_RESULT: usize = 256 * 1024 * 1024;
const MOST_SKILLS: usize = 100;

impl Skillset {
    pub(crate) fn parse(json: &Value) -> Result<Self, ApiError> {
        let given = IndexerObject::new(json, JsonPlace::of("the skillset"))?;
        let name = given.required_text("name")?.to_owned();
        let skills = given.required_objects("skills")?;
        if skills.len() > MOST_SKILLS {
            return Err(given.error("skills", format_args!("must have at most {MOST_SKILLS} skills")));
        }
        let skills = skills.iter().enumerate().map(|(at, skill)| Skill::parse(skill, at + 1));
        let mut notes = Vec::new();
        for (part, label) in
            [("indexProjections", "index projections"), ("knowledgeStore", "knowledge stores")]
        {
            if given.value(part).is_some() {
                notes.push(format!(
                    "Skillset '{name}' has {label}, which this service stores but does not run."
                ));
            }
        }
        Ok(Self { name, skills: skills.collect::<Result<_, _>>()?, notes })
    }

    /// Runs all skills over one document.
    pub(crate) fn enrich(&self, tree: &mut EnrichmentNode) -> Vec<SkillWarning> {
        let mut warnings = Vec::new();
        for skill in &self.skills {
            if let Err(message) = skill.run(tree) {
                warnings.push(SkillWarning { skill: skill.name.clone(), message });
            }
        }
        warnings
    }
}

impl Skill {
    fn parse(given: &IndexerObject<'_>, at: usize) -> Result<Self, ApiError> {
        let name = given.text("name")?.map_or_else(|| format!("#{at}"), str::to_owned);
        let kind = match given.required_text("@odata.type")? {
            "#Microsoft.Skills.Text.SplitSkill" => match given.text("unit")? {
                None | Some("characters") => SkillKind::Split(TextSplitter::parse(given)?),
                Some(_) => SkillKind::Elsewhere(
                    "needs a tokenizer model, which this service does not have; use the unit 'characters'"
                        .to_owned(),
                ),
            },
            "#Microsoft.Skills.Text.MergeSkill" => SkillKind::Merge {
                before: given.text("insertPreTag")?.unwrap_or(" ").to_owned(),
                after: given.text("insertPostTag")?.unwrap_or(" ").to_owned(),
            },
            "#Microsoft.Skills.Util.ShaperSkill" => SkillKind::Shape,
            "#Microsoft.Skills.Util.ConditionalSkill" => SkillKind::Conditional,
            other => SkillKind::Elsewhere(format!(
                "of type '{other}' needs a model or a service that is not available"
            )),
        };
        let outputs = given.required_objects("outputs")?.into_iter().map(|output| {
            let name = output.required_text("name")?;
            Ok::<_, ApiError>((name.to_owned(), output.text("targetName")?.unwrap_or(name).to_owned()))
        });
        let outputs = outputs.collect::<Result<_, _>>()?;
        let inputs = inputs(given, 0)?;
        Ok(Self {
            context: EnrichmentPath::parse(given.text("context")?.unwrap_or("/document"))?,
            name,
            inputs,
            outputs,
            kind,
        })
    }

    fn run(&self, tree: &mut EnrichmentNode) -> Result<(), String> {
        if let SkillKind::Elsewhere(why) = &self.kind {
            return Err(format!("Skill '{}' {why}; it was skipped.", self.name));
        }
        for place in tree.places(&self.context) {
            let input = |name: &str| {
                let input = self.inputs.iter().find(|input| input.name == name)?;
                input.value(tree, &self.context, &place).filter(|value| !value.is_null())
            };
            let results = match &self.kind {
                SkillKind::Split(splitter) => match input("text") {
                    Some(Value::String(text)) => splitter.split(&text),
                    Some(_) => return Err(format!("The input 'text' of skill '{}' is not text.", self.name)),
                    None => return Err(format!("The input 'text' of skill '{}' is missing.", self.name)),
                },
                SkillKind::Merge { before, after } => {
                    merge::merge(input("text"), input("itemsToInsert"), input("offsets"), before, after)?
                }
                SkillKind::Shape => {
                    let members = self.inputs.iter().filter_map(|input| {
                        Some((input.name.clone(), input.value(tree, &self.context, &place)?))
                    });
                    Map::from_iter([("output".to_owned(), Value::Object(members.collect()))])
                }
                SkillKind::Conditional => {
                    let holds = match input("condition") {
                        Some(Value::Bool(holds)) => holds,
                        _ => {
                            return Err(format!(
                                "The condition of skill '{}' is neither true nor false.",
                                self.name
                            ));
                        }
                    };
                    let chosen = input(if holds { "whenTrue" } else { "whenFalse" });
                    Map::from_iter([("output".to_owned(), chosen.unwrap_or(Value::Null))])
                }
                SkillKind::Elsewhere(_) => continue,
            };
            // Skills that copy the results of other skills could double the size of a document each time.
            if results.values().map(tree::estimated_bytes).sum::<usize>() > LARGEST_RESULT {
                return Err(format!(
                    "The result of skill '{}' is larger than {LARGEST_RESULT} bytes.",
                    self.name
                ));
            }
            let mut results = results;
            for (name, target) in &self.outputs {
                if let Some(value) = results.get_mut(name) {
                    tree.put(&self.context, &place, target, value.take());
                }
            }
        }
        Ok(())
    }
}

impl SkillInput {
    fn value(&self, tree: &EnrichmentNode, context: &EnrichmentPath, place: &[usize]) -> Option<Value> {
        match &self.from {
            SkillInputSource::Path(path) => tree.input(context, place, path),
            SkillInputSource::Expression(expression) => {
                Some(expression.value(&|path| tree.input(context, place, path).unwrap_or(Value::Null)))
            }
            SkillInputSource::Parts { context: None, inputs } => Some(shape(inputs, tree, context, place)),
            SkillInputSource::Parts { context: Some(inner), inputs } => {
                let places = tree.places_below(inner, context, place);
                Some(Value::Array(places.iter().map(|place| shape(inputs, tree, inner, place)).collect()))
            }
        }
    }
}

fn shape(inputs: &[SkillInput], tree: &EnrichmentNode, context: &EnrichmentPath, place: &[usize]) -> Value {
    let members =
        inputs.iter().filter_map(|input| Some((input.name.clone(), input.value(tree, context, place)?)));
    Value::Object(members.collect())
}

fn inputs(given: &IndexerObject<'_>, depth: usize) -> Result<Vec<SkillInput>, ApiError> {
    if depth > DEEPEST_INPUTS {
        return Err(given.error("inputs", "is nested too deeply"));
    }
    let list = given.required_objects("inputs")?.into_iter();
    list.map(|input| {
        let name = input.required_text("name")?.to_owned();
        let from = match input.text("source")? {
            Some(source) if source.trim_start().starts_with('=') => SkillInputSource::Expression(
                SkillExpression::parse(source.trim_start().trim_start_matches('='))?,
            ),
            Some(source) => SkillInputSource::Path(EnrichmentPath::parse(source)?),
            None => SkillInputSource::Parts {
                context: input.text("sourceContext")?.map(EnrichmentPath::parse).transpose()?,
                inputs: inputs(&input, depth + 1)?,
            },
        };
        Ok(SkillInput { name, from })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn enrich(skills: Value, document: Value) -> (EnrichmentNode, Vec<SkillWarning>) {
        let skillset = Skillset::parse(&json!({"name": "s", "skills": skills})).unwrap();
        let mut tree = EnrichmentNode::document(document.as_object().unwrap(), &Map::new());
        let warnings = skillset.enrich(&mut tree);
        (tree, warnings)
    }

    fn at(tree: &EnrichmentNode, path: &str) -> Option<Value> {
        tree.select(&EnrichmentPath::parse(path).unwrap())
    }

    #[test]
    fn splits_a_value_and_processes_each_page() {
        let (tree, warnings) = enrich(
            json!([
                {"@odata.type": "#Microsoft.Skills.Text.SplitSkill", "context": "/document/content",
                 "textSplitMode": "sentences",
                 "inputs": [{"name": "text", "source": "/document/content"}],
                 "outputs": [{"name": "textItems", "targetName": "pages"}]},
                {"@odata.type": "#Microsoft.Skills.Util.ShaperSkill", "context": "/document/content/pages/*",
                 "inputs": [{"name": "page", "source": "/document/content/pages/*"},
                            {"name": "title", "source": "/document/title"}],
                 "outputs": [{"name": "output", "targetName": "shaped"}]},
            ]),
            json!({"content": "One. Two.", "title": "T"}),
        );
        assert_eq!(warnings, []);
        assert_eq!(at(&tree, "/document/content"), Some(json!("One. Two.")));
        assert_eq!(at(&tree, "/document/content/pages/*"), Some(json!(["One. ", "Two."])));
        assert_eq!(at(&tree, "/document/content/pages/*/shaped/page"), Some(json!(["One. ", "Two."])));
        assert_eq!(at(&tree, "/document/content/pages/1/shaped/title"), Some(json!("T")));
    }

    #[test]
    fn a_condition_selects_a_value() {
        let skill = json!([{"@odata.type": "#Microsoft.Skills.Util.ConditionalSkill", "inputs": [
            {"name": "condition", "source": "= $(/document/language) == null"},
            {"name": "whenTrue", "source": "= 'en'"},
            {"name": "whenFalse", "source": "= $(/document/language)"}],
            "outputs": [{"name": "output", "targetName": "spoken"}]}]);
        let (tree, _) = enrich(skill.clone(), json!({}));
        assert_eq!(at(&tree, "/document/spoken"), Some(json!("en")));
        let (tree, _) = enrich(skill, json!({"language": "fr"}));
        assert_eq!(at(&tree, "/document/spoken"), Some(json!("fr")));
    }

    #[test]
    fn shapes_lists_of_parts() {
        let (tree, _) = enrich(
            json!([{"@odata.type": "#Microsoft.Skills.Util.ShaperSkill",
                "inputs": [{"name": "rooms", "sourceContext": "/document/list/*",
                    "inputs": [{"name": "title", "source": "/document/list/*/n"}]}],
                "outputs": [{"name": "output", "targetName": "o"}]}]),
            json!({"list": [{"n": 1}, {"n": 2}]}),
        );
        assert_eq!(at(&tree, "/document/o/rooms"), Some(json!([{"title": 1}, {"title": 2}])));
    }

    #[test]
    fn skills_that_need_models_warn_and_are_skipped() {
        let (_, warnings) = enrich(
            json!([{"@odata.type": "#Microsoft.Skills.Text.V3.EntityRecognitionSkill", "name": "ents",
                "inputs": [], "outputs": []}]),
            json!({}),
        );
        assert!(warnings[0].message.contains("'ents'") && warnings[0].message.contains("needs a model"));
    }
}
