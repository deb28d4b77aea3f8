//! Calls with generated arguments, valid and hostile, through MCP to a real service. Each call ends with
//! a result or a tool error, and every request that reaches the service belongs to the called operation.
//!
//! The generator always uses the same seed, so that failures are reproducible.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindpost_mcp_openapi::{
    BodyFormat, Bridge, Credential, Document, LoadOptions, Operation, Parameter, ParameterLocation,
    ParameterStyle, Secret, ToolForm, Upstream, body_argument,
};
use bindpost_mcp_server::Caller;
use http::HeaderName;
use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use crate::bridge_pets::{client, serve};
use crate::upstream_service::{Answer, Seen, Service, answer, quick};

const KEY: &str = "the-key-of-the-operator";

/// Texts that have caused problems in other bridges.
const TRICKS: [&str; 44] = [
    "",
    " ",
    ".",
    "..",
    "...",
    "../",
    "../../servicestats",
    "/../..",
    "..;/",
    "..;/admin",
    "\\..\\",
    "..\\..\\x",
    "%2e%2e%2f",
    "%2e%2e",
    "%252e%252e%252f",
    "..%c0%af",
    "%00",
    "%0d%0aX-Injected:%201",
    "a\0b",
    "\r\nX-Injected: 1",
    "a\nX-Injected: 1",
    "\u{7f}",
    "\u{85}",
    "\u{202e}evil",
    "\u{feff}",
    "日本語 🦀 e\u{301}",
    "http://evil.example/",
    "//evil.example/",
    "https://user:pass@evil.example:1/x?y#z",
    "@evil.example",
    ":80",
    "?x-injected=1",
    "&x-injected=1",
    "a;x-injected=1",
    "#fragment",
    "a/b/c",
    "x')/docs('y",
    "it's",
    "__proto__",
    "constructor",
    "{text}",
    "${jndi:ldap://evil.example}",
    "a=b; session=evil",
    "'; DROP TABLE pets; --",
];

fn text() -> BoxedStrategy<String> {
    prop_oneof![
        6 => prop::sample::select(TRICKS.to_vec()).prop_map(str::to_owned),
        3 => "[a-z]{1,8}",
        2 => any::<String>(),
        1 => Just("x".repeat(100_000)),
        1 => Just("../".repeat(3_000)),
    ]
    .boxed()
}

/// Values that no schema allows, or that are at its limits.
fn hostile() -> BoxedStrategy<Value> {
    let deep = (1..100_usize).prop_map(|depth| (0..depth).fold(json!(".."), |inner, _| json!([inner])));
    let leaf = prop_oneof![
        6 => text().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => prop::sample::select(vec![json!(u64::MAX), json!(i64::MIN), json!(f64::MAX), json!(5e-324), json!(-0.0)]),
        1 => deep,
        1 => Just(json!(vec!["a"; 5_000])),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
    .boxed()
}

/// Values that a schema allows, as far as its types show.
fn fitting(schema: &Value, root: &Value, depth: usize) -> BoxedStrategy<Value> {
    let alternatives = ["oneOf", "anyOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array());
    if let Some(reference) = schema["$ref"].as_str() {
        let found = root.pointer(reference.trim_start_matches('#')).unwrap_or(&Value::Null);
        return if depth > 4 { Just(json!({})).boxed() } else { fitting(found, root, depth + 1) };
    }
    if let Some(values) = schema["enum"].as_array().filter(|values| !values.is_empty()) {
        return prop::sample::select(values.clone()).boxed();
    }
    if let Some(schemas) = alternatives.filter(|schemas| !schemas.is_empty()) {
        let of_each = schemas.iter().map(|schema| fitting(schema, root, depth + 1));
        return prop::strategy::Union::new(of_each).boxed();
    }
    if let Some(value) = schema.get("const") {
        return Just(value.clone()).boxed();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str).unwrap_or_default(),
        kind => kind.as_str().unwrap_or(if schema.get("properties").is_some() { "object" } else { "" }),
    };
    match kind {
        "string" => "[a-z]{1,6}".prop_map(Value::from).boxed(),
        "integer" | "number" => (1..9_i64).prop_map(Value::from).boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "array" => {
            let most = if depth > 2 { 1 } else { 3 };
            let items = fitting(schema.get("items").unwrap_or(&Value::Null), root, depth + 1);
            prop::collection::vec(items, 1..=most).prop_map(Value::from).boxed()
        }
        "object" if schema.get("properties").is_none() => {
            let member = fitting(&Value::Null, root, depth + 1);
            prop::collection::vec(("[a-z]{1,4}", member), 1..3)
                .prop_map(|members| members.into_iter().collect())
                .boxed()
        }
        "object" => members(schema, root, depth),
        _ => "[a-z]{1,6}".prop_map(Value::from).boxed(),
    }
}

fn members(schema: &Value, root: &Value, depth: usize) -> BoxedStrategy<Value> {
    let mut all: BoxedStrategy<Map<String, Value>> = Just(Map::new()).boxed();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
        if depth > 3 && !is_required {
            continue;
        }
        let (name, chance) = (name.clone(), if is_required { 0.97 } else { 0.5 });
        let value = prop::option::weighted(chance, fitting(member, root, depth + 1));
        all = (all, value)
            .prop_map(move |(mut all, value)| {
                all.extend(value.map(|value| (name.clone(), value)));
                all
            })
            .boxed();
    }
    all.prop_map(Value::Object).boxed()
}

