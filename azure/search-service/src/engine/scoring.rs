//! Scoring functions: magnitude, freshness, distance and tags change the score of a hit.
//!
//! Each function returns a factor from 1 (does not apply) to its boost (applies fully). The aggregation
//! of the profile combines the factors, and the text score is multiplied by the result. Field weights are
//! part of the text query instead.

mod parameters;
#[cfg(test)]
mod tests;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::scoring::{
    ScoringAggregation, ScoringFunction, ScoringFunctionKind, ScoringInterpolation, ScoringProfile,
};
use bindpost_azure_search_model::odata::ast::GeoPoint;
use tantivy::columnar::{Column as FastColumn, StrColumn};
use tantivy::schema::{Field as Column, Type};
use tantivy::{DocId, Score, SegmentReader};

pub(crate) use self::parameters::ScoringParameters;

use super::columns::IndexColumns;

/// The functions of a profile, bound to the columns of an index and the parameters of one request.
#[derive(Debug, Clone)]
pub(crate) struct ProfileScorer {
    functions: Vec<BoundFunction>,
    aggregation: ScoringAggregation,
}

/// The functions of a profile for one segment, with its columns open.
pub(crate) struct SegmentScorer {
    functions: Vec<SegmentFunction>,
    aggregation: ScoringAggregation,
}

impl ProfileScorer {
    /// Binds a profile. Freshness is relative to `now`, in milliseconds since 1970.
    pub(crate) fn new(
        profile: &ScoringProfile,
        parameters: &ScoringParameters,
        columns: &IndexColumns,
        now: i64,
    ) -> Result<Self, ApiError> {
        let functions = profile.functions.iter();
        let functions =
            functions.map(|function| BoundFunction::bind(function, profile, parameters, columns, now));
        Ok(Self { functions: functions.collect::<Result<_, _>>()?, aggregation: profile.aggregation })
    }

    /// Returns whether the profile has no functions. It may still have weights.
    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    pub(crate) fn for_segment(&self, segment: &SegmentReader) -> tantivy::Result<SegmentScorer> {
        let functions = self.functions.iter().map(|function| function.open(segment));
        Ok(SegmentScorer { functions: functions.collect::<Result<_, _>>()?, aggregation: self.aggregation })
    }
}

impl SegmentScorer {
    pub(crate) fn apply(&self, doc: DocId, score: Score) -> Score {
        score * self.multiplier(doc)
    }

    /// Returns the factor of a document, or 1 when no function applies to it.
    pub(crate) fn multiplier(&self, doc: DocId) -> Score {
        let mut factors = self.functions.iter().map(|function| function.factor(doc));
        let number = self.functions.len().max(1) as f64;
        let factor = match self.aggregation {
            ScoringAggregation::Sum => 1.0 + factors.map(|factor| factor.unwrap_or(1.0) - 1.0).sum::<f64>(),
            ScoringAggregation::Average => {
                1.0 + factors.map(|factor| factor.unwrap_or(1.0) - 1.0).sum::<f64>() / number
            }
            ScoringAggregation::Minimum => {
                factors.map(|factor| factor.unwrap_or(1.0)).reduce(f64::min).unwrap_or(1.0)
            }
            ScoringAggregation::Maximum => {
                factors.map(|factor| factor.unwrap_or(1.0)).reduce(f64::max).unwrap_or(1.0)
            }
            ScoringAggregation::FirstMatching => factors.find_map(|factor| factor).unwrap_or(1.0),
        };
        // Scores stay positive even if boosts below 1 are summed.
        factor.max(f64::from(f32::MIN_POSITIVE)) as Score
    }
}

/// A function with its columns and its parameters.
#[derive(Debug, Clone)]
struct BoundFunction {
    boost: f64,
    interpolation: ScoringInterpolation,
    input: ScoringInput,
}

