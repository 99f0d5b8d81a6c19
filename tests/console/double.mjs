// A double of the server: the HTTP interface over scripted sessions, for the development of the console and its tests.
//
//   node tests/console/double.mjs [port]
//
// It needs no login unless TOKEN is set.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { fileURLToPath, URL } from "node:url";

import { makeSessions } from "./sessions.mjs";

const FILES = new URL("../../crates/server/console/", import.meta.url);
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8" };
const POLICY = "default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";

/** Starts a double on a port, or on any free one. */
export async function startDouble({ port = 0, token = "", heartbeat = 15_000 } = {}) {
  const double = new Double(token, heartbeat);
  const server = createServer((request, response) => {
    double.handle(request, response).catch((error) => problem(response, 500, "internal", String(error)));
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  double.url = `http://127.0.0.1:${server.address().port}`;
  double.close = () => {
    for (const session of double.sessions.values()) session.destroy();
    clearInterval(double.timer);
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return double;
}

class Double {
  constructor(token, heartbeat) {
    this.token = token;
    /** Requests that change something, as they came. */
    this.log = [];
    /** All paths that were requested. */
    this.paths = [];
    /** Files that a restore finds changed by others. */
    this.foreign = [];
    /** Scopes of the token. */
    this.scopes = ["read", "run", "approve", "admin"];
    this.answered = new Map();
    this.watchers = new Set();
    this.streams = new Set();
    this.sessions = makeSessions((session) => this.announce(session));
    this.timer = setInterval(() => {
      for (const stream of [...this.streams, ...this.watchers]) stream.write("event: heartbeat\ndata: {}\n\n");
    }, heartbeat);
  }

  announce(session) {
    for (const watcher of this.watchers) watcher.write(`event: session\ndata: ${JSON.stringify(session.view())}\n\n`);
  }

  /** Returns the number of connections with streams that are open. */
  connections() {
    const all = [...this.streams, ...this.watchers].map((stream) => stream.response ?? stream);
    return new Set(all).size;
  }

  /** Ends all streams, as a broken connection does. */
  cut() {
    for (const stream of [...this.streams, ...this.watchers]) stream.destroy();
  }

  async handle(request, response) {
    const url = new URL(request.url, this.url);
    this.paths.push(`${request.method} ${url.pathname}${url.search}`);
    response.setHeader("Content-Security-Policy", POLICY);
    response.setHeader("X-Content-Type-Options", "nosniff");
    response.setHeader("Cache-Control", "no-store");
    if (!url.pathname.startsWith("/v1/")) return this.file(url.pathname, response);
    const body = await readBody(request);
    if (url.pathname === "/v1/login") return this.login(body, response);
    if (this.token && !(request.headers.cookie ?? "").includes(`login=${this.token}`)) return problem(response, 401, "unauthorized", "a token is needed");
    if (request.method !== "GET") {
      const key = request.headers["idempotency-key"];
      if (!key) return problem(response, 400, "no-key", "Idempotency-Key is missing");
      if (this.answered.has(key)) return json(response, ...this.answered.get(key));
      this.log.push({ method: request.method, path: url.pathname, body, key });
      const answer = await this.change(request.method, url.pathname, body);
      this.answered.set(key, answer);
      return json(response, ...answer);
    }
    return this.read(url, request, response);
  }

  async file(path, response) {
    const name = path === "/" ? "index.html" : /^\/console\/([\w-]+\.(?:js|css))$/.exec(path)?.[1];
    if (!name) return problem(response, 404, "not-found", path);
    const data = await readFile(fileURLToPath(new URL(name, FILES))).catch(() => null);
    if (!data) return problem(response, 404, "not-found", path);
    response.setHeader("Content-Type", TYPES[name.split(".").at(-1)]);
    response.end(data);
  }

  login(body, response) {
    if (body?.token !== this.token) return problem(response, 401, "unauthorized", "the token is wrong");
    response.setHeader("Set-Cookie", `login=${this.token}; HttpOnly; SameSite=Strict; Path=/`);
    response.writeHead(204).end();
  }

  read(url, request, response) {
    if (url.pathname === "/v1/health") return json(response, 200, { status: "ok" });
    if (url.pathname === "/v1/token") return json(response, 200, { scopes: this.scopes });
    if (url.pathname === "/v1/models") return json(response, 200, { models: [{ id: "claude-opus-4-6", context_window: 200000 }, { id: "gpt-5.2", context_window: 400000 }] });
    if (url.pathname === "/v1/events") return this.watch(response);
    if (url.pathname === "/v1/streams") return this.follow(url, request, response);
    if (url.pathname === "/v1/sessions") return this.list(url, response);
    const match = /^\/v1\/sessions\/([^/]+)(?:\/(\w+)(?:\/(\w+))?)?$/.exec(url.pathname);
    const session = match && this.sessions.get(decodeURIComponent(match[1]));
    if (!session) return problem(response, 404, "not-found", url.pathname);
    switch (match[2]) {
      case undefined:
        response.setHeader("ETag", `"${session.script.events.length}"`);
        return json(response, 200, session.view());
      case "history":
        return json(response, 200, { turns: session.history(), damage: session.damage });
      case "approvals":
        return json(response, 200, { approvals: session.approvals });
      case "diff":
      case "checkpoints":
        if (!session.diff) return problem(response, 404, "not-found", url.pathname);
        return json(response, 200, match[2] === "diff" ? { files: session.diff } : { checkpoints: session.checkpoints() });
      case "journal":
        response.setHeader("Content-Type", "application/jsonl");
        return response.end(session.script.events.map((event) => `${JSON.stringify(event)}\n`).join(""));
      case "blobs":
        response.setHeader("Content-Type", "application/octet-stream");
        return response.end(Buffer.from(session.blob, "base64"));
      case "events":
        return this.stream(session, url, request, response);
      default:
        return problem(response, 404, "not-found", url.pathname);
    }
  }

  list(url, response) {
    const words = (url.searchParams.get("search") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const state = url.searchParams.get("state");
    const limit = Number(url.searchParams.get("limit") ?? 50);
    const from = Number(url.searchParams.get("cursor") ?? 0);
    const all = [...this.sessions.values()]
      .map((session) => session.view())
      .filter((session) => !session.parent && (!state || session.state === state) && words.every((word) => `${session.title} ${session.directory}`.toLowerCase().includes(word)))
      .sort((a, b) => b.updated_at.localeCompare(a.updated_at));
    const next = from + limit < all.length ? String(from + limit) : undefined;
    return json(response, 200, { sessions: all.slice(from, from + limit), next });
  }

  watch(response) {
    open(response);
    for (const session of this.sessions.values()) if (session.live && !session.parent) response.write(`event: session\ndata: ${JSON.stringify(session.view())}\n\n`);
    response.write("event: ready\ndata: {}\n\n");
    this.watchers.add(response);
    response.on("close", () => this.watchers.delete(response));
  }

  stream(session, url, request, response) {
    open(response);
    const last = request.headers["last-event-id"] ?? url.searchParams.get("after");
    const after = last ? Number(last.split("-").at(-1)) : -1;
    for (const event of session.script.events) if (event.seq > after) response.write(session.message(event));
    if (session.damage) {
      response.write(`event: problem\ndata: ${JSON.stringify({ status: 503, detail: "the store of the sessions failed" })}\n\n`);
      return response.end?.();
    }
    for (const delta of session.openText()) response.write(session.message(delta));
    response.write("event: ready\ndata: {}\n\n");
    session.readers.add(response);
    this.streams.add(response);
    response.on("close", () => {
      session.readers.delete(response);
      this.streams.delete(response);
    });
  }

  /** Follows several streams in one connection. */
  follow(url, request, response) {
    open(response);
    this.streams.add(response);
    response.on("close", () => this.streams.delete(response));
    for (const text of (url.searchParams.get("follow") ?? "").split(",")) {
      const [, name, source, id, after] = /^(\w+):(sessions|session|task)(?::([^@]+))?(?:@(.+))?$/.exec(text);
      const part = new Part(name, response);
      const session = this.sessions.get(id);
      if (source === "sessions") this.watch(part);
      else if (session) this.stream(session, new URL(`/?after=${after ?? ""}`, this.url), { headers: {} }, part);
      else part.write(`event: problem\ndata: ${JSON.stringify({ status: 404, detail: `there is no session ${id}` })}\n\n`);
    }
  }

  async change(method, path, body) {
    if (method === "POST" && path === "/v1/sessions") {
      const session = this.sessions.make({ title: body.message?.text.slice(0, 60) ?? "New session", model: body.model, mode: body.mode, directory: body.directory });
      if (body.message) session.submit(body.message);
      return [201, session.view()];
    }
    const match = /^\/v1\/sessions\/([^/]+)(?:\/([\w-]+)(?:\/([^/]+))?)?$/.exec(path);
    const session = match && this.sessions.get(decodeURIComponent(match[1]));
    if (!session) return [404, { title: "no such session", status: 404 }];
    if (method === "DELETE") {
      this.sessions.delete(session.id);
      for (const watcher of this.watchers) watcher.write(`event: deleted\ndata: ${JSON.stringify({ id: session.id })}\n\n`);
      return [204];
    }
    if (method === "PATCH") {
      Object.assign(session, body);
      this.announce(session);
      return [200, session.view()];
    }
    switch (match[2]) {
      case "submit":
        session.submit(body);
        return [202, {}];
      case "say":
        if (session.state() === "PROCESSING") session.steer(body);
        else session.submit(body);
        return [202, {}];
      case "follow-up":
        session.queue.push(body);
        return [202, {}];
      case "interrupt":
      case "abort":
        session.interrupt();
        return [202, {}];
      case "compact":
        return [202, {}];
      case "fork":
        return [201, this.sessions.fork(session, body.turns).view()];
      case "restore":
        return [200, { dry_run: body.dry_run ?? false, turns_before: 0, files: [{ path: "src/roman.rs", action: "overwrite" }], changed_by_others: body.force ? [] : this.foreign, left_alone: [], problems: [] }];
      case "rewind":
        session.rewind(body.turns);
        return [202, {}];
      case "approvals":
        return session.decide(decodeURIComponent(match[3]), body);
      default:
        return [404, { title: "not found", status: 404 }];
    }
  }
}

/** One of the streams of a connection, in the form of a response. */
class Part {
  constructor(name, response) {
    this.name = name;
    this.response = response;
  }
  writeHead() {}
  write(text) {
    for (const message of text.split("\n\n")) {
      const field = (name) => new RegExp(`^${name}: (.*)$`, "m").exec(message)?.[1];
      const [name, data, id] = [field("event") ?? "message", field("data"), field("id") ?? null];
      if (data === undefined || name === "heartbeat") continue;
      this.response.write(`event: followed\ndata: ${JSON.stringify({ stream: this.name, name, id })}\ndata: ${data}\n\n`);
    }
  }
  on(name, listener) {
    this.response.on(name, listener);
  }
  destroy() {
    this.response.destroy();
  }
}

function open(response) {
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  response.write("retry: 500\n\n");
}

function json(response, status, body) {
  if (body === undefined) return response.writeHead(status).end();
  response.writeHead(status, { "Content-Type": status >= 400 ? "application/problem+json" : "application/json" });
  response.end(JSON.stringify(body));
}

function problem(response, status, name, detail) {
  if (response.headersSent) return response.destroy();
  return json(response, status, { type: `/problems/${name}`, title: name, status, detail });
}

async function readBody(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  const text = Buffer.concat(parts).toString("utf8");
  return text ? JSON.parse(text) : undefined;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const double = await startDouble({ port: Number(process.argv[2] ?? 8787), token: process.env.TOKEN ?? "" });
  console.log(double.url);
}
