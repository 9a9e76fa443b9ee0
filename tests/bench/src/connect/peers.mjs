// A scripted MCP server with an authorization server, and a stdio bridge that is driven line by line.

import { spawn } from "node:child_process";
import { createServer } from "node:http";

const INITIALIZED = {
  protocolVersion: "2025-11-25",
  capabilities: { tools: {} },
  serverInfo: { name: "scripted", version: "1" },
};

// Starts a server. `script(request, response, message)` can respond; other messages get a valid response: `echo` returns its
// parameters, and there is no stream of the server's own.
export async function startServer(script = () => false, port = 0) {
  let session = 0;
  const server = createServer((request, response) => {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", async () => {
      const text = Buffer.concat(pieces).toString();
      const isJson = (request.headers["content-type"] ?? "").startsWith("application/json");
      const message = isJson && text ? JSON.parse(text) : {};
      if (await script(request, response, message, text)) return;
      if (request.url.startsWith("/.well-known/")) return void response.writeHead(404).end();
      if (request.method !== "POST") return void response.writeHead(request.method === "GET" ? 405 : 200).end();
      if (message.id === undefined) return void response.writeHead(202).end();
      const headers = message.method === "initialize" ? { "mcp-session-id": `s-${(session += 1)}` } : {};
      const result = message.method === "initialize" ? INITIALIZED : (message.params ?? {});
      respond(response, message, result, headers);
    });
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  const stop = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return { port: server.address().port, stop };
}

export function respond(response, message, result, headers = {}) {
  response.writeHead(200, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }));
}

// An authorization server at the origin of the resource, for `startServer`. `token` responds at the token endpoint.
export function protectedBy(token) {
  return (request, response, _message, text) => {
    const base = `http://${request.headers.host}`;
    const url = new URL(request.url, base);
    const json = (body, status = 200) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
      return true;
    };
    if (url.pathname.startsWith("/.well-known/oauth-protected-resource")) {
      return json({ resource: `${base}/mcp`, authorization_servers: [base] });
    }
    if (url.pathname.startsWith("/.well-known/")) {
      return json({
        issuer: base,
        authorization_endpoint: `${base}/authorize`,
        token_endpoint: `${base}/token`,
        registration_endpoint: `${base}/register`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["none"],
      });
    }
    if (url.pathname === "/register") return json({ client_id: "me", ...JSON.parse(text) }, 201);
    if (url.pathname === "/authorize") {
      const target = new URL(url.searchParams.get("redirect_uri"));
      target.searchParams.set("code", "c");
      target.searchParams.set("state", url.searchParams.get("state"));
      response.writeHead(302, { location: target.href }).end();
      return true;
    }
    if (url.pathname === "/token") return token(json), true;
    if (request.headers.authorization) return false;
    response.writeHead(401, {
      "www-authenticate": `Bearer resource_metadata="${base}/.well-known/oauth-protected-resource/mcp"`,
    });
    response.end();
    return true;
  };
}

// Starts a bridge. `consents` has the page that it wants to open fetched, as a browser of a user who is signed in.
export function startBridge(bridge, url, { consents = false } = {}) {
  const child = spawn(bridge.command, [...bridge.args, url], {
    env: { PATH: process.env.PATH, HOME: bridge.home, BROWSER: "true", ...bridge.env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const waiting = new Map();
  let log = "";
  let rest = "";
  let visited = false;
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (piece) => {
    rest += piece;
    if (!piece.includes("\n")) return;
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(line);
      waiting.get(message.id)?.(message);
      waiting.delete(message.id);
    }
  });
  const asked = new Promise((resolve) => {
    child.stderr.on("data", (piece) => {
      log += piece;
      const page = log.match(/visit(?:ing:)?\s+(http\S+authorize\S*)\s/)?.[1];
      if (!page || visited) return;
      visited = true;
      resolve(page);
      if (consents) fetch(page).then((response) => response.text()).catch(() => {});
    });
  });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.stdin.on("error", () => {});
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const ask = (id, method, params = {}) => {
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    send({ id, method, params });
    return answered;
  };
  const initialize = async () => {
    const clientInfo = { name: "bench", version: "1" };
    const opened = await ask(0, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
    if (opened.error) throw new Error(`initialize: ${opened.error.message}`);
    send({ method: "notifications/initialized" });
  };
  const stop = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  return { ask, asked, exited, initialize, stop, close: () => child.stdin.end(), log: () => log };
}
