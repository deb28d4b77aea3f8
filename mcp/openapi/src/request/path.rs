//! Builds the path of a request from the operation's path and the arguments.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::Value;

use super::RequestError;
use super::value::{ValueEncoding, encode_value};
use crate::operation::{Operation, Parameter, ParameterLocation, ParameterStyle};
use bindpost_net_upstream::{is_dot_segment, is_path_traversal};

/// Characters that are encoded in the literal parts of a path. Percent signs are kept, because documents
/// contain encoded paths.
const LITERAL: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// Returns the operation's path with its variables filled, encoded, with a leading `/`. It includes the
/// query in the document's path, if any. It ends before an optional variable without a value.
pub(super) fn fill_path<'a>(
    operation: &'a Operation,
    given: impl Fn(&Parameter) -> Option<&'a Value>,
) -> Result<String, RequestError> {
    let whole = operation.path.split('#').next().unwrap_or_default();
    let (template, query) = match whole.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (whole, None),
    };
    let mut path = String::with_capacity(template.len() + 32);
    let mut omitted: Option<&Parameter> = None;
    for segment in template.trim_start_matches('/').split('/') {
        if let Some(parameter) = omitted {
            check_rest(operation, parameter, segment, &given)?;
            continue;
        }
        path.push('/');
        let start = path.len();
        let mut last = None;
        match fill_segment(operation, segment, &given, &mut path, &mut last)? {
            SegmentEnd::Complete => {}
            SegmentEnd::Before(parameter) => {
                omitted = Some(parameter);
                if path.len() == start {
                    path.truncate(start.saturating_sub(1));
                    continue;
                }
            }
        }
        // The result is checked too, because adjacent variables and literal dots can form
        // a dot segment together.
        if let Some(parameter) = last
            && path.get(start..).is_none_or(|made| made.is_empty() || is_dot_segment(made))
        {
            return Err(unusable(parameter));
        }
    }
    if path.is_empty() {
        path.push('/');
    }
    if let Some(query) = query {
        path.push('?');
        path.extend(utf8_percent_encode(query, LITERAL));
    }
    Ok(path)
}

/// Where the path ends within a segment.
enum SegmentEnd<'a> {
    Complete,
    /// Before this optional parameter, which has no value.
    Before(&'a Parameter),
}

/// Returns an error if a variable after an omitted one has a value: it would have no place.
fn check_rest<'a>(
    operation: &Operation,
    omitted: &Parameter,
    segment: &str,
    given: &impl Fn(&Parameter) -> Option<&'a Value>,
) -> Result<(), RequestError> {
    let is_later = |parameter: &&Parameter| {
        parameter.place == ParameterLocation::Path && segment.contains(&format!("{{{}}}", parameter.name))
    };
    let mut later = operation.parameters.iter().filter(is_later);
    match later.any(|parameter| parameter.required || given(parameter).is_some()) {
        true => Err(RequestError::Missing(omitted.argument.clone())),
        false => Ok(()),
    }
}

/// Appends one segment. `last` is set to its last variable.
fn fill_segment<'a>(
    operation: &'a Operation,
    segment: &str,
    given: &impl Fn(&Parameter) -> Option<&'a Value>,
    path: &mut String,
    last: &mut Option<&'a Parameter>,
) -> Result<SegmentEnd<'a>, RequestError> {
    let mut rest = segment;
    while let Some((before, variable)) = rest.split_once('{') {
        let Some((name, after)) = variable.split_once('}') else { break };
        let parameter = operation
            .parameters
            .iter()
            .find(|parameter| parameter.place == ParameterLocation::Path && parameter.name == name)
            .ok_or_else(|| {
                RequestError::Operation(format!("its path has a variable `{name}` without a parameter"))
            })?;
        let default = || parameter.schema.get("default").filter(|_| !parameter.required);
        let Some(value) = given(parameter).or_else(default) else {
            return match parameter.required {
                true => Err(RequestError::Missing(parameter.argument.clone())),
                false => Ok(SegmentEnd::Before(parameter)),
            };
        };
        check(parameter, value)?;
        path.extend(utf8_percent_encode(before, LITERAL));
        // A key in quotation marks, as in OData: `indexes('name')`.
        let quoted = before.ends_with('\'') && after.starts_with('\'');
        let encoding = if quoted { ValueEncoding::Quoted } else { ValueEncoding::Strict };
        let text = encode_value(parameter, value, encoding);
        if text.is_empty() {
            return Err(RequestError::unusable(
                &parameter.argument,
                "is part of a path and must not be empty",
            ));
        }
        path.push_str(&text);
        *last = Some(parameter);
        rest = after;
    }
    path.extend(utf8_percent_encode(rest, LITERAL));
    Ok(SegmentEnd::Complete)
}

/// Rejects values that no encoding makes safe. Services decode paths before they resolve dots, and some
/// decode twice.
fn check(parameter: &Parameter, value: &Value) -> Result<(), RequestError> {
    match value {
        Value::String(text) => {
            if text.chars().any(char::is_control) {
                let problem = "is part of a path and contains a control character; remove it";
                return Err(RequestError::unusable(&parameter.argument, problem));
            }
            let has_dots = match parameter.style {
                ParameterStyle::Segments => text.split('/').any(is_dot_segment),
                _ => is_dot_segment(text),
            };
            if has_dots || is_path_traversal(text) {
                return Err(unusable(parameter));
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| check(parameter, item)),
        Value::Object(members) => members.iter().try_for_each(|(name, member)| {
            check(parameter, &Value::String(name.clone()))?;
            check(parameter, member)
        }),
        _ => Ok(()),
    }
}

fn unusable(parameter: &Parameter) -> RequestError {
    let problem = "is part of a path and must not be `.` or `..` or contain path traversal; use a plain name";
    RequestError::unusable(&parameter.argument, problem)
}
