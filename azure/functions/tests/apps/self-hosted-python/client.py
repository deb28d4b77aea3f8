"""The official client of the first generation: client.py URL. Prints what it got as JSON."""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main():
    progress = []

    async def on_progress(done, total, message):
        progress.append([done, total])

    async with streamablehttp_client(sys.argv[1]) as (read, write, _), ClientSession(read, write) as session:
        greeting = await session.initialize()
        tools = await session.list_tools()
        added = await session.call_tool("add", {"a": 2, "b": 3})
        await session.call_tool("steps", {"count": 3}, progress_callback=on_progress)
    found = {
        "server": greeting.serverInfo.name,
        "revision": greeting.protocolVersion,
        "tools": sorted(tool.name for tool in tools.tools),
        "sum": added.content[0].text,
        "progress": progress,
    }
    print(json.dumps(found))


asyncio.run(main())
