"""An MCP server on the Python SDK that reports each message it parsed, and each name that a handler received.

It prints its address first, and then one JSON object a line: request, method, names.
"""

import json
import socket

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

NAMES = {
    "tools/call": ["name"],
    "prompts/get": ["name"],
    "resources/read": ["uri"],
    "resources/subscribe": ["uri"],
    "resources/unsubscribe": ["uri"],
    "tasks/get": ["taskId"],
    "tasks/result": ["taskId"],
    "tasks/update": ["taskId"],
    "tasks/cancel": ["taskId"],
}

def report(request, method, names):
    identifier = request.headers.get("x-request-id") if request is not None else None
    if identifier is not None:
        print(json.dumps({"request": identifier, "method": method, "names": list(names)}), flush=True)


def names_of(method, params):
    params = params or {}
    names = [params.get(member) for member in NAMES.get(method, [])]
    if method == "completion/complete" and isinstance(params.get("ref"), dict):
        names = [params["ref"].get("name"), params["ref"].get("uri")]
    if method == "subscriptions/listen" and isinstance(params.get("notifications"), dict):
        names = params["notifications"].get("resourceSubscriptions")
        names = names if isinstance(names, list) else []
    return [name for name in names if isinstance(name, str)]


async def parsed(ctx, call_next):
    report(ctx.request, ctx.method, names_of(ctx.method, ctx.params))
    return await call_next(ctx)


server = MCPServer("reader", log_level="CRITICAL", middleware=[parsed])


def offer(name):
    """Adds a tool and a prompt of this name, which report that they ran."""

    def tool(ctx: Context) -> str:
        report(ctx.request_context.request, "tools/call", [name])
        return name

    def prompt(ctx: Context) -> str:
        report(ctx.request_context.request, "prompts/get", [name])
        return name

    server.add_tool(tool, name=name)
    server.prompt(name=name)(prompt)


def offer_folder(folder):
    """Adds every resource of a folder."""

    @server.resource(f"file:///{folder}/{{name}}")
    def read(name: str, ctx: Context) -> str:
        report(ctx.request_context.request, "resources/read", [f"file:///{folder}/{name}"])
        return name


@server.completion()
async def complete(reference, argument, context):
    return None


# Every protected name exists, so that a handler runs for each message that reaches one.
for offered in ("echo", "admin_wipe", "greeting", "secret_plan"):
    offer(offered)
for offered in ("public", "secret"):
    offer_folder(offered)

listener = socket.create_server(("127.0.0.1", 0))
print("127.0.0.1:%d" % listener.getsockname()[1], flush=True)
application = server.streamable_http_app(json_response=True)
uvicorn.Server(uvicorn.Config(application, log_level="critical")).run(sockets=[listener])
