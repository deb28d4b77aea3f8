//! Value formats: how a value is parsed, checked and displayed.

use std::ops::RangeInclusive;
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
/// The placeholder for a secret.
const HIDDEN: &str = "…";

type ValueParser<T> = Box<dyn Fn(&OptionValue<'_>) -> Option<T>>;

/// The format of one type of value: how it is parsed, checked and displayed.
pub(super) struct ValueFormat<T> {
    /// The name of the type.
    pub(super) kind: String,
    /// The expected value, as the end of a sentence.
    pub(super) expects: String,
    /// The text for "no value".
    pub(super) none: &'static str,
    /// Whether values are secret and never displayed.
    pub(super) is_secret: bool,
    /// The minimum length of a list of such values.
    pub(super) least: usize,
    pub(super) parse: ValueParser<T>,
    pub(super) display: Box<dyn Fn(&T) -> String>,
    pub(super) is_valid: Box<dyn Fn(&T) -> bool>,
}

impl<T> ValueFormat<T> {
    /// Creates a format in which every value is valid. `parse` returns `None` for a value of another type,
    /// and `display` returns the value in TOML.
    pub(super) fn new(
        kind: impl Into<String>,
        expects: impl Into<String>,
        parse: impl Fn(&OptionValue<'_>) -> Option<T> + 'static,
        display: impl Fn(&T) -> String + 'static,
    ) -> ValueFormat<T> {
        ValueFormat {
            kind: kind.into(),
            expects: expects.into(),
            none: NONE,
            is_secret: false,
            least: 0,
            parse: Box::new(parse),
            display: Box::new(display),
            is_valid: Box::new(|_| true),
        }
    }

    pub(super) fn valid_if(self, is_valid: impl Fn(&T) -> bool + 'static) -> ValueFormat<T> {
        ValueFormat { is_valid: Box::new(is_valid), ..self }
    }

    /// Parses a value. Returns `None` if it is invalid.
    pub(super) fn read(&self, value: &OptionValue<'_>) -> Option<T> {
        (self.parse)(value).filter(|value| self.is_valid(value))
    }

    pub(super) fn is_valid(&self, value: &T) -> bool {
        (self.is_valid)(value)
    }

    /// Returns the value in TOML. A secret is replaced by a placeholder.
    pub(super) fn to_toml(&self, value: &T) -> String {
        if self.is_secret { toml_text(HIDDEN) } else { (self.display)(value) }
    }
}

pub(super) fn flag() -> ValueFormat<bool> {
    let parse = |value: &OptionValue<'_>| match value {
        OptionValue::Flag(flag) => Some(*flag),
        OptionValue::Plain("true") => Some(true),
        OptionValue::Plain("false") => Some(false),
        _ => None,
    };
    ValueFormat::new("flag", "true or false", parse, bool::to_string)
}

/// A whole number of any width.
pub(super) trait WholeNumber: Copy + TryFrom<u64> + TryInto<u64> {}

impl WholeNumber for usize {}
impl WholeNumber for u32 {}

fn wide(number: impl WholeNumber) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}

/// Larger counts are always a mistake. The maximum is far from any overflow.
pub(super) const COUNT: RangeInclusive<u64> = 0..=1_000_000_000;
/// Counts that must not be zero.
pub(super) const SOME: RangeInclusive<u64> = 1..=1_000_000_000;

pub(super) fn count<T: WholeNumber>(range: RangeInclusive<u64>) -> ValueFormat<T> {
    let expects = format!("a number from {} to {}", range.start(), range.end());
    let parse = |value: &OptionValue<'_>| T::try_from(value.number()?).ok();
    ValueFormat::new("count", expects, parse, |count| wide(*count).to_string())
        .valid_if(move |count| range.contains(&wide(*count)))
}

/// Numbers of bytes.
pub(super) const SIZE: RangeInclusive<u64> = 0..=1 << 40;
/// Numbers of bytes that must not be zero.
pub(super) const SOME_BYTES: RangeInclusive<u64> = 1..=1 << 40;

/// Units in bytes, the smallest first.
const SIZE_UNITS: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

pub(super) fn size<T: WholeNumber>(range: RangeInclusive<u64>) -> ValueFormat<T> {
    let (least, most) = (size_text(*range.start()), size_text(*range.end()));
    let expects = format!("a number of bytes or a size like 64KiB or 4MiB, from {least} to {most}");
    let parse = |value: &OptionValue<'_>| {
        let with_unit = || with_unit(value.text()?, &SIZE_UNITS);
        T::try_from(value.number().or_else(with_unit)?).ok()
    };
    let display = |size: &T| {
        let bytes = wide(*size);
        let text = size_text(bytes);
        if text == bytes.to_string() { text } else { toml_text(&text) }
    };
    ValueFormat::new("size", expects, parse, display).valid_if(move |size| range.contains(&wide(*size)))
}

fn size_text(bytes: u64) -> String {
    let divides = |unit: &&(&str, u64)| unit.1 > 1 && bytes > 0 && bytes.is_multiple_of(unit.1);
    match SIZE_UNITS.iter().rfind(divides) {
        Some((unit, size)) => format!("{}{unit}", bytes / size),
        None => bytes.to_string(),
    }
}

/// Durations above a year are always a mistake. The maximum is far from any overflow of a clock.
pub(super) const TIME: RangeInclusive<Duration> = Duration::ZERO..=YEAR;
/// Intervals and timeouts, which must not be zero.
pub(super) const PAUSE: RangeInclusive<Duration> = Duration::from_millis(1)..=YEAR;
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Units in milliseconds, the smallest first.
const TIME_UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

pub(super) fn time(range: RangeInclusive<Duration>) -> ValueFormat<Duration> {
    let (least, most) = (time_text(*range.start()), time_text(*range.end()));
    let expects = format!("a duration like 250ms, 30s, 5m or 1h, from {least} to {most}");
    let parse = |value: &OptionValue<'_>| with_unit(value.text()?, &TIME_UNITS).map(Duration::from_millis);
    ValueFormat::new("duration", expects, parse, |time| toml_text(&time_text(*time)))
        .valid_if(move |time| range.contains(time))
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
pub(super) fn choice<T: Copy + PartialEq>(words: &'static [(&'static str, T)]) -> ValueFormat<T> {
    let kinds: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
    let expects: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let parse = |value: &OptionValue<'_>| {
        let text = value.text()?;
        words.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant)
    };
    let display = |value: &T| {
        let word = words.iter().find(|(_, meant)| meant == value);
        toml_text(word.map_or("", |(word, _)| word))
    };
    ValueFormat::new(one_of(&kinds), one_of(&expects), parse, display)
}

/// The format of a choice between a few names that another crate parses.
pub(super) fn name(names: &'static [&'static str]) -> ValueFormat<String> {
    let parse = |value: &OptionValue<'_>| value.text().map(str::to_owned);
    ValueFormat::new("name", one_of(names), parse, |name| toml_text(name))
        .valid_if(|name| names.contains(&name.as_str()))
}

/// The format of a protocol revision. A server supports at least one.
pub(super) fn revision() -> ValueFormat<Revision> {
    let parse = |value: &OptionValue<'_>| match value {
        OptionValue::Date(date) => Revision::parse(date),
        other => Revision::parse(other.text()?),
    };
    let expects = one_of(&Revision::ALL.map(Revision::as_str));
    let format = ValueFormat::new("date", expects, parse, |revision: &Revision| toml_text(revision.as_str()));
    ValueFormat { least: 1, ..format }
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
