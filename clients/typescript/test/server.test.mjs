// The client with a real server and a scripted model.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { PintleError } from "@pintle/client";

import { isEvent, recordedOf, rest, serve, until } from "./support.mjs";

/**
 * @import { PintleClient, EventOf } from "@pintle/client"
 */

const HELLO = `
[[turn]]
text = "Hello, I am here."
pause_ms = 10
[[turn]]
text = "Here again."
`;

const RUNS = `
[[turn]]
text = "I run it."
[[turn.call]]
tool = "Bash"
arguments = { command = "echo made > made.txt; cat made.txt", description = "Make it" }
[[turn]]
text = "That is all."
`;

/** @param {(error: PintleError) => boolean} fits */
function isError(fits) {
  return (/** @type {unknown} */ error) => error instanceof PintleError && fits(error);
}

/**
 * Creates a session, and follows it to the end of its run.
 * @param {PintleClient} client
 * @param {string} text
 */
async function finished(client, text) {
  const session = await client.createSession({ message: { text } });
  return { session, items: await until(client.events(session.id), isEvent("PROCESSING_END")) };
}

/**
 * Creates a session, and follows it to a call that waits for a decision.
 * @param {PintleClient} client
 */
async function asking(client) {
  const session = await client.createSession({ message: { text: "Make it." } });
  const items = await until(client.events(session.id), isEvent("APPROVAL_REQUESTED"));
  const last = recordedOf(items).at(-1);
  assert.ok(last?.event.kind === "APPROVAL_REQUESTED");
  return { id: session.id, after: last.id, request: last.event.data };
}

test("a session is created, told things, and followed", async (t) => {
  const server = await serve(t, HELLO);
  const client = server.client();
  const session = await client.createSession({});
  const items = [];
  for await (const item of client.events(session.id)) {
    items.push(item);
    // Deltas of a text that ended earlier are not sent.
    if (item.type === "ready") await client.submit(session.id, { text: "Hi" });
    if (isEvent("PROCESSING_END")(item)) break;
  }
  const deltas = items.filter((item) => item.type === "delta");
  const ends = recordedOf(items).filter(({ event }) => event.kind === "ASSISTANT_TEXT_END");
  assert.equal(/** @type {EventOf<"ASSISTANT_TEXT_END">} */ (ends[0]?.event).data.text, "Hello, I am here.");
  assert.ok(deltas.length > 0);
  assert.deepEqual([deltas.at(-1)?.text, deltas.at(-1)?.start], ["Hello, I am here.", 0]);
  assert.deepEqual(recordedOf(items), await server.recorded(session.id));

  const last = recordedOf(items).at(-1);
  await client.submit(session.id, { text: "And now?" });
  const more = await until(client.events(session.id, { after: String(last?.id) }), isEvent("PROCESSING_END"));
  assert.deepEqual([...recordedOf(items), ...recordedOf(more)], await server.recorded(session.id));

  const { turns } = await client.readHistory(session.id);
  assert.deepEqual(
    turns.map(({ kind, text }) => [kind, text]),
    [["user", "Hi"], ["assistant", "Hello, I am here."], ["user", "And now?"], ["assistant", "Here again."]],
  );
  assert.equal((await client.readSession(session.id)).title, "Hi");
  const list = await client.listSessions({ search: "Hi", state: "IDLE", limit: 1 });
  assert.deepEqual(list.sessions.map(({ id }) => id), [session.id]);
  assert.ok((await client.listModels()).models.length > 0);
  assert.equal((await client.changeSession(session.id, { mode: "plan" })).mode, "plan");
  const unknown = /** @type {any} */ ({ title: "Bye" });
  await assert.rejects(client.changeSession(session.id, unknown), isError(({ status, code }) => status === 400 && code === "invalid"));
});

test("the journal is read, whole and in part", async (t) => {
  const server = await serve(t, HELLO);
  const client = server.client();
  const { session } = await finished(client, "Hi");
  const text = await (await server.fetch(`/v1/sessions/${session.id}/journal`)).text();
  const expected = text.trim().split("\n").map((line) => JSON.parse(line));
  /** @param {Parameters<typeof client.readJournal>[1]} range */
  const read = async (range) => {
    const lines = [];
    for await (const line of client.readJournal(session.id, range)) lines.push(line);
    return lines;
  };
  assert.deepEqual(await read({}), expected);
  assert.deepEqual(await read({ from: 2, to: 4 }), expected.slice(1, 4));
  assert.deepEqual(await read({ from: expected.length + 1 }), []);
  await assert.rejects(read({ from: 0 }), isError(({ code }) => code === "invalid"));
});

