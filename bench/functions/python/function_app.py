"""The smallest tool there is, so that what is around it shows."""

import json

import azure.functions as func

app = func.FunctionApp()


@app.mcp_tool_trigger(
    arg_name="context",
    tool_name="hello",
    description="Greets a person.",
    tool_properties=json.dumps([
        {"propertyName": "who", "propertyType": "string", "description": "Whom to greet.", "isRequired": True},
    ]),
)
def hello(context: str) -> str:
    return f"Hello, {json.loads(context)['arguments']['who']}!"
