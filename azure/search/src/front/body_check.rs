//! Definitions are checked before they are sent: our own words name the member that is wrong.

use std::sync::OnceLock;

use bindpost_mcp_openapi::{Document, SchemaPurpose};
use bindpost_mcp_server::CompiledSchema;
use serde_json::{Map, Value};

use super::DefinitionKind;
use crate::failure::{Kind, ServiceFailure};

/// Checks definitions against the document's schema, which is compiled when it is first needed.
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
            let message = format!("`body` is not what the service takes:\n{wrong}");
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
            tracing::warn!(operation = operation.id, %error, "its body is not checked, the service will");
            None
        }
    }
}

/// A copy in which what is null is left out: services answer null for what is not set, and take it back as such.
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
