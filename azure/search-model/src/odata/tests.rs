//! Filters and `$orderby` clauses on a schema of hotels.

mod generate;
mod properties;

use serde_json::{Value, json};

use super::ast::{
    ComparisonOperator, FieldPath, FilterLiteral, GeoPoint, OdataFilter, OrderByClause, OrderCriterion,
};
use super::{matches, parse_filter, parse_orderby, parse_orderby_parts};
use crate::definition::{FieldType, IndexField, IndexSchema, PrimitiveType, VectorAttributes};

fn field(name: &str, kind: FieldType) -> IndexField {
    let sortable = !kind.is_collection();
    let searchable = kind.primitive() == Some(PrimitiveType::String);
    IndexField { filterable: true, sortable, searchable, ..IndexField::new(name, kind) }
}

fn hotels() -> IndexSchema {
    let one = |name, primitive| field(name, FieldType::One(primitive));
    let many = |name, primitive| field(name, FieldType::Many(primitive));
    let complex = |name, kind, fields| IndexField { fields, ..IndexField::new(name, kind) };
    let vector = VectorAttributes { dimensions: 3, profile: "p".to_owned(), packed_bits: false };
    IndexSchema::new(vec![
        IndexField { key: true, ..one("id", PrimitiveType::String) },
        one("category", PrimitiveType::String),
        IndexField { filterable: false, sortable: false, ..one("note", PrimitiveType::String) },
        one("rating", PrimitiveType::Int32),
        one("visits", PrimitiveType::Int64),
        one("price", PrimitiveType::Double),
        one("isOpen", PrimitiveType::Boolean),
        one("opened", PrimitiveType::DateTimeOffset),
        one("location", PrimitiveType::GeographyPoint),
        many("tags", PrimitiveType::String),
        many("scores", PrimitiveType::Int32),
        many("places", PrimitiveType::GeographyPoint),
        IndexField { vector: Some(vector), ..many("embedding", PrimitiveType::Single) },
        complex("address", FieldType::Complex, vec![one("city", PrimitiveType::String)]),
        complex(
            "rooms",
            FieldType::ManyComplex,
            vec![
                one("kind", PrimitiveType::String),
                one("baseRate", PrimitiveType::Double),
                one("smoking", PrimitiveType::Boolean),
                many("tags", PrimitiveType::String),
            ],
        ),
    ])
    .unwrap()
}

fn hotel() -> Value {
    json!({
        "id": "1", "category": "Luxury", "note": null, "rating": 4, "visits": 9_007_199_254_740_993_i64,
        "price": 120.5, "isOpen": true, "opened": "2010-06-01T08:00:00.250Z",
        "location": {"type": "Point", "coordinates": [13.4, 52.5]},
        "tags": ["pool", "view"], "scores": [1, 5],
        "places": [{"type": "Point", "coordinates": [0.5, 0.5]}, {"type": "Point", "coordinates": [50, 50]}],
        "address": {"city": "O'Hara"},
        "rooms": [
            {"kind": "Deluxe", "baseRate": 250, "smoking": false, "tags": ["wifi"]},
            {"kind": "Budget", "baseRate": 80.0, "smoking": null, "tags": []}
        ]
    })
}

fn empty() -> Value {
    json!({
        "id": "2", "category": null, "note": null, "rating": null, "visits": null, "price": null, "isOpen": null,
        "opened": null, "location": null, "tags": [], "scores": [], "places": [], "address": null, "rooms": []
    })
}

fn holds(text: &str, document: &Value) -> bool {
    let filter = parse_filter(text, &hotels()).unwrap_or_else(|error| panic!("{text}: {error}"));
    matches(&filter, document, &mut |wanted| wanted.search == "yes")
}

/// Checks each filter on the full and on the empty hotel.
fn check(cases: &[(&str, bool, bool)]) {
    for (text, full, missing) in cases {
        assert_eq!(holds(text, &hotel()), *full, "{text} on the hotel");
        assert_eq!(holds(text, &empty()), *missing, "{text} on the empty one");
    }
}

fn refusal(text: &str) -> String {
    parse_filter(text, &hotels()).expect_err(text).message
}

