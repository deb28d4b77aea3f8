//! The table `[app]`: settings of the program itself, in a type of its own.

mod reader;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::mistake::{OptionMistake, OptionSource, OptionsError};
use super::{Options, PREFIX};

/// The name of the table.
pub(super) const APP: &str = "app";

/// A value below `[app]`, with its source.
#[derive(Clone)]
pub(super) struct AppValue {
    pub(super) place: OptionSource,
    pub(super) data: AppData,
}

#[derive(Clone)]
pub(super) enum AppData {
    Table(BTreeMap<String, AppValue>),
    List(Vec<AppValue>),
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    /// A number or a date that serde has no type for, as it is written.
    Other(String),
    /// The text of a variable. The type that reads it decides what it is.
    Variable(String),
}

impl AppValue {
    /// An empty table of the program.
    pub(super) fn empty() -> AppValue {
        AppValue { place: OptionSource::Program, data: AppData::Table(BTreeMap::new()) }
    }

    /// Replaces this value. Tables are merged.
    pub(super) fn merge(&mut self, newer: AppValue) {
        match (&mut self.data, newer) {
            (AppData::Table(members), AppValue { data: AppData::Table(newer), place }) => {
                self.place = place;
                for (name, value) in newer {
                    members.entry(name).or_insert_with(AppValue::empty).merge(value);
                }
            }
            (_, newer) => *self = newer,
        }
    }

    /// Sets a value below this one.
    fn set(&mut self, path: &[&str], value: AppValue) {
        let Some((name, rest)) = path.split_first() else { return *self = value };
        if !matches!(self.data, AppData::Table(_)) {
            *self = AppValue { place: value.place.clone(), data: AppData::Table(BTreeMap::new()) };
        }
        if let AppData::Table(members) = &mut self.data {
            member(members, name).set(rest, value);
        }
    }
}

/// Returns the member that a variable names. If there is none in any spelling, it is inserted.
fn member<'m>(members: &'m mut BTreeMap<String, AppValue>, name: &str) -> &'m mut AppValue {
    let spelled = members.keys().find(|key| is_same(key, name));
    let name = spelled.map_or(name, String::as_str).to_owned();
    members.entry(name).or_insert_with(AppValue::empty)
}

/// Returns whether two names differ only in case and separators. Variables cannot spell `maxItems`.
fn is_same(one: &str, other: &str) -> bool {
    let letters = |name: &str| -> String {
        name.chars().filter(|letter| !matches!(letter, '_' | '-')).flat_map(char::to_lowercase).collect()
    };
    letters(one) == letters(other)
}

impl Options {
    /// Returns the settings of your program: the table `[app]` of the file, and the variables that begin
    /// with `BINDPOST_APP__`, which override it.
    ///
    /// ```
    /// use bindpost::Options;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct ShopSettings {
    ///     database: String,
    ///     #[serde(default)]
    ///     read_only: bool,
    /// }
    ///
    /// # fn main() -> Result<(), bindpost::OptionsError> {
    /// let file = r#"
    ///     page_size = 50
    ///
    ///     [app]
    ///     database = "postgres://localhost/shop"
    /// "#;
    /// let options = Options::new("shop", "1.0.0")
    ///     .load_toml("shop.toml", file)?
    ///     .load_variables([("BINDPOST_APP__READ_ONLY", "true")])?;
    /// let settings: ShopSettings = options.app()?;
    /// assert_eq!(settings.database, "postgres://localhost/shop");
    /// assert!(settings.read_only);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// `BINDPOST_APP__POOL__SIZE` is `size` in `[app.pool]`. The type of the member decides how the text of a
    /// variable is read. A list is `one, two`, and an empty text is `None`. Keys that the type does not have
    /// are errors, as they are for all options.
    pub fn app<T: DeserializeOwned>(&self) -> Result<T, OptionsError> {
        reader::read(&self.app)
    }

    /// Sets a variable that begins with `BINDPOST_APP__`. `name` is the rest of its name.
    pub(super) fn set_app_variable(&mut self, name: &str, text: &str) -> Option<OptionMistake> {
        let place = OptionSource::Variable(format!("{PREFIX}APP__{name}"));
        let name = name.to_lowercase();
        let path: Vec<&str> = name.split("__").collect();
        if path.iter().any(|part| part.is_empty()) {
            return Some(OptionMistake::about(APP, place, "names no key; write the key after `APP__`"));
        }
        self.app.set(&path, AppValue { place, data: AppData::Variable(text.to_owned()) });
        None
    }
}
