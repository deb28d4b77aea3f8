//! Loads options from a TOML file and from environment variables.
//!
//! Nothing else in the library reads the environment of the process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::app::{APP, AppData, AppValue};
use super::form::{LocatedValue, OptionValue, quoted};
use super::keys::{self, OptionDefinition};
use super::mistake::{OptionMistake, OptionSource, OptionsError};
use super::{CONFIG, Options, PREFIX};

/// The maximum size of a file.
const MAX_BYTES: u64 = 1024 * 1024;

impl Options {
    /// Loads the environment of the process: first the file that `BINDPOST_CONFIG` names, then the
    /// other variables that begin with `BINDPOST_`. Both override earlier values.
    pub fn load(self) -> Result<Options, OptionsError> {
        self.load_variables(std::env::vars_os())
    }

    /// Like [`load`](Options::load), but with these variables instead of the environment. Variables
    /// that do not begin with `BINDPOST_` are ignored.
    pub fn load_variables<N: Into<OsString>, V: Into<OsString>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Options, OptionsError> {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        let mut variables: Vec<(String, OsString)> = variables
            .map(|(name, value): (OsString, OsString)| (name.to_string_lossy().into_owned(), value))
            .filter(|(name, _)| name.starts_with(PREFIX))
            .collect();
        variables.sort();
        let mut mistakes = Vec::new();
        if let Some((_, path)) = variables.iter().find(|(name, path)| name == CONFIG && !path.is_empty()) {
            match read(Path::new(path)) {
                Ok(text) => mistakes.extend(self.apply_toml(&Path::new(path).to_string_lossy(), &text)),
                Err(error) => {
                    let what =
                        format!("names {}, which cannot be read: {error}", quoted(&path.to_string_lossy()));
                    mistakes.push(OptionMistake::about(
                        CONFIG,
                        OptionSource::Variable(CONFIG.to_owned()),
                        what,
                    ));
                }
            }
        }
        for (name, value) in variables.iter().filter(|(name, _)| name != CONFIG) {
            mistakes.extend(self.apply_variable(name, value));
        }
        OptionsError::unless_empty(mistakes).map(|()| self)
    }

    /// Loads a TOML file. It overrides earlier values.
    pub fn load_file(mut self, path: impl AsRef<Path>) -> Result<Options, OptionsError> {
        let path = path.as_ref();
        let name = path.to_string_lossy();
        let mistakes = match read(path) {
            Ok(text) => self.apply_toml(&name, &text),
            Err(error) => {
                let text = format!("{name} cannot be read: {error}");
                vec![OptionMistake { place: OptionSource::Line { file: name.into_owned(), line: 1 }, text }]
            }
        };
        OptionsError::unless_empty(mistakes).map(|()| self)
    }

    /// Loads the text of a TOML file. Errors name `file` as their source.
    pub fn load_toml(mut self, file: &str, text: &str) -> Result<Options, OptionsError> {
        let mistakes = self.apply_toml(file, text);
        OptionsError::unless_empty(mistakes).map(|()| self)
    }

    fn apply_toml(&mut self, file: &str, text: &str) -> Vec<OptionMistake> {
        let (table, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            return self.apply_tables(file, text, &table);
        }
        // Report one error per line, because further errors on a line follow from the first. Without
        // these lines the rest may be valid.
        let lines = LineIndex::new(text);
        let mut broken = BTreeMap::new();
        for error in &errors {
            broken.entry(lines.line_at(error.span())).or_insert(error.message());
        }
        let rest = blank_lines(text, &broken);
        let (table, errors) = DeTable::parse_recoverable(&rest);
        let mut mistakes = self.apply_tables(file, &rest, &table);
        // Lines after a broken line may belong to another table than the parser assumed, so their
        // errors are dropped. A broken value does not affect the lines after it.
        let lines = LineIndex::new(&rest);
        let guessed = errors.iter().map(|error| lines.line_at(error.span()));
        let source: Vec<&str> = text.lines().collect();
        let is_header = |line: &usize| source.get(line - 1).is_some_and(|text| text.trim().starts_with('['));
        let guessed = guessed.chain(broken.keys().copied().filter(is_header)).min().unwrap_or(usize::MAX);
        mistakes.retain(|mistake| line(mistake) < guessed);
        mistakes.extend(broken.into_iter().map(|(line, message)| {
            let place = OptionSource::Line { file: file.to_owned(), line };
            OptionMistake { place, text: format!("{file} line {line} is not TOML: {message}") }
        }));
        mistakes.sort_by_key(line);
        mistakes
    }

