"""FastMCP over one OpenAPI document, on stdio: python fastmcp_server.py FILE ADDRESS"""

import json
import sys

import httpx2
from fastmcp import FastMCP

file, address = sys.argv[1:]
with open(file, encoding="utf-8") as text:
    document = json.load(text)
server = FastMCP.from_openapi(openapi_spec=document, client=httpx2.AsyncClient(base_url=address))
server.run(show_banner=False)
