//! [`ObjectReader`]: reads the members of a JSON object, with errors that name the place.
//!
//! All errors are sentences of one style: the place, then the problem. A place is the path of a value in its document, and
//! if it helps, what the document describes.
//!
//! ```text
//! 'vectorSearch.profiles[0].name' is required.
//! 'analyzer' of field 'address/city' must be a string, not 3.
//! 'kind' of the knowledge source 'ks' must be one of searchIndex, azureBlob, not 'blob'.
//! 'vectorQueries[0].neighbours' is unknown. Use one of: kind, k, fields.
//! ```

use std::cell::RefCell;
use std::error::Error;
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use serde_json::{Map, Value};

/// The place of a value: its path, and what the path begins in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonPlace {
    /// What is described, such as `field 'address/city'`. May be empty.
    pub owner: String,
    /// Member names and positions, such as `profiles[0].name`. Empty for the whole value.
    pub path: String,
}

impl JsonPlace {
    /// The whole value that describes `owner`.
    pub fn of(owner: impl Into<String>) -> Self {
        Self { owner: owner.into(), path: String::new() }
    }

    /// The value at a path of the document.
    pub fn at(path: impl Into<String>) -> Self {
        Self { owner: String::new(), path: path.into() }
    }

    /// The member of the object at this place.
    #[must_use]
    pub fn member(&self, name: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self { owner: self.owner.clone(), path: format!("{}{dot}{name}", self.path) }
    }

    /// The element of the array at this place.
    #[must_use]
    pub fn element(&self, position: usize) -> Self {
        Self { owner: self.owner.clone(), path: format!("{}[{position}]", self.path) }
    }
}

impl Display for JsonPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, path } = self;
        match (owner.as_str(), path.as_str()) {
            ("", "") => f.write_str("The value"),
            (owner, "") => f.write_str(owner),
            ("", path) => write!(f, "'{path}'"),
            (owner, path) => write!(f, "'{path}' of {owner}"),
        }
    }
}

/// A problem at a place. It is displayed as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceError {
    /// Where the problem is.
    pub place: JsonPlace,
    /// What is wrong, such as `must be a string, not 3`, without a period at the end.
    pub problem: String,
}

impl PlaceError {
    /// A problem, described without a period at the end.
    pub fn new(place: JsonPlace, problem: impl Display) -> Self {
        Self { place, problem: problem.to_string() }
    }

    /// The value at the place has the wrong type.
    pub fn wrong_type(place: JsonPlace, expected: impl Display, found: &Value) -> Self {
        Self::new(place, format_args!("must be {expected}, not {}", describe(found)))
    }
}

impl Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}.", self.place, self.problem)
    }
}

impl Error for PlaceError {}

/// A JSON object and its place.
///
/// A member that is `null` is treated as absent, because services return nulls and clients send them back. `E` is the error
/// of the crate that reads, made from a [`PlaceError`].
#[derive(Debug, Clone)]
pub struct ObjectReader<'a, E = PlaceError> {
    members: &'a Map<String, Value>,
    place: JsonPlace,
    any_case: bool,
    /// The names of the members that were read, see [`ObjectReader::track_reads`].
    read: Option<RefCell<Vec<String>>>,
    error: PhantomData<fn() -> E>,
}

impl<'a, E: From<PlaceError>> ObjectReader<'a, E> {
    /// Reads a value that must be an object.
    pub fn new(value: &'a Value, place: JsonPlace) -> Result<Self, E> {
        match value {
            Value::Object(members) => Ok(Self::from_members(members, place)),
            // A text is not repeated here. It may be a secret that belongs into the object.
            other => {
                Err(PlaceError::new(place, format_args!("must be an object, not {}", kind(other))).into())
            }
        }
    }

    /// Reads an object.
    pub fn from_members(members: &'a Map<String, Value>, place: JsonPlace) -> Self {
        Self { members, place, any_case: false, read: None, error: PhantomData }
    }

    /// Finds members whose names are written in another case. The exact name is preferred.
    #[must_use]
    pub fn in_any_case(self) -> Self {
        Self { any_case: true, ..self }
    }

