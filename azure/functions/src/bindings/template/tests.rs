use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;

use super::*;
use crate::bindings::arguments::Arguments;
use crate::bindings::context::{McpRequest, RequestSubject};

/// A fixed clock at 2026-01-31 08:05:09 UTC, and a GUID of sevens.
struct Fixed;

impl BuiltInSource for Fixed {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_769_846_709)
    }
    fn random(&self) -> Option<[u8; 16]> {
        Some([0x77; 16])
    }
}

const GUID: &str = "77777777-7777-4777-b777-777777777777";

fn setting(name: &str) -> Option<String> {
    match name {
        "Container" => Some("snippets".to_owned()),
        "Folder" => Some("{mcptoolargs.name}/x".to_owned()),
        "Percent" => Some("a%Container%b".to_owned()),
        "Broken" => Some("secret{".to_owned()),
        "Empty" => Some(String::new()),
        _ => None,
    }
}

fn parse(path: &str) -> Result<PathTemplate, TemplateError> {
    PathTemplate::parse(path, &setting)
}

fn refusal(path: &str) -> String {
    parse(path).unwrap_err().to_string()
}

fn with(path: &str, subject: RequestSubject<'_>) -> Result<String, String> {
    let request = McpRequest {
        subject,
        session_id: Some("s1"),
        client_info: None,
        transport: "http-streamable",
        headers: None,
        sent_names: None,
        input_responses: None,
        state: None,
    };
    let context = request.context();
    let data = BindingData::new(&request, &context, "context", "SaveSnippet");
    let resolved = parse(path).and_then(|template| template.resolve_in(&data, &Fixed));
    resolved.map(|(container, name)| format!("{container}|{name}")).map_err(|error| error.to_string())
}

fn tool(path: &str, arguments: &str) -> Result<String, String> {
    with(path, RequestSubject::Tool { name: "save", arguments: Arguments::parse(Some(arguments)) })
}

fn resource(path: &str, variables: &[(&str, &str)]) -> Result<String, String> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let variables: Vec<_> = variables.iter().map(own).collect();
    with(path, RequestSubject::Resource { uri: "snippet://a", variables: &variables })
}

