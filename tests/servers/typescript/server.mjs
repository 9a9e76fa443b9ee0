// An MCP server on the TypeScript SDK with the tools, resources and prompts of the public conformance suite.
//
// It listens on PORT, with sessions for the revisions until 2025-11-25 and without them for 2026-07-28.

import { randomBytes, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import {
  CLIENT_CAPABILITIES_META_KEY,
  LOG_LEVEL_META_KEY,
  McpServer,
  ResourceTemplate,
  acceptedContent,
  classifyInboundRequest,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  isInitializeRequest,
} from "@modelcontextprotocol/server";
import { z } from "zod";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

const image = { type: "image", data: PNG, mimeType: "image/png" };
const text = (content) => ({ type: "text", text: content });
const embedded = (uri, mimeType, content) => ({ type: "resource", resource: { uri, mimeType, text: content } });
const userMessages = (...content) => ({ messages: content.map((part) => ({ role: "user", content: part })) });
const none = z.object({});

const sessions = new Map();
const states = createRequestStateCodec({ key: randomBytes(32) });
const modern = createMcpHandler(() => server());
const handleModern = toNodeHandler(modern);

createServer((request, response) => {
  handle(request, response).catch((error) => {
    console.error(error);
    response.headersSent ? response.destroy() : sendError(response, 500, -32603, "internal error");
  });
}).listen(Number(process.env.PORT), "127.0.0.1");

async function handle(request, response) {
  if (!isLocal(request.headers.host) || !isLocal(request.headers.origin?.replace(/^https?:\/\//, ""), true)) {
    return sendError(response, 403, -32000, "a foreign host or origin");
  }
  const session = request.headers["mcp-session-id"];
  if (request.method !== "POST") {
    const transport = sessions.get(session);
    return transport ? transport.handleRequest(request, response) : sendError(response, session ? 404 : 400, -32001, "no session");
  }
  let body;
  try {
    body = JSON.parse(Buffer.concat(await request.toArray()).toString());
  } catch {
    return sendError(response, 400, -32700, "not JSON");
  }
  const route = classifyInboundRequest({
    httpMethod: "POST",
    protocolVersionHeader: request.headers["mcp-protocol-version"],
    mcpMethodHeader: request.headers["mcp-method"],
    body,
  });
  if (route.kind !== "legacy") {
    return handleModern(request, response, body);
  }
  const transport = sessions.get(session) ?? (session === undefined && isInitializeRequest(body) ? await open() : undefined);
  return transport ? transport.handleRequest(request, response, body) : sendError(response, session ? 404 : 400, -32001, "no session");
}

function isLocal(host, mayBeAbsent = false) {
  return host === undefined ? mayBeAbsent : /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(host);
}

function sendError(response, status, code, message) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", error: { code, message }, id: null }));
}

async function open() {
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: events(),
    retryInterval: 500,
    onsessioninitialized: (session) => sessions.set(session, transport),
    onsessionclosed: (session) => sessions.delete(session),
  });
  await server().connect(transport);
  return transport;
}

// Stores the events of one session, so that a stream can be resumed.
function events() {
  const stored = [];
  return {
    async storeEvent(stream, message) {
      stored.push({ stream, message });
      return String(stored.length);
    },
    async replayEventsAfter(last, { send }) {
      const stream = stored[Number(last) - 1]?.stream;
      for (let at = Number(last); at < stored.length; at += 1) {
        if (stored[at].stream === stream && Object.keys(stored[at].message ?? {}).length > 0) {
          await send(String(at + 1), stored[at].message);
        }
      }
      return stream;
    },
  };
}

function server() {
  const capabilities = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    logging: {},
    completions: {},
  };
  const server = new McpServer({ name: "everything", version: "1.0.0" }, { capabilities, requestState: { verify: states.verify } });
  addTools(server);
  addInteractiveTools(server);
  addInputTools(server);
  addResources(server);
  addPrompts(server);
  server.server.setRequestHandler("logging/setLevel", async () => ({}));
  server.server.setRequestHandler("completion/complete", async () => ({ completion: { values: [], total: 0, hasMore: false } }));
  return server;
}

