//! Parses and checks the JSON definition of an indexer.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value};

use super::parse::ParseOptions;
use crate::ApiError;

/// A parsed and valid indexer definition.
#[derive(Debug, Clone)]
pub struct IndexerDefinition {
    pub name: String,
    pub data_source: String,
    pub skillset: Option<String>,
    pub target_index: String,
    pub disabled: bool,
    pub schedule: Option<IndexingSchedule>,
    pub batch_size: usize,
    /// `None` if the number of failed items is not limited.
    pub max_failed_items: Option<u64>,
    pub max_failed_items_per_batch: Option<u64>,
    pub parsing: ParseOptions,
    pub field_mappings: Vec<FieldMapping>,
    pub output_field_mappings: Vec<FieldMapping>,
}

/// When an indexer runs automatically.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexingSchedule {
    pub interval: TimeDelta,
    pub start: Option<DateTime<Utc>>,
}

/// Maps a member of the source to a field of the index.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldMapping {
    pub source: String,
    pub target: String,
    pub function: Option<MappingFunction>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MappingFunction {
    pub name: String,
    pub parameters: Map<String, Value>,
}

/// The maximum number of documents in one request.
const LARGEST_BATCH: i64 = 1_000;

impl IndexerDefinition {
    pub fn parse(json: &Value) -> Result<Self, ApiError> {
        let json = json.as_object().ok_or_else(|| ApiError::invalid("An indexer must be a JSON object."))?;
        let nothing = Map::new();
        let parameters = object(json, "parameters", "indexer")?.unwrap_or(&nothing);
        let configuration = object(parameters, "configuration", "parameters")?.unwrap_or(&nothing);
        let batch_size = match integer(parameters, "batchSize")? {
            None => 1_000,
            Some(size @ 1..=LARGEST_BATCH) => usize::try_from(size).unwrap_or(1_000),
            Some(size) => {
                return Err(ApiError::invalid(format!(
                    "'batchSize' is {size}; it must be between 1 and {LARGEST_BATCH}."
                )));
            }
        };
        Ok(Self {
            name: required(json, "name", "indexer")?.to_owned(),
            data_source: required(json, "dataSourceName", "indexer")?.to_owned(),
            skillset: text(json, "skillsetName")?.filter(|name| !name.is_empty()).map(str::to_owned),
            target_index: required(json, "targetIndexName", "indexer")?.to_owned(),
            disabled: boolean(json, "disabled")?.unwrap_or(false),
            schedule: object(json, "schedule", "indexer")?.map(schedule).transpose()?,
            batch_size,
            max_failed_items: most_failures(parameters, "maxFailedItems")?,
            max_failed_items_per_batch: most_failures(parameters, "maxFailedItemsPerBatch")?,
            parsing: ParseOptions::parse(configuration)?,
            field_mappings: mappings(json, "fieldMappings")?,
            output_field_mappings: mappings(json, "outputFieldMappings")?,
        })
    }
}

fn schedule(json: &Map<String, Value>) -> Result<IndexingSchedule, ApiError> {
    let interval = required(json, "interval", "schedule")?;
    let span = parse_duration(interval).ok_or_else(|| {
        ApiError::invalid(format!("The schedule's interval '{interval}' is not a duration such as 'PT2H'."))
    })?;
    if span < TimeDelta::minutes(5) || span > TimeDelta::days(1) {
        return Err(ApiError::invalid(format!(
            "The schedule's interval '{interval}' must be at least 'PT5M' and at most 'P1D'."
        )));
    }
    let start = match text(json, "startTime")? {
        None => None,
        Some(start) => Some(start.parse::<DateTime<Utc>>().map_err(|_| {
            ApiError::invalid(format!(
                "The schedule's startTime '{start}' is not a time such as '2024-01-31T08:00:00Z'."
            ))
        })?),
    };
    Ok(IndexingSchedule { interval: span, start })
}

/// Parses `P1DT2H3M4S`. Months and years have no fixed length and are rejected.
pub fn parse_duration(text: &str) -> Option<TimeDelta> {
    let mut rest = text.strip_prefix('P')?;
    let mut total = TimeDelta::zero();
    let mut in_time = false;
    let mut parts = 0;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T') {
            if in_time {
                return None;
            }
            (in_time, rest) = (true, after);
            continue;
        }
        let digits = rest.find(|character: char| !character.is_ascii_digit())?;
        let number: i64 = rest.get(..digits)?.parse().ok()?;
        let unit = rest.get(digits..)?.chars().next()?;
        let span = match (in_time, unit) {
            (false, 'D') => TimeDelta::try_days(number),
            (true, 'H') => TimeDelta::try_hours(number),
            (true, 'M') => TimeDelta::try_minutes(number),
            (true, 'S') => TimeDelta::try_seconds(number),
            _ => None,
        }?;
        total = total.checked_add(&span)?;
        rest = rest.get(digits + unit.len_utf8()..)?;
        parts += 1;
    }
    (parts > 0).then_some(total)
}

