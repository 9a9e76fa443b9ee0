"""An MCP server on the Python SDK that reports each message it parsed, and each name that a handler received."""

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

from reader import listen, names_of, report


def report_request(request, method, names):
    """Reports what was read of a request that came through the gateway."""
    if request is not None and request.headers.get("x-request-id") is not None:
        report(request.headers, method, names)


async def parsed(ctx, call_next):
    report_request(ctx.request, ctx.method, names_of(ctx.method, ctx.params))
    return await call_next(ctx)


server = MCPServer("reader", log_level="CRITICAL", middleware=[parsed])


def offer(name):
    """Adds a tool and a prompt of this name, which report that they ran."""

    def tool(ctx: Context) -> str:
        report_request(ctx.request_context.request, "tools/call", [name])
        return name

    def prompt(ctx: Context) -> str:
        report_request(ctx.request_context.request, "prompts/get", [name])
        return name

    server.add_tool(tool, name=name)
    server.prompt(name=name)(prompt)


def offer_folder(folder):
    """Adds every resource of a folder."""

    @server.resource(f"file:///{folder}/{{name}}")
    def read(name: str, ctx: Context) -> str:
        report_request(ctx.request_context.request, "resources/read", [f"file:///{folder}/{name}"])
        return name


@server.completion()
async def complete(reference, argument, context):
    return None


# Every protected name exists, so that a handler runs for each message that reaches one.
for offered in ("echo", "admin_wipe", "greeting", "secret_plan"):
    offer(offered)
for offered in ("public", "secret"):
    offer_folder(offered)

application = server.streamable_http_app(json_response=True)
uvicorn.Server(uvicorn.Config(application, log_level="critical")).run(sockets=[listen()])
