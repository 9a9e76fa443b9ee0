"""Signs in at a protected MCP server, and calls a tool of it for each line of the standard input.

The argument is the URL. A line is the name of a tool, which gets the arguments `a` = 1 and `b` = 2. Prints `answer TEXT` or `error TEXT`
for each line. The browser is opened with the command of BROWSER.
"""

import os
import sys
from urllib.parse import parse_qs, urlsplit

import anyio
from mcp import ClientSession
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from memory import Memory


class Browser:
    """The browser of the user, and the listener for its redirects."""

    def __init__(self, listener) -> None:
        self.listener = listener
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        self.redirect_uri = f"http://127.0.0.1:{port}/callback"

    async def open(self, url: str) -> None:
        await anyio.run_process([os.environ["BROWSER"], url])

    async def redirect(self) -> AuthorizationCodeResult:
        async with await self.listener.listeners[0].accept() as stream:
            request = await stream.receive()
            await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nsigned in")
        target = request.split(b" ")[1].decode()
        parameters = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
        return AuthorizationCodeResult(code=parameters["code"], state=parameters["state"], iss=parameters["iss"])


async def main() -> None:
    memory = Memory()
    browser = Browser(await anyio.create_tcp_listener(local_host="127.0.0.1"))
    metadata = OAuthClientMetadata(
        client_name="Python SDK",
        redirect_uris=[browser.redirect_uri],
        grant_types=["authorization_code", "refresh_token"],
        token_endpoint_auth_method="none",
    )
    provider = OAuthClientProvider(sys.argv[1], metadata, memory, browser.open, browser.redirect)
    async with (
        create_mcp_http_client(auth=provider) as http,
        streamable_http_client(sys.argv[1], http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        while tool := await anyio.to_thread.run_sync(sys.stdin.readline):
            print(await answer(session, tool.strip()), flush=True)


async def answer(session: ClientSession, tool: str) -> str:
    try:
        result = await session.call_tool(tool, {"a": 1, "b": 2})
        return f"answer {result.content[0].text}"
    except Exception as error:
        return f"error {error!r}".replace("\n", " ")


anyio.run(main)