// Tools with fixed results.
function addTools(server) {
  const contents = {
    test_simple_text: [text("This is a simple text response for testing.")],
    test_image_content: [image],
    test_audio_content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }],
    test_embedded_resource: [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
    test_multiple_content_types: [
      text("Multiple content types test:"),
      image,
      embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
  };
  for (const [name, content] of Object.entries(contents)) {
    server.registerTool(name, { description: `Gives fixed content: ${name}` }, async () => ({ content }));
  }
  server.registerTool("test_error_handling", { description: "Always fails" }, async () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  const schema = fromJsonSchema({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: { address: { $anchor: "addressDef", type: "object", properties: { street: { type: "string" }, city: { type: "string" } } } },
    properties: {
      name: { type: "string" },
      address: { $ref: "#/$defs/address" },
      contactMethod: { type: "string", enum: ["phone", "email"] },
      phone: { type: "string" },
      email: { type: "string" },
    },
    allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
    if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
    then: { required: ["phone"] },
    else: { required: ["email"] },
    additionalProperties: false,
  });
  const described = { description: "Has a schema of JSON Schema 2020-12", inputSchema: schema };
  server.registerTool("json_schema_2020_12_tool", described, async () => ({ content: [text("called")] }));
  const mirrored = fromJsonSchema({
    type: "object",
    properties: { region: { type: "string", "x-mcp-header": "Region" }, query: { type: "string" } },
    required: ["region", "query"],
  });
  server.registerTool("test_x_mcp_header", { description: "Mirrors a parameter", inputSchema: mirrored }, async ({ region }) => ({
    content: [text(`region ${region}`)],
  }));
  for (const [name, notify] of [["test_trigger_tool_change", "toolsChanged"], ["test_trigger_prompt_change", "promptsChanged"]]) {
    server.registerTool(name, { description: "Announces a change to listeners" }, async () => {
      modern.notify[notify]();
      return { content: [text("announced")] };
    });
  }
}

// Tools that send messages before their result.
function addInteractiveTools(server) {
  const add = (name, inputSchema, run) =>
    server.registerTool(name, { description: `Sends messages before its result: ${name}`, inputSchema }, async (input, ctx) => ({
      content: [text(await run(input, ctx))],
    }));
  add("test_tool_with_logging", none, async (_, ctx) => {
    for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await ctx.mcpReq.notify({ method: "notifications/message", params: { level: "info", data } });
      await sleep(50);
    }
    return "logged";
  });
  add("test_tool_with_progress", none, async (_, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
      const params = { progressToken, progress, total: 100, message: `Completed step ${progress} of 100` };
      await ctx.mcpReq.notify({ method: "notifications/progress", params });
      await sleep(50);
    }
    return String(progressToken ?? "no progress token");
  });
  add("test_reconnection", none, async (_, ctx) => {
    sessions.get(ctx.sessionId)?.closeSSEStream(ctx.mcpReq.id);
    await sleep(100);
    return "reconnected";
  });
  add("test_sampling", z.object({ prompt: z.string() }), async ({ prompt }, ctx) => {
    const params = { messages: [{ role: "user", content: text(prompt) }], maxTokens: 100 };
    const result = await ctx.mcpReq.send({ method: "sampling/createMessage", params });
    return `LLM response: ${result.content?.text}`;
  });
  const elicit = async (ctx, message, properties, required = []) => {
    const params = { message, requestedSchema: { type: "object", properties, required } };
    const result = await ctx.mcpReq.send({ method: "elicitation/create", params });
    return `action=${result.action}, content=${JSON.stringify(result.content ?? {})}`;
  };
  add("test_elicitation", z.object({ message: z.string() }), async ({ message }, ctx) => {
    const response = { type: "string", description: "User's response" };
    return `User response: ${await elicit(ctx, message, { response }, ["response"])}`;
  });
  add("test_elicitation_sep1034_defaults", none, async (_, ctx) => {
    const properties = {
      name: { type: "string", description: "User name", default: "John Doe" },
      age: { type: "integer", description: "User age", default: 30 },
      score: { type: "number", description: "User score", default: 95.5 },
      status: { type: "string", description: "User status", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", description: "Verification status", default: true },
    };
    return `Elicitation completed: ${await elicit(ctx, "Please review the defaults", properties)}`;
  });
  add("test_elicitation_sep1330_enums", none, async (_, ctx) => {
    const plain = (start) => [1, 2, 3].map((number) => `${start}${number}`);
    const titled = (noun) => ["First", "Second", "Third"].map((nth, at) => ({ const: `value${at + 1}`, title: `${nth} ${noun}` }));
    const enumNames = ["Option One", "Option Two", "Option Three"];
    const properties = {
      untitledSingle: { type: "string", enum: plain("option") },
      titledSingle: { type: "string", oneOf: titled("Option") },
      legacyEnum: { type: "string", enum: plain("opt"), enumNames },
      untitledMulti: { type: "array", minItems: 1, maxItems: 3, items: { type: "string", enum: plain("option") } },
      titledMulti: { type: "array", minItems: 1, maxItems: 3, items: { anyOf: titled("Choice") } },
    };
    return `Elicitation completed: ${await elicit(ctx, "Please select options", properties)}`;
  });
}

