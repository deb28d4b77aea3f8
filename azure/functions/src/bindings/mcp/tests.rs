//! Tests each row of the contract's tables.

use bindpost_mcp_protocol::{Prompt, Tool};
use serde_json::{Value, json};

use crate::function::{
    Function, FunctionRejection, FunctionSource, InputBinding, PromptTrigger, ResourceAddress,
    ResourceTrigger, ToolTrigger, Trigger,
};

fn function(bindings: &[Value]) -> Result<Function, Vec<String>> {
    match Function::from_bindings("f", "id", FunctionSource::default(), bindings, &|_| None) {
        Ok(function) => Ok(function),
        Err(FunctionRejection::Problems(problems)) => {
            assert!(problems.iter().all(|problem| problem.function.as_deref() == Some("f")), "{problems:?}");
            let told = problems
                .iter()
                .map(|p| format!("{}: {}", p.member.as_deref().unwrap_or_default(), p.message));
            Err(told.collect())
        }
        Err(FunctionRejection::Skipped(skipped)) => panic!("{skipped:?}"),
    }
}

/// Returns a trigger with more members.
fn with(kind: &str, own: Value, more: Value) -> Value {
    let mut binding = json!({"type": kind, "direction": "in", "name": "context"});
    for part in [own, more] {
        let Value::Object(part) = part else { panic!() };
        binding.as_object_mut().unwrap().extend(part);
    }
    binding
}

fn tool(more: Value) -> Result<ToolTrigger, Vec<String>> {
    let Trigger::Tool(trigger) = function(&[with("mcpToolTrigger", json!({"toolName": "t"}), more)])?.trigger
    else {
        panic!()
    };
    Ok(trigger)
}

fn listed(more: Value) -> Tool {
    tool(more).unwrap().tool
}

fn resource(more: Value) -> Result<ResourceTrigger, Vec<String>> {
    let own = json!({"uri": "file://readme.md", "resourceName": "readme"});
    let Trigger::Resource(trigger) = function(&[with("mcpResourceTrigger", own, more)])?.trigger else {
        panic!()
    };
    Ok(trigger)
}

fn resource_listing(more: Value) -> Value {
    match resource(more).unwrap().address {
        ResourceAddress::One(resource) => serde_json::to_value(resource).unwrap(),
        ResourceAddress::Family(_, template) => serde_json::to_value(template).unwrap(),
    }
}

fn prompt(more: Value) -> Result<PromptTrigger, Vec<String>> {
    let Trigger::Prompt(trigger) =
        function(&[with("mcpPromptTrigger", json!({"promptName": "p"}), more)])?.trigger
    else {
        panic!()
    };
    Ok(trigger)
}

fn prompt_listing(more: Value) -> Value {
    serde_json::to_value(prompt(more).unwrap().prompt).unwrap()
}

fn refused<T: std::fmt::Debug>(read: Result<T, Vec<String>>) -> String {
    read.unwrap_err().join("; ")
}

/// Returns `properties` of the schema that is generated from `toolProperties`.
fn schema(properties: Value) -> Value {
    listed(json!({"toolProperties": properties.to_string()})).input_schema.into()
}

#[test]
fn a_plain_tool_lists_name_and_an_empty_schema() {
    let trigger = tool(json!({})).unwrap();
    assert_eq!(trigger.parameter, "context");
    assert!(!trigger.uses_result_schema && trigger.required.is_empty());
    let expected = json!({"name": "t", "inputSchema": {"type": "object", "properties": {}, "required": []}});
    assert_eq!(serde_json::to_value(trigger.tool).unwrap(), expected);
}

#[test]
fn member_names_match_in_any_case_and_null_is_absent() {
    let binding = json!({
        "TYPE": "MCPTOOLTRIGGER", "Direction": "IN", "NAME": "c", "ToolName": "t", "DESCRIPTION": "d", "useresultschema": "True",
        "title": null, "metadata": null, "toolProperties": null, "outputSchema": null, "icons": null, "annotations": null,
    });
    let Trigger::Tool(trigger) = function(&[binding]).unwrap().trigger else { panic!() };
    assert!(trigger.uses_result_schema);
    let expected = json!({"name": "t", "description": "d", "inputSchema": {"type": "object", "properties": {}, "required": []}});
    assert_eq!(serde_json::to_value(trigger.tool).unwrap(), expected);
}

