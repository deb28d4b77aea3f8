//! Reads the parameters of a search, suggest or autocomplete request.

use std::borrow::Cow;

use bindpost_azure_search_model::{ApiError, RequestObject};
use bindpost_net_json::JsonPlace;
use serde_json::Value;

/// Rejects parameters that are not in `known`, because a typing error would silently change the result.
pub(super) fn read_parameters<'a>(body: &'a Value, known: &[&str]) -> Result<RequestObject<'a>, ApiError> {
    let given = RequestObject::new(body, JsonPlace::of("the request"))?;
    given.allow_only(known)?;
    Ok(given)
}

/// Returns names separated by commas. A list of strings is accepted as well, because version 12 of
/// the Python package sends lists to suggest and autocomplete.
pub(super) fn read_names<'a>(
    given: &RequestObject<'a>,
    name: &str,
) -> Result<Option<Cow<'a, str>>, ApiError> {
    match given.value(name) {
        Some(Value::Array(_)) => Ok(Some(given.texts(name)?.join(",").into())),
        _ => Ok(given.text(name)?.map(Cow::Borrowed)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{read_names, read_parameters};

    #[test]
    fn names_are_comma_separated_or_a_list() {
        let names = |select| {
            let body = json!({"select": select});
            let given = read_parameters(&body, &["select"]).unwrap();
            read_names(&given, "select").map(|names| names.map(|names| names.into_owned())).map_err(|_| ())
        };
        assert_eq!(names(json!("id,name")), Ok(Some("id,name".to_owned())));
        assert_eq!(names(json!(["id", "name"])), Ok(Some("id,name".to_owned())));
        assert_eq!(names(json!(null)), Ok(None));
        assert_eq!(names(json!([1])), Err(()));
        assert_eq!(names(json!(1)), Err(()));
    }
}
