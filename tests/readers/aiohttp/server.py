"""An HTTP server on aiohttp that reads each message with `request.json()` and reports it."""

import asyncio

from aiohttp import web

from reader import listen, names_of, report

RESPONSE = {"jsonrpc": "2.0", "id": 1, "result": {}}


async def respond(request):
    try:
        read = await request.json()
    except (ValueError, LookupError, RecursionError):
        return web.json_response(RESPONSE, status=400)
    for message in read if isinstance(read, list) else [read]:
        method = message.get("method") if isinstance(message, dict) else None
        if isinstance(method, str):
            report(request.headers, method, names_of(method, message.get("params")))
    return web.json_response(RESPONSE)


async def main():
    application = web.Application(client_max_size=16 * 1024 * 1024)
    application.router.add_route("*", "/{tail:.*}", respond)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.SockSite(runner, listen()).start()
    await asyncio.Event().wait()


asyncio.run(main())