const formRequest = (message, name, type) =>
  inputRequired.elicit({ message, requestedSchema: { type: "object", properties: { [name]: { type } }, required: [name] } });
const nameRequest = () => formRequest("What is your name?", "name", "string");
const samplingRequest = (content) => inputRequired.createMessage({ messages: [{ role: "user", content: text(content) }], maxTokens: 100 });
const given = (ctx, key) => acceptedContent(ctx.mcpReq.inputResponses, key);

// Tools of 2026-07-28 that require input and are called again with it.
function addInputTools(server) {
  const addPlain = (name, run) =>
    server.registerTool(name, { description: `Checks the client's capabilities: ${name}`, inputSchema: none }, async (_, ctx) => run(ctx));
  addPlain("test_missing_capability", () => inputRequired({ inputRequests: { question: samplingRequest("A question") } }));
  addPlain("test_streaming_elicitation", () => inputRequired({ inputRequests: { user_name: nameRequest() } }));
  addPlain("test_logging_tool", async (ctx) => {
    if (ctx.mcpReq.envelope?.[LOG_LEVEL_META_KEY] !== undefined) {
      await ctx.mcpReq.notify({ method: "notifications/message", params: { level: "info", data: "logged" } });
    }
    return { content: [text("done")] };
  });
  const add = (name, run) =>
    server.registerTool(`test_input_required_result_${name}`, { description: `Asks for input: ${name}`, inputSchema: none }, async (_, ctx) => {
      const result = await run(ctx);
      return typeof result === "string" ? { content: [text(result)] } : inputRequired(result);
    });
  add("elicitation", (ctx) => {
    const name = given(ctx, "user_name")?.name;
    return typeof name === "string" ? `Hello, ${name}!` : { inputRequests: { user_name: nameRequest() } };
  });
  add("sampling", (ctx) => {
    const response = ctx.mcpReq.inputResponses?.capital_question;
    return response ? `Sampling response: ${response.content?.text}` : { inputRequests: { capital_question: samplingRequest("What is the capital of France?") } };
  });
  add("list_roots", (ctx) => {
    const roots = ctx.mcpReq.inputResponses?.client_roots?.roots;
    return Array.isArray(roots) ? `Roots: ${roots.map((root) => root.uri).join(", ")}` : { inputRequests: { client_roots: inputRequired.listRoots() } };
  });
  for (const name of ["request_state", "tampered_state"]) {
    add(name, async (ctx) => {
      if (given(ctx, "confirm") !== undefined && ctx.mcpReq.requestState() !== undefined) {
        return "state-ok: the state is the one that was sent";
      }
      const requestState = await states.mint({ tool: name, nonce: randomUUID() });
      return { inputRequests: { confirm: formRequest("Please confirm", "ok", "boolean") }, requestState };
    });
  }
  add("multiple_inputs", async (ctx) => {
    const [name, responses] = [given(ctx, "user_name")?.name, ctx.mcpReq.inputResponses];
    const [greeting, roots] = [responses?.greeting?.content?.text, responses?.client_roots?.roots];
    if (typeof name === "string" && typeof greeting === "string" && Array.isArray(roots)) {
      return `${greeting} ${name}, with ${roots.length} roots`;
    }
    const inputRequests = { user_name: nameRequest(), greeting: samplingRequest("Generate a greeting"), client_roots: inputRequired.listRoots() };
    return { inputRequests, requestState: await states.mint({ nonce: randomUUID() }) };
  });
  add("multi_round", async (ctx) => {
    const { round = 0, name } = ctx.mcpReq.requestState() ?? {};
    if (round === 0) {
      return { inputRequests: { step1: nameRequest() }, requestState: await states.mint({ round: 1, nonce: randomUUID() }) };
    }
    if (round === 1) {
      const state = { round: 2, name: given(ctx, "step1")?.name ?? "unknown", nonce: randomUUID() };
      const step2 = formRequest("Step 2: What is your favorite color?", "color", "string");
      return { inputRequests: { step2 }, requestState: await states.mint(state) };
    }
    return `${name} likes ${given(ctx, "step2")?.color ?? "unknown"}`;
  });
  add("capabilities", (ctx) => {
    if (ctx.mcpReq.inputResponses !== undefined) {
      return "fulfilled";
    }
    const declared = ctx.mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
    const inputRequests = {
      ...(declared.elicitation && { user_name: nameRequest() }),
      ...(declared.sampling && { greeting: samplingRequest("Generate a greeting") }),
      ...(declared.roots && { client_roots: inputRequired.listRoots() }),
    };
    return Object.keys(inputRequests).length > 0 ? { inputRequests } : "the client supports no input";
  });
}

