//! Checks the tree of a filter against the fields of an index. Names become paths, and constants get
//! the type of their field.

use super::ast::{ComparisonOperator, FilterLiteral, OdataFilter};
use super::functions;
use super::names::{LambdaScope, ResolvedField, resolve, type_name};
use super::parser::{LambdaExpression, OdataConstant, OdataExpression, OdataExpressionKind, OdataIdentifier};
use super::problem::{OdataError, quoted};
use crate::definition::{FieldType, IndexSchema, PrimitiveType};

pub(super) fn check_filter(
    tree: &OdataExpression<'_>,
    schema: &IndexSchema,
) -> Result<OdataFilter, OdataError> {
    FilterChecker { schema, scopes: Vec::new() }.condition(tree)
}

pub(super) struct FilterChecker<'a> {
    pub(super) schema: &'a IndexSchema,
    /// The lambdas around the current expression, the innermost last.
    pub(super) scopes: Vec<LambdaScope<'a>>,
}

impl<'a> FilterChecker<'a> {
    fn condition(&mut self, expression: &OdataExpression<'a>) -> Result<OdataFilter, OdataError> {
        let at = expression.at;
        match &expression.kind {
            OdataExpressionKind::And(parts) => self.joined(parts, true),
            OdataExpressionKind::Or(parts) => self.joined(parts, false),
            OdataExpressionKind::Not(inner) => Ok(OdataFilter::Not(Box::new(self.condition(inner)?))),
            OdataExpressionKind::Compare { left, operator, right } => match (&left.kind, &right.kind) {
                (OdataExpressionKind::Constant(_), OdataExpressionKind::Constant(_)) => Err(OdataError::new(
                    at,
                    "Both sides are constants. One side of a comparison must be a field.",
                )),
                (_, OdataExpressionKind::Constant(constant)) => {
                    self.compare(left, *operator, constant, right.at)
                }
                (OdataExpressionKind::Constant(constant), _) => {
                    self.compare(right, flipped(*operator), constant, left.at)
                }
                _ => Err(OdataError::new(
                    right.at,
                    "Fields can be compared with constants only, not with each other or with other conditions.",
                )),
            },
            OdataExpressionKind::Constant(OdataConstant::Boolean(value)) => Ok(OdataFilter::Constant(*value)),
            OdataExpressionKind::Constant(constant) => {
                let constant = describe(constant);
                Err(OdataError::new(at, format!("{constant} is not a condition. Compare a field with it.")))
            }
            OdataExpressionKind::Path(names) => self.flag(names),
            OdataExpressionKind::Collection { path, all, lambda } => {
                self.elements(at, path, *all, lambda.as_ref())
            }
            OdataExpressionKind::Call { function, arguments } => {
                functions::condition(self, at, function, arguments)
            }
        }
    }