    fn apply_tables(&mut self, file: &str, text: &str, table: &Spanned<DeTable<'_>>) -> Vec<OptionMistake> {
        let mut loader =
            TomlLoader { options: self, file, lines: LineIndex::new(text), mistakes: Vec::new() };
        loader.apply_table(None, table.get_ref());
        let mut mistakes = loader.mistakes;
        mistakes.sort_by_key(line);
        mistakes
    }

    fn apply_variable(&mut self, name: &str, value: &OsString) -> Vec<OptionMistake> {
        if let Some(rest) = name.strip_prefix(PREFIX).and_then(|name| name.strip_prefix("APP__")) {
            let place = OptionSource::Variable(name.to_owned());
            return match value.to_str() {
                Some(text) => self.set_app_variable(rest, text).into_iter().collect(),
                None => vec![OptionMistake::about(APP, place, "is not UTF-8")],
            };
        }
        let Some(key) = keys::all().find(|key| key.variable() == name) else {
            let known: Vec<String> = keys::all().map(OptionDefinition::variable).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).chain([CONFIG]).collect();
            return vec![OptionMistake::unknown_variable(name, PREFIX, &known)];
        };
        let place = OptionSource::Variable(name.to_owned());
        let Some(value) = value.to_str() else {
            return vec![OptionMistake::about(key.name, place, "is not UTF-8")];
        };
        let given = LocatedValue { value: OptionValue::Plain(value.trim()), line: 0 };
        self.apply_value(key, &given, &place)
    }

    fn apply_value(
        &mut self,
        key: &'static OptionDefinition,
        given: &LocatedValue<'_>,
        place: &OptionSource,
    ) -> Vec<OptionMistake> {
        let taken = (key.slot)(self).set(given);
        let Err(wrongs) = taken else {
            self.places.insert(key.name, place.clone());
            return Vec::new();
        };
        let place_of = |line: usize| match place {
            OptionSource::Line { file, .. } => OptionSource::Line { file: file.clone(), line },
            other => other.clone(),
        };
        wrongs
            .into_iter()
            .map(|wrong| OptionMistake::invalid_value(key.name, place_of(wrong.line), wrong))
            .collect()
    }
}

/// Applies the tables of one file.
struct TomlLoader<'a> {
    options: &'a mut Options,
    file: &'a str,
    lines: LineIndex,
    mistakes: Vec<OptionMistake>,
}

