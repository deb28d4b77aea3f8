"""Snippets of text, stored as blobs: one tool, resource and prompt of every kind.

Run it with `cargo run -- run examples/snippets-python`. It needs no Azure, no Core Tools and no
storage emulator; on Azure Functions the same folder runs unchanged, except for `sign_snippet`, which asks the
user, and the progress of `count_words`.
"""

import json
import logging

import azure.functions as func

app = func.FunctionApp()

SNIPPET = "snippets/{mcptoolargs.snippetname}.json"
NAME = {"propertyName": "snippetname", "propertyType": "string", "description": "The name of the snippet.", "isRequired": True}
TEXT = {"propertyName": "snippet", "propertyType": "string", "description": "The text to store.", "isRequired": True}


@app.mcp_tool_trigger(
    arg_name="context",
    tool_name="save_snippet",
    description="Saves a snippet of text under a name.",
    tool_properties=json.dumps([NAME, TEXT]),
)
@app.blob_output(arg_name="file", connection="AzureWebJobsStorage", path=SNIPPET)
def save_snippet(file: func.Out[str], context: str) -> str:
    arguments = json.loads(context)["arguments"]
    file.set(arguments["snippet"])
    logging.info("saved snippet %s", arguments["snippetname"])
    return f"Saved {arguments['snippetname']}."


@app.mcp_tool_trigger(
    arg_name="context",
    tool_name="get_snippet",
    description="Reads a snippet by its name.",
    tool_properties=json.dumps([NAME]),
)
@app.blob_input(arg_name="file", connection="AzureWebJobsStorage", path=SNIPPET)
def get_snippet(file: func.InputStream, context: str) -> str:
    if file is None:
        return f"There is no snippet {json.loads(context)['arguments']['snippetname']}."
    return file.read().decode("utf-8")


@app.mcp_tool()
@app.mcp_tool_property(arg_name="words", description="The words to look for.", as_array=True)
@app.mcp_tool_property(arg_name="text", description="The text to look in.")
@app.mcp_tool_property(arg_name="ignore_case", description="Whether case is ignored.", is_required=False)
async def count_words(text: str, words: list[str], ignore_case: bool = False) -> str:
    """Counts how often each of some words is in a text."""
    found = text.lower().split() if ignore_case else text.split()
    counts = {}
    for number, word in enumerate(words, start=1):
        counts[word] = found.count(word.lower() if ignore_case else word)
        logging.info("mcp-progress %d/%d %s", number, len(words), word)
    return json.dumps(counts)


@app.mcp_tool_trigger(
    arg_name="context",
    tool_name="badge",
    description="Draws a badge with a label and a value.",
    tool_properties=json.dumps([
        {"propertyName": "label", "propertyType": "string", "description": "The label.", "isRequired": True},
        {"propertyName": "value", "propertyType": "string", "description": "The value.", "isRequired": True},
    ]),
    use_result_schema=True,
)
def badge(context: str) -> str:
    import base64
    import html

    arguments = json.loads(context)["arguments"]
    label, value = html.escape(arguments["label"]), html.escape(arguments["value"])
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="160" height="20">'
        f'<text x="8" y="14" font-size="11">{label}: {value}</text></svg>'
    )
    picture = base64.b64encode(svg.encode()).decode()
    blocks = [
        {"type": "text", "text": f"{arguments['label']}: {arguments['value']}"},
        {"type": "image", "data": picture, "mimeType": "image/svg+xml"},
    ]
    return json.dumps({"type": "multi_content_result", "content": json.dumps(blocks)})


@app.mcp_tool_trigger(
    arg_name="context",
    tool_name="sign_snippet",
    description="Adds the user's name to a text; asks the user for it.",
    tool_properties=json.dumps([TEXT]),
    use_result_schema=True,
)
def sign_snippet(context: str) -> str:
    call = json.loads(context)
    if "inputResponses" not in call:
        question = {
            "method": "elicitation/create",
            "params": {
                "message": "Who signs this snippet?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"name": {"type": "string", "description": "Your name"}},
                    "required": ["name"],
                },
            },
        }
        return json.dumps({"type": "input_required", "content": json.dumps({"inputRequests": {"author": question}})})
    answer = call["inputResponses"]["author"]
    if answer["action"] == "accept":
        text = f"{call['arguments']['snippet']}\n-- {answer['content']['name']}"
    else:
        text = "It was not signed."
    return json.dumps({"type": "text", "content": json.dumps({"type": "text", "text": text})})


@app.mcp_resource_trigger(
    arg_name="context",
    uri="info://snippets",
    resource_name="about",
    title="About this server",
    description="What this server is for.",
    mime_type="text/markdown",
)
def about(context: str) -> str:
    return "# Snippets\n\nText that is kept by name.\n"


@app.mcp_resource_trigger(
    arg_name="context",
    uri="snippet://{name}",
    resource_name="snippet",
    description="A snippet by its name.",
    mime_type="text/plain",
)
@app.blob_input(arg_name="file", connection="AzureWebJobsStorage", path="snippets/{name}.json")
def snippet(file: func.InputStream, context: str) -> str:
    return file.read().decode("utf-8") if file else ""


@app.generic_trigger(
    arg_name="context",
    type="mcpPromptTrigger",
    promptName="code_review",
    description="Asks for a review of some code.",
    promptArguments=json.dumps([
        {"name": "code", "description": "The code to review.", "required": True},
        {"name": "language", "description": "Its language.", "required": False},
    ]),
)
def code_review(context: str) -> str:
    arguments = json.loads(context)["arguments"]
    return f"Please review this {arguments.get('language', '')} code:\n\n{arguments['code']}"
