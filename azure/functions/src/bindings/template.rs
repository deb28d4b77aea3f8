//! [`PathTemplate`]: the path of a blob binding, `snippets/{mcptoolargs.name}.json`.
//!
//! `%NAME%` is a setting, which is filled in when the app starts. `{a.b:format}` is filled in at each
//! invocation.

use std::fmt;

use super::binding_data::{BindingData, NoSuchPart};
use super::built_in::{BuiltInSource, BuiltInValue, SystemSource};

/// The path of a blob binding: a container, then a blob name.
///
/// Values are inserted unchanged: an argument `a/b` names a blob in a folder. A name with a segment `.` or
/// `..` is rejected, because URLs are normalised and the name would leave the container.
#[derive(Clone)]
pub struct PathTemplate {
    written: String,
    container: Vec<TemplatePart>,
    name: Vec<TemplatePart>,
}

/// The reason why a path is invalid. The texts contain only names, never values of a caller or a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// A setting that does not exist.
    #[error("'%{0}%' does not resolve to a value.")]
    UnknownSetting(String),
    /// A single `%`.
    #[error("The '%' at position {position} in '{template}' does not have a closing '%'.")]
    UnclosedSetting {
        /// The template as written.
        template: String,
        /// The position, counted from 1.
        position: usize,
    },
    /// An empty expression, `{}`.
    #[error("Invalid template '{template}'. The parameter name at position {position} is empty.")]
    EmptyExpression {
        /// The template as written.
        template: String,
        /// The position, counted from 1.
        position: TemplatePosition,
    },
    /// A single `{` or `}`.
    #[error("Invalid template '{template}'. Missing {missing} bracket at position {position}.")]
    Unbalanced {
        /// The template as written.
        template: String,
        /// `closing` or `opening`.
        missing: &'static str,
        /// The position, counted from 1.
        position: TemplatePosition,
    },
    /// A name with invalid characters.
    #[error("Invalid template '{template}'. The parameter name '{name}' is invalid.")]
    InvalidName {
        /// The template as written.
        template: String,
        /// The invalid name.
        name: String,
    },
    /// A format that .NET does not have.
    #[error("Invalid template '{template}'. '{format}' is not a format for '{name}'.")]
    InvalidFormat {
        /// The template as written.
        template: String,
        /// The built-in value.
        name: String,
        /// The invalid format.
        format: String,
    },
    /// The caller would choose the container.
    #[error(
        "Invalid template '{template}'. The container would come from '{{{expression}}}': a caller could \
         reach every container of the storage account. Write the container's name or a setting (%NAME%) \
         before the first '/'."
    )]
    ContainerFromCaller {
        /// The template as written.
        template: String,
        /// The expression in the container part.
        expression: String,
    },
    /// A container name that Azure would not accept.
    #[error(
        "Invalid template '{template}'. The part before the first '/' is the container: 3 to 63 lower-case \
         letters, digits and single dashes, with a letter or digit at both ends."
    )]
    InvalidContainer {
        /// The template as written.
        template: String,
    },
    /// A container without a blob name.
    #[error("Invalid template '{template}'. A blob name must follow the container: 'container/name'.")]
    NoBlobName {
        /// The template as written.
        template: String,
    },
    /// The invocation has no value of this name.
    #[error("No value for named parameter '{0}'.")]
    NoValue(String),
    /// The value has no such property.
    #[error("Error while accessing '{0}': property doesn't exist.")]
    NoProperty(String),
    /// The resolved name is not a valid blob name.
    #[error("The path '{template}' does not give a valid blob name: {reason}.")]
    InvalidBlobName {
        /// The template as written.
        template: String,
        /// The reason why it is invalid.
        reason: &'static str,
    },
    /// The system has no random numbers for a GUID.
    #[error("The system has no random numbers for a GUID.")]
    NoRandomness,
}

/// A position in a template, counted in characters from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplatePosition {
    at: usize,
    /// The position is in the template with its settings filled in.
    filled: bool,
}

impl fmt::Display for TemplatePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at.fmt(f)?;
        f.write_str(if self.filled { " (with its settings filled in)" } else { "" })
    }
}

#[derive(Clone)]
enum TemplatePart {
    Literal(String),
    BuiltIn(BuiltInValue),
    /// A name in the binding data, and the built-in value to use if the data has no such name.
    Data {
        first: String,
        rest: Vec<String>,
        otherwise: Option<BuiltInValue>,
    },
}

impl PathTemplate {
    /// Parses a path and fills in its settings.
    pub fn parse(
        text: &str,
        setting: &dyn Fn(&str) -> Option<String>,
    ) -> Result<PathTemplate, TemplateError> {
        let filled = fill_settings(text, setting)?;
        TemplateParser { written: text, filled: &filled }.parse()
    }

