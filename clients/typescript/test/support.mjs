// The binary under test, a scripted model, and directories that are removed at the end.

import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { PintleClient } from "@pintle/client";

/**
 * @import { TestContext } from "node:test"
 * @import { ChildProcess } from "node:child_process"
 * @import { IncomingMessage, ServerResponse } from "node:http"
 * @import { AddressInfo } from "node:net"
 * @import { ClientOptions, RecordedEvent, SessionItem } from "@pintle/client"
 */

const BINARY = process.env.PINTLE_BIN ?? fileURLToPath(new URL("../../../target/debug/pintle", import.meta.url));

/** Delays of clients in tests. */
export const SOON = { first: 1, longest: 20 };

/**
 * Starts a program, and returns it with the first line of its output that begins with a prefix.
 * @param {TestContext} t
 * @param {string[]} args
 * @param {Record<string, string>} env
 * @param {string} prefix
 * @returns {Promise<{child: ChildProcess, line: string}>}
 */
async function start(t, args, env, prefix) {
  if (!existsSync(BINARY)) throw new Error(`${BINARY} does not exist: build it, or set PINTLE_BIN`);
  const child = spawn(BINARY, args, { env, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => stop(child));
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith(prefix)) return { child, line };
  }
  throw new Error(`pintle ${args.join(" ")} ended with ${child.exitCode}`);
}

/**
 * Kills a program, and waits for its end.
 * @param {ChildProcess} child
 */
async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exited;
}

/** `pintle serve` with a scripted model. */
export class Server {
  /** @type {ChildProcess | undefined} */
  #child;
  /** @type {Promise<string>} */
  #token = Promise.reject(new Error("the server was never started"));

  /**
   * @param {TestContext} t
   * @param {string} directory
   * @param {Record<string, string>} env
   * @param {string[]} args further arguments
   */
  constructor(t, directory, env, args) {
    this.#token.catch(() => {});
    this.t = t;
    this.directory = directory;
    this.env = env;
    this.args = args;
    this.address = "127.0.0.1:0";
    /** Line that the server printed last. */
    this.line = "";
  }

  /** Starts it, again at the same address. */
  async start() {
    const args = ["serve", "--listen", this.address, "--provider", "anthropic", "--model", "claude-opus-4-6"];
    args.push("--sandbox", "off", "--dir", this.directory, ...this.args);
    const started = start(this.t, args, this.env, "http://");
    this.#token = started.then(({ line }) => new URLSearchParams(new URL(line).hash.slice(1)).get("token") ?? "");
    this.#token.catch(() => {});
    const { child, line } = await started;
    this.#child = child;
    this.line = line;
    this.address = new URL(line).host;
  }

  /** Kills it without warning, and starts it again. Requests wait for the new token meanwhile. */
  async restart() {
    /** @type {(token: Promise<string>) => void} */
    let resolve = () => {};
    this.#token = new Promise((done) => (resolve = done));
    if (this.#child) await stop(this.#child);
    await this.start();
    resolve(this.#token);
  }

  get url() {
    return `http://${this.address}`;
  }

  /** Returns the present token. */
  token() {
    return this.#token;
  }

  /**
   * Makes a token that survives a restart.
   * @param {string} name
   * @param {string} scope names, with commas
   */
  async addToken(name, scope) {
    const { stdout } = await promisify(execFile)(BINARY, ["tokens", "add", name, "--scope", scope], { env: this.env });
    return stdout.trim();
  }

  /** @param {Partial<ClientOptions>} [options] */
  client(options) {
    return new PintleClient({ baseUrl: this.url, token: () => this.token(), backoff: SOON, ...options });
  }

  /**
   * Sends a request without the client under test.
   * @param {string} path
   * @param {RequestInit} [init]
   */
  async fetch(path, init) {
    const headers = { authorization: `Bearer ${await this.token()}` };
    return fetch(`${this.url}${path}`, { ...init, headers: { ...headers, ...init?.headers } });
  }

  /**
   * Reads the events on record without the client under test.
   * @param {string} id
   * @returns {Promise<{id: string, event: RecordedEvent}[]>}
   */
  async recorded(id) {
    const abort = new AbortController();
    const response = await this.fetch(`/v1/sessions/${id}/events`, { signal: abort.signal });
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of /** @type {any} */ (response.body)) {
      text += decoder.decode(chunk, { stream: true });
      if (text.includes("\n\nevent: ready\n")) break;
    }
    abort.abort();
    const events = [];
    for (const message of text.split("\n\n")) {
      const match = /^id: (.*)\ndata: (.*)$/.exec(message);
      if (match) events.push({ id: String(match[1]), event: JSON.parse(String(match[2])) });
    }
    return events;
  }
}

/**
 * Starts a server whose model follows a script.
 * @param {TestContext} t
 * @param {string} script turns, in TOML
 * @param {string[]} args further arguments of the server
 */
export async function serve(t, script, args = []) {
  const root = mkdtempSync(join(tmpdir(), "pintle-client-"));
  const directory = join(root, "project");
  const file = join(root, "script.toml");
  mkdirSync(directory);
  writeFileSync(file, `name = "client"\n${script}`);
  const { PATH = "" } = process.env;
  const { line } = await start(t, ["mock", "serve", "--script", file], { PATH, HOME: root }, "anthropic ");
  const env = {
    PATH,
    HOME: root,
    ANTHROPIC_API_KEY: "any-key",
    ANTHROPIC_BASE_URL: line.replace(/^anthropic +/, ""),
    PINTLE_STATE_DIR: join(root, "state"),
    PINTLE_CONFIG_DIR: join(root, "config"),
  };
  const server = new Server(t, directory, env, args);
  await server.start();
  // Functions run in the order in which they are added: the server is killed by now.
  // Commands end with their server, but not at once.
  t.after(() => rm(root, { recursive: true, force: true, maxRetries: 10 }));
  return server;
}

/**
 * Starts an HTTP server in this process.
 * @param {TestContext} t
 * @param {(request: IncomingMessage, response: ServerResponse, count: number) => void} handle gets the number of requests before
 */
export async function fake(t, handle) {
  let count = 0;
  const server = createServer((request, response) => handle(request, response, count++));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${/** @type {AddressInfo} */ (server.address()).port}`;
}

/**
 * Reads a stream up to an item that fits, which is included.
 * @template {{type: string}} Item
 * @param {AsyncIterable<Item>} stream
 * @param {(item: Item) => boolean} fits
 */
export async function until(stream, fits) {
  const items = [];
  for await (const item of stream) {
    items.push(item);
    if (fits(item)) return items;
  }
  throw new Error(`the stream ended after ${JSON.stringify(items)}`);
}

/**
 * Returns what follows in a stream. A loop over it does not end the stream.
 * @template Item
 * @param {AsyncGenerator<Item>} stream
 * @returns {AsyncIterable<Item>}
 */
export function rest(stream) {
  return { [Symbol.asyncIterator]: () => ({ next: () => stream.next() }) };
}

/**
 * Returns a test for events of a kind.
 * @param {string} kind
 * @returns {(item: SessionItem) => boolean}
 */
export function isEvent(kind) {
  return (item) => item.type === "event" && item.event.kind === kind;
}

/** @param {SessionItem[]} items */
export function recordedOf(items) {
  return items.flatMap((item) => (item.type === "event" ? [{ id: item.id, event: item.event }] : []));
}