    /// Returns all members, also those that are null.
    pub fn members(&self) -> &'a Map<String, Value> {
        self.members
    }

    /// Returns the place of the object.
    pub fn place(&self) -> &JsonPlace {
        &self.place
    }

    /// Creates an error about a member. The problem has no period at the end.
    pub fn error(&self, name: &str, problem: impl Display) -> E {
        PlaceError::new(self.place.member(name), problem).into()
    }

    /// Creates the error for a member that is absent.
    pub fn missing(&self, name: &str) -> E {
        self.error(name, "is required")
    }

    /// Creates the error for a member of the wrong type.
    pub fn wrong_type(&self, name: &str, expected: impl Display, found: &Value) -> E {
        PlaceError::wrong_type(self.place.member(name), expected, found).into()
    }

    /// Returns a member of any type.
    pub fn value(&self, name: &str) -> Option<&'a Value> {
        if let Some(read) = &self.read {
            read.borrow_mut().push(name.to_owned());
        }
        self.value_or_null(name).filter(|value| !value.is_null())
    }

    /// Returns a member of any type, also if it is null.
    pub fn value_or_null(&self, name: &str) -> Option<&'a Value> {
        let in_any_case = || {
            let mut members = self.members.iter().filter(|_| self.any_case);
            members.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        };
        self.members.get(name).or_else(in_any_case)
    }

    /// Returns a member of any type that must exist.
    pub fn required_value(&self, name: &str) -> Result<&'a Value, E> {
        self.value(name).ok_or_else(|| self.missing(name))
    }

    /// Returns a string.
    pub fn text(&self, name: &str) -> Result<Option<&'a str>, E> {
        self.typed(name, "a string", Value::as_str)
    }

    /// Returns a text that must exist and must not be empty.
    pub fn required_text(&self, name: &str) -> Result<&'a str, E> {
        match self.text(name)? {
            None => Err(self.missing(name)),
            Some("") => Err(self.error(name, "must not be empty")),
            Some(text) => Ok(text),
        }
    }

    /// Returns a text that must exist. It may be empty.
    pub fn required_text_or_empty(&self, name: &str) -> Result<&'a str, E> {
        self.text(name)?.ok_or_else(|| self.missing(name))
    }

    /// Returns `true` or `false`.
    pub fn boolean(&self, name: &str) -> Result<Option<bool>, E> {
        self.typed(name, "true or false", Value::as_bool)
    }

    /// Returns a number.
    pub fn number(&self, name: &str) -> Result<Option<f64>, E> {
        self.typed(name, "a number", |value| value.as_f64().filter(|number| number.is_finite()))
    }

    /// Returns a number that must exist.
    pub fn required_number(&self, name: &str) -> Result<f64, E> {
        self.number(name)?.ok_or_else(|| self.missing(name))
    }

    /// Returns a whole number, which may be negative.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, E> {
        self.typed(name, "a whole number", Value::as_i64)
    }

    /// Returns a whole number of the range.
    pub fn integer_in(&self, name: &str, range: RangeInclusive<usize>) -> Result<Option<usize>, E> {
        let expected = format_args!("a whole number from {} to {}", range.start(), range.end());
        self.typed(name, expected, |value| {
            let number = usize::try_from(value.as_u64()?).ok()?;
            range.contains(&number).then_some(number)
        })
    }

    /// Returns the meaning of a text that must be one of the given ones.
    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>, E> {
        self.text(name)?.map(|text| self.choose(name, text, choices, str::eq)).transpose()
    }

    /// Like [`ObjectReader::choice`], in upper or lower case.
    pub fn choice_in_any_case<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>, E> {
        self.text(name)?.map(|text| self.choose(name, text, choices, str::eq_ignore_ascii_case)).transpose()
    }

    /// Returns the meanings of texts, each of which must be one of the given ones.
    pub fn choices<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<Vec<T>, E> {
        self.texts(name)?.into_iter().map(|text| self.choose(name, text, choices, str::eq)).collect()
    }

    fn choose<T: Copy>(
        &self,
        name: &str,
        text: &str,
        choices: &[(&str, T)],
        same: fn(&str, &str) -> bool,
    ) -> Result<T, E> {
        choices.iter().find(|(known, _)| same(known, text)).map(|(_, meaning)| *meaning).ok_or_else(|| {
            let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
            let found = describe(&Value::from(text));
            match known.as_slice() {
                [only] => self.error(name, format_args!("must be {only}, not {found}")),
                _ => self.error(name, format_args!("must be one of {}, not {found}", known.join(", "))),
            }
        })
    }

    /// Returns the elements of an array. Empty if it is absent.
    pub fn list(&self, name: &str) -> Result<&'a [Value], E> {
        match self.value(name) {
            None => Ok(&[]),
            Some(Value::Array(elements)) => Ok(elements),
            Some(other) => Err(self.error(name, format_args!("must be an array, not {}", kind(other)))),
        }
    }

    /// Returns the strings of an array. Empty if it is absent.
    pub fn texts(&self, name: &str) -> Result<Vec<&'a str>, E> {
        let elements = self.list(name)?.iter().enumerate();
        elements
            .map(|(at, value)| {
                let place = || self.place.member(name).element(at);
                value.as_str().ok_or_else(|| PlaceError::wrong_type(place(), "a string", value).into())
            })
            .collect()
    }

    /// Returns the strings of an array like [`ObjectReader::texts`]. A single string is an array of one.
    pub fn text_or_texts(&self, name: &str) -> Result<Vec<&'a str>, E> {
        match self.value(name) {
            Some(Value::String(text)) => Ok(vec![text]),
            _ => self.texts(name),
        }
    }

    /// Returns the objects of an array. Empty if it is absent.
    pub fn objects(&self, name: &str) -> Result<Vec<ObjectReader<'a, E>>, E> {
        let place = self.place.member(name);
        let elements = self.list(name)?.iter().enumerate();
        elements.map(|(at, value)| self.nested(value, place.element(at))).collect()
    }

    /// Returns the objects of an array that must exist.
    pub fn required_objects(&self, name: &str) -> Result<Vec<ObjectReader<'a, E>>, E> {
        self.required_value(name)?;
        self.objects(name)
    }

    /// Returns a nested object.
    pub fn object(&self, name: &str) -> Result<Option<ObjectReader<'a, E>>, E> {
        self.value(name).map(|value| self.nested(value, self.place.member(name))).transpose()
    }

    /// Returns a nested object. If it is absent, all its members are.
    pub fn object_or_empty(&self, name: &str) -> Result<ObjectReader<'a, E>, E> {
        static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        let empty = || ObjectReader::from_members(&EMPTY, self.place.member(name));
        Ok(self.object(name)?.unwrap_or_else(empty))
    }

    /// Returns a nested object that must exist.
    pub fn required_object(&self, name: &str) -> Result<ObjectReader<'a, E>, E> {
        self.object(name)?.ok_or_else(|| self.missing(name))
    }

    /// Rejects members with other names. Annotations, whose names contain an @, are ignored.
    pub fn allow_only(&self, known: &[&str]) -> Result<(), E> {
        let mut names = self.members.keys().filter(|name| !name.contains('@'));
        match names.find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(self.error(name, format_args!("is unknown. Use one of: {}", known.join(", ")))),
        }
    }

    /// Remembers the names of the members that are read, for [`ObjectReader::unread`].
    #[must_use]
    pub fn track_reads(self) -> Self {
        Self { read: Some(RefCell::default()), ..self }
    }

    /// Returns a member that nothing has read since [`ObjectReader::track_reads`]. Annotations are ignored.
    pub fn unread(&self) -> Option<&'a str> {
        let read = self.read.as_ref()?.borrow();
        let mut names = self.members.keys().filter(|name| !name.contains('@'));
        names.find(|name| !read.contains(name)).map(String::as_str)
    }

    fn nested(&self, value: &'a Value, place: JsonPlace) -> Result<Self, E> {
        Ok(Self { any_case: self.any_case, ..Self::new(value, place)? })
    }

    fn typed<T>(
        &self,
        name: &str,
        expected: impl Display,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, E> {
        let Some(value) = self.value(name) else { return Ok(None) };
        convert(value).map(Some).ok_or_else(|| self.wrong_type(name, expected, value))
    }
}