/// Checks that each filter is rejected with a message that contains these words.
fn refused(cases: &[(&str, &str)]) {
    for (text, words) in cases {
        let message = refusal(text);
        assert!(message.contains(words), "{text}: {message}");
        assert!(message.contains("(At character "), "{text}: {message}");
        assert!(message.ends_with("Parameter name: $filter"), "{text}: {message}");
    }
}

#[test]
fn comparisons_follow_the_types_of_fields() {
    check(&[
        ("rating eq 4", true, false),
        ("4 eq rating", true, false),
        ("rating ne 4", false, true),
        ("5 gt rating", true, false),
        ("3 gt rating", false, false),
        ("rating ge 4 and rating le 4", true, false),
        ("rating lt 99999999999", true, false),
        ("visits eq 9007199254740993", true, false),
        ("visits eq 9007199254740992", false, false),
        ("price gt 120", true, false),
        ("price le 1.205e2", true, false),
        ("price lt INF", true, false),
        ("price gt -INF", true, false),
        ("price eq NaN", false, false),
        ("price ne NaN", true, true),
        ("category eq 'Luxury'", true, false),
        ("category eq 'luxury'", false, false),
        ("category gt 'Lux'", true, false),
        ("address/city eq 'O''Hara'", true, false),
        ("opened eq 2010-06-01T10:00:00.2509999+02:00", true, false),
        ("opened ge 2010-06-01T08:00Z", true, false),
        ("opened lt 2010-06-01T08:00:00Z", false, false),
        ("isOpen eq true", true, false),
        ("isOpen ne true", false, true),
        ("(rating) eq ((4))", true, false),
    ]);
}

#[test]
fn whole_numbers_are_compared_with_fractions() {
    check(&[
        ("rating lt 4.5", true, false),
        ("rating le 4.5", true, false),
        ("rating gt 4.5", false, false),
        ("rating ge 4.5", false, false),
        ("rating gt 3.5", true, false),
        ("rating ge 3.5", true, false),
        ("rating eq 4.0", true, false),
        ("rating eq 4.5", false, false),
        ("rating ne 4.5", true, true),
        ("rating lt 1e300", true, false),
        ("rating gt 1e300", false, false),
        ("rating gt -1e300", true, false),
        ("rating ne 99999999999999999999", true, true),
    ]);
}

#[test]
fn null_equals_only_itself() {
    check(&[
        ("category eq null", false, true),
        ("category ne null", true, false),
        ("null ne category", true, false),
        ("not (rating gt 3)", false, true),
        ("isOpen", true, false),
        ("not isOpen", false, true),
        ("isOpen eq false", false, false),
        ("location eq null", false, true),
        ("address/city eq null", false, true),
    ]);
}

#[test]
fn and_binds_tighter_than_or_and_not_tightest() {
    check(&[
        ("true or false and false", true, true),
        ("(true or false) and false", false, false),
        ("not false and false", false, false),
        ("not (false and false)", true, true),
        ("not isOpen eq false", true, false),
        ("not not isOpen", true, false),
        ("not(isOpen)or rating eq 4", true, true),
    ]);
}

#[test]
fn lists_are_split_at_their_delimiters() {
    check(&[
        ("search.in(category, 'Budget, Luxury')", true, false),
        ("search.in(category, 'Budget|Luxury', '|')", true, false),
        ("search.in(category, 'Budget Luxury', ',')", false, false),
        ("search.in(category, 'a;Luxury,b', ',;')", true, false),
        ("search.in(category, '')", false, false),
        ("not search.in(category, 'Luxury')", false, true),
        ("tags/any(t: search.in(t, 'bar pool'))", true, false),
        ("tags/all(t: not search.in(t, 'bar, spa'))", true, true),
    ]);
}

#[test]
fn lambdas_apply_to_elements() {
    check(&[
        ("tags/any()", true, false),
        ("not tags/any()", false, true),
        ("tags/any(t: t eq 'pool' or t eq 'bar')", true, false),
        ("tags/all(t: t ne 'bar' and t ne 'spa')", true, true),
        ("tags/all(t: t eq 'pool')", false, true),
        ("scores/any(s: s gt 2 and s lt 4)", false, false),
        ("scores/any(s: 4 lt s)", true, false),
        ("rooms/any()", true, false),
        ("rooms/any(room: room/baseRate lt 200)", true, false),
        // Both conditions hold, but for different rooms.
        ("rooms/any(r: r/baseRate lt 200 and r/kind eq 'Deluxe')", false, false),
        ("rooms/any(r: r/baseRate gt 200 and r/tags/any(t: t eq 'wifi'))", true, false),
        ("rooms/any(r: r/tags/any(t: t eq 'wifi' and r/baseRate lt 200))", false, false),
        ("rooms/any(r: r/tags/any(t: t eq 'wifi' and r/baseRate gt 200 and rating eq 4))", true, false),
        ("rooms/all(r: not r/smoking)", true, true),
        ("rooms/all(r: r/smoking eq false)", false, true),
        ("rooms/any(r: not r/tags/any())", true, false),
    ]);
}

