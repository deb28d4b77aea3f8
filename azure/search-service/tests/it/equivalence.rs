//! Compares filters, order, pages and facets of an index with a simple loop over the documents.

mod generate;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use bindpost_azure_search_model::odata::ast::{FilterLiteral, OdataFilter, OrderCriterion, TextMatch};
use bindpost_azure_search_model::odata::evaluate::geojson_point;
use bindpost_azure_search_model::odata::{geo, matches, parse_filter, parse_orderby};
use bindpost_azure_search_service::internals::{parse_date, write_date};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use serde_json::{Value, json};

use self::generate::{Kind, LOWER, SINGLE, definition, document, filter, order};
use crate::engine::TestIndex;

const DOCUMENTS: usize = 180;

/// Returns a runner with the same cases in every run.
fn runner(cases: u32) -> TestRunner {
    let config = Config { failure_persistence: None, ..Config::with_cases(cases) };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// Checks a property on the same cases in every run, and shows the smallest failing case.
fn check<S: Strategy>(cases: u32, strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    if let Err(TestError::Fail(reason, case)) = runner(cases).run(&strategy, test) {
        panic!("{reason}\nsmallest case: {case:?}");
    }
}

/// Builds an index with several segments and with deleted and replaced documents in all of them. The
/// index is reopened.
fn index() -> TestIndex {
    let mut index = TestIndex::new(&definition());
    let mut runner = runner(1);
    let strategy = document();
    let mut next = |number: usize| {
        let mut document = strategy.new_tree(&mut runner).unwrap().current();
        document["id"] = format!("{number:03}").into();
        document
    };
    for segment in 0..6 {
        let numbers = segment * DOCUMENTS / 6..(segment + 1) * DOCUMENTS / 6;
        let mut documents: Vec<Value> = numbers.map(&mut next).collect();
        // Some earlier documents are replaced.
        documents.extend((0..segment * 20).step_by(11).map(&mut next));
        index.upload(documents);
    }
    let deleted: Vec<String> = (0..DOCUMENTS).step_by(7).map(|number| format!("{number:03}")).collect();
    index.delete(deleted.iter().map(String::as_str));
    index.reopen();
    index
}

#[test]
fn filters_find_what_a_loop_over_the_documents_finds() {
    let index = index();
    let model = Model::new(&index);
    check(700, filter(), |text| {
        let filter = parse_filter(&text, index.schema())
            .map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        let found = index.search(json!({"filter": text, "top": 1000, "count": true}));
        let keys: BTreeSet<&str> = found.keys.iter().map(String::as_str).collect();
        prop_assert_eq!(keys.len(), found.keys.len(), "{} found a document twice", text);
        prop_assert_eq!(found.count, Some(keys.len() as u64), "{}", text);
        prop_assert_eq!(keys, model.matching(&filter), "{}", text);
        Ok(())
    });
}

#[test]
fn order_is_that_of_the_values() {
    let index = index();
    let model = Model::new(&index);
    check(300, (order(), proptest::option::of(filter())), |(text, filter)| {
        let clauses = parse_orderby(&text, index.schema())
            .map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        let found = index.search(json!({"orderby": text, "filter": filter, "top": 1000}));
        let expected = match &filter {
            Some(filter) => model.matching(&parse_filter(filter, index.schema()).unwrap()),
            None => model.documents.keys().map(String::as_str).collect(),
        };
        prop_assert_eq!(found.keys.iter().map(String::as_str).collect::<BTreeSet<_>>(), expected);
        for pair in found.keys.windows(2) {
            let [left, right] = [&model.documents[&pair[0]], &model.documents[&pair[1]]];
            let order = clauses.iter().map(|clause| {
                let order = compare(&clause.by, left, right);
                if clause.descending { order.reverse() } else { order }
            });
            let order = order.fold(Ordering::Equal, Ordering::then);
            prop_assert_ne!(order, Ordering::Greater, "{}: {} and {}", text, left, right);
        }
        Ok(())
    });
}

/// Compares two documents by one clause. A missing value sorts before all others, and a missing point is
/// farther than all others.
fn compare(by: &OrderCriterion, left: &Value, right: &Value) -> Ordering {
    let (path, from) = match by {
        OrderCriterion::Score => return Ordering::Equal,
        OrderCriterion::Field(path) => (path, None),
        OrderCriterion::Distance { field, from } => (field, Some(*from)),
    };
    let kind = SINGLE.iter().find(|(name, _)| name == path).unwrap().1;
    let read = |document: &Value| -> Value {
        let found = path.split('/').try_fold(document, |value, name| value.get(name));
        found.cloned().unwrap_or_default()
    };
    let (left, right) = (read(left), read(right));
    if let Some(from) = from {
        let distance =
            |value: &Value| geojson_point(value).map_or(f64::INFINITY, |point| geo::kilometres(from, point));
        return distance(&left).total_cmp(&distance(&right));
    }
    match (left.is_null(), right.is_null()) {
        (false, false) => {}
        (left, right) => return right.cmp(&left),
    }
    match kind {
        Kind::Text => left.as_str().cmp(&right.as_str()),
        Kind::Flag => left.as_bool().cmp(&right.as_bool()),
        Kind::Date => parse_date(left.as_str().unwrap()).cmp(&parse_date(right.as_str().unwrap())),
        Kind::Double => double(&left).total_cmp(&double(&right)),
        _ => left.as_i64().cmp(&right.as_i64()),
    }
}

/// Converts a value to a double. Minus zero becomes zero, and NaN sorts above infinity.
fn double(value: &Value) -> f64 {
    match value.as_str() {
        Some("NaN") => f64::NAN,
        Some("INF") => f64::INFINITY,
        Some(_) => f64::NEG_INFINITY,
        None => value.as_f64().unwrap() + 0.0,
    }
}

#[test]
fn all_pages_together_are_the_whole_result() {
    let index = index();
    let order = proptest::option::of(order());
    let search = proptest::sample::select(vec!["*", "red", "red green blue", "blue -green"]);
    let case = (search, order, proptest::option::of(filter()), 1..60_usize);
    check(80, case, |(search, order, filter, page)| {
        let ask = |skip: usize, top: usize, count: bool| {
            let body = json!({
                "search": search, "orderby": order, "filter": filter, "skip": skip, "top": top, "count": count
            });
            index.search(body)
        };
        let whole = ask(0, 1000, false);
        prop_assert!(!whole.more);
        let mut paged = Vec::new();
        loop {
            // Like clients, only the first page requests a count. The count must not change the order.
            let found = ask(paged.len(), page, paged.is_empty());
            prop_assert!(found.keys.len() == page || !found.more);
            prop_assert!(found.count.is_none_or(|count| count == whole.keys.len() as u64));
            paged.extend(found.keys);
            if !found.more {
                break;
            }
        }
        prop_assert_eq!(paged, whole.keys);
        Ok(())
    });
}

#[test]
fn facets_count_what_a_loop_over_the_documents_counts() {
    let index = index();
    let model = Model::new(&index);
    let paths = [
        "name",
        "kind",
        "small",
        "big",
        "price",
        "open",
        "made",
        "address/city",
        "address/phones",
        "tags",
        "folded",
        "bigs",
        "ratios",
        "flags",
        "dates",
        "rooms/kind",
        "rooms/rate",
        "rooms/tags",
        "rooms/beds/size",
        "rooms/desk/drawers",
    ];
    let facets: Vec<String> = paths.iter().map(|path| format!("{path},count:0")).collect();
    check(60, proptest::option::of(filter()), |filter| {
        let found = index.search(json!({"filter": filter, "facets": facets, "top": 0}));
        let matching = match &filter {
            Some(filter) => model.matching(&parse_filter(filter, index.schema()).unwrap()),
            None => model.documents.keys().map(String::as_str).collect(),
        };
        for path in paths {
            let mut expected: BTreeMap<String, u64> = BTreeMap::new();
            for key in &matching {
                let mut values = BTreeSet::new();
                let primitive = index.schema().find(path).unwrap().kind.primitive().unwrap();
                collect(&model.documents[*key], path, &mut |value| {
                    values.insert(bucket(value, &format!("{primitive:?}")));
                });
                for value in values {
                    *expected.entry(value).or_default() += 1;
                }
            }
            let buckets = found.facets[path].as_array().unwrap();
            let counted =
                buckets.iter().map(|bucket| (bucket["value"].to_string(), bucket["count"].as_u64().unwrap()));
            let counted: BTreeMap<String, u64> = counted.collect();
            prop_assert_eq!(counted.len(), buckets.len(), "{} has a bucket twice", path);
            prop_assert_eq!(counted, expected, "{}", path);
            let counts: Vec<u64> = buckets.iter().map(|bucket| bucket["count"].as_u64().unwrap()).collect();
            prop_assert!(counts.is_sorted_by(|one, next| one >= next), "{}: {:?}", path, counts);
        }
        Ok(())
    });
}

/// Visits all values at a path, including those in collections.
fn collect(value: &Value, path: &str, take: &mut dyn FnMut(&Value)) {
    match value {
        Value::Null => {}
        Value::Array(list) => list.iter().for_each(|element| collect(element, path, take)),
        value if path.is_empty() => take(value),
        value => {
            let (name, rest) = path.split_once('/').unwrap_or((path, ""));
            collect(&value[name], rest, take);
        }
    }
}

/// Formats a value like a facet bucket.
fn bucket(value: &Value, primitive: &str) -> String {
    match primitive {
        "DateTimeOffset" => {
            let mut written = Vec::new();
            write_date(parse_date(value.as_str().unwrap()).unwrap(), &mut written);
            Value::from(String::from_utf8(written).unwrap()).to_string()
        }
        "Double" if value.is_number() => json!(double(value)).to_string(),
        _ => value.to_string(),
    }
}

/// The documents with normalized values, as conditions see them.
struct Model {
    documents: BTreeMap<String, Value>,
}

impl Model {
    fn new(index: &TestIndex) -> Self {
        let mut documents = index.documents.clone();
        for document in documents.values_mut() {
            for path in LOWER {
                lower(document, path);
            }
        }
        Self { documents }
    }

    fn matching(&self, filter: &OdataFilter) -> BTreeSet<&str> {
        let filter = normalized(filter);
        let matching = self
            .documents
            .iter()
            .filter(|(_, document)| matches(&filter, document, &mut |wanted| has_words(document, wanted)));
        matching.map(|(key, _)| key.as_str()).collect()
    }
}

fn lower(value: &mut Value, path: &str) {
    match value {
        Value::String(text) if path.is_empty() => *text = text.to_lowercase(),
        Value::Array(list) => list.iter_mut().for_each(|element| lower(element, path)),
        Value::Object(members) => {
            let (name, rest) = path.split_once('/').unwrap_or((path, ""));
            if let Some(member) = members.get_mut(name) {
                lower(member, rest);
            }
        }
        _ => {}
    }
}

fn normalized(filter: &OdataFilter) -> OdataFilter {
    let all = |parts: &[OdataFilter]| parts.iter().map(normalized).collect();
    let is_lower = |path: &str| LOWER.contains(&path);
    match filter.clone() {
        OdataFilter::And(parts) => OdataFilter::And(all(&parts)),
        OdataFilter::Or(parts) => OdataFilter::Or(all(&parts)),
        OdataFilter::Not(inner) => OdataFilter::Not(Box::new(normalized(&inner))),
        OdataFilter::Any { path, condition } => {
            OdataFilter::Any { path, condition: condition.map(|condition| Box::new(normalized(&condition))) }
        }
        OdataFilter::All { path, condition } => {
            OdataFilter::All { path, condition: Box::new(normalized(&condition)) }
        }
        OdataFilter::Compare { path, operator, value: FilterLiteral::String(text) }
            if is_lower(&path.field) =>
        {
            OdataFilter::Compare { path, operator, value: FilterLiteral::String(text.to_lowercase()) }
        }
        OdataFilter::In { path, values } if is_lower(&path.field) => {
            let values: BTreeSet<String> = values.iter().map(|value| value.to_lowercase()).collect();
            OdataFilter::In { path, values: values.into_iter().collect() }
        }
        other => other,
    }
}

/// Returns whether the fields contain all words, or one of them.
fn has_words(document: &Value, wanted: &TextMatch) -> bool {
    let mut words = BTreeSet::new();
    for path in ["words", "notes"] {
        if wanted.fields.is_empty() || wanted.fields.iter().any(|field| field == path) {
            collect(document, path, &mut |text| {
                words.extend(text.as_str().unwrap().split(' ').map(str::to_lowercase));
            });
        }
    }
    let mut asked = wanted.search.split(' ').map(str::to_lowercase);
    if wanted.all { asked.all(|word| words.contains(&word)) } else { asked.any(|word| words.contains(&word)) }
}

#[test]
fn numbers_within_elements_are_compared_to_the_last_digit() {
    // A JSON parser with imprecise numbers would return a different number.
    let number = 942_477.796_076_937_9_f64;
    let mut index = TestIndex::new(&definition());
    index.upload([
        json!({"id": "1", "ratios": [number], "rooms": [{"rate": number, "label": "a"}]}),
        json!({"id": "2", "ratios": [number.next_up()], "rooms": [{"rate": number.next_down(), "label": "a"}]}),
    ]);
    for filter in [
        "ratios/any(r: r eq 942477.7960769379)",
        "rooms/any(r: r/rate eq 942477.7960769379)",
        "rooms/any(r: r/rate eq 942477.7960769379 and r/label eq 'a')",
        "not ratios/any(r: r ne 942477.7960769379)",
        "rooms/all(r: r/rate ge 942477.7960769379 or r/label eq 'b')",
    ] {
        assert_eq!(index.search(json!({ "filter": filter })).keys, ["1"], "{filter}");
    }
}

#[test]
fn normalizers_apply_to_conditions_on_one_element() {
    let mut index = TestIndex::new(&definition());
    index.upload([
        json!({"id": "1", "rooms": [{"kind": "Suite", "rate": 5.0}, {"kind": "Loft", "rate": 1.0}]}),
    ]);
    for (filter, found) in [
        ("rooms/any(r: r/kind eq 'SUITE')", true),
        ("rooms/any(r: r/kind eq 'SUITE' and r/rate gt 2)", true),
        ("rooms/any(r: r/kind eq 'suite' and r/rate lt 2)", false),
        ("rooms/any(r: search.in(r/kind, 'LOFT,SUITE') and r/rate lt 2)", true),
        ("rooms/all(r: r/kind ne 'suite' or r/rate gt 2)", true),
    ] {
        assert_eq!(index.search(json!({ "filter": filter })).keys.len() == 1, found, "{filter}");
    }
}
