import assert from "node:assert/strict";
import { test } from "node:test";

import { PintleClient, PintleError } from "@pintle/client";

import { fake, SOON, until } from "./support.mjs";

/**
 * @import { TestContext } from "node:test"
 * @import { ServerResponse } from "node:http"
 * @import { ClientOptions } from "@pintle/client"
 */

const GONE = { type: "/problems/not_found", title: "There is nothing here", status: 404, detail: "there is no session `s`" };

/** @param {number} seq */
function event(seq, kind = "USER_INPUT", data = {}) {
  return `id: ${seq}-100${seq}\ndata: ${JSON.stringify({ seq, kind, data })}\n\n`;
}

/** @param {number} offset @param {string} delta */
function delta(offset, delta) {
  return `data: ${JSON.stringify({ seq: 1, offset, kind: "ASSISTANT_TEXT_DELTA", data: { delta } })}\n\n`;
}

/** @param {string} name @param {unknown} data */
function named(name, data) {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

const READY = named("ready", {});

/** @typedef {(response: ServerResponse) => void} Answer */

/**
 * Sends a stream that stays open.
 * @param {string} text
 * @returns {Answer}
 */
function open(text) {
  return (response) => void response.writeHead(200, { "content-type": "text/event-stream" }).write(text);
}

/**
 * Sends a stream that ends.
 * @param {string} text
 * @returns {Answer}
 */
function ended(text) {
  return (response) => void response.writeHead(200, { "content-type": "text/event-stream" }).end(text);
}

/**
 * @param {number} status
 * @param {unknown} body
 * @returns {Answer}
 */
function problem(status, body) {
  return (response) => void response.writeHead(status, { "content-type": "application/problem+json" }).end(JSON.stringify(body));
}

/**
 * Serves one answer after another, the last one for all that follow.
 * @param {TestContext} t
 * @param {Answer[]} answers
 * @param {Partial<ClientOptions>} [options]
 */
async function serving(t, answers, options) {
  /** @type {string[]} */
  const urls = [];
  const baseUrl = await fake(t, (request, response, count) => {
    urls.push(String(request.url));
    answers[Math.min(count, answers.length - 1)]?.(response);
  });
  return { client: new PintleClient({ baseUrl, backoff: SOON, ...options }), urls };
}

/**
 * Reads a whole stream, each item in short.
 * @param {AsyncIterable<any>} stream
 */
async function short(stream) {
  const items = [];
  for await (const item of stream) {
    if (item.type === "event") items.push(item.event.seq);
    else if (item.type === "delta") items.push([item.text, item.start]);
    else if (item.type === "session") items.push(item.session.id);
    else items.push(item.type);
  }
  return items;
}

test("a stream continues behind its last event, and ends with its session", async (t) => {
  const { client, urls } = await serving(t, [
    ended("retry: 500\n\n" + event(0) + event(1) + READY + delta(0, "He") + delta(2, "l")),
    (response) => void response.writeHead(502).end("<html>"),
    ended(READY + delta(0, "Hell") + delta(4, "o")),
    ended(event(2, "ASSISTANT_TEXT_END") + "data: {\"seq\":"),
    ended(event(3) + named("problem", GONE)),
  ]);
  /** @type {unknown[]} */
  const reconnects = [];
  const onReconnect = (/** @type {any} */ { error, failures }) => reconnects.push([error.status, failures]);
  assert.deepEqual(await short(client.events("s", { onReconnect })), [
    0, 1, "ready", ["He", 0], ["Hel", 0], "ready", ["Hell", 0], ["Hello", 0], 2, 3,
  ]);
  assert.deepEqual(urls, ["", "?after=1-1001", "?after=1-1001", "?after=1-1001", "?after=2-1002"].map((q) => `/v1/sessions/s/events${q}`));
  assert.deepEqual(reconnects, [[undefined, 1], [502, 2], [undefined, 1], [undefined, 1]]);
});

test("a session that is gone at a reconnect ends the stream", async (t) => {
  const { client } = await serving(t, [ended(event(0)), problem(404, GONE)]);
  assert.deepEqual(await short(client.events("s")), [0]);
});

test("a session that never was is an error", async (t) => {
  const { client, urls } = await serving(t, [problem(404, GONE)]);
  const isGone = (/** @type {unknown} */ error) => error instanceof PintleError && error.code === "not_found";
  await assert.rejects(short(client.events("s")), isGone);
  assert.equal(urls.length, 1);
});

test("failures that stay are thrown", async (t) => {
  const unauthorized = { type: "/problems/unauthorized", title: "A token is needed", status: 401, detail: "this token is unknown" };
  for (const [answer, expected] of /** @type {[Answer, RegExp][]} */ ([
    [problem(401, unauthorized), /this token is unknown/],
    [(response) => void response.writeHead(404).end("<html>"), /status 404/],
    [(response) => void response.writeHead(200, { "content-type": "text/html" }).end("<html>"), /not text\/html/],
    [ended("data: {\n\n"), /not JSON/],
    [open(`data: ${"x".repeat(200)}`), /longer than the limit of 100/],
  ])) {
    const { client, urls } = await serving(t, [ended(READY), answer], { maxLine: 100 });
    await assert.rejects(short(client.events("s")), expected);
    assert.equal(urls.length, 2, `${expected}`);
  }
});

test("failures that pass are waited for", async (t) => {
  const failed = (/** @type {number} */ status) => ({ type: "/problems/unavailable", title: "", status, detail: "later" });
  const { client, urls } = await serving(t, [
    (response) => void response.socket?.destroy(),
    problem(500, failed(500)),
    problem(503, failed(503)),
    (response) => void response.writeHead(429, { "retry-after": "0" }).end(),
    ended(named("problem", failed(503))),
    ended(event(0)),
    problem(404, GONE),
  ]);
  assert.deepEqual(await short(client.events("s", { after: "7" })), [0]);
  assert.deepEqual(new Set(urls.slice(0, 6)), new Set(["/v1/sessions/s/events?after=7"]));
});

test("a reset drops what was there", async (t) => {
  const { client, urls } = await serving(t, [
    ended(event(8) + READY + delta(0, "Old ")),
    ended(named("reset", { reason: "it never was" })),
    ended(event(0) + READY + delta(4, "new")),
    problem(404, GONE),
  ]);
  assert.deepEqual(await short(client.events("s", { after: "5-5" })), [8, "ready", ["Old ", 0], "reset", 0, "ready", ["new", 4]]);
  assert.deepEqual(urls, ["?after=5-5", "?after=8-1008", "", "?after=0-1000"].map((q) => `/v1/sessions/s/events${q}`));
});

test("a gap is reported, and the text goes on behind it", async (t) => {
  const gap = `data: ${JSON.stringify({ seq: 1, offset: 3, kind: "GAP", data: { skipped: 7 } })}\n\n`;
  const { client } = await serving(t, [ended(event(0) + delta(0, "one") + gap + delta(10, "two")), problem(404, GONE)]);
  assert.deepEqual(await short(client.events("s")), [0, ["one", 0], "gap", ["two", 10]]);
});

test("a silent stream is replaced, and heartbeats keep it", async (t) => {
  /** @type {NodeJS.Timeout | undefined} */
  let beat;
  t.after(() => clearInterval(beat));
  const { client, urls } = await serving(t, [
    open(event(0)),
    () => {},
    (response) => {
      open(event(1))(response);
      beat = setInterval(() => response.write(named("heartbeat", {})), 100);
      setTimeout(() => response.end(event(2)), 1500);
    },
    problem(404, GONE),
  ], { silence: 700 });
  assert.deepEqual(await short(client.events("s")), [0, 1, 2]);
  assert.equal(urls.length, 4);
});

test("a slow reader is not taken for a silent stream", async (t) => {
  const { client, urls } = await serving(t, [open(event(0) + event(1)), problem(404, GONE)], { silence: 500 });
  const seen = [];
  for await (const item of client.events("s")) {
    seen.push(item.type);
    await new Promise((resolve) => setTimeout(resolve, 700));
    assert.equal(urls.length, 1);
    if (seen.length === 2) break;
  }
});

test("a signal ends a stream wherever it is", async (t) => {
  for (const answer of [open(""), open(event(0) + event(1) + event(2)), () => {}, problem(503, {})]) {
    const { client } = await serving(t, [answer], { backoff: { first: 10_000, longest: 10_000 } });
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 100);
    const seqs = [];
    for await (const item of client.events("s", { signal: abort.signal })) seqs.push(item.type);
    assert.ok(seqs.length === 0 || seqs.length === 3, `${seqs}`);
  }
  const { client, urls } = await serving(t, [open(event(0) + event(1))]);
  const abort = new AbortController();
  const items = [];
  for await (const item of client.events("s", { signal: abort.signal })) {
    items.push(item);
    abort.abort();
  }
  assert.equal(items.length, 1, "nothing after the abort");
  for await (const _ of client.events("s", { signal: abort.signal })) assert.fail();
  assert.equal(urls.length, 1);
});

