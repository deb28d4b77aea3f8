"""azure-functions 1.24 supports tools. Resources and prompts need the generic trigger."""

import json

import azure.functions as func

app = func.FunctionApp()


@app.mcp_tool_trigger(
    arg_name="context",
    tool_name="greet",
    description="Greets.",
    tool_properties=json.dumps([
        {"propertyName": "name", "propertyType": "string", "description": "Whom.", "isRequired": True},
        {"propertyName": "times", "propertyType": "integer", "description": "How often."},
    ]),
)
def greet(context) -> str:
    arguments = json.loads(context)["arguments"]
    return " ".join([f"Hello {arguments['name']}!"] * arguments.get("times", 1))


@app.generic_trigger(
    arg_name="context", type="mcpResourceTrigger", uri="info://about", resourceName="about", mimeType="text/plain"
)
def about(context: str) -> str:
    return "About this app."


@app.generic_trigger(arg_name="context", type="mcpResourceTrigger", uri="item://{id}", resourceName="item")
def item(context: str) -> str:
    return f"The item {json.loads(context)['uri']}."


@app.generic_trigger(
    arg_name="context",
    type="mcpPromptTrigger",
    promptName="review",
    promptArguments=json.dumps([{"name": "code", "description": "What.", "required": True}]),
)
def review(context: str) -> str:
    return f"Review {json.loads(context)['arguments']['code']}"
