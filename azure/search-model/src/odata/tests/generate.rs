//! Generates random filters and documents, and prints filters as text.

use std::fmt::Write;

use chrono::{DateTime, SecondsFormat};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::super::ast::{ComparisonOperator, FieldPath, FilterLiteral, GeoPoint, OdataFilter, TextMatch};
use super::hotels;
use crate::definition::PrimitiveType;

/// The scope of a condition, which determines the fields it may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Place {
    Root,
    Tag,
    Score,
    Spot,
    Room,
    RoomTag,
}

pub(super) fn condition(place: Place, depth: u32) -> BoxedStrategy<OdataFilter> {
    let leaf = leaf(place);
    if depth == 0 {
        return leaf;
    }
    let inner = || condition(place, depth - 1);
    let parts = || vec(inner(), 2..4);
    let joined = prop_oneof![
        parts().prop_map(|parts| OdataFilter::And(flat(parts, true))),
        parts().prop_map(|parts| OdataFilter::Or(flat(parts, false))),
        inner().prop_map(|inner| OdataFilter::Not(Box::new(inner))),
    ];
    let lambdas = match place {
        Place::Root => prop_oneof![
            lambda(Place::Tag, "tags", None, depth),
            lambda(Place::Score, "scores", None, depth),
            lambda(Place::Spot, "places", None, depth),
            lambda(Place::Room, "rooms", None, depth),
        ]
        .boxed(),
        Place::Room => lambda(Place::RoomTag, "rooms/tags", Some(0), depth),
        _ => leaf.clone(),
    };
    prop_oneof![2 => leaf, 2 => joined, 2 => lambdas].boxed()
}

fn flat(parts: Vec<OdataFilter>, all: bool) -> Vec<OdataFilter> {
    parts
        .into_iter()
        .flat_map(|part| match (part, all) {
            (OdataFilter::And(parts), true) | (OdataFilter::Or(parts), false) => parts,
            (other, _) => vec![other],
        })
        .collect()
}

fn lambda(place: Place, field: &'static str, up: Option<usize>, depth: u32) -> BoxedStrategy<OdataFilter> {
    let path = path(field, field.rsplit('/').next(), up);
    (condition(place, depth - 1).prop_map(Box::new), 0..5)
        .prop_map(move |(condition, form)| match form {
            0 => OdataFilter::Any { path: path.clone(), condition: None },
            1 | 2 => OdataFilter::Any { path: path.clone(), condition: Some(condition) },
            _ => OdataFilter::All { path: path.clone(), condition },
        })
        .boxed()
}

fn path(field: &str, members: Option<&str>, lambda: Option<usize>) -> FieldPath {
    let members = members.into_iter().flat_map(|members| members.split('/')).map(str::to_owned).collect();
    FieldPath { field: field.to_owned(), members, lambda }
}

fn leaf(place: Place) -> BoxedStrategy<OdataFilter> {
    let root = |field: &str| path(field, Some(field), None);
    let room = |name: &str, up| path(&format!("rooms/{name}"), Some(name), Some(up));
    let paths = match place {
        Place::Root => {
            ["category", "rating", "visits", "price", "isOpen", "opened", "location", "address/city"]
                .iter()
                .map(|field| root(field))
                .collect()
        }
        Place::Tag => vec![path("tags", None, Some(0)), root("rating")],
        Place::Score => vec![path("scores", None, Some(0)), root("category")],
        Place::Spot => vec![path("places", None, Some(0)), root("location")],
        Place::Room => vec![room("kind", 0), room("baseRate", 0), room("smoking", 0), root("price")],
        Place::RoomTag => vec![path("rooms/tags", None, Some(0)), room("kind", 1), root("isOpen")],
    };
    let compared = select(paths).prop_flat_map(compare);
    if place != Place::Root {
        return compared.boxed();
    }
    prop_oneof![
        8 => compared,
        1 => any::<bool>().prop_map(OdataFilter::Constant),
        1 => ("[a-c']{0,4}", select(vec![vec![], vec!["category".to_owned()]]), any::<[bool; 3]>()).prop_map(
            |(search, fields, [full, all, scoring])| OdataFilter::Match(TextMatch { search, fields, full, all, scoring })
        ),
    ]
    .boxed()
}