#[test]
fn points_are_near_or_within() {
    check(&[
        ("geo.distance(location, geography'POINT(13.4 52.5)') lt 1", true, false),
        ("geo.distance(geography'POINT(13.4 52.5)', location) le 0", true, false),
        ("5 ge geo.distance(location, geography'POINT(13.4 52.5)')", true, false),
        ("geo.distance(location, geography'POINT(-122 47)') gt 5000.5", true, false),
        ("not (geo.distance(location, geography'POINT(13 52)') lt 1)", true, true),
        ("geo.intersects(location, geography'POLYGON((13 52, 14 52, 14 53, 13 53, 13 52))')", true, false),
        ("geo.intersects(location, geography'POLYGON((0 0, 1 0, 1 1, 0 0))')", false, false),
        ("places/any(p: geo.intersects(p, geography'POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))'))", true, false),
        ("places/all(p: geo.distance(p, geography'POINT(0 0)') lt 100)", false, true),
    ]);
}

#[test]
fn text_matches_are_evaluated_by_the_caller() {
    check(&[
        ("search.ismatch('yes')", true, true),
        ("search.ismatchscoring('no') or rating eq 4", true, false),
        ("not search.ismatch('yes', 'category, tags', 'full', 'all')", false, false),
        ("search.ismatch('yes') eq false", false, false),
        ("search.ismatch('yes', null, 'full')", true, true),
    ]);
    let OdataFilter::Match(wanted) =
        parse_filter("search.ismatchscoring('a', 'category,rooms/kind', 'full', 'all')", &hotels()).unwrap()
    else {
        panic!("expected a text match")
    };
    assert_eq!(wanted.fields, ["category", "rooms/kind"]);
    assert!(wanted.full && wanted.all && wanted.scoring);
}

#[test]
fn paths_record_where_they_start() {
    let filter = parse_filter("rooms/any(r: r/tags/any(t: t eq 'a' and r/kind eq 'b'))", &hotels()).unwrap();
    let path = |field: &str, members: &[&str], lambda| FieldPath {
        field: field.to_owned(),
        members: members.iter().map(ToString::to_string).collect(),
        lambda,
    };
    let equal = |path, text: &str| OdataFilter::Compare {
        path,
        operator: ComparisonOperator::Equal,
        value: FilterLiteral::String(text.to_owned()),
    };
    let inner = OdataFilter::And(vec![
        equal(path("rooms/tags", &[], Some(0)), "a"),
        equal(path("rooms/kind", &["kind"], Some(1)), "b"),
    ]);
    let outer =
        OdataFilter::Any { path: path("rooms/tags", &["tags"], Some(0)), condition: Some(Box::new(inner)) };
    assert_eq!(
        filter,
        OdataFilter::Any { path: path("rooms", &["rooms"], None), condition: Some(Box::new(outer)) }
    );
}

#[test]
fn parentheses_around_the_same_operator_make_no_difference() {
    let filter = |text| parse_filter(text, &hotels()).unwrap();
    assert_eq!(filter("(isOpen or true) or (false or isOpen)"), filter("isOpen or true or false or isOpen"));
}

#[test]
fn a_blank_filter_is_no_condition() {
    assert_eq!(parse_filter(" \n", &hotels()), Ok(OdataFilter::Constant(true)));
}

