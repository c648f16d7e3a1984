"""The official Python client against our server: `client.py stdio PROGRAM DIRECTORY` or `client.py http URL`."""

import asyncio
import sys

import mcp
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def use(streams):
    async with ClientSession(streams[0], streams[1]) as session:
        greeting = await session.initialize()
        name = getattr(greeting, "server_info", None) or greeting.serverInfo
        assert name.name == "hanzo-dev", greeting
        tools = {tool.name for tool in (await session.list_tools()).tools}
        assert {"fs", "proc", "hanzo_agent_coder"} <= tools, tools
        result = await session.call_tool("fs", {"action": "read", "path": "a.txt"})
        structured = getattr(result, "structured_content", None) or result.structuredContent
        assert structured["data"]["text"] == "hello\n", result
        refused = await session.call_tool("fs", {"action": "read", "path": "/etc/passwd"})
        assert getattr(refused, "is_error", None) or getattr(refused, "isError", None), refused
        resources = (await session.list_resources()).resources
        assert any(str(resource.uri).endswith("/a.txt") for resource in resources), resources
        prompts = (await session.list_prompts()).prompts
        assert any(prompt.name == "init" for prompt in prompts), prompts
        version = getattr(greeting, "protocol_version", None) or greeting.protocolVersion
        print(f"python mcp over {sys.argv[1]}: {len(tools)} tools, protocol {version}")


async def main():
    if sys.argv[1] == "stdio":
        server = StdioServerParameters(command=sys.argv[2], args=["mcp", "-C", sys.argv[3]])
        async with stdio_client(server) as streams:
            await use(streams)
    else:
        async with streamable_http_client(sys.argv[2]) as streams:
            await use(streams)


asyncio.run(main())
