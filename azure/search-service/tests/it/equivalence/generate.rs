//! Random documents and filters. They use the same few values, so that filters match.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// The type of a value in conditions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Text,
    Int32,
    Int64,
    Double,
    Flag,
    Date,
    Point,
    Room,
    Bed,
}

/// Fields with at most one value. `kind` and `city` have normalizers.
pub(super) const SINGLE: [(&str, Kind); 11] = [
    ("name", Kind::Text),
    ("kind", Kind::Text),
    ("small", Kind::Int32),
    ("big", Kind::Int64),
    ("price", Kind::Double),
    ("open", Kind::Flag),
    ("made", Kind::Date),
    ("place", Kind::Point),
    ("address/city", Kind::Text),
    ("address/zip", Kind::Int64),
    ("address/spot", Kind::Point),
];

const COLLECTIONS: [(&str, Kind); 9] = [
    ("tags", Kind::Text),
    ("folded", Kind::Text),
    ("bigs", Kind::Int64),
    ("ratios", Kind::Double),
    ("flags", Kind::Flag),
    ("dates", Kind::Date),
    ("spots", Kind::Point),
    ("address/phones", Kind::Text),
    ("rooms", Kind::Room),
];

const OF_ROOM: [(&str, Kind); 8] = [
    ("kind", Kind::Text),
    ("label", Kind::Text),
    ("rate", Kind::Double),
    ("count", Kind::Int64),
    ("smoking", Kind::Flag),
    ("since", Kind::Date),
    ("spot", Kind::Point),
    ("desk/drawers", Kind::Int32),
];

const OF_BED: [(&str, Kind); 2] = [("size", Kind::Int32), ("wood", Kind::Text)];

/// Fields whose values are compared in lower case.
pub(super) const LOWER: [&str; 4] = ["kind", "address/city", "folded", "rooms/kind"];

pub(super) fn definition() -> Value {
    let field = |name: &str, kind: &str| {
        let mut field = json!({"name": name, "type": kind, "filterable": true});
        if kind.contains("String") {
            field["searchable"] = json!(false);
        }
        field
    };
    let lower = |name: &str, kind: &str| {
        let mut field = field(name, kind);
        field["normalizer"] = json!("lowercase");
        field
    };
    let text = |name: &str, kind: &str| json!({"name": name, "type": kind, "searchable": true});
    json!({
        "name": "everything",
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true, "searchable": false, "sortable": true},
            field("name", "Edm.String"),
            lower("kind", "Edm.String"),
            field("small", "Edm.Int32"),
            field("big", "Edm.Int64"),
            field("price", "Edm.Double"),
            field("open", "Edm.Boolean"),
            field("made", "Edm.DateTimeOffset"),
            field("place", "Edm.GeographyPoint"),
            text("words", "Edm.String"),
            text("notes", "Collection(Edm.String)"),
            {"name": "address", "type": "Edm.ComplexType", "fields": [
                lower("city", "Edm.String"),
                field("zip", "Edm.Int64"),
                field("spot", "Edm.GeographyPoint"),
                field("phones", "Collection(Edm.String)"),
            ]},
            field("tags", "Collection(Edm.String)"),
            lower("folded", "Collection(Edm.String)"),
            field("bigs", "Collection(Edm.Int64)"),
            field("ratios", "Collection(Edm.Double)"),
            field("flags", "Collection(Edm.Boolean)"),
            field("dates", "Collection(Edm.DateTimeOffset)"),
            field("spots", "Collection(Edm.GeographyPoint)"),
            {"name": "rooms", "type": "Collection(Edm.ComplexType)", "fields": [
                lower("kind", "Edm.String"),
                field("label", "Edm.String"),
                field("rate", "Edm.Double"),
                field("count", "Edm.Int64"),
                field("smoking", "Edm.Boolean"),
                field("since", "Edm.DateTimeOffset"),
                field("spot", "Edm.GeographyPoint"),
                {"name": "desk", "type": "Edm.ComplexType", "fields": [field("drawers", "Edm.Int32")]},
                field("tags", "Collection(Edm.String)"),
                {"name": "beds", "type": "Collection(Edm.ComplexType)", "fields": [
                    field("size", "Edm.Int32"),
                    field("wood", "Edm.String"),
                ]},
            ]},
        ],
    })
}

