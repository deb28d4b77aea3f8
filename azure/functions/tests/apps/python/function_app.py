"""The functions that tests call, written with the Python library. `../node` has the same functions."""

import base64
import json
import logging
import os
import pathlib
import re
import time

import azure.functions as func

app = func.FunctionApp()
logger = logging.getLogger("fixture")
logger.setLevel(logging.DEBUG)

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
CONNECTION = "AzureWebJobsStorage"


def argument(name, kind="string", required=True, **more):
    return {"propertyName": name, "propertyType": kind, "description": f"The {name}.", "isRequired": required, **more}


def tool(name, *arguments, **more):
    description = f"{name} of the tests."
    return app.mcp_tool_trigger(
        arg_name="context", tool_name=name, description=description, tool_properties=json.dumps(arguments), **more
    )


def rich(name, *arguments, **more):
    """Declares a tool whose function returns an envelope."""
    return tool(name, *arguments, use_result_schema=True, **more)


def prompt(name, *arguments, **more):
    return app.generic_trigger(
        arg_name="context", type="mcpPromptTrigger", promptName=name, promptArguments=json.dumps(arguments), **more
    )


def given(context):
    return json.loads(context).get("arguments", {})


def envelope(block, structured=None):
    result = {"type": block["type"], "content": json.dumps(block)}
    if structured is not None:
        result["structuredContent"] = json.dumps(structured)
    return json.dumps(result)


def text(words):
    return {"type": "text", "text": words}


def link(uri, name):
    return {"type": "resource_link", "uri": uri, "name": name}


def image(data, mime_type):
    return {"type": "image", "data": data, "mimeType": mime_type}


# Arguments of every kind.


@tool("EchoTool", argument("message"))
def echo(context: str) -> str:
    return given(context)["message"]


@app.mcp_tool()
@app.mcp_tool_property(arg_name="message", description="The message.", is_required=False)
def EchoWithDefault(message: str = "(nothing)") -> str:
    """EchoWithDefault of the tests."""
    return message


@tool(
    "TypedParametersTool",
    argument("name"),
    argument("job", enumValues=["FullTime", "PartTime"]),
    argument("age", "integer"),
    argument("isActive", "boolean"),
)
def typed_parameters(context: str) -> str:
    call = given(context)
    return f"{call['name']} {call['job']} {call['age'] + 1} {'active' if call['isActive'] else 'not active'}"


@tool("CollectionParametersTool", argument("tags", isArray=True), argument("scores", "integer", isArray=True))
def collection_parameters(context: str) -> str:
    call = given(context)
    return f"{'+'.join(call['tags'])} {sum(call['scores'])}"


