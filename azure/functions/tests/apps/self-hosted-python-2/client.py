"""The official client of the second generation: client.py legacy|auto URL. Prints what it got as JSON."""

import asyncio
import json
import sys

from mcp import Client


async def main():
    progress = []

    async def on_progress(done, total, message):
        progress.append([done, total])

    async with Client(sys.argv[2], mode=sys.argv[1]) as client:
        tools = await client.list_tools()
        added = await client.call_tool("add", {"a": 2, "b": 3})
        await client.call_tool("steps", {"count": 3}, progress_callback=on_progress)
        found = {
            "server": client.server_info.name,
            "revision": client.protocol_version,
            "tools": sorted(tool.name for tool in tools.tools),
            "sum": added.content[0].text,
            "progress": progress,
        }
    print(json.dumps(found))


asyncio.run(main())
