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

/// The values of a field: exactly one, at most one, or a list.
pub(super) trait FieldValues<T> {
    const SHAPE: FieldShape;
    fn values(&self) -> &[T];
    fn replace(&mut self, values: Vec<T>);
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldShape {
    One,
    Optional,
    List,
}

impl<T> FieldValues<T> for T {
    const SHAPE: FieldShape = FieldShape::One;
    fn values(&self) -> &[T] {
        std::slice::from_ref(self)
    }
    fn replace(&mut self, values: Vec<T>) {
        if let Some(value) = values.into_iter().next() {
            *self = value;
        }
    }
}

impl<T> FieldValues<T> for Option<T> {
    const SHAPE: FieldShape = FieldShape::Optional;
    fn values(&self) -> &[T] {
        self.as_slice()
    }
    fn replace(&mut self, values: Vec<T>) {
        *self = values.into_iter().next();
    }
}

impl<T> FieldValues<T> for Vec<T> {
    const SHAPE: FieldShape = FieldShape::List;
    fn values(&self) -> &[T] {
        self
    }
    fn replace(&mut self, values: Vec<T>) {
        *self = values;
    }
}

/// Returns the slot of a field.
pub(super) fn slot<'a, T: 'a, V: FieldValues<T>>(
    field: &'a mut V,
    format: ValueFormat<T>,
) -> Box<dyn OptionSlot + 'a> {
    Box::new(FieldSlot { field, format })
}

struct FieldSlot<'a, V, T> {
    field: &'a mut V,
    format: ValueFormat<T>,
}

impl<T, V: FieldValues<T>> FieldSlot<'_, V, T> {
    fn values(&self) -> &[T] {
        <V as FieldValues<T>>::values(self.field)
    }

    /// Returns what one value can be.
    fn expects_value(&self) -> String {
        match (V::SHAPE, self.format.none) {
            (FieldShape::Optional, none) if !none.is_empty() => format!("{}, or {none}", self.format.expects),
            _ => self.format.expects.clone(),
        }
    }

    /// Returns what the whole field can be.
    fn expects_field(&self) -> String {
        let list = if self.format.least > 0 { "a list of one or more" } else { "a list" };
        match V::SHAPE {
            FieldShape::List => format!("{list}, each {}", self.format.expects),
            _ => self.expects_value(),
        }
    }

    fn invalid(&self, given: &LocatedValue<'_>, number: Option<usize>, expects: String) -> InvalidValue {
        let shown = if self.format.is_secret { None } else { given.value.display_text() };
        InvalidValue { line: given.line, number, shown, expects }
    }

    fn too_short(&self, line: usize) -> InvalidValue {
        let shown = Some("an empty list".to_owned());
        InvalidValue { line, number: None, shown, expects: self.expects_field() }
    }

    fn read_list(&self, items: &[LocatedValue<'_>], line: usize) -> Result<Vec<T>, Vec<InvalidValue>> {
        if items.len() < self.format.least {
            return Err(vec![self.too_short(line)]);
        }
        let (mut values, mut wrongs) = (Vec::with_capacity(items.len()), Vec::new());
        for (number, item) in (1..).zip(items) {
            match self.format.read(&item.value) {
                Some(value) => values.push(value),
                None => wrongs.push(self.invalid(item, Some(number), self.expects_value())),
            }
        }
        if wrongs.is_empty() { Ok(values) } else { Err(wrongs) }
    }
}

impl<T, V: FieldValues<T>> OptionSlot for FieldSlot<'_, V, T> {
    fn set(&mut self, given: &LocatedValue<'_>) -> Result<(), Vec<InvalidValue>> {
        let invalid = || vec![self.invalid(given, None, self.expects_field())];
        let values = match (V::SHAPE, &given.value) {
            (FieldShape::List, OptionValue::List(items)) => self.read_list(items, given.line)?,
            (FieldShape::List, OptionValue::Plain(text)) => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                let items =
                    items.map(|item| LocatedValue { value: OptionValue::Plain(item), line: given.line });
                self.read_list(&items.collect::<Vec<_>>(), given.line)?
            }
            (FieldShape::List, _) => return Err(invalid()),
            (FieldShape::Optional, value) if value.is_none_text(self.format.none) => Vec::new(),
            (_, value) => vec![self.format.read(value).ok_or_else(invalid)?],
        };
        <V as FieldValues<T>>::replace(self.field, values);
        Ok(())
    }

    fn check(&self) -> Vec<InvalidValue> {
        let values = self.values();
        if V::SHAPE == FieldShape::List && values.len() < self.format.least {
            return vec![self.too_short(0)];
        }
        let wrongs = (1..).zip(values).filter(|(_, value)| !self.format.is_valid(value));
        let describe = |(number, value)| InvalidValue {
            line: 0,
            number: (V::SHAPE == FieldShape::List).then_some(number),
            shown: (!self.format.is_secret).then(|| self.format.to_toml(value)),
            expects: self.expects_value(),
        };
        wrongs.map(describe).collect()
    }

    fn to_toml(&self) -> String {
        let values: Vec<String> = self.values().iter().map(|value| self.format.to_toml(value)).collect();
        match V::SHAPE {
            FieldShape::List => format!("[{}]", values.join(", ")),
            FieldShape::Optional if values.is_empty() => format!("\"{}\"", self.format.none),
            _ => values.concat(),
        }
    }

    fn kind(&self) -> String {
        let ValueFormat { kind, none, .. } = &self.format;
        match V::SHAPE {
            FieldShape::List => format!("list: {kind}"),
            FieldShape::Optional if !none.is_empty() => format!("{kind} or `{none}`"),
            _ => kind.clone(),
        }
    }
}
