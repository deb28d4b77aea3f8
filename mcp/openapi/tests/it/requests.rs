//! Conversion of arguments to requests: every location and style, and values that try
//! to escape their location.

use bindpost_mcp_openapi::{
    BodyFormat, Operation, OperationResponse, Parameter, ParameterLocation, ParameterStyle, RequestBody,
    RequestError, ResponseStatus, UpstreamRequest, body_argument, build_request,
};
use bindpost_mcp_server::ToolHints;
use http::Method;
use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use reqwest::Url;
use serde_json::{Map, Value, json};

fn operation(path: &str, parameters: Vec<Parameter>) -> Operation {
    Operation {
        id: "op".into(),
        method: Method::GET,
        other_methods: Vec::new(),
        path: path.into(),
        tags: Vec::new(),
        summary: None,
        description: None,
        deprecated: false,
        parameters,
        body: None,
        responses: Vec::new(),
        scopes: Vec::new(),
        hints: ToolHints::default(),
        items: None,
        next_link: None,
    }
}

fn parameter(name: &str, place: ParameterLocation) -> Parameter {
    let style = if matches!(place, ParameterLocation::Query | ParameterLocation::Cookie) {
        ParameterStyle::Form
    } else {
        ParameterStyle::Simple
    };
    Parameter {
        name: name.into(),
        argument: name.into(),
        place,
        required: place == ParameterLocation::Path,
        description: None,
        schema: json!({}),
        style,
        explode: style == ParameterStyle::Form,
        allow_reserved: false,
    }
}

fn styled(name: &str, place: ParameterLocation, style: ParameterStyle, explode: bool) -> Parameter {
    Parameter { style, explode, ..parameter(name, place) }
}

fn with_body(media: BodyFormat, content_type: &str) -> Operation {
    let body = RequestBody {
        required: true,
        description: None,
        media,
        content_type: content_type.into(),
        schema: json!({ "properties": { "photo": { "type": "string", "format": "binary" } } }),
    };
    Operation { method: Method::POST, body: Some(body), ..operation("/b", Vec::new()) }
}

fn made(operation: &Operation, arguments: Value) -> Result<UpstreamRequest, RequestError> {
    build_request(operation, arguments.as_object().unwrap())
}

fn path_of(operation: &Operation, arguments: Value) -> String {
    made(operation, arguments).unwrap().path
}

/// Returns the path of a request to `/a/{v}/z` with this value.
fn in_segment(value: Value) -> Result<String, RequestError> {
    made(&operation("/a/{v}/z", vec![parameter("v", ParameterLocation::Path)]), json!({ "v": value }))
        .map(|request| request.path)
}

#[test]
fn values_stay_in_their_segment() {
    for (value, segment) in [
        (json!("plain"), "plain"),
        (json!("a/b"), "a%2Fb"),
        (json!("a\\b"), "a%5Cb"),
        (json!("a?b#c"), "a%3Fb%23c"),
        (json!("http://evil.example/"), "http%3A%2F%2Fevil.example%2F"),
        (json!("//evil"), "%2F%2Fevil"),
        (json!("%2e"), ""),
        (json!("a%2fb"), "a%252fb"),
        (json!("..."), "..."),
        (json!("a..b"), "a..b"),
        (json!(".hidden"), ".hidden"),
        (json!("ä b+c"), "%C3%A4%20b%2Bc"),
        (json!(";x=1,2"), "%3Bx%3D1%2C2"),
        (json!("@evil"), "%40evil"),
        (json!(7), "7"),
        (json!(-0.5), "-0.5"),
        (json!(true), "true"),
    ] {
        match segment {
            "" => assert!(in_segment(value).is_err()),
            _ => assert_eq!(in_segment(value).unwrap(), format!("/a/{segment}/z")),
        }
    }
    let long = "x".repeat(10_000);
    assert_eq!(in_segment(json!(long)).unwrap(), format!("/a/{long}/z"));
}

