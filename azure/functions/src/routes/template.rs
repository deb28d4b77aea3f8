//! [`RouteTemplate`]: the template of a route, `orders/{id:int}/{*rest}`, in the syntax of ASP.NET Core.

mod operation;

use std::borrow::Cow;

use super::constraint::RouteConstraint;

/// The template of a route. Literals match in any case.
#[derive(Clone, Debug)]
pub struct RouteTemplate {
    segments: Vec<RouteSegment>,
}

/// One segment of a template.
#[derive(Clone, Debug)]
enum RouteSegment {
    /// Text and parameters: `report.{format}`. Two parameters are never adjacent.
    Parts(Vec<SegmentPart>),
    /// The rest of the path: `{*rest}`. It is the last segment.
    Rest(RouteParameter),
}

/// A part of a segment.
#[derive(Clone, Debug)]
enum SegmentPart {
    Literal(String),
    Parameter(RouteParameter),
}

/// A parameter of a template: `{name:constraint=default}` or `{name?}`.
#[derive(Clone, Debug)]
pub struct RouteParameter {
    pub name: String,
    pub constraints: Vec<RouteConstraint>,
    /// The value if the path has none.
    pub default: Option<String>,
    pub is_optional: bool,
    /// It takes the rest of the path.
    pub is_rest: bool,
}

/// The values of a route, in the order of the template.
pub type RouteValues = Vec<(String, String)>;

impl RouteTemplate {
    /// Parses a template. The error is one sentence that says what is wrong.
    pub fn parse(text: &str) -> Result<RouteTemplate, String> {
        let text = text.trim_matches('/');
        let mut segments = Vec::new();
        if !text.is_empty() {
            for segment in split_segments(text)? {
                if segment.is_empty() {
                    return Err("the route has consecutive '/'".to_owned());
                }
                segments.push(parse_segment(segment)?);
            }
        }
        let template = RouteTemplate { segments };
        template.check()?;
        Ok(template)
    }

    /// Returns the values of the route if the template matches this path, which is percent-encoded.
    pub fn match_path(&self, path: &str) -> Option<RouteValues> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path.strip_suffix('/').unwrap_or(path);
        let mut left = (!path.is_empty()).then_some(path);
        let mut values = RouteValues::new();
        for segment in &self.segments {
            match segment {
                RouteSegment::Rest(parameter) => {
                    let rest = left.take().map(decode_path);
                    parameter.add_value(rest.as_deref(), &mut values)?;
                }
                RouteSegment::Parts(parts) => {
                    let Some(path) = left else {
                        // Only parameters with a default or without a value may be missing.
                        let [SegmentPart::Parameter(parameter)] = parts.as_slice() else { return None };
                        parameter.add_value(None, &mut values)?;
                        continue;
                    };
                    let (text, rest) = match path.split_once('/') {
                        Some((text, rest)) => (text, Some(rest)),
                        None => (path, None),
                    };
                    left = rest;
                    match_parts(parts, &decode_path(text), &mut values)?;
                }
            }
        }
        left.is_none().then_some(values)
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &RouteParameter> {
        self.segments.iter().flat_map(|segment| {
            let parts: Box<dyn Iterator<Item = &RouteParameter>> = match segment {
                RouteSegment::Rest(parameter) => Box::new(std::iter::once(parameter)),
                RouteSegment::Parts(parts) => Box::new(parts.iter().filter_map(|part| match part {
                    SegmentPart::Parameter(parameter) => Some(parameter),
                    SegmentPart::Literal(_) => None,
                })),
            };
            parts
        })
    }

