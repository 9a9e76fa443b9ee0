"""Connects to an MCP server and calls its tool `session` once for each line of the standard input.

The argument is the URL. TOKEN is sent as bearer token. Prints `connected`, then `answer TEXT` or `error TEXT` for each call.
"""

import os
import sys

import anyio
from mcp import ClientSession
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
    async with (
        create_mcp_http_client(headers=headers) as http,
        streamable_http_client(sys.argv[1], http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        print("connected", flush=True)
        while await anyio.to_thread.run_sync(sys.stdin.readline):
            print(await answer(session), flush=True)


async def answer(session: ClientSession) -> str:
    try:
        result = await session.call_tool("session", {})
        return f"answer {result.content[0].text}"
    except Exception as error:
        return f"error {error!r}"


anyio.run(main)
