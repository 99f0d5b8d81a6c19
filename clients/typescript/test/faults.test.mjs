// Streams through servers that are killed, and connections that are cut.

import assert from "node:assert/strict";
import { connect, createServer } from "node:net";
import { test } from "node:test";

import { isEvent, recordedOf, serve, until } from "./support.mjs";

/**
 * @import { AddressInfo, Socket } from "node:net"
 * @import { TestContext } from "node:test"
 * @import { PintleClient, SessionItem } from "@pintle/client"
 */

const TEXT = "Grüße aus der Werkstatt: the ✓ is at the end of a text that takes a while, so that it can be cut anywhere. 👋";

/** @param {number} pause between two pieces of text, in milliseconds */
function script(pause) {
  const reads = [1, 2, 3, 4].map((turn) => `
[[turn]]
text = "${turn}. ${TEXT}"
pause_ms = ${pause}
[[turn.call]]
tool = "Glob"
arguments = { pattern = "*.${turn}" }
`);
  return `${reads.join("")}[[turn]]\ntext = "Last. ${TEXT}"\npause_ms = ${pause}\n`;
}

/** What a client has after the items of a stream. */
class Reader {
  /** @type {ReturnType<typeof recordedOf>} */
  events = [];
  deltas = 0;
  resets = 0;
  /** Text so far of the segment that is open, if it was read from its beginning. */
  text = "";

  /** @param {SessionItem} item */
  read(item) {
    if (item.type === "reset") {
      this.events = [];
      this.text = "";
      this.resets += 1;
    } else if (item.type === "delta" && item.event.kind === "ASSISTANT_TEXT_DELTA") {
      assert.equal(item.start, 0, "every delta follows the one before, or begins again");
      this.text = item.text;
      this.deltas += 1;
    } else if (item.type === "event") {
      this.events.push({ id: item.id, event: item.event });
      if (item.event.kind === "ASSISTANT_TEXT_END") {
        const { text, interrupted } = item.event.data;
        assert.ok(interrupted || text.startsWith(this.text), `${JSON.stringify(this.text)} is not the beginning of ${text}`);
        this.text = "";
      }
    }
  }

  /**
   * Follows a session to the end of its run.
   * @param {PintleClient} client
   * @param {string} id
   */
  async follow(client, id) {
    await until(client.events(id), (item) => {
      this.read(item);
      return isEvent("PROCESSING_END")(item);
    });
    return this;
  }
}

test("a stream goes on while its server is killed and started again", async (t) => {
  const server = await serve(t, script(40));
  const client = server.client({ retries: 100 });
  const session = await client.createSession({ message: { text: "Look around." } });
  const reader = new Reader();
  let kills = 0;
  let next = 3;
  for await (const item of client.events(session.id)) {
    reader.read(item);
    // Deltas of a text that ends before the client has connected again are not sent.
    if (item.type === "delta" && reader.deltas >= next && kills < 5) {
      kills += 1;
      next = reader.deltas + 4;
      await server.restart();
    }
    if (isEvent("PROCESSING_END")(item)) break;
  }
  assert.ok(kills >= 3, `${kills} kills, ${reader.deltas} deltas`);
  assert.deepEqual(reader.events, await server.recorded(session.id));
  assert.ok(reader.events.some(({ event }) => event.kind === "SESSION_RESUMED"));
  const { turns } = await client.readHistory(session.id);
  const said = turns.filter(({ kind, interrupted }) => kind === "assistant" && !interrupted).map(({ text }) => text);
  assert.deepEqual(said, ["1. ", "2. ", "3. ", "4. ", "Last. "].map((start) => start + TEXT));
});

/** Returns numbers from 0 to 1 that depend on a seed (mulberry32). */
function random(/** @type {number} */ seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let value = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Starts a proxy that answers 502, drops requests, and cuts responses at any byte.
 * @param {TestContext} t
 * @param {string} address of the server
 * @param {number} seed
 * @param {{faults: number}} tally
 */
async function faulty(t, address, seed, tally) {
  const next = random(seed);
  const { hostname, port } = new URL(address);
  /** @type {Set<Socket>} */
  const sockets = new Set();
  /** @param {Socket} socket */
  const keep = (socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
  };
  const proxy = createServer((client) => {
    keep(client);
    const fate = next();
    if (fate < 0.2) {
      tally.faults += 1;
      const after = next() < 0.5 ? "retry-after: 0\r\n" : "";
      client.once("data", () => client.end(`HTTP/1.1 502 Bad Gateway\r\n${after}content-length: 3\r\nconnection: close\r\n\r\nno\n`));
      return;
    }
    const server = connect(Number(port), hostname);
    keep(server);
    // Mostly within the first events, at times before the first byte.
    let left = fate < 0.9 ? Math.floor(next() ** 2 * 8000) : Infinity;
    client.pipe(server);
    server.on("data", (chunk) => {
      if (chunk.length <= left) {
        left -= chunk.length;
        client.write(chunk);
        return;
      }
      tally.faults += 1;
      client.write(chunk.subarray(0, left), () => client.destroy());
      server.destroy();
    });
    server.on("close", () => client.destroy());
    client.on("close", () => server.destroy());
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", () => resolve(undefined)));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  return `http://127.0.0.1:${/** @type {AddressInfo} */ (proxy.address()).port}`;
}

/** Number of seeds, each of which is a proxy with faults of its own. */
const SEEDS = Number(process.env.PINTLE_SEEDS ?? 20);
/** Readers of one session, each with a seed. */
const READERS = 5;

test("streams and requests through cut connections are whole", async (t) => {
  const server = await serve(t, script(10));
  const tally = { faults: 0, deltas: 0 };
  for (let seed = 0; seed < SEEDS; seed += READERS) {
    const clients = await Promise.all(
      Array.from({ length: READERS }, async (_, reader) => {
        const baseUrl = await faulty(t, server.url, seed + reader, tally);
        return server.client({ baseUrl, retries: 100 });
      }),
    );
    const [first] = clients;
    assert.ok(first);
    const { id } = await first.createSession();
    const reading = Promise.all(clients.map((client) => new Reader().follow(client, id)));
    await first.submit(id, { text: "Look around." });
    const readers = await reading;
    const expected = await server.recorded(id);
    assert.equal(expected.filter(({ event }) => event.kind === "USER_INPUT").length, 1, "the message was taken once");
    for (const [index, reader] of readers.entries()) {
      assert.deepEqual(reader.events, expected, `seed ${seed + index}`);
      assert.equal(reader.resets, 0);
      tally.deltas += reader.deltas;
    }
    const journal = [];
    for await (const line of first.readJournal(id)) journal.push(JSON.stringify(line));
    const direct = await (await server.fetch(`/v1/sessions/${id}/journal`)).text();
    assert.deepEqual(journal, direct.trim().split("\n").map((line) => JSON.stringify(JSON.parse(line))));
  }
  t.diagnostic(`${tally.faults} faults, ${tally.deltas} deltas`);
  assert.ok(tally.faults > SEEDS && tally.deltas > 0, JSON.stringify(tally));
});
