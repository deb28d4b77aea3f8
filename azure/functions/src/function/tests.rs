//! Functions built from bindings: which are skipped, which are rejected, and what the language libraries
//! write.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::timers::schedule::TimerSchedule;

fn read(bindings: &[Value]) -> Result<Function, FunctionRejection> {
    let setting = |name: &str| match name {
        "CONTAINER" => Some("snippets".to_owned()),
        "SCHEDULE" => Some("00:05:00".to_owned()),
        _ => None,
    };
    Function::from_bindings(
        "f",
        "id",
        FunctionSource { language: "node".to_owned(), ..FunctionSource::default() },
        bindings,
        &setting,
    )
}

fn raw(text: &str) -> Function {
    Function::from_raw_bindings("f", "id", FunctionSource::default(), &[text], &|_| None).unwrap()
}

fn tool() -> Value {
    json!({"type": "mcpToolTrigger", "direction": "in", "name": "context", "toolName": "t"})
}

fn problems(bindings: &[Value]) -> Vec<String> {
    match read(bindings) {
        Err(FunctionRejection::Problems(problems)) => problems
            .iter()
            .map(|problem| format!("{}: {}", problem.member.as_deref().unwrap_or_default(), problem.message))
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn unsupported_functions_are_skipped_with_the_reason() {
    let ours =
        "bindpost runs mcpToolTrigger, mcpResourceTrigger, mcpPromptTrigger, httpTrigger and timerTrigger";
    let queue = "the binding queue is not supported; a function may use blob, with an HTTP trigger also http, and with an MCP trigger also mcpToolProperty or mcpPromptArgument";
    for (bindings, reason) in [
        (
            vec![json!({"type": "queueTrigger", "name": "q", "queueName": "work"})],
            format!("the trigger queueTrigger is not supported; {ours}"),
        ),
        (vec![], format!("it has no trigger; {ours}")),
        (vec![json!({"type": "blob", "name": "b"})], format!("it has no trigger; {ours}")),
        (
            vec![tool(), json!({"type": "timerTrigger"})],
            "it has 2 triggers (mcpToolTrigger, timerTrigger); a function has one".to_owned(),
        ),
        (vec![tool(), json!({"type": "queue", "direction": "out", "name": "q"})], queue.to_owned()),
    ] {
        let Err(FunctionRejection::Skipped(skipped)) = read(&bindings) else { panic!("{bindings:?}") };
        assert_eq!(skipped, SkippedFunction { name: "f".to_owned(), reason });
    }
}

#[test]
fn an_http_function_has_a_route_methods_and_a_level() {
    let http = |more: Value| {
        let mut trigger = json!({"type": "httpTrigger", "name": "req"});
        trigger.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let function =
            read(&[trigger, json!({"type": "http", "direction": "out", "name": "$return"})]).unwrap();
        let Trigger::Http(trigger) = function.trigger else { panic!() };
        (trigger.template("f").to_owned(), trigger.methods, trigger.level)
    };
    let all = Vec::new;
    assert_eq!(http(json!({})), ("f".to_owned(), all(), AuthorizationLevel::Function));
    let rows = [
        (json!({"route": "/%CONTAINER%/{id:int}/", "methods": ["get", "GET", "Post"]}), "snippets/{id:int}"),
        (json!({"route": "", "authLevel": "ANONYMOUS", "methods": []}), "f"),
        (json!({"route": " / ", "authLevel": "admin", "methods": null}), "f"),
    ];
    let [first, second, third] = rows.map(|(members, template)| {
        let (found, methods, level) = http(members);
        assert_eq!(found, template);
        (methods, level)
    });
    assert_eq!(first, (vec![::http::Method::GET, ::http::Method::POST], AuthorizationLevel::Function));
    assert_eq!(second, (all(), AuthorizationLevel::Anonymous));
    assert_eq!(third, (all(), AuthorizationLevel::Admin));
}

#[test]
fn a_timer_has_a_schedule_and_flags() {
    let timer = |binding: Value| {
        let Trigger::Timer(trigger) = read(&[binding]).unwrap().trigger else { panic!() };
        assert_eq!(trigger.schedule, TimerSchedule::parse(&trigger.text).unwrap());
        (trigger.text, trigger.run_on_startup, trigger.use_monitor)
    };
    let plain = json!({"type": "timerTrigger", "name": "t", "schedule": "0 * * * * *"});
    assert_eq!(timer(plain), ("0 * * * * *".to_owned(), false, true));
    let flags = json!({"type": "timerTrigger", "name": "t", "schedule": "%SCHEDULE%", "runOnStartup": true, "useMonitor": false});
    assert_eq!(timer(flags), ("00:05:00".to_owned(), true, false));
}

#[test]
fn mistakes_of_http_and_timer_functions_name_the_member() {
    let trigger = json!({"type": "httpTrigger", "name": "req"});
    let out = |name: &str| json!({"type": "http", "direction": "out", "name": name});
    for (bindings, message) in [
        (
            vec![json!({"type": "httpTrigger", "name": "req", "authLevel": "everyone"})],
            "httpTrigger.authLevel: \"everyone\" is not an authorization level",
        ),
        (
            vec![json!({"type": "httpTrigger", "name": "req", "methods": ["g e t"]})],
            "httpTrigger.methods: \"g e t\" is not an HTTP method",
        ),
        (
            vec![json!({"type": "httpTrigger", "name": "req", "route": "%NONE%"})],
            "httpTrigger.route: '%NONE%' does not resolve to a value.",
        ),
        (
            vec![trigger.clone(), json!({"type": "http", "name": "res"})],
            "http[res].direction: this binding cannot have the direction \"\"",
        ),
        (
            vec![trigger.clone(), out("a"), out("b")],
            "http[b]: a request has one response, but the function has several bindings for it",
        ),
        (
            vec![tool(), out("a")],
            "http[a]: this binding needs an httpTrigger, but the function has another trigger",
        ),
        (
            vec![trigger, json!({"type": "mcpToolProperty", "name": "p", "propertyName": "p"})],
            "mcpToolProperty[p]: this binding needs an mcpToolTrigger, but the function has another trigger",
        ),
        (vec![json!({"type": "timerTrigger", "name": "t"})], "timerTrigger.schedule: is required"),
        (
            vec![json!({"type": "timerTrigger", "name": "t", "schedule": "%NONE%"})],
            "timerTrigger.schedule: '%NONE%' does not resolve to a value.",
        ),
        (
            vec![json!({"type": "timerTrigger", "name": "t", "schedule": "@daily"})],
            "timerTrigger.schedule: The schedule expression '@daily' was not recognized as a valid cron expression or timespan string.",
        ),
    ] {
        assert_eq!(problems(&bindings), [message]);
    }
}

#[test]
fn blobs_are_read_and_written() {
    let function = read(&[
        tool(),
        json!({"type": "blob", "direction": "IN", "name": "old", "path": "%CONTAINER%/{mcptoolargs.name}", "dataType": "BINARY"}),
        json!({"type": "Blob", "direction": "out", "name": "$return", "path": "files/d", "connection": "Mine", "dataType": "String"}),
    ])
    .unwrap();
    let [InputBinding::Blob(input)] = function.inputs.as_slice() else { panic!() };
    assert_eq!(
        (input.name.as_str(), input.connection.as_str(), input.data_type),
        ("old", "AzureWebJobsStorage", DataType::Binary)
    );
    assert_eq!(input.path.as_str(), "%CONTAINER%/{mcptoolargs.name}");
    let [OutputBinding::Blob(output)] = function.outputs.as_slice() else { panic!() };
    assert_eq!(
        (output.name.as_str(), output.connection.as_str(), output.data_type),
        ("$return", "Mine", DataType::Text)
    );
    assert_eq!(
        (function.id.as_str(), function.source.language.as_str(), function.parameter()),
        ("id", "node", "context")
    );
    let info = |name: &str, kind: &str, direction, data_type| BindingInfo {
        name: name.to_owned(),
        kind: kind.to_owned(),
        direction,
        data_type,
    };
    assert_eq!(
        function.source.bindings,
        [
            info("context", "mcpToolTrigger", BindingDirection::In, DataType::Undefined),
            info("old", "blob", BindingDirection::In, DataType::Binary),
            info("$return", "Blob", BindingDirection::Out, DataType::Text),
        ]
    );
}

#[test]
fn mistakes_name_the_binding_and_the_member() {
    for (binding, message) in [
        (json!({"type": "blob", "direction": "out", "name": "b"}), "blob[b].path: is required"),
        (
            json!({"type": "blob", "direction": "inout", "name": "b", "path": "files/d"}),
            "blob[b].direction: this binding cannot have the direction \"inout\"",
        ),
        (
            json!({"type": "blob", "direction": "up", "name": "b", "path": "files/d"}),
            "blob[b].direction: \"up\" is not valid",
        ),
        (
            json!({"type": "blob", "dataType": "json", "name": "b", "path": "files/d"}),
            "blob[b].dataType: \"json\" is not valid",
        ),
        (json!({"type": "blob", "path": "files/d"}), "blob.name: is required"),
        (
            json!({"type": "blob", "name": "$return", "path": "files/d"}),
            "blob[$return].name: $return is the name of an output",
        ),
        (
            json!({"type": "blob", "name": "Context", "path": "files/d"}),
            "bindings: two bindings have the name \"Context\"",
        ),
        (json!({"name": "x"}), "bindings: a binding has no type"),
        (json!(7), "bindings[1]: must be an object"),
        (
            json!({"type": "mcpToolProperty", "direction": "out", "name": "p", "propertyName": "p"}),
            "mcpToolProperty[p].direction: this binding cannot have the direction \"out\"",
        ),
    ] {
        assert_eq!(problems(&[tool(), binding]), [message]);
    }
    // The template reports what is wrong with a path.
    for path in ["files/{}", "%NONE%/a"] {
        let told = problems(&[tool(), json!({"type": "blob", "name": "b", "path": path})]);
        assert!(told.len() == 1 && told[0].starts_with("blob[b].path: "), "{told:?}");
    }
    let mut out = tool();
    out["direction"] = json!("out");
    assert_eq!(
        problems(&[out]),
        ["mcpToolTrigger.direction: this binding cannot have the direction \"out\""]
    );
    let several = json!({"type": "blob", "name": "b", "direction": "out"});
    let mut bad_tool = tool();
    bad_tool["toolName"] = json!(" ");
    assert_eq!(problems(&[bad_tool, several]).len(), 2);
}

#[test]
fn a_raw_binding_that_is_not_json_is_reported_with_its_place() {
    let told =
        Function::from_raw_bindings("f", "id", FunctionSource::default(), &["{\"type\": }"], &|_| None);
    let Err(FunctionRejection::Problems(problems)) = told else { panic!() };
    assert_eq!(
        problems[0].to_string(),
        "function f: bindings[0]: is not valid JSON: line 1, column 10: expected value"
    );
}

#[test]
fn names_and_addresses_are_unique_in_any_case() {
    let named = |name: &str, binding: Value| {
        Function::from_bindings(name, name, FunctionSource::default(), &[binding], &|_| None).unwrap()
    };
    let tool = |function: &str, tool: &str| {
        named(function, json!({"type": "mcpToolTrigger", "name": "c", "toolName": tool}))
    };
    let prompt = |function: &str, prompt: &str| {
        named(function, json!({"type": "mcpPromptTrigger", "name": "c", "promptName": prompt}))
    };
    let resource = |function: &str, uri: &str| {
        named(function, json!({"type": "mcpResourceTrigger", "name": "c", "uri": uri, "resourceName": "r"}))
    };
    let functions = [
        tool("a", "save"),
        tool("b", "SAVE"),
        tool("c", "other"),
        prompt("d", "save"),
        prompt("e", "Save"),
        resource("f", "x://a"),
        resource("g", "X://A"),
        resource("h", "x://{a}/b"),
        resource("i", "x://{c}/B"),
        resource("j", "x://{a}"),
    ];
    let told: Vec<(String, String)> = check_unique(&functions)
        .into_iter()
        .map(|problem| (problem.function.unwrap(), problem.message))
        .collect();
    let expected = [
        ("b", "Tool with name 'SAVE' is already registered."),
        ("e", "Prompt with name 'Save' is already registered."),
        ("g", "Resource with URI 'X://A' is already registered."),
        (
            "i",
            "A resource template with an equivalent URI pattern is already registered. Existing: 'x://{a}/b', New: 'x://{c}/B'.",
        ),
    ];
    assert_eq!(told, expected.map(|(function, message)| (function.to_owned(), message.to_owned())));
}

#[test]
fn what_the_python_library_writes_is_read() {
    let function = raw(
        r#"{"direction":"IN","type":"mcpToolTrigger","name":"context","toolName":"hello","description":"<docstring>","toolProperties":"[{\"propertyName\": \"name\", \"propertyType\": \"string\", \"description\": \"The name\", \"isArray\": false, \"isRequired\": true}]","metadata":"{\"a\":1}","useResultSchema":false}"#,
    );
    let Trigger::Tool(trigger) = function.trigger else { panic!() };
    assert_eq!(
        serde_json::to_value(&trigger.tool).unwrap(),
        json!({
            "name": "hello", "description": "<docstring>", "_meta": {"a": 1},
            "inputSchema": {"type": "object", "properties": {"name": {"type": "string", "description": "The name"}}, "required": ["name"]},
        })
    );
    assert_eq!((trigger.required, trigger.uses_result_schema), (vec!["name".to_owned()], false));

    let function = raw(
        r#"{"direction":"IN","type":"mcpResourceTrigger","name":"context","uri":"file://readme.md","resourceName":"readme","title":"T","description":"d","mimeType":"text/plain","size":5,"metadata":"{\"x\":1}"}"#,
    );
    let Trigger::Resource(ResourceTrigger { address: ResourceAddress::One(resource), .. }) = function.trigger
    else {
        panic!()
    };
    assert_eq!(
        serde_json::to_value(resource).unwrap(),
        json!({"uri": "file://readme.md", "name": "readme", "title": "T", "description": "d", "mimeType": "text/plain", "size": 5, "_meta": {"x": 1}})
    );

    let function = raw(
        r#"{"direction":"IN","type":"mcpPromptTrigger","name":"context","promptName":"code_review","promptArguments":"[{\"name\":\"code\",\"description\":\"The code\",\"required\":true}]","title":"CR","description":"d","icons":"[{\"src\":\"…\"}]"}"#,
    );
    let Trigger::Prompt(PromptTrigger { prompt, required, .. }) = function.trigger else { panic!() };
    assert_eq!(
        serde_json::to_value(prompt).unwrap(),
        json!({"name": "code_review", "title": "CR", "description": "d", "arguments": [{"name": "code", "description": "The code", "required": true}], "icons": [{"src": "…"}]})
    );
    assert_eq!(required, ["code"]);
}

#[test]
fn what_the_node_library_writes_is_read() {
    let function = raw(
        r#"{"toolName":"savesnippet","description":"Save","useResultSchema":true,"metadata":"{\"a\":1}","toolProperties":"[{\"propertyName\":\"snippetname\",\"propertyType\":\"string\",\"description\":\"The name\",\"isRequired\":true,\"isArray\":false}]","type":"mcpToolTrigger","name":"mcpToolTrigger1ecef3ecb8","direction":"in","properties":{"supportsDeferredBinding":"false"}}"#,
    );
    assert_eq!(function.parameter(), "mcpToolTrigger1ecef3ecb8");
    let Trigger::Tool(trigger) = function.trigger else { panic!() };
    assert!(trigger.uses_result_schema);
    assert_eq!(trigger.required, ["snippetname"]);

    let function = raw(
        r#"{"uri":"file://readme.md","resourceName":"readme","title":"T","description":"d","mimeType":"text/plain","size":5,"metadata":"{\"x\":1}","type":"mcpResourceTrigger","name":"mcpResourceTrigger<hash>","direction":"in","properties":{"supportsDeferredBinding":"false"}}"#,
    );
    let Trigger::Resource(trigger) = function.trigger else { panic!() };
    assert_eq!(trigger.mime_type.as_deref(), Some("text/plain"));

    let function = raw(
        r#"{"promptName":"code_review","promptArguments":"[{\"name\":\"code\",\"description\":\"The code\",\"required\":true}]","title":"CR","description":"d","type":"mcpPromptTrigger","name":"mcpPromptTrigger<hash>","direction":"in","properties":{"supportsDeferredBinding":"false"}}"#,
    );
    let Trigger::Prompt(trigger) = function.trigger else { panic!() };
    assert_eq!((trigger.required, trigger.uses_result_schema), (vec!["code".to_owned()], false));
}

#[test]
fn what_the_java_plugin_writes_is_read() {
    let bindings = [
        r#"{"type":"mcpToolTrigger","direction":"in","name":"saveSnippets","toolName":"saveSnippets","description":"…","toolProperties":"[{\"propertyName\":\"snippetName\",\"propertyType\":\"string\",\"description\":\"…\",\"isRequired\":true,\"isArray\":false}]"}"#,
        r#"{"type":"mcpToolProperty","direction":"in","name":"snippetName","propertyName":"snippetName","propertyType":"string","description":"…","isRequired":true,"isArray":false}"#,
    ];
    let function =
        Function::from_raw_bindings("f", "id", FunctionSource::default(), &bindings, &|_| None).unwrap();
    let [InputBinding::ToolProperty { name, property }] = function.inputs.as_slice() else { panic!() };
    assert_eq!((name.as_str(), property.as_str()), ("snippetName", "snippetName"));
    let Trigger::Tool(trigger) = function.trigger else { panic!() };
    assert_eq!(trigger.required, ["snippetName"]);

    let bindings = [
        r#"{"type":"mcpPromptTrigger","direction":"in","name":"code_review","promptName":"code_review"}"#,
        r#"{"type":"mcpPromptArgument","direction":"in","name":"code","argumentName":"code","description":"…","isRequired":true}"#,
    ];
    let function =
        Function::from_raw_bindings("f", "id", FunctionSource::default(), &bindings, &|_| None).unwrap();
    assert!(matches!(function.inputs.as_slice(), [InputBinding::PromptArgument { required: true, .. }]));
}

#[test]
fn what_dotnet_writes_for_a_view_is_read() {
    let function = raw(
        r#"{"name":"context","type":"mcpResourceTrigger","direction":"In","uri":"ui://T/view","resourceName":"T_view","mimeType":"text/html;profile=mcp-app"}"#,
    );
    let Trigger::Resource(ResourceTrigger { address: ResourceAddress::One(resource), .. }) = function.trigger
    else {
        panic!()
    };
    assert_eq!(
        (resource.uri.as_str(), resource.mime_type.as_deref()),
        ("ui://T/view", Some("text/html;profile=mcp-app"))
    );
}

/// Generates values that a member may wrongly have.
fn any_value() -> impl Strategy<Value = Value> {
    let texts = [
        "",
        " ",
        "[]",
        "{}",
        "[1]",
        "[{}]",
        "{\"a\":[[]]}",
        "{\"type\":\"object\"}",
        "x://{a}",
        "true",
        "-1",
        "in",
        "$return",
        "{",
    ];
    prop_oneof![
        prop::sample::select(texts.to_vec()).prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        prop::sample::select(vec![
            json!(null),
            json!([]),
            json!({}),
            json!([null]),
            json!([{"src": 1}]),
            json!({"priority": "x"})
        ]),
    ]
}

proptest! {
    #[test]
    fn any_binding_is_read_skipped_or_rejected(
        kind in prop::sample::select(vec!["mcpToolTrigger", "mcpResourceTrigger", "mcpPromptTrigger", "mcpToolProperty", "mcpPromptArgument", "blob"]),
        members in prop::collection::hash_map(
            prop::sample::select(vec![
                "type", "direction", "name", "dataType", "toolName", "description", "toolProperties", "metadata", "inputSchema",
                "useWorkerInputSchema", "outputSchema", "useResultSchema", "uri", "resourceName", "title", "mimeType", "size", "promptName",
                "promptArguments", "icons", "annotations", "propertyName", "argumentName", "isRequired", "path", "connection",
            ]),
            any_value(),
            0..12,
        ),
    ) {
        let mut binding = json!({"type": kind, "name": "x"});
        binding.as_object_mut().unwrap().extend(members.into_iter().map(|(name, value)| (name.to_owned(), value)));
        match read(&[tool(), binding.clone()]) {
            Err(FunctionRejection::Problems(problems)) => prop_assert!(!problems.is_empty() && problems.iter().all(|problem| !problem.message.is_empty())),
            Err(FunctionRejection::Skipped(skipped)) => prop_assert!(!skipped.reason.is_empty()),
            Ok(function) => prop_assert_eq!(function.inputs.len() + function.outputs.len(), 1),
        }
        if let Ok(function) = read(&[binding]) {
            prop_assert_eq!(function.source.bindings.len(), 1);
        }
    }
}

/// Returns the warnings about a function with this trigger and blob path.
fn path_warnings(trigger: Value, path: &str) -> Vec<String> {
    let blob = json!({"type": "blob", "direction": "out", "name": "file", "path": path});
    read(&[trigger, blob]).unwrap().warnings.iter().map(Problem::to_string).collect()
}

#[test]
fn a_path_with_an_argument_that_the_trigger_does_not_declare_is_a_warning() {
    let mut tool = tool();
    tool["toolProperties"] = json!([{"propertyName": "snippetname"}, {"propertyName": "text"}]);
    let prompt = json!({
        "type": "mcpPromptTrigger", "name": "context", "promptName": "p", "promptArguments": r#"[{"name": "topic"}]"#,
    });
    let at = "function f: blob[file].path:";
    for (trigger, path, says) in [
        (&tool, "a-b/{mcptoolargs.snippetname}/{arguments.SnippetName}/{name}/{rand-guid}/{other.x}", None),
        (
            &tool,
            "a-b/{McpToolArgs.snippetName}",
            Some(
                "{McpToolArgs.snippetName} names no property of the tool\n  fix: write {McpToolArgs.snippetname}",
            ),
        ),
        (
            &tool,
            "a-b/{arguments.txet}",
            Some("{arguments.txet} names no property of the tool\n  fix: write {arguments.text}"),
        ),
        (
            &tool,
            "a-b/{mcptoolargs.colour}",
            Some(
                "{mcptoolargs.colour} names no property of the tool\n  fix: declare it in mcpToolTrigger.toolProperties",
            ),
        ),
        (&prompt, "a-b/{mcppromptargs.topic}", None),
        (
            &prompt,
            "a-b/{mcppromptargs.topics}",
            Some(
                "{mcppromptargs.topics} names no argument of the prompt\n  fix: write {mcppromptargs.topic}",
            ),
        ),
    ] {
        let expected: Vec<String> = says.map(|says| format!("{at} {says}")).into_iter().collect();
        assert_eq!(path_warnings(trigger.clone(), path), expected, "{path}");
    }
    // A schema of the author's may allow more than it lists.
    for (schema, count) in [
        (r#"{"type": "object", "properties": {"a": {}}}"#, 1),
        (r#"{"type": "object", "properties": {"a": {}}, "additionalProperties": false}"#, 1),
        (r#"{"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}}"#, 0),
        (r#"{"type": "object"}"#, 0),
    ] {
        let mut tool = self::tool();
        tool["useWorkerInputSchema"] = json!(true);
        tool["inputSchema"] = json!(schema);
        assert_eq!(path_warnings(tool, "a-b/{mcptoolargs.b}").len(), count, "{schema}");
    }
}
