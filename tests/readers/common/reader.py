"""What the Python readers share: their listener, the names in a message, and their output.

A reader prints its address first, and then one JSON object per line: request, method, names.
"""

import json
import socket

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


def listen():
    """Listens on a free port and prints the address."""
    listener = socket.create_server(("127.0.0.1", 0))
    print("127.0.0.1:%d" % listener.getsockname()[1], flush=True)
    return listener


def names_of(method, params):
    """Returns the names of tools, prompts, resources and tasks in the parameters of a message."""
    if not isinstance(params, dict):
        return []
    names = [params.get(member) for member in NAMES.get(method, [])]
    if method == "completion/complete" and isinstance(params.get("ref"), dict):
        names = [params["ref"].get("name"), params["ref"].get("uri")]
    if method == "subscriptions/listen" and isinstance(params.get("notifications"), dict):
        names = params["notifications"].get("resourceSubscriptions")
        names = names if isinstance(names, list) else []
    return [name for name in names if isinstance(name, str)]


def report(headers, method, names):
    """Prints what was read of the request with these headers."""
    print(json.dumps({"request": headers.get("x-request-id"), "method": method, "names": list(names)}), flush=True)
