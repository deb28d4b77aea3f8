"""A FastAPI app behind one function, and a plain function beside it."""

import azure.functions as func
from fastapi import FastAPI, File, Header, HTTPException, UploadFile
from fastapi.responses import RedirectResponse, StreamingResponse
from pydantic import BaseModel, Field

api = FastAPI(title="Items", version="1")


class Item(BaseModel):
    name: str = Field(min_length=1, max_length=20)
    price: float = Field(ge=0, le=1000)
    tags: list[str] = []


@api.get("/items/{item_id}", operation_id="read_item")
async def read_item(item_id: int, verbose: bool = False, x_test: str | None = Header(default=None)):
    """Reads one item."""
    if item_id < 0:
        raise HTTPException(status_code=404, detail="no such item")
    return {"id": item_id, "verbose": verbose, "test": x_test}


@api.post("/items", operation_id="create_item", status_code=201)
async def create_item(item: Item) -> Item:
    """Creates an item."""
    return item


@api.delete("/items/{item_id}", operation_id="remove_item", status_code=204)
async def remove_item(item_id: int):
    """Removes an item."""


@api.get("/list/", operation_id="list_items")
async def list_items(most: int = 10) -> list[int]:
    """Lists items. FastAPI redirects requests without the slash at the end."""
    return list(range(max(0, min(most, 100))))


@api.post("/upload", operation_id="upload")
async def upload(file: UploadFile = File()):
    """Counts the bytes of a file."""
    return {"name": file.filename, "bytes": len(await file.read())}


@api.get("/lines", operation_id="lines")
async def lines():
    """Streams lines."""
    async def pieces():
        for number in range(3):
            yield f"line {number}\n"

    return StreamingResponse(pieces(), media_type="text/plain")


@api.get("/moved", operation_id="moved")
async def moved():
    return RedirectResponse("/items/5")


app = func.AsgiFunctionApp(app=api, http_auth_level=func.AuthLevel.ANONYMOUS)


@app.function_name("Before")
@app.route(route="before", methods=["GET"], auth_level=func.AuthLevel.ANONYMOUS)
def before(req: func.HttpRequest) -> str:
    """Answers before the catch-all route of FastAPI."""
    return "a plain function"
