//! Patterns that need a backtracking engine: those with look-around or back-references.
//!
//! Most patterns are matched in linear time, without this module. The others can take time that grows with
//! the square of the text or worse, so they have a budget for each check of a value. The budget is counted
//! in steps that are estimated from above: the backtracking limit times the length of the text. A value
//! that cannot be decided within the budget is invalid.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::Location;
use jsonschema::{Draft, Keyword, PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value, json};

/// The maximum number of steps for all such patterns in one check of a value. A step takes
/// about a nanosecond.
const BUDGET: u64 = 64_000_000;

/// The backtracking limits, tried in order. The first ones are small, because most texts need no more.
const LIMITS: [usize; 5] = [4, 32, 256, 2_048, MOST_TRIES];

/// The maximum backtracking limit.
pub(super) const MOST_TRIES: usize = 8_192;

/// The fixed cost of every match, in steps.
const OVERHEAD: u64 = 64;

/// The patterns of one schema that need a budget.
#[derive(Debug, Default)]
pub(super) struct CostlyPatterns {
    /// All patterns of the schema by their text. Patterns that are matched in linear time are `None`.
    known: Arc<BTreeMap<String, Option<CostlyPattern>>>,
    /// The costly patterns of `patternProperties`.
    names: Vec<String>,
}

#[derive(Debug)]
struct CostlyPattern {
    pattern: String,
    /// The nesting depth of repeated groups that contain look-around, atomic groups or back-references.
    nesting: u32,
    /// The compiled pattern for each of the limits.
    tries: [OnceLock<Option<Validator>>; LIMITS.len()],
}

/// The remaining budget of one check of a value.
struct MatchBudget {
    left: u64,
    exhausted: Option<UndecidedMatch>,
}

/// A text that could not be decided within the budget.
pub(super) struct UndecidedMatch {
    pub(super) pattern: String,
    /// The address of the text, which identifies it in the value.
    address: usize,
    text: String,
}

thread_local! {
    static BUDGET_LEFT: RefCell<MatchBudget> = const { RefCell::new(MatchBudget { left: 0, exhausted: None }) };
}

impl CostlyPatterns {
    /// Returns the patterns of a schema that the linear-time engine does not support, or `None` if
    /// it has none.
    pub(super) fn find_in_schema(schema: &Value) -> Option<CostlyPatterns> {
        let (mut patterns, mut names) = (Vec::new(), Vec::new());
        collect(schema, &mut patterns, &mut names);
        let all = patterns.into_iter().chain(names.iter().cloned());
        let known: BTreeMap<_, _> =
            all.map(|pattern| (pattern.clone(), CostlyPattern::from_pattern(&pattern))).collect();
        names.retain(|name| matches!(known.get(name), Some(Some(_))));
        let any = known.values().any(Option::is_some);
        any.then(|| CostlyPatterns { known: Arc::new(known), names })
    }

    /// Returns the implementation of the keyword `pattern` for a schema with costly patterns.
    #[allow(clippy::type_complexity, reason = "the shape of a factory is the validator's")]
    pub(super) fn keyword(
        &self,
    ) -> impl for<'a> Fn(
        &'a Map<String, Value>,
        &'a Value,
        Location,
    ) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>>
    + Send
    + Sync
    + 'static {
        let known = Arc::clone(&self.known);
        move |_, value, _| {
            let pattern =
                value.as_str().ok_or_else(|| ValidationError::custom("a pattern has to be a string"))?;
            let linear = match known.get(pattern) {
                Some(Some(_)) => None,
                _ => {
                    let linear = single_pattern_validator(pattern, PatternOptions::regex());
                    let invalid = || ValidationError::custom("it is not a valid regular expression");
                    Some(linear.ok_or_else(invalid)?)
                }
            };
            Ok(Box::new(PatternKeyword { known: Arc::clone(&known), pattern: pattern.to_owned(), linear }))
        }
    }

    /// Starts a check of a value with a full budget. It matches the names of members now, because the
    /// validator matches them by itself later and ignores names that it cannot decide.
    pub(super) fn begin(&self, value: &Value) {
        BUDGET_LEFT.set(MatchBudget { left: BUDGET, exhausted: None });
        let names: Vec<&CostlyPattern> =
            self.names.iter().filter_map(|name| self.known.get(name)?.as_ref()).collect();
        if !names.is_empty() {
            match_names(value, &names);
        }
    }

    /// Takes the text that could not be decided, if there was one.
    pub(super) fn take_undecided(&self) -> Option<UndecidedMatch> {
        BUDGET_LEFT.with_borrow_mut(|budget| budget.exhausted.take())
    }
}

