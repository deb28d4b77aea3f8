use bindpost_azure_search_model::definition::{FieldType, PrimitiveType};
use serde_json::{Value, json};

use super::*;
use crate::engine::testing::{TestIndex, field, moment};

const NOW: &str = "2024-06-01T00:00:00Z";

fn index() -> TestIndex {
    let fields = vec![
        field("rating", FieldType::One(PrimitiveType::Int32)),
        field("price", FieldType::One(PrimitiveType::Double)),
        field("built", FieldType::One(PrimitiveType::DateTimeOffset)),
        field("place", FieldType::One(PrimitiveType::GeographyPoint)),
        field("tags", FieldType::Many(PrimitiveType::String)),
    ];
    let place =
        |longitude: f64, latitude: f64| json!({"type": "Point", "coordinates": [longitude, latitude]});
    let documents: [Value; 4] = [
        json!({"id": "0", "rating": 1, "price": 10.0, "built": "2024-05-31T00:00:00Z", "place": place(13.4, 52.5),
               "tags": ["pool", "bar"]}),
        json!({"id": "1", "rating": 3, "price": 55.0, "built": "2024-05-22T00:00:00Z", "place": place(13.5, 52.5),
               "tags": ["pool"]}),
        json!({"id": "2", "rating": 9, "price": 100.0, "built": "2024-06-02T00:00:00Z", "place": place(-74.0, 40.7),
               "tags": ["view"]}),
        json!({"id": "3"}),
    ];
    TestIndex::new(fields, &[], &documents, 10)
}

fn function(field: &str, kind: ScoringFunctionKind) -> ScoringFunction {
    ScoringFunction { field: field.to_owned(), boost: 3.0, interpolation: ScoringInterpolation::Linear, kind }
}

fn rating() -> ScoringFunction {
    function("rating", ScoringFunctionKind::Magnitude { start: 1.0, end: 5.0, constant_beyond: false })
}

fn bind(
    functions: Vec<ScoringFunction>,
    aggregation: ScoringAggregation,
    given: &[&str],
) -> Result<ProfileScorer, ApiError> {
    let profile = ScoringProfile { name: "p".to_owned(), weights: Vec::new(), functions, aggregation };
    ProfileScorer::new(&profile, &ScoringParameters::parse(given)?, &index().columns, moment(NOW))
}

fn factors(functions: Vec<ScoringFunction>, aggregation: ScoringAggregation, given: &[&str]) -> Vec<f32> {
    let scorer = bind(functions, aggregation, given).unwrap();
    let searcher = index().searcher();
    let segment = scorer.for_segment(searcher.segment_reader(0)).unwrap();
    (0..4).map(|doc| segment.multiplier(doc)).collect()
}

fn one(function: ScoringFunction, given: &[&str]) -> Vec<f32> {
    factors(vec![function], ScoringAggregation::Sum, given)
}

#[test]
fn magnitude_grows_towards_the_end_of_its_range() {
    assert_eq!(one(rating(), &[]), [1.0, 2.0, 1.0, 1.0]);
    let beyond = ScoringFunctionKind::Magnitude { start: 1.0, end: 5.0, constant_beyond: true };
    assert_eq!(one(function("rating", beyond), &[]), [1.0, 2.0, 3.0, 1.0]);
    let cheap = ScoringFunctionKind::Magnitude { start: 100.0, end: 10.0, constant_beyond: false };
    assert_eq!(one(function("price", cheap), &[]), [3.0, 2.0, 1.0, 1.0]);
    let exactly = ScoringFunctionKind::Magnitude { start: 55.0, end: 55.0, constant_beyond: false };
    let exactly =
        ScoringFunction { interpolation: ScoringInterpolation::Constant, ..function("price", exactly) };
    assert_eq!(one(exactly, &[]), [1.0, 3.0, 1.0, 1.0]);
}

#[test]
fn freshness_prefers_past_or_future_dates() {
    let days = |days: i64| ScoringFunctionKind::Freshness { duration_ms: days * 86_400_000 };
    let constant =
        |kind| ScoringFunction { interpolation: ScoringInterpolation::Constant, ..function("built", kind) };
    assert_eq!(one(constant(days(10)), &[]), [3.0, 3.0, 1.0, 1.0]);
    assert_eq!(one(constant(days(5)), &[]), [3.0, 1.0, 1.0, 1.0]);
    assert_eq!(one(constant(days(-5)), &[]), [1.0, 1.0, 3.0, 1.0]);
    let linear = one(function("built", days(20)), &[]);
    assert!(linear[0] > linear[1] && linear[1] > 1.0, "{linear:?}");
}