test("an approved call runs, and a second decision comes too late", async (t) => {
  const server = await serve(t, RUNS);
  const client = server.client();
  const { id, after, request } = await asking(client);
  const { approvals } = await client.listApprovals(id);
  const [approval] = approvals;
  assert.ok(approval);
  assert.deepEqual(
    [approval.call_id, approval.fingerprint, approval.session, approval.arguments],
    [request.call_id, request.fingerprint, id, request.arguments],
  );
  await assert.rejects(
    client.decide(id, approval.call_id, { fingerprint: "0".repeat(32), decision: "approve" }),
    isError(({ status }) => status === 409),
  );
  const decision = /** @type {const} */ ({ fingerprint: approval.fingerprint, decision: "approve" });
  for (let count = 0; count < 2; count += 1) await client.decide(id, approval.call_id, decision, { idempotencyKey: "decision" });
  await assert.rejects(
    client.decide(id, approval.call_id, { fingerprint: approval.fingerprint, decision: "deny" }),
    isError(({ status, code, attempts }) => status === 409 && code === "conflict" && attempts === 1),
  );
  const items = await until(client.events(id, { after }), isEvent("PROCESSING_END"));
  const ended = recordedOf(items).map(({ event }) => event).find((event) => event.kind === "TOOL_CALL_END");
  assert.match(String(ended?.data.output), /^made/);
  assert.deepEqual((await client.listApprovals(id)).approvals, []);
});

test("a denied call does not run", async (t) => {
  const server = await serve(t, RUNS);
  const client = server.client();
  const { id, after, request } = await asking(client);
  const { call_id, fingerprint } = request;
  await client.decide(id, call_id, { fingerprint, decision: "deny", reason: "not today" });
  const events = recordedOf(await until(client.events(id, { after }), isEvent("PROCESSING_END"))).map(({ event }) => event);
  const decided = events.find((event) => event.kind === "APPROVAL_DECIDED");
  assert.deepEqual([decided?.data.approved, decided?.data.reason], [false, "not today"]);
  assert.equal(events.find((event) => event.kind === "TOOL_CALL_END")?.data.error, "denied");
});

/**
 * Creates a session, and approves its call.
 * @param {PintleClient} client
 */
async function made(client) {
  const { id, after, request } = await asking(client);
  const { call_id, fingerprint } = request;
  await client.decide(id, call_id, { fingerprint, decision: "approve" });
  await until(client.events(id, { after }), isEvent("PROCESSING_END"));
  return id;
}

test("files are compared and restored", async (t) => {
  const server = await serve(t, RUNS);
  const client = server.client();
  const id = await made(client);
  const file = join(server.directory, "made.txt");
  const { checkpoints } = await client.listCheckpoints(id);
  assert.deepEqual(checkpoints.map(({ reason }) => reason), ["before_call", "after_call"]);
  const [before, after] = checkpoints;
  assert.ok(before && after);

  const added = { path: "made.txt", change: "added", hunks: [{ old_start: 0, new_start: 1, lines: [{ kind: "add", text: "made" }] }] };
  assert.deepEqual((await client.diff(id)).files, [added]);
  assert.deepEqual((await client.diff(id, { turns: before.turns })).files, [added]);
  assert.deepEqual((await client.diff(id, { checkpoint: before.id })).files, [added]);
  assert.deepEqual((await client.diff(id, { checkpoint: after.id })).files, []);
  await assert.rejects(client.diff(id, { turns: 0, checkpoint: after.id }), isError(({ code }) => code === "invalid"));

  const plan = await client.restore(id, { turns: 0, dry_run: true });
  assert.deepEqual([plan.dry_run, plan.files], [true, [{ path: "made.txt", action: "remove" }]]);
  assert.ok(existsSync(file));
  writeFileSync(file, "changed\n");
  await assert.rejects(client.restore(id, { turns: 0 }), isError(({ code }) => code === "conflict"));
  assert.equal(readFileSync(file, "utf8"), "changed\n");

  const options = { idempotencyKey: "restore" };
  const done = await client.restore(id, { turns: 0, force: true, conversation: true }, options);
  assert.deepEqual([done.dry_run, done.turns, done.changed_by_others], [false, 0, ["made.txt"]]);
  assert.ok(!existsSync(file));
  assert.deepEqual((await client.readHistory(id)).turns, []);
  writeFileSync(file, "new\n");
  assert.deepEqual(await client.restore(id, { turns: 0, force: true, conversation: true }, options), done);
  assert.equal(readFileSync(file, "utf8"), "new\n", "the key counts once");
  await client.restore(id, { checkpoint: String(done.undo), force: true });
  assert.equal(readFileSync(file, "utf8"), "changed\n");
});