SCHEMA = {
    "type": "object",
    "properties": {
        "place": {
            "type": "object",
            "description": "The place.",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
    "required": ["place"],
}
FOUND = {"type": "object", "properties": {"found": {"type": "boolean"}}}


@rich(
    "SchemaTool", use_worker_input_schema=True, input_schema=json.dumps(SCHEMA), output_schema=json.dumps(FOUND)
)
def schema(context: str) -> str:
    return envelope(text(given(context)["place"]["city"]), {"found": True})


# Results of every kind.


@rich("PocoOutputTool", argument("city"))
def poco_output(context: str) -> str:
    weather = {"city": given(context)["city"], "condition": "Sunny"}
    return envelope(text(json.dumps(weather)), weather)


@rich("TextContentTool", argument("words"))
def text_content(context: str) -> str:
    return envelope(text(given(context)["words"]))


@rich("ImageContentTool", argument("data"), argument("mimeType"))
def image_content(context: str) -> str:
    return envelope(image(given(context)["data"], given(context)["mimeType"]))


@rich("ResourceLinkTool")
def resource_link(context: str) -> str:
    return envelope(link("file://readme.md", "readme"))


@rich("MultiContentTool")
def multi_content(context: str) -> str:
    blocks = [text("three blocks"), link("file://logo.png", "logo"), image(PIXEL, "image/png")]
    return json.dumps({"type": "multi_content_result", "content": json.dumps(blocks)})


@rich("StructuredContentTool", argument("fails", "boolean", required=False))
def structured_content(context: str) -> str:
    result = {
        "content": [text("as structured")],
        "structuredContent": {"answer": 42},
        "isError": given(context).get("fails", False),
        "_meta": {"origin": "fixture"},
    }
    return json.dumps({"type": "call_tool_result", "content": json.dumps(result)})


@tool("VoidTool")
def void(context: str) -> None:
    pass


@tool("BytesTool")
def some_bytes(context: str) -> bytes:
    return b"\xff\xfe\x00"


@tool("DictTool")
def dictionary(context: str):
    return {"a": [1, None]}


@tool("NumberTool")
def number(context: str):
    return 42


@rich("BrokenEnvelopeTool")
def broken_envelope(context: str) -> str:
    return "no envelope"


@app.mcp_tool(metadata=json.dumps({"category": "testing", "level": 3}))
def MetadataTool() -> str:
    """MetadataTool of the tests."""
    return "described"


UI = {"resourceUri": "ui://HelloApp/view", "visibility": ["model", "app"]}


@app.mcp_tool(metadata=json.dumps({"ui": UI}))
def HelloApp() -> str:
    """HelloApp of the tests."""
    return "Hello!"


@tool("ContextTool")
def whole_context(context: str) -> str:
    return context


# Logs, progress and cancellation.


@tool("FailingTool")
def failing(context: str) -> str:
    raise ValueError("the secret is 42")


@tool("LogTool")
def log(context: str) -> str:
    print("a print")
    logger.debug("a detail")
    logger.info("a fact")
    logger.warning("a warning")
    logger.error("an error")
    return "logged"


@tool("ProgressTool", argument("steps", "integer"))
def progress(context: str) -> str:
    steps = given(context)["steps"]
    for step in range(1, steps + 1):
        logger.info("mcp-progress %d/%d step %d", step, steps, step)
    return "done"


@tool("SlowTool", argument("name"))
@app.blob_output(arg_name="file", connection=CONNECTION, path="slow/{mcptoolargs.name}.txt")
def slow(file: func.Out[str], context: str) -> str:
    """Reports its process id, and waits until a file is created."""
    name = given(context)["name"]
    file.set("written")
    logger.info("mcp-progress 1 %d", os.getpid())
    while not pathlib.Path(f"go-{name}").exists():
        time.sleep(0.005)
    pathlib.Path(f"ended-{name}").touch()
    return "waited"


@tool("ProcessTool")
def process(context: str) -> str:
    return str(os.getpid())


# Blobs.


@tool("SaveTool", argument("name"), argument("content", required=False))
@app.blob_output(arg_name="file", connection=CONNECTION, path="kept/{mcptoolargs.name}.txt")
def save(file: func.Out[str], context: str) -> str:
    content = given(context).get("content")
    file.set(content)
    return "nothing" if content is None else "saved"


@tool("GetTool", argument("name"))
@app.blob_input(arg_name="file", connection=CONNECTION, path="kept/{mcptoolargs.name}.txt")
def get(file: func.InputStream, context: str) -> str:
    return "(none)" if file is None else file.read().decode()


# Requests for input.


def question(key, method, state=None, **params):
    content = {"inputRequests": {key: {"method": method, "params": params}}}
    if state is not None:
        content["state"] = state
    return json.dumps({"type": "input_required", "content": json.dumps(content)})


def form(name):
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


@tool("AskUserTool")
def ask_user(context: str) -> str:
    call = json.loads(context)
    if "inputResponses" not in call:
        return question("name", "elicitation/create", message="Who are you?", requestedSchema=form("name"))
    answers, state = call["inputResponses"], call.get("state")
    if state is None:
        if answers["name"]["action"] != "accept":
            return "declined"
        state = {"name": answers["name"]["content"]["name"]}
        return question("color", "elicitation/create", state, message="Which color?", requestedSchema=form("color"))
    return f"{state['name']} likes {answers['color']['content']['color']}"


@tool("AskForeverTool")
def ask_forever(context: str) -> str:
    return question("name", "elicitation/create", message="And now?", requestedSchema=form("name"))


@tool("AskNonsenseTool")
def ask_nonsense(context: str) -> str:
    return question("name", "rm -rf")


@tool("AskModelTool")
def ask_model(context: str) -> str:
    answers = json.loads(context).get("inputResponses")
    if answers is None:
        messages = [{"role": "user", "content": text("Any opinion?")}]
        return question("opinion", "sampling/createMessage", messages=messages, maxTokens=10)
    return f"{answers['opinion']['model']} says {answers['opinion']['content']['text']}"


@tool("AskRootsTool")
def ask_roots(context: str) -> str:
    answers = json.loads(context).get("inputResponses")
    if answers is None:
        return question("folders", "roots/list")
    return " ".join(root["uri"] for root in answers["folders"]["roots"])


# Resources.


def resource(uri, name, **more):
    return app.mcp_resource_trigger(arg_name="context", uri=uri, resource_name=name, **more)


@resource(
    "file://readme.md",
    "readme",
    title="Read me",
    description="Read this first.",
    mime_type="text/markdown",
    size=9,
    metadata=json.dumps({"author": "tests"}),
)
def readme(context: str) -> str:
    return "# Read me"


@resource("file://logo.png", "logo", mime_type="image/png")
def logo(context: str) -> bytes:
    return base64.b64decode(PIXEL)


@resource("file://minimal.txt", "minimal")
def minimal(context: str) -> str:
    return "Minimal resource content"


@resource("file://notes.txt", "notes", mime_type="text/plain")
def notes(context: str) -> str:
    item = {"text": "some notes", "mimeType": "text/x-notes", "_meta": {"pages": 2}}
    return json.dumps({"content": json.dumps(item)})


@resource("file://broken.txt", "broken")
def broken(context: str) -> str:
    raise ValueError("the secret is 42")


@resource("user://profile/{name}", "profile", mime_type="application/json")
def profile(context: str) -> str:
    return json.dumps({"uri": json.loads(context)["uri"]})


@resource("store://catalog/{category}items{tag}", "catalog", mime_type="application/json")
def catalog(context: str) -> str:
    category, tag = re.fullmatch("store://catalog/(.+)items(.+)", json.loads(context)["uri"]).groups()
    return json.dumps({"category": category, "tag": tag})


@resource("kept://{Name}/{kind}", "kept", mime_type="text/plain")
@app.blob_input(arg_name="file", connection=CONNECTION, path="kept/{mcpresourceargs.Name}.{kind}")
def kept(file: func.InputStream, context: str) -> str:
    return "(none)" if file is None else file.read().decode()


@resource("ui://HelloApp/view", "HelloApp_view", mime_type="text/html;profile=mcp-app")
def hello_app_view(context: str) -> str:
    item = {"text": "<h1>Hello!</h1>", "_meta": {"ui": {"prefersBorder": True}}}
    return json.dumps({"content": json.dumps(item)})


@resource("file://signed.txt", "signed")
def signed(context: str) -> str:
    return signed_by(context)


def signed_by(context):
    answers = json.loads(context).get("inputResponses")
    if answers is None:
        return question("name", "elicitation/create", message="Who are you?", requestedSchema=form("name"))
    return f"signed by {answers['name']['content']['name']}"


# Prompts.

CODE = {"name": "code", "description": "The code.", "required": True}
LANGUAGE = {"name": "language", "description": "Its language."}


@prompt("code_review", CODE, LANGUAGE, title="Code review", description="Asks for a review.")
def code_review(context: str) -> str:
    call = given(context)
    return f"Review this {call.get('language', 'unknown')} code: {call['code']}"


@prompt("summarize", {"name": "text", "required": True}, {"name": "style", "required": True})
def summarize(context: str) -> str:
    return f"Summarize: {given(context)['text']}"


@prompt("no_args_prompt")
def no_args(context: str) -> str:
    return "Say something."


@prompt("all_optional_args_prompt", {"name": "topic"}, {"name": "audience"})
def all_optional_args(context: str) -> str:
    return f"Write about {given(context).get('topic', 'anything')}."


@prompt("multi_turn_prompt")
def multi_turn(context: str) -> str:
    turns = [("user", "Hello"), ("assistant", "Hi, how can I help?"), ("user", "Tell me a story")]
    messages = [{"role": role, "content": text(words)} for role, words in turns]
    return json.dumps({"description": "Three turns.", "messages": messages})


@prompt("metadata_prompt", metadata=json.dumps({"version": "1.0"}))
def metadata_prompt(context: str) -> str:
    return "described"


@prompt("failing_prompt")
def failing_prompt(context: str) -> str:
    raise ValueError("the secret is 42")


@prompt("asking_prompt")
def asking_prompt(context: str) -> str:
    return signed_by(context)
