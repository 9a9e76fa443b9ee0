// Signs in at a protected MCP server, and calls a tool of it for each line of the standard input.
//
// Arguments: the client and the URL. The client is `v1` or `v2`, the SDK itself, or a program that the SDK starts and that signs in for
// it: `mcp-remote`, or `connect` of the program PORTCULLIS. A line is the name of a tool, which gets the arguments `a` = 1 and `b` = 2.
// Prints `answer TEXT` or `error TEXT` for each line. The browser is opened with the command of BROWSER.

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

import { load, oauthProvider, response } from "./sdk.mjs";

const [name, url] = process.argv.slice(2);
const programs = {
  "mcp-remote": { command: "node", args: ["node_modules/mcp-remote/dist/proxy.js", url] },
  connect: { command: process.env.PORTCULLIS, args: ["connect", url] },
};

const call = programs[name] ? await bridge(programs[name]) : await sdk();
for await (const tool of createInterface({ input: process.stdin })) {
  try {
    const result = await call(tool);
    console.log(`answer ${result.content[0].text}`);
  } catch (error) {
    console.log(`error ${String(error).replaceAll("\n", " ")}`);
  }
}
process.exit(0);

// Returns a function that calls a tool.
async function bridge(program) {
  const { Client } = await load("v1");
  const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
  const client = new Client({ name: "calls", version: "1" });
  await client.connect(new StdioClientTransport({ ...program, env: process.env, stderr: "inherit" }));
  return (tool) => callTool(client, tool);
}

// Returns a function that calls a tool, and once more after the user has signed in.
async function sdk() {
  const { Client, Transport, UnauthorizedError } = await load(name);
  const redirects = createServer();
  redirects.listen(0, "127.0.0.1");
  await once(redirects, "listening");
  const provider = oauthProvider(`http://127.0.0.1:${redirects.address().port}/callback`, (authorization) =>
    execFileSync(process.env.BROWSER, [authorization]),
  );
  let client, transport;

  // The SDK opens the browser and then fails. The program waits for the redirect.
  async function withUser(action) {
    const redirected = once(redirects, "request");
    try {
      return await action();
    } catch (error) {
      if (!(error instanceof UnauthorizedError)) throw error;
    }
    const [request, answer] = await redirected;
    answer.end("signed in");
    await transport.finishAuth(response(name, new URL(request.url, url).searchParams));
    return action();
  }

  await withUser(() => {
    client = new Client({ name: "calls", version: "1" });
    transport = new Transport(new URL(url), { authProvider: provider });
    return client.connect(transport);
  });
  return (tool) => withUser(() => callTool(client, tool));
}

function callTool(client, tool) {
  return client.callTool({ name: tool, arguments: { a: 1, b: 2 } });
}