impl TomlLoader<'_> {
    fn apply_table(&mut self, table: Option<&str>, members: &DeTable<'_>) {
        for (key, value) in members {
            let line = self.lines.line_at(Some(key.span()));
            let name = match table {
                Some(table) => format!("{table}.{}", key.get_ref()),
                None => key.get_ref().to_string(),
            };
            let value_line = self.lines.line_at(Some(value.span()));
            // A dot inside a quoted key does not separate tables.
            let known = if key.get_ref().contains('.') { None } else { keys::find(&name) };
            match (known, value.get_ref()) {
                (None, DeValue::Table(_)) if name == APP => {
                    let table = self.app_value(value.get_ref(), line);
                    self.options.app.merge(table);
                }
                (Some(key), value) => {
                    let given = self.located_value(value, value_line);
                    let place = OptionSource::Line { file: self.file.to_owned(), line };
                    let mistakes = self.options.apply_value(key, &given, &place);
                    self.mistakes.extend(mistakes);
                }
                (None, DeValue::Table(members)) if keys::is_table(&name) => {
                    self.apply_table(Some(&name), members);
                }
                (None, value) if keys::is_table(&name) || name == APP => {
                    let shown =
                        self.located_value(value, value_line).value.display_text().unwrap_or_default();
                    let place = OptionSource::Line { file: self.file.to_owned(), line };
                    let what = format!("is {shown}; it can be a table: [{name}]");
                    self.mistakes.push(OptionMistake::about(&name, place, what));
                }
                (None, value) => {
                    let is_table = matches!(value, DeValue::Table(_));
                    let known =
                        if is_table { keys::tables() } else { keys::all().map(|key| key.name).collect() };
                    let here = if is_table { keys::tables() } else { keys::names_in_table(table) };
                    let mistake = OptionMistake::unknown(&name, (self.file, line), &known, &here);
                    self.mistakes.push(mistake);
                }
            }
        }
    }

    /// Returns a value of `[app]`.
    fn app_value(&self, value: &DeValue<'_>, line: usize) -> AppValue {
        let child = |value: &Spanned<DeValue<'_>>| {
            self.app_value(value.get_ref(), self.lines.line_at(Some(value.span())))
        };
        let data = match value {
            DeValue::String(text) => AppData::Text(text.to_string()),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => AppData::Integer(number),
                Err(_) => AppData::Other(number.to_string()),
            },
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => AppData::Float(number),
                Err(_) => AppData::Other(number.to_string()),
            },
            DeValue::Boolean(flag) => AppData::Flag(*flag),
            DeValue::Datetime(date) => AppData::Other(date.to_string()),
            DeValue::Array(items) => AppData::List(items.iter().map(child).collect()),
            DeValue::Table(members) => {
                let members = members.iter().map(|(key, value)| (key.get_ref().to_string(), child(value)));
                AppData::Table(members.collect())
            }
        };
        AppValue { place: OptionSource::Line { file: self.file.to_owned(), line }, data }
    }

    fn located_value<'v>(&self, value: &'v DeValue<'_>, line: usize) -> LocatedValue<'v> {
        let value = match value {
            DeValue::String(text) => OptionValue::Text(text),
            DeValue::Integer(number) => {
                let whole = u64::from_str_radix(number.as_str(), number.radix()).ok();
                OptionValue::Number(number.to_string(), whole)
            }
            DeValue::Float(number) => OptionValue::Number(number.to_string(), None),
            DeValue::Boolean(flag) => OptionValue::Flag(*flag),
            DeValue::Datetime(date) => OptionValue::Date(date.to_string()),
            DeValue::Array(items) => {
                let given = items
                    .iter()
                    .map(|item| self.located_value(item.get_ref(), self.lines.line_at(Some(item.span()))));
                OptionValue::List(given.collect())
            }
            DeValue::Table(_) => OptionValue::Other("a table"),
        };
        LocatedValue { value, line }
    }
}

/// Returns the text with these lines blanked. Line numbers stay the same.
fn blank_lines<T>(text: &str, lines: &BTreeMap<usize, T>) -> String {
    let kept = (1..).zip(text.split_inclusive('\n'));
    kept.map(|(line, text)| if lines.contains_key(&line) { "\n" } else { text }).collect()
}

/// Returns the line of an error in its file.
fn line(mistake: &OptionMistake) -> usize {
    match mistake.place {
        OptionSource::Line { line, .. } => line,
        _ => 0,
    }
}

/// The offsets of the line ends of a text.
struct LineIndex(Vec<usize>);

impl LineIndex {
    fn new(text: &str) -> LineIndex {
        LineIndex(text.match_indices('\n').map(|(end, _)| end).collect())
    }

    /// Returns the line of a span's start, counted from 1.
    fn line_at(&self, span: Option<Range<usize>>) -> usize {
        let start = span.map_or(0, |span| span.start);
        1 + self.0.partition_point(|end| *end < start)
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(text)
}
