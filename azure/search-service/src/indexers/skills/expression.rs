//! The expression language of conditional skills:
//! `= $(/document/language) == null ? 'en' : $(/document/language)`.

use std::cmp::Ordering;

use bindpost_azure_search_model::ApiError;
use serde_json::{Number, Value};

use super::tree::EnrichmentPath;

#[derive(Debug)]
pub(super) enum SkillExpression {
    Value(Value),
    Path(EnrichmentPath),
    Not(Box<SkillExpression>),
    Negative(Box<SkillExpression>),
    Two(&'static str, Box<SkillExpression>, Box<SkillExpression>),
    Choice(Box<SkillExpression>, Box<SkillExpression>, Box<SkillExpression>),
}

const DEEPEST: usize = 32;
const LONGEST: usize = 2_000;
/// Operators, from the lowest to the highest precedence.
const LEVELS: [&[&str]; 6] =
    [&["||"], &["&&"], &["==", "!="], &[">=", "<=", ">", "<"], &["+", "-"], &["*", "/", "%"]];

impl SkillExpression {
    pub(super) fn parse(text: &str) -> Result<Self, ApiError> {
        // The depth of the tree is limited by the length of the text.
        if text.len() > LONGEST {
            return Err(ApiError::invalid(format!("The expression is longer than {LONGEST} bytes.")));
        }
        let mut reader = SkillExpressionParser { text, at: 0 };
        let expression = reader.choice(0)?;
        reader.blanks();
        if reader.rest().is_empty() { Ok(expression) } else { Err(reader.wrong("the end of the expression")) }
    }

    pub(super) fn value(&self, find: &dyn Fn(&EnrichmentPath) -> Value) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            Self::Path(path) => find(path),
            Self::Not(inner) => inner.value(find).as_bool().map_or(Value::Null, |value| Value::Bool(!value)),
            Self::Negative(inner) => number(inner.value(find).as_f64().map(|value| -value)),
            Self::Choice(condition, yes, no) => match condition.value(find) {
                Value::Bool(true) => yes.value(find),
                _ => no.value(find),
            },
            Self::Two("&&", one, other) => {
                Value::Bool(one.value(find) == Value::Bool(true) && other.value(find) == Value::Bool(true))
            }
            Self::Two("||", one, other) => {
                Value::Bool(one.value(find) == Value::Bool(true) || other.value(find) == Value::Bool(true))
            }
            Self::Two(sign, one, other) => apply_operator(sign, &one.value(find), &other.value(find)),
        }
    }
}

fn apply_operator(sign: &str, one: &Value, other: &Value) -> Value {
    let order = match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64().partial_cmp(&other.as_f64()),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        _ => None,
    };
    let equal = order == Some(Ordering::Equal) || one == other;
    let numbers = one.as_f64().zip(other.as_f64());
    match sign {
        "==" => Value::Bool(equal),
        "!=" => Value::Bool(!equal),
        ">" => Value::Bool(order == Some(Ordering::Greater)),
        "<" => Value::Bool(order == Some(Ordering::Less)),
        ">=" => Value::Bool(matches!(order, Some(Ordering::Greater | Ordering::Equal))),
        "<=" => Value::Bool(matches!(order, Some(Ordering::Less | Ordering::Equal))),
        "+" if one.is_string() || other.is_string() => {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Value::String(text(one) + &text(other))
        }
        "+" => number(numbers.map(|(one, other)| one + other)),
        "-" => number(numbers.map(|(one, other)| one - other)),
        "*" => number(numbers.map(|(one, other)| one * other)),
        "/" => number(numbers.map(|(one, other)| one / other)),
        _ => number(numbers.map(|(one, other)| one % other)),
    }
}

fn number(value: Option<f64>) -> Value {
    match value {
        Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => Value::from(value as i64),
        Some(value) => Number::from_f64(value).map_or(Value::Null, Value::Number),
        None => Value::Null,
    }
}

