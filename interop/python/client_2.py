"""PyPI mcp 2: client_2.py auto|legacy http <url> <url of the proxy> | stdio <server>"""

import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult

from conversation import answer, conversation, resumption, same
from report import check, run

mode, transport, target, *rest = sys.argv[1:]
modern = mode == "auto"


async def elicit(context, params):
    return ElicitResult(action="accept", content=answer(params))


def connect(to):
    return Client(to, mode=mode, elicitation_callback=elicit)


async def main():
    server = StdioServerParameters(command=target, args=["--stdio"]) if transport == "stdio" else target
    async with connect(server) as client:

        async def revision():
            same(client.protocol_version, "2026-07-28" if modern else "2025-11-25")

        async def cancel(seconds):
            # Leaving the scope makes the package cancel: by a notification, or by closing the stream.
            with anyio.move_on_after(0.5):
                await client.call_tool("test_slow", {"seconds": seconds})

        await check("connect", revision)
        await conversation(client, cancel, modern)
        # From 2026-07-28 on a stream cannot be resumed: a dropped connection is a cancelled call.
        if transport == "http" and not modern:
            [proxy_url] = rest
            await resumption(lambda: connect(proxy_url))


run(main)
