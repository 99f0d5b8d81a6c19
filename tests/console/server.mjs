// The real server with a scripted model and otherwise with default settings: the sandbox is on, and sessions are in the state
// directory of a home that is removed at the end.
//
// PINTLE_BIN names the command; by default it is that of a debug build.

import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

const BINARY = resolve(process.env.PINTLE_BIN ?? fileURLToPath(new URL("../../target/debug/pintle", import.meta.url)));
const MODEL = "claude-opus-4-6";

// Directory for homes. It must not be below `/tmp` or `/var/tmp`, which the sandbox replaces; `cargo xtask` selects it.
const HOMES = process.env.TEST_HOMES ?? realpathSync(homedir());

/**
 * Starts a server whose model follows a script, in the form of `pintle mock serve`.
 * `mode` is the mode of new sessions, or null for the default one. `directory` is their working directory; by default it is a new
 * repository with a commit. `tenants` has the tenants of tokens by their names.
 */
export async function startServer(script, { mode = "auto", directory, tenants = {} } = {}) {
  const server = new Server(script, mode, directory);
  try {
    for (const [name, tenant] of Object.entries(tenants)) server.addToken(name, tenant);
    await server.startModel();
    await server.start();
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

class Server {
  constructor(script, mode, directory) {
    this.home = mkdtempSync(join(HOMES, "console-"));
    this.mode = mode;
    this.directory = directory ?? join(this.home, "work");
    this.listen = "127.0.0.1:0";
    this.script = script;
    this.tasks = [];
    this.tokens = {};
    writeFileSync(join(this.home, ".gitconfig"), "[user]\n\tname = A User\n\temail = user@example.org\n");
    if (directory) return;
    mkdirSync(this.directory);
    this.git("init", "--quiet", "--initial-branch=main");
    this.git("commit", "--quiet", "--allow-empty", "--message=first");
  }

  /** Runs git in the working directory, with the configuration of the user. */
  git(...args) {
    execFileSync("git", args, { cwd: this.directory, env: this.env() });
  }

  /** Adds a token of a tenant, which reads, runs and approves. */
  addToken(name, tenant) {
    const args = ["tokens", "add", name, "--scope", "read,run,approve", "--tenant", tenant];
    this.tokens[name] = execFileSync(BINARY, args, { cwd: this.directory, env: this.env(), encoding: "utf8" }).trim();
  }

  env(more) {
    const { PATH, PINTLE_BINARY } = process.env;
    return { PATH, HOME: this.home, ...(PINTLE_BINARY && { PINTLE_BINARY: resolve(PINTLE_BINARY) }), ...more };
  }

  async startModel() {
    const script = join(this.home, "script.toml");
    writeFileSync(script, `name = "console"\n${this.script}`);
    this.model = spawn(BINARY, ["mock", "serve", "--script", script], { env: this.env(), stdio: ["ignore", "pipe", "inherit"] });
    this.modelUrl = await firstMatch(this.model, /^anthropic +(\S+)/);
  }

  /** Returns the flags and the environment of what has the scripted model. */
  modelled() {
    const flags = ["--provider", "anthropic", "--model", MODEL, ...(this.mode ? ["--mode", this.mode] : [])];
    return [flags, { cwd: this.directory, env: this.env({ ANTHROPIC_API_KEY: "any-key", ANTHROPIC_BASE_URL: this.modelUrl }) }];
  }

  /** Starts the server, after a kill on the same port. */
  async start() {
    const [flags, options] = this.modelled();
    this.process = spawn(BINARY, ["serve", "--listen", this.listen, ...flags], { ...options, stdio: ["ignore", "pipe", "inherit"] });
    this.line = await firstMatch(this.process, /^(http:\S+)$/);
    const { origin, host, hash } = new URL(this.line);
    this.url = origin;
    this.listen = host;
    this.token = hash.replace("#token=", "");
  }

  /** Commits these files in the working directory, and runs a task there in a separate process. */
  runTask(files, contract) {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.directory, name), text);
    this.git("add", "--all");
    this.git("commit", "--quiet", "--message=second");
    const file = join(this.home, "contract.toml");
    writeFileSync(file, contract);
    const [flags, options] = this.modelled();
    const task = spawn(BINARY, ["task", "run", "--contract", file, "--toolset", "spec", ...flags], { ...options, stdio: "ignore" });
    this.tasks.push(task);
    return task;
  }

  /** Kills the server, as a crash of the machine does. */
  async kill() {
    await stop(this.process, "SIGKILL");
  }

  /** Replaces the model by one with another script, and restarts the server. */
  async follow(script) {
    this.script = script;
    await this.kill();
    await stop(this.model, "SIGKILL");
    await this.startModel();
    await this.start();
  }

  async close() {
    for (const process of [...this.tasks, this.process]) await stop(process, "SIGKILL");
    await stop(this.model, "SIGKILL");
    // Commands end with their server, but not at once. `rmSync` tries only the outermost directory again.
    await rm(this.home, { recursive: true, force: true, maxRetries: 10 });
  }

  async request(method, path, body) {
    const headers = { authorization: `Bearer ${this.token}` };
    if (method !== "GET") headers["idempotency-key"] = randomUUID();
    if (body !== undefined) headers["content-type"] = "application/json";
    const response = await fetch(`${this.url}/v1/${path}`, { method, headers, body: body && JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response;
  }

  async get(path) {
    return (await this.request("GET", path)).json();
  }

  async post(path, body) {
    const text = await (await this.request("POST", path, body)).text();
    return text ? JSON.parse(text) : null;
  }

  /** Returns the lines of the journal of a session. */
  async journal(id) {
    const text = await (await this.request("GET", `sessions/${id}/journal`)).text();
    return text.trim().split("\n").map((line) => JSON.parse(line));
  }

  /** Returns the events of a session that are on record. */
  async events(id) {
    const { body } = await this.request("GET", `sessions/${id}/events`);
    const input = Readable.fromWeb(body);
    const events = [];
    for await (const line of createInterface({ input })) {
      if (line === "event: ready") break;
      if (line.startsWith("data: ")) events.push(JSON.parse(line.slice(6)));
    }
    input.destroy();
    return events.filter((event) => event.offset === undefined);
  }

  /** Starts a session with a message, and returns its id. */
  async begin(text, more = {}) {
    return (await this.post("sessions", { message: { text }, ...more })).id;
  }

  /** Returns whether the record of a session is in the default state directory. */
  isKept(id) {
    return existsSync(join(this.home, ".local/state/pintle/sessions/sessions", id));
  }

  /** Returns a file of the working directory, or null. */
  file(name) {
    try {
      return readFileSync(join(this.directory, name), "utf8");
    } catch {
      return null;
    }
  }
}

async function firstMatch(process, pattern) {
  for await (const line of createInterface({ input: process.stdout })) {
    const match = pattern.exec(line);
    if (!match) continue;
    // Later lines are dropped, so that the pipe never fills.
    process.stdout.resume();
    return match[1];
  }
  throw new Error(`${BINARY} ended before it printed its address`);
}

/** Ends a process, and returns once it has ended. */
export function stop(process, signal) {
  if (!process || process.exitCode !== null || process.signalCode !== null) return undefined;
  const ended = new Promise((resolve) => process.once("exit", resolve));
  process.kill(signal);
  return ended;
}
