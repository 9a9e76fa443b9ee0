// Signs in at a protected MCP server, calls its tool `add` with the token, and again after the access token has become invalid.
//
// Arguments: the client (`v1` or `v2`) and the URL. Prints `authorize URL`, and reads the URL to which the browser of the user was
// redirected from the standard input. Then prints `answer TEXT` and, after a refresh, `refreshed TEXT`.

import { createInterface } from "node:readline";

import { load, oauthProvider, response } from "./sdk.mjs";

const [name, url] = process.argv.slice(2);
const { Client, Transport, UnauthorizedError } = await load(name);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const provider = oauthProvider("http://127.0.0.1:4321/callback", (authorization) => console.log(`authorize ${authorization}`));

const transport = () => new Transport(new URL(url), { authProvider: provider });
const first = transport();
try {
  await new Client({ name: "sign-in", version: "1" }).connect(first);
  throw new Error("the server accepted a request without a token");
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
await first.finishAuth(response(name, new URL((await lines.next()).value).searchParams));

const client = new Client({ name: "sign-in", version: "1" });
await client.connect(transport());
console.log(`answer ${await add()}`);
const before = provider.tokens().refresh_token;
provider.saveTokens({ ...provider.tokens(), access_token: "invalid" });
console.log(`refreshed ${await add()}`);
if (provider.tokens().refresh_token === before) throw new Error("the refresh token was not rotated");
process.exit(0);

async function add() {
  const result = await client.callTool({ name: "add", arguments: { a: 1, b: 2 } });
  return result.content[0].text;
}
