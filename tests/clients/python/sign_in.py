"""Signs in at a protected MCP server, calls its tool `add` with the token, and again after the access token has become invalid.

The argument is the URL. Prints `authorize URL`, and reads the URL to which the browser of the user was redirected from the standard
input. Then prints `answer TEXT` and, after a refresh, `refreshed TEXT`.
"""

import sys
from urllib.parse import parse_qs, urlsplit

import anyio
from mcp import ClientSession
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from memory import Memory


async def redirect(url: str) -> None:
    print(f"authorize {url}", flush=True)


async def callback() -> AuthorizationCodeResult:
    line = await anyio.to_thread.run_sync(sys.stdin.readline)
    parameters = {name: values[0] for name, values in parse_qs(urlsplit(line.strip()).query).items()}
    return AuthorizationCodeResult(code=parameters["code"], state=parameters["state"], iss=parameters["iss"])


async def main() -> None:
    memory = Memory()
    metadata = OAuthClientMetadata(
        client_name="Python SDK",
        redirect_uris=["http://127.0.0.1:4321/callback"],
        grant_types=["authorization_code", "refresh_token"],
        token_endpoint_auth_method="none",
    )
    provider = OAuthClientProvider(sys.argv[1], metadata, memory, redirect, callback)
    async with (
        create_mcp_http_client(auth=provider) as http,
        streamable_http_client(sys.argv[1], http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        print(f"answer {await add(session)}", flush=True)
        before = memory.tokens.refresh_token
        # The provider refreshes ahead of a request with an expired token.
        provider.context.current_tokens.access_token = "invalid"
        provider.context.token_expiry_time = 1
        print(f"refreshed {await add(session)}", flush=True)
        assert memory.tokens.refresh_token != before, "the refresh token was not rotated"


async def add(session: ClientSession) -> str:
    result = await session.call_tool("add", {"a": 1, "b": 2})
    return result.content[0].text


anyio.run(main)