    /// Returns the container and the blob name for one invocation.
    pub fn resolve(&self, data: &BindingData<'_>) -> Result<(String, String), TemplateError> {
        self.resolve_in(data, &SystemSource)
    }

    /// Returns the container and the blob name, with the given clock and randomness.
    pub fn resolve_in(
        &self,
        data: &BindingData<'_>,
        surroundings: &dyn BuiltInSource,
    ) -> Result<(String, String), TemplateError> {
        let container = render(&self.container, data, surroundings)?;
        if !is_container(&container) {
            return Err(TemplateError::InvalidContainer { template: self.written.clone() });
        }
        let name = render(&self.name, data, surroundings)?;
        match blob_name_fault(&name) {
            Some(reason) => Err(TemplateError::InvalidBlobName { template: self.written.clone(), reason }),
            None => Ok((container, name)),
        }
    }

    /// Returns the names in the binding data that the path uses, each as its first part and the others.
    pub(crate) fn data_names(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.container.iter().chain(&self.name).filter_map(|part| match part {
            TemplatePart::Data { first, rest, .. } => Some((first.as_str(), rest.as_slice())),
            TemplatePart::Literal(_) | TemplatePart::BuiltIn(_) => None,
        })
    }

    /// Returns the path as written, without its settings filled in.
    pub fn as_str(&self) -> &str {
        &self.written
    }
}

/// Shows the path as written, because the parts may contain values of settings.
impl fmt::Debug for PathTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PathTemplate").field(&self.written).finish()
    }
}

fn render(
    parts: &[TemplatePart],
    data: &BindingData<'_>,
    surroundings: &dyn BuiltInSource,
) -> Result<String, TemplateError> {
    let mut out = String::new();
    for part in parts {
        let built_in = match part {
            TemplatePart::Literal(text) => {
                out.push_str(text);
                continue;
            }
            TemplatePart::BuiltIn(built_in) => built_in,
            TemplatePart::Data { first, rest, otherwise } => match (data.look_up(first, rest), otherwise) {
                (Ok(Some(text)), _) => {
                    out.push_str(&text);
                    continue;
                }
                (Ok(None), Some(built_in)) => built_in,
                (Ok(None), None) => return Err(TemplateError::NoValue(first.clone())),
                (Err(NoSuchPart(part)), _) => return Err(TemplateError::NoProperty(part.to_owned())),
            },
        };
        built_in.write(data.function(), surroundings, &mut out).ok_or(TemplateError::NoRandomness)?;
    }
    Ok(out)
}

/// Fills in settings. The value of a setting is not searched for settings again.
pub(crate) fn fill_settings(
    text: &str,
    setting: &dyn Fn(&str) -> Option<String>,
) -> Result<String, TemplateError> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        filled.push_str(before);
        let Some((name, after)) = after.split_once('%') else {
            let position = position(text, text.len() - after.len() - 1);
            return Err(TemplateError::UnclosedSetting { template: text.to_owned(), position });
        };
        filled.push_str(&setting(name).ok_or_else(|| TemplateError::UnknownSetting(name.to_owned()))?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Returns a byte offset as a position in characters, counted from 1.
fn position(text: &str, offset: usize) -> usize {
    text.get(..offset).map_or(0, |before| before.chars().count()) + 1
}

struct TemplateParser<'a> {
    written: &'a str,
    filled: &'a str,
}

