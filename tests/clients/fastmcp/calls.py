"""Signs in at a protected MCP server, and calls a tool of it for each line of the standard input.

The argument is the URL. A line is the name of a tool, which gets the arguments `a` = 1 and `b` = 2. Prints `answer TEXT` or `error TEXT`
for each line. FastMCP opens the browser with the command of BROWSER.
"""

import sys

import anyio
from fastmcp import Client


async def main() -> None:
    async with Client(sys.argv[1], auth="oauth") as client:
        while tool := await anyio.to_thread.run_sync(sys.stdin.readline):
            print(await answer(client, tool.strip()), flush=True)


async def answer(client: Client, tool: str) -> str:
    try:
        result = await client.call_tool(tool, {"a": 1, "b": 2})
        return f"answer {result.content[0].text}"
    except Exception as error:
        return f"error {error!r}".replace("\n", " ")


anyio.run(main)
