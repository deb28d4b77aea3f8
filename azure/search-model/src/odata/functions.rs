//! The functions of filters.

use super::ast::{ComparisonOperator, FieldPath, GeoPoint, OdataFilter, TextMatch};
use super::check::{FilterChecker, describe};
use super::geo;
use super::names::type_name;
use super::parser::{OdataConstant, OdataExpression, OdataExpressionKind};
use super::problem::{OdataError, quoted};
use crate::definition::{FieldType, PrimitiveType};

/// Checks a function that is a condition by itself.
pub(super) fn condition<'a>(
    checker: &FilterChecker<'a>,
    at: usize,
    function: &str,
    arguments: &[OdataExpression<'a>],
) -> Result<OdataFilter, OdataError> {
    match function {
        "search.in" => search_in(checker, at, arguments),
        "search.ismatch" => text_match(checker, at, function, arguments, false),
        "search.ismatchscoring" => text_match(checker, at, function, arguments, true),
        "geo.intersects" => intersects(checker, at, arguments),
        "geo.distance" => Err(OdataError::new(
            at,
            "geo.distance is a number of kilometres. Compare it, as in geo.distance(field, \
             geography'POINT(0 0)') lt 10.",
        )),
        "search.score" => Err(OdataError::new(at, "search.score() is for $orderby, not for filters.")),
        other => Err(OdataError::new(at, unknown(other))),
    }
}

/// Checks `geo.distance(field, point) operator constant`.
pub(super) fn distance<'a>(
    checker: &FilterChecker<'a>,
    at: usize,
    arguments: &[OdataExpression<'a>],
    operator: ComparisonOperator,
    constant: &OdataConstant<'_>,
    constant_at: usize,
) -> Result<OdataFilter, OdataError> {
    if matches!(operator, ComparisonOperator::Equal | ComparisonOperator::NotEqual) {
        return Err(OdataError::new(
            at,
            "Distances can be compared by lt, le, gt and ge, but not for equality.",
        ));
    }
    let kilometres = match constant {
        OdataConstant::Integer(number) => *number as f64,
        OdataConstant::Double(number) if !number.is_nan() => *number,
        other => {
            let other = describe(other);
            return Err(OdataError::new(
                constant_at,
                format!("A distance is compared with a number of kilometres, not with {other}."),
            ));
        }
    };
    let (field, point) = field_and_point(at, arguments)?;
    Ok(OdataFilter::Distance { path: point_field(checker, field)?, point, operator, kilometres })
}

/// Returns the arguments of `geo.distance`, which may be in either order.
pub(super) fn field_and_point<'e, 'a>(
    at: usize,
    arguments: &'e [OdataExpression<'a>],
) -> Result<(&'e OdataExpression<'a>, GeoPoint), OdataError> {
    let (field, text, text_at) = match arguments {
        [
            field,
            OdataExpression { kind: OdataExpressionKind::Constant(OdataConstant::Geography(text)), at },
        ]
        | [
            OdataExpression { kind: OdataExpressionKind::Constant(OdataConstant::Geography(text)), at },
            field,
        ] => (field, text, *at),
        _ => {
            let message = "geo.distance takes a field and a point: geo.distance(field, \
                 geography'POINT(longitude latitude)').";
            return Err(OdataError::new(at, message));
        }
    };
    let point = geo::parse_point(text).map_err(|message| OdataError::new(text_at, message))?;
    Ok((field, point))
}

fn intersects<'a>(
    checker: &FilterChecker<'a>,
    at: usize,
    arguments: &[OdataExpression<'a>],
) -> Result<OdataFilter, OdataError> {
    let [
        field,
        OdataExpression { kind: OdataExpressionKind::Constant(OdataConstant::Geography(text)), at: text_at },
    ] = arguments
    else {
        return Err(OdataError::new(
            at,
            "geo.intersects takes a field and a polygon: geo.intersects(field, \
             geography'POLYGON((longitude latitude, …))').",
        ));
    };
    let ring = geo::parse_polygon(text).map_err(|message| OdataError::new(*text_at, message))?;
    Ok(OdataFilter::Within { path: point_field(checker, field)?, ring })
}

fn point_field<'a>(
    checker: &FilterChecker<'a>,
    field: &OdataExpression<'a>,
) -> Result<FieldPath, OdataError> {
    variable(checker, field, PrimitiveType::GeographyPoint, "geo functions need points")
}

fn search_in<'a>(
    checker: &FilterChecker<'a>,
    at: usize,
    arguments: &[OdataExpression<'a>],
) -> Result<OdataFilter, OdataError> {
    let (field, list, delimiters) = match arguments {
        [field, list] => (field, text(list)?, " ,"),
        [field, list, delimiters] => (field, text(list)?, text(delimiters)?),
        _ => {
            return Err(OdataError::new(
                at,
                "search.in takes a field, a list and optionally its delimiters: search.in(field, 'a|b', '|').",
            ));
        }
    };
    let path = variable(checker, field, PrimitiveType::String, "search.in needs strings")?;
    let mut values: Vec<String> = list
        .split(|character| delimiters.contains(character))
        .filter(|value| !value.is_empty())
        .map(str::to_owned)
        .collect();
    values.sort_unstable();
    values.dedup();
    Ok(OdataFilter::In { path, values })
}