#[test]
fn a_tool_name_that_some_clients_reject_is_a_warning() {
    for name in ["save_snippet", "A.b/c-9", &"x".repeat(128)] {
        assert_eq!(listed(json!({"toolName": name})).name, name);
    }
    for name in ["two words", "ä", "a:b", &"x".repeat(129)] {
        let function = function(&[with("mcpToolTrigger", json!({"toolName": name}), json!({}))]).unwrap();
        let [warning] = function.warnings.as_slice() else { panic!("{:?}", function.warnings) };
        let says = format!(
            "function f: mcpToolTrigger.toolName: {name:?} is not a tool name that all MCP clients accept\n"
        );
        assert!(warning.to_string().starts_with(&says), "{warning}");
        let Trigger::Tool(trigger) = function.trigger else { panic!() };
        assert_eq!(trigger.tool.name, name);
    }
    assert_eq!(refused(tool(json!({"toolName": " "}))), "mcpToolTrigger.toolName: is required");
    assert_eq!(refused(tool(json!({"toolName": null}))), "mcpToolTrigger.toolName: is required");
    let warnings =
        function(&[with("mcpToolTrigger", json!({"toolName": "a b"}), json!({}))]).unwrap().warnings;
    assert!(warnings[0].fix.as_deref().unwrap().ends_with("for example \"a_b\""), "{warnings:?}");
}

#[test]
fn properties_of_early_java_libraries_have_required_instead_of_is_required() {
    let property = |more: Value| {
        let mut property = json!({"propertyName": "a", "propertyType": "string"});
        property.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tool(json!({"toolProperties": json!([property]).to_string()})).unwrap().required
    };
    assert_eq!(property(json!({"required": true})), ["a"]);
    assert_eq!(property(json!({"required": "True"})), ["a"]);
    assert_eq!(property(json!({"required": false})), [""; 0]);
    // The present name is stronger.
    assert_eq!(property(json!({"required": true, "isRequired": false})), [""; 0]);
}

#[test]
fn tool_properties_are_an_array_or_a_text_that_holds_one() {
    // Generic bindings are written by hand, where an array is natural.
    let properties = json!([{"propertyName": "a", "propertyType": "string", "isRequired": true}]);
    let listed_schema = listed(json!({"toolProperties": properties})).input_schema;
    assert_eq!(listed_schema, schema(properties));
    assert_eq!(listed_schema["required"], json!(["a"]));
    for (value, message) in [
        (json!(""), "mcpToolTrigger.toolProperties: is empty, but must contain a JSON array"),
        (json!("{}"), "mcpToolTrigger.toolProperties: must contain a JSON array, but has Object"),
        (json!("[1]"), "mcpToolTrigger.toolProperties[0]: must be an object, not 1"),
        (json!({}), "mcpToolTrigger.toolProperties: must contain a JSON array, but has Object"),
        (json!([1]), "mcpToolTrigger.toolProperties[0]: must be an object, not 1"),
        (
            json!("[{]"),
            "mcpToolTrigger.toolProperties: holds no JSON array: line 1, column 3: key must be a string",
        ),
        (
            json!("[],"),
            "mcpToolTrigger.toolProperties: holds no JSON array: line 1, column 3: trailing characters",
        ),
        (
            json!("[{\"propertyName\":\"a\",\"isRequired\":3}]"),
            "mcpToolTrigger.toolProperties[0].isRequired: must be true or false, not 3",
        ),
        (
            json!("[{\"propertyName\":\"a\",\"enumValues\":[1]}]"),
            "mcpToolTrigger.toolProperties[0].enumValues: must be an array of texts",
        ),
    ] {
        assert_eq!(refused(tool(json!({"toolProperties": value}))), message);
    }
}

