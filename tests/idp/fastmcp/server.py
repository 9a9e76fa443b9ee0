"""An MCP server on FastMCP, with one of FastMCP's own authorization servers.

Arguments: `in-memory PORT`, or `proxy PORT ISSUER CLIENT_ID SECRET`, where ISSUER is the provider behind the OAuthProxy,
with endpoints `/authorize`, `/token`, `/jwks`, and CLIENT_ID is registered there with the redirect
`http://127.0.0.1:PORT/auth/callback`.
"""

import sys

from fastmcp import FastMCP


def in_memory(base):
    from fastmcp.server.auth.auth import ClientRegistrationOptions, RevocationOptions
    from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider

    return InMemoryOAuthProvider(
        base_url=base,
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["mcp:tools"]),
        revocation_options=RevocationOptions(enabled=True),
        required_scopes=["mcp:tools"],
    )


def proxy(base, issuer, client_id, secret):
    from fastmcp.server.auth import OAuthProxy
    from fastmcp.server.auth.providers.jwt import JWTVerifier
    from key_value.aio.stores.memory import MemoryStore

    return OAuthProxy(
        upstream_authorization_endpoint=f"{issuer}/authorize",
        upstream_token_endpoint=f"{issuer}/token",
        upstream_client_id=client_id,
        upstream_client_secret=secret,
        token_verifier=JWTVerifier(jwks_uri=f"{issuer}/jwks", issuer=issuer, required_scopes=["mcp:tools"]),
        base_url=base,
        client_storage=MemoryStore(),
    )


mode, port, *rest = sys.argv[1:]
base = f"http://127.0.0.1:{port}"
mcp = FastMCP("sign-in", auth={"in-memory": in_memory, "proxy": proxy}[mode](base, *rest))


@mcp.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


mcp.run(transport="http", host="127.0.0.1", port=int(port), show_banner=False)