fn ok(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

fn err(text: &str) -> Result<String, String> {
    Err(text.to_owned())
}

#[test]
fn fills_an_argument_in() {
    let path = "snippets/{mcptoolargs.snippetname}.json";
    assert_eq!(tool(path, r#"{"snippetname":"a b"}"#), ok("snippets|a b.json"));
    assert_eq!(parse(path).unwrap().as_str(), path);
}

#[test]
fn fills_settings_in_first_and_once() {
    assert_eq!(tool("%Container%/{name}", "{}"), ok("snippets|save"));
    assert_eq!(tool("abc-%Container%/x", "{}"), ok("abc-snippets|x"));
    assert_eq!(tool("%Container%/%Folder%", r#"{"name":"n"}"#), ok("snippets|n/x"));
    assert_eq!(tool("snippets/%Percent%", "{}"), ok("snippets|a%Container%b"));
    assert_eq!(tool("snippets/a%Empty%b", "{}"), ok("snippets|ab"));
}

#[test]
fn rejects_unknown_and_unclosed_settings() {
    assert_eq!(refusal("%Nope%/x"), "'%Nope%' does not resolve to a value.");
    assert_eq!(refusal("snippets/%%"), "'%%' does not resolve to a value.");
    assert_eq!(
        refusal("snippets/é%Container"),
        "The '%' at position 11 in 'snippets/é%Container' does not have a closing '%'."
    );
}

#[test]
fn double_braces_are_braces() {
    assert_eq!(tool("snippets/{{{name}}}-{{x}}", "{}"), ok("snippets|{save}-{x}"));
}

#[test]
fn rejects_braces_that_do_not_match() {
    let rows = [
        ("snippets/é{name", "Missing closing bracket at position 11."),
        ("snippets/{name", "Missing closing bracket at position 10."),
        ("snippets/name}", "Missing opening bracket at position 14."),
        ("snippets/{a{b}", "Missing closing bracket at position 10."),
        ("snippets/{", "Missing closing bracket at position 10."),
    ];
    for (path, expected) in rows {
        assert_eq!(refusal(path), format!("Invalid template '{path}'. {expected}"));
    }
}

#[test]
fn an_error_shows_settings_by_name_only() {
    assert_eq!(
        refusal("snippets/%Broken%"),
        "Invalid template 'snippets/%Broken%'. Missing closing bracket at position 16 (with its settings filled in)."
    );
    let template = parse("%Container%/x").unwrap();
    assert_eq!(format!("{template:?}"), r#"PathTemplate("%Container%/x")"#);
}

#[test]
fn rejects_an_empty_expression() {
    let expected = "Invalid template 'snippets/{}'. The parameter name at position 10 is empty.";
    assert_eq!(refusal("snippets/{}"), expected);
}

#[test]
fn rejects_names_that_are_not_identifiers() {
    for name in ["1a", "a b", " a", "a..b", "a.", ".a", "a/b", "snippet-name", "$return", "-", "rand-guids"] {
        let path = format!("snippets/{{{name}}}");
        let expected = format!("Invalid template '{path}'. The parameter name '{name}' is invalid.");
        assert_eq!(refusal(&path), expected);
    }
    for name in ["a", "_a", "a1", "a.b-c", "größe", "a.1"] {
        assert!(parse(&format!("snippets/{{{name}}}")).is_ok(), "{name}");
    }
}

#[test]
fn only_names_below_mcptoolargs_are_case_sensitive() {
    let arguments = r#"{"snippetname":"a"}"#;
    assert_eq!(tool("snippets/{McpToolArgs.snippetname}", arguments), ok("snippets|a"));
    assert_eq!(
        tool("snippets/{mcptoolargs.snippetName}", arguments),
        err("Error while accessing 'snippetName': property doesn't exist.")
    );
    assert_eq!(tool("snippets/{Arguments.snippetName}", arguments), ok("snippets|a"));
}

#[test]
fn members_of_the_context_can_be_used() {
    assert_eq!(
        tool("snippets/{name}/{SessionId}/{transport.name}", "{}"),
        ok("snippets|save/s1/http-streamable")
    );
}

#[test]
fn an_object_is_empty_in_json_and_raw_below_mcptoolargs() {
    let arguments = r#"{"o":{"k": 1}}"#;
    assert_eq!(tool("snippets/x{arguments.o}", arguments), ok("snippets|x"));
    assert_eq!(tool("snippets/x{mcptoolargs.o}", arguments), ok("snippets|x{\"k\": 1}"));
}

#[test]
fn a_missing_argument_fails_with_its_name() {
    assert_eq!(
        tool("snippets/{mcptoolargs.x}", r#"{"y":"secret"}"#),
        err("Error while accessing 'x': property doesn't exist.")
    );
    let none = RequestSubject::Tool { name: "save", arguments: Arguments::parse(None) };
    assert_eq!(with("snippets/{mcptoolargs.x}", none), err("No value for named parameter 'mcptoolargs'."));
}

#[test]
fn a_resources_variables_are_top_level_names() {
    let variables = [("Name", "a"), ("id", "7")];
    assert_eq!(resource("snippets/{name}/{ID}", &variables), ok("snippets|a/7"));
    assert_eq!(resource("snippets/{mcpresourceargs.Name}", &variables), ok("snippets|a"));
    assert_eq!(resource("snippets/{mcpresourceuri}", &variables), ok("snippets|snippet://a"));
    assert_eq!(resource("snippets/{other}", &variables), err("No value for named parameter 'other'."));
}

#[test]
fn built_in_values_need_no_data() {
    assert_eq!(tool("snippets/{rand-guid}", "{}"), ok(&format!("snippets|{GUID}")));
    assert_eq!(tool("snippets/{Rand-Guid:N}", "{}"), ok("snippets|7777777777774777b777777777777777"));
    assert_eq!(tool("snippets/{rand-guid:B}", "{}"), ok(&format!("snippets|{{{GUID}}}")));
    assert_eq!(tool("snippets/{DateTime}", "{}"), ok("snippets|2026-01-31T08-05-09Z"));
    assert_eq!(tool("snippets/{datetime:yyyy/MM/dd}.txt", "{}"), ok("snippets|2026/01/31.txt"));
    assert_eq!(tool("snippets/{DateTime:HH:mm}", "{}"), ok("snippets|08:05"));
    assert_eq!(tool("snippets/{sys.utcnow}", "{}"), ok("snippets|2026-01-31T08-05-09Z"));
    assert_eq!(tool("snippets/{sys.UtcNow:yyyy}", "{}"), ok("snippets|2026"));
    assert_eq!(tool("snippets/{sys.randguid}", "{}"), ok(&format!("snippets|{GUID}")));
    assert_eq!(tool("snippets/{Sys.MethodName}", "{}"), ok("snippets|SaveSnippet"));
}

#[test]
fn data_comes_before_a_built_in_value_but_not_before_sys() {
    let variables = [("DateTime", "mine"), ("sys", "mine")];
    assert_eq!(resource("snippets/{datetime:yyyy}", &variables), ok("snippets|mine"));
    assert_eq!(resource("snippets/{sys.utcnow:yyyy}", &variables), ok("snippets|2026"));
    assert_eq!(resource("snippets/{SYS.utcnow:yyyy}", &variables), ok("snippets|2026"));
}

#[test]
fn each_guid_is_a_new_one() {
    let request = McpRequest {
        subject: RequestSubject::Tool { name: "save", arguments: Arguments::default() },
        session_id: None,
        client_info: None,
        transport: "unknown",
        headers: None,
        sent_names: None,
        input_responses: None,
        state: None,
    };
    let context = request.context();
    let data = BindingData::new(&request, &context, "context", "SaveSnippet");
    let (_, name) = parse("snippets/{rand-guid}+{rand-guid}").unwrap().resolve(&data).unwrap();
    let (one, other) = name.split_once('+').unwrap();
    assert_eq!((one.len(), other.len()), (36, 36));
    assert_ne!(one, other);
}

#[test]
fn rejects_unknown_formats_and_unknown_members_of_sys() {
    assert_eq!(
        refusal("snippets/{DateTime:x}"),
        "Invalid template 'snippets/{DateTime:x}'. 'x' is not a format for 'DateTime'."
    );
    assert_eq!(
        refusal("snippets/{rand-guid:Q}"),
        "Invalid template 'snippets/{rand-guid:Q}'. 'Q' is not a format for 'rand-guid'."
    );
    assert_eq!(refusal("snippets/{sys.nope}"), "Error while accessing 'nope': property doesn't exist.");
}

#[test]
fn a_format_of_a_text_is_ignored() {
    assert_eq!(tool("snippets/{mcptoolargs.n:D5}", r#"{"n":7}"#), ok("snippets|7"));
}

#[test]
fn rejects_a_container_that_the_caller_would_choose() {
    for (path, expression) in [
        ("{mcptoolargs.c}/x", "mcptoolargs.c"),
        ("abc-{name}/x", "name"),
        ("{mcptoolargs.path}", "mcptoolargs.path"),
        ("abc{arguments.c:x}def/y", "arguments.c:x"),
    ] {
        let expected = format!(
            "Invalid template '{path}'. The container would come from '{{{expression}}}': a caller could reach \
             every container of the storage account. Write the container's name or a setting (%NAME%) before \
             the first '/'."
        );
        assert_eq!(refusal(path), expected);
    }
}

#[test]
fn built_in_values_may_name_the_container_whatever_the_data_says() {
    assert_eq!(tool("log-{DateTime:yyyyMM}/x", "{}"), ok("log-202601|x"));
    assert_eq!(tool("{rand-guid}/x", "{}"), ok(&format!("{GUID}|x")));
    assert_eq!(resource("log-{DateTime:yyyyMM}/x", &[("datetime", "evil")]), ok("log-202601|x"));
    let shown = "Invalid template '{sys.methodname}/x'. The part before the first '/' is the container: 3 to 63 \
                 lower-case letters, digits and single dashes, with a letter or digit at both ends.";
    assert_eq!(tool("{sys.methodname}/x", "{}"), err(shown), "SaveSnippet has upper-case letters");
}

#[test]
fn rejects_containers_that_azure_would_reject() {
    let long = "a".repeat(64);
    for container in ["", "ab", "Abc", "a--b", "-abc", "abc-", "a_b", "äbc", "$other", long.as_str()] {
        let path = format!("{container}/x");
        let invalid = TemplateError::InvalidContainer { template: path.clone() };
        assert_eq!(parse(&path).unwrap_err(), invalid);
    }
    for container in ["abc", "a-b-1", "$root", "$web", &long[1..]] {
        assert!(parse(&format!("{container}/x")).is_ok(), "{container}");
    }
}

#[test]
fn rejects_a_container_without_a_blob_name() {
    let expected = "Invalid template 'snippets'. A blob name must follow the container: 'container/name'.";
    assert_eq!(refusal("snippets"), expected);
    assert_eq!(
        parse("snippets/").unwrap_err(),
        TemplateError::NoBlobName { template: "snippets/".to_owned() }
    );
}

#[test]
fn rejects_blob_names_that_leave_the_container() {
    let path = "snippets/{mcptoolargs.x}";
    let fault = |reason: &str| {
        Err(format!("The path 'snippets/{{mcptoolargs.x}}' does not give a valid blob name: {reason}."))
    };
    let with = |value: &str| tool(path, &serde_json::json!({ "x": value }).to_string());
    assert_eq!(with(""), fault("it is empty"));
    assert_eq!(with("../other/x"), fault("it has a segment '.' or '..'"));
    assert_eq!(with("a/.."), fault("it has a segment '.' or '..'"));
    assert_eq!(with("a\\..\\b"), fault("it has a segment '.' or '..'"));
    assert_eq!(with("./a"), fault("it has a segment '.' or '..'"));
    assert_eq!(with("a\0"), fault("it has a control character"));
    assert_eq!(with(&"é".repeat(1025)), fault("it is longer than 1024 characters"));
    assert_eq!(with(&"é".repeat(1024)), ok(&format!("snippets|{}", "é".repeat(1024))));
    assert_eq!(with("a/b..c/...d"), ok("snippets|a/b..c/...d"));
}

#[test]
fn without_randomness_there_is_no_guid() {
    struct NoRandomness;
    impl BuiltInSource for NoRandomness {
        fn now(&self) -> SystemTime {
            UNIX_EPOCH
        }
        fn random(&self) -> Option<[u8; 16]> {
            None
        }
    }
    let mut out = String::new();
    let built_in = BuiltInValue::parse("rand-guid", None).unwrap().unwrap();
    assert_eq!(built_in.write("f", &NoRandomness, &mut out), None);
}

#[test]
fn takes_linear_time() {
    let started = std::time::Instant::now();
    for piece in ["{a}", "{{", "x", "%Empty%", "{DateTime:'aaaaaaaa'}", "a.b"] {
        let path = format!("snippets/x{}", piece.repeat(200_000 / piece.len()));
        assert!(parse(&path).is_ok(), "{piece}");
    }
    _ = parse(&format!("snippets/{{{}}}", "a.".repeat(100_000)));
    _ = parse(&"{".repeat(100_001));
    // Far above linear time, far below quadratic time.
    assert!(started.elapsed() < Duration::from_secs(10));
}

proptest! {
    #[test]
    fn never_panics(path in r"([a-z]{3}/)?([{}%:./a-zA-Z0-9é' -]|\{(name|mcptoolargs\.x|rand-guid:?[NDBPX]?|DateTime:[a-zA-Z/%']{0,6})\}){0,30}",
                    value in any::<String>()) {
        if let Ok(template) = parse(&path) {
            prop_assert_eq!(template.as_str(), path.as_str());
            _ = tool(&path, &serde_json::json!({ "x": value }).to_string());
        }
    }

    #[test]
    fn never_panics_on_any_text(path in any::<String>()) {
        _ = parse(&path);
    }

    #[test]
    fn a_caller_never_leaves_the_container(value in r"[./\\a%{}]{0,12}") {
        let arguments = serde_json::json!({ "x": value }).to_string();
        if let Ok(resolved) = tool("snippets/{mcptoolargs.x}/{mcptoolargs.x}", &arguments) {
            let name = resolved.strip_prefix("snippets|").unwrap();
            prop_assert!(!name.split(['/', '\\']).any(|segment| segment == ".." || segment == "."));
        }
    }
}
