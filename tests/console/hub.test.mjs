// Tests of the connection that several readers share.

import assert from "node:assert/strict";
import { test } from "node:test";

import { StreamHub, streamOf } from "../../crates/server/console/stream-hub.js";

class Connection {
  constructor(url) {
    this.follow = new URL(url, "http://localhost").searchParams.get("follow");
    this.listeners = new Map();
    this.isClosed = false;
  }
  addEventListener(type, listener) {
    this.listeners.set(type, listener);
  }
  close() {
    this.isClosed = true;
  }
  send(type, data) {
    this.listeners.get(type)({ data });
  }
  followed(stream, name, id, data) {
    this.send("followed", `${JSON.stringify({ stream, name, id })}\n${data}`);
  }
}

function setUp() {
  const connections = [];
  const timers = new Map();
  let next = 0;
  const hub = new StreamHub({
    open: (url) => {
      connections.push(new Connection(url));
      return connections.at(-1);
    },
    timers: {
      set: (run, ms) => (timers.set((next += 1), { run, ms }), next),
      clear: (id) => timers.delete(id),
    },
  });
  const pass = (ms) => {
    for (const [id, timer] of [...timers]) {
      if (timer.ms > ms) continue;
      timers.delete(id);
      timer.run();
    }
  };
  const reader = (source, lastId = "") => {
    const received = [];
    const end = hub.subscribe(source, lastId, (name, data, id) => received.push([name, data, id]));
    return { received, end };
  };
  return { connections, pass, reader };
}

test("addresses name their streams", () => {
  for (const [url, expected] of [
    ["/v1/events", { source: "sessions", lastId: "" }],
    ["/v1/sessions/s%201/events", { source: "session:s 1", lastId: "" }],
    ["/v1/sessions/s/events?after=4-17", { source: "session:s", lastId: "4-17" }],
    ["/v1/tasks/t/events", { source: "task:t", lastId: "" }],
    ["/v1/sessions/s", null],
  ]) assert.deepEqual(streamOf(url), expected, url);
});

test("six tabs with two streams each have one connection, and one stream for each source", () => {
  const { connections, pass, reader } = setUp();
  const readers = [];
  for (let tab = 0; tab < 6; tab += 1) readers.push(reader("sessions"), reader(`session:s${tab}`, tab ? `${tab}-9` : ""));
  pass(20);
  assert.equal(connections.length, 1);
  assert.ok(connections[0].follow.startsWith("1:sessions,2:session:s0,4:session:s1@1-9,6:session:s2@2-9,"), connections[0].follow);
  connections[0].followed("4", "message", "5-10", '{"seq":5}');
  connections[0].followed("1", "ready", null, "{}");
  connections[0].followed("99", "message", null, "{}");
  assert.deepEqual(readers[3].received, [["message", '{"seq":5}', "5-10"]]);
  for (const list of [0, 2, 10]) assert.deepEqual(readers[list].received, [["ready", "{}", ""]]);
  assert.deepEqual(readers[1].received, []);
});

test("a reader that comes later replaces the connection, and the others miss nothing", () => {
  const { connections, pass, reader } = setUp();
  reader("session:a");
  reader("session:b", "1-1");
  pass(20);
  connections[0].followed("1", "message", "7-70", "{}");
  connections[0].followed("1", "message", null, "{}");
  connections[0].followed("2", "reset", null, "{}");
  reader("session:c");
  pass(20);
  connections[1].send("open");
  assert.ok(connections[0].isClosed);
  assert.equal(connections[1].follow, "1:session:a@7-70,2:session:b,3:session:c");
});

test("a stream without a reader ends with the last one, or after a while", () => {
  const { connections, pass, reader } = setUp();
  const [first, second] = [reader("session:a"), reader("session:b")];
  pass(20);
  first.end();
  pass(20);
  assert.equal(connections.length, 1);
  pass(5000);
  assert.equal(connections[1].follow, "2:session:b");
  second.end();
  second.end();
  assert.ok(connections[1].isClosed);
});

test("a connection that breaks ends all streams, and messages of it do not count any more", () => {
  const { connections, pass, reader } = setUp();
  const [first, second] = [reader("sessions"), reader("session:a")];
  pass(20);
  connections[0].send("open");
  connections[0].send("heartbeat");
  connections[0].send("error");
  connections[0].followed("1", "ready", null, "{}");
  const expected = [["open", undefined, ""], ["heartbeat", undefined, ""], ["error", undefined, ""]];
  assert.deepEqual(first.received, expected);
  assert.deepEqual(second.received, expected);
  assert.ok(connections[0].isClosed);
  first.end();
  reader("session:a", "3-3");
  pass(20);
  assert.equal(connections[1].follow, "3:session:a@3-3");
});

test("readers of a session share a stream once they have the same events", () => {
  const { connections, pass, reader } = setUp();
  const [first, second] = [reader("session:a", "1-1"), reader("session:a")];
  pass(20);
  assert.equal(connections[0].follow, "1:session:a@1-1,2:session:a");
  for (const stream of ["1", "2"]) connections[0].followed(stream, "message", "4-4", "{}");
  reader("session:b");
  pass(20);
  assert.equal(connections[1].follow, "1:session:a@4-4,3:session:b");
  connections[1].followed("1", "message", "5-5", '{"seq":5}');
  for (const { received } of [first, second]) assert.deepEqual(received.at(-1), ["message", '{"seq":5}', "5-5"]);
  // The stream stays while one of them reads it.
  first.end();
  pass(5000);
  assert.equal(connections.length, 2);
});

test("the list of sessions misses no change while the connection is replaced", () => {
  const { connections, pass, reader } = setUp();
  const [list, session] = [reader("sessions"), reader("session:a")];
  pass(20);
  connections[0].send("open");
  reader("session:b");
  pass(20);
  connections[0].followed("1", "deleted", null, '{"id":"x"}');
  connections[0].followed("2", "message", "1-1", "{}");
  assert.deepEqual(list.received.at(-1), ["deleted", '{"id":"x"}', ""]);
  assert.deepEqual(session.received.at(-1), ["open", undefined, ""], "the newer connection sends it again");
  assert.ok(!connections[0].isClosed);
  connections[1].send("open");
  assert.ok(connections[0].isClosed);
  connections[0].followed("1", "deleted", null, '{"id":"y"}');
  assert.equal(list.received.filter(([name]) => name === "deleted").length, 1);
});

test("a stream beyond the limit of the server fails, and the others continue", () => {
  const { connections, pass, reader } = setUp();
  const readers = [];
  for (let number = 0; number < 101; number += 1) readers.push(reader(`session:s${number}`));
  // One that shares a stream is not beyond it.
  readers.push(reader("session:s0"));
  pass(20);
  assert.equal(connections[0].follow.split(",").length, 100);
  assert.deepEqual(readers.map(({ received }, number) => (received.length ? number : -1)).filter((number) => number >= 0), [100]);
  assert.deepEqual(readers[100].received, [["error", undefined, ""]]);
  connections[0].followed("1", "message", "1-1", "{}");
  for (const number of [0, 101]) assert.equal(readers[number].received.length, 1);
  // A further attempt does not replace the connection, until there is room.
  const again = reader("session:s100");
  pass(20);
  assert.deepEqual(again.received, [["error", undefined, ""]]);
  assert.equal(connections.length, 1);
  readers[50].end();
  const last = reader("session:s100");
  pass(20);
  assert.equal(connections.length, 2);
  assert.deepEqual(last.received, []);
  assert.ok(connections[1].follow.endsWith(":session:s100"));
});
