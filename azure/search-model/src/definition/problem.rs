//! Errors of invalid definitions, with the prefix that Azure AI Search uses.

use std::fmt::Display;

use bindpost_net_json::{JsonPlace, ObjectReader, PlaceError};
use serde_json::Value;

use crate::ApiError;

/// Creates the error for an invalid definition.
pub(super) fn invalid_definition(reason: impl Display) -> ApiError {
    ApiError::invalid(format!("The request is invalid. Details: definition : {reason}"))
}

/// One JSON object of a definition.
pub(super) type DefinitionObject<'a> = ObjectReader<'a, DefinitionError>;

/// Reads the object that describes `owner`, such as `field 'address/city'`.
pub(super) fn read_object<'a>(
    value: &'a Value,
    owner: &str,
) -> Result<DefinitionObject<'a>, DefinitionError> {
    ObjectReader::new(value, JsonPlace::of(owner))
}

/// Reads the object at a path of the index, such as `fields[2]`, before its name is known.
pub(super) fn read_element<'a>(
    value: &'a Value,
    owner: &str,
    list: &str,
    position: usize,
) -> Result<DefinitionObject<'a>, DefinitionError> {
    ObjectReader::new(value, JsonPlace::of(owner).member(list).element(position))
}

/// An error of [`DefinitionObject`].
pub(super) struct DefinitionError(PlaceError);

impl From<PlaceError> for DefinitionError {
    fn from(error: PlaceError) -> Self {
        Self(error)
    }
}

impl From<DefinitionError> for ApiError {
    fn from(DefinitionError(error): DefinitionError) -> Self {
        invalid_definition(error)
    }
}
