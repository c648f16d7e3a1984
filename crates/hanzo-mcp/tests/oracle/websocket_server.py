"""A WebSocket MCP server made with the official Python SDK (mcp<2), for the client's oracle. Usage: websocket_server.py PORT"""

import sys

import uvicorn
from mcp.server.fastmcp import FastMCP
from mcp.server.websocket import websocket_server
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute

server = FastMCP("socket")


@server.tool()
def add(a: int, b: int) -> str:
    """Adds two numbers"""
    return str(a + b)


async def serve(websocket):
    low = server._mcp_server
    async with websocket_server(websocket.scope, websocket.receive, websocket.send) as (reader, writer):
        await low.run(reader, writer, low.create_initialization_options())


uvicorn.run(Starlette(routes=[WebSocketRoute("/ws", serve)]), host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
