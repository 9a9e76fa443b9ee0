"""An HTTP server on aiohttp that reads each message with `request.json()` and reports it.

It prints its address first, and then one JSON object a line: request, method, names.
"""

import asyncio
import json
import socket

from aiohttp import web

ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {}}
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


def names_of(method, params):
    if not isinstance(params, dict):
        return []
    names = [params.get(member) for member in NAMES.get(method, [])]
    if method == "completion/complete" and isinstance(params.get("ref"), dict):
        names = [params["ref"].get("name"), params["ref"].get("uri")]
    if method == "subscriptions/listen" and isinstance(params.get("notifications"), dict):
        names = params["notifications"].get("resourceSubscriptions")
        names = names if isinstance(names, list) else []
    return [name for name in names if isinstance(name, str)]


async def answer(request):
    try:
        read = await request.json()
    except (ValueError, LookupError, RecursionError):
        return web.json_response(ANSWER, status=400)
    for message in read if isinstance(read, list) else [read]:
        method = message.get("method") if isinstance(message, dict) else None
        if isinstance(method, str):
            names = names_of(method, message.get("params"))
            line = {"request": request.headers.get("X-Request-Id"), "method": method, "names": names}
            print(json.dumps(line), flush=True)
    return web.json_response(ANSWER)


async def main():
    application = web.Application(client_max_size=16 * 1024 * 1024)
    application.router.add_route("*", "/{tail:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listener).start()
    print("127.0.0.1:%d" % listener.getsockname()[1], flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