impl UndecidedMatch {
    /// Returns the path of the text in the value, and the error message.
    pub(super) fn explain(&self, value: &Value) -> (String, String) {
        let place = find_text_path(value, self.address, &mut String::new()).unwrap_or_default();
        let text = format!(
            "{} takes too many steps to match \"{}\"; give a shorter or simpler value",
            Value::from(super::shorten(&self.text)),
            self.pattern
        );
        (place, text)
    }
}

impl CostlyPattern {
    /// Returns `None` for a pattern that is matched in linear time, and for an invalid pattern.
    fn from_pattern(pattern: &str) -> Option<CostlyPattern> {
        let is_costly = single_pattern_validator(pattern, PatternOptions::regex()).is_none();
        let pattern = Some(pattern).filter(|_| is_costly)?;
        let first =
            single_pattern_validator(pattern, PatternOptions::fancy_regex().backtrack_limit(LIMITS[0]))?;
        let tries: [OnceLock<Option<Validator>>; LIMITS.len()] = Default::default();
        if let Some(place) = tries.first() {
            let _ = place.set(Some(first));
        }
        Some(CostlyPattern { pattern: pattern.to_owned(), nesting: nesting(pattern), tries })
    }

    /// Returns whether a JSON string matches. If it cannot be decided within the budget, it does not match
    /// and is recorded.
    fn is_match(&self, value: &Value) -> bool {
        let Value::String(text) = value else { return true };
        let length = text.len() as u64;
        for (limit, tried) in LIMITS.into_iter().zip(&self.tries) {
            // In a repetition each step may scan the whole text again.
            let steps = length.saturating_pow(self.nesting).saturating_mul(u64::from(self.nesting > 0));
            let cost = (limit as u64).saturating_add(steps).saturating_mul(length + OVERHEAD);
            if !spend(cost) {
                break;
            }
            let options = || PatternOptions::fancy_regex().backtrack_limit(limit);
            let Some(validator) = tried.get_or_init(|| single_pattern_validator(&self.pattern, options()))
            else {
                return false;
            };
            match validator.validate(value) {
                Ok(()) => return true,
                Err(error) => match error.kind() {
                    ValidationErrorKind::BacktrackLimitExceeded { .. } => {}
                    _ => return false,
                },
            }
        }
        exhaust(&self.pattern, text);
        false
    }
}

/// Takes steps from the budget. Returns `false` if the budget is too small or a text could not
/// be decided before.
fn spend(steps: u64) -> bool {
    BUDGET_LEFT.with_borrow_mut(|budget| match budget.left.checked_sub(steps) {
        Some(left) if budget.exhausted.is_none() => {
            budget.left = left;
            true
        }
        _ => false,
    })
}

fn exhaust(pattern: &str, text: &str) {
    BUDGET_LEFT.with_borrow_mut(|budget| {
        budget.exhausted.get_or_insert_with(|| UndecidedMatch {
            pattern: pattern.to_owned(),
            address: text.as_ptr().addr(),
            text: text.chars().take(100).collect(),
        });
    });
}

/// The keyword `pattern` in a schema that contains a costly pattern.
struct PatternKeyword {
    known: Arc<BTreeMap<String, Option<CostlyPattern>>>,
    pattern: String,
    /// The linear-time validator, if this pattern is not costly.
    linear: Option<Validator>,
}

impl<'i> Keyword<'i> for PatternKeyword {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        match &self.linear {
            Some(linear) => linear.validate(instance),
            None if self.is_valid(instance) => Ok(()),
            None => Err(ValidationError::custom(format!("{instance} does not match \"{}\"", self.pattern))),
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        match (&self.linear, self.known.get(&self.pattern)) {
            (Some(linear), _) => linear.is_valid(instance),
            (None, Some(Some(costly))) => costly.is_match(instance),
            (None, _) => false,
        }
    }
}

