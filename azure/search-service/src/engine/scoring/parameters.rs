//! Parses `scoringParameters`, the arguments of scoring functions, as `name-value,value`.

use std::collections::HashMap;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::odata::ast::GeoPoint;

/// Values by name. A value with commas or quotes is written in single quotes, and quotes within it
/// are doubled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScoringParameters {
    values: HashMap<String, Vec<String>>,
}

impl ScoringParameters {
    pub(crate) fn parse<S: AsRef<str>>(parameters: &[S]) -> Result<Self, ApiError> {
        let mut values = HashMap::new();
        for parameter in parameters.iter().map(AsRef::as_ref) {
            let Some((name, list)) = parameter.split_once('-').filter(|(name, _)| !name.is_empty()) else {
                return Err(refused(format!("'{parameter}' must look like name-value1,value2")));
            };
            let list = split(list).map_err(|reason| refused(format!("'{parameter}' {reason}")))?;
            if values.insert(name.to_owned(), list).is_some() {
                return Err(refused(format!("'{name}' is specified twice")));
            }
        }
        Ok(Self { values })
    }

    /// Returns a parameter as a point of longitude and latitude, in this order.
    pub(super) fn point(&self, name: &str) -> Result<GeoPoint, ApiError> {
        let numbers: Option<Vec<f64>> = self.get(name)?.iter().map(|text| text.trim().parse().ok()).collect();
        match numbers.as_deref() {
            Some([longitude, latitude])
                if (-180.0..=180.0).contains(longitude) && (-90.0..=90.0).contains(latitude) =>
            {
                Ok(GeoPoint { longitude: *longitude, latitude: *latitude })
            }
            _ => {
                Err(refused(format!("'{name}' must be a longitude and a latitude, like {name}--122.2,44.8")))
            }
        }
    }

    /// Returns the tags of a parameter without duplicates.
    pub(super) fn tags(&self, name: &str) -> Result<Vec<String>, ApiError> {
        let mut tags = self.get(name)?.to_vec();
        tags.sort();
        tags.dedup();
        Ok(tags)
    }

    fn get(&self, name: &str) -> Result<&[String], ApiError> {
        let missing = || refused(format!("the scoring profile needs a parameter '{name}'"));
        self.values.get(name).map(Vec::as_slice).ok_or_else(missing)
    }
}

fn split(list: &str) -> Result<Vec<String>, &'static str> {
    let mut values = Vec::new();
    let mut rest = list;
    loop {
        let value = match rest.trim_start().strip_prefix('\'') {
            Some(quoted) => {
                let (value, after) = unquote(quoted).ok_or("has a quote that is not closed")?;
                rest = after.trim_start();
                value
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let (value, after) = rest.split_at(end);
                rest = after;
                value.to_owned()
            }
        };
        values.push(value);
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None if rest.is_empty() => return Ok(values),
            None => return Err("has text after a closing quote; double the quotes inside of values"),
        }
    }
}

/// Returns the text up to the closing quote, and the text after it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('\'')?;
        value.push_str(part);
        match after.strip_prefix('\'') {
            Some(after) => {
                value.push('\'');
                rest = after;
            }
            None => return Some((value, after)),
        }
    }
}

fn refused(reason: String) -> ApiError {
    ApiError::parameter("scoringParameters", format!("Invalid scoring parameters: {reason}."))
}
