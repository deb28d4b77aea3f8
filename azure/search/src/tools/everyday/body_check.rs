//! Checks definitions before they are sent, so that errors name the invalid member.

use std::sync::OnceLock;

use bindpost_mcp_openapi::{Document, SchemaPurpose};
use bindpost_mcp_server::CompiledSchema;
use serde_json::{Map, Value};

use super::DefinitionKind;
use crate::service::failure::{Kind, ServiceFailure};

/// Validates definitions against the schema of the API description, which is compiled on first use.
#[derive(Default)]
pub(super) struct BodyCheck(OnceLock<Option<CompiledSchema>>);

impl BodyCheck {
    pub(super) fn check(
        &self,
        kind: &DefinitionKind,
        document: &Document,
        body: &Value,
    ) -> Result<(), ServiceFailure> {
        let Some(schema) = self.0.get_or_init(|| compiled(kind, document)) else { return Ok(()) };
        schema.check(&without_nulls(body)).map_err(|wrong| {
            let message = format!("`body` is invalid:\n{wrong}");
            ServiceFailure::new(Kind::InvalidRequest, message)
        })
    }
}

fn compiled(kind: &DefinitionKind, document: &Document) -> Option<CompiledSchema> {
    let operation =
        kind.operations.iter().find_map(|group| document.operation(&format!("{group}_CreateOrUpdate")))?;
    let schema = document.whole_schema(&operation.body.as_ref()?.schema, SchemaPurpose::Input);
    match CompiledSchema::compile(&schema) {
        Ok(schema) => Some(schema),
        Err(error) => {
            tracing::warn!(operation = operation.id, %error, "the body is validated only by the service");
            None
        }
    }
}

/// Returns a copy without nulls. Services return null for members that are not set, and accept it.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let set = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                set.map(|(name, value)| (name.clone(), without_nulls(value))).collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}
