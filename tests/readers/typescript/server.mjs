// An MCP server on the TypeScript SDK that reports each message it parsed, and each name that a handler received.
//
// It prints its address first, and then one JSON object a line: { request, method, names }.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { completable } from "@modelcontextprotocol/sdk/server/completable.js";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const sessions = new Map();

createServer(serve).listen(0, "127.0.0.1", function () {
  console.log(`127.0.0.1:${this.address().port}`);
});

async function serve(request, response) {
  const session = request.headers["mcp-session-id"];
  const transport = sessions.get(session) ?? (await open());
  await transport.handleRequest(request, response);
}

async function open() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: (session) => sessions.set(session, transport),
    onsessionclosed: (session) => sessions.delete(session),
  });
  await server().connect(transport);
  const dispatch = transport.onmessage;
  transport.onmessage = (message, extra) => {
    report(extra, message.method, namesOf(message));
    dispatch(message, extra);
  };
  return transport;
}

// Every protected name exists, so that a handler runs for each message that reaches one.
function server() {
  const server = new McpServer({ name: "reader", version: "1.0.0" });
  for (const tool of ["echo", "admin_wipe"]) {
    server.registerTool(tool, { inputSchema: {} }, (_, extra) => {
      report(extra, "tools/call", [tool]);
      return { content: [{ type: "text", text: tool }] };
    });
  }
  for (const prompt of ["greeting", "secret_plan"]) {
    const argsSchema = { topic: completable(z.string().optional(), () => ["one", "two"]) };
    server.registerPrompt(prompt, { argsSchema }, (_, extra) => {
      report(extra, "prompts/get", [prompt]);
      return { messages: [{ role: "user", content: { type: "text", text: prompt } }] };
    });
  }
  const read = (uri, extra) => {
    report(extra, "resources/read", [uri.href]);
    return { contents: [{ uri: uri.href, text: "text" }] };
  };
  for (const uri of ["file:///public/x", "file:///secret/x"]) {
    server.registerResource(uri, uri, {}, read);
  }
  for (const folder of ["public", "secret"]) {
    const template = new ResourceTemplate(`file:///${folder}/{name}`, {
      list: undefined,
      complete: { name: () => ["x", "y"] },
    });
    server.registerResource(`template ${folder}`, template, {}, (uri, _, extra) => read(uri, extra));
  }
  return server;
}

function report(extra, method, names) {
  const request = extra?.requestInfo?.headers["x-request-id"];
  if (request !== undefined && method !== undefined) {
    console.log(JSON.stringify({ request, method, names }));
  }
}

function namesOf({ method, params }) {
  const read = {
    "tools/call": () => [params.name],
    "prompts/get": () => [params.name],
    "resources/read": () => [params.uri],
    "resources/subscribe": () => [params.uri],
    "resources/unsubscribe": () => [params.uri],
    "completion/complete": () => [params.ref.name, params.ref.uri],
    "subscriptions/listen": () => params.notifications.resourceSubscriptions,
    "tasks/get": () => [params.taskId],
    "tasks/result": () => [params.taskId],
    "tasks/update": () => [params.taskId],
    "tasks/cancel": () => [params.taskId],
  }[method];
  try {
    return read().filter((name) => typeof name === "string");
  } catch {
    return [];
  }
}
