#!/usr/bin/env node
// Runs `pintle`, which PINTLE_BINARY names, and serves the console of this tree in place of the one in the binary, so that
// a change of the console is tried without a build: PINTLE_BIN=./pintle.mjs.

import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { createInterface } from "node:readline";

const { PINTLE_BINARY } = process.env;
if (!PINTLE_BINARY) throw new Error("set PINTLE_BINARY to the path of the command");
const FILES = new URL("../../crates/server/console/", import.meta.url);
const TYPES = { html: "text/html", js: "text/javascript", css: "text/css" };
const POLICY = "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const args = process.argv.slice(2);
const isServer = args[0] === "serve";
const at = args.indexOf("--listen");
const listen = new URL(`http://${isServer ? args[at + 1] : "127.0.0.1:0"}`);
if (isServer) args[at + 1] = "127.0.0.1:0";
// The command ends with this process, also when that is killed.
const command = spawn("setpriv", ["--pdeathsig", "KILL", PINTLE_BINARY, ...args], { stdio: ["inherit", isServer ? "pipe" : "inherit", "inherit"] });
command.on("exit", (code) => process.exit(code ?? 1));
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => command.kill(signal));

if (isServer) {
  for await (const line of createInterface({ input: command.stdout })) {
    const { port, hash } = new URL(line);
    const server = createServer((incoming, response) => void serve(incoming, response, port));
    server.listen(Number(listen.port), listen.hostname, () => console.log(`http://127.0.0.1:${server.address().port}/${hash}`));
  }
}

async function serve(incoming, response, port) {
  const name = incoming.url === "/" ? "index.html" : /^\/console\/([\w-]+\.\w+)$/.exec(incoming.url)?.[1];
  if (name) {
    const data = await readFile(new URL(name, FILES)).catch(() => null);
    response.writeHead(data ? 200 : 404, { "content-type": `${TYPES[name.split(".").at(-1)]}; charset=utf-8`, "content-security-policy": POLICY, "x-content-type-options": "nosniff" });
    response.end(data);
    return;
  }
  const { method, url, headers } = incoming;
  const outgoing = request({ port, method, path: url, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
    answer.on("error", () => response.destroy());
  });
  outgoing.on("error", () => response.destroy());
  response.on("close", () => outgoing.destroy());
  incoming.pipe(outgoing);
}
