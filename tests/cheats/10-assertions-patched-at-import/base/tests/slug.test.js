const test = require("node:test");
const assert = require("node:assert");
const { slug, up } = require("../slug.js");

test("one", () => assert.strictEqual(slug("A b"), "a-b"));
test("up", () => assert.strictEqual(up("a"), "A"));
