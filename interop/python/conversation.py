"""The checks of both generations of the mcp package. The fixtures are those of `examples/conformance`."""

import anyio

from report import check

ANSWER = "Ada"


def answer(params):
    """Responds to an elicitation. Every requested field is a string, and gets the same value."""
    # The field was renamed between the generations.
    schema = getattr(params, "requested_schema", None) or params.requestedSchema
    return {field: ANSWER for field in schema["properties"]}


async def conversation(client, cancel, modern):
    """`cancel(seconds)` calls `test_slow` and cancels it. The way depends on the generation."""

    async def lists():
        tools = [tool.name for tool in (await client.list_tools()).tools]
        resources = [str(resource.uri) for resource in (await client.list_resources()).resources]
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        assert "test_simple_text" in tools, f"test_simple_text is not in {tools}"
        assert "test://static-text" in resources, f"test://static-text is not in {resources}"
        assert "test_simple_prompt" in prompts, f"test_simple_prompt is not in {prompts}"

    async def call():
        result = await client.call_tool("test_simple_text", {})
        same(result.content[0].text, "This is a simple text response for testing.")

    async def elicitation():
        if modern:
            result = await client.call_tool("test_input_required_result_elicitation", {})
            same(result.content[0].text, f"Hello, {ANSWER}!")
        else:
            result = await client.call_tool("test_elicitation", {"message": "Who is there?"})
            text = result.content[0].text
            assert text.startswith("User response: ") and ANSWER in text, f"the answer is not in: {text}"

    async def read():
        same(await text_of(client, "test://static-text"), "This is the content of the static text resource.")

    async def prompt():
        result = await client.get_prompt("test_simple_prompt")
        same(result.messages[0].content.text, "This is a simple prompt for testing.")

    async def cancelled():
        before = int(await text_of(client, "test://cancelled-count"))
        await cancel(30)
        with anyio.move_on_after(5):
            while int(await text_of(client, "test://cancelled-count")) != before + 1:
                await anyio.sleep(0.1)
            return
        raise AssertionError(f"test://cancelled-count is still {before}")

    await check("list", lists)
    await check("call", call)
    await check("progress", lambda: progress(client))
    await check("elicitation", elicitation)
    await check("read", read)
    await check("prompt", prompt)
    await check("cancel", cancelled)


async def resumption(connect):
    """`connect` goes through the proxy of `cargo xtask interop`. First the server itself ends the stream of a call
    early; then the proxy closes the connection after a progress event. Both results arrive by GET with Last-Event-ID."""
    async with connect() as client:

        async def hang_up():
            await client.call_tool("test_reconnection", {})

        await check("hang-up", hang_up)
        await check("cut", lambda: progress(client))


async def progress(client):
    """After a disconnect, the same three events prove that no event was lost or duplicated."""
    seen = []

    async def note(progress, total, message):
        seen.append(progress)

    await client.call_tool("test_tool_with_progress", {}, progress_callback=note)
    same(seen, [0, 50, 100])


async def text_of(client, uri):
    return (await client.read_resource(uri)).contents[0].text


def same(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"