#[test]
fn an_unknown_type_of_a_property_is_a_warning() {
    for (kind, fix) in [
        ("String", "write \"string\""),
        ("int", "write \"integer\""),
        ("bool", "write \"boolean\""),
        ("intger", "write \"integer\""),
        ("", "write string, number, integer, boolean or object; isArray makes a list"),
        ("datetime", "write string, number, integer, boolean or object; isArray makes a list"),
    ] {
        let properties = json!([{"propertyName": "a", "propertyType": kind, "isArray": true}]);
        let trigger = with("mcpToolTrigger", json!({"toolName": "t"}), json!({"toolProperties": properties}));
        let function = function(&[trigger]).unwrap();
        let [warning] = function.warnings.as_slice() else { panic!("{:?}", function.warnings) };
        let says = format!(
            "function f: mcpToolTrigger.toolProperties[0].propertyType: {kind:?} is not a type, so the property has no \
             type\n  fix: {fix}"
        );
        assert_eq!(warning.to_string(), says);
        let Trigger::Tool(trigger) = function.trigger else { panic!() };
        let property = json!({"type": "array", "items": {}, "description": ""});
        assert_eq!(trigger.tool.input_schema["properties"]["a"], property);
    }
    for kind in ["string", "number", "integer", "boolean", "object", "array", "float"] {
        let properties = json!([{"propertyName": "a", "propertyType": kind}]);
        let trigger = with("mcpToolTrigger", json!({"toolName": "t"}), json!({"toolProperties": properties}));
        assert_eq!(function(&[trigger]).unwrap().warnings, [], "{kind}");
    }
}

#[test]
fn schemas_list_properties_in_the_order_of_declaration() {
    let properties = r#"[{"propertyName": "to", "propertyType": "string", "isRequired": true, "description": "To \"x\"."},
        {"propertyName": "again", "propertyType": "string", "isArray": true, "enumValues": ["b", "a"]},
        {"propertyName": "from"}, {"propertyName": "again", "propertyType": "float", "isRequired": true}]"#;
    let tool = listed(json!({"toolProperties": properties}));
    let expected = r#"{"name":"t","inputSchema":{"type":"object","properties":{"to":{"type":"string","description":"To \"x\"."},"from":{"description":""},"again":{"type":"number","description":""}},"required":["to","again"]}}"#;
    assert_eq!(serde_json::to_string(&tool).unwrap(), expected);

    let given = r#" {"type": "object", "properties": {"z": {"x": 1.0, "a": [ ]}, "b": {}, "z": {"type": "string"}}} "#;
    let tool = listed(json!({"useWorkerInputSchema": true, "inputSchema": given, "outputSchema": given}));
    let sent = r#"{"type":"object","properties":{"b":{},"z":{"type":"string"}}}"#;
    let expected = format!(r#"{{"name":"t","inputSchema":{sent},"outputSchema":{sent}}}"#);
    assert_eq!(serde_json::to_string(&tool).unwrap(), expected);
}

#[test]
fn the_schema_is_generated_from_the_properties() {
    let trigger = tool(json!({"toolProperties": json!([
        {"propertyName": "b", "propertyType": "string", "description": "B", "isRequired": true},
        {"PROPERTYNAME": "a", "propertyType": "integer", "unknown": 1, "isRequired": true, "description": null},
        {"propertyName": "e", "propertyType": "string", "enumValues": ["x", "y"]},
        {"propertyName": "l", "propertyType": "string", "isArray": true, "enumValues": ["x"], "description": "L"},
        {"propertyName": "f", "propertyType": "float"},
        {"propertyName": "n"},
        {"propertyName": " ", "propertyType": "string", "isRequired": true},
        {"propertyType": "string"},
        {"propertyName": "b", "propertyType": "number", "isRequired": true, "enumValues": null},
    ]).to_string()})).unwrap();
    assert_eq!(trigger.required, ["b", "a"]);
    assert_eq!(
        trigger.tool.input_schema,
        json!({
            "type": "object",
            "properties": {
                "b": {"type": "number", "description": ""},
                "a": {"type": "integer", "description": ""},
                "e": {"type": "string", "enum": ["x", "y"], "description": ""},
                "l": {"type": "array", "items": {"type": "string", "enum": ["x"]}, "description": "L"},
                "f": {"type": "number", "description": ""},
                "n": {"description": ""},
            },
            "required": ["b", "a"],
        })
    );
    assert_eq!(schema(json!([])), json!({"type": "object", "properties": {}, "required": []}));
}