const TEXTS: [&str; 16] = [
    "",
    "a",
    "A",
    "ab",
    "AB",
    "aB",
    "b",
    "é",
    "É",
    "e\u{301}",
    "it's",
    "a b",
    "日本",
    "Straße",
    "\u{10ffff}",
    "~",
];
const INT32: [i64; 8] = [-2_147_483_648, -2_147_483_647, -2, -1, 0, 1, 2, 2_147_483_647];
const INT64: [i64; 9] = [i64::MIN, i64::MIN + 1, -2, -1, 0, 1, 2, i64::MAX - 1, i64::MAX];
const DATES: [&str; 12] = [
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00.001Z",
    "1677-09-21T00:12:43.145Z",
    "1677-09-21T00:12:44Z",
    "1969-12-31T23:59:59.999Z",
    "1970-01-01T00:00:00Z",
    "2024-02-29T12:00:00+02:00",
    "2024-02-29T10:00:00Z",
    "2262-04-11T23:47:16.854Z",
    "2262-04-11T23:47:17Z",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59.999Z",
];
const POINTS: [(f64, f64); 8] = [
    (0.0, 0.0),
    (-0.0, -0.0),
    (180.0, 0.0),
    (-180.0, 0.0),
    (12.5, -45.25),
    (-122.131577, 47.678581),
    (0.0, 90.0),
    (33.333333333333336, -89.99999999999999),
];
const WORDS: [&str; 5] = ["red", "green", "blue", "Red", "violet"];

/// Returns common and extreme doubles, and some with the maximum number of digits.
fn doubles() -> Vec<f64> {
    let named = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -0.0,
        0.0,
        5e-324,
        f64::MAX,
        f64::MIN,
        -1.5,
        0.1,
        0.3,
        0.1 + 0.2,
        9_007_199_254_740_993.0,
    ];
    let digits = (1..12).map(|step| f64::from(step) * std::f64::consts::PI * 1e5_f64.powi(step % 5 - 2));
    named.into_iter().chain(digits).collect()
}

fn double_value(number: f64) -> Value {
    if number.is_nan() {
        return json!("NaN");
    }
    match number {
        f64::INFINITY => json!("INF"),
        f64::NEG_INFINITY => json!("-INF"),
        number => json!(number),
    }
}

fn double_literal(number: f64) -> String {
    double_value(number).as_str().map_or_else(|| format!("{number:?}"), str::to_owned)
}

/// Returns a value of a kind for documents.
fn value(kind: Kind) -> BoxedStrategy<Value> {
    match kind {
        Kind::Text => select(&TEXTS[..]).prop_map(Value::from).boxed(),
        Kind::Int32 => select(&INT32[..]).prop_map(Value::from).boxed(),
        Kind::Int64 => select(&INT64[..]).prop_map(Value::from).boxed(),
        Kind::Double => select(doubles()).prop_map(double_value).boxed(),
        Kind::Flag => any::<bool>().prop_map(Value::from).boxed(),
        Kind::Date => select(&DATES[..]).prop_map(Value::from).boxed(),
        Kind::Point => select(&POINTS[..])
            .prop_map(|(longitude, latitude)| json!({"type": "Point", "coordinates": [longitude, latitude]}))
            .boxed(),
        Kind::Room => {
            let tags = vec(value(Kind::Text), 0..3).prop_map(|tags| ("tags", Value::from(tags)));
            let beds = vec(value(Kind::Bed), 0..3).prop_map(|beds| ("beds", Value::from(beds)));
            (object(&OF_ROOM), tags, beds)
                .prop_map(|(mut room, (tags, tag_list), (beds, bed_list))| {
                    room[tags] = tag_list;
                    room[beds] = bed_list;
                    room
                })
                .boxed()
        }
        Kind::Bed => object(&OF_BED).boxed(),
    }
}

/// Returns an object with these members. Each one may be null or absent.
fn object(members: &'static [(&'static str, Kind)]) -> impl Strategy<Value = Value> {
    let values: Vec<_> = members
        .iter()
        .map(|(_, kind)| {
            prop_oneof![
                1 => Just(None),
                1 => Just(Some(Value::Null)),
                6 => value(*kind).prop_map(Some)
            ]
        })
        .collect();
    values.prop_map(|values| {
        let mut object = Value::Object(Map::new());
        for ((path, _), value) in members.iter().zip(values) {
            let Some(value) = value else { continue };
            match path.split_once('/') {
                None => object[path] = value,
                Some((outer, inner)) => object[outer][inner] = value,
            }
        }
        object
    })
}

