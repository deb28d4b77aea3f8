//! [`ConfigReader`]: reads the members of one object and reports their problems to a [`ProblemCollector`].

use std::cell::RefCell;
use std::time::Duration;

use bindpost_net_json::{JsonPlace, ObjectReader, PlaceError};
use serde_json::{Map, Value};

use super::timespan;
use crate::problem::Problem;

/// The problems found so far in one file or function, and the warnings: problems with which it is still used.
#[derive(Debug, Default)]
pub(crate) struct ProblemCollector {
    file: Option<String>,
    function: Option<String>,
    found: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
}

impl ProblemCollector {
    /// Collects the problems of a file.
    pub(crate) fn on_file(file: impl Into<String>) -> ProblemCollector {
        ProblemCollector { file: Some(file.into()), ..ProblemCollector::default() }
    }
    /// Collects the problems of a function.
    pub(crate) fn on_function(function: impl Into<String>) -> ProblemCollector {
        ProblemCollector { function: Some(function.into()), ..ProblemCollector::default() }
    }
    /// Adds a problem and fills in its file and function.
    pub(crate) fn add_problem(&self, problem: Problem) {
        self.found.borrow_mut().push(self.placed(problem));
    }
    /// Adds a warning and fills in its file and function.
    pub(crate) fn add_warning(&self, problem: Problem) {
        self.warnings.borrow_mut().push(self.placed(problem));
    }
    /// Returns the warnings, and forgets them.
    pub(crate) fn take_warnings(&self) -> Vec<Problem> {
        self.warnings.take()
    }
    fn placed(&self, problem: Problem) -> Problem {
        Problem { file: self.file.clone(), function: self.function.clone(), ..problem }
    }
    /// Returns the problems found.
    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.found.into_inner()
    }
    /// Returns the value, or the problems if any were found.
    pub(crate) fn into_result<T>(self, value: T) -> Result<T, Vec<Problem>> {
        let problems = self.into_problems();
        if problems.is_empty() { Ok(value) } else { Err(problems) }
    }
}

/// Reads the members of one object of a configuration. Names match in any case.
///
/// A member of the wrong type is reported and treated as absent. Numbers and booleans are accepted where text
/// is expected and the reverse, as in .NET's configuration.
#[derive(Clone, Debug)]
pub(crate) struct ConfigReader<'a> {
    /// `None` if the object is absent.
    object: Option<ObjectReader<'a>>,
    place: JsonPlace,
    notes: &'a ProblemCollector,
}