#[test]
fn unknown_names_are_rejected_with_the_most_similar_one() {
    refused(&[
        ("Rating eq 4", "There is no field 'Rating'. Did you mean 'rating'?"),
        ("categroy eq 'a'", "Did you mean 'category'?"),
        ("address/town eq 'a'", "'address' has no subfield 'town'."),
        ("address.city eq 'a'", "address/city"),
        ("rooms/any(r: baseRate lt 5)", "write r/baseRate"),
        ("rooms/any(r: r/rate lt 5)", "'rooms' has no subfield 'rate'."),
        ("rating/x eq 4", "has no subfield 'x'"),
        ("search.In(category, 'a')", "Did you mean search.in"),
        ("contains(category, 'a')", "There is no function 'contains'"),
    ]);
}

#[test]
fn fields_are_used_only_as_they_are_defined() {
    refused(&[
        (
            "note eq 'a'",
            "'note' is not a filterable field. Only filterable fields can be used in filter expressions.",
        ),
        ("embedding/any(x: x eq 1)", "'embedding' is a vector field"),
        ("rooms/baseRate lt 5", "rooms/any(x: x/baseRate"),
        ("tags eq 'pool'", "tags/any(x: x eq 'value')"),
        ("rooms eq null", "is a collection"),
        ("address eq null", "'address' is complex"),
        ("category/any(x: x eq 'a')", "'any' and 'all' are for collections"),
        ("tags/all()", "'all' needs a condition"),
        ("rooms/any(r: r/tags/any(r: r eq 'a'))", "'r' is already in use"),
        ("search.in(rating, '1,2')", "search.in needs strings"),
        ("search.in(tags, 'a')", "tags/any(x: …(x, …))"),
        ("search.ismatch('a', 'rating')", "'rating' is not a searchable text field"),
        ("search.ismatch('a', 'nothing')", "There is no field 'nothing'"),
        ("search.ismatch('a', 'tags', 'lucene')", "Expected 'simple' or 'full', found 'lucene'"),
        ("tags/any(t: search.ismatch('a'))", "Move it out of the lambda"),
    ]);
}

#[test]
fn constants_must_fit_their_fields() {
    refused(&[
        ("rating eq '4'", "'rating' is of type Edm.Int32 and cannot be compared with the text '4'"),
        ("rating eq true", "Expected a finite number"),
        ("rating lt INF", "Expected a finite number"),
        ("category eq 4", "Expected a text in single quotes"),
        ("opened gt '2024-01-31T00:00:00Z'", "Dates are written without quotes."),
        ("opened gt 2024-01-31T00:00:00", "has no offset"),
        ("opened gt 2024-01-31", "2024-01-31T00:00:00Z"),
        ("isOpen gt false", "have no order"),
        ("rating gt null", "null has no order"),
        ("location eq geography'POINT(1 2)'", "geo.distance(location"),
        ("geo.distance(location, geography'POINT(1 2)') eq 5", "lt, le, gt and ge"),
        ("geo.distance(location, geography'POINT(1 2)') lt '5'", "a number of kilometres"),
        ("geo.distance(location, geography'POINT(1 200)') lt 5", "out of range"),
        ("geo.distance(category, geography'POINT(1 2)') lt 5", "geo functions need points"),
        ("geo.distance(location, geography'POINT(1 2)')", "Compare it"),
        ("geo.intersects(location, geography'POINT(1 2)')", "POLYGON"),
        ("price eq 1e999", "too large"),
        ("rating eq visits", "not with each other"),
        ("1 eq 1", "Both sides are constants"),
        ("rating", "Compare it with a constant"),
        ("not rating gt 5", "not (rating gt 5)"),
        ("'a'", "is not a condition"),
        ("null", "is not a condition"),
    ]);
}

#[test]
fn mistakes_in_syntax_are_explained() {
    refused(&[
        ("rating eq", "found the end"),
        ("rating = 4", "Equality is written 'eq'"),
        ("rating eq 4 AND isOpen", "lower case: 'and', not 'AND'"),
        ("rating eq 4 isOpen", "Expected an operator"),
        ("rating eq 4 eq true", "cannot be chained"),
        ("category in ('a', 'b')", "search.in(field"),
        ("(rating eq 4", "never closed"),
        ("rating eq 4)", "no matching"),
        ("category eq 'a", "no closing quote"),
        ("category eq \"a\"", "single quotes"),
        ("category eq 12ab", "'12ab' is not a number"),
        ("opened gt datetime'2024-01-01'", "is not allowed before a quote"),
        ("tags/any(t t eq 'a')", "Expected ':'"),
        ("tags/any('a')", "Expected a range variable"),
        ("tags/first(t: t eq 'a')", "Only 'any' and 'all' can"),
        ("tags/ eq 'a'", "Expected an operator"),
        ("tags/5", "Expected a field after '/'"),
        ("search.in(category, 'a'", "never closed"),
        ("search.in(category, search.in(category, 'a'))", "fields and constants"),
        ("é", "has no meaning here"),
    ]);
}

