//! The tree of a filter against the fields of an index: names become paths, constants get their field's type.

use super::ast::{Filter, Literal, Operator};
use super::functions;
use super::names::{Found, Scope, resolve, type_name};
use super::parser::{Constant, Expression, Kind, Lambda, Name};
use super::problem::{Problem, quoted};
use crate::definition::{FieldType, Primitive, Schema};

pub(super) fn filter(tree: &Expression<'_>, schema: &Schema) -> Result<Filter, Problem> {
    Checker { schema, scopes: Vec::new() }.condition(tree)
}

pub(super) struct Checker<'a> {
    pub(super) schema: &'a Schema,
    /// The lambdas around the current place, the innermost last.
    pub(super) scopes: Vec<Scope<'a>>,
}

impl<'a> Checker<'a> {
    fn condition(&mut self, expression: &Expression<'a>) -> Result<Filter, Problem> {
        let at = expression.at;
        match &expression.kind {
            Kind::And(parts) => self.joined(parts, true),
            Kind::Or(parts) => self.joined(parts, false),
            Kind::Not(inner) => Ok(Filter::Not(Box::new(self.condition(inner)?))),
            Kind::Compare { left, operator, right } => match (&left.kind, &right.kind) {
                (Kind::Constant(_), Kind::Constant(_)) => {
                    Err(Problem::new(at, "Both sides are constants. One side of a comparison is a field."))
                }
                (_, Kind::Constant(constant)) => self.compare(left, *operator, constant, right.at),
                (Kind::Constant(constant), _) => self.compare(right, flipped(*operator), constant, left.at),
                _ => Err(Problem::new(
                    right.at,
                    "Fields can be compared with constants only, not with each other or with other conditions.",
                )),
            },
            Kind::Constant(Constant::Boolean(value)) => Ok(Filter::Constant(*value)),
            Kind::Constant(constant) => {
                let constant = describe(constant);
                Err(Problem::new(at, format!("{constant} is not a condition; compare a field with it.")))
            }
            Kind::Path(names) => self.flag(names),
            Kind::Collection { path, all, lambda } => self.elements(at, path, *all, lambda.as_ref()),
            Kind::Call { function, arguments } => functions::condition(self, at, function, arguments),
        }
    }

