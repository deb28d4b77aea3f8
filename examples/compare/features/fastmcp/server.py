# The features on FastMCP: `python server.py open 8080`, `auth 8080`, `stdio` or `selftest`.

import asyncio
import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import uvicorn
from fastmcp import Client, Context, FastMCP
from fastmcp.apps import AppConfig
from fastmcp.exceptions import ResourceError, ToolError
from fastmcp.resources import Resource, TextResource
from fastmcp.server.auth import AuthContext, StaticTokenVerifier, require_scopes
from fastmcp.server.dependencies import get_access_token
from fastmcp.server.elicitation import handle_elicit_accept, parse_elicit_response_type
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.server.middleware.rate_limiting import SlidingWindowRateLimitingMiddleware
from fastmcp.server.providers import Provider
from fastmcp.server.providers.skills import SkillsDirectoryProvider
from fastmcp.skills.extension import SkillsExtension
from fastmcp_tasks import TasksExtension
from mcp import types
from mcp.types import InputRequiredResult
from pydantic import BaseModel, EmailStr, Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount

MODERN = "2026-07-28"
titles = {"Asimov": ["Foundation"], "Austen": ["Emma", "Persuasion"]}
notes = {"rules": "be quiet"}
numbers = itertools.count(1)
cancelled = 0


class Book(BaseModel):
    title: str
    pages: int


class Reservation(BaseModel):
    email: EmailStr
    weeks: Annotated[int, Field(ge=1, le=8)]
    pick_up: Literal["desk", "locker"]


# Lists the notes that exist.
class Notes(Provider):
    async def _list_resources(self) -> Sequence[Resource]:
        return [TextResource(uri=f"note:///{name}", name=name, text=text) for name, text in notes.items()]


