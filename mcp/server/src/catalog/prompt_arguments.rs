//! [`PromptArguments`]: validates the arguments of a prompt, as those of tools are.
//!
//! Arguments of prompts are texts. Where the type of a parameter is no text, the text is parsed as JSON first.

use bindpost_mcp_protocol::PromptArgument;
use serde_json::{Map, Value, json};

use crate::handler::extract::normalize_integers;
use crate::handler::schema::{CompiledSchema, UnknownMembers};
use crate::handler::signature::Signature;

/// The compiled description of a prompt's arguments.
#[derive(Debug)]
pub(crate) struct PromptArguments {
    schema: CompiledSchema,
    typed: Vec<TypedArgument>,
    pub(crate) unknown: UnknownMembers,
}

/// An argument whose type is not just a text.
#[derive(Debug)]
struct TypedArgument {
    name: String,
    schema: CompiledSchema,
    may_be_text: bool,
}

impl PromptArguments {
    /// Compiles the description of the declared arguments. The signature has the types of those that are
    /// parameters.
    pub(crate) fn compile(
        declared: &[PromptArgument],
        signature: &Signature,
    ) -> Result<PromptArguments, String> {
        let mut root = signature.derived_schema();
        let has_properties =
            root.get("properties").and_then(Value::as_object).is_some_and(|members| !members.is_empty());
        let unknown = match has_properties {
            true => signature.unknown_members(),
            false => {
                root = json!({"type": "object"});
                signature.unknown_without_properties(!declared.is_empty())
            }
        };
        let definitions = root.get("$defs").cloned();
        let mut typed = Vec::new();
        let mut properties = Map::new();
        for argument in declared {
            let described = root.get("properties").and_then(|known| known.get(&argument.name)).cloned();
            let mut property = described.unwrap_or_else(|| json!({"type": "string"}));
            if property.get("type").and_then(Value::as_str) != Some("string") {
                match TypedArgument::compile(&argument.name, &property, definitions.as_ref()) {
                    Some(argument) => typed.push(argument),
                    // Its handler reports what it cannot decode.
                    None => property = json!({}),
                }
            }
            properties.insert(argument.name.clone(), property);
        }
        let required: Vec<&str> = declared
            .iter()
            .filter(|argument| argument.required)
            .map(|argument| argument.name.as_str())
            .collect();
        root["properties"] = Value::Object(properties);
        root["required"] = json!(required);
        let schema = CompiledSchema::compile_derived(&root, unknown)
            .map_err(|error| format!("the schema of its arguments: {error}"))?;
        Ok(PromptArguments { schema, typed, unknown })
    }

    /// Validates the arguments and returns them with the types of the parameters. The error lists every
    /// mistake.
    pub(crate) fn check(&self, given: Map<String, Value>) -> Result<Value, String> {
        let mut given = given;
        for argument in &self.typed {
            if let Some(value) = given.get_mut(&argument.name) {
                argument.convert(value);
            }
        }
        let mut given = Value::Object(given);
        self.schema.normalize(&mut given);
        self.schema.check(&given).map(|()| given)
    }
}

impl TypedArgument {
    /// Returns `None` for a schema that refers to others outside of it.
    fn compile(name: &str, property: &Value, definitions: Option<&Value>) -> Option<TypedArgument> {
        let mut schema = property.clone();
        if let (Value::Object(members), Some(definitions)) = (&mut schema, definitions) {
            members.insert("$defs".to_owned(), definitions.clone());
        }
        let may_be_text = match property.get("type") {
            Some(Value::Array(types)) => types.iter().any(|one| one == "string"),
            Some(one) => one == "string",
            None => true,
        };
        let schema = CompiledSchema::compile_derived(&schema, UnknownMembers::Rejected).ok()?;
        Some(TypedArgument { name: name.to_owned(), schema, may_be_text })
    }

    /// Parses a text that is not valid as it is, if it is valid then, or if only that can be valid.
    fn convert(&self, value: &mut Value) {
        let Value::String(text) = value else { return };
        let Ok(mut plain) = serde_json::from_str::<Value>(text) else { return };
        if plain.is_string() || self.schema.check(value).is_ok() {
            return;
        }
        normalize_integers(&mut plain);
        if !self.may_be_text || self.schema.check(&plain).is_ok() {
            *value = plain;
        }
    }
}
