//! Scoring profiles: field weights, and functions of field values.

use bindpost_net_json::JsonPlace;
use serde_json::Value;

use super::field::{FieldType, IndexField, IndexSchema, PrimitiveType};
use super::problem::{DefinitionError, DefinitionObject, invalid_definition, read_element, read_object};
use crate::ApiError;

#[derive(Debug, Clone, PartialEq)]
pub struct ScoringProfile {
    pub name: String,
    /// The paths of searchable fields, and the factors for matches in them.
    pub weights: Vec<(String, f64)>,
    pub functions: Vec<ScoringFunction>,
    pub aggregation: ScoringAggregation,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ScoringFunction {
    /// The path of a filterable field.
    pub field: String,
    /// Greater than zero and not one.
    pub boost: f64,
    pub interpolation: ScoringInterpolation,
    pub kind: ScoringFunctionKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ScoringFunctionKind {
    Magnitude {
        start: f64,
        end: f64,
        /// Whether values beyond `end` get the full boost.
        constant_beyond: bool,
    },
    /// Dates within this time before now are boosted. If negative, dates within this time after now.
    Freshness { duration_ms: i64 },
    /// `parameter` is the query parameter with the reference point.
    Distance { parameter: String, kilometres: f64 },
    /// `parameter` is the query parameter with the tags.
    Tag { parameter: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScoringInterpolation {
    Constant,
    Linear,
    Quadratic,
    Logarithmic,
}

/// How the results of several functions are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScoringAggregation {
    Sum,
    Average,
    Minimum,
    Maximum,
    FirstMatching,
}

/// The members of a function.
const FUNCTION: [&str; 8] =
    ["type", "fieldName", "boost", "interpolation", "magnitude", "freshness", "distance", "tag"];

impl ScoringProfile {
    /// `at` is the position of the profile, for errors about its name.
    pub(super) fn parse(json: &Value, at: usize, schema: &IndexSchema) -> Result<Self, ApiError> {
        let name = read_element(json, "the index", "scoringProfiles", at)?.required_text("name")?;
        let place = format!("scoring profile '{name}'");
        let profile = read_object(json, &place)?;
        profile.allow_only(&["name", "text", "functions", "functionAggregation"])?;
        let text = profile.object_or_empty("text")?;
        text.allow_only(&["weights"])?;
        let mut weights = Vec::new();
        if let Some(given) = text.object("weights")? {
            for path in given.members().keys() {
                let weight = given.required_number(path)?;
                weights.push((path.clone(), check_weight(given.place(), path, weight, schema)?));
            }
        }
        let mut functions = Vec::new();
        for (at, function) in profile.list("functions")?.iter().enumerate() {
            functions.push(ScoringFunction::parse(function, at, &place, schema)?);
        }
        let aggregation = profile.choice(
            "functionAggregation",
            &[
                ("sum", ScoringAggregation::Sum),
                ("average", ScoringAggregation::Average),
                ("minimum", ScoringAggregation::Minimum),
                ("maximum", ScoringAggregation::Maximum),
                ("firstMatching", ScoringAggregation::FirstMatching),
            ],
        )?;
        let aggregation = aggregation.unwrap_or(ScoringAggregation::Sum);
        Ok(Self { name: name.to_owned(), weights, functions, aggregation })
    }
}

impl ScoringFunction {
    fn parse(json: &Value, at: usize, profile: &str, schema: &IndexSchema) -> Result<Self, ApiError> {
        let path = read_element(json, profile, "functions", at)?.required_text("fieldName")?;
        let place = format!("the function on field '{path}' of {profile}");
        let function = read_object(json, &place)?;
        function.allow_only(&FUNCTION)?;
        let field = schema
            .find(path)
            .ok_or_else(|| invalid_definition(format!("{place}: the index has no field '{path}'.")))?;
        let boost = function.required_number("boost")?;
        if boost <= 0.0 || boost == 1.0 {
            let problem = format_args!("must be greater than 0 and different from 1, not {boost}");
            return Err(function.error("boost", problem).into());
        }
        let interpolation = function.choice(
            "interpolation",
            &[
                ("constant", ScoringInterpolation::Constant),
                ("linear", ScoringInterpolation::Linear),
                ("quadratic", ScoringInterpolation::Quadratic),
                ("logarithmic", ScoringInterpolation::Logarithmic),
            ],
        )?;
        let interpolation = interpolation.unwrap_or(ScoringInterpolation::Linear);
        let kinds = ["magnitude", "freshness", "distance", "tag"].map(|kind| (kind, kind));
        let name = function.choice("type", &kinds)?.ok_or_else(|| function.missing("type"))?;
        let given = function.required_object(name)?;
        let kind = match name {
            "magnitude" => magnitude(&given)?,
            "freshness" => freshness(&given)?,
            "distance" => distance(&given)?,
            _ => tag(&given)?,
        };
        check_field(field, &kind, name, &place)?;
        if matches!(kind, ScoringFunctionKind::Tag { .. })
            && matches!(interpolation, ScoringInterpolation::Quadratic | ScoringInterpolation::Logarithmic)
        {
            return Err(invalid_definition(format!(
                "{place}: the interpolation of tag functions must be constant or linear."
            )));
        }
        Ok(Self { field: path.to_owned(), boost, interpolation, kind })
    }
}

fn check_weight(place: &JsonPlace, path: &str, weight: f64, schema: &IndexSchema) -> Result<f64, ApiError> {
    let Some(field) = schema.find(path) else {
        return Err(invalid_definition(format!(
            "{place} names the field '{path}', which the index does not have."
        )));
    };
    if !field.searchable || field.vector.is_some() {
        return Err(invalid_definition(format!(
            "{place} names the field '{path}', which is not searchable text. Only searchable text fields can have weights."
        )));
    }
    if weight <= 0.0 {
        return Err(invalid_definition(format!(
            "{place} gives field '{path}' the weight {weight}, but it must be greater than 0."
        )));
    }
    Ok(weight)
}

fn check_field(
    field: &IndexField,
    kind: &ScoringFunctionKind,
    name: &str,
    place: &str,
) -> Result<(), ApiError> {
    let (fits, wanted) = match kind {
        ScoringFunctionKind::Magnitude { .. } => (
            matches!(
                field.kind,
                FieldType::One(PrimitiveType::Double | PrimitiveType::Int32 | PrimitiveType::Int64)
            ),
            "Edm.Double, Edm.Int32 or Edm.Int64",
        ),
        ScoringFunctionKind::Freshness { .. } => {
            (field.kind == FieldType::One(PrimitiveType::DateTimeOffset), "Edm.DateTimeOffset")
        }
        ScoringFunctionKind::Distance { .. } => {
            (field.kind == FieldType::One(PrimitiveType::GeographyPoint), "Edm.GeographyPoint")
        }
        ScoringFunctionKind::Tag { .. } => (
            matches!(
                field.kind,
                FieldType::One(PrimitiveType::String) | FieldType::Many(PrimitiveType::String)
            ),
            "Edm.String or Collection(Edm.String)",
        ),
    };
    if !fits {
        return Err(invalid_definition(format!("{place}: {name} functions need a field of type {wanted}.")));
    }
    if field.below_collection {
        return Err(invalid_definition(format!(
            "{place}: the field is below a collection of complex values, so a document has several values of it."
        )));
    }
    if !field.filterable {
        return Err(invalid_definition(format!("{place}: the field must be filterable.")));
    }
    Ok(())
}

fn magnitude(given: &DefinitionObject<'_>) -> Result<ScoringFunctionKind, DefinitionError> {
    given.allow_only(&["boostingRangeStart", "boostingRangeEnd", "constantBoostBeyondRange"])?;
    let start = given.required_number("boostingRangeStart")?;
    let end = given.required_number("boostingRangeEnd")?;
    if start == end {
        return Err(given.error("boostingRangeEnd", "must not be the start of the range"));
    }
    let constant_beyond = given.boolean("constantBoostBeyondRange")?.unwrap_or(false);
    Ok(ScoringFunctionKind::Magnitude { start, end, constant_beyond })
}

fn freshness(given: &DefinitionObject<'_>) -> Result<ScoringFunctionKind, DefinitionError> {
    given.allow_only(&["boostingDuration"])?;
    let text = given.required_text("boostingDuration")?;
    match duration(text) {
        Some(duration_ms) if duration_ms != 0 => Ok(ScoringFunctionKind::Freshness { duration_ms }),
        _ => Err(given.error(
            "boostingDuration",
            format_args!("must be a nonzero duration of days and time, such as P30D or PT12H, not '{text}'"),
        )),
    }
}

fn distance(given: &DefinitionObject<'_>) -> Result<ScoringFunctionKind, DefinitionError> {
    given.allow_only(&["referencePointParameter", "boostingDistance"])?;
    let parameter = given.required_text("referencePointParameter")?.to_owned();
    let kilometres = given.required_number("boostingDistance")?;
    if kilometres <= 0.0 {
        return Err(given.error("boostingDistance", "must be greater than 0 kilometres"));
    }
    Ok(ScoringFunctionKind::Distance { parameter, kilometres })
}

fn tag(given: &DefinitionObject<'_>) -> Result<ScoringFunctionKind, DefinitionError> {
    given.allow_only(&["tagsParameter"])?;
    Ok(ScoringFunctionKind::Tag { parameter: given.required_text("tagsParameter")?.to_owned() })
}

/// Parses a duration such as `P1DT2H3M4.5S` or `-P30D` into milliseconds. Years and months have no
/// fixed length and are rejected.
fn duration(text: &str) -> Option<i64> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let rest = rest.strip_prefix('P')?;
    let (days, time) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some((days, time)) => (days, time),
        None => (rest, ""),
    };
    if days.is_empty() && time.is_empty() {
        return None;
    }
    let mut total: i64 = 0;
    if !days.is_empty() {
        total = parse_digits(days.strip_suffix('D')?)?.checked_mul(86_400_000)?;
    }
    let mut rest = time;
    for (unit, length) in [('H', 3_600_000), ('M', 60_000)] {
        if let Some((number, after)) = rest.split_once(unit) {
            total = total.checked_add(parse_digits(number)?.checked_mul(length)?)?;
            rest = after;
        }
    }
    if !rest.is_empty() {
        let (seconds, fraction) = match rest.strip_suffix('S')?.split_once('.') {
            Some((seconds, fraction)) => (seconds, fraction),
            None => (rest.strip_suffix('S')?, "0"),
        };
        parse_digits(fraction)?;
        let milliseconds = parse_digits(&format!("{fraction:0<3}").chars().take(3).collect::<String>())?;
        total = total.checked_add(parse_digits(seconds)?.checked_mul(1000)?)?.checked_add(milliseconds)?;
    }
    Some(sign * total)
}

fn parse_digits(digits: &str) -> Option<i64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_days_and_time() {
        assert_eq!(duration("P30D"), Some(30 * 86_400_000));
        assert_eq!(duration("-P1DT2H3M4.5S"), Some(-(86_400_000 + 7_200_000 + 180_000 + 4_500)));
        assert_eq!(duration("PT0.25S"), Some(250));
        assert_eq!(duration("PT15M"), Some(900_000));
        for wrong in
            ["", "P", "PT", "P1Y", "1D", "P-1D", "PT1", "P1DT", "PT1S2", "P99999999999999999D", "PTS"]
        {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }
}
