// Signs in at a protected MCP server, calls its tool `add` with the token, and again after the access token has become invalid.
//
// Arguments: the client (`v1` or `v2`) and the URL. Prints `authorize URL`, and reads the URL to which the browser of the user was
// redirected from the standard input. Then prints `answer TEXT` and, after a refresh, `refreshed TEXT`.

import { createInterface } from "node:readline";

const [name, url] = process.argv.slice(2);
const { Client, Transport, UnauthorizedError } = name === "v2" ? await versionTwo() : await versionOne();
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const state = {};
const provider = {
  redirectUrl: "http://127.0.0.1:4321/callback",
  clientMetadata: {
    client_name: "TypeScript SDK",
    redirect_uris: ["http://127.0.0.1:4321/callback"],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  state: () => "state-of-the-sdk",
  clientInformation: () => state.client,
  saveClientInformation: (client) => void (state.client = client),
  tokens: () => state.tokens,
  saveTokens: (tokens) => void (state.tokens = tokens),
  codeVerifier: () => state.verifier,
  saveCodeVerifier: (verifier) => void (state.verifier = verifier),
  redirectToAuthorization: (authorization) => console.log(`authorize ${authorization}`),
};

const transport = () => new Transport(new URL(url), { authProvider: provider });
const first = transport();
try {
  await new Client({ name: "sign-in", version: "1" }).connect(first);
  throw new Error("the server accepted a request without a token");
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
const parameters = new URL((await lines.next()).value).searchParams;
await (name === "v2" ? first.finishAuth(parameters) : first.finishAuth(parameters.get("code")));

const client = new Client({ name: "sign-in", version: "1" });
await client.connect(transport());
console.log(`answer ${await add()}`);
const before = state.tokens.refresh_token;
state.tokens = { ...state.tokens, access_token: "invalid" };
console.log(`refreshed ${await add()}`);
if (state.tokens.refresh_token === before) throw new Error("the refresh token was not rotated");
process.exit(0);

async function add() {
  const result = await client.callTool({ name: "add", arguments: { a: 1, b: 2 } });
  return result.content[0].text;
}

async function versionTwo() {
  const { Client, StreamableHTTPClientTransport, UnauthorizedError } = await import("@modelcontextprotocol/client");
  return { Client, Transport: StreamableHTTPClientTransport, UnauthorizedError };
}

async function versionOne() {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const { UnauthorizedError } = await import("@modelcontextprotocol/sdk/client/auth.js");
  return { Client, Transport: StreamableHTTPClientTransport, UnauthorizedError };
}
