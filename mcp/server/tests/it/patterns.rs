//! Patterns of schemas with catastrophic backtracking: a check ends soon, and an undecided value is invalid.

use std::time::{Duration, Instant};

use bindpost_mcp_protocol::{CallToolResult, Tool};
use bindpost_mcp_server::testing::TestClient;
use bindpost_mcp_server::{CallParts, CompiledSchema, Server, Signature, ToolEntry};
use serde_json::{Value, json};

/// Far more than a check takes, and far less than it takes without a budget.
const SOON: Duration = Duration::from_secs(20);

fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let schema = CompiledSchema::compile(schema).unwrap();
    let begun = Instant::now();
    let checked = schema.check(value);
    assert!(begun.elapsed() < SOON, "{:?}: {schema:?}", begun.elapsed());
    checked
}

#[test]
fn a_pattern_with_look_around_ends_soon_on_a_long_text() {
    for pattern in [
        "(?=a)(a|aa)*b$",
        "(?=a)(?:a|aa)*b$",
        "(?!b)(a*)*b$",
        "^(?:(?=a*)a)*b$",
        "^(?:(?=(?:(?=a*)a)*)a)*b$",
        "(a*)\\1b$",
        "(?:(a+)\\1)+b$",
        "^(a+)+(?=b)$",
        "(?<=a)(a|aa)*b$",
    ] {
        let text = "a".repeat(200_000);
        let refused = check(&json!({"properties": {"x": {"pattern": pattern}}}), &json!({"x": text}));
        let refused = refused.unwrap_err();
        assert!(refused.starts_with("- /x: ") && refused.contains(pattern), "{pattern}: {refused}");
        assert!(refused.len() < 1_000, "{refused}");
    }
}

#[test]
fn an_undecided_value_is_never_valid() {
    let text = "a".repeat(200_000);
    let costly = "(?=a)(a|aa)*b$";
    for schema in [
        json!({"not": {"pattern": costly}}),
        json!({"anyOf": [{"pattern": costly}, {"type": "string"}]}),
        json!({"oneOf": [{"pattern": costly}, {"type": "string"}]}),
        json!({"if": {"pattern": costly}, "then": false}),
        json!({"if": {"pattern": costly}, "else": true}),
        json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"pattern": costly}}}),
    ] {
        let within =
            json!({"properties": {"a/b": {"items": schema.clone()}}, "$defs": {"a": {"pattern": costly}}});
        let refused = check(&within, &json!({"a/b": [1, text]})).unwrap_err();
        assert!(
            refused.starts_with("- /a~1b/1: \"aaa") && refused.contains("too many steps"),
            "{schema}: {refused}"
        );
    }
    for schema in [
        json!({"patternProperties": {costly: {"type": "integer"}}}),
        json!({"patternProperties": {costly: {}}, "additionalProperties": false}),
        json!({"patternProperties": {costly: {}}, "unevaluatedProperties": false}),
        json!({"propertyNames": {"not": {"pattern": costly}}}),
    ] {
        let refused = check(&schema, &json!({text.as_str(): "x"})).unwrap_err();
        assert!(refused.contains("too many steps") && refused.contains(costly), "{schema}: {refused}");
    }
}

#[test]
fn all_texts_of_a_value_share_one_budget() {
    let texts: Vec<String> = (0..2_000).map(|at| format!("{}{at}", "a".repeat(500))).collect();
    let schema = json!({"items": {"pattern": "^(a|aa)*(?=c)c$"}});
    let refused = check(&schema, &json!(texts)).unwrap_err();
    assert!(refused.contains("too many steps"), "{refused}");
    let members: serde_json::Map<String, Value> =
        (0..2_000).map(|at| (format!("{}{at}", "a".repeat(500)), json!(1))).collect();
    let schema = json!({"patternProperties": {"^(a|aa)*(?=c)c$": {}}});
    let refused = check(&schema, &Value::Object(members)).unwrap_err();
    assert!(refused.contains("too many steps"), "{refused}");
}

#[test]
fn ordinary_patterns_with_look_around_work() {
    let long = "word ".repeat(40_000);
    for (pattern, fits, breaks) in [
        ("^(?!\\s*$).+", long.as_str(), "   "),
        ("^(?=.*[A-Z])(?=.*\\d)[A-Za-z\\d]{8,64}$", "Passw0rdPassw0rd", "password"),
        ("^(?:(?!--)[a-z0-9-])+$", "a-long-name-of-something-with-many-words", "a--b"),
        ("^([a-z]+)-\\1$", "abcabc-abcabc", "abc-abd"),
        ("^(?!.*\\.\\.)[a-z.]+$", "a.b.c.d.e", "a..b"),
        ("(?<!a)b", "cb", "ab"),
    ] {
        let schema =
            json!({"type": "object", "properties": {"x": {"pattern": pattern}, "y": {"pattern": "^[ab]+$"}}});
        check(&schema, &json!({"x": fits, "y": "abab"})).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        let refused = check(&schema, &json!({"x": breaks, "y": "c"})).unwrap_err();
        let mut lines: Vec<&str> = refused.lines().collect();
        lines.sort_unstable();
        let (text, pattern) = (json!(breaks), pattern);
        let expected = [
            format!("- /x: {text} does not match \"{pattern}\""),
            "- /y: \"c\" does not match \"^[ab]+$\"".into(),
        ];
        assert_eq!(lines, expected);
        // Many values of the usual length are within the budget.
        let many: Vec<&str> = std::iter::repeat_n(fits, if fits.len() > 1_000 { 3 } else { 1_000 }).collect();
        check(&json!({"items": {"pattern": pattern}}), &json!(many)).unwrap();
    }
    let schema = json!({"patternProperties": {"^(?!x-)": {"type": "integer"}}});
    check(&schema, &json!({"a": 1, "x-b": "c"})).unwrap();
    assert_eq!(check(&schema, &json!({"a": "1"})).unwrap_err(), "- /a: \"1\" is not of type \"integer\"");
}

#[test]
fn invalid_patterns_are_rejected_at_registration() {
    for schema in [
        json!({"pattern": "("}),
        json!({"items": {"pattern": "(?=a"}}),
        json!({"patternProperties": {"[": {}}}),
    ] {
        assert!(CompiledSchema::compile(&schema).is_err(), "{schema}");
    }
    assert!(CompiledSchema::compile(&json!({"allOf": [{"pattern": "(?=a)"}, {"pattern": "("}]})).is_err());
}

#[tokio::test]
async fn a_call_with_an_undecided_argument_is_rejected() {
    let schema =
        json!({"type": "object", "properties": {"code": {"type": "string", "pattern": "(?=a)(a|aa)*b$"}}});
    let definition = Tool { name: "find".to_owned(), input_schema: schema.into(), ..Tool::default() };
    let entry = ToolEntry::with_signature("find", Signature::new(), |_: CallParts| async {
        Ok(CallToolResult::text("found"))
    });
    let server = Server::builder("patterns", "1").tool(entry.definition(definition)).build().unwrap();
    let mut client = TestClient::connect(&server);
    let begun = Instant::now();
    let arguments = json!({"name": "find", "arguments": {"code": "a".repeat(150_000)}});
    let result =
        client.request("tools/call", arguments).await.map_or_else(|error| error.message, |it| it.to_string());
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(result.contains("/code") && result.contains("too many steps"), "{result}");
}
