// Tests of the stream's connections with a source and a clock of their own.

import assert from "node:assert/strict";
import { test } from "node:test";

import { continued, delayOf, parsed, Stream } from "../../crates/server/console/stream.js";

class Source {
  constructor(url) {
    this.url = url;
    this.readyState = 0;
    this.listeners = new Map();
  }
  addEventListener(type, listener) {
    this.listeners.set(type, listener);
  }
  close() {
    this.readyState = 2;
  }
  send(type, data, lastEventId = "") {
    this.listeners.get(type)({ data: data === undefined ? undefined : JSON.stringify(data), lastEventId });
  }
  fail(readyState) {
    this.readyState = readyState;
    this.listeners.get("error")({});
  }
}

function setUp(more = {}) {
  const sources = [];
  const received = [];
  const states = [];
  const timers = new Map();
  let next = 0;
  const stream = new Stream({
    url: "/v1/sessions/s/events",
    open: (url) => {
      const source = new Source(url);
      sources.push(source);
      return source;
    },
    receive: (name, data) => received.push([name, data]),
    changed: (state) => states.push(state),
    timers: {
      set: (run, ms) => (timers.set((next += 1), { run, ms }), next),
      clear: (id) => timers.delete(id),
    },
    ...more,
  });
  const fire = async (test) => {
    for (const [id, timer] of [...timers]) {
      if (!test(timer.ms)) continue;
      timers.delete(id);
      timer.run();
    }
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { stream, sources, received, states, timers, fire };
}

test("messages are received with their names", () => {
  const { stream, sources, received } = setUp();
  stream.start();
  sources[0].send("message", { seq: 0 }, "0");
  sources[0].send("heartbeat");
  sources[0].send("ready");
  assert.deepEqual(received, [["message", '{"seq":0}'], ["ready", undefined]]);
});

test("a closed source is replaced after the last id", async () => {
  const { stream, sources, fire } = setUp();
  stream.start();
  sources[0].send("message", { seq: 7 }, "a:7");
  sources[0].fail(2);
  await fire((ms) => ms === 500);
  assert.equal(sources.length, 2);
  assert.equal(sources[1].url, "/v1/sessions/s/events?after=a%3A7");
});

test("a source that connects again by itself is left alone", async () => {
  const { stream, sources, fire, states } = setUp();
  stream.start();
  sources[0].fail(0);
  await fire((ms) => ms < 45_000);
  assert.equal(sources.length, 1);
  assert.equal(states.at(-1), "connecting");
});

test("attempts are further apart each time, and a message resets that", async () => {
  const { stream, sources, timers, fire } = setUp();
  stream.start();
  const delays = [];
  for (let i = 0; i < 4; i += 1) {
    sources.at(-1).fail(2);
    const { ms } = [...timers.values()].at(-1);
    delays.push(ms);
    await fire((value) => value === ms);
  }
  assert.deepEqual(delays, [500, 1000, 2000, 4000]);
  sources.at(-1).send("heartbeat");
  sources.at(-1).fail(2);
  assert.equal([...timers.values()].at(-1).ms, 500);
  assert.equal(delayOf(50), 15_000);
});

test("a reset forgets the last id and starts at the beginning", async () => {
  const { stream, sources, received, fire } = setUp();
  stream.start();
  sources[0].send("message", { seq: 3 }, "3");
  sources[0].send("reset", { reason: "rewritten" });
  assert.deepEqual(received.at(-1), ["reset", { reason: "rewritten" }]);
  assert.equal(sources[0].readyState, 2);
  await fire((ms) => ms === 500);
  assert.equal(sources[1].url, "/v1/sessions/s/events");
});

test("what an old source still sends is ignored", async () => {
  const { stream, sources, received, fire } = setUp();
  stream.start();
  sources[0].fail(2);
  await fire((ms) => ms === 500);
  sources[0].send("message", { seq: 1 }, "1");
  assert.deepEqual(received, []);
});

test("silence without heartbeats replaces the source", async () => {
  const { stream, sources, fire } = setUp();
  stream.start();
  await fire((ms) => ms === 45_000);
  await fire((ms) => ms === 500);
  assert.equal(sources.length, 2);
  sources[1].send("heartbeat");
  await fire((ms) => ms === 45_000);
  assert.equal(sources[1].readyState, 0, "a source that was heard is kept");
  await fire((ms) => ms === 45_000);
  assert.equal(sources[1].readyState, 2);
});

test("a problem is reported, and the stream goes on after the last id", async () => {
  const { stream, sources, received, fire } = setUp();
  stream.start();
  sources[0].send("message", { seq: 3 }, "3");
  sources[0].send("problem", { status: 503, detail: "the store failed" });
  assert.deepEqual(received.at(-1), ["problem", { status: 503, detail: "the store failed" }]);
  await fire((ms) => ms === 500);
  assert.equal(sources[1].url, "/v1/sessions/s/events?after=3");
});

test("a stream that is not allowed any more stops", async () => {
  const { stream, sources, states, fire } = setUp({ allowed: async () => false });
  stream.start();
  sources[0].fail(2);
  await fire((ms) => ms === 500);
  assert.equal(sources.length, 1);
  assert.equal(states.at(-1), "closed");
});

test("a stopped stream has no timers and can be started again", () => {
  const { stream, sources, timers } = setUp();
  stream.start();
  sources[0].send("message", { seq: 4 }, "4");
  stream.stop();
  assert.equal(timers.size, 0);
  stream.start();
  assert.equal(sources[1].url, "/v1/sessions/s/events?after=4");
});

test("text that is no JSON has no value", () => {
  assert.equal(parsed("{"), undefined);
  assert.equal(parsed(""), undefined);
  assert.deepEqual(parsed('{"a":1}'), { a: 1 });
});

test("an address is continued with its other parameters", () => {
  assert.equal(continued("/a?b=c", "1"), "/a?b=c&after=1");
  assert.equal(continued("/a", ""), "/a");
});

test("a stream is restored once after each loss", async () => {
  let restored = 0;
  const { stream, sources, fire } = setUp({ restored: () => (restored += 1) });
  stream.start();
  const steps = [
    [() => sources[0].send("message", { seq: 0 }, "0"), 0],
    [() => sources[0].send("ready"), 1],
    // The connection was replaced without a loss.
    [() => sources[0].send("ready"), 1],
    [() => sources[0].fail(0), 1],
    [() => sources[0].send("ready"), 2],
    [() => sources[0].fail(2), 2],
    [() => fire((ms) => ms === 500), 2],
    [() => sources[1].send("ready"), 3],
    [() => sources[1].send("reset", { reason: "changes were missed" }), 3],
    [() => fire((ms) => ms === 500), 3],
    [() => sources[2].send("ready"), 4],
  ];
  for (const [number, [step, expected]] of steps.entries()) {
    await step();
    assert.equal(restored, expected, `step ${number}`);
  }
});
