// Calls a tool of a protected MCP server for each line of the standard input, with the command line of the MCP Inspector.
//
// The argument is the URL. A line is the name of a tool, which gets the arguments `a` = 1 and `b` = 2. Prints `answer TEXT` or
// `error TEXT` for each line. Each call is a process of its own, which signs in if it must; tokens are kept in the folder
// MCP_STORAGE_DIR. The browser is opened with the command of BROWSER.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";

const url = process.argv[2];
const inspector = "node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js";

// The program opens no browser and asks nothing of the user unless it is on a terminal, or told so.
const env = { ...process.env, MCP_AUTO_OPEN_ENABLED: "true" };

for await (const tool of createInterface({ input: process.stdin })) {
  const args = [inspector, url, "--method", "tools/call", "--tool-name", tool, "--tool-arg", "a=1", "--tool-arg", "b=2"];
  const child = spawn("node", [...args, "--transport", "http", "--callback-url", "http://127.0.0.1:0/callback", "--format", "json"], { env });
  child.stdin.end("y\n");
  const [output, log] = await Promise.all([text(child.stdout), text(child.stderr)]);
  console.error(log);
  console.log(answer(output) ?? `error ${log.trim().replaceAll("\n", " ")}`);
}

function answer(output) {
  try {
    return `answer ${JSON.parse(output).result.content[0].text}`;
  } catch {
    return undefined;
  }
}