fn most_failures(json: &Map<String, Value>, name: &str) -> Result<Option<u64>, ApiError> {
    match integer(json, name)?.unwrap_or(0) {
        -1 => Ok(None),
        number => u64::try_from(number).map(Some).map_err(|_| {
            ApiError::invalid(format!("'{name}' is {number}; it must be -1 (no limit), 0 or more."))
        }),
    }
}

fn mappings(json: &Map<String, Value>, name: &str) -> Result<Vec<FieldMapping>, ApiError> {
    let list = match json.get(name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(ApiError::invalid(format!("'{name}' must be an array."))),
    };
    list.iter()
        .map(|entry| {
            let entry = entry
                .as_object()
                .ok_or_else(|| ApiError::invalid(format!("Each entry of '{name}' must be an object.")))?;
            let source = required(entry, "sourceFieldName", name)?;
            let target = match text(entry, "targetFieldName")? {
                Some(target) if !target.is_empty() => target,
                _ => source.rsplit('/').next().unwrap_or(source),
            };
            let function = match object(entry, "mappingFunction", name)? {
                None => None,
                Some(function) => Some(MappingFunction {
                    name: required(function, "name", "mappingFunction")?.to_owned(),
                    parameters: object(function, "parameters", "mappingFunction")?
                        .cloned()
                        .unwrap_or_default(),
                }),
            };
            Ok(FieldMapping { source: source.to_owned(), target: target.to_owned(), function })
        })
        .collect()
}

/// Returns a required member, which must be a string that is not empty.
pub(super) fn required<'a>(
    json: &'a Map<String, Value>,
    name: &str,
    owner: &str,
) -> Result<&'a str, ApiError> {
    text(json, name)?
        .filter(|text| !text.is_empty())
        .ok_or_else(|| ApiError::invalid(format!("The required property '{name}' is missing in '{owner}'.")))
}

pub(super) fn text<'a>(json: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, ApiError> {
    match json.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(ApiError::invalid(format!("'{name}' must be a string."))),
    }
}

pub(super) fn boolean(json: &Map<String, Value>, name: &str) -> Result<Option<bool>, ApiError> {
    match json.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(value)) => Ok(Some(*value)),
        Some(_) => Err(ApiError::invalid(format!("'{name}' must be true or false."))),
    }
}

pub(super) fn integer(json: &Map<String, Value>, name: &str) -> Result<Option<i64>, ApiError> {
    match json.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_i64()
            .map(Some)
            .ok_or_else(|| ApiError::invalid(format!("'{name}' must be a whole number."))),
    }
}

pub(super) fn object<'a>(
    json: &'a Map<String, Value>,
    name: &str,
    owner: &str,
) -> Result<Option<&'a Map<String, Value>>, ApiError> {
    match json.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(_) => Err(ApiError::invalid(format!("'{name}' in '{owner}' must be an object."))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(extra: Value) -> Result<IndexerDefinition, ApiError> {
        let mut json = json!({"name": "i", "dataSourceName": "d", "targetIndexName": "x"});
        for (name, value) in extra.as_object().unwrap() {
            json[name] = value.clone();
        }
        IndexerDefinition::parse(&json)
    }

    #[test]
    fn fills_in_defaults() {
        let indexer = read(json!({})).unwrap();
        assert_eq!((indexer.batch_size, indexer.max_failed_items, indexer.disabled), (1_000, Some(0), false));
        assert!(indexer.schedule.is_none());
    }

    #[test]
    fn parses_durations_and_rejects_other_text() {
        assert_eq!(parse_duration("P1D"), Some(TimeDelta::days(1)));
        assert_eq!(parse_duration("PT1H30M"), Some(TimeDelta::minutes(90)));
        for wrong in ["", "P", "PT", "1D", "P1M", "PT5", "PT-5M", "PTT5M", "P99999999999999999999D"] {
            assert_eq!(parse_duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn rejects_intervals_out_of_range() {
        for (interval, fine) in [("PT5M", true), ("P1D", true), ("PT4M", false), ("P2D", false)] {
            assert_eq!(read(json!({"schedule": {"interval": interval}})).is_ok(), fine, "{interval}");
        }
    }

    #[test]
    fn rejects_wrong_types_with_their_names() {
        for (extra, named) in [
            (json!({"parameters": 3}), "parameters"),
            (json!({"parameters": {"batchSize": 0}}), "batchSize"),
            (json!({"parameters": {"maxFailedItems": -2}}), "maxFailedItems"),
            (json!({"fieldMappings": {}}), "fieldMappings"),
            (json!({"fieldMappings": [{}]}), "sourceFieldName"),
            (json!({"disabled": "yes"}), "disabled"),
            (json!({"name": ""}), "name"),
        ] {
            assert!(read(extra).unwrap_err().message.contains(named), "{named}");
        }
    }
}