#[test]
fn values_that_no_encoding_makes_safe_are_rejected_by_name() {
    for value in [
        "",
        ".",
        "..",
        "%2e%2e",
        "%2E.",
        ".%2e",
        "%2e",
        "%252e%252e",
        "../../servicestats",
        "..\\..\\x",
        "a/../b",
        "..%2f..%2fx",
        "%2e%2e%2fx",
        "a\0",
        "\0",
        "a\nb",
        "a\rb",
        "\u{7f}",
        "\u{85}",
        "..%5cx",
        "..;/x",
        "..;",
        "%2e%2e%3b/x",
        "a/.. /b",
    ] {
        let error = in_segment(json!(value)).unwrap_err();
        assert!(
            matches!(&error, RequestError::Unusable { argument, .. } if argument == "v"),
            "{value:?}: {error}"
        );
        assert!(error.to_string().starts_with("`v` is "), "{error}");
    }
    for value in [json!([]), json!({}), json!([".."]), json!({ "..": "a" }), json!(["a", "\0"])] {
        assert!(in_segment(value.clone()).is_err(), "{value}");
    }
    assert_eq!(in_segment(Value::Null).unwrap_err(), RequestError::Missing("v".into()));
}

#[test]
fn adjacent_variables_form_no_dot_segment() {
    let two = operation(
        "/{a}{b}",
        vec![parameter("a", ParameterLocation::Path), parameter("b", ParameterLocation::Path)],
    );
    assert_eq!(path_of(&two, json!({ "a": "x", "b": "y" })), "/xy");
    let dotted = operation("/{a}.", vec![parameter("a", ParameterLocation::Path)]);
    assert!(made(&dotted, json!({ "a": "." })).is_err());
    let label = operation("/{a}", vec![styled("a", ParameterLocation::Path, ParameterStyle::Label, false)]);
    assert!(made(&label, json!({ "a": "." })).is_err());
    assert!(made(&label, json!({ "a": [""] })).is_err());
    assert_eq!(path_of(&label, json!({ "a": "x" })), "/.x");
}

#[test]
fn quotation_marks_are_doubled_between_quotation_marks() {
    let quoted =
        operation("/indexes('{name}')/docs/$count", vec![parameter("name", ParameterLocation::Path)]);
    assert_eq!(path_of(&quoted, json!({ "name": "it's" })), "/indexes('it%27%27s')/docs/$count");
    assert_eq!(
        path_of(&quoted, json!({ "name": "')/x('" })),
        "/indexes('%27%27%29%2Fx%28%27%27')/docs/$count"
    );
    let plain = operation("/docs({key})", vec![parameter("key", ParameterLocation::Path)]);
    assert_eq!(path_of(&plain, json!({ "key": "it's" })), "/docs(it%27s)");
}

#[test]
fn lists_and_objects_in_paths() {
    let list = json!(["blue", "b,k", null]);
    let object = json!({ "R": 100, "G": "2=0", "B": null });
    for (style, explode, of_list, of_object) in [
        (ParameterStyle::Simple, false, "blue,b%2Ck", "G,2%3D0,R,100"),
        (ParameterStyle::Simple, true, "blue,b%2Ck", "G=2%3D0,R=100"),
        (ParameterStyle::Label, false, ".blue,b%2Ck", ".G,2%3D0,R,100"),
        (ParameterStyle::Label, true, ".blue.b%2Ck", ".G=2%3D0.R=100"),
        (ParameterStyle::Matrix, false, ";v=blue,b%2Ck", ";v=G,2%3D0,R,100"),
        (ParameterStyle::Matrix, true, ";v=blue;v=b%2Ck", ";G=2%3D0;R=100"),
        (ParameterStyle::PipeDelimited, false, "blue%7Cb%2Ck", "G%7C2%3D0%7CR%7C100"),
    ] {
        let operation = operation("/p/{v}", vec![styled("v", ParameterLocation::Path, style, explode)]);
        let sorted = |path: String| pieces(&path, &[',', '.', ';', '/']);
        assert_eq!(path_of(&operation, json!({ "v": list })), format!("/p/{of_list}"), "{style:?} {explode}");
        let path = path_of(&operation, json!({ "v": object }));
        assert_eq!(sorted(path), sorted(format!("/p/{of_object}")), "{style:?} {explode}");
    }
    let matrix =
        operation("/p{v}", vec![styled("v", ParameterLocation::Path, ParameterStyle::Matrix, false)]);
    assert_eq!(path_of(&matrix, json!({ "v": "a" })), "/p;v=a");
    let json = operation("/p/{v}", vec![styled("v", ParameterLocation::Path, ParameterStyle::Json, false)]);
    assert_eq!(path_of(&json, json!({ "v": [1, "a"] })), "/p/%5B1%2C%22a%22%5D");
}

