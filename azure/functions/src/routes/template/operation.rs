//! Templates of routes and paths of OpenAPI operations: which path a template has, and which paths it answers.

use super::{RouteParameter, RouteSegment, RouteTemplate, SegmentPart, decode_path, match_parts};

/// A part of a segment of an operation's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathPart<'a> {
    Text(&'a str),
    Variable(&'a str),
}

impl RouteTemplate {
    /// Returns the template as the path of an operation: without constraints, defaults and `*`. Returns `None` if its texts
    /// have braces, which such a path cannot have.
    pub(crate) fn operation_path(&self) -> Option<String> {
        let mut path = String::new();
        for segment in &self.segments {
            path.push('/');
            match segment {
                RouteSegment::Rest(parameter) => push_variable(&mut path, parameter)?,
                RouteSegment::Parts(parts) => {
                    for part in parts {
                        match part {
                            SegmentPart::Literal(text) if text.contains(['{', '}']) => return None,
                            SegmentPart::Literal(text) => {
                                path.push_str(&text.replace('%', "%25").replace('#', "%23"));
                            }
                            SegmentPart::Parameter(parameter) => push_variable(&mut path, parameter)?,
                        }
                    }
                }
            }
        }
        Some(if path.is_empty() { "/".to_owned() } else { path })
    }

    /// Returns whether requests for an operation with this path match the template. `sample` returns a value of a variable
    /// whose type is known, and `None` for a variable that may have any text.
    pub(crate) fn covers_operation(&self, path: &str, sample: &dyn Fn(&str) -> Option<String>) -> bool {
        let path = path.split(['?', '#']).next().unwrap_or_default().trim_matches('/');
        let mut left = (!path.is_empty()).then(|| path.split('/')).into_iter().flatten();
        for segment in &self.segments {
            let parts = match segment {
                RouteSegment::Rest(_) => return true,
                RouteSegment::Parts(parts) => parts.as_slice(),
            };
            match (left.next(), parts) {
                (Some(segment), _) if !covers_segment(parts, segment, sample) => return false,
                (Some(_), _) => {}
                (None, [SegmentPart::Parameter(parameter)]) if parameter.may_be_missing() => {}
                (None, _) => return false,
            }
        }
        left.next().is_none()
    }
}

impl RouteParameter {
    /// Returns whether a path matches without a value for this parameter.
    pub(crate) fn may_be_missing(&self) -> bool {
        self.is_optional || self.is_rest || self.default.is_some()
    }
}

fn push_variable(path: &mut String, parameter: &RouteParameter) -> Option<()> {
    if parameter.name.contains(['{', '}', '?', '#']) {
        return None;
    }
    path.push('{');
    path.push_str(&parameter.name);
    path.push('}');
    Some(())
}

fn covers_segment(parts: &[SegmentPart], segment: &str, sample: &dyn Fn(&str) -> Option<String>) -> bool {
    let path = path_parts(segment);
    if path.iter().all(|part| matches!(part, PathPart::Text(_))) {
        return match_parts(parts, &decode_path(segment), &mut Vec::new()).is_some();
    }
    if let [SegmentPart::Parameter(parameter)] = parts {
        // Of a mixed segment, such as `{year}-{month}`, the value is not known.
        let [PathPart::Variable(name)] = path.as_slice() else { return true };
        return sample(name)
            .is_none_or(|value| parameter.constraints.iter().all(|constraint| constraint.accepts(&value)));
    }
    path.len() == parts.len()
        && path.iter().zip(parts).all(|pair| match pair {
            (PathPart::Text(text), SegmentPart::Literal(literal)) => text.eq_ignore_ascii_case(literal),
            (PathPart::Variable(_), SegmentPart::Parameter(_)) => true,
            _ => false,
        })
}

fn path_parts(segment: &str) -> Vec<PathPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = segment;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        if !before.is_empty() {
            parts.push(PathPart::Text(before));
        }
        parts.push(PathPart::Variable(name));
        rest = after;
    }
    if !rest.is_empty() || parts.is_empty() {
        parts.push(PathPart::Text(rest));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_becomes_the_path_of_an_operation() {
        for (template, path) in [
            ("api/orders/{id:int:min(1)}", Some("/api/orders/{id}")),
            ("files/{name}.{ext?}", Some("/files/{name}.{ext}")),
            ("api/{*rest}", Some("/api/{rest}")),
            ("{a=1}/{b?}", Some("/{a}/{b}")),
            ("", Some("/")),
            ("100%", Some("/100%25")),
            ("a{{b}}", None),
        ] {
            let template = RouteTemplate::parse(template).unwrap();
            assert_eq!(template.operation_path().as_deref(), path);
        }
    }

    #[test]
    fn a_template_covers_the_operations_whose_requests_it_answers() {
        let sample = |name: &str| match name {
            "number" => Some("1".to_owned()),
            _ => None,
        };
        for (template, path, expected) in [
            ("api/orders/{id:int}", "/api/Orders/{orderId}", true),
            ("api/orders/{id:int}", "/api/orders/{number}", true),
            ("api/orders/{id:alpha}", "/api/orders/{number}", false),
            ("api/orders/{id:int}", "/api/orders/latest", false),
            ("api/orders/{id}", "/api/orders/latest", true),
            ("api/orders/{id?}", "/api/orders", true),
            ("api/orders/{id}", "/api/orders", false),
            ("api/orders/{id}", "/api/orders/{id}/lines", false),
            ("api/orders/latest", "/api/orders/{id}", false),
            ("{*rest}", "/any/{thing}", true),
            ("{*rest}", "/", true),
            ("api/{*rest}", "/items", false),
            ("files/{name}.{ext}", "/files/{a}.{b}", true),
            ("files/{name}.{ext}", "/files/{a}", false),
            ("files/{name}", "/files/{a}.{b}", true),
        ] {
            let covers = RouteTemplate::parse(template).unwrap().covers_operation(path, &sample);
            assert_eq!(covers, expected, "{template} {path}");
        }
    }
}