test("leaving a loop closes the connection", async (t) => {
  /** @type {Promise<void>} */
  let closed = Promise.reject(new Error("never opened"));
  closed.catch(() => {});
  const { client } = await serving(t, [
    (response) => {
      closed = new Promise((resolve) => response.on("close", () => resolve()));
      open(event(0))(response);
    },
  ]);
  for await (const _ of client.events("s")) break;
  await closed;
});

test("a stream that ignores its signal is left all the same", async () => {
  const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(event(0))) });
  let count = 0;
  const client = new PintleClient({
    baseUrl: "http://127.0.0.1:1",
    backoff: SOON,
    silence: 50,
    fetch: async () => {
      count += 1;
      if (count === 1) return new Response(body, { headers: { "content-type": "text/event-stream" } });
      return Response.json(GONE, { status: 404, headers: { "content-type": "application/problem+json" } });
    },
  });
  assert.deepEqual(await short(client.events("s")), [0]);
});

test("changes of all sessions are reset by a reconnect", async (t) => {
  const { client, urls } = await serving(t, [
    ended(named("session", { id: "a" }) + READY + named("deleted", { id: "a" }) + named("reset", { reason: "changes were missed" })),
    ended(named("problem", { ...GONE, status: 503 }) + named("session", { id: "b" }) + READY + named("heartbeat", {})),
    problem(401, { ...GONE, type: "/problems/unauthorized" }),
  ]);
  /** @type {any[]} */
  const items = [];
  const changes = client.sessionChanges();
  await assert.rejects(until(changes, (item) => (items.push(item.type), false)), PintleError);
  assert.deepEqual(items, ["session", "ready", "deleted", "reset", "reset", "problem", "session", "ready"]);
  assert.deepEqual(new Set(urls), new Set(["/v1/events"]));
});
