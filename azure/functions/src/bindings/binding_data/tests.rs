use serde_json::json;

use super::*;
use crate::bindings::arguments::Arguments;

const ARGUMENTS: &str = r#"{"snippetname":"a","n":4.20,"yes":true,"no":false,"none":null,
    "obj":{"Inner":{"deep":"x"}},"list":[1, 2]}"#;

fn request(subject: RequestSubject<'_>) -> McpRequest<'_> {
    McpRequest {
        subject,
        session_id: Some("s1"),
        client_info: None,
        transport: "http-streamable",
        headers: None,
        sent_names: None,
        input_responses: None,
        state: None,
    }
}

fn tool(arguments: Option<&str>) -> McpRequest<'_> {
    request(RequestSubject::Tool { name: "save", arguments: Arguments::parse(arguments) })
}

fn metadata(request: &McpRequest<'_>, parameter: &str) -> Vec<(String, Datum)> {
    BindingData::new(request, &request.context(), parameter, "Function").metadata()
}

fn find<'m>(metadata: &'m [(String, Datum)], name: &str) -> Option<&'m Datum> {
    metadata.iter().find(|(known, _)| known == name).map(|(_, datum)| datum)
}

/// Returns the value of an expression. `Err` has the part that does not exist, `Ok(None)` means an unknown
/// name.
fn look_up(request: &McpRequest<'_>, expression: &str) -> Result<Option<String>, String> {
    let context = request.context();
    let data = BindingData::new(request, &context, "trigger", "Function");
    let mut parts = expression.split('.').map(str::to_owned);
    let first = parts.next().unwrap();
    let rest: Vec<String> = parts.collect();
    let found = data.look_up(&first, &rest);
    found.map(|text| text.map(Cow::into_owned)).map_err(|NoSuchPart(part)| part.to_owned())
}

fn value(text: &str) -> Result<Option<String>, String> {
    Ok(Some(text.to_owned()))
}