#[derive(Debug, Clone)]
enum ScoringInput {
    Magnitude { column: String, doubles: bool, start: f64, end: f64, constant_beyond: bool },
    Freshness { column: String, now: i64, duration: f64 },
    Distance { latitude: String, longitude: String, from: GeoPoint, kilometres: f64 },
    Tags { column: String, tags: Vec<String> },
}

impl BoundFunction {
    fn bind(
        function: &ScoringFunction,
        profile: &ScoringProfile,
        parameters: &ScoringParameters,
        columns: &IndexColumns,
        now: i64,
    ) -> Result<Self, ApiError> {
        let found = columns.for_field(&function.field);
        let unfit = || {
            ApiError::parameter(
                "scoringProfile",
                format!(
                    "The scoring profile '{}' has a function over '{}', but its values cannot be read. The field must \
                     be filterable and of a type that fits the function.",
                    profile.name, function.field
                ),
            )
        };
        let name = |column: Option<Column>, types: &[Type]| {
            let entry = columns.schema().get_field_entry(column.ok_or_else(unfit)?);
            let fits = types.contains(&entry.field_type().value_type());
            if fits { Ok(entry.name().to_owned()) } else { Err(unfit()) }
        };
        let input = match &function.kind {
            ScoringFunctionKind::Magnitude { start, end, constant_beyond } => {
                let doubles = name(found.value, &[Type::F64]).is_ok();
                let column = name(found.value, &[Type::F64, Type::I64])?;
                let (start, end, constant_beyond) = (*start, *end, *constant_beyond);
                ScoringInput::Magnitude { column, doubles, start, end, constant_beyond }
            }
            ScoringFunctionKind::Freshness { duration_ms } => {
                let column = name(found.value, &[Type::I64])?;
                let duration = *duration_ms as f64;
                ScoringInput::Freshness { column, now, duration }
            }
            ScoringFunctionKind::Distance { parameter, kilometres } => ScoringInput::Distance {
                latitude: name(found.latitude, &[Type::F64])?,
                longitude: name(found.longitude, &[Type::F64])?,
                from: parameters.point(parameter)?,
                kilometres: *kilometres,
            },
            ScoringFunctionKind::Tag { parameter } => {
                let tags = parameters.tags(parameter)?;
                ScoringInput::Tags { column: name(found.value, &[Type::Str])?, tags }
            }
        };
        Ok(Self { boost: function.boost, interpolation: function.interpolation, input })
    }

    fn open(&self, segment: &SegmentReader) -> tantivy::Result<SegmentFunction> {
        let fast = segment.fast_fields();
        let input = match &self.input {
            ScoringInput::Magnitude { column, doubles, start, end, constant_beyond } => {
                let numbers = if *doubles {
                    fast.column_opt::<f64>(column)?.map(NumericColumn::Doubles)
                } else {
                    fast.column_opt::<i64>(column)?.map(NumericColumn::Integers)
                };
                let (start, end, constant_beyond) = (*start, *end, *constant_beyond);
                numbers.map(|numbers| SegmentInput::Magnitude { numbers, start, end, constant_beyond })
            }
            ScoringInput::Freshness { column, now, duration } => fast
                .column_opt::<i64>(column)?
                .map(|dates| SegmentInput::Freshness { dates, now: *now, duration: *duration }),
            ScoringInput::Distance { latitude, longitude, from, kilometres } => {
                let latitudes = fast.column_opt::<f64>(latitude)?;
                let longitudes = fast.column_opt::<f64>(longitude)?;
                let (from, kilometres) = (*from, *kilometres);
                latitudes.zip(longitudes).map(|(latitudes, longitudes)| SegmentInput::Distance {
                    latitudes,
                    longitudes,
                    from,
                    kilometres,
                })
            }
            ScoringInput::Tags { column, tags } => match fast.str(column)? {
                Some(values) => {
                    let mut ords = Vec::with_capacity(tags.len());
                    for tag in tags {
                        ords.extend(values.dictionary().term_ord(tag)?);
                    }
                    Some(SegmentInput::Tags { values, ords, asked: tags.len() })
                }
                None => None,
            },
        };
        Ok(SegmentFunction { gain: self.boost - 1.0, interpolation: self.interpolation, input })
    }
}

