//! Slots: the fields of the options, each with the format of its values.

use super::form::{LocatedValue, OptionValue, ValueFormat};

/// A field that can be set.
pub(super) trait OptionSlot {
    /// Sets the value. Returns all errors and keeps the old value if the new one is invalid.
    fn set(&mut self, given: &LocatedValue<'_>) -> Result<(), Vec<InvalidValue>>;
    /// Returns the errors in the current value.
    fn check(&self) -> Vec<InvalidValue>;
    /// Returns the value in TOML.
    fn to_toml(&self) -> String;
    /// Returns the type of the values.
    fn kind(&self) -> String;
}

/// An invalid value.
pub(super) struct InvalidValue {
    /// The line of the value, or 0.
    pub(super) line: usize,
    /// The position of the value in a list, if it is in one.
    pub(super) number: Option<usize>,
    /// The value, unless it may be secret.
    pub(super) shown: Option<String>,
    /// The expected value, as the end of a sentence.
    pub(super) expects: String,
}

/// Returns a slot for one value.
pub(super) fn one<'a, T, F: ValueFormat<T> + 'a>(place: &'a mut T, form: F) -> Box<dyn OptionSlot + 'a> {
    Box::new(SingleSlot { place, form })
}

/// Returns a slot for an optional value.
pub(super) fn maybe<'a, T, F: ValueFormat<T> + 'a>(
    place: &'a mut Option<T>,
    form: F,
) -> Box<dyn OptionSlot + 'a> {
    Box::new(OptionalSlot { place, form })
}

/// Returns a slot for a list of any length.
pub(super) fn list<'a, T, F: ValueFormat<T> + 'a>(
    place: &'a mut Vec<T>,
    form: F,
) -> Box<dyn OptionSlot + 'a> {
    Box::new(ListSlot { place, form, least: 0 })
}

/// Returns a slot for a list with at least one value.
pub(super) fn some<'a, T, F: ValueFormat<T> + 'a>(
    place: &'a mut Vec<T>,
    form: F,
) -> Box<dyn OptionSlot + 'a> {
    Box::new(ListSlot { place, form, least: 1 })
}

struct SingleSlot<'a, T, F> {
    place: &'a mut T,
    form: F,
}

struct OptionalSlot<'a, T, F> {
    place: &'a mut Option<T>,
    form: F,
}

struct ListSlot<'a, T, F> {
    place: &'a mut Vec<T>,
    form: F,
    least: usize,
}

impl<T, F: ValueFormat<T>> OptionSlot for SingleSlot<'_, T, F> {
    fn set(&mut self, given: &LocatedValue<'_>) -> Result<(), Vec<InvalidValue>> {
        let value = read(&self.form, &given.value);
        *self.place = value.ok_or_else(|| vec![wrong(&self.form, given, self.form.expects())])?;
        Ok(())
    }

    fn check(&self) -> Vec<InvalidValue> {
        check(&self.form, self.place, self.form.expects()).into_iter().collect()
    }

    fn to_toml(&self) -> String {
        self.form.to_toml(self.place)
    }

    fn kind(&self) -> String {
        self.form.kind()
    }
}

impl<T, F: ValueFormat<T>> OptionalSlot<'_, T, F> {
    fn expects(&self) -> String {
        match self.form.none() {
            "" => self.form.expects(),
            none => format!("{}, or {none}", self.form.expects()),
        }
    }
}

impl<T, F: ValueFormat<T>> OptionSlot for OptionalSlot<'_, T, F> {
    fn set(&mut self, given: &LocatedValue<'_>) -> Result<(), Vec<InvalidValue>> {
        if given.value.is_none_text(self.form.none()) {
            *self.place = None;
            return Ok(());
        }
        let value = read(&self.form, &given.value);
        *self.place = Some(value.ok_or_else(|| vec![wrong(&self.form, given, self.expects())])?);
        Ok(())
    }

    fn check(&self) -> Vec<InvalidValue> {
        self.place.iter().filter_map(|value| check(&self.form, value, self.expects())).collect()
    }

    fn to_toml(&self) -> String {
        match self.place.as_ref() {
            Some(value) => self.form.to_toml(value),
            None => format!("\"{}\"", self.form.none()),
        }
    }

    fn kind(&self) -> String {
        match self.form.none() {
            "" => self.form.kind(),
            none => format!("{} or `{none}`", self.form.kind()),
        }
    }
}

impl<T, F: ValueFormat<T>> ListSlot<'_, T, F> {
    fn expects(&self) -> String {
        let least = if self.least > 0 { "a list of one or more" } else { "a list" };
        format!("{least}, each {}", self.form.expects())
    }

    fn too_short(&self, line: usize) -> InvalidValue {
        InvalidValue { line, number: None, shown: Some("an empty list".to_owned()), expects: self.expects() }
    }
}

impl<T, F: ValueFormat<T>> OptionSlot for ListSlot<'_, T, F> {
    fn set(&mut self, given: &LocatedValue<'_>) -> Result<(), Vec<InvalidValue>> {
        let split;
        let items: &[LocatedValue<'_>] = match &given.value {
            OptionValue::List(items) => items,
            OptionValue::Plain(text) => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                split = items
                    .map(|item| LocatedValue { value: OptionValue::Plain(item), line: given.line })
                    .collect::<Vec<_>>();
                &split
            }
            _ => return Err(vec![wrong(&self.form, given, self.expects())]),
        };
        if items.len() < self.least {
            return Err(vec![self.too_short(given.line)]);
        }
        let (mut values, mut wrongs) = (Vec::with_capacity(items.len()), Vec::new());
        for (number, item) in (1..).zip(items) {
            match read(&self.form, &item.value) {
                Some(value) => values.push(value),
                None => {
                    let wrong = wrong(&self.form, item, self.form.expects());
                    wrongs.push(InvalidValue { number: Some(number), ..wrong });
                }
            }
        }
        if !wrongs.is_empty() {
            return Err(wrongs);
        }
        *self.place = values;
        Ok(())
    }

    fn check(&self) -> Vec<InvalidValue> {
        if self.place.len() < self.least {
            return vec![self.too_short(0)];
        }
        let items = (1..).zip(self.place.iter());
        let wrong = |(number, item)| {
            let wrong = check(&self.form, item, self.form.expects())?;
            Some(InvalidValue { number: Some(number), ..wrong })
        };
        items.filter_map(wrong).collect()
    }

    fn to_toml(&self) -> String {
        let items: Vec<String> = self.place.iter().map(|item| self.form.to_toml(item)).collect();
        format!("[{}]", items.join(", "))
    }

    fn kind(&self) -> String {
        format!("list: {}", self.form.kind())
    }
}

fn read<T>(form: &impl ValueFormat<T>, value: &OptionValue<'_>) -> Option<T> {
    form.read(value).filter(|value| form.is_valid(value))
}

fn wrong<T>(form: &impl ValueFormat<T>, given: &LocatedValue<'_>, expects: String) -> InvalidValue {
    let shown = if form.is_secret() { None } else { given.value.display_text() };
    InvalidValue { line: given.line, number: None, shown, expects }
}

fn check<T>(form: &impl ValueFormat<T>, value: &T, expects: String) -> Option<InvalidValue> {
    if form.is_valid(value) {
        return None;
    }
    let shown = (!form.is_secret()).then(|| form.to_toml(value));
    Some(InvalidValue { line: 0, number: None, shown, expects })
}
