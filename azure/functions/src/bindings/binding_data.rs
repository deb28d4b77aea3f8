//! [`BindingData`]: the values for path expressions and for the trigger metadata of an invocation.

use std::borrow::Cow;

use bindpost_net_json::text::push_string;

use super::context::{McpRequest, RequestSubject, TriggerContext};
use super::raw_json::{checked_members, dotnet_text, member_in_any_case, same_in_any_case};
use crate::datum::Datum;

/// The values for path expressions and for the trigger metadata. Top-level names match in any case.
#[derive(Clone, Copy, Debug)]
pub struct BindingData<'a> {
    source: DataSource<'a>,
    function: &'a str,
}

/// The source of the values.
#[derive(Clone, Copy, Debug)]
enum DataSource<'a> {
    Mcp(McpData<'a>),
    /// Named values, as other triggers have them. Of equal names the first one is used.
    Values(&'a [(String, Datum)]),
}

/// The values of an MCP request.
///
/// If names collide, a variable of a resource's URI has precedence over a member of the context JSON, and
/// that over the names of the extension: `snippet://{Name}` always fills `{Name}`.
#[derive(Clone, Copy, Debug)]
struct McpData<'a> {
    request: &'a McpRequest<'a>,
    context: &'a TriggerContext,
    parameter: &'a str,
}

/// A top-level value of an expression.
enum BindingValue<'a> {
    Text(&'a str),
    Json(&'a str),
    /// The arguments: `mcptoolargs` or `mcppromptargs`.
    Arguments,
    /// The variables of the URI: `mcpresourceargs`.
    Variables,
}

/// A part of an expression that does not exist in the value before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoSuchPart<'a>(pub(crate) &'a str);

impl<'a> BindingData<'a> {
    /// Creates the data of one MCP request to a function whose trigger has this parameter. `context` is the
    /// context of the request.
    pub fn new(
        request: &'a McpRequest<'a>,
        context: &'a TriggerContext,
        parameter: &'a str,
        function: &'a str,
    ) -> BindingData<'a> {
        BindingData { source: DataSource::Mcp(McpData { request, context, parameter }), function }
    }

    /// Creates the data of another trigger from its named values.
    pub(crate) fn from_values(values: &'a [(String, Datum)], function: &'a str) -> BindingData<'a> {
        BindingData { source: DataSource::Values(values), function }
    }

    /// Returns the name of the function: `{sys.methodname}`.
    pub fn function(&self) -> &'a str {
        self.function
    }

    /// Returns the trigger metadata for a worker. It contains only text and JSON, because the Python worker
    /// fails an invocation with other types.
    pub fn metadata(&self) -> Vec<(String, Datum)> {
        match self.source {
            DataSource::Mcp(data) => data.metadata_of(data.values()),
            DataSource::Values(values) => values.to_vec(),
        }
    }

    /// Returns the trigger metadata for built-in workers, without the context and its parts: they read these
    /// from the trigger's value. Otherwise large arguments would be sent four times.
    pub fn lean_metadata(&self) -> Vec<(String, Datum)> {
        match self.source {
            DataSource::Mcp(data) => data.metadata_of(data.variable_values().chain(data.named_values())),
            DataSource::Values(values) => values.to_vec(),
        }
    }

    /// Returns the value of `first.rest.rest`, or `Ok(None)` if there is no value named `first`.
    ///
    /// Objects and arrays in JSON have no text form and give an empty string.
    pub(crate) fn look_up<'p>(
        &self,
        first: &str,
        rest: &'p [String],
    ) -> Result<Option<Cow<'a, str>>, NoSuchPart<'p>> {
        let found = match self.source {
            DataSource::Mcp(data) => return data.look_up(first, rest),
            DataSource::Values(values) => values.iter().find(|(name, _)| same_in_any_case(name, first)),
        };
        let Some((_, value)) = found else { return Ok(None) };
        let found = match value {
            Datum::Text(text) => leaf(Some(text.into()), rest),
            Datum::Json(json) => json_part(json, rest),
            Datum::Int(number) => leaf(Some(number.to_string().into()), rest),
            Datum::Double(number) => leaf(Some(number.to_string().into()), rest),
            Datum::Nothing | Datum::Bytes(_) | Datum::HttpRequest(_) | Datum::HttpResponse(_) => {
                leaf(None, rest)
            }
        };
        found.map(Some)
    }
}