struct SegmentFunction {
    /// The amount that is added to 1 at full strength.
    gain: f64,
    interpolation: ScoringInterpolation,
    /// `None` if no document of the segment has a value.
    input: Option<SegmentInput>,
}

enum SegmentInput {
    Magnitude { numbers: NumericColumn, start: f64, end: f64, constant_beyond: bool },
    Freshness { dates: FastColumn<i64>, now: i64, duration: f64 },
    Distance { latitudes: FastColumn<f64>, longitudes: FastColumn<f64>, from: GeoPoint, kilometres: f64 },
    Tags { values: StrColumn, ords: Vec<u64>, asked: usize },
}

enum NumericColumn {
    Integers(FastColumn<i64>),
    Doubles(FastColumn<f64>),
}

impl SegmentFunction {
    /// Returns `None` if the function does not apply to the document.
    fn factor(&self, doc: DocId) -> Option<f64> {
        let away = self.input.as_ref()?.relative_distance(doc)?;
        Some(1.0 + self.gain * strength(self.interpolation, away))
    }
}

impl SegmentInput {
    /// Returns the distance of the document from the preferred value: 0 is the preferred value, 1 is the
    /// edge of the range.
    fn relative_distance(&self, doc: DocId) -> Option<f64> {
        match self {
            Self::Magnitude { numbers, start, end, constant_beyond } => {
                let value = match numbers {
                    NumericColumn::Integers(column) => column.first(doc)? as f64,
                    NumericColumn::Doubles(column) => column.first(doc)?,
                };
                // The range may be descending. Then small values are preferred.
                if start == end {
                    return (value == *end).then_some(0.0);
                }
                let along = (value - start) / (end - start);
                match along {
                    along if along > 1.0 => constant_beyond.then_some(0.0),
                    along if along >= 0.0 => Some(1.0 - along),
                    _ => None,
                }
            }
            Self::Freshness { dates, now, duration } => {
                // Both differences are positive on the side that the sign of the duration selects.
                let age = now.saturating_sub(dates.first(doc)?) as f64 / duration;
                (0.0..=1.0).contains(&age).then_some(age)
            }
            Self::Distance { latitudes, longitudes, from, kilometres } => {
                let to = GeoPoint { longitude: longitudes.first(doc)?, latitude: latitudes.first(doc)? };
                let away = distance(*from, to) / kilometres;
                (0.0..=1.0).contains(&away).then_some(away)
            }
            Self::Tags { values, ords, asked } => {
                let has = |tag: &&u64| values.term_ords(doc).any(|ord| ord == **tag);
                let common = ords.iter().filter(has).count();
                (common > 0).then(|| 1.0 - common as f64 / *asked as f64)
            }
        }
    }
}

/// Returns the share of the boost at a distance from 0 to 1. Quadratic falls late, logarithmic falls early.
fn strength(interpolation: ScoringInterpolation, away: f64) -> f64 {
    match interpolation {
        ScoringInterpolation::Constant => 1.0,
        ScoringInterpolation::Linear => 1.0 - away,
        ScoringInterpolation::Quadratic => 1.0 - away * away,
        ScoringInterpolation::Logarithmic => 1.0 - (1.0 + 9.0 * away).log10(),
    }
}

/// Returns the kilometres between two points on a sphere with the earth's mean radius.
fn distance(one: GeoPoint, other: GeoPoint) -> f64 {
    const EARTH: f64 = 6371.0088;
    let (from, to) = (one.latitude.to_radians(), other.latitude.to_radians());
    let across = ((other.longitude - one.longitude).to_radians() / 2.0).sin();
    let along = ((to - from) / 2.0).sin();
    let haversine = along * along + from.cos() * to.cos() * across * across;
    2.0 * EARTH * haversine.sqrt().clamp(0.0, 1.0).asin()
}
