use std::collections::{BTreeMap, BTreeSet};

use bindpost_azure_search_model::definition::{FieldType, IndexField, PrimitiveType};
use proptest::prelude::*;
use serde_json::{Value, json};
use tantivy::collector::{Count, TopDocs};
use tantivy::query::{AllQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{IndexWriter, Term};

use super::calendar::{CalendarUnit, render_date};
use super::*;
use crate::engine::testing::{TestIndex, field, moment};

fn fields() -> Vec<IndexField> {
    vec![
        field("category", FieldType::One(PrimitiveType::String)),
        field("tags", FieldType::Many(PrimitiveType::String)),
        field("rating", FieldType::One(PrimitiveType::Int32)),
        field("scores", FieldType::Many(PrimitiveType::Int64)),
        field("price", FieldType::One(PrimitiveType::Double)),
        field("open", FieldType::One(PrimitiveType::Boolean)),
        field("built", FieldType::One(PrimitiveType::DateTimeOffset)),
        field("place", FieldType::One(PrimitiveType::GeographyPoint)),
    ]
}

fn hotels(per_segment: usize) -> TestIndex {
    let documents = [
        json!({"id":"1","category":"Budget","tags":["pool","bar","pool"],"rating":3,"price":80.5,"open":true,
               "built":"2024-01-31T23:30:00Z","scores":[1,5,150]}),
        json!({"id":"2","category":"Luxury","tags":["bar"],"rating":5,"price":250.0,"open":true,
               "built":"2024-02-01T00:30:00Z","scores":[]}),
        json!({"id":"3","category":"Budget","tags":[],"rating":-1,"price":100.0,"open":false,
               "built":"2023-12-31T10:00:00.250Z","scores":[99]}),
        json!({"id":"4","category":"Suite","tags":["view","bar"],"rating":null,"price":null,"open":null,
               "built":null,"scores":[100,101]}),
    ];
    TestIndex::new(fields(), &[], &documents, per_segment)
}

fn count(index: &TestIndex, expressions: &[&str], query: &dyn Query) -> Value {
    let facets =
        RequestFacets::parse(expressions, &index.schema, &index.columns, &Budget::unlimited()).unwrap();
    json_of(&index.searcher().search(query, &facets).unwrap())
}

fn json_of(lists: &FacetLists) -> Value {
    let mut text = JsonBuffer::new(&Budget::unlimited());
    lists.write(&mut text);
    serde_json::from_slice(&text.bytes).unwrap()
}

fn buckets(expression: &str) -> Value {
    let one = count(&hotels(10), &[expression], &AllQuery);
    let several = count(&hotels(1), &[expression], &AllQuery);
    assert_eq!(one, several, "the number of segments must not change the result");
    let path = expression.split(',').next().unwrap();
    one[path].clone()
}

fn refusal(expression: &str) -> String {
    let index = hotels(10);
    RequestFacets::parse(&[expression], &index.schema, &index.columns, &Budget::unlimited())
        .unwrap_err()
        .message
}

#[test]
fn counts_terms_the_most_frequent_first() {
    assert_eq!(
        buckets("category"),
        json!([{"value":"Budget","count":2},{"value":"Luxury","count":1},{"value":"Suite","count":1}])
    );
}

#[test]
fn counts_a_document_once_for_a_repeated_value() {
    assert_eq!(
        buckets("tags"),
        json!([{"value":"bar","count":3},{"value":"pool","count":1},{"value":"view","count":1}])
    );
}

#[test]
fn sorts_and_limits_buckets() {
    assert_eq!(
        buckets("category,count:2,sort:-value"),
        json!([{"value":"Suite","count":1},{"value":"Luxury","count":1}])
    );
    assert_eq!(buckets("category,count:1,sort:value"), json!([{"value":"Budget","count":2}]));
    assert_eq!(buckets("category, sort:-count, count:1"), json!([{"value":"Luxury","count":1}]));
    assert_eq!(buckets("tags,count:0").as_array().unwrap().len(), 3);
}

#[test]
fn keeps_the_json_types_of_values() {
    assert_eq!(
        buckets("rating,sort:value"),
        json!([{"value":-1,"count":1},{"value":3,"count":1},{"value":5,"count":1}])
    );
    assert_eq!(
        buckets("price,sort:value"),
        json!([{"value":80.5,"count":1},{"value":100.0,"count":1},{"value":250.0,"count":1}])
    );
    assert_eq!(buckets("open"), json!([{"value":true,"count":2},{"value":false,"count":1}]));
    assert_eq!(buckets("built,sort:value,count:1"), json!([{"value":"2023-12-31T10:00:00.250Z","count":1}]));
}

#[test]
fn ranges_have_open_ends_and_may_be_empty() {
    assert_eq!(
        buckets("price,values:100|200|500"),
        json!([{"to":100.0,"count":1},{"from":100.0,"to":200.0,"count":1},
               {"from":200.0,"to":500.0,"count":1},{"from":500.0,"count":0}])
    );
    assert_eq!(
        buckets("built,values:2024-01-01T00:00:00Z"),
        json!([{"to":"2024-01-01T00:00:00Z","count":1},{"from":"2024-01-01T00:00:00Z","count":2}])
    );
    assert_eq!(buckets("scores,values:100"), json!([{"to":100,"count":2},{"from":100,"count":2}]));
}

#[test]
fn intervals_of_numbers_start_at_multiples() {
    assert_eq!(
        buckets("rating,interval:2"),
        json!([{"value":-2,"count":1},{"value":2,"count":1},{"value":4,"count":1}])
    );
    assert_eq!(
        buckets("price,interval:100"),
        json!([{"value":0.0,"count":1},{"value":100.0,"count":1},{"value":200.0,"count":1}])
    );
    assert_eq!(buckets("scores,interval:100"), json!([{"value":0,"count":2},{"value":100,"count":2}]));
}

#[test]
fn intervals_of_dates_follow_the_calendar_and_the_offset() {
    assert_eq!(
        buckets("built,interval:month"),
        json!([{"value":"2023-12-01T00:00:00Z","count":1},{"value":"2024-01-01T00:00:00Z","count":1},
               {"value":"2024-02-01T00:00:00Z","count":1}])
    );
    assert_eq!(
        buckets("built,interval:month,timeoffset:+01:00"),
        json!([{"value":"2023-11-30T23:00:00Z","count":1},{"value":"2024-01-31T23:00:00Z","count":2}])
    );
    assert_eq!(
        buckets("built,interval:day,timeoffset:-01:00"),
        json!([{"value":"2023-12-31T01:00:00Z","count":1},{"value":"2024-01-31T01:00:00Z","count":2}])
    );
    let start = |unit, date| render_date(CalendarInterval { unit, offset: 0 }.start(moment(date)));
    assert_eq!(start(CalendarUnit::Quarter, "2024-06-30T23:59:59Z"), "2024-04-01T00:00:00Z");
    assert_eq!(start(CalendarUnit::Year, "1969-06-30T23:59:59Z"), "1969-01-01T00:00:00Z");
    assert_eq!(start(CalendarUnit::Week, "2024-02-04T12:00:00Z"), "2024-01-29T00:00:00Z");
    assert_eq!(start(CalendarUnit::Hour, "1969-12-31T23:59:59Z"), "1969-12-31T23:00:00Z");
    assert_eq!(start(CalendarUnit::Minute, "0001-01-01T00:00:59Z"), "0001-01-01T00:00:00Z");
}

#[test]
fn metrics_aggregate_a_field() {
    assert_eq!(buckets("price,metric:sum"), json!([{"sum":430.5}]));
    assert_eq!(buckets("rating,metric:min"), json!([{"min":-1.0}]));
    assert_eq!(buckets("rating, metric:max"), json!([{"max":5.0}]));
    assert_eq!(buckets("price,metric:avg,default:0"), json!([{"avg":107.625}]));
    assert_eq!(buckets("scores,metric:sum,default:1"), json!([{"sum":457.0}]));
    assert_eq!(buckets("tags,metric:cardinality"), json!([{"cardinality":3}]));
    assert_eq!(buckets("scores,metric:cardinality,precisionThreshold:3000"), json!([{"cardinality":6}]));
}

#[test]
fn two_expressions_on_a_field_share_its_list() {
    let found = count(&hotels(2), &["open", "open,metric:cardinality"], &AllQuery);
    assert_eq!(found, json!({"open":[{"value":true,"count":2},{"value":false,"count":1},{"cardinality":2}]}));
}

#[test]
fn counts_only_live_matching_documents() {
    let index = hotels(2);
    let mut writer: IndexWriter = index.index.writer_with_num_threads(1, 15_000_000).unwrap();
    writer.delete_term(Term::from_field_text(index.value("id"), "1"));
    writer.commit().unwrap();
    assert_eq!(
        count(&index, &["category"], &AllQuery)["category"],
        json!([{"value":"Budget","count":1},{"value":"Luxury","count":1},{"value":"Suite","count":1}])
    );
    let bars = TermQuery::new(Term::from_field_text(index.value("tags"), "bar"), IndexRecordOption::Basic);
    assert_eq!(
        count(&index, &["category"], &bars)["category"],
        json!([{"value":"Luxury","count":1},{"value":"Suite","count":1}])
    );
}

#[test]
fn a_pass_that_also_scores_counts_the_same() {
    let index = hotels(3);
    let facets =
        RequestFacets::parse(&["tags"], &index.schema, &index.columns, &Budget::unlimited()).unwrap();
    let collectors = (Count, TopDocs::with_limit(1).order_by_score(), facets);
    let (_, _, found) = index.searcher().search(&AllQuery, &collectors).unwrap();
    assert_eq!(json_of(&found)["tags"], buckets("tags"));
}

#[test]
fn skipping_rare_terms_of_large_dictionaries_does_not_change_counts() {
    let document = |number: usize| {
        let often = ["a", "b", "c"][number % 7 % 3];
        json!({"id": number.to_string(), "tags": [often, format!("rare{number}")]})
    };
    let documents: Vec<Value> = (0..3000).map(document).collect();
    let top = |per_segment| {
        let index = TestIndex::new(fields(), &[], &documents, per_segment);
        count(&index, &["tags,count:2"], &AllQuery)
    };
    let expected = json!({"tags":[{"value":"a","count":1286},{"value":"b","count":857}]});
    assert_eq!(top(3000), expected);
    assert_eq!(top(700), expected);
}

#[test]
fn errors_name_the_mistake() {
    for (expression, part) in [
        ("nothing", "no field 'nothing'"),
        ("place", "'place' is not facetable"),
        ("category,interval:5", "'category' holds neither numbers nor dates"),
        ("open,values:1", "'open' holds neither numbers nor dates"),
        ("price,interval:0", "above 0"),
        ("price,interval:day", "above 0"),
        ("built,interval:decade", "minute, hour"),
        ("built,interval:day,timeoffset:x", "-01:00"),
        ("price,interval:5,timeoffset:01:00", "timeoffset needs"),
        ("rating,values:3|2", "must ascend"),
        ("rating,values:3|x", "'x' is not a value"),
        ("rating,values:1,count:3", "cannot be combined"),
        ("rating,count:-1", "whole number"),
        ("rating,count:1,count:2", "specified twice"),
        ("rating,sort:up", "not 'up'"),
        ("rating,size:3", "'size' is not a parameter"),
        ("rating,5", "not a pair"),
        ("category,metric:sum", "only cardinality"),
        ("", "no field ''"),
    ] {
        let message = refusal(expression);
        assert!(message.contains(part), "{expression}: {message}");
    }
    assert!(refusal("category>tags").contains("nested"));
    assert!(refusal("(category,count:1)").contains("nested"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn counts_equal_naive_counts(
        documents in prop::collection::vec(
            (prop::option::of("[a-c]{1,2}"), prop::collection::vec(-300_000_i64..300_000, 0..4), prop::collection::vec("[a-d]", 0..4)),
            0..60,
        ),
        per_segment in 6_usize..40,
        limit in 0_usize..4,
    ) {
        let rows: Vec<Value> = documents
            .iter()
            .map(|(category, scores, tags)| json!({"id": "x", "category": category, "scores": scores, "tags": tags}))
            .collect();
        let index = TestIndex::new(fields(), &[], &rows, per_segment);
        let asked = [
            format!("category,count:{limit}"),
            format!("tags,count:{limit},sort:value"),
            "scores,interval:1000".to_owned(),
        ];
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let found = count(&index, &asked, &AllQuery);

        let mut categories: BTreeMap<&str, u64> = BTreeMap::new();
        let mut tags: BTreeMap<&str, u64> = BTreeMap::new();
        let mut scores: BTreeMap<i64, u64> = BTreeMap::new();
        for (category, own_scores, own_tags) in &documents {
            category.iter().for_each(|value| *categories.entry(value).or_default() += 1);
            let own: BTreeSet<&str> = own_tags.iter().map(String::as_str).collect();
            own.into_iter().for_each(|value| *tags.entry(value).or_default() += 1);
            let own: BTreeSet<i64> = own_scores.iter().map(|value| value.div_euclid(1000) * 1000).collect();
            own.into_iter().for_each(|value| *scores.entry(value).or_default() += 1);
        }
        let cut = if limit == 0 { usize::MAX } else { limit };
        let mut categories: Vec<_> = categories.into_iter().collect();
        categories.sort_by_key(|(value, count)| (std::cmp::Reverse(*count), *value));
        let list = |pairs: Vec<(Value, u64)>| -> Value {
            pairs.into_iter().map(|(value, count)| json!({"value": value, "count": count})).collect()
        };
        let text = |pairs: Vec<(&str, u64)>| {
            list(pairs.into_iter().take(cut).map(|(value, count)| (json!(value), count)).collect())
        };
        prop_assert_eq!(&found["category"], &text(categories));
        prop_assert_eq!(&found["tags"], &text(tags.into_iter().collect()));
        prop_assert_eq!(&found["scores"], &list(scores.into_iter().map(|(value, count)| (json!(value), count)).collect()));
    }
}