#[test]
fn metadata_becomes_meta() {
    assert_eq!(json!(listed(json!({"metadata": "{\"ui\":{\"a\":1}}"})).meta), json!({"ui": {"a": 1}}));
    for nothing in [json!(null), json!(""), json!(" "), json!("{}")] {
        assert_eq!(listed(json!({"metadata": nothing})).meta, None);
    }
    for (text, kind) in [
        ("[]", "Array"),
        ("\"a\"", "String"),
        ("1", "Number"),
        ("true", "True"),
        ("false", "False"),
        ("null", "Null"),
    ] {
        let message =
            format!("mcpToolTrigger.metadata: Metadata root must be a JSON object; received {kind}.");
        assert_eq!(refused(tool(json!({"metadata": text}))), message);
    }
    let nested =
        |levels: usize| format!("{}{}{}", "{\"a\":".repeat(levels - 1), "{}", "}".repeat(levels - 1));
    assert!(listed(json!({"metadata": nested(32)})).meta.is_some());
    assert_eq!(
        refused(tool(json!({"metadata": nested(33)}))),
        "mcpToolTrigger.metadata: is nested deeper than 32 levels"
    );
    assert!(
        refused(tool(json!({"metadata": "{"})))
            .starts_with("mcpToolTrigger.metadata: holds no JSON object: line 1")
    );
    assert!(
        refused(tool(json!({"metadata": {"a": 1}}))).starts_with("mcpToolTrigger.metadata: must be a text")
    );
}

#[test]
fn a_worker_may_give_the_input_schema() {
    let given = json!({"type": "object", "properties": {"x": {"type": "array", "items": {"type": "object"}}}, "required": ["x", 1]});
    let trigger =
        tool(json!({"useWorkerInputSchema": true, "inputSchema": given.to_string(), "toolProperties": "[]"}))
            .unwrap();
    assert_eq!(trigger.tool.input_schema, given);
    assert_eq!(trigger.required, ["x"]);
    // Without the flag the schema is ignored.
    assert_eq!(listed(json!({"inputSchema": "{"})).input_schema, schema(json!([])));

    for nothing in [json!(null), json!("")] {
        let message = refused(tool(json!({"useWorkerInputSchema": "true", "inputSchema": nothing})));
        assert_eq!(message, "mcpToolTrigger.inputSchema: InputSchema is null or invalid. ");
    }
    for text in ["{", "{\"type\":\"object\",}", "{} // no", " "] {
        let message = refused(tool(json!({"useWorkerInputSchema": true, "inputSchema": text})));
        let expected = "mcpToolTrigger.inputSchema: Failed to parse InputSchema for tool 't'. Schema must be valid JSON.";
        assert_eq!(message, expected);
    }
}

#[test]
fn schemas_have_the_shape_of_tool_schemas() {
    for wrong in [
        json!([]),
        json!({}),
        json!({"type": "string"}),
        json!({"type": "Object"}),
        json!({"type": ["object"]}),
        json!({"type": "object", "properties": []}),
        json!({"type": "object", "required": {}}),
        json!({"type": "object", "required": null}),
    ] {
        let text = wrong.to_string();
        let input = refused(tool(json!({"useWorkerInputSchema": true, "inputSchema": text})));
        assert_eq!(
            input,
            "mcpToolTrigger.inputSchema: The specified document is not a valid MCP tool input JSON schema."
        );
        let output = refused(tool(json!({"outputSchema": text})));
        assert_eq!(
            output,
            "mcpToolTrigger.outputSchema: The specified document is not a valid MCP tool output JSON schema."
        );
    }
}

#[test]
fn the_output_schema_is_listed_as_given() {
    let given = json!({"type": "object", "properties": {"a": true}, "additionalProperties": false});
    assert_eq!(listed(json!({"outputSchema": given.to_string()})).output_schema, Some(given.into()));
    assert_eq!(listed(json!({"outputSchema": ""})).output_schema, None);
    let message = refused(tool(json!({"outputSchema": "{"})));
    assert_eq!(
        message,
        "mcpToolTrigger.outputSchema: Failed to parse OutputSchema for tool 't'. Schema must be valid JSON."
    );
    assert!(
        refused(tool(json!({"outputSchema": {"type": "object"}})))
            .contains("must be a text that holds a JSON schema")
    );
}