fn compare(path: FieldPath) -> BoxedStrategy<OdataFilter> {
    use ComparisonOperator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let kind = hotels().find(&path.field).unwrap().kind.primitive().unwrap();
    let ordered = || select(vec![Less, LessOrEqual, Greater, GreaterOrEqual]);
    let every = || select(vec![Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual]);
    let equality = || select(vec![Equal, NotEqual]);
    let filter = |path: FieldPath| {
        move |(operator, value)| OdataFilter::Compare { path: path.clone(), operator, value }
    };
    let null = (equality(), Just(FilterLiteral::Null)).prop_map(filter(path.clone()));
    let other = match kind {
        PrimitiveType::String => {
            let values = vec("[a-c']{1,2}", 0..4);
            let list = path.clone();
            return prop_oneof![
                1 => null,
                4 => (every(), "[a-c']{0,2}".prop_map(FilterLiteral::String)).prop_map(filter(path)),
                2 => values.prop_map(move |mut values| {
                    values.sort();
                    values.dedup();
                    OdataFilter::In { path: list.clone(), values }
                }),
            ]
            .boxed();
        }
        PrimitiveType::GeographyPoint => {
            let near = path.clone();
            return prop_oneof![
                1 => null,
                3 => (point(), ordered(), 0.0..20_000.0).prop_map(move |(point, operator, kilometres)| {
                    OdataFilter::Distance { path: near.clone(), point, operator, kilometres }
                }),
                2 => (point(), 0.5..20.0, 0.5..10.0).prop_map(move |(corner, width, height)| {
                    let (west, south) = (corner.longitude / 2.0, corner.latitude / 2.0);
                    let at = |longitude, latitude| GeoPoint { longitude, latitude };
                    let (east, north) = (west + width, south + height);
                    let ring = vec![
                        at(west, south),
                        at(east, south),
                        at(east, north),
                        at(west, north),
                        at(west, south),
                    ];
                    OdataFilter::Within { path: path.clone(), ring }
                }),
            ]
            .boxed();
        }
        PrimitiveType::Boolean => (equality(), any::<bool>().prop_map(FilterLiteral::Boolean)).boxed(),
        PrimitiveType::Double => (every(), double().prop_map(FilterLiteral::Double)).boxed(),
        PrimitiveType::DateTimeOffset => (every(), date().prop_map(FilterLiteral::Date)).boxed(),
        _ => (every(), integer().prop_map(FilterLiteral::Integer)).boxed(),
    };
    prop_oneof![1 => null, 4 => other.prop_map(filter(path))].boxed()
}

fn integer() -> BoxedStrategy<i64> {
    prop_oneof![4 => -3..3_i64, 1 => any::<i64>()].boxed()
}

fn double() -> BoxedStrategy<f64> {
    prop_oneof![
        4 => select(vec![-1.5, 0.0, 0.5, 1.0, 2.0]),
        1 => any::<f64>().prop_filter("unequal to itself", |number| !number.is_nan()),
        1 => Just(f64::INFINITY),
    ]
    .boxed()
}

fn date() -> BoxedStrategy<i64> {
    prop_oneof![-2..2_i64, -62_135_596_800_000..253_402_300_799_000_i64].boxed()
}

fn point() -> BoxedStrategy<GeoPoint> {
    (-180.0..180.0, -90.0..90.0).prop_map(|(longitude, latitude)| GeoPoint { longitude, latitude }).boxed()
}

pub(super) fn document() -> BoxedStrategy<Value> {
    let text = || prop_oneof![1 => Just(Value::Null), 4 => "[a-c']{0,2}".prop_map(Value::from)];
    let flag = || select(vec![Value::Null, json!(true), json!(false)]);
    let integer = || prop_oneof![1 => Just(Value::Null), 4 => integer().prop_map(Value::from)];
    let double = || {
        let named = select(vec![Value::Null, json!("NaN"), json!("INF"), json!("-INF")]);
        prop_oneof![1 => named, 4 => double().prop_map(|number| json!(number))]
    };
    let date = prop_oneof![1 => Just(Value::Null), 4 => date().prop_map(|date| json!(written(date)))];
    let spot = || point().prop_map(|at| json!({"type": "Point", "coordinates": [at.longitude, at.latitude]}));
    let location = prop_oneof![1 => Just(Value::Null), 4 => spot()];
    let tags = || vec("[a-c']{0,2}", 0..3);
    let room = (text(), double(), flag(), tags()).prop_map(
        |(kind, rate, smoking, tags)| json!({"kind": kind, "baseRate": rate, "smoking": smoking, "tags": tags}),
    );
    let simple = (text(), integer(), integer(), double(), flag(), date, location, text());
    let collections = (tags(), vec(-3..3_i64, 0..3), vec(spot(), 0..3), vec(room, 0..3));
    (simple, collections)
        .prop_map(|(simple, (tags, scores, places, rooms))| {
            let (category, rating, visits, price, is_open, opened, location, city) = simple;
            json!({
                "category": category, "rating": rating, "visits": visits, "price": price, "isOpen": is_open,
                "opened": opened, "location": location, "address": {"city": city}, "tags": tags, "scores": scores,
                "places": places, "rooms": rooms
            })
        })
        .boxed()
}