    /// Parts of the same kind are taken up, so that parentheses around them make no difference.
    fn joined(&mut self, parts: &[Expression<'a>], all: bool) -> Result<Filter, Problem> {
        let mut joined = Vec::with_capacity(parts.len());
        for part in parts {
            match (self.condition(part)?, all) {
                (Filter::And(inner), true) | (Filter::Or(inner), false) => joined.extend(inner),
                (other, _) => joined.push(other),
            }
        }
        Ok(if all { Filter::And(joined) } else { Filter::Or(joined) })
    }

    /// A field that stands for itself is a flag.
    fn flag(&self, names: &[Name<'_>]) -> Result<Filter, Problem> {
        let found = self.find(names)?;
        if found.kind != FieldType::One(Primitive::Boolean) {
            let (name, kind) = (found.written(), type_name(found.kind));
            return Err(Problem::new(
                found.at,
                format!(
                    "'{name}' is of type {kind}, so it is not a condition by itself; compare it with a constant."
                ),
            ));
        }
        Ok(Filter::Compare { path: found.path, operator: Operator::Equal, value: Literal::Boolean(true) })
    }

    fn elements(
        &mut self,
        at: usize,
        path: &[Name<'_>],
        all: bool,
        lambda: Option<&Lambda<'a>>,
    ) -> Result<Filter, Problem> {
        let found = self.find(path)?;
        if !found.kind.is_collection() {
            let (name, kind) = (found.written(), type_name(found.kind));
            return Err(Problem::new(
                at,
                format!("'any' and 'all' are for collections; '{name}' is of type {kind}."),
            ));
        }
        let (field, path) = (found.field, found.path);
        let Some(lambda) = lambda else {
            return match all {
                false => Ok(Filter::Any { path, condition: None }),
                true => Err(Problem::new(at, "'all' needs a condition, as in all(x: x ne 'value').")),
            };
        };
        let variable = lambda.variable.text;
        if self.scopes.iter().any(|scope| scope.variable == variable) {
            let message = format!(
                "The range variable '{}' is already in use by a lambda around this one.",
                quoted(variable)
            );
            return Err(Problem::new(lambda.variable.at, message));
        }
        self.scopes.push(Scope { variable, field });
        let condition = Box::new(self.condition(&lambda.body)?);
        self.scopes.pop();
        Ok(match all {
            true => Filter::All { path, condition },
            false => Filter::Any { path, condition: Some(condition) },
        })
    }

    fn compare(
        &mut self,
        subject: &Expression<'a>,
        operator: Operator,
        constant: &Constant<'_>,
        at: usize,
    ) -> Result<Filter, Problem> {
        match &subject.kind {
            Kind::Path(names) => field_with_constant(self.find(names)?, operator, constant, at),
            Kind::Call { function: "geo.distance", arguments } => {
                functions::distance(self, subject.at, arguments, operator, constant, at)
            }
            _ => self.truth(subject, operator, constant, at),
        }
    }

    /// `search.ismatch('a') eq true`.
    fn truth(
        &mut self,
        subject: &Expression<'a>,
        operator: Operator,
        constant: &Constant<'_>,
        at: usize,
    ) -> Result<Filter, Problem> {
        let wanted = match (constant, operator) {
            (Constant::Boolean(value), Operator::Equal) => *value,
            (Constant::Boolean(value), Operator::NotEqual) => !*value,
            _ if matches!(subject.kind, Kind::Not(_)) => {
                return Err(Problem::new(
                    subject.at,
                    "'not' belongs to the word after it, before any comparison. Put the comparison in parentheses, \
                     as in not (rating gt 5).",
                ));
            }
            _ => {
                return Err(Problem::new(
                    at,
                    "A condition can be compared with true and false only, by eq and ne.",
                ));
            }
        };
        let condition = self.condition(subject)?;
        Ok(if wanted { condition } else { Filter::Not(Box::new(condition)) })
    }

    pub(super) fn find(&self, names: &[Name<'_>]) -> Result<Found<'a>, Problem> {
        resolve(names, self.schema, &self.scopes)?.filterable()
    }
}

fn flipped(operator: Operator) -> Operator {
    match operator {
        Operator::Less => Operator::Greater,
        Operator::LessOrEqual => Operator::GreaterOrEqual,
        Operator::Greater => Operator::Less,
        Operator::GreaterOrEqual => Operator::LessOrEqual,
        same => same,
    }
}

fn field_with_constant(
    found: Found<'_>,
    operator: Operator,
    constant: &Constant<'_>,
    at: usize,
) -> Result<Filter, Problem> {
    let name = found.written();
    let equality = matches!(operator, Operator::Equal | Operator::NotEqual);
    let primitive = match found.kind {
        FieldType::One(primitive) => primitive,
        FieldType::Complex => {
            let message =
                format!("'{name}' is complex; compare its subfields, as in {name}/subfield eq 'value'.");
            return Err(Problem::new(found.at, message));
        }
        FieldType::Many(_) | FieldType::ManyComplex => {
            return Err(Problem::new(
                found.at,
                format!(
                    "'{name}' is a collection and cannot be compared as a whole. Compare its elements, as in \
                     {name}/any(x: x eq 'value'); {name}/any() asks whether there are any."
                ),
            ));
        }
    };
    let value = match (primitive, constant) {
        (_, Constant::Null) if equality => Literal::Null,
        (_, Constant::Null) => {
            return Err(Problem::new(at, "null has no order; it can be compared by eq and ne only."));
        }
        (Primitive::GeographyPoint, _) => {
            return Err(Problem::new(
                found.at,
                format!(
                    "'{name}' is a point and can be compared with null only. Use geo.distance({name}, \
                     geography'POINT(longitude latitude)') lt 10 or geo.intersects."
                ),
            ));
        }
        (Primitive::String, Constant::String(text)) => Literal::String(text.clone().into_owned()),
        (Primitive::Boolean, Constant::Boolean(value)) if equality => Literal::Boolean(*value),
        (Primitive::Boolean, Constant::Boolean(_)) => {
            return Err(Problem::new(at, "true and false have no order; compare them by eq and ne."));
        }
        (Primitive::DateTimeOffset, Constant::Date(date)) => Literal::Date(*date),
        (Primitive::Double, Constant::Double(number)) => Literal::Double(*number),
        // Azure converts so too, and says that digits may get lost.
        (Primitive::Double, Constant::Integer(number)) => Literal::Double(*number as f64),
        (Primitive::Int32 | Primitive::Int64, Constant::Integer(number)) => Literal::Integer(*number),
        (Primitive::Int32 | Primitive::Int64, Constant::Double(number)) if number.is_finite() => {
            return Ok(integer_with_double(found, operator, *number));
        }
        _ => return Err(Problem::new(at, mismatch(name, found.kind, constant))),
    };
    Ok(Filter::Compare { path: found.path, operator, value })
}

/// `rating gt 4.5` means `rating gt 4` for whole numbers; so columns of integers are compared with integers only.
fn integer_with_double(found: Found<'_>, operator: Operator, number: f64) -> Filter {
    const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
    let floor = number.floor();
    let (operator, value) = match operator {
        Operator::Equal if floor != number => return Filter::Constant(false),
        Operator::NotEqual if floor != number => return Filter::Constant(true),
        Operator::Less if floor != number => (Operator::LessOrEqual, floor),
        Operator::GreaterOrEqual if floor != number => (Operator::Greater, floor),
        other => (other, floor),
    };
    let path = found.path;
    if (-TOO_LARGE..TOO_LARGE).contains(&value) {
        let value = Literal::Integer(value as i64);
        return Filter::Compare { path, operator, value };
    }
    let always = match operator {
        Operator::Equal => return Filter::Constant(false),
        Operator::NotEqual => return Filter::Constant(true),
        Operator::Less | Operator::LessOrEqual => value > 0.0,
        Operator::Greater | Operator::GreaterOrEqual => value < 0.0,
    };
    match always {
        // Every value but a missing one.
        true => Filter::Compare { path, operator: Operator::NotEqual, value: Literal::Null },
        false => Filter::Constant(false),
    }
}

fn mismatch(name: &str, kind: FieldType, constant: &Constant<'_>) -> String {
    let (expected, hint) = match kind.primitive() {
        Some(Primitive::String) => ("a text in single quotes", ""),
        Some(Primitive::Boolean) => ("true or false", ""),
        Some(Primitive::DateTimeOffset) => {
            ("a date such as 2024-01-31T00:00:00Z", " Dates are written without quotes.")
        }
        Some(Primitive::Double) => ("a number", " Numbers are written without quotes."),
        _ => ("a finite number", " Numbers are written without quotes."),
    };
    let hint = if matches!(constant, Constant::String(_)) { hint } else { "" };
    let (kind, constant) = (type_name(kind), describe(constant));
    format!("'{name}' is of type {kind} and cannot be compared with {constant}; expected {expected}.{hint}")
}

pub(super) fn describe(constant: &Constant<'_>) -> String {
    match constant {
        Constant::Null => "null".to_owned(),
        Constant::Boolean(value) => value.to_string(),
        Constant::Integer(number) => format!("the number {number}"),
        Constant::Double(number) => format!("the number {number}"),
        Constant::String(text) => format!("the text '{}'", quoted(text)),
        Constant::Date(_) => "a date".to_owned(),
        Constant::Geography(_) => "a geography constant".to_owned(),
    }
}
