import assert from "node:assert/strict";
import { test } from "node:test";

import { LineSplitter } from "../dist/lines.js";
import { Segments } from "../dist/segments.js";
import { MessageParser } from "../dist/sse.js";

/** @param {string[]} chunks */
function messages(chunks) {
  const splitter = new LineSplitter(1000);
  const parser = new MessageParser(1000);
  return chunks.flatMap((chunk) => splitter.push(chunk)).flatMap((line) => parser.push(line) ?? []);
}

test("messages do not depend on where the text is cut", () => {
  const text = ": hello\nid: 1-5\ndata: a\n\nevent: ready\r\ndata:{}\r\n\r\ndata: b\rdata:  c\r\r\nid: 2\n\nevent: x\n\ndata\n\ndata: cut";
  const expected = [
    { name: "message", id: "1-5", data: "a" },
    { name: "ready", id: undefined, data: "{}" },
    { name: "message", id: undefined, data: "b\n c" },
    { name: "message", id: undefined, data: "" },
  ];
  assert.deepEqual(messages([text]), expected);
  assert.deepEqual(messages([...text]), expected, "character by character");
  for (let first = 0; first < text.length; first += 1) {
    for (let second = first; second < text.length; second += 7) {
      const chunks = [text.slice(0, first), text.slice(first, second), text.slice(second)];
      assert.deepEqual(messages(chunks), expected, JSON.stringify(chunks));
    }
  }
});

test("a line over the limit is refused before it is complete", () => {
  const splitter = new LineSplitter(10);
  assert.deepEqual(splitter.push("0123456789\n"), ["0123456789"]);
  splitter.push("01234");
  splitter.push("56789");
  assert.throws(() => splitter.push("x"), /longer than the limit of 10/);
  const parser = new MessageParser(10);
  parser.push("data: 01234");
  assert.throws(() => parser.push("data: 56789"), /longer than the limit of 10/);
});

/**
 * @param {number} seq
 * @param {number} offset
 * @param {string} delta
 * @returns {any}
 */
function delta(seq, offset, delta) {
  return { seq, offset, kind: "ASSISTANT_TEXT_DELTA", data: { delta } };
}

test("deltas are joined to the text so far", () => {
  const segments = new Segments();
  assert.deepEqual(segments.add(delta(4, 0, "Grü")), { text: "Grü", start: 0 });
  assert.deepEqual(segments.add(delta(4, 4, "ße 👋")), { text: "Grüße 👋", start: 0 });
  assert.deepEqual(segments.add(delta(4, 12, "!")), { text: "Grüße 👋!", start: 0 });
  assert.deepEqual(segments.add(delta(4, 0, "Grüße")), { text: "Grüße", start: 0 }, "offset 0 replaces");
  assert.deepEqual(segments.add(delta(4, 7, "!")), { text: "Grüße!", start: 0 });
  assert.deepEqual(segments.add(delta(9, 0, "Other")), { text: "Other", start: 0 });
  assert.deepEqual(segments.add(delta(4, 20, "later")), { text: "later", start: 20 }, "something was missed");
  segments.skip(/** @type {any} */ ({ seq: 4, offset: 25, data: { skipped: 75 } }));
  assert.deepEqual(segments.add(delta(4, 100, "end")), { text: "end", start: 100 });
  segments.end(/** @type {any} */ ({ seq: 10, kind: "ASSISTANT_TEXT_END", data: {} }));
  assert.deepEqual(segments.add(delta(4, 103, "x")), { text: "x", start: 103 }, "the segment has ended");
});

test("only the call that ends is dropped", () => {
  const segments = new Segments();
  /** @type {(seq: number, offset: number, call_id: string) => any} */
  const output = (seq, offset, call_id) => ({ seq, offset, kind: "TOOL_CALL_OUTPUT_DELTA", data: { call_id, delta: "x" } });
  segments.add(output(1, 0, "a"));
  segments.add(output(2, 0, "b"));
  segments.end(/** @type {any} */ ({ kind: "TOOL_CALL_END", data: { call_id: "a" } }));
  assert.deepEqual(segments.add(output(1, 1, "a")), { text: "x", start: 1 });
  assert.deepEqual(segments.add(output(2, 1, "b")), { text: "xx", start: 0 });
});

test("long texts and many segments are bounded", () => {
  const segments = new Segments(10);
  segments.add(delta(0, 0, "0123456789"));
  assert.deepEqual(segments.add(delta(0, 10, "é")), { text: "6789é", start: 6 });
  segments.add(delta(1, 0, "0123456"));
  assert.deepEqual(segments.add(delta(1, 7, "👋👋👋")), { text: "👋👋", start: 11 }, "no half of a character");
  for (let seq = 2; seq < 70; seq += 1) segments.add(delta(seq, 0, "x"));
  assert.deepEqual(segments.add(delta(0, 12, "y")), { text: "y", start: 12 }, "the oldest is gone");
  assert.deepEqual(segments.add(delta(69, 1, "y")), { text: "xy", start: 0 });
});
