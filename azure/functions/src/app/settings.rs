//! App settings: names and values from the environment and from `local.settings.json`.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Returns the environment of this process. No other file of this crate reads it. Variables that are not
/// Unicode are skipped, but child processes still inherit them.
pub fn process_environment() -> Vec<(String, String)> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// App settings. The environment takes precedence over `local.settings.json`. An empty variable is ignored.
///
/// Names are not case-sensitive, and `A:B` equals `A__B`, as in .NET. Values may be secrets, so `Debug`
/// shows only names.
#[derive(Clone, Default)]
pub struct Settings {
    environment: SettingsLayer,
    values: SettingsLayer,
}

/// Settings from one source.
#[derive(Clone, Default)]
struct SettingsLayer {
    /// Values by name as written.
    settings: BTreeMap<String, String>,
    /// The name as written, by its normalized name.
    spellings: HashMap<String, String>,
}

impl Settings {
    /// Combines settings from the environment and from `Values` of `local.settings.json`.
    pub fn new(
        environment: impl IntoIterator<Item = (String, String)>,
        values: impl IntoIterator<Item = (String, String)>,
    ) -> Settings {
        let environment = environment.into_iter().filter(|(_, value)| !value.is_empty());
        Settings { environment: SettingsLayer::new(environment), values: SettingsLayer::new(values) }
    }

    /// Returns the value of a setting.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.environment.get(name).or_else(|| self.values.get(name))
    }

    /// Returns [`Settings::get`] as a function, for path templates.
    pub fn lookup(&self) -> impl Fn(&str) -> Option<String> + '_ {
        |name| self.get(name).map(str::to_owned)
    }

    /// Returns the environment that was passed to [`Settings::new`], without empty variables.
    pub fn environment(&self) -> Vec<(String, String)> {
        self.environment.settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns whether a setting is `true` or `1`.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).map(str::trim).is_some_and(|text| text.eq_ignore_ascii_case("true") || text == "1")
    }

    /// Returns these settings, with one more if it is not set or empty.
    pub(crate) fn with_default(&self, name: &str, value: &str) -> Settings {
        let mut settings = self.clone();
        if self.get(name).is_none_or(str::is_empty) {
            let more = [(name.to_owned(), value.to_owned())];
            let known = std::mem::take(&mut settings.environment.settings);
            settings.environment = SettingsLayer::new(
                known.into_iter().filter(|(known, _)| shared_name(known) != shared_name(name)).chain(more),
            );
        }
        settings
    }

    /// Returns each setting once: the environment of a worker.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let hidden = |name: &String| self.environment.get(name).is_some();
        let values = self.values.settings.iter().filter(move |(name, _)| !hidden(name));
        self.environment.settings.iter().chain(values).map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Replaces each `%NAME%` by that setting. Text that names no setting is unchanged.
    pub fn expand(&self, text: &str) -> String {
        expand(text, &mut |name| self.get(name).map(str::to_owned))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.settings.keys()).finish_non_exhaustive()
    }
}

impl SettingsLayer {
    fn new(settings: impl IntoIterator<Item = (String, String)>) -> SettingsLayer {
        let settings: BTreeMap<String, String> = settings.into_iter().collect();
        // If two spellings are equal, the first one in sort order is used.
        let spellings = settings.keys().rev().map(|name| (shared_name(name), name.clone())).collect();
        SettingsLayer { settings, spellings }
    }

    fn get(&self, name: &str) -> Option<&str> {
        let other_spelling = || self.settings.get(self.spellings.get(&shared_name(name))?);
        self.settings.get(name).or_else(other_spelling).map(String::as_str)
    }
}

fn shared_name(name: &str) -> String {
    name.replace("__", ":").to_lowercase()
}

/// Replaces each `%NAME%` by the result of `value`. Text for which `value` returns `None` is unchanged.
pub(super) fn expand(text: &str, value: &mut dyn FnMut(&str) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('%') {
        expanded.push_str(before);
        let found = behind.split_once('%').and_then(|(name, after)| {
            let value = if name.is_empty() { None } else { value(name) };
            Some((value?, after))
        });
        match found {
            Some((value, after)) => {
                expanded.push_str(&value);
                rest = after;
            }
            None => {
                expanded.push('%');
                rest = behind;
            }
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(environment: &[(&str, &str)], values: &[(&str, &str)]) -> Settings {
        let owned = |pairs: &[(&str, &str)]| -> Vec<_> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        Settings::new(owned(environment), owned(values))
    }

    #[test]
    fn the_environment_takes_precedence_unless_it_is_empty() {
        let settings = settings(
            &[("A", "1"), ("B", ""), ("c__d", "2")],
            &[("A", "9"), ("B", "3"), ("C:D", "9"), ("E", "")],
        );
        assert_eq!(settings.get("A"), Some("1"));
        assert_eq!(settings.get("B"), Some("3"));
        assert_eq!(settings.get("C:D"), Some("2"));
        assert_eq!(settings.get("E"), Some(""));
        assert_eq!(settings.get("F"), None);
        let all: Vec<_> = settings.iter().collect();
        assert_eq!(all, [("A", "1"), ("c__d", "2"), ("B", "3"), ("E", "")]);
    }

    #[test]
    fn names_match_in_any_case_and_with_either_separator() {
        let settings =
            settings(&[], &[("Storage__accountName", "x"), ("a:b", "y"), ("A", "upper"), ("a", "lower")]);
        assert_eq!(settings.get("storage:AccountName"), Some("x"));
        assert_eq!(settings.get("A__B"), Some("y"));
        assert_eq!(settings.get("a"), Some("lower"));
        assert_eq!(settings.get("A"), Some("upper"));
    }

    #[test]
    fn debug_shows_no_values() {
        let text = format!("{:?}", settings(&[("HOME", "secret1")], &[("Key", "secret2")]));
        assert!(text.contains("Key") && !text.contains("secret"), "{text}");
    }

    #[test]
    fn percent_signs_name_settings_or_are_unchanged() {
        let settings = settings(&[], &[("X", "1"), ("Y", "%X%")]);
        for (text, expected) in [
            ("%X%", "1"),
            ("a%X%b%X%", "a1b1"),
            ("%Y%", "%X%"),
            ("100% of %X%", "100% of 1"),
            ("%%", "%%"),
            ("%Z%", "%Z%"),
            ("50%", "50%"),
            ("", ""),
            ("%Z%X%", "%Z1"),
        ] {
            assert_eq!(settings.expand(text), expected, "{text}");
        }
    }

    #[test]
    fn on_is_true_or_one() {
        let settings = settings(&[], &[("a", "True"), ("b", "1"), ("c", "yes"), ("d", "false")]);
        assert_eq!(
            ["a", "b", "c", "d", "e"].map(|name| settings.is_on(name)),
            [true, true, false, false, false]
        );
    }

    #[test]
    fn only_this_file_reads_the_environment() {
        fn visit(folder: &std::path::Path, reading: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    visit(&path, reading);
                // Split in two, so that this line does not match.
                } else if std::fs::read_to_string(&path).unwrap().contains(concat!("env", "::var")) {
                    reading.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
        let mut reading = Vec::new();
        visit(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut reading);
        assert_eq!(reading, ["settings.rs"]);
    }

    #[test]
    fn the_environment_of_the_process_is_read() {
        assert!(process_environment().iter().any(|(name, value)| name == "PATH" && !value.is_empty()));
    }
}