/// Returns the parts of a text in alphabetical order, because objects may have their members in any order.
fn pieces(text: &str, between: &[char]) -> Vec<String> {
    let mut pieces: Vec<_> = text.split(between).map(str::to_owned).collect();
    pieces.sort();
    pieces
}

#[test]
fn lists_and_objects_in_queries() {
    let list = json!(["a", "b,c", null]);
    let object = json!({ "k": "v&w" });
    for (style, explode, of_list, of_object) in [
        (ParameterStyle::Form, true, "?$q=a&$q=b%2Cc", "?k=v%26w"),
        (ParameterStyle::Form, false, "?$q=a,b%2Cc", "?$q=k,v%26w"),
        (ParameterStyle::SpaceDelimited, false, "?$q=a%20b%2Cc", "?$q=k%20v%26w"),
        (ParameterStyle::PipeDelimited, false, "?$q=a%7Cb%2Cc", "?$q=k%7Cv%26w"),
        (ParameterStyle::TabDelimited, false, "?$q=a%09b%2Cc", "?$q=k%09v%26w"),
        (ParameterStyle::DeepObject, true, "?$q=a&$q=b%2Cc", "?$q%5Bk%5D=v%26w"),
        (
            ParameterStyle::Json,
            false,
            "?$q=%5B%22a%22%2C%22b%2Cc%22%2Cnull%5D",
            "?$q=%7B%22k%22%3A%22v%26w%22%7D",
        ),
    ] {
        let operation = operation("/p", vec![styled("$q", ParameterLocation::Query, style, explode)]);
        assert_eq!(path_of(&operation, json!({ "$q": list })), format!("/p{of_list}"), "{style:?} {explode}");
        assert_eq!(
            path_of(&operation, json!({ "$q": object })),
            format!("/p{of_object}"),
            "{style:?} {explode}"
        );
        assert_eq!(path_of(&operation, json!({ "$q": null })), "/p");
        let empty = path_of(&operation, json!({ "$q": [] }));
        assert_eq!(empty, if style == ParameterStyle::Json { "/p?$q=%5B%5D" } else { "/p" });
    }
    let deep = operation("/p", vec![styled("f", ParameterLocation::Query, ParameterStyle::DeepObject, true)]);
    let nested = json!({ "f": { "a": { "b": 1 }, "c": [2, 3], "d": null } });
    let mut expected = ["f[a][b]=1", "f[c]=2", "f[c]=3"].map(str::to_owned).to_vec();
    expected.sort();
    let found = percent_decode_str(&path_of(&deep, nested)[3..]).decode_utf8().unwrap().into_owned();
    assert_eq!(pieces(&found, &['&']), expected);
}

