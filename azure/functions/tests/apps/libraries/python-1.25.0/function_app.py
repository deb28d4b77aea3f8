"""azure-functions 1.25 supports tools from signatures, and resources.

Prompts need the generic trigger.
"""

import json

import azure.functions as func

app = func.FunctionApp()


@app.mcp_tool()
@app.mcp_tool_property(arg_name="name", description="Whom.")
@app.mcp_tool_property(
    arg_name="times", description="How often.", is_required=False, property_type=func.McpPropertyType.INTEGER
)
def greet(name: str, times: int = 1) -> str:
    """Greets."""
    return " ".join([f"Hello {name}!"] * times)


@app.mcp_tool()
async def every_type(
    text: str, whole: int, part: float, flag: bool, several: list[int], call: func.MCPToolContext, maybe: str = ""
) -> str:
    """Takes everything."""
    return f"{call['name']} {text} {whole} {part} {flag} {several} {maybe}"


@app.mcp_resource_trigger(arg_name="context", uri="info://about", resource_name="about", mime_type="text/plain")
def about(context: str) -> str:
    return "About this app."


@app.mcp_resource_trigger(arg_name="context", uri="item://{id}", resource_name="item")
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
