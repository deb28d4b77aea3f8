//! Parses and checks the JSON definition of an indexer.

use bindpost_azure_search_model::ApiError;
use bindpost_net_json::{JsonPlace, ObjectReader};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::mapping::MappingTransform;
use super::parse::ParseOptions;

/// An object of the definition of an indexer, a data source or a skillset.
pub(super) type IndexerObject<'a> = ObjectReader<'a, ApiError>;

/// A parsed and valid indexer definition.
#[derive(Debug, Clone)]
pub(crate) struct IndexerDefinition {
    pub name: String,
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
pub(crate) struct IndexingSchedule {
    pub interval: TimeDelta,
    pub start: Option<DateTime<Utc>>,
}

/// Maps a member of the source to a field of the index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldMapping {
    pub source: String,
    pub target: String,
    pub function: Option<MappingTransform>,
}

/// The maximum number of documents in one request.
const LARGEST_BATCH: usize = 1_000;

impl IndexerDefinition {
    pub(crate) fn parse(json: &Value) -> Result<Self, ApiError> {
        let given = IndexerObject::new(json, JsonPlace::of("the indexer"))?;
        let name = given.required_text("name")?.to_owned();
        // The references are checked where definitions are stored. Here only their types matter.
        given.required_text("dataSourceName")?;
        given.text("skillsetName")?;
        let parameters = given.object_or_empty("parameters")?;
        parameters.allow_only(&["batchSize", "maxFailedItems", "maxFailedItemsPerBatch", "configuration"])?;
        Ok(Self {
            name,
            target_index: given.required_text("targetIndexName")?.to_owned(),
            disabled: given.boolean("disabled")?.unwrap_or(false),
            schedule: given.object("schedule")?.map(|given| schedule(&given)).transpose()?,
            batch_size: parameters.integer_in("batchSize", 1..=LARGEST_BATCH)?.unwrap_or(LARGEST_BATCH),
            max_failed_items: most_failures(&parameters, "maxFailedItems")?,
            max_failed_items_per_batch: most_failures(&parameters, "maxFailedItemsPerBatch")?,
            parsing: ParseOptions::parse(&parameters.object_or_empty("configuration")?)?,
            field_mappings: mappings(&given, "fieldMappings")?,
            output_field_mappings: mappings(&given, "outputFieldMappings")?,
        })
    }
}

fn schedule(given: &IndexerObject<'_>) -> Result<IndexingSchedule, ApiError> {
    given.allow_only(&["interval", "startTime"])?;
    let text = given.required_text("interval")?;
    let interval = parse_duration(text).ok_or_else(|| {
        given.error("interval", format_args!("must be a duration such as 'PT2H', not '{text}'"))
    })?;
    if interval < TimeDelta::minutes(5) || interval > TimeDelta::days(1) {
        let problem = format_args!("must be at least 'PT5M' and at most 'P1D', not '{text}'");
        return Err(given.error("interval", problem));
    }
    let start = given.text("startTime")?.map(|start| {
        start.parse::<DateTime<Utc>>().map_err(|_| {
            let problem = format_args!("must be a time such as '2024-01-31T08:00:00Z', not '{start}'");
            given.error("startTime", problem)
        })
    });
    Ok(IndexingSchedule { interval, start: start.transpose()? })
}

/// Parses `P1DT2H3M4S`. Months and years have no fixed length and are rejected.
pub(crate) fn parse_duration(text: &str) -> Option<TimeDelta> {
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

fn most_failures(given: &IndexerObject<'_>, name: &str) -> Result<Option<u64>, ApiError> {
    match given.integer(name)?.unwrap_or(0) {
        -1 => Ok(None),
        number => u64::try_from(number)
            .map(Some)
            .map_err(|_| given.error(name, format_args!("must be -1 (no limit), 0 or more, not {number}"))),
    }
}

fn mappings(given: &IndexerObject<'_>, name: &str) -> Result<Vec<FieldMapping>, ApiError> {
    let entries = given.objects(name)?.into_iter();
    entries
        .map(|entry| {
            entry.allow_only(&["sourceFieldName", "targetFieldName", "mappingFunction"])?;
            let source = entry.required_text("sourceFieldName")?;
            let target = match entry.text("targetFieldName")? {
                Some(target) if !target.is_empty() => target,
                _ => source.rsplit('/').next().unwrap_or(source),
            };
            let function =
                entry.object("mappingFunction")?.as_ref().map(MappingTransform::parse).transpose()?;
            Ok(FieldMapping { source: source.to_owned(), target: target.to_owned(), function })
        })
        .collect()
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
            (json!({"fieldMappings": [{"sourceFieldName": "a", "target": "b"}]}), "fieldMappings[0].target"),
            (
                json!({"fieldMappings": [{"sourceFieldName": "a", "mappingFunction": {"name": "upper"}}]}),
                "'fieldMappings[0].mappingFunction.name' of the indexer must be one of base64Encode",
            ),
            (
                json!({"outputFieldMappings": [{"sourceFieldName": "/document/a", "mappingFunction":
                    {"name": "extractTokenAtPosition", "parameters": {"delimiter": " "}}}]}),
                "'outputFieldMappings[0].mappingFunction.parameters.position' of the indexer is required",
            ),
            (
                json!({"fieldMappings": [{"sourceFieldName": "a", "mappingFunction":
                    {"name": "urlEncode", "parameters": {"delimiter": " "}}}]}),
                "'fieldMappings[0].mappingFunction.parameters.delimiter' of the indexer is unknown",
            ),
            (json!({"parameters": {"timeout": "PT1H"}}), "'parameters.timeout' of the indexer is unknown"),
            (json!({"schedule": {"interval": "PT1H", "start": "x"}}), "'schedule.start'"),
            (json!({"disabled": "yes"}), "disabled"),
            (json!({"name": ""}), "name"),
        ] {
            assert!(read(extra).unwrap_err().message.contains(named), "{named}");
        }
    }
}