#[test]
fn members_that_the_extension_lacks_are_accepted() {
    let hints = json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": "true", "OpenWorldHint": null, "title": "T", "x": 1});
    let shown =
        json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "title": "T", "x": 1});
    for (name, value) in [
        ("annotations", hints.clone()),
        ("annotations", json!(hints.to_string())),
        ("toolAnnotations", hints),
    ] {
        let tool = listed(json!({name: value, "title": "Tool"}));
        assert_eq!(serde_json::to_value(tool.annotations).unwrap(), shown, "{name}");
        assert_eq!(tool.title.as_deref(), Some("Tool"));
    }
    let icons =
        json!([{"src": "https://x/i.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": null}]);
    let shown = json!([{"src": "https://x/i.png", "mimeType": "image/png", "sizes": ["48x48"]}]);
    for value in [icons.clone(), json!(icons.to_string())] {
        assert_eq!(json!(listed(json!({"icons": value})).icons), shown);
        assert_eq!(resource_listing(json!({"icons": value}))["icons"], shown);
        assert_eq!(prompt_listing(json!({"icons": value, "annotations": {}}))["icons"], shown);
    }
    assert_eq!(
        refused(tool(json!({"annotations": "[]"}))),
        "mcpToolTrigger.annotations: must contain a JSON object, but has Array"
    );
    assert_eq!(
        refused(tool(json!({"annotations": {"readOnlyHint": 1}}))),
        "mcpToolTrigger.annotations.readOnlyHint: must be true or false, not 1"
    );
    assert_eq!(refused(tool(json!({"icons": [{}]}))), "mcpToolTrigger.icons[0].src: is required");
    assert!(
        refused(prompt(json!({"icons": "{"})))
            .starts_with("mcpPromptTrigger.icons: holds no JSON array: line 1")
    );
}

#[test]
fn a_resource_is_listed_as_its_trigger_describes_it() {
    let more = json!({"title": "T", "description": "d", "mimeType": "text/plain", "size": "5", "metadata": "{\"x\":1}",
                      "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01"}, "useResultSchema": true});
    assert_eq!(
        resource_listing(more.clone()),
        json!({
            "uri": "file://readme.md", "name": "readme", "title": "T", "description": "d", "mimeType": "text/plain", "size": 5,
            "_meta": {"x": 1}, "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01"},
        })
    );
    assert_eq!(resource(more.clone()).unwrap().mime_type.as_deref(), Some("text/plain"));
    let mut family = more;
    family["uri"] = json!("user://{name}");
    let listing = resource_listing(family);
    assert_eq!(listing["uriTemplate"], "user://{name}");
    assert_eq!(listing.get("size"), None);
    assert_eq!(resource_listing(json!({})), json!({"uri": "file://readme.md", "name": "readme"}));
}

#[test]
fn all_mistakes_in_a_resource_are_reported() {
    assert_eq!(
        refused(resource(json!({"uri": null}))),
        "mcpResourceTrigger.uri: Resource URI cannot be null or whitespace."
    );
    assert_eq!(
        refused(resource(json!({"uri": "readme"}))),
        "mcpResourceTrigger.uri: Invalid resource URI format: 'readme'"
    );
    assert_eq!(
        refused(resource(
            json!({"uri": "x://{a}{b}", "resourceName": "", "size": -1, "annotations": {"priority": 2, "audience": "all"}})
        )),
        "mcpResourceTrigger.uri: Resource URI template expressions must be separated by at least one literal character or delimiter.; \
         mcpResourceTrigger.resourceName: is required; \
         mcpResourceTrigger.size: must be a whole number from 0 up, not -1; \
         mcpResourceTrigger.annotations.audience: \"all\" is not a valid audience; \
         mcpResourceTrigger.annotations.priority: must be a number from 0 to 1"
    );
}

