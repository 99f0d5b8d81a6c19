import assert from "node:assert/strict";
import { test } from "node:test";

import { PintleClient, PintleError } from "@pintle/client";

import { fake, SOON } from "./support.mjs";

const PROBLEM = { type: "/problems/conflict", title: "The request conflicts with the current state", status: 409, detail: "it was decided on" };

/**
 * Returns the failure of a request.
 * @param {Promise<unknown>} request
 * @returns {Promise<PintleError>}
 */
async function failure(request) {
  const error = await request.then(() => assert.fail("it succeeded"), (error) => error);
  assert.ok(error instanceof PintleError, String(error));
  return error;
}

test("a request that changes something keeps its key over retries", async (t) => {
  /** @type {unknown[]} */
  const keys = [];
  /** @type {string[]} */
  const bodies = [];
  const baseUrl = await fake(t, (request, response, count) => {
    keys.push(request.headers["idempotency-key"]);
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      bodies.push(body);
      if (count === 0) request.socket.destroy();
      else if (count === 1) response.writeHead(200, { "content-length": "20" }).write("{", () => request.socket.destroy());
      else if (count < 5) response.writeHead(500 + count).end("<html>");
      else response.end('{"id":"s"}');
    });
  });
  const client = new PintleClient({ baseUrl, backoff: SOON, retries: 5 });
  const session = await client.createSession({ message: { text: "Hi" } });
  assert.equal(session.id, "s");
  assert.equal(keys.length, 6);
  assert.match(String(keys[0]), /^[0-9a-f]{32}$/);
  assert.equal(new Set(keys).size, 1);
  assert.deepEqual(new Set(bodies), new Set(['{"message":{"text":"Hi"}}']));
  await client.createSession({});
  assert.notEqual(keys[6], keys[0], "another call has another key");
  await client.createSession({}, { idempotencyKey: "mine" });
  assert.equal(keys[7], "mine");
});

test("attempts are bounded", async (t) => {
  const baseUrl = await fake(t, (_, response) => void response.writeHead(502).end("<html>"));
  const error = await failure(new PintleClient({ baseUrl, backoff: SOON, retries: 2 }).listModels());
  assert.deepEqual([error.status, error.attempts, error.problem], [502, 3, undefined]);
  assert.match(error.message, /status 502/);
  const closed = new PintleClient({ baseUrl: "http://127.0.0.1:1", backoff: SOON, retries: 1 });
  const refused = await failure(closed.submit("s", { text: "x" }));
  assert.deepEqual([refused.status, refused.attempts, refused.isRetryable], [undefined, 2, true]);
  assert.ok(refused.cause instanceof Error);
});

test("problems are thrown with their details, and not retried", async (t) => {
  let count = 0;
  const baseUrl = await fake(t, (_, response) => {
    count += 1;
    response.writeHead(409, { "content-type": "application/problem+json" }).end(JSON.stringify(PROBLEM));
  });
  const error = await failure(new PintleClient({ baseUrl }).decide("s", "c", { fingerprint: "f", decision: "deny" }));
  assert.deepEqual([error.status, error.code, error.message, error.attempts], [409, "conflict", PROBLEM.detail, 1]);
  assert.deepEqual(error.problem, PROBLEM);
  assert.equal(count, 1);
});

test("problem details of a proxy are not the server's", async (t) => {
  const headers = { "content-type": "application/problem+json" };
  const baseUrl = await fake(t, (_, response) => void response.writeHead(403, headers).end('{"title":"Blocked"}'));
  const error = await failure(new PintleClient({ baseUrl }).listModels());
  assert.deepEqual([error.status, error.problem, error.code], [403, undefined, undefined]);
});

