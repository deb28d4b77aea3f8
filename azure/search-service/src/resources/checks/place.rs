//! A value and its path in a definition, so that every error message can name it.

use std::fmt::{self, Display};

use serde_json::Value;

use crate::ApiError;
use crate::resources::{ResourceKind, ResourceRegistry};

/// A value inside a definition.
pub(super) struct ResourceProperty<'a> {
    of: (ResourceKind, &'a str),
    path: String,
    pub(super) value: &'a Value,
}

impl<'a> ResourceProperty<'a> {
    pub(super) fn top(kind: ResourceKind, name: &'a str, value: &'a Value) -> Self {
        Self { of: (kind, name), path: String::new(), value }
    }

    /// Returns a member that exists and is not null.
    pub(super) fn optional(&self, member: &str) -> Option<ResourceProperty<'a>> {
        let value = self.value.get(member).filter(|value| !value.is_null())?;
        Some(self.child(member, value))
    }

    pub(super) fn required(&self, member: &str) -> Result<ResourceProperty<'a>, ApiError> {
        let missing = || self.child(member, self.value).error("is required");
        self.optional(member).ok_or_else(missing)
    }

    pub(super) fn text(&self) -> Result<&'a str, ApiError> {
        self.value.as_str().ok_or_else(|| self.error("must be a string"))
    }

    pub(super) fn non_empty_text(&self) -> Result<&'a str, ApiError> {
        let text = self.text()?;
        if text.is_empty() { Err(self.error("must not be empty")) } else { Ok(text) }
    }

    pub(super) fn object(&self) -> Result<(), ApiError> {
        if self.value.is_object() { Ok(()) } else { Err(self.error("must be a JSON object")) }
    }

    pub(super) fn elements(&self) -> Result<Vec<ResourceProperty<'a>>, ApiError> {
        let elements = self.value.as_array().ok_or_else(|| self.error("must be a JSON array"))?;
        let numbered = elements.iter().enumerate();
        Ok(numbered.map(|(position, value)| self.child(&position.to_string(), value)).collect())
    }

    pub(super) fn one_of(&self, known: &[&str]) -> Result<&'a str, ApiError> {
        let text = self.text()?;
        if known.contains(&text) {
            return Ok(text);
        }
        Err(self.error(format_args!("is '{text}', but must be one of: {}", known.join(", "))))
    }

    /// Checks that the value is the name of an existing definition.
    pub(super) fn check_reference(&self, kind: ResourceKind, all: &ResourceRegistry) -> Result<(), ApiError> {
        let name = self.non_empty_text()?;
        if all.exists(kind, name) {
            return Ok(());
        }
        Err(self.error(format_args!(
            "refers to {} {kind} '{name}' that doesn't exist. Create it first, or correct the name",
            kind.article()
        )))
    }

    pub(super) fn error(&self, what: impl Display) -> ApiError {
        ApiError::invalid(format!("{self} {what}."))
    }

    fn child(&self, member: &str, value: &'a Value) -> ResourceProperty<'a> {
        let separator = if self.path.is_empty() { "" } else { "/" };
        ResourceProperty { of: self.of, path: format!("{}{separator}{member}", self.path), value }
    }
}

impl Display for ResourceProperty<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = self.of;
        write!(f, "The property '{}' of the {kind} '{name}'", self.path)
    }
}