fn words(most: usize) -> impl Strategy<Value = String> {
    vec(select(&WORDS[..]), 0..most).prop_map(|words| words.join(" "))
}

/// Returns a document without its key.
pub(super) fn document() -> impl Strategy<Value = Value> {
    let collections: Vec<_> =
        COLLECTIONS.iter().map(|(_, kind)| proptest::option::of(vec(value(*kind), 0..3))).collect();
    (object(&SINGLE), collections, words(4), vec(words(3), 0..2), 0..8).prop_map(
        |(mut document, collections, words, notes, complex)| {
            for ((path, _), list) in COLLECTIONS.iter().zip(collections) {
                let Some(list) = list else { continue };
                match path.split_once('/') {
                    None => document[path] = Value::from(list),
                    Some((outer, inner)) => document[outer][inner] = Value::from(list),
                }
            }
            if complex == 0 {
                document["address"] = Value::Null;
            }
            document["words"] = words.into();
            document["notes"] = notes.into();
            document
        },
    )
}

/// The names that a condition may use: values and collections.
#[derive(Debug, Clone)]
struct Place {
    values: Vec<(String, Kind)>,
    collections: Vec<(String, Kind)>,
    /// The number of enclosing lambdas.
    depth: usize,
}

impl Place {
    fn root() -> Self {
        let named =
            |fields: &[(&str, Kind)]| fields.iter().map(|(path, kind)| ((*path).to_owned(), *kind)).collect();
        Self { values: named(&SINGLE), collections: named(&COLLECTIONS), depth: 0 }
    }

    /// Returns the scope within a lambda over elements of a kind. Values of outer scopes stay available.
    fn within(&self, kind: Kind) -> Self {
        let variable = format!("v{}", self.depth);
        let below = |fields: &[(&str, Kind)]| -> Vec<(String, Kind)> {
            fields.iter().map(|(path, kind)| (format!("{variable}/{path}"), *kind)).collect()
        };
        let (own, collections) = match kind {
            Kind::Room => (below(&OF_ROOM), below(&[("tags", Kind::Text), ("beds", Kind::Bed)])),
            Kind::Bed => (below(&OF_BED), Vec::new()),
            kind => (vec![(variable.clone(), kind)], Vec::new()),
        };
        // Values of the element itself are more frequent.
        let mut values = Vec::new();
        for _ in 0..5 {
            values.extend(own.iter().cloned());
        }
        values.extend(self.values.iter().take(8).cloned());
        Self { values, collections, depth: self.depth + 1 }
    }
}

/// Returns the text of a filter.
pub(super) fn filter() -> BoxedStrategy<String> {
    condition(&Place::root(), 3)
}

fn condition(place: &Place, depth: usize) -> BoxedStrategy<String> {
    let values = place.values.clone();
    let compared = select(values).prop_flat_map(|(path, kind)| comparison(&path, kind));
    let constant = select(vec!["true".to_owned(), "false".to_owned()]);
    let leaf = match place.depth {
        0 => prop_oneof![12 => compared, 1 => constant, 1 => text_match()].boxed(),
        _ => prop_oneof![12 => compared, 1 => constant].boxed(),
    };
    if depth == 0 {
        return leaf;
    }
    let inner = condition(place, depth - 1);
    let joined = |word: &'static str| {
        vec(inner.clone().prop_map(|part| format!("({part})")), 2..4).prop_map(move |parts| parts.join(word))
    };
    let negated = inner.clone().prop_map(|inner| format!("not ({inner})"));
    let mut choices = vec![(3, leaf), (1, joined(" and ").boxed()), (1, joined(" or ").boxed())];
    choices.push((1, negated.boxed()));
    for (path, kind) in &place.collections {
        let variable = format!("v{}", place.depth);
        let body = condition(&place.within(*kind), depth - 1);
        let path = path.clone();
        let lambda = (0..7, body).prop_map(move |(form, body)| match form {
            0 => format!("{path}/any()"),
            1..=3 => format!("{path}/any({variable}: {body})"),
            _ => format!("{path}/all({variable}: {body})"),
        });
        let weight = if *kind == Kind::Room { 3 } else { 1 };
        choices.push((weight, lambda.boxed()));
    }
    proptest::strategy::Union::new_weighted(choices).boxed()
}

