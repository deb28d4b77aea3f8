use http::HeaderValue;
use serde_json::json;

use super::*;

fn tool<'a>(arguments: Option<&'a str>) -> McpRequest<'a> {
    request(RequestSubject::Tool { name: "save_snippet", arguments: Arguments::parse(arguments) })
}

fn request(subject: RequestSubject<'_>) -> McpRequest<'_> {
    McpRequest {
        subject,
        session_id: None,
        client_info: None,
        transport: "http-streamable",
        headers: None,
        sent_names: None,
        input_responses: None,
        state: None,
    }
}

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_static(value));
    }
    headers
}

#[test]
fn a_tool_gets_name_arguments_session_and_transport() {
    let headers = headers(&[("accept", "application/json, text/event-stream")]);
    let mut request = tool(Some(r#"{"snippetname":"a","n":42}"#));
    request.session_id = Some("k3v|x9q");
    request.headers = Some(&headers);
    assert_eq!(
        request.context().as_str(),
        concat!(
            r#"{"name":"save_snippet","arguments":{"snippetname":"a","n":42},"sessionid":"k3v|x9q","#,
            r#""transport":{"name":"http-streamable","sessionId":"k3v|x9q","#,
            r#""properties":{"headers":{"Accept":"application/json, text/event-stream"}}}}"#
        )
    );
}

#[test]
fn members_without_a_value_are_omitted() {
    assert_eq!(
        tool(None).context().as_str(),
        r#"{"name":"save_snippet","transport":{"name":"http-streamable","properties":{}}}"#
    );
}

#[test]
fn arguments_are_copied_unchanged() {
    let odd = "{ \"b\" : 1.0e2,\n\"a\":\"\\u0041\", \"b\":1.50 }";
    assert!(tool(Some(odd)).context().as_str().contains(&format!("\"arguments\":{odd},")));
}

#[test]
fn a_resource_gets_its_uri_and_no_arguments() {
    let variables = [("Name".to_owned(), "a".to_owned())];
    let mut request = request(RequestSubject::Resource { uri: "snippet://a\"b", variables: &variables });
    request.transport = "http-sse";
    assert_eq!(
        request.context().into_string(),
        r#"{"uri":"snippet://a\"b","transport":{"name":"http-sse","properties":{}}}"#
    );
}

#[test]
fn a_prompt_gets_its_arguments_as_the_json_they_are() {
    let arguments = Arguments::parse(Some(r#"{"code":1}"#));
    assert_eq!(
        request(RequestSubject::Prompt { name: "review", arguments }).context().as_str(),
        r#"{"name":"review","arguments":{"code":1},"transport":{"name":"http-streamable","properties":{}}}"#
    );
}

#[test]
fn client_info_comes_with_its_optional_members() {
    let client = json!({"name": "inspector", "title": "The Inspector", "version": "1.2",
                        "websiteUrl": "https://example.com"});
    let text = client.to_string();
    let mut request = tool(None);
    request.client_info = Some(&text);
    let context: Value = serde_json::from_str(request.context().as_str()).unwrap();
    assert_eq!(context.get("clientinfo"), Some(&client));
}

#[test]
fn several_values_of_a_header_are_joined_by_a_bare_comma() {
    let headers = headers(&[("x-one", "a"), ("x-two", "b"), ("x-one", "c, d")]);
    let mut request = tool(None);
    request.headers = Some(&headers);
    let context: Value = serde_json::from_str(request.context().as_str()).unwrap();
    let expected = json!({"X-One": "a,c, d", "X-Two": "b"});
    assert_eq!(context.pointer("/transport/properties/headers"), Some(&expected));
}

#[test]
fn header_bytes_that_are_not_text_are_replaced() {
    let mut headers = HeaderMap::new();
    headers.insert("x-odd", HeaderValue::from_bytes(b"a\xff\"").unwrap());
    let mut request = tool(None);
    request.headers = Some(&headers);
    assert!(request.context().as_str().contains("\"X-Odd\":\"a\u{fffd}\\\"\""));
}

#[test]
fn a_second_round_brings_answers_and_state() {
    let answers = json!({"name": {"action": "accept"}});
    let state = json!([1, "two"]);
    let mut request = tool(None);
    request.input_responses = answers.as_object();
    request.state = Some(&state);
    let context = request.context();
    assert!(
        context.as_str().ends_with(r#"}},"inputResponses":{"name":{"action":"accept"}},"state":[1,"two"]}"#),
        "{}",
        context.as_str()
    );
}

#[test]
fn has_the_positions_of_its_members() {
    let context = tool(Some(r#"{"a":1}"#)).context();
    let expected = [
        ("name", r#""save_snippet""#),
        ("arguments", r#"{"a":1}"#),
        ("transport", r#"{"name":"http-streamable","properties":{}}"#),
    ];
    assert_eq!(context.members().collect::<Vec<_>>(), expected);
}

#[test]
fn missing_tool_arguments_are_all_named_in_order() {
    let required = ["b".to_owned(), "a".to_owned(), "given".to_owned()];
    assert_eq!(
        tool(Some(r#"{"given":0,"a":null}"#)).missing_required(&required).as_deref(),
        Some("One or more required tool properties are missing values. Please provide: b, a")
    );
    assert_eq!(tool(Some(r#"{"a":1,"b":"","given":[]}"#)).missing_required(&required), None);
}

#[test]
fn missing_prompt_arguments_have_a_different_text() {
    let prompt = request(RequestSubject::Prompt { name: "p", arguments: Arguments::parse(None) });
    assert_eq!(
        prompt.missing_required(&["code".to_owned(), "style".to_owned()]).as_deref(),
        Some("One or more required prompt arguments are missing values. Please provide: code, style")
    );
}