#[test]
fn scalars_in_queries_and_a_query_in_the_document() {
    let parameters = vec![parameter("a", ParameterLocation::Query), parameter("b", ParameterLocation::Query)];
    let both = operation("/p?comp=list", parameters);
    assert_eq!(path_of(&both, json!({ "a": "", "b": false })), "/p?comp=list&a=&b=false");
    assert_eq!(path_of(&both, json!({ "a": "x&b=y#z" })), "/p?comp=list&a=x%26b%3Dy%23z");
    let mut open = parameter("a", ParameterLocation::Query);
    open.allow_reserved = true;
    assert_eq!(
        path_of(&operation("/p", vec![open]), json!({ "a": "a/b?c&d#e+f%g" })),
        "/p?a=a/b?c%26d%23e%2Bf%25g"
    );
}

#[test]
fn members_of_an_object_cannot_replace_other_parameters() {
    let parameters =
        vec![parameter("filter", ParameterLocation::Query), parameter("tenant", ParameterLocation::Query)];
    let operation = operation("/p", parameters);
    assert_eq!(path_of(&operation, json!({ "filter": { "colour": "red" } })), "/p?colour=red");
    let error = made(&operation, json!({ "filter": { "tenant": "other" } })).unwrap_err();
    assert!(error.to_string().contains("`filter`") && error.to_string().contains("`tenant`"), "{error}");
}

#[test]
fn headers_and_cookies() {
    let parameters = vec![
        parameter("x-list", ParameterLocation::Header),
        styled("x-object", ParameterLocation::Header, ParameterStyle::Simple, true),
        parameter("sid", ParameterLocation::Cookie),
        parameter("theme", ParameterLocation::Cookie),
    ];
    let operation = operation("/p", parameters);
    let arguments = json!({ "x-list": ["a", 1], "x-object": { "k": "v" }, "sid": "a;b=c", "theme": "ü" });
    let request = made(&operation, arguments).unwrap();
    assert_eq!(request.headers["x-list"], "a,1");
    assert_eq!(request.headers["x-object"], "k=v");
    assert_eq!(request.headers["cookie"], "sid=a%3Bb%3Dc; theme=%C3%BC");
    for value in
        [json!("a\r\nhost: evil"), json!("a\nb"), json!("\0"), json!(["a", "\r"]), json!({ "\n": 1 })]
    {
        let error = made(&operation, json!({ "x-list": value })).unwrap_err();
        assert!(error.to_string().contains("`x-list`") && error.to_string().contains("remove"), "{error}");
    }
}

#[test]
fn callers_cannot_set_connection_and_credential_headers() {
    for name in ["Host", "Authorization", "Cookie", "Content-Length", "Transfer-Encoding", "Connection"] {
        let mut parameter = parameter(name, ParameterLocation::Header);
        parameter.required = true;
        let operation = operation("/p", vec![parameter]);
        assert!(made(&operation, json!({ name: "x" })).is_err(), "{name}");
        assert!(made(&operation, json!({})).is_ok(), "{name} is set by the server");
    }
}

#[test]
fn accept_lists_the_media_types_of_the_responses() {
    let response = |status, content_type: Option<&str>| OperationResponse {
        status,
        description: None,
        content_type: content_type.map(str::to_owned),
        schema: None,
    };
    let mut operation = operation("/p", vec![parameter("Accept", ParameterLocation::Header)]);
    let accept =
        |operation: &Operation, arguments| made(operation, arguments).unwrap().headers["accept"].clone();
    assert_eq!(accept(&operation, json!({})), "application/json, */*;q=0.5");
    operation.responses = vec![
        response(ResponseStatus::Default, Some("application/problem+json")),
        response(ResponseStatus::Exactly(200), Some("text/csv")),
        response(ResponseStatus::Class(2), Some("text/csv")),
        response(ResponseStatus::Exactly(204), None),
    ];
    assert_eq!(accept(&operation, json!({})), "text/csv, application/problem+json");
    assert_eq!(accept(&operation, json!({ "Accept": "text/html" })), "text/html");
}

#[test]
fn what_is_repeatable_follows_the_hints() {
    let mut operation = operation("/p", Vec::new());
    for (read_only, idempotent, repeatable) in
        [(false, false, false), (true, false, true), (false, true, true), (true, true, true)]
    {
        operation.hints = ToolHints { read_only, idempotent, ..ToolHints::default() };
        assert_eq!(made(&operation, json!({})).unwrap().repeatable, repeatable);
    }
}