/// Returns a validator that checks one pattern only.
fn single_pattern_validator<E>(pattern: &str, options: PatternOptions<E>) -> Option<Validator> {
    let schema = json!({"pattern": pattern});
    let validator = jsonschema::options().with_draft(Draft::Draft202012).offline();
    validator.with_pattern_options(options).build(&schema).ok()
}

/// Collects everything that may be a pattern, for strings and for names of members. Other strings do no harm.
fn collect(schema: &Value, patterns: &mut Vec<String>, names: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            for (keyword, value) in members {
                match (keyword.as_str(), value) {
                    ("pattern", Value::String(pattern)) => patterns.push(pattern.clone()),
                    ("patternProperties", Value::Object(members)) => names.extend(members.keys().cloned()),
                    _ => {}
                }
                collect(value, patterns, names);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, patterns, names)),
        _ => {}
    }
}

/// Matches the names of all members, at any depth.
fn match_names(value: &Value, patterns: &[&CostlyPattern]) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let name = Value::from(name.as_str());
                for pattern in patterns {
                    let _ = pattern.is_match(&name);
                }
                match_names(value, patterns);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| match_names(item, patterns)),
        _ => {}
    }
}

/// Returns the JSON pointer of the string whose bytes are at this address.
fn find_text_path(value: &Value, address: usize, place: &mut String) -> Option<String> {
    let length = place.len();
    let mut found = None;
    match value {
        Value::String(text) if text.as_ptr().addr() == address && !text.is_empty() => {
            return Some(place.clone());
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                place.push_str(&format!("/{index}"));
                found = find_text_path(item, address, place);
                place.truncate(length);
                if found.is_some() {
                    break;
                }
            }
        }
        Value::Object(members) => {
            for (name, item) in members {
                place.push_str(&format!("/{}", name.replace('~', "~0").replace('/', "~1")));
                found = find_text_path(item, address, place);
                place.truncate(length);
                if found.is_some() {
                    break;
                }
            }
        }
        _ => {}
    }
    found
}

/// Returns the nesting depth of repeated groups that contain look-around, atomic groups or back-references.
fn nesting(pattern: &str) -> u32 {
    // For each open group: the depth of the repetitions in it, and whether it contains one
    // of these constructs.
    let mut groups = vec![(0_u32, false)];
    let (mut deepest, mut in_class) = (0, false);
    let bytes = pattern.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        match byte {
            b'\\' => {
                let is_reference = rest.get(1).is_some_and(|kind| matches!(kind, b'1'..=b'9' | b'k'));
                if let Some(group) = groups.last_mut().filter(|_| is_reference && !in_class) {
                    group.1 = true;
                }
                at += 1;
            }
            b'[' => in_class = true,
            b']' => in_class = false,
            b'(' if !in_class => {
                let looks = ["(?=", "(?!", "(?<=", "(?<!", "(?>"]
                    .iter()
                    .any(|begin| rest.starts_with(begin.as_bytes()));
                groups.push((0, looks));
            }
            b')' if !in_class => {
                let (mut depth, looks) =
                    if groups.len() > 1 { groups.pop().unwrap_or_default() } else { (0, false) };
                let is_repeated = rest.get(1).is_some_and(|quantifier| b"*+{".contains(quantifier));
                if is_repeated && looks {
                    depth += 1;
                }
                deepest = deepest.max(depth);
                if let Some(outer) = groups.last_mut() {
                    outer.0 = outer.0.max(depth);
                    outer.1 |= looks;
                }
            }
            _ => {}
        }
        at += 1;
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nesting_of_repetitions_with_look_around_is_counted() {
        for (pattern, expected) in [
            ("^(?!a)b*$", 0),
            ("(?=a)(a|aa)*b$", 0),
            ("^(?:(?!foo).)*$", 1),
            ("^((?:(?!foo).)*b)+$", 2),
            ("(a+)\\1", 0),
            ("(?:(a+)\\1)+", 1),
            ("[(?=]*\\((?!a)\\)*", 0),
            ("(?:(?=(?:(?!a).)*)b){1,9}", 2),
            (")))((", 0),
        ] {
            assert_eq!(nesting(pattern), expected, "{pattern}");
        }
    }
}
