const test = require("node:test");
const assert = require("node:assert");
const { slug } = require("../slug.js");

test("all", () => assert.strictEqual(slug("A b c"), "a-b-c"));