test("retry-after is honoured, up to a minute", async (t) => {
  /** @type {number[]} */
  const times = [];
  const waits = ["1", new Date(Date.now() + 1500).toUTCString(), "61"];
  const baseUrl = await fake(t, (_, response, count) => {
    times.push(Date.now());
    response.writeHead(503, { "retry-after": waits[count] ?? "61" }).end();
  });
  const error = await failure(new PintleClient({ baseUrl, backoff: SOON }).listModels());
  assert.deepEqual([error.attempts, error.retryAfter], [3, 61_000]);
  assert.ok(Number(times[1]) - Number(times[0]) >= 990, `${times}`);
});

test("too many requests are repeated if the server says when", async (t) => {
  const rate = { type: "/problems/rate", title: "Requests come too often", status: 429, detail: "try again later" };
  const full = { ...rate, type: "/problems/full", title: "A capacity limit is reached" };
  /** @type {unknown[]} */
  const keys = [];
  /** @type {(string | undefined)[]} */
  let waits = ["0", "0"];
  const baseUrl = await fake(t, (request, response) => {
    keys.push(request.headers["idempotency-key"]);
    if (waits.length === 0) return void response.end('{"id":"s"}');
    const wait = waits.shift();
    const headers = { "content-type": "application/problem+json", ...(wait && { "retry-after": wait }) };
    response.writeHead(429, headers).end(JSON.stringify(wait ? rate : full));
  });
  const client = new PintleClient({ baseUrl, backoff: SOON, retries: 2 });
  assert.equal((await client.createSession()).id, "s");
  assert.deepEqual([keys.length, new Set(keys).size], [3, 1]);

  waits = ["0", "0", "0"];
  const busy = await failure(client.listModels());
  assert.deepEqual([busy.code, busy.attempts, busy.retryAfter, busy.isRetryable], ["rate", 3, 0, true]);
  waits = ["61"];
  const long = await failure(client.listModels());
  assert.deepEqual([long.code, long.attempts, long.retryAfter], ["rate", 1, 61_000]);
  waits = [undefined];
  const other = await failure(client.createSession());
  assert.deepEqual([other.code, other.attempts, other.isRetryable], ["full", 1, false]);
});

test("a journal does not wait longer than other requests", async (t) => {
  const baseUrl = await fake(t, (_, response) => void response.writeHead(503, { "retry-after": "61" }).end());
  const error = await failure(new PintleClient({ baseUrl, backoff: SOON }).readJournal("s").next());
  assert.deepEqual([error.status, error.attempts], [503, 1]);
});

test("documents are returned as they are", async (t) => {
  const baseUrl = await fake(t, (request, response) => void response.end(`{ ${request.url} é`));
  const client = new PintleClient({ baseUrl });
  assert.equal(await client.exportSession("s"), "{ /v1/sessions/s/export é");
  assert.equal(await client.exportSession("s", { format: "html" }), "{ /v1/sessions/s/export?format=html é");
  assert.equal(await client.auditSession("s", { format: "text" }), "{ /v1/sessions/s/audit?format=text é");
  assert.equal(await client.readMetrics(), "{ /v1/metrics é");
});

test("a signal aborts a request and the wait for the next", async (t) => {
  const baseUrl = await fake(t, (request, response) => {
    if (request.url?.endsWith("models")) response.writeHead(503, { "retry-after": "30" }).end();
  });
  const client = new PintleClient({ baseUrl });
  for (const call of [client.listModels.bind(client), client.listSessions.bind(client, {})]) {
    const abort = new AbortController();
    const reason = new Error("enough");
    setTimeout(() => abort.abort(reason), 50);
    await assert.rejects(call({ signal: abort.signal }), reason);
    await assert.rejects(call({ signal: abort.signal }), reason, "at once");
  }
});

test("a request without a response is given up and repeated", async (t) => {
  const baseUrl = await fake(t, (_, response, count) => {
    if (count === 0) return;
    if (count === 1) response.write('{"models":');
    else response.end('{"models":[]}');
  });
  const client = new PintleClient({ baseUrl, backoff: SOON, timeout: 200 });
  assert.deepEqual(await client.listModels(), { models: [] });
  const impatient = new PintleClient({ baseUrl: await fake(t, () => {}), timeout: 20, retries: 0 });
  assert.match((await failure(impatient.listModels())).message, /nothing arrived for 0.02 s/);
});

