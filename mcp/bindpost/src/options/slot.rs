//! Where a value goes: a field of the options, with the form its values have.

use super::form::{Form, Given, Value};

/// A field that can be set.
pub(super) trait Slot {
    /// Takes a value, or says all that is wrong with it and stays as it is.
    fn set(&mut self, given: &Given<'_>) -> Result<(), Vec<Wrong>>;
    /// What is wrong with the value it has.
    fn check(&self) -> Vec<Wrong>;
    /// Its value as TOML spells it.
    fn show(&self) -> String;
    /// The kind of its values.
    fn kind(&self) -> String;
}

/// A value that does not fit.
pub(super) struct Wrong {
    /// Where it is, if it has a line.
    pub(super) line: usize,
    /// Its number, if it is one of a list.
    pub(super) number: Option<usize>,
    /// The value, if it may be repeated.
    pub(super) shown: Option<String>,
    /// What would be right.
    pub(super) expects: String,
}

/// One value.
pub(super) fn one<'a, T, F: Form<T> + 'a>(place: &'a mut T, form: F) -> Box<dyn Slot + 'a> {
    Box::new(One { place, form })
}

/// One value, or none.
pub(super) fn maybe<'a, T, F: Form<T> + 'a>(place: &'a mut Option<T>, form: F) -> Box<dyn Slot + 'a> {
    Box::new(Maybe { place, form })
}

/// Any number of values.
pub(super) fn list<'a, T, F: Form<T> + 'a>(place: &'a mut Vec<T>, form: F) -> Box<dyn Slot + 'a> {
    Box::new(List { place, form, least: 0 })
}

/// One value or more.
pub(super) fn some<'a, T, F: Form<T> + 'a>(place: &'a mut Vec<T>, form: F) -> Box<dyn Slot + 'a> {
    Box::new(List { place, form, least: 1 })
}

struct One<'a, T, F> {
    place: &'a mut T,
    form: F,
}

struct Maybe<'a, T, F> {
    place: &'a mut Option<T>,
    form: F,
}

struct List<'a, T, F> {
    place: &'a mut Vec<T>,
    form: F,
    least: usize,
}

impl<T, F: Form<T>> Slot for One<'_, T, F> {
    fn set(&mut self, given: &Given<'_>) -> Result<(), Vec<Wrong>> {
        let value = read(&self.form, &given.value);
        *self.place = value.ok_or_else(|| vec![wrong(&self.form, given, self.form.expects())])?;
        Ok(())
    }

    fn check(&self) -> Vec<Wrong> {
        check(&self.form, self.place, self.form.expects()).into_iter().collect()
    }

    fn show(&self) -> String {
        self.form.show(self.place)
    }

    fn kind(&self) -> String {
        self.form.kind()
    }
}

impl<T, F: Form<T>> Maybe<'_, T, F> {
    fn expects(&self) -> String {
        match self.form.none() {
            "" => self.form.expects(),
            none => format!("{}, or {none}", self.form.expects()),
        }
    }
}

impl<T, F: Form<T>> Slot for Maybe<'_, T, F> {
    fn set(&mut self, given: &Given<'_>) -> Result<(), Vec<Wrong>> {
        if given.value.is(self.form.none()) {
            *self.place = None;
            return Ok(());
        }
        let value = read(&self.form, &given.value);
        *self.place = Some(value.ok_or_else(|| vec![wrong(&self.form, given, self.expects())])?);
        Ok(())
    }

    fn check(&self) -> Vec<Wrong> {
        self.place.iter().filter_map(|value| check(&self.form, value, self.expects())).collect()
    }

    fn show(&self) -> String {
        match self.place.as_ref() {
            Some(value) => self.form.show(value),
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

impl<T, F: Form<T>> List<'_, T, F> {
    fn expects(&self) -> String {
        let least = if self.least > 0 { "a list of one or more" } else { "a list" };
        format!("{least}, each {}", self.form.expects())
    }

    fn too_short(&self, line: usize) -> Wrong {
        Wrong { line, number: None, shown: Some("an empty list".to_owned()), expects: self.expects() }
    }
}

impl<T, F: Form<T>> Slot for List<'_, T, F> {
    fn set(&mut self, given: &Given<'_>) -> Result<(), Vec<Wrong>> {
        let split;
        let items: &[Given<'_>] = match &given.value {
            Value::List(items) => items,
            Value::Plain(text) => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                split = items
                    .map(|item| Given { value: Value::Plain(item), line: given.line })
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
                    wrongs.push(Wrong { number: Some(number), ..wrong });
                }
            }
        }
        if !wrongs.is_empty() {
            return Err(wrongs);
        }
        *self.place = values;
        Ok(())
    }

    fn check(&self) -> Vec<Wrong> {
        if self.place.len() < self.least {
            return vec![self.too_short(0)];
        }
        let items = (1..).zip(self.place.iter());
        let wrong = |(number, item)| {
            let wrong = check(&self.form, item, self.form.expects())?;
            Some(Wrong { number: Some(number), ..wrong })
        };
        items.filter_map(wrong).collect()
    }

    fn show(&self) -> String {
        let items: Vec<String> = self.place.iter().map(|item| self.form.show(item)).collect();
        format!("[{}]", items.join(", "))
    }

    fn kind(&self) -> String {
        format!("list: {}", self.form.kind())
    }
}

fn read<T>(form: &impl Form<T>, value: &Value<'_>) -> Option<T> {
    form.read(value).filter(|value| form.fits(value))
}

fn wrong<T>(form: &impl Form<T>, given: &Given<'_>, expects: String) -> Wrong {
    let shown = if form.is_secret() { None } else { given.value.shown() };
    Wrong { line: given.line, number: None, shown, expects }
}

fn check<T>(form: &impl Form<T>, value: &T, expects: String) -> Option<Wrong> {
    if form.fits(value) {
        return None;
    }
    let shown = (!form.is_secret()).then(|| form.show(value));
    Some(Wrong { line: 0, number: None, shown, expects })
}
