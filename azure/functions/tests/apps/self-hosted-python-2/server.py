"""A server of the second generation of the Python SDK, which speaks legacy and modern revisions."""

import asyncio
import os

from mcp.server.mcpserver import Context, MCPServer

mcp = MCPServer("python-server-2", version="2.0")


@mcp.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@mcp.tool()
async def steps(ctx: Context, count: int) -> str:
    """Reports progress."""
    for step in range(count):
        await ctx.report_progress(step + 1, count)
        await asyncio.sleep(0.05)
    return "done"


mcp.run(transport="streamable-http", port=int(os.environ["PORT"]), stateless_http=True)