#[test]
fn positions_count_characters() {
    assert!(refusal("category eq 'äöü' and nothing eq 1").contains("(At character 23.)"));
}

#[test]
fn depth_and_length_are_bounded() {
    for text in [
        "(".repeat(100_000),
        "not ".repeat(100_000),
        "tags/any(t:".repeat(100_000),
        "search.in(".repeat(100_000),
        format!("{}true{}", "(not ".repeat(60), ")".repeat(60)),
    ] {
        assert!(refusal(&text).contains("nested too deep"), "{}", text.get(..20).unwrap());
    }
    assert!(holds(&format!("{}true{}", "(".repeat(100), ")".repeat(100)), &empty()));
    let clauses = |count| vec!["rating eq 1"; count].join(" or ");
    assert!(parse_filter(&clauses(3000), &hotels()).is_ok());
    assert!(refusal(&clauses(3001)).contains("too many clauses"));
    assert!(refusal(&format!("{}x", "a/".repeat(100_000))).contains("too long"));
    assert!(refusal(&format!("search.in({}x)", "x,".repeat(100_000))).contains("too many arguments"));
}

#[test]
fn a_list_may_have_any_number_of_values() {
    let values: Vec<_> = (0..50_000).map(|number| number.to_string()).collect();
    let Ok(OdataFilter::In { values: read, .. }) =
        parse_filter(&format!("search.in(category, '{}')", values.join(",")), &hotels())
    else {
        panic!("expected search.in")
    };
    assert_eq!(read.len(), 50_000);
}

#[test]
fn order_clauses_are_parsed() {
    let orders = parse_orderby(
        "rating desc,address/city, search.score() desc ,geo.distance(location, geography'POINT(1 2)') asc",
        &hotels(),
    );
    let order = |by, descending| OrderByClause { by, descending };
    let from = GeoPoint { longitude: 1.0, latitude: 2.0 };
    assert_eq!(
        orders.unwrap(),
        [
            order(OrderCriterion::Field("rating".to_owned()), true),
            order(OrderCriterion::Field("address/city".to_owned()), false),
            order(OrderCriterion::Score, true),
            order(OrderCriterion::Distance { field: "location".to_owned(), from }, false),
        ]
    );
    assert_eq!(parse_orderby("", &hotels()), Ok(vec![]));
    let parts = ["rating desc, price".to_owned(), "id".to_owned()];
    assert_eq!(parse_orderby_parts(&parts, &hotels()).unwrap().len(), 3);
}

#[test]
fn invalid_order_clauses_are_rejected() {
    for (text, words) in [
        ("note", "'note' is not a sortable field"),
        ("tags", "many values"),
        ("rooms/baseRate", "many values"),
        ("rooms", "many values"),
        ("address", "'address' is complex"),
        ("location", "geo.distance(location"),
        ("geo.distance(rating, geography'POINT(1 2)')", "distances are between points"),
        ("geo.distance(places, geography'POINT(1 2)')", "many values"),
        ("search.score(1)", "no arguments"),
        ("search.in(category, 'a')", "Only the functions"),
        ("rating DESC", "Expected 'asc', 'desc' or ','"),
        ("rating desc asc", "Expected 'asc', 'desc' or ','"),
        ("rating,", "found the end"),
        ("ratin", "Did you mean 'rating'"),
        ("5", "Expected a sortable field"),
    ] {
        let message = parse_orderby(text, &hotels()).expect_err(text).message;
        assert!(message.contains(words), "{text}: {message}");
        assert!(message.ends_with("Parameter name: $orderby"), "{text}: {message}");
    }
    assert!(parse_orderby(&["rating"; 32].join(","), &hotels()).is_ok());
    assert!(parse_orderby(&["rating"; 33].join(","), &hotels()).unwrap_err().message.contains("at most 32"));
    assert!(parse_orderby_parts(&vec!["rating".to_owned(); 33], &hotels()).is_err());
}