struct SkillExpressionParser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> SkillExpressionParser<'a> {
    fn choice(&mut self, depth: usize) -> Result<SkillExpression, ApiError> {
        if depth > DEEPEST {
            return Err(ApiError::invalid("The expression is nested too deeply."));
        }
        let condition = self.level(0, depth)?;
        if !self.take_sign("?") {
            return Ok(condition);
        }
        let yes = self.choice(depth + 1)?;
        if !self.take_sign(":") {
            return Err(self.wrong("':'"));
        }
        let no = self.choice(depth + 1)?;
        Ok(SkillExpression::Choice(Box::new(condition), Box::new(yes), Box::new(no)))
    }

    fn level(&mut self, level: usize, depth: usize) -> Result<SkillExpression, ApiError> {
        let Some(signs) = LEVELS.get(level) else { return self.single(depth) };
        let mut left = self.level(level + 1, depth)?;
        while let Some(sign) = signs.iter().find(|sign| self.take_sign(sign)) {
            let right = self.level(level + 1, depth)?;
            left = SkillExpression::Two(sign, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn single(&mut self, depth: usize) -> Result<SkillExpression, ApiError> {
        if depth > DEEPEST {
            return Err(ApiError::invalid("The expression is nested too deeply."));
        }
        if self.take_sign("$(") {
            let path = self.until(')')?;
            return Ok(SkillExpression::Path(EnrichmentPath::parse(path)?));
        }
        if self.take_sign("(") {
            let inner = self.choice(depth + 1)?;
            return if self.take_sign(")") { Ok(inner) } else { Err(self.wrong("')'")) };
        }
        if self.take_sign("!") {
            return Ok(SkillExpression::Not(Box::new(self.single(depth + 1)?)));
        }
        if self.take_sign("-") {
            return Ok(SkillExpression::Negative(Box::new(self.single(depth + 1)?)));
        }
        for quote in ['\'', '"'] {
            if self.take_sign(quote.encode_utf8(&mut [0; 4])) {
                return Ok(SkillExpression::Value(Value::from(self.until(quote)?)));
            }
        }
        self.blanks();
        let word_end = self.rest().find(|next: char| !next.is_ascii_alphanumeric() && next != '.');
        let word = self.rest().get(..word_end.unwrap_or(self.rest().len())).unwrap_or("");
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            _ => match word.parse::<f64>() {
                Ok(parsed) if parsed.is_finite() => number(Some(parsed)),
                _ => return Err(self.wrong("a value or $(/document/…)")),
            },
        };
        self.at += word.len();
        Ok(SkillExpression::Value(value))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        self.blanks();
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    fn until(&mut self, end: char) -> Result<&'a str, ApiError> {
        let rest = self.rest();
        let Some((inner, _)) = rest.split_once(end) else { return Err(self.wrong(&format!("'{end}'"))) };
        self.at += inner.len() + end.len_utf8();
        Ok(inner)
    }

    fn wrong(&self, expected: &str) -> ApiError {
        let position = self.text.get(..self.at).unwrap_or("").chars().count();
        ApiError::invalid(format!("The expression '={}' needs {expected} at position {position}.", self.text))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calculates_compares_and_selects() {
        let find = |path: &EnrichmentPath| {
            if *path == EnrichmentPath::parse("/document/n").unwrap() { json!(4) } else { json!(null) }
        };
        for (text, expected) in [
            (" 1 + 2 * 3", json!(7)),
            ("(1 + 2) * -3", json!(-9)),
            ("$(/document/n) / 8", json!(0.5)),
            ("'a' + 1", json!("a1")),
            ("$(/document/n) >= 4 && !($(/document/n) == 5)", json!(true)),
            ("$(/document/none) == null ? 'no' : 'yes'", json!("no")),
            ("1 > 2 || 'b' > 'a'", json!(true)),
            ("1 / 0", json!(null)),
            ("4.0 == 4", json!(true)),
        ] {
            assert_eq!(SkillExpression::parse(text).unwrap().value(&find), expected, "{text}");
        }
    }

    #[test]
    fn errors_name_the_position() {
        for wrong in ["", "1 +", "'open", "$(/document/a", "(1", "1 ? 2", "1 2", "$(a)", "x", "inf"] {
            assert!(SkillExpression::parse(wrong).is_err(), "{wrong}");
        }
        assert!(SkillExpression::parse("1 + ?").unwrap_err().message.contains("position 4"));
        assert!(SkillExpression::parse(&"(".repeat(10_000)).is_err());
        assert!(SkillExpression::parse(&"!".repeat(10_000)).is_err());
        assert!(SkillExpression::parse(&format!("1{}", "+1".repeat(10_000))).is_err());
    }
}
