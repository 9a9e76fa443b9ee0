"""The MCP server of compose.yaml. It trusts the headers of Portcullis, and listens where only Portcullis reaches it."""

from fastmcp import FastMCP
from fastmcp.server.dependencies import get_http_headers

mcp = FastMCP("example")


@mcp.tool
def add(a: float, b: float) -> float:
    """Adds two numbers."""
    return a + b


@mcp.tool(annotations={"readOnlyHint": True})
def whoami() -> str:
    """Returns the subject of the caller's token."""
    return get_http_headers().get("x-portcullis-subject", "")


mcp.run(transport="http", host="127.0.0.1", port=8000, path="/mcp")