impl<'a> ConfigReader<'a> {
    /// Creates a reader of `object`. Problems name it by `path`.
    pub(crate) fn new(
        object: &'a Map<String, Value>,
        path: impl Into<String>,
        notes: &'a ProblemCollector,
    ) -> ConfigReader<'a> {
        let place = JsonPlace::at(path);
        let object = ObjectReader::from_members(object, place.clone()).in_any_case();
        ConfigReader { object: Some(object), place, notes }
    }

    /// Returns a member as it is, or `None` for `null`.
    pub(crate) fn value(&self, name: &str) -> Option<&'a Value> {
        self.object.as_ref()?.value(name)
    }

    /// Returns whether a member exists and is `null`.
    pub(crate) fn is_null(&self, name: &str) -> bool {
        self.object.as_ref().and_then(|object| object.value_or_null(name)).is_some_and(Value::is_null)
    }

    /// Returns a member as text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let value = self.value(name)?;
        scalar_text(value).or_else(|| self.report_wrong_type(name, value, "text", None))
    }

    /// Returns a member as text. Reports a problem if it is missing or blank.
    pub(crate) fn required_text(&self, name: &str) -> Option<String> {
        match self.value(name) {
            None => self.report_missing(name),
            Some(_) => match self.text(name)? {
                text if text.trim().is_empty() => self.report_missing(name),
                text => Some(text),
            },
        }
    }

    /// Returns a boolean. The text `true` or `false` is accepted.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.value(name)? {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) if text.trim().eq_ignore_ascii_case("true") => Some(true),
            Value::String(text) if text.trim().eq_ignore_ascii_case("false") => Some(false),
            other => self.report_wrong_type(name, other, "true or false", None),
        }
    }

    /// Returns a whole number of at least 0. Text is accepted.
    pub(crate) fn whole_number(&self, name: &str) -> Option<u64> {
        let value = self.value(name)?;
        let number = match value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        number.or_else(|| self.report_wrong_type(name, value, "a whole number from 0 up", None))
    }

    /// Returns a port number. Text is accepted.
    pub(crate) fn port(&self, name: &str) -> Option<u16> {
        let number = self.whole_number(name)?;
        match u16::try_from(number) {
            Ok(port) if port > 0 => Some(port),
            _ => {
                self.report_problem(
                    name,
                    format!("{number} is not a port"),
                    Some("give a number from 1 to 65535"),
                );
                None
            }
        }
    }

    /// Returns a duration written as `hh:mm:ss`.
    pub(crate) fn time(&self, name: &str) -> Option<Duration> {
        let text = self.text(name)?;
        timespan::parse(&text)
            .map_err(|message| {
                self.report_problem(name, message, Some("write it as hh:mm:ss, like 00:01:30"))
            })
            .ok()
    }

    /// Returns an array of texts. A single text is an array with one element.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                let texts: Vec<String> = items.iter().filter_map(scalar_text).collect();
                if texts.len() < items.len() {
                    self.report_problem(
                        name,
                        "contains a value that is not text",
                        Some("give an array of texts"),
                    );
                }
                texts
            }
            // A setting like `…__arguments__0` creates an object if there was no array.
            Some(Value::Object(items)) if items.keys().all(|key| key.parse::<usize>().is_ok()) => {
                let mut items: Vec<_> = items.iter().collect();
                items.sort_by_key(|(key, _)| key.parse::<usize>().unwrap_or(usize::MAX));
                items.into_iter().filter_map(|(_, value)| scalar_text(value)).collect()
            }
            Some(other) => match scalar_text(other) {
                Some(text) => vec![text],
                None => self.report_wrong_type(name, other, "an array of texts", None).unwrap_or_default(),
            },
        }
    }

    /// Returns a reader of a nested object, which is empty if the object is absent.
    pub(crate) fn object(&self, name: &str) -> ConfigReader<'a> {
        let place = self.place.member(name);
        let object = self.value(name).and_then(|value| {
            ObjectReader::new(value, place.clone()).map_err(|error| self.report(error, None)).ok()
        });
        ConfigReader { object: object.map(ObjectReader::in_any_case), place, notes: self.notes }
    }

    /// Returns readers of the objects in an array.
    pub(crate) fn objects(&self, name: &str) -> Vec<ConfigReader<'a>> {
        let items: Vec<(String, &'a Value)> = match self.value(name) {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                items.iter().enumerate().map(|(number, item)| (format!("{name}[{number}]"), item)).collect()
            }
            // A setting like `…__routes__0__route` creates an object if there was no array.
            Some(Value::Object(items)) if items.keys().all(|key| key.parse::<usize>().is_ok()) => {
                let mut items: Vec<_> = items.iter().collect();
                items.sort_by_key(|(key, _)| key.parse::<usize>().unwrap_or(usize::MAX));
                items.into_iter().map(|(key, item)| (format!("{name}[{key}]"), item)).collect()
            }
            Some(other) => {
                self.report_wrong_type(name, other, "an array of objects", None).unwrap_or_default()
            }
        };
        let reader = |(name, item): (String, &'a Value)| {
            let place = self.place.member(&name);
            let object = ObjectReader::new(item, place.clone());
            let object = object.map_err(|error| self.report(error, None)).ok()?.in_any_case();
            Some(ConfigReader { object: Some(object), place, notes: self.notes })
        };
        items.into_iter().filter_map(reader).collect()
    }

    /// Returns whether the object exists.
    pub(crate) fn exists(&self) -> bool {
        self.object.is_some()
    }

    /// Returns all members as they are.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        self.object.as_ref().map(ObjectReader::members).into_iter().flatten()
    }

    /// Reports a problem with a member.
    pub(crate) fn report_problem(&self, name: &str, message: impl Into<String>, fix: Option<&str>) {
        self.report(PlaceError::new(self.place.member(name), message.into()), fix);
    }

    /// Reports a problem with a member with which the object is still used.
    pub(crate) fn report_warning(&self, name: &str, message: impl Into<String>, fix: impl Into<String>) {
        let problem = Problem::new(message).at(self.place.member(name).path);
        self.notes.add_warning(problem.fix(fix));
    }

    /// Adds the problems of an object that is the JSON text of one of the members.
    pub(crate) fn adopt(&self, notes: ProblemCollector) {
        let placed = |problem: Problem| {
            let member = problem.member.as_deref().map(|member| self.place.member(member).path);
            Problem { member, ..problem }
        };
        notes.take_warnings().into_iter().for_each(|problem| self.notes.add_warning(placed(problem)));
        notes.into_problems().into_iter().for_each(|problem| self.notes.add_problem(placed(problem)));
    }

    fn report_missing<T>(&self, name: &str) -> Option<T> {
        self.report_problem(name, "is required", Some(&format!("give {name} a text that is not blank")));
        None
    }

    /// Reports a member of the wrong type.
    pub(crate) fn report_wrong_type<T>(
        &self,
        name: &str,
        found: &Value,
        expected: &str,
        fix: Option<&str>,
    ) -> Option<T> {
        self.report(PlaceError::wrong_type(self.place.member(name), expected, found), fix);
        None
    }

    fn report(&self, error: PlaceError, fix: Option<&str>) {
        let problem = Problem::new(error.problem).at(error.place.path);
        self.notes.add_problem(Problem { fix: fix.map(str::to_owned), ..problem });
    }
}

