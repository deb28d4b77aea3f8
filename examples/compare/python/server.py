# The orders server on FastMCP: `ORDERS_KEY=secret python server.py 8080`.

import json
import os
import secrets
import sys
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from mcp import MCPError
from mcp.types import INVALID_PARAMS
from pydantic import BaseModel, Field
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response


class Order(BaseModel):
    id: str
    status: str
    total: float


class OrderItem(BaseModel):
    itemId: str
    quantity: Annotated[int, Field(ge=1, le=100)]


orders = {
    "123": Order(id="123", status="open", total=18.5),
    "124": Order(id="124", status="delivered", total=7.25),
}
menu = {
    "appetizers": [
        {"id": "rolls", "name": "Spring rolls", "price": 6.5},
        {"id": "soup", "name": "Tomato soup", "price": 5.25},
    ],
    "drinks": [
        {"id": "lemonade", "name": "Lemonade", "price": 3.5},
        {"id": "tea", "name": "Green tea", "price": 2.75},
    ],
}
prices = {item["id"]: item["price"] for items in menu.values() for item in items}

mcp = FastMCP("orders-compare", version="1.0.0")


@mcp.tool(annotations={"readOnlyHint": True})
async def get_order(orderId: Annotated[str, "The order's id"]) -> Order:
    """Looks up an order."""
    if orderId not in orders:
        raise ToolError(f"unknown order: {orderId}")
    return orders[orderId]


@mcp.tool
async def create_order(
    customerId: str,
    items: Annotated[list[OrderItem], Field(min_length=1)],
    priority: Literal["low", "normal", "high", "urgent"] = "normal",
    notes: Annotated[str | None, Field(max_length=500)] = None,
) -> Order:
    """Places an order."""
    for item in items:
        if item.itemId not in prices:
            raise ToolError(f"unknown item: {item.itemId}")
    total = sum(prices[item.itemId] * item.quantity for item in items)
    order = Order(id=str(123 + len(orders)), status="open", total=total)
    orders[order.id] = order
    return order


@mcp.tool(annotations={"readOnlyHint": True})
async def get_time() -> str:
    """The server's time; no key required."""
    return datetime.now(UTC).isoformat()


@mcp.resource("menu://categories/{categoryId}", name="Menu category", mime_type="application/json")
async def menu_category(categoryId: str) -> str:
    """The items of a category."""
    if categoryId not in menu:
        raise MCPError(code=INVALID_PARAMS, message=f"resource not found: menu://categories/{categoryId}")
    return json.dumps(menu[categoryId])


@mcp.prompt
def order_summary(orderId: Annotated[str, "The order's id"], tone: str = "friendly") -> str:
    """Asks for a summary of an order."""
    return f"Summarize order {orderId} for the customer in a {tone} tone."


# Accepts requests with the key, and requests that need none.
class RequireKey(BaseHTTPMiddleware):
    # The methods to find and call get_time, which need no key.
    open_methods = {"initialize", "notifications/initialized", "server/discover", "ping", "tools/list"}

    def __init__(self, app, key: str):
        super().__init__(app)
        self.key = key.encode()

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        given = request.headers.get("x-api-key", "").encode()
        if secrets.compare_digest(given, self.key) or await self.is_open(request):
            return await call_next(request)
        return Response(status_code=401)

    async def is_open(self, request: Request) -> bool:
        try:
            message = await request.json()
            method = message["method"]
            return method in self.open_methods or (
                method == "tools/call" and message["params"]["name"] == "get_time"
            )
        except (ValueError, TypeError, KeyError):
            return False


if __name__ == "__main__":
    mcp.run(
        transport="http",
        host="127.0.0.1",
        port=int(sys.argv[1]),
        stateless_http=True,
        json_response=True,
        middleware=[Middleware(RequireKey, key=os.environ["ORDERS_KEY"])],
        log_level="warning",
        show_banner=False,
    )