fn comparison(path: &str, kind: Kind) -> BoxedStrategy<String> {
    let path = path.to_owned();
    let null = {
        let path = path.clone();
        select(vec!["eq", "ne"]).prop_map(move |operator| format!("{path} {operator} null"))
    };
    let with = |literal: BoxedStrategy<String>| {
        let path = path.clone();
        let operators =
            if kind == Kind::Flag { &["eq", "ne"][..] } else { &["eq", "ne", "lt", "le", "gt", "ge"] };
        (literal, select(operators), 0..8).prop_map(move |(literal, operator, side)| match side {
            0 => format!("{literal} {operator} {path}"),
            _ => format!("{path} {operator} {literal}"),
        })
    };
    let other = match kind {
        Kind::Text => {
            let list = path.clone();
            let chosen = vec(select(&TEXTS[..]), 0..4)
                .prop_map(move |texts| format!("search.in({list}, {}, '|')", quoted(&texts.join("|"))));
            prop_oneof![3 => with(select(&TEXTS[..]).prop_map(quoted).boxed()), 1 => chosen].boxed()
        }
        Kind::Int32 => {
            let fraction = select(vec!["0.5".to_owned(), "-1e300".to_owned(), "2.0".to_owned()]);
            let whole = prop_oneof![3 => select(&INT32[..]), 1 => select(&INT64[..])];
            with(prop_oneof![4 => whole.prop_map(|number| number.to_string()), 1 => fraction].boxed()).boxed()
        }
        Kind::Int64 => {
            let fraction =
                select(vec!["0.5".to_owned(), "1e19".to_owned(), "9223372036854775807.0".to_owned()]);
            let whole = select(&INT64[..]).prop_map(|number| number.to_string());
            with(prop_oneof![4 => whole, 1 => fraction].boxed()).boxed()
        }
        Kind::Double => {
            let whole = select(&INT64[..]).prop_map(|number| number.to_string());
            with(prop_oneof![6 => select(doubles()).prop_map(double_literal), 1 => whole].boxed()).boxed()
        }
        Kind::Flag => {
            let flag = path.clone();
            prop_oneof![with(any::<bool>().prop_map(|flag| flag.to_string()).boxed()), Just(flag)].boxed()
        }
        Kind::Date => with(select(&DATES[..]).prop_map(str::to_owned).boxed()).boxed(),
        Kind::Point => geography(path.clone()),
        Kind::Room | Kind::Bed => unreachable!("complex values are not compared"),
    };
    prop_oneof![1 => null, 5 => other].boxed()
}

fn geography(path: String) -> BoxedStrategy<String> {
    let near = path.clone();
    let limits = vec![0.0, 1.0, 111.2, 5000.0, 20_015.0, 30_000.0];
    let distance = (select(&POINTS[..]), select(vec!["lt", "le", "gt", "ge"]), select(limits)).prop_map(
        move |((longitude, latitude), operator, limit)| {
            format!("geo.distance({near}, geography'POINT({longitude:?} {latitude:?})') {operator} {limit:?}")
        },
    );
    let rings = vec![
        "-1 -1, 1 -1, 1 1, -1 1, -1 -1",
        "10 -50, 20 -50, 20 -40, 10 -40, 10 -50",
        "170 -10, -170 -10, -170 10, 170 10, 170 -10",
        "-130 40, -120 40, -120 50, -130 40",
    ];
    let within =
        select(rings).prop_map(move |ring| format!("geo.intersects({path}, geography'POLYGON(({ring}))')"));
    prop_oneof![distance, within].boxed()
}

fn text_match() -> impl Strategy<Value = String> {
    let fields = select(vec!["null", "'words'", "'notes'", "'words,notes'"]);
    let words = vec(select(&WORDS[..]), 1..3).prop_map(|words| words.join(" "));
    let function = select(vec!["search.ismatch", "search.ismatchscoring"]);
    (function, words, fields, select(vec!["simple", "full"]), select(vec!["any", "all"])).prop_map(
        |(function, words, fields, syntax, mode)| {
            format!("{function}('{words}', {fields}, '{syntax}', '{mode}')")
        },
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns `$orderby` with several clauses.
pub(super) fn order() -> impl Strategy<Value = String> {
    let clause = (select(&SINGLE[..]), select(&POINTS[..]), select(vec!["", " asc", " desc"])).prop_map(
        |((path, kind), (longitude, latitude), direction)| match kind {
            Kind::Point => {
                format!("geo.distance({path}, geography'POINT({longitude:?} {latitude:?})'){direction}")
            }
            _ => format!("{path}{direction}"),
        },
    );
    vec(clause, 1..4).prop_map(|clauses| clauses.join(", "))
}
