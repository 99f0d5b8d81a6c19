// The stream of a task, from a server of this test.

import assert from "node:assert/strict";
import { test } from "node:test";

import { PintleClient } from "@pintle/client";

import { fake, SOON } from "./support.mjs";

const INPUTS = [{ began: { kind: "baseline", attempt: 1 } }, { said: { cancel: { reason: "enough" } } }];

/** @param {number} index */
const message = (index) => `id: ${index + 3}-100${index}\ndata: ${JSON.stringify(INPUTS[index])}\n\n`;

test("a stream of a task continues after a cut, and ends with the task", async (t) => {
  /** @type {(string | undefined)[]} */
  const asked = [];
  const answers = [
    `retry: 500\n\n${message(0)}event: ready\ndata: {}\n\n`,
    `event: ready\ndata: {}\n\nevent: heartbeat\ndata: {}\n\n${message(1)}event: end\ndata: {"state":"cancelled"}\n\n`,
  ];
  const baseUrl = await fake(t, (request, response, count) => {
    asked.push(request.url);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(answers[count]);
  });
  let cuts = 0;
  const client = new PintleClient({ baseUrl, backoff: SOON });
  const items = [];
  for await (const item of client.taskEvents("t1", { onReconnect: () => (cuts += 1) })) items.push(item);
  assert.deepEqual(items, [
    { type: "input", id: "3-1000", input: INPUTS[0] },
    { type: "ready" },
    { type: "ready" },
    { type: "input", id: "4-1001", input: INPUTS[1] },
    { type: "end", state: "cancelled" },
  ]);
  assert.deepEqual(asked, ["/v1/tasks/t1/events", "/v1/tasks/t1/events?after=3-1000"], "nothing is asked after the end");
  assert.equal(cuts, 1);
});

test("a reset begins with the first input again", async (t) => {
  const baseUrl = await fake(t, (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`event: reset\ndata: {"reason":"they never were"}\n\n${message(0)}event: end\ndata: {"state":"done"}\n\n`);
  });
  const items = [];
  for await (const item of new PintleClient({ baseUrl }).taskEvents("t1", { after: "9-1" })) items.push(item);
  assert.deepEqual(items.map((item) => item.type), ["reset", "input", "end"]);
});
