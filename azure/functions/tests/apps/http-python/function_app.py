"""Functions with HTTP triggers, and one tool. The app in JavaScript has the same ones."""

import json
import logging

import azure.functions as func

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)


@app.function_name("Echo")
@app.route(route="echo/{id:int?}", methods=["GET", "POST", "PUT"])
def echo(req: func.HttpRequest, context: func.Context) -> func.HttpResponse:
    """Answers with what it was given."""
    logging.info("echo of %s", req.method)
    return func.HttpResponse(
        json.dumps({
            "method": req.method,
            "url": req.url,
            "query": dict(req.params),
            "params": dict(req.route_params),
            "header": req.headers.get("X-Test"),
            "body": req.get_body().decode(),
            "trace": context.trace_context.Traceparent,
        }),
        mimetype="application/json",
    )


@app.function_name("Created")
@app.route(route="created")
def created(req: func.HttpRequest) -> func.HttpResponse:
    response = func.HttpResponse("made", status_code=201, headers={"X-Made": "yes"}, mimetype="text/x-made")
    response.headers.add("Set-Cookie", "a=1; Path=/; HttpOnly; SameSite=Lax; Max-Age=60")
    response.headers.add("Set-Cookie", "b=2; Secure; Expires=Wed, 21 Oct 2026 07:28:00 GMT")
    return response


@app.function_name("Binary")
@app.route(route="binary", methods=["POST"])
def binary(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse(bytes(reversed(req.get_body())), mimetype="application/octet-stream")


@app.function_name("Failing")
@app.route(route="failing")
def failing(req: func.HttpRequest) -> func.HttpResponse:
    raise ValueError("a secret reason")


@app.function_name("Nothing")
@app.route(route="nothing")
def nothing(req: func.HttpRequest) -> func.HttpResponse:
    return None


@app.function_name("Strange")
@app.route(route="strange")
def strange(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("x", status_code=int(req.params["status"]))


@app.function_name("Save")
@app.route(route="save/{folder}", methods=["POST"])
@app.blob_output(arg_name="file", path="notes/{folder}/{name}.txt", connection="AzureWebJobsStorage")
def save(req: func.HttpRequest, file: func.Out[str]) -> str:
    file.set(req.get_json()["text"])
    return "saved"


@app.function_name("Load")
@app.route(route="load/{folder}/{name}", methods=["GET"])
@app.blob_input(arg_name="file", path="notes/{folder}/{name}.txt", connection="AzureWebJobsStorage")
def load(req: func.HttpRequest, file: str) -> func.HttpResponse:
    return func.HttpResponse(file) if file is not None else func.HttpResponse("none", status_code=404)


@app.function_name("Keyed")
@app.route(route="keyed", auth_level=func.AuthLevel.FUNCTION)
def keyed(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("keyed")


@app.function_name("Masters")
@app.route(route="masters", auth_level=func.AuthLevel.ADMIN)
def masters(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("masters")


@app.function_name("Slow")
@app.route(route="slow")
async def slow(req: func.HttpRequest) -> func.HttpResponse:
    import asyncio

    await asyncio.sleep(float(req.params["seconds"]))
    return func.HttpResponse("slept")


@app.mcp_tool_trigger(arg_name="context", tool_name="greet", description="Greets.")
def greet(context: str) -> str:
    return "Hello from a tool."
