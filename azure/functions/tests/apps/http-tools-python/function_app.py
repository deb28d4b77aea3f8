"""Functions with HTTP triggers that are tools. The app in JavaScript has the same ones."""

import asyncio
import json
import logging
import pathlib

import azure.functions as func

app = func.FunctionApp()


def as_json(value):
    return func.HttpResponse(json.dumps(value), mimetype="application/json")


@app.function_name("GetOrder")
@app.route(route="orders/{id:int:min(1)}", methods=["GET"])
def get_order(req: func.HttpRequest) -> func.HttpResponse:
    """Returns one order.

    Args:
        req: The request.
        id: The number of the order.
        lines (bool, optional): Whether the lines are included,
            which takes longer.
        most (int): How many lines.
    """
    return as_json({
        "id": req.route_params["id"],
        "url": req.url,
        "query": dict(req.params),
        "headers": dict(req.headers),
    })


@app.function_name("Orders")
@app.route(route="orders", methods=["GET", "POST", "DELETE"])
def orders(req: func.HttpRequest) -> func.HttpResponse:
    return as_json({"method": req.method, "query": dict(req.params), "body": req.get_body().decode()})


@app.function_name("Masters")
@app.route(route="orders/{name:alpha}", auth_level=func.AuthLevel.ADMIN)
def masters(req: func.HttpRequest) -> str:
    return "masters"


@app.function_name("Hidden")
@app.route(route="hidden/{name}")
def hidden(req: func.HttpRequest) -> str:
    return "hidden"


@app.function_name("Wild")
@app.route(route="{area}/{name}", methods=["GET"])
def everything(req: func.HttpRequest) -> func.HttpResponse:
    return as_json(dict(req.route_params))


@app.function_name("Parts")
@app.route(route="parts/{first=one}/{second?}", methods=["PUT"])
def parts(req: func.HttpRequest) -> func.HttpResponse:
    return as_json(dict(req.route_params))


@app.function_name("Rest")
@app.route(route="rest/{*path}", methods=["GET"])
def rest(req: func.HttpRequest) -> func.HttpResponse:
    return as_json({"path": req.route_params.get("path"), "url": req.url})


BODIES = {
    "text": (200, "text/plain", b"plain"),
    "object": (200, "text/plain", b' {"a": 1}'),
    "list": (200, "application/json", b"[1, 2]"),
    "number": (200, "text/plain", b"7"),
    "braces": (200, "text/plain", b"{not json}"),
    "page": (200, "text/html", b"<html><body>hello</body></html>"),
    "image": (200, "image/png", b"\x89PNG\x00"),
    "audio": (200, "audio/ogg", b"Ogg\x00"),
    "bytes": (200, "application/zip", b"PK\x00\xff"),
    "latin": (200, "text/plain", b"caf\xe9"),
    "broken": (200, "application/json", b'{"a": "\xff'),
    "empty": (204, "text/plain", b""),
    "created": (201, "application/json", b'{"made": true}'),
    "invalid": (422, "application/json", b'{"detail": [{"loc": ["query", "a"], "msg": "is missing"}]}'),
    "missing": (404, "text/plain", b"no such thing"),
    "long": (400, "text/plain", "ä".encode() * 10000),
    "binary": (500, "application/zip", b"PK\x00\xff"),
    "silent": (503, "text/plain", b""),
}


@app.function_name("Reply")
@app.route(route="reply/{kind}", methods=["GET"])
def reply(req: func.HttpRequest) -> func.HttpResponse:
    status, media, body = BODIES[req.route_params["kind"]]
    return func.HttpResponse(body, status_code=status, mimetype=media)


@app.function_name("Moved")
@app.route(route="moved", methods=["GET"])
def moved(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse(status_code=307, headers={"Location": req.params["to"]})


@app.function_name("Failing")
@app.route(route="failing", methods=["POST"])
def failing(req: func.HttpRequest) -> func.HttpResponse:
    raise ValueError("a secret reason")


@app.function_name("Waiting")
@app.route(route="waiting", methods=["POST"])
async def waiting(req: func.HttpRequest) -> func.HttpResponse:
    logging.info("mcp-progress 1/2 begun")
    try:
        while not pathlib.Path("go").exists():
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        pathlib.Path("cancelled").touch()
        raise
    return func.HttpResponse("done")


@app.function_name("Greet")
@app.route(route="greet")
def http_greet(req: func.HttpRequest) -> str:
    return "Hello from HTTP."


@app.mcp_tool_trigger(arg_name="context", tool_name="greet", description="Greets.")
def tool_greet(context: str) -> str:
    return "Hello from a tool."
