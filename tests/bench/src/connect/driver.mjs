// Drives stdio bridges with the TypeScript SDK's client, in turns, and prints one JSON object a sample.
//
// The plan comes on standard input: { sdk, rounds, calls, bridges: [{ name, command, args, env, signIn }] }.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const plan = JSON.parse(readFileSync(0, "utf8"));
const load = (path) => import(pathToFileURL(`${plan.sdk}/dist/esm/client/${path}`));
const { Client } = await load("index.js");
const { StdioClientTransport } = await load("stdio.js");

const environment = (bridge) => ({ PATH: process.env.PATH, HOME: process.env.HOME, ...bridge.env });

// The first start of a bridge that signs in by itself: what it wants a browser to open is fetched, since the
// authorization server consents by itself.
async function signIn(bridge) {
  const child = spawn(bridge.command, bridge.args, { env: environment(bridge), stdio: ["pipe", "ignore", "pipe"] });
  try {
    await new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${bridge.name} does not sign in:\n${log}`)), 60_000);
      let log = "";
      let visited = false;
      child.on("exit", (code) => reject(new Error(`${bridge.name} ended with ${code}:\n${log}`)));
      child.stderr.on("data", async (piece) => {
        log += piece;
        const url = log.match(/visiting:\s+(http\S+)\s/)?.[1];
        if (url && !visited) {
          visited = true;
          await fetch(url).then((page) => page.text()).catch(reject);
        }
        if (log.includes("Proxy established")) {
          clearTimeout(late);
          resolve();
        }
      });
    });
  } finally {
    child.removeAllListeners("exit");
    child.kill();
    await new Promise((resolve) => (child.exitCode === null ? child.once("exit", resolve) : resolve()));
  }
}

function memory(pid) {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kilobytes = (name) => Number(status.match(new RegExp(`${name}:\\s+(\\d+) kB`))[1]);
  return { resident: kilobytes("VmRSS") * 1024, anonymous: kilobytes("RssAnon") * 1024 };
}

async function sample(bridge) {
  const client = new Client({ name: "bench", version: "1" });
  const { command, args } = bridge;
  const started = performance.now();
  const transport = new StdioClientTransport({ command, args, env: environment(bridge), stderr: "ignore" });
  await client.connect(transport);
  const first = performance.now() - started;
  const add = async (b) => {
    const result = await client.callTool({ name: "add", arguments: { a: 1, b } });
    if (result.content[0].text !== String(1 + b)) throw new Error(`${bridge.name} answers wrongly`);
  };
  for (let number = 0; number < 20; number += 1) await add(number);
  const times = [];
  for (let number = 0; number < plan.calls; number += 1) {
    const began = performance.now();
    await add(number);
    times.push(performance.now() - began);
  }
  const held = memory(transport.pid);
  await client.close();
  times.sort((a, b) => a - b);
  return { first_ms: first, call_ms: times[Math.floor(times.length / 2)], ...held };
}

for (const bridge of plan.bridges.filter((bridge) => bridge.signIn)) {
  console.error(`signing ${bridge.name} in`);
  await signIn(bridge);
}
for (let round = 0; round < plan.rounds; round += 1) {
  const turn = round % 2 === 0 ? plan.bridges : [...plan.bridges].reverse();
  for (const bridge of turn) {
    const taken = await sample(bridge);
    console.error(`round ${round + 1}: ${bridge.name} ${taken.call_ms.toFixed(3)} ms a call`);
    console.log(JSON.stringify({ bridge: bridge.name, ...taken }));
  }
}
