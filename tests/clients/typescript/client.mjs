// Connects to an MCP server and calls its tool `session` once for each line of the standard input.
//
// Arguments: the client (`v1`, `v2` or `mcp-remote`) and the URL. TOKEN is sent as bearer token. Prints `connected`, then
// `answer TEXT` or `error TEXT` for each call.

import { createInterface } from "node:readline";

const [name, url] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${process.env.TOKEN}` };
const information = { name: "restarts", version: "1" };

const client = await connect();
console.log("connected");
for await (const _ of createInterface({ input: process.stdin })) {
  try {
    const result = await client.callTool({ name: "session", arguments: {} });
    console.log(`answer ${result.content[0].text}`);
  } catch (error) {
    console.log(`error ${String(error).replaceAll("\n", " ")}`);
  }
}
process.exit(0);

async function connect() {
  const { Client, transport } = name === "v2" ? await versionTwo() : await versionOne();
  const client = new Client(information);
  await client.connect(transport);
  return client;
}

async function versionTwo() {
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  return { Client, transport: new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }) };
}

async function versionOne() {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  if (name === "mcp-remote") {
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const args = ["node_modules/mcp-remote/dist/proxy.js", url, "--header", `Authorization:${headers.Authorization}`];
    const transport = new StdioClientTransport({ command: "node", args, env: process.env, stderr: "inherit" });
    return { Client, transport };
  }
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  return { Client, transport: new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }) };
}