#[test]
fn distance_falls_from_the_given_point() {
    let near = ScoringFunctionKind::Distance { parameter: "here".to_owned(), kilometres: 20.0 };
    let factors = one(function("place", near), &["here-13.4,52.5"]);
    assert_eq!((factors[0], factors[2], factors[3]), (3.0, 1.0, 1.0));
    assert!((1.1..3.0).contains(&factors[1]), "{factors:?}");
    let berlin_new_york =
        distance(GeoPoint { longitude: 13.4, latitude: 52.5 }, GeoPoint { longitude: -74.0, latitude: 40.7 });
    assert!((6380.0..6400.0).contains(&berlin_new_york), "{berlin_new_york}");
}

#[test]
fn tags_count_common_values() {
    let tags = ScoringFunctionKind::Tag { parameter: "likes".to_owned() };
    assert_eq!(one(function("tags", tags.clone()), &["likes-pool,bar"]), [3.0, 2.0, 1.0, 1.0]);
    let constant =
        ScoringFunction { interpolation: ScoringInterpolation::Constant, ..function("tags", tags) };
    assert_eq!(one(constant, &["likes-pool,'bar',pool"]), [3.0, 3.0, 1.0, 1.0]);
}

#[test]
fn curves_fall_late_or_early() {
    let at = |interpolation| strength(interpolation, 0.5);
    assert!(at(ScoringInterpolation::Quadratic) > at(ScoringInterpolation::Linear));
    assert!(at(ScoringInterpolation::Linear) > at(ScoringInterpolation::Logarithmic));
    for interpolation in
        [ScoringInterpolation::Linear, ScoringInterpolation::Quadratic, ScoringInterpolation::Logarithmic]
    {
        assert!(
            (strength(interpolation, 0.0) - 1.0).abs() < 1e-9 && strength(interpolation, 1.0).abs() < 1e-9
        );
    }
}

#[test]
fn functions_are_aggregated() {
    let cheap = ScoringFunctionKind::Magnitude { start: 100.0, end: 10.0, constant_beyond: false };
    // Ratings give 1, 2, 1, 1 and prices give 3, 2, 1, 1.
    let both = || vec![rating(), function("price", cheap.clone())];
    assert_eq!(factors(both(), ScoringAggregation::Sum, &[]), [3.0, 3.0, 1.0, 1.0]);
    assert_eq!(factors(both(), ScoringAggregation::Average, &[]), [2.0, 2.0, 1.0, 1.0]);
    assert_eq!(factors(both(), ScoringAggregation::Minimum, &[]), [1.0, 2.0, 1.0, 1.0]);
    assert_eq!(factors(both(), ScoringAggregation::Maximum, &[]), [3.0, 2.0, 1.0, 1.0]);
    // The first document is at the edge of the range of ratings. The function applies and adds nothing.
    assert_eq!(factors(both(), ScoringAggregation::FirstMatching, &[]), [1.0, 2.0, 1.0, 1.0]);
    assert_eq!(factors(Vec::new(), ScoringAggregation::Minimum, &[]), [1.0; 4]);
}

#[test]
fn parameters_have_names_quotes_and_negative_numbers() {
    let parameters = ScoringParameters::parse(&["here--122.2,44.8", "tags-'Hello, O''Brien',Smith"]).unwrap();
    assert_eq!(parameters.point("here").unwrap(), GeoPoint { longitude: -122.2, latitude: 44.8 });
    assert_eq!(parameters.tags("tags").unwrap(), ["Hello, O'Brien", "Smith"]);
    for wrong in ["here", "-1,2", "t-'open", "t-'a'b"] {
        assert!(ScoringParameters::parse(&[wrong]).is_err(), "{wrong}");
    }
}

#[test]
fn a_missing_or_wrong_parameter_is_named() {
    let near = || {
        vec![function(
            "place",
            ScoringFunctionKind::Distance { parameter: "here".to_owned(), kilometres: 1.0 },
        )]
    };
    let message = |given: &[&str]| bind(near(), ScoringAggregation::Sum, given).unwrap_err().message;
    assert!(message(&[]).contains("needs a parameter 'here'"));
    assert!(message(&["here-x,y"]).contains("longitude and a latitude"));
    assert!(message(&["here-1,200"]).contains("longitude and a latitude"));
    let wrong_field = vec![function("tags", ScoringFunctionKind::Freshness { duration_ms: 1 })];
    assert!(bind(wrong_field, ScoringAggregation::Sum, &[]).unwrap_err().message.contains("'tags'"));
}