    /// Checks rules about the whole template.
    fn check(&self) -> Result<(), String> {
        let mut names: Vec<String> = Vec::new();
        for parameter in self.parameters() {
            let name = parameter.name.to_lowercase();
            if names.contains(&name) {
                return Err(format!("the route has the parameter '{}' twice", parameter.name));
            }
            names.push(name);
        }
        let last = self.segments.len().saturating_sub(1);
        for (number, segment) in self.segments.iter().enumerate() {
            match segment {
                RouteSegment::Rest(parameter) if number != last => {
                    return Err(format!(
                        "the parameter '*{}' takes the rest of the path, so it must be the last segment",
                        parameter.name
                    ));
                }
                RouteSegment::Parts(parts) if number != last => {
                    if let [SegmentPart::Parameter(parameter)] = parts.as_slice()
                        && parameter.is_optional
                    {
                        return Err(format!(
                            "only the last parameter may be optional, but '{}?' is not",
                            parameter.name
                        ));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl RouteParameter {
    /// Adds the value of the parameter, or its default. Returns `None` if a value is required or does not fit.
    fn add_value(&self, given: Option<&str>, values: &mut RouteValues) -> Option<()> {
        let value = match (given.filter(|value| !value.is_empty()), &self.default) {
            (Some(value), _) => value,
            (None, Some(default)) => default,
            (None, None) if self.is_optional || self.is_rest => return Some(()),
            (None, None) => return None,
        };
        let fits = self.constraints.iter().all(|constraint| constraint.accepts(value));
        fits.then(|| values.push((self.name.clone(), value.to_owned())))
    }
}

/// Matches a segment from right to left: `{file}.{ext}` gives `a.b.txt` the extension `txt`, as ASP.NET does.
fn match_parts(parts: &[SegmentPart], text: &str, values: &mut RouteValues) -> Option<()> {
    let start = values.len();
    let mut left = text;
    let mut later = parts.iter().rev().peekable();
    // An optional parameter at the end, and the separator before it, may be missing: `{name}.{ext?}`.
    if let [.., SegmentPart::Literal(dot), SegmentPart::Parameter(optional)] = parts
        && optional.is_optional
        && !text.contains(dot.as_str())
    {
        later.next();
        later.next();
    }
    while let Some(part) = later.next() {
        match part {
            SegmentPart::Literal(literal) => {
                let at = left.len().checked_sub(literal.len())?;
                let (head, tail) = left.split_at_checked(at)?;
                if !tail.eq_ignore_ascii_case(literal) && tail.to_lowercase() != literal.to_lowercase() {
                    return None;
                }
                left = head;
            }
            SegmentPart::Parameter(parameter) => {
                let value = match later.peek() {
                    // The last occurrence leaves as much as possible for the parts before it.
                    Some(SegmentPart::Literal(before)) => {
                        let at = rfind_in_any_case(left, before)? + before.len();
                        let (head, value) = left.split_at_checked(at)?;
                        left = head;
                        value
                    }
                    _ => std::mem::take(&mut left),
                };
                parameter.add_value(Some(value), values)?;
            }
        }
    }
    values.get_mut(start..)?.reverse();
    left.is_empty().then_some(())
}

/// Finds the last occurrence of a text that something follows.
fn rfind_in_any_case(text: &str, wanted: &str) -> Option<usize> {
    let last = text.len().checked_sub(wanted.len())?;
    (0..last)
        .rev()
        .find(|at| text.get(*at..*at + wanted.len()).is_some_and(|found| found.eq_ignore_ascii_case(wanted)))
}

/// Decodes a percent-encoded part of a path. `%2F` stays, because it is not a separator.
fn decode_path(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes().peekable();
    let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        match (byte, digit(ahead.next()), digit(ahead.next())) {
            (b'%', Some(high), Some(low)) if (high, low) != (2, 15) => {
                decoded.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                bytes = ahead;
            }
            _ => decoded.push(byte),
        }
    }
    match String::from_utf8(decoded) {
        Ok(text) => Cow::Owned(text),
        Err(error) => Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

/// Splits a template at slashes that are not within a parameter.
fn split_segments(text: &str) -> Result<Vec<&str>, String> {
    let mut segments = Vec::new();
    let (mut start, mut position) = (0, 0);
    while let Some(rest) = text.get(position..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("{{") || rest.starts_with("}}") {
            position += 2;
        } else if rest.starts_with('{') {
            position += 1 + parameter_end(rest.get(1..).unwrap_or_default())? + 1;
        } else if rest.starts_with('/') {
            segments.push(text.get(start..position).unwrap_or_default());
            position += 1;
            start = position;
        } else {
            position += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    segments.push(text.get(start..).unwrap_or_default());
    Ok(segments)
}

/// Returns where a parameter ends: the position of its closing brace. Doubled braces are part of a constraint.
fn parameter_end(text: &str) -> Result<usize, String> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let doubled = bytes.get(at + 1) == Some(byte);
        match byte {
            b'{' | b'}' if doubled => at += 2,
            b'}' => return Ok(at),
            b'{' => {
                return Err(
                    "the route has a '{' within a parameter; double it to write the character itself"
                        .to_owned(),
                );
            }
            _ => at += 1,
        }
    }
    Err("the route has an unmatched '{'".to_owned())
}

fn parse_segment(text: &str) -> Result<RouteSegment, String> {
    let mut parts: Vec<SegmentPart> = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("{{") {
            literal.push('{');
            rest = after;
        } else if let Some(after) = rest.strip_prefix("}}") {
            literal.push('}');
            rest = after;
        } else if first == '{' {
            let inner = rest.get(1..).unwrap_or_default();
            let end = parameter_end(inner)?;
            let parameter = parse_parameter(inner.get(..end).unwrap_or_default())?;
            rest = inner.get(end + 1..).unwrap_or_default();
            if !literal.is_empty() {
                parts.push(SegmentPart::Literal(std::mem::take(&mut literal)));
            } else if let Some(SegmentPart::Parameter(before)) = parts.last() {
                let (one, other) = (&before.name, &parameter.name);
                return Err(format!("the parameters '{one}' and '{other}' need a text between them"));
            }
            if parameter.is_rest {
                return match parts.is_empty() && rest.is_empty() {
                    true => Ok(RouteSegment::Rest(parameter)),
                    false => Err(format!("the parameter '*{}' must be a segment of its own", parameter.name)),
                };
            }
            parts.push(SegmentPart::Parameter(parameter));
        } else if first == '}' {
            return Err("the route has an unmatched '}'".to_owned());
        } else if first.is_whitespace() {
            return Err("the route contains spaces".to_owned());
        } else if first == '?' {
            return Err("the route contains '?', but a query is not part of a route".to_owned());
        } else {
            literal.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
    if !literal.is_empty() {
        parts.push(SegmentPart::Literal(literal));
    }
    if let [parts @ .., _] = parts.as_slice() {
        for part in parts {
            if let SegmentPart::Parameter(parameter) = part
                && (parameter.is_optional || parameter.default.is_some())
            {
                return Err(format!(
                    "the parameter '{}' cannot be optional, because text follows it",
                    parameter.name
                ));
            }
        }
    }
    if let [.., SegmentPart::Literal(before), SegmentPart::Parameter(last)] = parts.as_slice()
        && last.is_optional
        && before != "."
    {
        return Err(format!("before the optional parameter '{}?' a segment may only have '.'", last.name));
    }
    Ok(RouteSegment::Parts(parts))
}

/// Parses the text between the braces of a parameter.
fn parse_parameter(text: &str) -> Result<RouteParameter, String> {
    let stars = text.len() - text.trim_start_matches('*').len();
    if stars > 2 {
        return Err(format!("the parameter '{text}' has more than two '*'"));
    }
    let text = text.get(stars..).unwrap_or_default();
    let name_end = text.find([':', '=', '?']).unwrap_or(text.len());
    let (name, mut rest) = text.split_at_checked(name_end).unwrap_or((text, ""));
    let name = name.trim();
    if name.is_empty() {
        return Err("the route has an empty parameter '{}'".to_owned());
    }
    if name.contains(['{', '}', '/', '*']) {
        return Err(format!("the name '{name}' of a parameter is not valid"));
    }
    let mut parameter = RouteParameter {
        name: name.to_owned(),
        constraints: Vec::new(),
        default: None,
        is_optional: false,
        is_rest: stars > 0,
    };
    while let Some(after) = rest.strip_prefix(':') {
        let end = constraint_end(after);
        let (constraint, after) = after.split_at_checked(end).unwrap_or((after, ""));
        let constraint = constraint.replace("{{", "{").replace("}}", "}");
        let parsed = RouteConstraint::parse(&constraint);
        parameter.constraints.push(parsed.map_err(|error| format!("parameter '{name}': {error}"))?);
        rest = after;
    }
    if let Some(default) = rest.strip_prefix('=') {
        if default.ends_with('?') {
            return Err(format!("the parameter '{name}' has a default, so it cannot be optional too"));
        }
        parameter.default = Some(default.to_owned());
    } else if rest == "?" {
        if parameter.is_rest {
            return Err(format!("the parameter '*{name}' may be empty anyway; remove the '?'"));
        }
        parameter.is_optional = true;
    } else if !rest.is_empty() {
        return Err(format!("the text '{rest}' after the parameter '{name}' is not valid"));
    }
    Ok(parameter)
}

/// Returns where a constraint ends: before the next constraint, a default or `?`, but not within parentheses.
fn constraint_end(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, sign) in text.char_indices() {
        match sign {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ':' | '=' if depth == 0 => return at,
            '?' if depth == 0 && at + 1 == text.len() => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
