"""A server of the first generation of the Python SDK, without sessions."""

import asyncio
import os

from mcp.server.fastmcp import Context, FastMCP

port = int(os.environ["FUNCTIONS_CUSTOMHANDLER_PORT"])
mcp = FastMCP("python-server", stateless_http=True, port=port)


@mcp.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@mcp.tool()
def header(ctx: Context, name: str) -> str:
    """Returns a header of the request."""
    return ctx.request_context.request.headers.get(name, "")


@mcp.tool()
async def steps(ctx: Context, count: int) -> str:
    """Reports progress."""
    for step in range(count):
        await ctx.report_progress(step + 1, count)
        await asyncio.sleep(0.05)
    return "done"


mcp.run(transport="streamable-http")