/// Returns a string, a number or a boolean as text.
pub(crate) fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reading<T>(value: &Value, read: impl FnOnce(&ConfigReader<'_>) -> T) -> (T, Vec<String>) {
        let notes = ProblemCollector::on_file("f.json");
        let read = read(&ConfigReader::new(value.as_object().unwrap(), "a", &notes));
        (read, notes.into_problems().iter().map(Problem::to_string).collect())
    }

    #[test]
    fn numbers_and_booleans_may_be_text() {
        let value = json!({"N": "5", "b": "True", "t": 5, "u": true, "p": "80"});
        let (read, problems) =
            reading(&value, |m| (m.whole_number("n"), m.flag("b"), m.text("t"), m.text("u"), m.port("p")));
        assert_eq!(read, (Some(5), Some(true), Some("5".into()), Some("true".into()), Some(80)));
        assert_eq!(problems, Vec::<String>::new());
    }

    #[test]
    fn the_wrong_type_is_reported_and_treated_as_absent() {
        let value = json!({"n": -1, "b": "yes", "t": [], "o": 1, "l": [{}], "p": 70000, "d": "5"});
        let (read, problems) = reading(&value, |m| {
            (
                m.whole_number("n"),
                m.flag("b"),
                m.text("t"),
                m.object("o").exists(),
                m.texts("l"),
                m.port("p"),
                m.time("d"),
            )
        });
        assert_eq!(read, (None, None, None, false, vec![], None, None));
        assert_eq!(problems.len(), 7, "{problems:?}");
        assert_eq!(problems[0], "f.json: a.n: must be a whole number from 0 up, not -1");
        assert_eq!(problems[1], "f.json: a.b: must be true or false, not 'yes'");
    }

    #[test]
    fn required_text_must_exist_and_not_be_blank() {
        let value = json!({"x": " ", "z": null, "ok": "v"});
        let (read, problems) = reading(&value, |m| {
            (m.required_text("x"), m.required_text("y"), m.required_text("z"), m.required_text("ok"))
        });
        assert_eq!(read, (None, None, None, Some("v".into())));
        assert_eq!(problems.len(), 3);
        assert_eq!(problems[1], "f.json: a.y: is required\n  fix: give y a text that is not blank");
    }

    #[test]
    fn texts_may_be_one_text_or_numbered_settings() {
        let value = json!({"one": "a", "many": ["a", 1], "numbered": {"10": "k", "2": "b"}});
        let (read, problems) = reading(&value, |m| (m.texts("one"), m.texts("many"), m.texts("numbered")));
        assert_eq!(read, (vec!["a".into()], vec!["a".into(), "1".into()], vec!["b".into(), "k".into()]));
        assert!(problems.is_empty(), "{problems:?}");
    }
}