#[test]
fn a_tools_metadata_has_the_keys_of_the_extension_and_of_the_context() {
    let request = tool(Some(r#"{"a":1}"#));
    let context = request.context().into_string();
    let metadata = metadata(&request, "trigger");
    let names: Vec<&str> = metadata.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "name",
        "arguments",
        "sessionid",
        "transport",
        "mcptoolargs",
        "mcpsessionid",
        "mcptoolcontext",
        "trigger",
    ];
    assert_eq!(names, expected);
    assert_eq!(find(&metadata, "trigger"), Some(&Datum::Text(context.clone())));
    assert_eq!(find(&metadata, "mcptoolcontext"), Some(&Datum::Json(context)));
    assert_eq!(find(&metadata, "mcpsessionid"), Some(&Datum::from("s1")));
    assert_eq!(find(&metadata, "name"), Some(&Datum::from("save")));
    assert_eq!(find(&metadata, "sessionid"), Some(&Datum::from("s1")));
    assert_eq!(find(&metadata, "arguments"), Some(&Datum::Json(r#"{"a":1}"#.to_owned())));
    let transport = r#"{"name":"http-streamable","sessionId":"s1","properties":{}}"#;
    assert_eq!(find(&metadata, "transport"), Some(&Datum::Json(transport.to_owned())));
}

#[test]
fn mcptoolargs_maps_every_argument_to_text() {
    let metadata = metadata(&tool(Some(ARGUMENTS)), "trigger");
    let expected = concat!(
        r#"{"snippetname":"a","n":"4.20","yes":"True","no":"False","none":"","#,
        r#""obj":"{\"Inner\":{\"deep\":\"x\"}}","list":"[1, 2]"}"#
    );
    assert_eq!(find(&metadata, "mcptoolargs"), Some(&Datum::Json(expected.to_owned())));
}

#[test]
fn without_arguments_or_session_their_keys_are_absent() {
    let mut request = tool(None);
    request.session_id = None;
    let metadata = metadata(&request, "trigger");
    for absent in ["mcptoolargs", "arguments", "mcpsessionid", "sessionid", "mcpresourceuri"] {
        assert_eq!(find(&metadata, absent), None, "{absent}");
    }
}

#[test]
fn a_resources_metadata_has_each_variable_as_a_key_and_all_in_a_map() {
    let variables = [("Name".to_owned(), "a\"b".to_owned()), ("id".to_owned(), "7".to_owned())];
    let request = request(RequestSubject::Resource { uri: "snippet://a/7", variables: &variables });
    let metadata = metadata(&request, "trigger");
    assert_eq!(find(&metadata, "Name"), Some(&Datum::from("a\"b")));
    assert_eq!(find(&metadata, "id"), Some(&Datum::from("7")));
    assert_eq!(find(&metadata, "mcpresourceuri"), Some(&Datum::from("snippet://a/7")));
    assert_eq!(find(&metadata, "uri"), Some(&Datum::from("snippet://a/7")));
    let all = Datum::Json(r#"{"Name":"a\"b","id":"7"}"#.to_owned());
    assert_eq!(find(&metadata, "mcpresourceargs"), Some(&all));
    assert_eq!(find(&metadata, "mcpresourcecontext"), Some(&Datum::Json(request.context().into_string())));
}

#[test]
fn a_variable_overrides_a_key_of_the_same_name() {
    let variables = [("MCPSessionId".to_owned(), "mine".to_owned())];
    let request = request(RequestSubject::Resource { uri: "x://mine", variables: &variables });
    let metadata = metadata(&request, "trigger");
    assert_eq!(find(&metadata, "MCPSessionId"), Some(&Datum::from("mine")));
    assert_eq!(find(&metadata, "mcpsessionid"), None);
    assert_eq!(look_up(&request, "mcpsessionid"), value("mine"));
}

#[test]
fn a_prompts_metadata_has_prompt_names() {
    let arguments = Arguments::parse(Some(r#"{"code":1}"#));
    let request = request(RequestSubject::Prompt { name: "review", arguments });
    let metadata = metadata(&request, "trigger");
    assert_eq!(find(&metadata, "mcppromptargs"), Some(&Datum::Json(r#"{"code":"1"}"#.to_owned())));
    assert_eq!(find(&metadata, "mcppromptcontext"), Some(&Datum::Json(request.context().into_string())));
    assert_eq!(find(&metadata, "mcptoolargs"), None);
    assert_eq!(look_up(&request, "mcppromptargs.code"), value("1"));
}

#[test]
fn metadata_holds_no_arrays_and_nothing_but_text_and_json() {
    let (answers, list, number) = (json!({"k": 1}), json!([1]), json!(7));
    let mut request = tool(Some("{}"));
    request.input_responses = answers.as_object();
    request.state = Some(&list);
    let metadata_with_list = metadata(&request, "trigger");
    assert_eq!(find(&metadata_with_list, "state"), None);
    assert_eq!(find(&metadata_with_list, "inputResponses"), Some(&Datum::Json(r#"{"k":1}"#.to_owned())));
    request.state = Some(&number);
    let metadata = metadata(&request, "trigger");
    assert_eq!(find(&metadata, "state"), Some(&Datum::Json("7".to_owned())));
    assert!(metadata.iter().all(|(_, datum)| matches!(datum, Datum::Text(_) | Datum::Json(_))));
}

#[test]
fn first_names_are_found_in_any_case() {
    let request = tool(Some(ARGUMENTS));
    assert_eq!(look_up(&request, "McpToolArgs.snippetname"), value("a"));
    assert_eq!(look_up(&request, "NAME"), value("save"));
    assert_eq!(look_up(&request, "SessionID"), value("s1"));
    assert_eq!(look_up(&request, "mcpSessionId"), value("s1"));
}

#[test]
fn names_below_mcptoolargs_are_case_sensitive() {
    let request = tool(Some(ARGUMENTS));
    assert_eq!(look_up(&request, "mcptoolargs.snippetName"), Err("snippetName".to_owned()));
}

#[test]
fn names_below_arguments_match_in_any_case() {
    let request = tool(Some(ARGUMENTS));
    assert_eq!(look_up(&request, "arguments.SnippetName"), value("a"));
    assert_eq!(look_up(&request, "arguments.OBJ.inner.Deep"), value("x"));
    assert_eq!(look_up(&request, "mcptoolcontext.Arguments.n"), value("4.20"));
    assert_eq!(look_up(&request, "transport.name"), value("http-streamable"));
}

#[test]
fn objects_and_arrays_have_text_only_below_mcptoolargs() {
    let request = tool(Some(ARGUMENTS));
    assert_eq!(look_up(&request, "arguments.obj"), value(""));
    assert_eq!(look_up(&request, "arguments.list"), value(""));
    assert_eq!(look_up(&request, "arguments"), value(""));
    assert_eq!(look_up(&request, "mcptoolargs"), value(""));
    assert_eq!(look_up(&request, "mcptoolargs.list"), value("[1, 2]"));
    assert_eq!(look_up(&request, "mcptoolargs.yes"), value("True"));
}

#[test]
fn a_missing_part_is_named() {
    let request = tool(Some(ARGUMENTS));
    assert_eq!(look_up(&request, "mcptoolargs.x"), Err("x".to_owned()));
    assert_eq!(look_up(&request, "mcptoolargs.obj.Inner"), Err("Inner".to_owned()), "it is a text there");
    assert_eq!(look_up(&request, "arguments.x.y"), Err("x".to_owned()));
    assert_eq!(look_up(&request, "arguments.list.y"), Err("y".to_owned()));
    assert_eq!(look_up(&request, "name.length"), Err("length".to_owned()));
    assert_eq!(look_up(&request, "trigger.name"), Err("name".to_owned()));
}

#[test]
fn an_unknown_first_name_is_no_value() {
    let request = tool(None);
    assert_eq!(look_up(&request, "mcptoolargs.x"), Ok(None));
    assert_eq!(look_up(&request, "arguments.x"), Ok(None));
    assert_eq!(look_up(&request, "nonsense"), Ok(None));
}

#[test]
fn variables_are_found_at_the_top_and_below_mcpresourceargs() {
    let variables = [("Name".to_owned(), "a".to_owned())];
    let request = request(RequestSubject::Resource { uri: "snippet://a", variables: &variables });
    assert_eq!(look_up(&request, "name"), value("a"));
    assert_eq!(look_up(&request, "mcpresourceargs.Name"), value("a"));
    assert_eq!(look_up(&request, "mcpresourceargs.other"), Err("other".to_owned()));
    assert_eq!(look_up(&request, "mcpresourceuri"), value("snippet://a"));
    assert_eq!(look_up(&request, "uri"), value("snippet://a"));
}

#[test]
fn can_be_held_while_a_blob_is_read() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<BindingData<'_>>();
}

#[test]
fn built_in_workers_get_no_metadata_that_is_in_the_context() {
    let names = |request: &McpRequest<'_>| {
        let metadata = BindingData::new(request, &request.context(), "trigger", "Function").lean_metadata();
        metadata.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(&tool(Some(ARGUMENTS))), ["mcptoolargs", "mcpsessionid"]);
    let variables = [("Name".to_owned(), "a".to_owned())];
    let read = request(RequestSubject::Resource { uri: "x://a", variables: &variables });
    assert_eq!(names(&read), ["Name", "mcpresourceargs", "mcpresourceuri", "mcpsessionid"]);
}