# Counts the calls of all tools.
class Audit(Middleware):
    calls = 0

    async def on_call_tool(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        self.calls += 1
        return await call_next(context)


def caller(context: MiddlewareContext) -> str:
    token = get_access_token()
    return token.client_id if token else context.fastmcp_context.session_id


# The limit of FastMCP counts all requests of a caller; this one counts the calls of one tool.
class Quota(SlidingWindowRateLimitingMiddleware):
    def __init__(self, tool: str, calls: int, days: int):
        super().__init__(max_requests=calls, window_minutes=days * 24 * 60, get_client_id=caller)
        self.tool = tool

    async def on_request(self, context: MiddlewareContext, call_next: CallNext) -> Any:
        if context.method == "tools/call" and context.message.name == self.tool:
            return await super().on_request(context, call_next)
        return await call_next(context)


audit = Audit()
skills = SkillsDirectoryProvider("skills", experimental_skills=True)
mcp = FastMCP(
    "features",
    version="1.0.0",
    mask_error_details=True,  # Without it, a client sees the text of every exception.
    middleware=[audit, Quota("order_book", calls=3, days=1)],
    providers=[Notes(), skills],
)
mcp.add_extension(SkillsExtension(providers=[skills]))
mcp.add_extension(TasksExtension())


@mcp.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@mcp.tool
def find_books(
    words: Annotated[str, Field(min_length=2, max_length=100)],
    sort: Literal["title", "year"] = "title",
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
) -> str:
    return "found"


@mcp.tool
def get_book(id: int) -> Book:
    if id != 1:
        raise ToolError(f"unknown book: {id}")
    return Book(title="Emma", pages=474)


@mcp.tool
def count_lines() -> int:
    with open("/srv/private/catalog.csv") as catalog:
        return len(catalog.readlines())


@mcp.tool
def crash() -> float:
    return 1 / 0


@mcp.tool
def next_number() -> int:
    return next(numbers)


@mcp.resource("note:///{name}", mime_type="text/plain")
def note(name: str) -> str:
    if name not in notes:
        raise ResourceError(f"unknown note: {name}")
    return notes[name]


@mcp.tool
async def write_note(name: str, text: str, ctx: Context) -> str:
    is_new = name not in notes
    notes[name] = text
    if is_new:
        await ctx.send_notification(types.ResourceListChangedNotification())
    else:
        params = types.ResourceUpdatedNotificationParams(uri=f"note:///{name}")
        await ctx.send_notification(types.ResourceUpdatedNotification(params=params))
    return "written"


@mcp.prompt
def review(author: str, title: str) -> str:
    return f"Review {title} by {author}."


@mcp.completion
def complete(ref, argument, context):
    if not isinstance(ref, types.PromptReference) or ref.name != "review":
        return None
    chosen = context.arguments if context and context.arguments else {}
    known = titles if argument.name == "author" else titles.get(chosen.get("author"), [])
    return [value for value in known if value.startswith(argument.value)]


# A tool that asks needs this branch. Since 2026-07-28, it returns its question and runs again.
def is_modern(ctx: Context) -> bool:
    return ctx.request_context.protocol_version >= MODERN


def ask(request: types.InputRequest) -> InputRequiredResult:
    return InputRequiredResult(result_type="input_required", input_requests={"answer": request})


@mcp.tool
async def reserve(book: str, ctx: Context) -> str | InputRequiredResult:
    question = f"How long do you need {book}?"
    if not is_modern(ctx):
        answer = await ctx.elicit(question, response_type=Reservation)
    else:
        form = parse_elicit_response_type(Reservation)
        if ctx.input_responses is None:
            params = types.ElicitRequestFormParams(message=question, requested_schema=form.schema)
            return ask(types.ElicitRequest(params=params))
        answer = ctx.input_responses["answer"]
        if answer.action == "accept":
            answer = handle_elicit_accept(form, answer.content)
    return f"{book} {answer.data.weeks} {answer.data.pick_up}" if answer.action == "accept" else "declined"


@mcp.tool
async def pay_fee(ctx: Context) -> str | InputRequiredResult:
    question, url = "Please pay the fee.", "https://library.example/pay"
    if not is_modern(ctx):
        answer = await ctx.session.elicit_url(question, url, f"fee-{ctx.request_id}", ctx.request_id)
    elif ctx.input_responses is None:
        params = types.ElicitRequestURLParams(message=question, url=url)
        return ask(types.ElicitRequest(params=params))
    else:
        answer = ctx.input_responses["answer"]
    return "paid" if answer.action == "accept" else "declined"


@mcp.tool
async def summarize(text: str, ctx: Context) -> str | InputRequiredResult:
    content = types.TextContent(text=f"Summarize: {text}")
    messages = [types.SamplingMessage(role="user", content=content)]
    if not is_modern(ctx):
        # FastMCP 4 has no method for it, but the session of the SDK has one.
        related = ctx.request_id
        answer = await ctx.session.create_message(messages, max_tokens=100, related_request_id=related)
    elif ctx.input_responses is None:
        params = types.CreateMessageRequestParams(messages=messages, max_tokens=100)
        return ask(types.CreateMessageRequest(params=params))
    else:
        answer = ctx.input_responses["answer"]
    return answer.content.text


@mcp.tool
async def check_shelf(books: int, ctx: Context) -> str:
    for book in range(books):
        await ctx.report_progress(book + 1, books)
    await ctx.warning("a book has no title")
    return "checked"


@mcp.tool
async def scan() -> str:
    global cancelled
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        cancelled += 1
        raise
    return "scanned"


@mcp.tool
def cancelled_scans() -> int:
    return cancelled


@mcp.tool(task=True)
async def rebuild_index() -> str:
    await asyncio.sleep(0.3)
    return "rebuilt"


@mcp.tool
def audited() -> int:
    return audit.calls


@mcp.tool
def order_book(title: str) -> str:
    return "ordered"


@mcp.tool(app=AppConfig(resource_uri="ui://features/chart.html"))
def chart() -> str:
    return "a chart"


@mcp.resource("ui://features/chart.html")
def chart_page() -> str:
    return Path("chart.html").read_text()


@mcp.custom_route("/page", methods=["GET"])
async def page(request: Request) -> PlainTextResponse:
    return PlainTextResponse("a page")


# With a verifier, every request needs a key: no tool can be open to everyone.
keys = {
    "ann-key": {"client_id": "ann", "scopes": []},
    "bob-key": {"client_id": "bob", "scopes": ["orders.write"]},
}
private = FastMCP("features-auth", version="1.0.0", auth=StaticTokenVerifier(keys))


@private.tool
def opening_hours() -> str:
    return "9 to 18"


@private.tool
def my_books() -> str:
    return f"books of {get_access_token().client_id}"


@private.tool(auth=require_scopes("orders.write"))
def cancel_order(id: int) -> str:
    return f"cancelled {id}"


def is_bob(ctx: AuthContext) -> bool:
    return ctx.token is not None and ctx.token.client_id == "bob"


@private.tool(auth=is_bob)
def count_till() -> str:
    return "12.50"


async def selftest() -> dict[str, bool]:
    async def reader(message, response_type, params, context):
        return response_type(email="a@b.example", weeks=2, pick_up="locker")

    sums, reserved, spoken = [], [], []
    for mode in ["legacy", MODERN]:
        async with Client(mcp, mode=mode, elicitation_handler=reader) as client:
            sums.append((await client.call_tool("add", {"a": 1, "b": 2})).data)
            reserved.append((await client.call_tool("reserve", {"book": "Dune"})).data)
            spoken.append(client.protocol_version)
    async with Client(private) as client:
        hours = await client.call_tool("opening_hours")
        refused = await client.call_tool("cancel_order", {"id": 7}, raise_on_error=False)
    return {
        "call": sums == [3, 3],
        "elicitation": reserved == ["Dune 2 locker"] * 2,
        "scopes": hours.data == "9 to 18" and refused.is_error,
        "revisions": spoken == ["2025-11-25", MODERN],
    }


def serve(server: FastMCP, port: int) -> None:
    app = server.http_app()
    # HTTP+SSE is an app of its own, at /mcp/sse.
    routes = [Mount("/mcp", server.http_app(transport="sse")), Mount("/", app)]
    uvicorn.run(Starlette(routes=routes, lifespan=app.lifespan), port=port, log_level="warning")


if __name__ == "__main__":
    match sys.argv[1]:
        case "open":
            serve(mcp, int(sys.argv[2]))
        case "auth":
            serve(private, int(sys.argv[2]))
        case "stdio":
            mcp.run(show_banner=False)
        case "selftest":
            print(json.dumps(asyncio.run(selftest())))