test("a session is exported and audited", async (t) => {
  const server = await serve(t, RUNS);
  const client = server.client();
  const id = await made(client);
  for (const [format, expected] of /** @type {const} */ ([
    [undefined, /^\{"/],
    ["jsonl", /^\{"/],
    ["markdown", /^# [^]*I run it\./],
    ["html", /^<!doctype html>[^]*I run it\./i],
  ])) {
    assert.match(await client.exportSession(id, { format }), expected);
  }
  for (const [format, expected] of /** @type {const} */ ([
    [undefined, /^\{[^]*made\.txt/],
    ["json", /^\{[^]*made\.txt/],
    ["text", /^[^{<][^]*made\.txt/],
    ["html", /^<!doctype html>[^]*made\.txt/i],
  ])) {
    assert.match(await client.auditSession(id, { format }), expected);
  }
  for (const line of (await client.exportSession(id)).trim().split("\n")) JSON.parse(line);
  JSON.parse(await client.auditSession(id));
  assert.match(await client.readMetrics(), /^pintle_runs_total 1$/m);
});

test("a key counts once", async (t) => {
  const server = await serve(t, HELLO);
  const client = server.client();
  const options = { idempotencyKey: "first" };
  const [one, two] = await Promise.all([client.createSession({}, options), client.createSession({}, options)]);
  assert.equal(one.id, two.id);
  assert.notEqual((await client.createSession()).id, one.id);
  for (let count = 0; count < 3; count += 1) await client.submit(one.id, { text: "Hi" }, options);
  const items = await until(client.events(one.id), isEvent("PROCESSING_END"));
  assert.equal(items.filter(isEvent("USER_INPUT")).length, 1);

  for (let count = 0; count < 2; count += 1) await client.rewind(one.id, 1, options);
  await until(client.events(one.id), isEvent("REWOUND"));
  for (let count = 0; count < 2; count += 1) await client.abort(one.id, options);
  const all = await until(client.events(one.id), isEvent("SESSION_END"));
  assert.equal(all.filter(isEvent("REWOUND")).length, 1);
  await client.rewind(one.id, 1, options);
  await assert.rejects(client.rewind(one.id, 1), isError(({ code }) => code === "ended"));
  for (let count = 0; count < 2; count += 1) await client.deleteSession(one.id, options);
  await assert.rejects(client.deleteSession(one.id), isError(({ code }) => code === "not_found"));
});

test("a session is forked and rewound", async (t) => {
  const server = await serve(t, HELLO);
  const client = server.client();
  const { session } = await finished(client, "Hi");
  const fork = await client.forkSession(session.id, 1, { idempotencyKey: "fork" });
  assert.equal((await client.forkSession(session.id, 1, { idempotencyKey: "fork" })).id, fork.id);
  const [first] = await until(client.events(fork.id), isEvent("SESSION_START"));
  assert.ok(first?.type === "event" && first.event.kind === "SESSION_START");
  assert.deepEqual(first.event.data.forked_from, { session_id: session.id, turns: 1 });
  await assert.rejects(client.forkSession(session.id, 99), isError(({ code }) => code === "invalid"));

  await client.rewind(session.id, 1);
  await until(client.events(session.id), isEvent("REWOUND"));
  for (const id of [session.id, fork.id]) {
    const { turns } = await client.readHistory(id);
    assert.deepEqual(turns.map(({ text }) => text), ["Hi"]);
  }
  await assert.rejects(client.rewind(session.id, 99), isError(({ code }) => code === "invalid"));
});

test("a run is interrupted, and a session closed", async (t) => {
  const server = await serve(t, '[[turn]]\ntext = "One two three four five six seven eight nine ten."\npause_ms = 500\n');
  const client = server.client();
  const session = await client.createSession({ message: { text: "Count." } });
  await until(client.events(session.id), (item) => item.type === "delta");
  await client.steer(session.id, { text: "Faster." });
  await client.followUp(session.id, { text: "Again." });
  await client.interrupt(session.id);
  const items = await until(client.events(session.id), isEvent("PROCESSING_END"));
  const end = recordedOf(items).map(({ event }) => event).find((event) => event.kind === "ASSISTANT_TEXT_END");
  assert.equal(end?.data.interrupted, true);
  await client.abort(session.id);
  const [last] = (await until(client.events(session.id), isEvent("SESSION_END"))).slice(-1);
  assert.equal(last?.type === "event" && last.event.kind === "SESSION_END" && last.event.data.state, "CLOSED");
  const hasEnded = isError(({ status, code }) => status === 409 && code === "ended");
  await assert.rejects(client.submit(session.id, { text: "More." }), hasEnded);
  await assert.rejects(client.changeSession(session.id, { mode: "plan" }), hasEnded);
});

test("the stream of a deleted session ends", async (t) => {
  const server = await serve(t, HELLO);
  const client = server.client();
  const { session } = await finished(client, "Hi");
  const stream = client.events(session.id);
  await until(rest(stream), (item) => item.type === "ready");
  await client.deleteSession(session.id);
  for await (const item of stream) assert.fail(JSON.stringify(item));
  await assert.rejects(client.events(session.id).next(), isError(({ code }) => code === "not_found"));
  await assert.rejects(client.readSession(session.id), isError(({ status }) => status === 404));
});

test("changes of all sessions are followed", async (t) => {
  const server = await serve(t, HELLO);
  const client = server.client();
  const open = await client.createSession();
  const changes = client.sessionChanges();
  const first = await changes.next();
  assert.equal(first.value?.type === "session" && first.value.session.id, open.id);
  assert.deepEqual((await changes.next()).value, { type: "ready" });
  const other = await client.createSession({ message: { text: "Say hello" } });
  await until(rest(changes), (item) => item.type === "session" && item.session.id === other.id && item.session.title === "Say hello");
  await client.deleteSession(open.id);
  const items = await until(rest(changes), (item) => item.type === "deleted");
  assert.deepEqual(items.at(-1), { type: "deleted", id: open.id });
});

test("a wrong token is refused", async (t) => {
  const server = await serve(t, HELLO);
  const client = server.client({ token: "pintle_wrong" });
  const isRefused = isError(({ status, code }) => status === 401 && code === "unauthorized");
  await assert.rejects(client.listSessions(), isRefused);
  await assert.rejects(client.events("s").next(), isRefused);
  const printed = server.client({ baseUrl: server.line });
  assert.ok(await printed.listSessions());
});

test("a token of the file survives a restart, and has its scopes", async (t) => {
  const server = await serve(t, HELLO);
  const token = await server.addToken("ann", "read,run");
  // The server reads the file when it starts, and every two seconds.
  await server.restart();
  const client = server.client({ token });
  const { session } = await finished(client, "Hi");
  await server.restart();
  assert.equal((await client.readSession(session.id)).title, "Hi");
  const isForbidden = isError(({ status, code }) => status === 403 && code === "forbidden");
  await assert.rejects(client.deleteSession(session.id), isForbidden);
  await assert.rejects(client.readMetrics(), isForbidden);
});

test("a client that asks too often waits", async (t) => {
  const server = await serve(t, HELLO, ["--max-rate", "4"]);
  const impatient = server.client({ retries: 0 });
  const results = await Promise.allSettled(Array.from({ length: 20 }, () => impatient.listModels()));
  const errors = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
  assert.ok(errors.length > 0);
  for (const error of errors) {
    assert.deepEqual([error.status, error.code, error.retryAfter, error.isRetryable], [429, "rate", 1000, true]);
  }
  const client = server.client();
  await Promise.all(Array.from({ length: 6 }, () => client.listModels()));
});