#[test]
fn unknown_and_missing_arguments_are_named() {
    let mut needed = parameter("indexName", ParameterLocation::Query);
    needed.required = true;
    let operation = operation("/p", vec![needed, parameter("$top", ParameterLocation::Query)]);
    assert_eq!(made(&operation, json!({})).unwrap_err().to_string(), "`indexName` is required and missing");
    let error = made(&operation, json!({ "index_name": "a" })).unwrap_err().to_string();
    assert_eq!(error, "unknown argument `index_name`; did you mean `indexName`?");
    let error = made(&operation, json!({ "colour": "a" })).unwrap_err().to_string();
    assert_eq!(error, "unknown argument `colour`; known: indexName, $top");
    let error = made(&operation, json!({ "indexName": "a", "body": {} })).unwrap_err();
    assert!(matches!(error, RequestError::Unknown { .. }), "{error}");
}

#[test]
fn a_path_variable_without_a_parameter_is_an_error_in_the_document() {
    let error = made(&operation("/a/{b}", Vec::new()), json!({})).unwrap_err();
    assert!(matches!(error, RequestError::Operation(_)) && error.to_string().contains("`b`"), "{error}");
}

#[test]
fn the_body_is_json() {
    let mut operation = with_body(BodyFormat::Json, "application/merge-patch+json");
    let request = made(&operation, json!({ "body": { "a": [1, null] } })).unwrap();
    assert_eq!(request.body.unwrap(), r#"{"a":[1,null]}"#);
    assert_eq!(request.headers["content-type"], "application/merge-patch+json");
    assert_eq!(made(&operation, json!({ "body": null })).unwrap().body.unwrap(), "null");
    assert_eq!(made(&operation, json!({})).unwrap_err(), RequestError::Missing("body".into()));
    operation.body.as_mut().unwrap().required = false;
    let request = made(&operation, json!({})).unwrap();
    assert!(request.body.is_none() && !request.headers.contains_key("content-type"));

    operation.parameters.push(parameter("body", ParameterLocation::Query));
    assert_eq!(body_argument(&operation), "requestBody");
    let request = made(&operation, json!({ "body": "q", "requestBody": 1 })).unwrap();
    assert_eq!((request.path.as_str(), &request.body.unwrap()[..]), ("/b?body=q", &b"1"[..]));
}

#[test]
fn the_body_is_a_form() {
    let operation = with_body(BodyFormat::Form, "application/x-www-form-urlencoded");
    let request =
        made(&operation, json!({ "body": { "a b": ["x&y", 2], "c": null, "d": { "e": 1 } } })).unwrap();
    let body = String::from_utf8(request.body.unwrap().to_vec()).unwrap();
    assert_eq!(pieces(&body, &['&']), ["a%20b=2", "a%20b=x%26y", "d=%7B%22e%22%3A1%7D"]);
    assert!(
        made(&operation, json!({ "body": "a=b" })).unwrap_err().to_string().contains("must be an object")
    );
}

#[test]
fn the_body_is_text_or_bytes() {
    let text = with_body(BodyFormat::Text, "text/plain; charset=utf-8");
    let request = made(&text, json!({ "body": "löss\r\n" })).unwrap();
    assert_eq!(request.body.unwrap(), "löss\r\n");
    assert_eq!(request.headers["content-type"], "text/plain; charset=utf-8");
    assert!(made(&text, json!({ "body": {} })).unwrap_err().to_string().contains("must be a string"));

    let binary = with_body(BodyFormat::Binary, "application/octet-stream");
    for given in [json!("AP8+"), json!("AP8-"), json!("AP 8\n+"), json!({ "base64": "AP8+" })] {
        assert_eq!(&made(&binary, json!({ "body": given })).unwrap().body.unwrap()[..], &[0, 0xff, 0x3e]);
    }
    assert_eq!(
        &made(&binary, json!({ "body": "/w" })).unwrap().body.unwrap()[..],
        &[0xff],
        "without padding"
    );
    for wrong in [json!("not base64!"), json!(7), json!({})] {
        assert!(made(&binary, json!({ "body": wrong })).unwrap_err().to_string().contains("base64"));
    }
}

#[test]
fn the_body_has_parts() {
    let operation = with_body(BodyFormat::Multipart, "multipart/form-data");
    let file = json!({ "base64": "AP8+", "filename": "a\"\r\nb.png", "contentType": "image/png" });
    let body = json!({ "title": "x", "photo": "text", "tags": ["a", "b"], "file": file, "more": { "k": 1 } });
    let request = made(&operation, json!({ "body": body })).unwrap();
    let content_type = request.headers["content-type"].to_str().unwrap();
    let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
    let body = request.body.unwrap();
    let body: String = body.iter().map(|byte| char::from(*byte)).collect();
    let inner = body.strip_suffix(&format!("\r\n--{boundary}--\r\n")).unwrap();
    let mut parts: Vec<_> = inner.split(&format!("--{boundary}\r\n")).map(|part| part.trim_end()).collect();
    assert_eq!(parts.remove(0), "");
    parts.sort_unstable();
    let disposition = "Content-Disposition: form-data; name=";
    let mut expected = vec![
        format!("{disposition}\"title\"\r\n\r\nx"),
        format!(
            "{disposition}\"photo\"; filename=\"photo\"\r\nContent-Type: application/octet-stream\r\n\r\ntext"
        ),
        format!("{disposition}\"tags\"\r\n\r\na"),
        format!("{disposition}\"tags\"\r\n\r\nb"),
        format!(
            "{disposition}\"file\"; filename=\"a%22%0D%0Ab.png\"\r\nContent-Type: image/png\r\n\r\n\0\u{ff}>"
        ),
        format!("{disposition}\"more\"\r\nContent-Type: application/json\r\n\r\n{{\"k\":1}}"),
    ];
    expected.sort_unstable();
    assert_eq!(parts, expected);
    for (wrong, place) in [
        (json!({ "f": { "base64": "!" } }), "body.f"),
        (json!({ "f": { "base64": "AA==", "contentType": "a/b\r\nx: y" } }), "body.f"),
    ] {
        let error = made(&operation, json!({ "body": wrong })).unwrap_err().to_string();
        assert!(error.contains(place), "{error}");
    }
}

/// Any text, with a preference for characters that have a meaning in requests.
fn text() -> impl Strategy<Value = String> {
    let odd = "[./\\\\%2eEfF5cC?#&=;,:@'\" +\\[\\]{}|<>a\r\n\t\u{0}é\u{202e}]{0,12}";
    prop_oneof![any::<String>(), odd.prop_map(|text: String| text), "[ -~]{0,40}"]
}

proptest! {
    #[test]
    fn no_value_leaves_its_segment(value in text(), quoted in any::<bool>()) {
        let template = if quoted { "/a/x('{v}')/z" } else { "/a/{v}/z" };
        let operation = operation(template, vec![parameter("v", ParameterLocation::Path)]);
        match made(&operation, json!({ "v": value })) {
            Err(RequestError::Unusable { argument, .. }) => {
                prop_assert_eq!(argument, "v");
                let odd = value.is_empty() || value.chars().any(char::is_control);
                prop_assert!(odd || value.contains('.') || value.contains('%'), "{:?} is harmless", value);
            }
            Err(other) => prop_assert!(false, "{}", other),
            Ok(request) => {
                let url = Url::parse(&format!("https://h.example/base{}", request.path)).unwrap();
                prop_assert_eq!(url.origin().ascii_serialization(), "https://h.example");
                prop_assert!(url.query().is_none() && url.fragment().is_none());
                let segments: Vec<_> = url.path_segments().unwrap().collect();
                prop_assert_eq!(segments.len(), 4, "{}", url);
                prop_assert_eq!((segments[0], segments[1], segments[3]), ("base", "a", "z"));
                let decoded = percent_decode_str(segments[2]).decode_utf8().unwrap().into_owned();
                let expected = if quoted { format!("x('{}')", value.replace('\'', "''")) } else { value };
                prop_assert_eq!(decoded, expected);
            }
        }
    }

    #[test]
    fn queries_decode_to_what_was_given(
        value in text(),
        items in prop::collection::vec(text(), 1..4),
        members in prop::collection::hash_map(text(), text(), 1..4),
        reserved in any::<bool>(),
    ) {
        let mut parameters = vec![
            parameter("one", ParameterLocation::Query),
            parameter("each", ParameterLocation::Query),
            styled("deep", ParameterLocation::Query, ParameterStyle::DeepObject, true),
            styled("json", ParameterLocation::Query, ParameterStyle::Json, false),
        ];
        parameters[0].allow_reserved = reserved;
        let operation = operation("/p", parameters);
        let object: Map<String, Value> =
            members.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let path = path_of(&operation, json!({ "one": value, "each": items, "deep": object, "json": value }));
        let url = Url::parse(&format!("https://h.example{path}")).unwrap();
        prop_assert_eq!((url.path(), url.fragment()), ("/p", None));
        let found: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let of = |wanted: &str| -> Vec<&str> {
            found.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value.as_str()).collect()
        };
        prop_assert_eq!(of("one"), vec![value.as_str()]);
        prop_assert_eq!(of("each"), items.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert_eq!(of("json"), vec![json!(value).to_string()]);
        for (name, value) in &members {
            let wanted = format!("deep[{name}]");
            prop_assert_eq!(of(&wanted), vec![value.as_str()]);
        }
        prop_assert_eq!(found.len(), 2 + items.len() + members.len());
    }

    #[test]
    fn lists_in_one_parameter_can_be_split_again(items in prop::collection::vec("[^\u{0}-\u{1f}]{1,8}", 1..5)) {
        for (style, separator) in [(ParameterStyle::Form, ","), (ParameterStyle::PipeDelimited, "%7C"), (ParameterStyle::TabDelimited, "%09")] {
            let operation = operation("/p", vec![styled("q", ParameterLocation::Query, style, false)]);
            let path = path_of(&operation, json!({ "q": items }));
            let found: Vec<String> = path
                .strip_prefix("/p?q=")
                .unwrap()
                .split(separator)
                .map(|item| percent_decode_str(item).decode_utf8().unwrap().into_owned())
                .collect();
            // In styles whose separator must be encoded, an encoded separator in a value looks the same.
            if style == ParameterStyle::Form || !items.iter().any(|item| item.contains('|')) {
                prop_assert_eq!(&found, &items);
            }
        }
    }

    #[test]
    fn no_value_leaves_its_header(value in text(), key in text()) {
        let parameters = vec![
            parameter("x-a", ParameterLocation::Header),
            styled("x-b", ParameterLocation::Header, ParameterStyle::Simple, true),
            parameter("c", ParameterLocation::Cookie),
        ];
        let operation = operation("/p", parameters);
        let breaks = |text: &str| text.chars().any(|c| c.is_control() && c != '\t');
        let arguments = json!({ "x-a": value, "x-b": { key.clone(): value.clone() }, "c": value });
        match made(&operation, arguments) {
            Ok(request) => {
                prop_assert!(!breaks(&value) && !breaks(&key));
                prop_assert_eq!(request.headers["x-a"].as_bytes(), value.as_bytes());
                prop_assert!(!request.headers["cookie"].as_bytes().contains(&b';'));
                prop_assert_eq!(request.headers.len(), 4);
            }
            Err(error) => prop_assert!(breaks(&value) || breaks(&key), "{}", error),
        }
    }
}