/// Resolves the field or range variable of a call, which must have the given type.
fn variable<'a>(
    checker: &FilterChecker<'a>,
    expression: &OdataExpression<'a>,
    wanted: PrimitiveType,
    rule: &str,
) -> Result<FieldPath, OdataError> {
    let OdataExpressionKind::Path(names) = &expression.kind else {
        return Err(OdataError::new(expression.at, "Expected a field or a range variable."));
    };
    let found = checker.find(names)?;
    let (name, kind) = (found.path_text(), type_name(found.kind));
    match found.kind {
        FieldType::One(primitive) if primitive == wanted => Ok(found.path),
        FieldType::Many(primitive) if primitive == wanted => Err(OdataError::new(
            found.at,
            format!("'{name}' is a collection. Use its elements: {name}/any(x: …(x, …))."),
        )),
        _ => Err(OdataError::new(found.at, format!("'{name}' is of type {kind}, and {rule}."))),
    }
}

fn text_match<'a>(
    checker: &FilterChecker<'a>,
    at: usize,
    function: &str,
    arguments: &[OdataExpression<'a>],
    scoring: bool,
) -> Result<OdataFilter, OdataError> {
    if let Some(scope) = checker.scopes.last() {
        let variable = scope.variable;
        return Err(OdataError::new(
            at,
            format!(
                "{function} applies to whole documents, not to the range variable '{variable}', so it cannot be used \
                 in 'any' or 'all'. Move it out of the lambda."
            ),
        ));
    }
    let (search, options) = match arguments {
        [search, options @ ..] if options.len() <= 3 => (text(search)?.to_owned(), options),
        _ => {
            return Err(OdataError::new(
                at,
                format!(
                    "{function} takes one to four texts: {function}('words', 'field,field', 'simple', 'any')."
                ),
            ));
        }
    };
    let fields = match options.first() {
        Some(fields) => searched_fields(checker, fields)?,
        None => Vec::new(),
    };
    let full = choice(options.get(1), "simple", "full")?;
    let all = choice(options.get(2), "any", "all")?;
    Ok(OdataFilter::Match(TextMatch { search, fields, full, all, scoring }))
}

fn searched_fields<'a>(
    checker: &FilterChecker<'a>,
    argument: &OdataExpression<'a>,
) -> Result<Vec<String>, OdataError> {
    if argument.kind == OdataExpressionKind::Constant(OdataConstant::Null) {
        return Ok(Vec::new());
    }
    let at = argument.at;
    let mut fields: Vec<String> = Vec::new();
    for path in text(argument)?.split(',').map(str::trim).filter(|path| !path.is_empty()) {
        let Some(field) = checker.schema.find(path) else {
            return Err(OdataError::new(
                at,
                format!("There is no field '{}'. Names are case-sensitive.", quoted(path)),
            ));
        };
        if !field.searchable || field.vector.is_some() {
            let message = format!(
                "'{path}' is not a searchable text field. Only those can be named in search.ismatch and \
                 search.ismatchscoring."
            );
            return Err(OdataError::new(at, message));
        }
        if !fields.contains(&field.path) {
            fields.push(field.path.clone());
        }
    }
    Ok(fields)
}

/// Reads an optional argument with two values. Returns true for `other`.
fn choice(argument: Option<&OdataExpression<'_>>, default: &str, other: &str) -> Result<bool, OdataError> {
    let Some(argument) = argument else { return Ok(false) };
    if argument.kind == OdataExpressionKind::Constant(OdataConstant::Null) {
        return Ok(false);
    }
    match text(argument)? {
        given if given == default => Ok(false),
        given if given == other => Ok(true),
        given => {
            let given = quoted(given);
            Err(OdataError::new(argument.at, format!("Expected '{default}' or '{other}', found '{given}'.")))
        }
    }
}

fn text<'e>(argument: &'e OdataExpression<'_>) -> Result<&'e str, OdataError> {
    match &argument.kind {
        OdataExpressionKind::Constant(OdataConstant::String(text)) => Ok(text),
        _ => Err(OdataError::new(argument.at, "Expected a text in single quotes.")),
    }
}

fn unknown(function: &str) -> String {
    const ALL: [&str; 5] =
        ["search.in", "search.ismatch", "search.ismatchscoring", "geo.distance", "geo.intersects"];
    let shown = quoted(function);
    if let Some(right) = ALL.iter().find(|right| right.eq_ignore_ascii_case(function)) {
        return format!("There is no function '{shown}'. Did you mean {right}?");
    }
    format!("There is no function '{shown}'. The functions of filters are {}.", ALL.join(", "))
}
