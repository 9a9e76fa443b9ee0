#!/usr/bin/env node
// Starts the portcullis program of the package for this platform, with the same arguments, input and output.

import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { constants } from 'node:os';

const PLATFORMS = {
  'linux-x64': 'portcullis-mcp-linux-x64',
  'linux-arm64': 'portcullis-mcp-linux-arm64',
};

function fail(message) {
  console.error(`portcullis-mcp: ${message}`);
  process.exit(1);
}

function program() {
  const platform = `${process.platform}-${process.arch}`;
  const name = PLATFORMS[platform];
  if (name === undefined) {
    fail(
      `there is no program for ${platform} yet, only for Linux on x64 and arm64; ` +
        'with Rust, build it from a clone of the repository: cargo install --locked --path crates/server',
    );
  }
  try {
    return createRequire(import.meta.url).resolve(`${name}/bin/portcullis`);
  } catch {
    fail(`the package ${name} is not installed; install again without --omit=optional`);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: 'inherit' });

// A terminal sends its signals to the child as well. Others, such as a client that ends its server, reach only this process.
const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP'];
for (const signal of forwarded) {
  process.on(signal, () => child.kill(signal));
}
child.on('error', (error) => fail(error.message));
child.on('exit', (code, signal) => {
  // A shell's convention for a process that a signal ended.
  process.exit(code ?? 128 + constants.signals[signal]);
});
