// Tests of the Markdown parser.

import assert from "node:assert/strict";
import { test } from "node:test";

import { parseInline, safeHref } from "../../crates/server/console/inline.js";
import { parseMarkdown } from "../../crates/server/console/markdown.js";

const blocks = (text) => parseMarkdown(text).map((piece) => piece.block);
const flat = (nodes) => nodes.map((node) => node.text ?? `${node.type}(${node.content ? flat(node.content) : ""})`).join("");

test("blocks of each kind", () => {
  const text = "# Title\n\nA paragraph\nin two lines.\n\n- one\n- two\n  - inner\n\n1. first\n2. second\n\n> quoted\n\n```rust\nfn main() {}\n```\n\n---\n\n| a | b |\n|---|---|\n| 1 | `x|y` |\n";
  assert.deepEqual(blocks(text).map((block) => block.type), ["heading", "paragraph", "list", "list", "quote", "code", "rule", "table"]);
  const [, , list, ordered, , code, , table] = blocks(text);
  assert.equal(list.items[1].blocks[1].type, "list");
  assert.equal(ordered.start, 1);
  assert.deepEqual([code.language, code.text], ["rust", "fn main() {}"]);
  assert.equal(table.rows[0][1][0].text, "x|y");
});

test("a fence that is still open is code", () => {
  assert.deepEqual(blocks("```js\nlet x"), [{ type: "code", language: "js", text: "let x" }]);
});

test("tasks of a list are checked or not", () => {
  const [list] = blocks("- [x] done\n- [ ] open");
  assert.deepEqual(list.items.map((item) => item.checked), [true, false]);
});

test("paragraphs end at other blocks", () => {
  assert.deepEqual(blocks("text\n- item\ntext\n# head").map((block) => block.type), ["paragraph", "list", "heading"]);
});

test("inline marks", () => {
  assert.equal(flat(parseInline("a **b** *c* _d_ `e*f*` ~~g~~")), "a strong(b) em(c) em(d) e*f* del(g)");
  assert.equal(flat(parseInline("snake_case_name 2 * 3 * 4 **open")), "snake_case_name 2 * 3 * 4 **open");
  assert.equal(flat(parseInline("\\*not\\* `a``b`")), "*not* a``b");
});

test("links have allowed schemes only", () => {
  const [link] = parseInline("[docs](https://example.org/a_(b))");
  assert.deepEqual([link.type, link.href], ["link", "https://example.org/a_(b)"]);
  for (const bad of ["[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](data:text/html,x)", "[x](//evil.example)", "<javascript:alert(1)>", "[x](vbscript:x)"]) {
    assert.ok(parseInline(bad).every((node) => node.type === "text"), bad);
    assert.equal(flat(parseInline(bad)), bad);
  }
  assert.equal(safeHref("java\nscript:alert(1)"), null);
  assert.equal(safeHref("https://a.example/\u202egnp"), null);
  assert.equal(safeHref("mailto:a@example.org"), "mailto:a@example.org");
});

test("addresses in text are links without the punctuation after them", () => {
  const [, link, rest] = parseInline("see https://example.org/x. Then");
  assert.equal(link.href, "https://example.org/x");
  assert.equal(rest.text, ". Then");
});

test("HTML stays text", () => {
  const html = "<img src=x onerror=alert(1)><script>alert(1)</script>";
  assert.equal(flat(blocks(html)[0].content), html);
});

test("images become links", () => {
  assert.equal(parseInline("![alt](https://example.org/a.png)")[0].type, "link");
});

test("hostile input is parsed in reasonable time", () => {
  for (const text of ["*".repeat(50_000), "[".repeat(50_000), "> ".repeat(5_000), "`".repeat(50_000), "- ".repeat(5_000), `${"a|".repeat(20_000)}\n|-|`, "**a ".repeat(4_000), "_a".repeat(9_000)]) {
    const start = process.cpuUsage();
    parseMarkdown(text);
    assert.ok(process.cpuUsage(start).user < 2_000_000, text.slice(0, 8));
  }
});

test("the source of a piece is stable while text is appended", () => {
  const before = parseMarkdown("# A\n\nText one.\n\n- x");
  const after = parseMarkdown("# A\n\nText one.\n\n- x\n- y");
  assert.deepEqual(before.slice(0, 2), after.slice(0, 2));
});