/// Describes a value of the wrong type. Scalars are repeated, because they are short and show the mistake.
fn describe(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let start: String = text.chars().take(60).collect();
            format!("'{}'", start.escape_debug())
        }
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        other => kind(other).to_owned(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    type Reader<'a> = ObjectReader<'a, PlaceError>;

    fn problem(value: Value, read: impl FnOnce(&Reader<'_>) -> Option<PlaceError>) -> String {
        let reader = Reader::new(&value, JsonPlace::of("field 'f'")).unwrap();
        read(&reader).unwrap().to_string()
    }

    #[test]
    fn reads_members_and_treats_null_as_absent() {
        let value = json!({"t": "x", "b": true, "n": 1.5, "i": 7, "l": ["a"], "o": {"t": "y"}, "k": "two", "null": null});
        let reader = Reader::new(&value, JsonPlace::default()).unwrap();
        assert_eq!(reader.text("t"), Ok(Some("x")));
        assert_eq!((reader.text("null"), reader.text("none")), (Ok(None), Ok(None)));
        assert_eq!((reader.boolean("b"), reader.number("n")), (Ok(Some(true)), Ok(Some(1.5))));
        assert_eq!((reader.integer("i"), reader.integer_in("i", 0..=7)), (Ok(Some(7)), Ok(Some(7))));
        assert_eq!((reader.texts("l"), reader.texts("none")), (Ok(vec!["a"]), Ok(vec![])));
        assert_eq!(reader.object("o").unwrap().unwrap().required_text("t"), Ok("y"));
        assert_eq!(reader.choice("k", &[("one", 1), ("two", 2)]), Ok(Some(2)));
    }

    #[test]
    fn problems_are_sentences_that_name_the_place() {
        for (said, expected) in [
            (problem(json!({"a": 3}), |f| f.text("a").err()), "'a' of field 'f' must be a string, not 3."),
            (problem(json!({}), |f| f.required_text("a").err()), "'a' of field 'f' is required."),
            (
                problem(json!({"a": ""}), |f| f.required_text("a").err()),
                "'a' of field 'f' must not be empty.",
            ),
            (
                problem(json!({"a": "yes"}), |f| f.boolean("a").err()),
                "'a' of field 'f' must be true or false, not 'yes'.",
            ),
            (
                problem(json!({"a": 9}), |f| f.integer_in("a", 1..=8).err()),
                "'a' of field 'f' must be a whole number from 1 to 8, not 9.",
            ),
            (
                problem(json!({"a": "secret"}), |f| f.object("a").err()),
                "'a' of field 'f' must be an object, not a string.",
            ),
            (
                problem(json!({"l": [{}, {"o": {"x": []}}]}), |f| {
                    f.objects("l").ok()?.remove(1).required_object("o").ok()?.required_number("x").err()
                }),
                "'l[1].o.x' of field 'f' must be a number, not an array.",
            ),
            (
                problem(json!({"l": ["a", 1]}), |f| f.texts("l").err()),
                "'l[1]' of field 'f' must be a string, not 1.",
            ),
            (
                problem(json!({"k": "three"}), |f| f.choice("k", &[("one", 1), ("two", 2)]).err()),
                "'k' of field 'f' must be one of one, two, not 'three'.",
            ),
            (
                problem(json!({"a": 1, "@b": 1, "c": 1}), |f| f.allow_only(&["a", "d"]).err()),
                "'c' of field 'f' is unknown. Use one of: a, d.",
            ),
        ] {
            assert_eq!(said, expected);
        }
        let at = |place| Reader::new(&Value::Null, place).unwrap_err().to_string();
        assert_eq!(at(JsonPlace::default()), "The value must be an object, not null.");
        assert_eq!(at(JsonPlace::at("a[0]")), "'a[0]' must be an object, not null.");
        assert_eq!(at(JsonPlace::of("field 'f'")), "field 'f' must be an object, not null.");
    }

    #[test]
    fn names_match_in_any_case_on_demand_and_the_exact_one_wins() {
        let value = json!({"ToolName": "a", "toolname": "b", "title": null});
        let reader = Reader::new(&value, JsonPlace::default()).unwrap();
        assert_eq!(reader.text("TOOLNAME"), Ok(None));
        let reader = reader.in_any_case();
        assert_eq!((reader.text("toolname"), reader.text("TOOLNAME")), (Ok(Some("b")), Ok(Some("a"))));
        assert_eq!((reader.value("Title"), reader.value_or_null("Title")), (None, Some(&Value::Null)));
    }

    #[test]
    fn a_member_that_nothing_reads_is_found() {
        let value = json!({"a": 1, "b": null, "@odata.type": "x", "c": 2});
        let reader = Reader::new(&value, JsonPlace::default()).unwrap().track_reads();
        let _ = (reader.value("a"), reader.value("b"));
        assert_eq!(reader.unread(), Some("c"));
    }
}