impl<'a> McpData<'a> {
    fn metadata_of<'v>(
        &self,
        values: impl Iterator<Item = (&'v str, BindingValue<'v>)>,
    ) -> Vec<(String, Datum)> {
        let mut metadata: Vec<(String, Datum)> = Vec::with_capacity(12);
        for (name, value) in values {
            // There are few names, so comparing all is cheaper than a map.
            if metadata.iter().any(|(known, _)| same_in_any_case(known, name)) {
                continue;
            }
            let datum = match value {
                BindingValue::Text(text) => Datum::from(text),
                BindingValue::Json(json) if json.starts_with('[') => continue,
                BindingValue::Json(json) if json.starts_with('"') => {
                    Datum::Text(dotnet_text(json).into_owned())
                }
                BindingValue::Json(json) => Datum::Json(json.to_owned()),
                BindingValue::Arguments => {
                    let texts = self.request.arguments().into_iter().flat_map(|all| all.texts());
                    string_map(texts)
                }
                BindingValue::Variables => {
                    let variables = self.variables().iter();
                    string_map(variables.map(|(name, value)| (name.as_str(), value.into())))
                }
            };
            metadata.push((name.to_owned(), datum));
        }
        metadata
    }

    fn look_up<'p>(&self, first: &str, rest: &'p [String]) -> Result<Option<Cow<'a, str>>, NoSuchPart<'p>> {
        let Some((_, value)) = self.values().find(|(name, _)| same_in_any_case(name, first)) else {
            return Ok(None);
        };
        let found = match value {
            BindingValue::Text(text) => leaf(Some(text.into()), rest),
            BindingValue::Json(json) => json_part(json, rest),
            BindingValue::Arguments => {
                inside(rest, |name| self.request.arguments().and_then(|arguments| arguments.text(name)))
            }
            BindingValue::Variables => inside(rest, |name| {
                let same = |(known, _): &&(String, String)| same_in_any_case(known, name);
                self.variables().iter().find(same).map(|(_, value)| Cow::from(value.as_str()))
            }),
        };
        found.map(Some)
    }

    fn variables(&self) -> &'a [(String, String)] {
        match self.request.subject {
            RequestSubject::Resource { variables, .. } => variables,
            RequestSubject::Tool { .. } | RequestSubject::Prompt { .. } => &[],
        }
    }

    /// Returns all names with their values. Of equal names the first one is used.
    fn values(&self) -> impl Iterator<Item = (&'a str, BindingValue<'a>)> + use<'a> {
        let whole = self.context.as_str();
        let context = match self.request.subject {
            RequestSubject::Tool { .. } => "mcptoolcontext",
            RequestSubject::Resource { .. } => "mcpresourcecontext",
            RequestSubject::Prompt { .. } => "mcppromptcontext",
        };
        self.variable_values()
            .chain(self.context.members().map(|(name, json)| (name, BindingValue::Json(json))))
            .chain(self.named_values())
            .chain([(context, BindingValue::Json(whole)), (self.parameter, BindingValue::Text(whole))])
    }

    fn variable_values(&self) -> impl Iterator<Item = (&'a str, BindingValue<'a>)> + use<'a> {
        self.variables().iter().map(|(name, value)| (name.as_str(), BindingValue::Text(value)))
    }

    /// Returns the values that the extension names itself, except the context.
    fn named_values(&self) -> impl Iterator<Item = (&'a str, BindingValue<'a>)> + use<'a> {
        let (uri, arguments) = match &self.request.subject {
            RequestSubject::Tool { arguments, .. } => {
                (None, arguments.as_json().map(|_| ("mcptoolargs", BindingValue::Arguments)))
            }
            RequestSubject::Prompt { arguments, .. } => {
                (None, arguments.as_json().map(|_| ("mcppromptargs", BindingValue::Arguments)))
            }
            RequestSubject::Resource { uri, variables } => {
                (Some(*uri), (!variables.is_empty()).then_some(("mcpresourceargs", BindingValue::Variables)))
            }
        };
        let uri = uri.map(|uri| ("mcpresourceuri", BindingValue::Text(uri)));
        let session = self.request.session_id.map(|id| ("mcpsessionid", BindingValue::Text(id)));
        arguments.into_iter().chain(uri).chain(session)
    }
}

fn string_map<'a>(entries: impl Iterator<Item = (&'a str, Cow<'a, str>)>) -> Datum {
    let mut json = String::with_capacity(128);
    json.push('{');
    for (at, (name, text)) in entries.enumerate() {
        if at > 0 {
            json.push(',');
        }
        push_string(&mut json, name);
        json.push(':');
        push_string(&mut json, &text);
    }
    json.push('}');
    Datum::Json(json)
}

/// Returns a text, which has no parts: a further part is an error.
fn leaf<'a, 'p>(text: Option<Cow<'a, str>>, rest: &'p [String]) -> Result<Cow<'a, str>, NoSuchPart<'p>> {
    match rest.first() {
        Some(part) => Err(NoSuchPart(part)),
        None => Ok(text.unwrap_or_default()),
    }
}

/// Returns a value of a map of texts. The map itself has no text form.
fn inside<'a, 'p>(
    rest: &'p [String],
    get: impl Fn(&str) -> Option<Cow<'a, str>>,
) -> Result<Cow<'a, str>, NoSuchPart<'p>> {
    match rest.split_first() {
        None => Ok(Cow::default()),
        Some((name, rest)) => leaf(Some(get(name).ok_or(NoSuchPart(name))?), rest),
    }
}

/// Returns a value in JSON. Names match in any case.
fn json_part<'a, 'p>(json: &'a str, rest: &'p [String]) -> Result<Cow<'a, str>, NoSuchPart<'p>> {
    let mut json = json;
    for name in rest {
        let members = checked_members(json).ok_or(NoSuchPart(name))?;
        json = member_in_any_case(&members, name).ok_or(NoSuchPart(name))?;
    }
    Ok(if json.starts_with(['{', '[']) { Cow::default() } else { dotnet_text(json) })
}

#[cfg(test)]
mod tests;