#[test]
fn a_prompt_is_listed_as_its_trigger_describes_it() {
    let arguments = json!([
        {"name": "code", "title": "Code", "description": "The code", "required": true},
        {"NAME": "language", "description": null, "other": 1},
    ]);
    let more = json!({"title": "T", "description": "d", "promptArguments": arguments.to_string(), "metadata": "{\"x\":1}", "useResultSchema": true});
    assert_eq!(
        prompt_listing(more.clone()),
        json!({
            "name": "p", "title": "T", "description": "d", "_meta": {"x": 1},
            "arguments": [{"name": "code", "title": "Code", "description": "The code", "required": true}, {"name": "language"}],
        })
    );
    let trigger = prompt(more).unwrap();
    assert_eq!(trigger.required, ["code"]);
    assert!(trigger.uses_result_schema);
    for none in [json!(null), json!(""), json!("[]")] {
        assert_eq!(
            prompt(json!({"promptArguments": none})).unwrap().prompt,
            Prompt { name: "p".to_owned(), ..Prompt::default() }
        );
    }
    assert_eq!(refused(prompt(json!({"promptName": ""}))), "mcpPromptTrigger.promptName: is required");
    assert_eq!(
        refused(prompt(json!({"promptArguments": "{}"}))),
        "mcpPromptTrigger.promptArguments: must contain a JSON array, but has Object"
    );
    assert_eq!(
        refused(prompt(json!({"promptArguments": "[{}]"}))),
        "mcpPromptTrigger.promptArguments[0].name: is required"
    );
}

#[test]
fn arguments_bind_to_parameters() {
    let property = json!({"type": "mcpToolProperty", "direction": "in", "name": "p", "propertyName": "x", "propertyType": "string"});
    let function =
        function(&[with("mcpToolTrigger", json!({"toolName": "t"}), json!({})), property.clone()]).unwrap();
    let [InputBinding::ToolProperty { name, property: argument }] = function.inputs.as_slice() else {
        panic!()
    };
    assert_eq!((name.as_str(), argument.as_str()), ("p", "x"));
    // Only `toolProperties` is used for the schema.
    let Trigger::Tool(trigger) = function.trigger else { panic!() };
    assert_eq!(trigger.tool.input_schema, schema(json!([])));

    let prompt = with("mcpPromptTrigger", json!({"promptName": "p"}), json!({}));
    for (flag, expected) in [(json!(true), true), (json!("true"), true), (json!(null), false)] {
        let argument =
            json!({"type": "mcpPromptArgument", "name": "a", "argumentName": "code", "isRequired": flag});
        let function = super::tests::function(&[prompt.clone(), argument]).unwrap();
        let [InputBinding::PromptArgument { name, argument, required }] = function.inputs.as_slice() else {
            panic!()
        };
        assert_eq!((name.as_str(), argument.as_str(), *required), ("a", "code", expected));
    }
    let told = refused(super::tests::function(&[prompt.clone(), property]));
    assert!(told.starts_with("mcpToolProperty[p]: this binding needs an mcpToolTrigger"), "{told}");
    let told = refused(super::tests::function(&[prompt, json!({"type": "mcpPromptArgument", "name": "a"})]));
    assert_eq!(told, "mcpPromptArgument[a].argumentName: is required");
}

#[test]
fn a_tool_may_decide_whether_it_runs_as_a_task() {
    use bindpost_mcp_server::TaskSupport;
    let support = |execution: Value| tool(json!({"execution": execution})).map(|tool| tool.task_support);
    assert_eq!(support(json!({"taskSupport": "optional"})), Ok(Some(TaskSupport::WhenPossible)));
    assert_eq!(support(json!(r#"{"taskSupport": "Required"}"#)), Ok(Some(TaskSupport::Required)));
    assert_eq!(support(json!({"taskSupport": "forbidden"})), Ok(Some(TaskSupport::Never)));
    assert_eq!(support(json!({})), Ok(None));
    assert_eq!(
        support(json!({"taskSupport": "yes"})),
        Err(vec![r#"mcpToolTrigger.execution.taskSupport: "yes" is not a kind of task support"#.to_owned()])
    );
}