    /// Joins conditions. Nested conditions of the same kind are merged, so that parentheses around them
    /// make no difference.
    fn joined(&mut self, parts: &[OdataExpression<'a>], all: bool) -> Result<OdataFilter, OdataError> {
        let mut joined = Vec::with_capacity(parts.len());
        for part in parts {
            match (self.condition(part)?, all) {
                (OdataFilter::And(inner), true) | (OdataFilter::Or(inner), false) => joined.extend(inner),
                (other, _) => joined.push(other),
            }
        }
        Ok(if all { OdataFilter::And(joined) } else { OdataFilter::Or(joined) })
    }

    /// A Boolean field alone is a condition.
    fn flag(&self, names: &[OdataIdentifier<'_>]) -> Result<OdataFilter, OdataError> {
        let found = self.find(names)?;
        if found.kind != FieldType::One(PrimitiveType::Boolean) {
            let (name, kind) = (found.path_text(), type_name(found.kind));
            return Err(OdataError::new(
                found.at,
                format!(
                    "'{name}' is of type {kind}, so it is not a condition by itself. Compare it with a constant."
                ),
            ));
        }
        Ok(OdataFilter::Compare {
            path: found.path,
            operator: ComparisonOperator::Equal,
            value: FilterLiteral::Boolean(true),
        })
    }

    fn elements(
        &mut self,
        at: usize,
        path: &[OdataIdentifier<'_>],
        all: bool,
        lambda: Option<&LambdaExpression<'a>>,
    ) -> Result<OdataFilter, OdataError> {
        let found = self.find(path)?;
        if !found.kind.is_collection() {
            let (name, kind) = (found.path_text(), type_name(found.kind));
            return Err(OdataError::new(
                at,
                format!("'any' and 'all' are for collections, but '{name}' is of type {kind}."),
            ));
        }
        let (field, path) = (found.field, found.path);
        let Some(lambda) = lambda else {
            return match all {
                false => Ok(OdataFilter::Any { path, condition: None }),
                true => Err(OdataError::new(at, "'all' needs a condition, as in all(x: x ne 'value').")),
            };
        };
        let variable = lambda.variable.text;
        if self.scopes.iter().any(|scope| scope.variable == variable) {
            let message = format!(
                "The range variable '{}' is already in use by a lambda around this one.",
                quoted(variable)
            );
            return Err(OdataError::new(lambda.variable.at, message));
        }
        self.scopes.push(LambdaScope { variable, field });
        let condition = Box::new(self.condition(&lambda.body)?);
        self.scopes.pop();
        Ok(match all {
            true => OdataFilter::All { path, condition },
            false => OdataFilter::Any { path, condition: Some(condition) },
        })
    }

    fn compare(
        &mut self,
        subject: &OdataExpression<'a>,
        operator: ComparisonOperator,
        constant: &OdataConstant<'_>,
        at: usize,
    ) -> Result<OdataFilter, OdataError> {
        match &subject.kind {
            OdataExpressionKind::Path(names) => {
                field_with_constant(self.find(names)?, operator, constant, at)
            }
            OdataExpressionKind::Call { function: "geo.distance", arguments } => {
                functions::distance(self, subject.at, arguments, operator, constant, at)
            }
            _ => self.compare_with_boolean(subject, operator, constant, at),
        }
    }

    /// Compares a condition with true or false, as in `search.ismatch('a') eq true`.
    fn compare_with_boolean(
        &mut self,
        subject: &OdataExpression<'a>,
        operator: ComparisonOperator,
        constant: &OdataConstant<'_>,
        at: usize,
    ) -> Result<OdataFilter, OdataError> {
        let wanted = match (constant, operator) {
            (OdataConstant::Boolean(value), ComparisonOperator::Equal) => *value,
            (OdataConstant::Boolean(value), ComparisonOperator::NotEqual) => !*value,
            _ if matches!(subject.kind, OdataExpressionKind::Not(_)) => {
                return Err(OdataError::new(
                    subject.at,
                    "'not' binds tighter than comparisons. Put the comparison in parentheses, \
                     as in not (rating gt 5).",
                ));
            }
            _ => {
                return Err(OdataError::new(
                    at,
                    "A condition can be compared with true and false only, by eq and ne.",
                ));
            }
        };
        let condition = self.condition(subject)?;
        Ok(if wanted { condition } else { OdataFilter::Not(Box::new(condition)) })
    }

    pub(super) fn find(&self, names: &[OdataIdentifier<'_>]) -> Result<ResolvedField<'a>, OdataError> {
        resolve(names, self.schema, &self.scopes)?.require_filterable()
    }
}

fn flipped(operator: ComparisonOperator) -> ComparisonOperator {
    match operator {
        ComparisonOperator::Less => ComparisonOperator::Greater,
        ComparisonOperator::LessOrEqual => ComparisonOperator::GreaterOrEqual,
        ComparisonOperator::Greater => ComparisonOperator::Less,
        ComparisonOperator::GreaterOrEqual => ComparisonOperator::LessOrEqual,
        same => same,
    }
}

fn field_with_constant(
    found: ResolvedField<'_>,
    operator: ComparisonOperator,
    constant: &OdataConstant<'_>,
    at: usize,
) -> Result<OdataFilter, OdataError> {
    let name = found.path_text();
    let equality = matches!(operator, ComparisonOperator::Equal | ComparisonOperator::NotEqual);
    let primitive = match found.kind {
        FieldType::One(primitive) => primitive,
        FieldType::Complex => {
            let message =
                format!("'{name}' is complex. Compare its subfields, as in {name}/subfield eq 'value'.");
            return Err(OdataError::new(found.at, message));
        }
        FieldType::Many(_) | FieldType::ManyComplex => {
            return Err(OdataError::new(
                found.at,
                format!(
                    "'{name}' is a collection and cannot be compared as a whole. Compare its elements, as in \
                     {name}/any(x: x eq 'value'). To test for any element, use {name}/any()."
                ),
            ));
        }
    };
    let value = match (primitive, constant) {
        (_, OdataConstant::Null) if equality => FilterLiteral::Null,
        (_, OdataConstant::Null) => {
            return Err(OdataError::new(at, "null has no order. It can be compared by eq and ne only."));
        }
        (PrimitiveType::GeographyPoint, _) => {
            return Err(OdataError::new(
                found.at,
                format!(
                    "'{name}' is a point and can be compared with null only. Use geo.distance({name}, \
                     geography'POINT(longitude latitude)') lt 10 or geo.intersects."
                ),
            ));
        }
        (PrimitiveType::String, OdataConstant::String(text)) => {
            FilterLiteral::String(text.clone().into_owned())
        }
        (PrimitiveType::Boolean, OdataConstant::Boolean(value)) if equality => FilterLiteral::Boolean(*value),
        (PrimitiveType::Boolean, OdataConstant::Boolean(_)) => {
            return Err(OdataError::new(at, "true and false have no order. Compare them by eq and ne."));
        }
        (PrimitiveType::DateTimeOffset, OdataConstant::Date(date)) => FilterLiteral::Date(*date),
        (PrimitiveType::Double, OdataConstant::Double(number)) => FilterLiteral::Double(*number),
        // Azure AI Search converts in the same way, and documents that precision may be lost.
        (PrimitiveType::Double, OdataConstant::Integer(number)) => FilterLiteral::Double(*number as f64),
        (PrimitiveType::Int32 | PrimitiveType::Int64, OdataConstant::Integer(number)) => {
            FilterLiteral::Integer(*number)
        }
        (PrimitiveType::Int32 | PrimitiveType::Int64, OdataConstant::Double(number))
            if number.is_finite() =>
        {
            return Ok(integer_with_double(found, operator, *number));
        }
        _ => return Err(OdataError::new(at, mismatch(name, found.kind, constant))),
    };
    Ok(OdataFilter::Compare { path: found.path, operator, value })
}

/// Compares an integer field with a fraction: `rating gt 4.5` becomes `rating gt 4`. Integer columns
/// are therefore only compared with integers.
fn integer_with_double(found: ResolvedField<'_>, operator: ComparisonOperator, number: f64) -> OdataFilter {
    const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
    let floor = number.floor();
    let (operator, value) = match operator {
        ComparisonOperator::Equal if floor != number => return OdataFilter::Constant(false),
        ComparisonOperator::NotEqual if floor != number => return OdataFilter::Constant(true),
        ComparisonOperator::Less if floor != number => (ComparisonOperator::LessOrEqual, floor),
        ComparisonOperator::GreaterOrEqual if floor != number => (ComparisonOperator::Greater, floor),
        other => (other, floor),
    };
    let path = found.path;
    if (-TOO_LARGE..TOO_LARGE).contains(&value) {
        let value = FilterLiteral::Integer(value as i64);
        return OdataFilter::Compare { path, operator, value };
    }
    let always = match operator {
        ComparisonOperator::Equal => return OdataFilter::Constant(false),
        ComparisonOperator::NotEqual => return OdataFilter::Constant(true),
        ComparisonOperator::Less | ComparisonOperator::LessOrEqual => value > 0.0,
        ComparisonOperator::Greater | ComparisonOperator::GreaterOrEqual => value < 0.0,
    };
    match always {
        // Every value that is not null.
        true => {
            OdataFilter::Compare { path, operator: ComparisonOperator::NotEqual, value: FilterLiteral::Null }
        }
        false => OdataFilter::Constant(false),
    }
}

fn mismatch(name: &str, kind: FieldType, constant: &OdataConstant<'_>) -> String {
    let (expected, hint) = match kind.primitive() {
        Some(PrimitiveType::String) => ("a text in single quotes", ""),
        Some(PrimitiveType::Boolean) => ("true or false", ""),
        Some(PrimitiveType::DateTimeOffset) => {
            ("a date such as 2024-01-31T00:00:00Z", " Dates are written without quotes.")
        }
        Some(PrimitiveType::Double) => ("a number", " Numbers are written without quotes."),
        _ => ("a finite number", " Numbers are written without quotes."),
    };
    let hint = if matches!(constant, OdataConstant::String(_)) { hint } else { "" };
    let (kind, constant) = (type_name(kind), describe(constant));
    format!("'{name}' is of type {kind} and cannot be compared with {constant}. Expected {expected}.{hint}")
}

pub(super) fn describe(constant: &OdataConstant<'_>) -> String {
    match constant {
        OdataConstant::Null => "null".to_owned(),
        OdataConstant::Boolean(value) => value.to_string(),
        OdataConstant::Integer(number) => format!("the number {number}"),
        OdataConstant::Double(number) => format!("the number {number}"),
        OdataConstant::String(text) => format!("the text '{}'", quoted(text)),
        OdataConstant::Date(_) => "a date".to_owned(),
        OdataConstant::Geography(_) => "a geography constant".to_owned(),
    }
}
