"""PyPI mcp 1 over HTTP: client_1.py conformance <url> <url of the proxy> | <scenario> <url> <url with keys>"""

import sys
from contextlib import asynccontextmanager

import anyio
import httpx
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CancelledNotification, CancelledNotificationParams, ClientNotification, ElicitResult

from conversation import answer, conversation, resumption, same
from report import check, run
from scenario import scenario

name, url, other_url = sys.argv[1:]


async def elicit(context, params):
    return ElicitResult(action="accept", content=answer(params))


@asynccontextmanager
async def connect(to, headers=None):
    http = httpx.AsyncClient(headers=headers) if headers else None
    async with streamable_http_client(to, http_client=http) as (read, write, _):
        async with ClientSession(read, write, elicitation_callback=elicit) as session:
            initialized = await session.initialize()
            same(initialized.protocolVersion, "2025-11-25")
            yield session


async def conformance():
    async with connect(url) as session:

        async def cancel(seconds):
            # This generation does not notify the server of a cancelled call, and does not expose request ids.
            notification = CancelledNotification(params=CancelledNotificationParams(requestId=session._request_id))
            async with anyio.create_task_group() as calls:
                calls.start_soon(session.call_tool, "test_slow", {"seconds": seconds})
                await anyio.sleep(0.5)
                await session.send_notification(ClientNotification(notification))
                calls.cancel_scope.cancel()

        await check("connect", session.send_ping)
        await conversation(session, cancel, modern=False)
        await resumption(lambda: connect(other_url))


async def main():
    if name == "conformance":
        await conformance()
    else:
        await scenario(name, {"open": url, "keys": other_url}, connect)


run(main)