impl TemplateParser<'_> {
    fn parse(&self) -> Result<PathTemplate, TemplateError> {
        let mut container = Vec::new();
        // `None` until the first slash, which ends the container.
        let mut name: Option<Vec<TemplatePart>> = None;
        let mut rest = self.filled;
        while !rest.is_empty() {
            let at = rest.find(['{', '}']).unwrap_or(rest.len());
            let (literal, after) = rest.split_at(at);
            match (&mut name, literal.split_once('/')) {
                (None, Some((before, behind))) => {
                    push_literal(&mut container, before);
                    push_literal(name.insert(Vec::new()), behind);
                }
                (name, _) => push_literal(name.as_mut().unwrap_or(&mut container), literal),
            }
            let escaped = [("{{", "{"), ("}}", "}")].into_iter();
            let escaped = escaped.filter_map(|(twice, once)| Some((once, after.strip_prefix(twice)?))).next();
            if let Some((once, behind)) = escaped {
                push_literal(name.as_mut().unwrap_or(&mut container), once);
                rest = behind;
            } else if after.is_empty() {
                break;
            } else {
                let offset = self.filled.len() - after.len();
                let (expression, behind) = self.expression(after, offset)?;
                match &mut name {
                    Some(name) => name.push(self.part(expression, offset)?),
                    None => container.push(self.container_part(expression, offset)?),
                }
                rest = behind;
            }
        }
        if container.iter().all(|part| matches!(part, TemplatePart::Literal(_))) {
            let literal = |part: &TemplatePart| {
                if let TemplatePart::Literal(text) = part { text.clone() } else { String::new() }
            };
            if !is_container(&container.iter().map(literal).collect::<String>()) {
                return Err(TemplateError::InvalidContainer { template: self.written.to_owned() });
            }
        }
        let name = name.filter(|parts| !parts.is_empty());
        let name = name.ok_or_else(|| TemplateError::NoBlobName { template: self.written.to_owned() })?;
        Ok(PathTemplate { written: self.written.to_owned(), container, name })
    }

    /// Returns the text between the brace at the start of `text` and the next one, and the rest.
    fn expression<'t>(&self, text: &'t str, offset: usize) -> Result<(&'t str, &'t str), TemplateError> {
        let unbalanced = |missing| TemplateError::Unbalanced {
            template: self.written.to_owned(),
            missing,
            position: self.position(offset),
        };
        let inside = text.strip_prefix('{').ok_or_else(|| unbalanced("opening"))?;
        let end = inside.find(['{', '}']).ok_or_else(|| unbalanced("closing"))?;
        let (expression, behind) = inside.split_at(end);
        Ok((expression, behind.strip_prefix('}').ok_or_else(|| unbalanced("closing"))?))
    }

    /// Parses an expression in the container. Data is not allowed there, because it comes from callers.
    /// Built-in values are allowed, even if data has the same name.
    fn container_part(&self, expression: &str, offset: usize) -> Result<TemplatePart, TemplateError> {
        match self.part(expression, offset)? {
            TemplatePart::Data { otherwise: Some(built_in), .. } | TemplatePart::BuiltIn(built_in) => {
                Ok(TemplatePart::BuiltIn(built_in))
            }
            TemplatePart::Data { .. } | TemplatePart::Literal(_) => Err(TemplateError::ContainerFromCaller {
                template: self.written.to_owned(),
                expression: expression.to_owned(),
            }),
        }
    }

    fn part(&self, expression: &str, offset: usize) -> Result<TemplatePart, TemplateError> {
        let template = || self.written.to_owned();
        if expression.is_empty() {
            return Err(TemplateError::EmptyExpression {
                template: template(),
                position: self.position(offset),
            });
        }
        let (name, format) = match expression.split_once(':') {
            Some((name, format)) => (name, Some(format)),
            None => (expression, None),
        };
        let built_in =
            BuiltInValue::parse(name, format).transpose().map_err(|_| TemplateError::InvalidFormat {
                template: template(),
                name: name.to_owned(),
                format: format.unwrap_or_default().to_owned(),
            })?;
        let mut parts = name.split('.').map(str::to_owned);
        let first = parts.next().unwrap_or_default();
        let rest: Vec<String> = parts.collect();
        if first.eq_ignore_ascii_case("sys") {
            // `sys` belongs to the host. Data cannot override it.
            let unknown = || TemplateError::NoProperty(rest.join("."));
            return built_in.map(TemplatePart::BuiltIn).ok_or_else(unknown);
        }
        let is_name = is_identifier(name) && !rest.iter().any(String::is_empty);
        // Only `rand-guid` may have a dash in the first part.
        if built_in.is_none() && (!is_name || first.contains('-')) {
            return Err(TemplateError::InvalidName { template: template(), name: name.to_owned() });
        }
        // Values from callers are text, which has no formats. The format is ignored, as in .NET.
        Ok(TemplatePart::Data { first, rest, otherwise: built_in })
    }

    fn position(&self, offset: usize) -> TemplatePosition {
        TemplatePosition { at: position(self.filled, offset), filled: self.filled != self.written }
    }
}

fn push_literal(parts: &mut Vec<TemplatePart>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(TemplatePart::Literal(before)) => before.push_str(text),
        _ => parts.push(TemplatePart::Literal(text.to_owned())),
    }
}

fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-'))
}

fn is_container(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    matches!(name, "$root" | "$web" | "$logs")
        || (3..=63).contains(&name.len())
            && name.bytes().all(allowed)
            && !name.starts_with('-')
            && !name.ends_with('-')
            && !name.contains("--")
}

fn blob_name_fault(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("it is empty")
    } else if name.chars().nth(1024).is_some() {
        Some("it is longer than 1024 characters")
    } else if name.contains(char::is_control) {
        Some("it has a control character")
    } else if name.split(['/', '\\']).any(|segment| matches!(segment, "." | "..")) {
        Some("it has a segment '.' or '..'")
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
