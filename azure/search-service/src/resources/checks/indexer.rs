//! Data sources and indexers.

use std::time::Duration;

use crate::ApiError;
use crate::resources::{Kind, Resources, duration};

use super::place::Place;

const TYPES: [&str; 9] = [
    "azureblob",
    "adlsgen2",
    "azurefile",
    "azuresql",
    "azuretable",
    "cosmosdb",
    "mysql",
    "onelake",
    "sharepoint",
];

const SHORTEST_INTERVAL: Duration = Duration::from_secs(5 * 60);
const LONGEST_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn data_source(top: &Place<'_>) -> Result<(), ApiError> {
    top.required("type")?.one_of(&TYPES)?;
    let container = top.required("container")?;
    container.object()?;
    container.required("name")?.some_text()?;
    if let Some(query) = container.optional("query") {
        query.text()?;
    }
    let credentials = top.required("credentials")?;
    credentials.object()?;
    if let Some(connection) = credentials.optional("connectionString") {
        connection.some_text()?;
    }
    for policy in ["dataChangeDetectionPolicy", "dataDeletionDetectionPolicy"] {
        if let Some(policy) = top.optional(policy) {
            policy.required("@odata.type")?.some_text()?;
        }
    }
    Ok(())
}

pub(super) fn indexer(top: &Place<'_>, all: &Resources) -> Result<(), ApiError> {
    top.required("dataSourceName")?.names(Kind::DataSource, all)?;
    // An alias does not do: the service writes to one index and must know it.
    top.required("targetIndexName")?.names(Kind::Index, all)?;
    if let Some(skillset) = top.optional("skillsetName").filter(|place| place.value != "") {
        skillset.names(Kind::Skillset, all)?;
    }
    if let Some(schedule) = top.optional("schedule") {
        check_schedule(&schedule)?;
    }
    if let Some(parameters) = top.optional("parameters") {
        check_parameters(&parameters)?;
    }
    if let Some(disabled) = top.optional("disabled") {
        disabled.boolean()?;
    }
    for mappings in ["fieldMappings", "outputFieldMappings"] {
        let Some(mappings) = top.optional(mappings) else { continue };
        for mapping in mappings.elements()? {
            mapping.object()?;
            mapping.required("sourceFieldName")?.some_text()?;
            if let Some(target) = mapping.optional("targetFieldName") {
                target.some_text()?;
            }
            if let Some(function) = mapping.optional("mappingFunction") {
                function.required("name")?.some_text()?;
            }
        }
    }
    Ok(())
}

fn check_schedule(schedule: &Place<'_>) -> Result<(), ApiError> {
    schedule.object()?;
    let interval = schedule.required("interval")?;
    let parsed = duration::parse(interval.text()?);
    if !parsed.is_some_and(|parsed| (SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(&parsed)) {
        return Err(interval.wrong("must be an ISO 8601 duration from PT5M to P1D, such as PT15M or PT2H"));
    }
    if let Some(start) = schedule.optional("startTime")
        && chrono::DateTime::parse_from_rfc3339(start.text()?).is_err()
    {
        return Err(start.wrong("must be a date with time and zone, such as 2026-01-31T04:00:00Z"));
    }
    Ok(())
}

fn check_parameters(parameters: &Place<'_>) -> Result<(), ApiError> {
    parameters.object()?;
    if let Some(size) = parameters.optional("batchSize") {
        size.integer(1, 1000)?;
    }
    for member in ["maxFailedItems", "maxFailedItemsPerBatch"] {
        if let Some(number) = parameters.optional(member) {
            number.integer(-1, i64::MAX)?;
        }
    }
    match parameters.optional("configuration") {
        Some(configuration) => configuration.object(),
        None => Ok(()),
    }
}
