//! Parses facet expressions such as `price,interval:100` and checks them against the field.

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::{IndexField, IndexSchema, PrimitiveType};
use tantivy::columnar::MonotonicallyMappableToU64;

use super::calendar::{CalendarInterval, CalendarUnit, parse_offset};
use crate::documents::parse_date;

/// One facet of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FacetExpression {
    pub path: String,
    pub primitive: PrimitiveType,
    pub kind: FacetKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FacetKind {
    /// One bucket for each value. A `count` of `None` returns all values.
    Values { count: Option<usize>, sort: FacetSort },
    /// Ranges from `values:10|20`: below the first bound, between the bounds, and from the last bound on.
    /// The bounds are keys of the column, in ascending order.
    Ranges(Vec<u64>),
    /// Numeric intervals, as in `interval:100`.
    Steps(i64),
    /// Calendar intervals, as in `interval:month`.
    Calendar(CalendarInterval),
    /// A metric, as in `metric:sum`. `missing` is the value for documents without one.
    Metric { metric: FacetMetric, missing: Option<f64> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FacetSort {
    /// `count`: the most frequent values first.
    #[default]
    Most,
    /// `-count`: the least frequent values first.
    Fewest,
    /// `value`: ascending values.
    Ascending,
    /// `-value`: descending values.
    Descending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FacetMetric {
    Sum,
    Average,
    Minimum,
    Maximum,
    /// The number of distinct values. This service counts exactly.
    Cardinality,
}

const DEFAULT_COUNT: usize = 10;
/// The maximum number of bounds in `values:10|20`.
const MOST_BOUNDS: usize = 1_000;

impl FacetExpression {
    pub(crate) fn parse(expression: &str, schema: &IndexSchema) -> Result<Self, ApiError> {
        if expression.contains(['>', '(', ';']) {
            return Err(ApiError::not_supported(format!(
                "The facet '{expression}' is nested or has a filter. The embedded service does not support this. \
                 Request each field separately, and put conditions into the filter of the request."
            )));
        }
        let mut parts = expression.split(',');
        let path = parts.next().unwrap_or_default().trim();
        let field = schema.find(path).ok_or_else(|| refused(expression, format!("no field '{path}'")))?;
        let primitive = field
            .kind
            .primitive()
            .filter(|_| field.facetable && field.vector.is_none())
            .ok_or_else(|| refused(expression, format!("the field '{path}' is not facetable")))?;
        let options = FacetOptions::read(expression, parts)?;
        let kind = options.kind(expression, field, primitive)?;
        Ok(Self { path: path.to_owned(), primitive, kind })
    }
}

impl FacetExpression {
    /// Returns whether both expressions need the same counts of their column, regardless of what they show.
    pub(super) fn counts_as(&self, other: &Self) -> bool {
        let counts_values = |kind: &FacetKind| {
            matches!(
                kind,
                FacetKind::Values { .. } | FacetKind::Metric { metric: FacetMetric::Cardinality, .. }
            )
        };
        let sums_up = |kind: &FacetKind| matches!(kind, FacetKind::Metric { .. }) && !counts_values(kind);
        self.path == other.path
            && (self.kind == other.kind
                || counts_values(&self.kind) && counts_values(&other.kind)
                || sums_up(&self.kind) && sums_up(&other.kind))
    }
}

#[derive(Default)]
struct FacetOptions<'a> {
    count: Option<&'a str>,
    sort: Option<&'a str>,
    values: Option<&'a str>,
    interval: Option<&'a str>,
    offset: Option<&'a str>,
    metric: Option<&'a str>,
    missing: Option<&'a str>,
    precision: Option<&'a str>,
}

impl<'a> FacetOptions<'a> {
    fn read(expression: &str, parts: impl Iterator<Item = &'a str>) -> Result<Self, ApiError> {
        let mut options = Self::default();
        for part in parts {
            // Only the first colon separates, because dates and offsets contain colons.
            let Some((name, value)) = part.split_once(':') else {
                return Err(refused(expression, format!("'{}' is not a pair like 'count:5'", part.trim())));
            };
            let (name, value) = (name.trim(), value.trim());
            let slot = match name {
                "count" => &mut options.count,
                "sort" => &mut options.sort,
                "values" => &mut options.values,
                "interval" => &mut options.interval,
                "timeoffset" => &mut options.offset,
                "metric" => &mut options.metric,
                "default" => &mut options.missing,
                "precisionThreshold" => &mut options.precision,
                _ => {
                    let known = "count, sort, values, interval, timeoffset and metric";
                    return Err(refused(expression, format!("'{name}' is not a parameter; use {known}")));
                }
            };
            if slot.replace(value).is_some() {
                return Err(refused(expression, format!("the parameter '{name}' is specified twice")));
            }
        }
        Ok(options)
    }

    fn kind(
        &self,
        expression: &str,
        field: &IndexField,
        primitive: PrimitiveType,
    ) -> Result<FacetKind, ApiError> {
        let plain = self.count.is_some() || self.sort.is_some();
        let chosen = [plain, self.values.is_some(), self.interval.is_some(), self.metric.is_some()];
        if chosen.iter().filter(|given| **given).count() > 1 {
            let reason = "count and sort, values, interval, and metric cannot be combined";
            return Err(refused(expression, reason));
        }
        if self.offset.is_some() && (self.interval.is_none() || primitive != PrimitiveType::DateTimeOffset) {
            return Err(refused(expression, "timeoffset needs an interval on a field of dates"));
        }
        if self.metric.is_none() && (self.missing.is_some() || self.precision.is_some()) {
            return Err(refused(expression, "default and precisionThreshold belong to a metric"));
        }
        match (self.values, self.interval, self.metric) {
            (Some(values), _, _) => ranges(expression, field, primitive, values),
            (_, Some(interval), _) => self.interval(expression, field, primitive, interval),
            (_, _, Some(metric)) => self.metric(expression, field, primitive, metric),
            _ => self.values(expression),
        }
    }

    fn values(&self, expression: &str) -> Result<FacetKind, ApiError> {
        let count = match self.count.map(str::parse::<u32>) {
            None => Some(DEFAULT_COUNT),
            Some(Ok(0)) => None,
            Some(Ok(count)) => Some(usize::try_from(count).unwrap_or(usize::MAX)),
            Some(Err(_)) => return Err(refused(expression, "count must be a whole number from 0")),
        };
        let sort = match self.sort {
            None | Some("count") => FacetSort::Most,
            Some("-count") => FacetSort::Fewest,
            Some("value") => FacetSort::Ascending,
            Some("-value") => FacetSort::Descending,
            Some(other) => {
                let reason = format!("sort must be count, -count, value or -value, not '{other}'");
                return Err(refused(expression, reason));
            }
        };
        Ok(FacetKind::Values { count, sort })
    }

    fn interval(
        &self,
        expression: &str,
        field: &IndexField,
        primitive: PrimitiveType,
        interval: &str,
    ) -> Result<FacetKind, ApiError> {
        match primitive {
            PrimitiveType::Int32 | PrimitiveType::Int64 | PrimitiveType::Double => {
                match interval.parse::<i64>() {
                    Ok(step) if step > 0 => Ok(FacetKind::Steps(step)),
                    _ => Err(refused(expression, "the interval of numbers must be a whole number above 0")),
                }
            }
            PrimitiveType::DateTimeOffset => {
                let unit = match interval {
                    "minute" => CalendarUnit::Minute,
                    "hour" => CalendarUnit::Hour,
                    "day" => CalendarUnit::Day,
                    "week" => CalendarUnit::Week,
                    "month" => CalendarUnit::Month,
                    "quarter" => CalendarUnit::Quarter,
                    "year" => CalendarUnit::Year,
                    _ => {
                        let known = "minute, hour, day, week, month, quarter or year";
                        return Err(refused(expression, format!("the interval of dates must be {known}")));
                    }
                };
                let offset = match self.offset.map(parse_offset) {
                    None => 0,
                    Some(Some(offset)) => offset,
                    Some(None) => return Err(refused(expression, "timeoffset must look like -01:00")),
                };
                Ok(FacetKind::Calendar(CalendarInterval { unit, offset }))
            }
            _ => {
                let reason =
                    format!("'{}' holds neither numbers nor dates, so it has no interval", field.path);
                Err(refused(expression, reason))
            }
        }
    }

    fn metric(
        &self,
        expression: &str,
        field: &IndexField,
        primitive: PrimitiveType,
        metric: &str,
    ) -> Result<FacetKind, ApiError> {
        let metric = match metric {
            "sum" => FacetMetric::Sum,
            "avg" => FacetMetric::Average,
            "min" => FacetMetric::Minimum,
            "max" => FacetMetric::Maximum,
            "cardinality" => FacetMetric::Cardinality,
            _ => return Err(refused(expression, "metric must be sum, avg, min, max or cardinality")),
        };
        let numeric =
            matches!(primitive, PrimitiveType::Int32 | PrimitiveType::Int64 | PrimitiveType::Double);
        if metric != FacetMetric::Cardinality && !numeric {
            let reason = format!("'{}' does not hold numbers; only cardinality works on it", field.path);
            return Err(refused(expression, reason));
        }
        let missing = match self.missing.map(str::parse::<f64>) {
            None => None,
            Some(Ok(value)) if value.is_finite() && metric != FacetMetric::Cardinality => Some(value),
            Some(_) => return Err(refused(expression, "default must be a number, and not with cardinality")),
        };
        Ok(FacetKind::Metric { metric, missing })
    }
}

fn ranges(
    expression: &str,
    field: &IndexField,
    primitive: PrimitiveType,
    values: &str,
) -> Result<FacetKind, ApiError> {
    let key = |text: &str| match primitive {
        PrimitiveType::Int32 | PrimitiveType::Int64 => text.parse::<i64>().ok().map(i64::to_u64),
        PrimitiveType::Double => text.parse::<f64>().ok().filter(|value| value.is_finite()).map(double_key),
        PrimitiveType::DateTimeOffset => parse_date(text).map(i64::to_u64),
        _ => None,
    };
    if matches!(primitive, PrimitiveType::String | PrimitiveType::Boolean) {
        let reason = format!("'{}' holds neither numbers nor dates, so values do not work on it", field.path);
        return Err(refused(expression, reason));
    }
    if values.split('|').count() > MOST_BOUNDS {
        return Err(refused(expression, format!("at most {MOST_BOUNDS} values are allowed")));
    }
    let mut keys = Vec::new();
    for text in values.split('|').map(str::trim) {
        let key = key(text)
            .ok_or_else(|| refused(expression, format!("'{text}' is not a value of '{}'", field.path)))?;
        if keys.last().is_some_and(|last| *last >= key) {
            return Err(refused(expression, format!("values must ascend, and '{text}' does not")));
        }
        keys.push(key);
    }
    Ok(FacetKind::Ranges(keys))
}

/// Returns the key of a double in its column. Minus zero becomes zero, so that both are one value.
pub(super) fn double_key(value: f64) -> u64 {
    if value == 0.0 { 0.0_f64.to_u64() } else { value.to_u64() }
}

fn refused(expression: &str, reason: impl std::fmt::Display) -> ApiError {
    let expression: String = expression.chars().take(200).collect();
    ApiError::parameter("facets", format!("Invalid facet expression '{expression}': {reason}."))
}