/// Arguments for a tool: valid ones, some of which are replaced, omitted or extended.
fn arguments(schema: &Value) -> BoxedStrategy<Map<String, Value>> {
    let names: Vec<String> =
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    let one_of = if names.is_empty() { vec!["none".to_owned()] } else { names };
    let change = (prop::sample::select(one_of), hostile(), 0..10_u8);
    (fitting(schema, schema, 0), prop::collection::vec(change, 0..3), text(), 0..20_u8)
        .prop_map(|(good, changes, name, extra)| {
            let mut arguments = good.as_object().cloned().unwrap_or_default();
            for (name, value, kind) in changes {
                match kind {
                    0 => drop(arguments.remove(&name)),
                    // Text in place of other text passes validation and reaches the service.
                    1..=5 if value.is_string() || kind < 3 => drop(arguments.insert(name, value)),
                    _ => {
                        let trick = TRICKS[usize::from(kind) * 4];
                        drop(arguments.insert(name, trick.into()));
                    }
                }
            }
            if extra == 0 {
                arguments.insert(name, json!("extra"));
            }
            arguments
        })
        .boxed()
}

/// The responses of the service in turn: valid and invalid.
fn said(number: usize) -> Answer {
    let media = |media: &'static str| [("content-type", media)];
    match number % 9 {
        0 => answer(200, &media("application/json"), r#"{"ok":true}"#),
        1 => answer(200, &media("application/json"), "[1,\"two\",null]"),
        2 => answer(204, &[], ""),
        3 => answer(400, &media("application/json"), r#"{"error":{"code":"No","message":"no"}}"#),
        4 => answer(404, &media("text/html"), "<html><title>Not here</title></html>"),
        5 => answer(500, &[], ""),
        6 => answer(200, &media("text/html"), "<html>Sign in</html>"),
        7 => answer(200, &media("application/json"), "{\"broken\":"),
        _ => answer(200, &[], ""),
    }
}

fn load(name: &str) -> Document {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents").join(name);
    Document::load(&[path], &LoadOptions::default()).unwrap()
}

/// Calls every operation of a document this many times, as its own tool or with `callOperation`.
async fn fuzz(name: &str, form: ToolForm, calls: usize) {
    let came: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let keeps = came.clone();
    let service = Service::start(move |seen, before| {
        keeps.lock().unwrap().push(seen.clone());
        said(before)
    })
    .await;
    let credential = Credential::Header(HeaderName::from_static("x-key"), Secret::new(KEY));
    let limits = bindpost_mcp_openapi::UpstreamLimits { tries: 1, ..quick() };
    let base = format!("{}/v1", service.address());
    let upstream = Upstream::new(&base, credential, limits).unwrap();
    let budget = if form == ToolForm::ThreeTools { 0 } else { 10 << 20 };
    let bridge = Bridge::builder(load(name), upstream).list_budget(budget).build().unwrap();
    assert_eq!(bridge.form(), form);
    let host = base.trim_start_matches("http://").trim_end_matches("/v1");
    let mut client = client(&serve(&bridge), Caller::ANONYMOUS, json!({})).await;
    let mut runner = TestRunner::deterministic();
    for operation in bridge.operations() {
        let uri = format!("openapi-schema://{}", operation.id);
        let schemas = client.request("resources/read", json!({"uri": uri})).await.unwrap();
        let schemas: Value = serde_json::from_str(schemas["contents"][0]["text"].as_str().unwrap()).unwrap();
        let strategy = arguments(&schemas["inputSchema"]);
        let mut reached = 0;
        for _ in 0..calls {
            let arguments = strategy.new_tree(&mut runner).unwrap().current();
            let params = match form {
                ToolForm::ThreeTools => {
                    json!({"name": "callOperation", "arguments": {"operation": operation.id, "arguments": arguments}})
                }
                _ => json!({"name": operation.id, "arguments": arguments}),
            };
            let what = || format!("{} {}", operation.id, short(&json!(arguments)));
            let call = client.request("tools/call", params);
            let result = tokio::time::timeout(Duration::from_secs(10), call).await;
            let result = result.unwrap_or_else(|_| panic!("timeout: {}", what()));
            let result = result.unwrap_or_else(|error| panic!("{error:?}: {}", what()));
            assert!(result["content"].is_array(), "{result} {}", what());
            assert!(!result.to_string().contains(KEY), "{result}");
            assert!(result.to_string().len() < 10_000, "{} bytes: {}", result.to_string().len(), what());
            let came = std::mem::take(&mut *came.lock().unwrap());
            assert!(came.len() <= 1, "{came:?}");
            for seen in &came {
                reached += 1;
                check(operation, &arguments, seen, host);
            }
        }
        // The schemas of our other documents are too complex for the generator.
        assert!(
            reached > 0 || !name.starts_with("places"),
            "no call of {} reached the service",
            operation.id
        );
    }
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(500).collect()
}

/// Checks that a request belongs to the operation and contains only the given arguments.
fn check(operation: &Operation, arguments: &Map<String, Value>, seen: &Seen, host: &str) {
    let what = format!("{} {}\n{} {}", operation.id, short(&json!(arguments)), seen.method, seen.target);
    assert_eq!(seen.method, operation.method, "{what}");
    let (path, query) = seen.target.split_once('?').unwrap_or((&seen.target, ""));
    let given = |parameter: &Parameter| arguments.get(&parameter.argument).filter(|value| !value.is_null());
    let path = path.strip_prefix("/v1/").unwrap_or_else(|| panic!("{what}"));
    let segments: Vec<&str> = path.split('/').collect();
    let template: Vec<&str> = operation.path.trim_start_matches('/').split('/').collect();
    assert_eq!(segments.len(), template.len(), "{what}");
    for (segment, template) in segments.iter().zip(template) {
        let decoded = percent_decode_str(segment).decode_utf8().unwrap();
        assert!(!matches!(&*decoded, "" | "." | ".."), "{what}");
        assert!(
            segment.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\' && byte != b'#'),
            "{what}"
        );
        assert_eq!(
            Some(&*decoded),
            filled(template, operation, &given).as_deref().or(Some(&*decoded)),
            "{what}"
        );
    }
    let of = |place: ParameterLocation| {
        operation.parameters.iter().filter(move |parameter| parameter.place == place)
    };
    let names: BTreeSet<String> = query.split('&').filter(|pair| !pair.is_empty()).map(name_of).collect();
    for name in &names {
        let known = of(ParameterLocation::Query).any(|parameter| {
            let is_member =
                given(parameter).and_then(Value::as_object).is_some_and(|members| members.contains_key(name));
            parameter.name == *name
                || parameter.style == ParameterStyle::DeepObject
                    && name.starts_with(&format!("{}[", parameter.name))
                || parameter.explode && parameter.style == ParameterStyle::Form && is_member
        });
        assert!(known, "{name:?} in the query: {what}");
    }
    check_headers(operation, &given, seen, host, &what);
    if let Some(body) = operation.body.as_ref().filter(|body| body.media == BodyFormat::Json) {
        let given = arguments.get(body_argument(operation)).cloned().unwrap_or_default();
        if body.required || !given.is_null() {
            assert_eq!(serde_json::from_slice::<Value>(&seen.body).unwrap(), given, "{what}");
        }
    }
    let rest = format!("{} {}", seen.target, String::from_utf8_lossy(&seen.body));
    assert!(!rest.contains(KEY), "{what}");
}

fn check_headers<'a>(
    operation: &Operation,
    given: &impl Fn(&Parameter) -> Option<&'a Value>,
    seen: &Seen,
    host: &str,
    what: &str,
) {
    let usual =
        ["accept", "accept-encoding", "content-length", "content-type", "host", "user-agent", "x-key"];
    for (name, value) in &seen.headers {
        let named = |place: ParameterLocation, text: &str| {
            operation.parameters.iter().any(|parameter| {
                parameter.place == place
                    && parameter.name.eq_ignore_ascii_case(text)
                    && given(parameter).is_some()
            })
        };
        match name.as_str() {
            "host" => assert_eq!(value, host, "{what}"),
            "x-key" => assert_eq!(value, KEY, "{what}"),
            "cookie" => {
                for piece in value.to_str().unwrap().split("; ") {
                    assert!(named(ParameterLocation::Cookie, &name_of(piece)), "{value:?}: {what}");
                    assert!(!piece.contains([';', ' ', '"']), "{value:?}: {what}");
                }
            }
            name if usual.contains(&name) => {}
            name => assert!(named(ParameterLocation::Header, name), "{name}: {what}"),
        }
        assert_eq!(seen.headers.get_all(name).iter().count(), 1, "{name}: {what}");
        assert!(name == "x-key" || !value.to_str().unwrap_or_default().contains(KEY), "{what}");
    }
    assert!(seen.headers.contains_key("x-key") && !seen.headers.contains_key("authorization"), "{what}");
}

/// Returns the decoded name of a pair.
fn name_of(pair: &str) -> String {
    percent_decode_str(pair.split('=').next().unwrap_or_default()).decode_utf8_lossy().into_owned()
}

/// Returns a segment of the template filled with plain values, or `None` if a value is a list or an object.
fn filled<'a>(
    template: &str,
    operation: &Operation,
    given: &impl Fn(&Parameter) -> Option<&'a Value>,
) -> Option<String> {
    let mut segment = template.to_owned();
    for parameter in
        operation.parameters.iter().filter(|parameter| parameter.place == ParameterLocation::Path)
    {
        let variable = format!("{{{}}}", parameter.name);
        if !template.contains(&variable) {
            continue;
        }
        let value = match given(parameter)? {
            value if parameter.style == ParameterStyle::Json => value.to_string(),
            Value::String(text) => text.clone(),
            Value::Array(_) | Value::Object(_) => return None,
            value => value.to_string(),
        };
        let value = match parameter.style {
            ParameterStyle::Label => format!(".{value}"),
            ParameterStyle::Matrix => format!(";{}={value}", parameter.name),
            _ if template.contains("('") => value.replace('\'', "''"),
            _ => value,
        };
        // The value may look like a variable itself.
        segment = segment.replacen(&variable, &value, 1);
    }
    Some(segment)
}

#[tokio::test]
async fn generated_arguments_reach_only_the_called_operation() {
    fuzz("places-3.0.yaml", ToolForm::Whole, 100).await;
    for name in ["library-2.0.json", "notes-3.1.json", "zoo-3.0.yaml", "circles.json", "split"] {
        fuzz(name, ToolForm::Whole, 40).await;
    }
}

#[tokio::test]
async fn generated_arguments_of_call_operation_reach_only_the_called_operation() {
    fuzz("places-3.0.yaml", ToolForm::ThreeTools, 60).await;
    for name in ["library-2.0.json", "notes-3.1.json", "zoo-3.0.yaml", "split"] {
        fuzz(name, ToolForm::ThreeTools, 20).await;
    }
}