fn written(date: i64) -> String {
    DateTime::from_timestamp_millis(date).unwrap().to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

pub(super) fn print(filter: &OdataFilter, depth: usize) -> String {
    let joined = |parts: &[OdataFilter], word: &str| {
        let parts: Vec<_> = parts.iter().map(|part| format!("({})", print(part, depth))).collect();
        parts.join(word)
    };
    match filter {
        OdataFilter::Constant(value) => value.to_string(),
        OdataFilter::And(parts) => joined(parts, " and "),
        OdataFilter::Or(parts) => joined(parts, " or "),
        OdataFilter::Not(inner) => format!("not ({})", print(inner, depth)),
        OdataFilter::Compare { path, operator, value } => {
            format!("{} {} {}", variable(path, depth), word(*operator), literal(value))
        }
        OdataFilter::In { path, values } => {
            format!("search.in({},{},'|')", variable(path, depth), quote(&values.join("|")))
        }
        OdataFilter::Any { path, condition: None } => format!("{}/any()", variable(path, depth)),
        OdataFilter::Any { path, condition: Some(condition) } => {
            format!("{}/any(v{depth}:{})", variable(path, depth), print(condition, depth + 1))
        }
        OdataFilter::All { path, condition } => {
            format!("{}/all(v{depth}: {})", variable(path, depth), print(condition, depth + 1))
        }
        OdataFilter::Distance { path, point, operator, kilometres } => {
            let (path, at) = (variable(path, depth), coordinates(point));
            format!("geo.distance({path}, geography'POINT({at})') {} {kilometres:?}", word(*operator))
        }
        OdataFilter::Within { path, ring } => {
            let ring: Vec<_> = ring.iter().map(coordinates).collect();
            format!("geo.intersects({}, geography'POLYGON(({}))')", variable(path, depth), ring.join(", "))
        }
        OdataFilter::Match(wanted) => {
            let function = if wanted.scoring { "search.ismatchscoring" } else { "search.ismatch" };
            let kind = if wanted.full { "full" } else { "simple" };
            let mode = if wanted.all { "all" } else { "any" };
            let fields = quote(&wanted.fields.join(","));
            format!("{function}({}, {fields}, '{kind}', '{mode}')", quote(&wanted.search))
        }
    }
}

fn variable(path: &FieldPath, depth: usize) -> String {
    let mut text = match path.lambda {
        Some(up) => format!("v{}", depth - 1 - up),
        None => String::new(),
    };
    for member in &path.members {
        let slash = if text.is_empty() { "" } else { "/" };
        write!(text, "{slash}{member}").unwrap();
    }
    text
}

fn word(operator: ComparisonOperator) -> &'static str {
    match operator {
        ComparisonOperator::Equal => "eq",
        ComparisonOperator::NotEqual => "ne",
        ComparisonOperator::Less => "lt",
        ComparisonOperator::LessOrEqual => "le",
        ComparisonOperator::Greater => "gt",
        ComparisonOperator::GreaterOrEqual => "ge",
    }
}

fn literal(literal: &FilterLiteral) -> String {
    match literal {
        FilterLiteral::Null => "null".to_owned(),
        FilterLiteral::Boolean(value) => value.to_string(),
        FilterLiteral::Integer(number) => number.to_string(),
        FilterLiteral::Double(number) if number.is_infinite() => {
            if *number > 0.0 { "INF" } else { "-INF" }.to_owned()
        }
        FilterLiteral::Double(number) => format!("{number:?}"),
        FilterLiteral::String(text) => quote(text),
        FilterLiteral::Date(date) => written(*date),
    }
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn coordinates(point: &GeoPoint) -> String {
    format!("{:?} {:?}", point.longitude, point.latitude)
}