function addResources(server) {
  const add = (name, mimeType, content) => {
    const uri = `test://${name}`;
    server.registerResource(name, uri, { description: `The resource ${name}`, mimeType }, async () => ({
      contents: [{ uri, mimeType, ...content }],
    }));
  };
  add("static-text", "text/plain", { text: "This is the content of the static text resource." });
  add("static-binary", "image/png", { blob: PNG });
  add("watched-resource", "text/plain", { text: "Watched resource content" });
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  const described = { description: "A resource for each identifier", mimeType: "application/json" };
  server.registerResource("template", template, described, async (uri, { id }) => ({
    contents: [{ uri: uri.href, mimeType: "application/json", text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }],
  }));
  server.server.setRequestHandler("resources/subscribe", async () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", async () => ({}));
}

function addPrompts(server) {
  server.registerPrompt("test_simple_prompt", { description: "Fixed text" }, async () => userMessages(text("This is a simple prompt for testing.")));
  const two = z.object({ arg1: z.string(), arg2: z.string() });
  server.registerPrompt("test_prompt_with_arguments", { description: "Two arguments", argsSchema: two }, async ({ arg1, arg2 }) =>
    userMessages(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  const one = z.object({ resourceUri: z.string() });
  server.registerPrompt("test_prompt_with_embedded_resource", { description: "A resource", argsSchema: one }, async ({ resourceUri }) =>
    userMessages(embedded(resourceUri, "text/plain", "Embedded resource content for testing."), text("Please process the resource above.")),
  );
  server.registerPrompt("test_prompt_with_image", { description: "An image" }, async () => userMessages(image, text("Please analyze the image above.")));
  server.registerPrompt("test_input_required_result_prompt", { description: "Asks for input" }, async (ctx) => {
    const context = given(ctx, "user_context")?.context;
    return typeof context === "string"
      ? userMessages(text(`Use the following context: ${context}`))
      : inputRequired({ inputRequests: { user_context: formRequest("What context should the prompt use?", "context", "string") } });
  });
}
