"""A scenario is a file of conversations for all clients. `interop/README.md` describes it."""

import json
import re

from mcp.types import PromptReference, ResourceTemplateReference

from report import check, reason

REFERENCES = {"ref/prompt": PromptReference, "ref/resource": ResourceTemplateReference}

METHODS = {
    "tools/list": lambda client, params: client.list_tools(),
    "tools/call": lambda client, params: client.call_tool(params["name"], params["arguments"]),
    "resources/list": lambda client, params: client.list_resources(),
    "resources/templates/list": lambda client, params: client.list_resource_templates(),
    "resources/read": lambda client, params: client.read_resource(params["uri"]),
    "prompts/list": lambda client, params: client.list_prompts(),
    "prompts/get": lambda client, params: client.get_prompt(params["name"], params["arguments"]),
    "completion/complete": lambda client, params: client.complete(
        REFERENCES[params["ref"]["type"]](**params["ref"]), params["argument"]
    ),
}


async def scenario(file, servers, connect):
    """`servers` has the addresses of the scenario's servers. Conversations with other servers are skipped.
    `connect(to, headers)` is a context with a client, one for each check: the first generation of the package closes
    the connection when the server answers 401."""
    with open(file) as text:
        conversations = json.load(text)
    for conversation in conversations:
        if server := servers.get(conversation["server"]):
            for described in conversation["checks"]:
                client = connect(server, conversation["headers"])
                await check(described["check"], lambda: talk(client, described))


async def talk(context, described):
    words = described.get("refused")
    connected = False
    try:
        async with context as client:
            connected = True
            await steps(client, described["steps"])
    except Exception as error:
        if not (connected and words):
            raise
        text = reason(error)
        assert any(word in text.lower() for word in words), f"refused, but not with one of {words}: {text}"
    else:
        assert not words, "it was not refused"


async def steps(client, described):
    kept = {}
    for step in described:
        step = json.loads(re.sub(r"<(\w+)>", lambda name: kept[name[1]], json.dumps(step)))
        method = step["send"]
        result = await METHODS[method](client, step.get("params"))
        result = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        has, text = step.get("has", {}), json.dumps(result)
        assert has.get("isError") or not result.get("isError"), f"{method} ended as an error: {text}"
        assert contains(result, has), f"{method}: {has} is not in {text}"
        for words in step.get("says", []):
            assert words in text, f"{method}: {words!r} is not in {text}"
        if name := step.get("keep"):
            kept[name] = result["structuredContent"][name]


def contains(actual, expected):
    """Objects may have more members and lists more items, in any order."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(contains(actual.get(key), expected[key]) for key in expected)
    if isinstance(expected, list):
        return isinstance(actual, list) and all(any(contains(it, item) for it in actual) for item in expected)
    return actual == expected
