//! Value formats: how a value is parsed, checked and displayed.

use std::time::Duration;

use bindpost_mcp_protocol::Revision;

/// A value as written, with its line.
pub(super) struct LocatedValue<'a> {
    pub(super) value: OptionValue<'a>,
    pub(super) line: usize,
}

/// A value as written in a file or a variable.
pub(super) enum OptionValue<'a> {
    /// The value of a variable. It can have any type and may be secret.
    Plain(&'a str),
    Text(&'a str),
    /// A number as written, with its value if it is a whole number and not negative.
    Number(String, Option<u64>),
    Flag(bool),
    Date(String),
    List(Vec<LocatedValue<'a>>),
    /// A type that no option accepts, by its name.
    Other(&'static str),
}

impl<'a> OptionValue<'a> {
    /// Returns the text for an error message. Variables may hold secrets, so their
    /// values are never displayed.
    pub(super) fn display_text(&self) -> Option<String> {
        Some(match self {
            OptionValue::Plain(_) => return None,
            OptionValue::Text(text) => quoted(text),
            OptionValue::Number(text, _) | OptionValue::Date(text) => shortened(text),
            OptionValue::Flag(flag) => flag.to_string(),
            OptionValue::List(_) => "a list".to_owned(),
            OptionValue::Other(name) => (*name).to_owned(),
        })
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        match self {
            OptionValue::Plain(text) | OptionValue::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number(&self) -> Option<u64> {
        match self {
            OptionValue::Plain(text) => digits(text),
            OptionValue::Number(_, number) => *number,
            _ => None,
        }
    }

    /// Returns whether the value is the text for "no value".
    pub(super) fn is_none_text(&self, none: &str) -> bool {
        self.text().is_some_and(|text| text == none || none == NONE && text == "never")
    }
}

/// The text for "no limit".
const NONE: &str = "none";

/// The format of one type of value.
pub(super) trait ValueFormat<T> {
    /// Returns the name of the type.
    fn kind(&self) -> String;
    /// Returns the expected value, as the end of a sentence.
    fn expects(&self) -> String;
    /// Parses a value. Returns `None` if it has another type.
    fn read(&self, value: &OptionValue<'_>) -> Option<T>;
    /// Returns whether the value is valid.
    fn is_valid(&self, value: &T) -> bool;
    /// Returns the value in TOML. A secret is replaced by a placeholder.
    fn to_toml(&self, value: &T) -> String;
    /// Returns the text for "no value".
    fn none(&self) -> &'static str {
        NONE
    }
    fn is_secret(&self) -> bool {
        false
    }
}

pub(super) struct FlagFormat;

impl ValueFormat<bool> for FlagFormat {
    fn kind(&self) -> String {
        "flag".to_owned()
    }
    fn expects(&self) -> String {
        "true or false".to_owned()
    }
    fn read(&self, value: &OptionValue<'_>) -> Option<bool> {
        match value {
            OptionValue::Flag(flag) => Some(*flag),
            OptionValue::Plain("true") => Some(true),
            OptionValue::Plain("false") => Some(false),
            _ => None,
        }
    }
    fn is_valid(&self, _: &bool) -> bool {
        true
    }
    fn to_toml(&self, value: &bool) -> String {
        value.to_string()
    }
}

/// A whole number of any width.
pub(super) trait WholeNumber: Copy + TryFrom<u64> + TryInto<u64> {}

impl WholeNumber for usize {}
impl WholeNumber for u32 {}

fn wide(number: impl WholeNumber) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}

/// The format of a count.
#[derive(Clone, Copy)]
pub(super) struct CountFormat {
    least: u64,
    most: u64,
}

/// Larger counts are always a mistake. The maximum is far from any overflow.
pub(super) const COUNT: CountFormat = CountFormat { least: 0, most: 1_000_000_000 };

impl CountFormat {
    pub(super) const fn at_least(self, least: u64) -> CountFormat {
        CountFormat { least, ..self }
    }
    pub(super) const fn at_most(self, most: u64) -> CountFormat {
        CountFormat { most, ..self }
    }
}

impl<T: WholeNumber> ValueFormat<T> for CountFormat {
    fn kind(&self) -> String {
        "count".to_owned()
    }
    fn expects(&self) -> String {
        format!("a number from {} to {}", self.least, self.most)
    }
    fn read(&self, value: &OptionValue<'_>) -> Option<T> {
        T::try_from(value.number()?).ok()
    }
    fn is_valid(&self, value: &T) -> bool {
        (self.least..=self.most).contains(&wide(*value))
    }
    fn to_toml(&self, value: &T) -> String {
        wide(*value).to_string()
    }
}

/// The format of a number of bytes.
#[derive(Clone, Copy)]
pub(super) struct SizeFormat {
    least: u64,
    most: u64,
}

pub(super) const SIZE: SizeFormat = SizeFormat { least: 0, most: 1 << 40 };

/// Units in bytes, the smallest first.
const SIZE_UNITS: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

impl SizeFormat {
    pub(super) const fn at_least(self, least: u64) -> SizeFormat {
        SizeFormat { least, ..self }
    }
    pub(super) const fn at_most(self, most: u64) -> SizeFormat {
        SizeFormat { most, ..self }
    }
}

impl<T: WholeNumber> ValueFormat<T> for SizeFormat {
    fn kind(&self) -> String {
        "size".to_owned()
    }
    fn expects(&self) -> String {
        let (least, most) = (size_text(self.least), size_text(self.most));
        format!("a number of bytes or a size like 64KiB or 4MiB, from {least} to {most}")
    }
    fn read(&self, value: &OptionValue<'_>) -> Option<T> {
        let with_unit = || with_unit(value.text()?, &SIZE_UNITS);
        T::try_from(value.number().or_else(with_unit)?).ok()
    }
    fn is_valid(&self, value: &T) -> bool {
        (self.least..=self.most).contains(&wide(*value))
    }
    fn to_toml(&self, value: &T) -> String {
        let bytes = wide(*value);
        let text = size_text(bytes);
        if text == bytes.to_string() { text } else { toml_text(&text) }
    }
}

fn size_text(bytes: u64) -> String {
    let divides = |unit: &&(&str, u64)| unit.1 > 1 && bytes > 0 && bytes.is_multiple_of(unit.1);
    match SIZE_UNITS.iter().rfind(divides) {
        Some((unit, size)) => format!("{}{unit}", bytes / size),
        None => bytes.to_string(),
    }
}

/// The format of a duration.
#[derive(Clone, Copy)]
pub(super) struct DurationFormat {
    least: Duration,
    most: Duration,
}

/// Durations above a year are always a mistake. The maximum is far from any overflow of a clock.
pub(super) const TIME: DurationFormat =
    DurationFormat { least: Duration::ZERO, most: Duration::from_secs(365 * 24 * 60 * 60) };
/// Intervals and timeouts, which must not be zero.
pub(super) const PAUSE: DurationFormat = DurationFormat { least: Duration::from_millis(1), ..TIME };

/// Units in milliseconds, the smallest first.
const TIME_UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

impl DurationFormat {
    pub(super) const fn at_most(self, most: Duration) -> DurationFormat {
        DurationFormat { most, ..self }
    }
}

impl ValueFormat<Duration> for DurationFormat {
    fn kind(&self) -> String {
        "duration".to_owned()
    }
    fn expects(&self) -> String {
        let (least, most) = (time_text(self.least), time_text(self.most));
        format!("a duration like 250ms, 30s, 5m or 1h, from {least} to {most}")
    }
    fn read(&self, value: &OptionValue<'_>) -> Option<Duration> {
        with_unit(value.text()?, &TIME_UNITS).map(Duration::from_millis)
    }
    fn is_valid(&self, value: &Duration) -> bool {
        (self.least..=self.most).contains(value)
    }
    fn to_toml(&self, value: &Duration) -> String {
        toml_text(&time_text(*value))
    }
}

fn time_text(time: Duration) -> String {
    let millis = time.as_millis();
    let divides = |unit: &&(&str, u64)| millis.is_multiple_of(u128::from(unit.1));
    match TIME_UNITS.iter().rfind(divides) {
        Some((unit, size)) if millis > 0 => format!("{}{unit}", millis / u128::from(*size)),
        _ => "0s".to_owned(),
    }
}

/// The format of a choice between a few words.
pub(super) struct ChoiceFormat<T: 'static>(pub(super) &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> ValueFormat<T> for ChoiceFormat<T> {
    fn kind(&self) -> String {
        let words: Vec<String> = self.0.iter().map(|(word, _)| format!("`{word}`")).collect();
        one_of(&words)
    }
    fn expects(&self) -> String {
        let words: Vec<&str> = self.0.iter().map(|(word, _)| *word).collect();
        one_of(&words)
    }
    fn read(&self, value: &OptionValue<'_>) -> Option<T> {
        let text = value.text()?;
        self.0.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant)
    }
    fn is_valid(&self, _: &T) -> bool {
        true
    }
    fn to_toml(&self, value: &T) -> String {
        let word = self.0.iter().find(|(_, meant)| meant == value);
        toml_text(word.map_or("", |(word, _)| word))
    }
}

/// The format of a choice between a few names that another crate parses.
pub(super) struct NameFormat(pub(super) &'static [&'static str]);

impl ValueFormat<String> for NameFormat {
    fn kind(&self) -> String {
        "name".to_owned()
    }
    fn expects(&self) -> String {
        one_of(self.0)
    }
    fn read(&self, value: &OptionValue<'_>) -> Option<String> {
        value.text().map(str::to_owned)
    }
    fn is_valid(&self, value: &String) -> bool {
        self.0.contains(&value.as_str())
    }
    fn to_toml(&self, value: &String) -> String {
        toml_text(value)
    }
}

/// The format of a protocol revision.
pub(super) struct RevisionFormat;

impl ValueFormat<Revision> for RevisionFormat {
    fn kind(&self) -> String {
        "date".to_owned()
    }
    fn expects(&self) -> String {
        one_of(&Revision::ALL.map(Revision::as_str))
    }
    fn read(&self, value: &OptionValue<'_>) -> Option<Revision> {
        match value {
            OptionValue::Date(date) => Revision::parse(date),
            other => Revision::parse(other.text()?),
        }
    }
    fn is_valid(&self, _: &Revision) -> bool {
        true
    }
    fn to_toml(&self, value: &Revision) -> String {
        toml_text(value.as_str())
    }
}

/// Joins words as `a, b or c`.
fn one_of(words: &[impl AsRef<str>]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

pub(super) fn digits(text: &str) -> Option<u64> {
    let all = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

/// Parses a number that is directly followed by a unit.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, size) =
        units.iter().find_map(|(unit, size)| Some((digits(text.strip_suffix(unit)?)?, size)))?;
    number.checked_mul(*size)
}

/// Quotes a text for an error message.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text))
}

fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Quotes a text for TOML.
pub(super) fn toml_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}
