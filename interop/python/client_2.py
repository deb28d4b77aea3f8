"""PyPI mcp 2: client_2.py auto|legacy http <what> <url> <other url> | stdio <what> <server>

`<what>` is `conformance`, and the other url that of the proxy; or a scenario, and the other url that with keys."""

import sys
from contextlib import asynccontextmanager

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from conversation import answer, conversation, resumption, same
from report import check, run
from scenario import scenario

mode, transport, name, target, *rest = sys.argv[1:]
modern = mode == "auto"


async def elicit(context, params):
    return ElicitResult(action="accept", content=answer(params))


def connect(to, headers=None):
    if transport == "stdio":
        to = StdioServerParameters(command=to, args=["--stdio"])
    elif headers:
        to = streamable_http_client(to, http_client=httpx2.AsyncClient(headers=headers))
    return Client(to, mode=mode, elicitation_callback=elicit)


async def revision(client):
    same(client.protocol_version, "2026-07-28" if modern else "2025-11-25")


async def conformance():
    async with connect(target) as client:

        async def cancel(seconds):
            # Leaving the scope makes the package cancel: by a notification, or by closing the stream.
            with anyio.move_on_after(0.5):
                await client.call_tool("test_slow", {"seconds": seconds})

        await check("connect", lambda: revision(client))
        await conversation(client, cancel, modern)
        # From 2026-07-28 on a stream cannot be resumed: a dropped connection is a cancelled call.
        if transport == "http" and not modern:
            [proxy_url] = rest
            await resumption(lambda: connect(proxy_url))


@asynccontextmanager
async def connect_checked(to, headers):
    async with connect(to, headers) as client:
        await revision(client)
        yield client


async def main():
    if name == "conformance":
        await conformance()
    else:
        await scenario(name, dict(zip(["open", "keys"], [target, *rest])), connect_checked)


run(main)
