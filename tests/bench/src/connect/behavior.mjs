// Compares what stdio bridges do in difficult situations, and prints one JSON object for each situation and bridge.
//
// The plan comes on standard input: { folder, bridges: [{ name, command, args }] }; the URL is the last argument.

import { mkdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { protectedBy, respond, startBridge, startServer } from "./peers.mjs";

const plan = JSON.parse(readFileSync(0, "utf8"));
const MB = 1_000_000;

const within = (limit, promise, what) =>
  Promise.race([
    promise,
    new Promise((_, reject) => setTimeout(reject, limit, new Error(`${what}: nothing within ${limit / 1000} s`)).unref()),
  ]);

const result = (message) => {
  if (message.error) throw new Error(message.error.message);
  return message.result;
};

// Runs `body` with a server and an initialized bridge.
async function session(bridge, script, body, options) {
  const server = await startServer(script);
  const started = startBridge(bridge, `http://127.0.0.1:${server.port}/mcp`, options);
  try {
    await within(30_000, started.initialize(), "initialize");
    return await body(started, server);
  } finally {
    await started.stop();
    await server.stop();
  }
}

const echo = async (started, id, params) => result(await within(60_000, started.ask(id, "echo", params), "a call"));

// The time from now until `body` is done.
async function timed(body) {
  const began = performance.now();
  await body();
  return performance.now() - began;
}

// A server that responds to calls of `echo` with a text of this length.
const large = (size, isStream) => (_request, response, message) => {
  if (message.method !== "echo") return false;
  const text = "x".repeat(size);
  if (!isStream) return respond(response, message, { text }), true;
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(`data: ${JSON.stringify({ jsonrpc: "2.0", id: message.id, result: { text } })}\n\n`);
  return true;
};

const largeAnswer = (size, isStream) => (bridge) =>
  session(bridge, large(size, isStream), (started) =>
    timed(async () => {
      const { text } = await echo(started, 1, {});
      if (text.length !== size) throw new Error(`${text.length} characters instead of ${size}`);
    }),
  );

// Each returns milliseconds, or fails.
const situations = {
  "server restarts, next call": async (bridge) => {
    // A process of the server that knows only the sessions that it opened.
    const process = (name) => (request, response, message) => {
      if (message.method === "initialize") {
        const serverInfo = { name: "scripted", version: "1" };
        const opened = { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo };
        return respond(response, message, opened, { "mcp-session-id": name }), true;
      }
      if (request.headers["mcp-session-id"] === name) return false;
      return response.writeHead(404).end(), true;
    };
    const first = await startServer(process("one"));
    const started = startBridge(bridge, `http://127.0.0.1:${first.port}/mcp`);
    let second;
    try {
      await within(30_000, started.initialize(), "initialize");
      await echo(started, 1, {});
      await first.stop();
      second = await startServer(process("two"), first.port);
      return await timed(() => echo(started, 2, {}));
    } finally {
      await started.stop();
      await second?.stop();
    }
  },
  "connection interrupted during a call": (bridge) => {
    const script = (request, _response, message) => message.params?.cut && (request.socket.destroy(), true);
    return session(bridge, script, async (started) => {
      const took = await timed(async () => {
        const cut = await within(20_000, started.ask(1, "echo", { cut: true }), "the cut call");
        if (!cut.error) throw new Error("a result for a call that was cut");
      });
      await echo(started, 2, {});
      return took;
    });
  },
  "response of 4 MB": largeAnswer(4 * MB, false),
  "response of 20 MB": largeAnswer(20 * MB, false),
  "response of 20 MB in a stream": largeAnswer(20 * MB, true),
  "request of 10 MB": (bridge) =>
    session(bridge, undefined, (started) =>
      timed(async () => {
        const { text } = await echo(started, 1, { text: "x".repeat(10 * MB) });
        if (text.length !== 10 * MB) throw new Error("another length");
      }),
    ),
  "300 calls at once": (bridge) => {
    const slow = (_request, response, message) =>
      message.method === "echo" && (setTimeout(respond, 20, response, message, message.params), true);
    return session(bridge, slow, (started) =>
      timed(() => Promise.all(Array.from({ length: 300 }, (_, number) => echo(started, number + 1, { number })))),
    );
  },
  "redirect to /mcp/": (bridge) => {
    const script = (request, response) =>
      request.url === "/mcp" && (response.writeHead(307, { location: "/mcp/" }).end(), true);
    return session(bridge, script, (started) => timed(() => echo(started, 1, {})));
  },
  "cookie of a load balancer": (bridge) => {
    const script = (request, response, message) => {
      if (message.method === "initialize") response.setHeader("set-cookie", "AWSALB=instance-1; Path=/; HttpOnly");
      else if (request.method === "POST" && !(request.headers.cookie ?? "").includes("AWSALB=instance-1")) {
        return response.writeHead(400).end(), true;
      }
      return false;
    };
    return session(bridge, script, (started) => timed(() => echo(started, 1, {})));
  },
  "gzip accepted": (bridge) => {
    const script = (request, response, message) => {
      if (message.method !== "echo") return false;
      if (!(request.headers["accept-encoding"] ?? "").includes("gzip")) return response.writeHead(406).end(), true;
      response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
      response.end(gzipSync(JSON.stringify({ jsonrpc: "2.0", id: message.id, result: message.params })));
      return true;
    };
    return session(bridge, script, (started) => timed(() => echo(started, 1, { text: "x".repeat(MB) })));
  },
  "token endpoint does not respond": async (bridge) => {
    const server = await startServer(protectedBy(() => {}));
    const started = startBridge(bridge, `http://127.0.0.1:${server.port}/mcp`, { consents: true });
    try {
      const answered = started.initialize().then(
        () => Promise.reject(new Error("a session without a token")),
        () => {},
      );
      return await timed(() => within(60_000, Promise.race([answered, started.exited]), "an error"));
    } finally {
      await started.stop();
      await server.stop();
    }
  },
  "client exits during the sign-in": async (bridge) => {
    const server = await startServer(protectedBy((json) => json({ access_token: "t", token_type: "Bearer" })));
    const started = startBridge(bridge, `http://127.0.0.1:${server.port}/mcp`);
    try {
      started.initialize().catch(() => {});
      await within(30_000, started.asked, "the sign-in");
      started.close();
      return await timed(() => within(15_000, started.exited, "the end"));
    } finally {
      await started.stop();
      await server.stop();
    }
  },
};

let number = 0;
for (const [situation, run] of Object.entries(situations)) {
  for (const bridge of plan.bridges) {
    // No situation knows what another one stored.
    const home = `${plan.folder}/home-${(number += 1)}`;
    mkdirSync(home, { recursive: true });
    const env = { XDG_STATE_HOME: home, MCP_REMOTE_CONFIG_DIR: `${home}/mcp-auth` };
    let outcome;
    try {
      outcome = { ms: await run({ ...bridge, home, env }) };
    } catch (error) {
      outcome = { failed: `${error.message}` };
    }
    const shown = outcome.failed ?? `${outcome.ms.toFixed(0)} ms`;
    console.error(`${situation}: ${bridge.name}: ${shown}`);
    console.log(JSON.stringify({ situation, bridge: bridge.name, ...outcome }));
  }
}
process.exit(0);