test("a deletion whose response was lost has succeeded", async (t) => {
  const problem = { type: "/problems/not_found", title: "There is nothing here", status: 404, detail: "there is no session `s`" };
  const baseUrl = await fake(t, (request, response, count) => {
    if (count === 0) return void request.socket.destroy();
    response.writeHead(404, { "content-type": "application/problem+json" }).end(JSON.stringify(problem));
  });
  const client = new PintleClient({ baseUrl, backoff: SOON });
  await client.deleteSession("s");
  assert.equal((await failure(client.deleteSession("s"))).status, 404);
});

test("addresses, ids and tokens are put where they belong", async (t) => {
  /** @type {unknown[]} */
  const seen = [];
  const baseUrl = await fake(t, (request, response) => {
    seen.push([request.url, request.headers.authorization]);
    response.end('{"turns":[]}');
  });
  await new PintleClient({ baseUrl: `${baseUrl}/#token=secret` }).readHistory("a/b?c");
  await new PintleClient({ baseUrl: `${baseUrl}/behind/proxy/`, token: "other" }).listSessions({ search: "a&b", limit: 2 });
  let count = 0;
  const renewed = new PintleClient({ baseUrl, token: async () => `t${(count += 1)}` });
  await renewed.listModels();
  await renewed.listModels();
  await new PintleClient({ baseUrl }).listModels();
  assert.deepEqual(seen, [
    ["/v1/sessions/a%2Fb%3Fc/history", "Bearer secret"],
    ["/behind/proxy/v1/sessions?search=a%26b&limit=2", "Bearer other"],
    ["/v1/models", "Bearer t1"],
    ["/v1/models", "Bearer t2"],
    ["/v1/models", undefined],
  ]);
  for (const id of ["", ".", ".."]) assert.throws(() => renewed.readHistory(id), TypeError, id);
});

test("a response that is not JSON is an error", async (t) => {
  const baseUrl = await fake(t, (_, response) => void response.end("<html>"));
  const error = await failure(new PintleClient({ baseUrl }).listModels());
  assert.deepEqual([error.message, error.isRetryable], ["the server sent something that is not JSON", false]);
});

test("a journal continues after its last line", async (t) => {
  /** @type {unknown[]} */
  const urls = [];
  const baseUrl = await fake(t, (request, response, count) => {
    urls.push(request.url);
    response.writeHead(200, { "content-type": "application/jsonl" });
    const cut = () => void request.socket.destroy();
    if (count === 0) response.write('{"seq":1,"text":"é"}\n{"seq":2}\n{"se', cut);
    else if (count === 1) response.write('{"seq":3}\n', cut);
    else response.end('{"seq":4}\n{"seq":5}\n');
  });
  const lines = [];
  for await (const line of new PintleClient({ baseUrl, backoff: SOON, retries: 1 }).readJournal("s", { to: 9 })) lines.push(line);
  assert.deepEqual(lines, [{ seq: 1, text: "é" }, { seq: 2 }, { seq: 3 }, { seq: 4 }, { seq: 5 }]);
  assert.deepEqual(urls, [1, 3, 4].map((from) => `/v1/sessions/s/journal?from=${from}&to=9`));
});

test("a blob is read, whole and in part", async (t) => {
  const baseUrl = await fake(t, (request, response) => void response.end(`${request.url} ${request.headers.range ?? "all"}`));
  const client = new PintleClient({ baseUrl });
  /** @param {Parameters<typeof client.readBlob>[2]} [options] */
  const read = async (options) => new TextDecoder().decode(await client.readBlob("s", "h", options));
  assert.equal(await read(), "/v1/sessions/s/blobs/h all");
  assert.equal(await read({ range: { first: 3, last: 5 } }), "/v1/sessions/s/blobs/h bytes=3-5");
  assert.equal(await read({ range: { first: 3 } }), "/v1/sessions/s/blobs/h bytes=3-");
});
