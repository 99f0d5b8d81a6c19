const assert = require("node:assert");
const { quote, single } = require("./quote.js");

assert.strictEqual(quote(" a "), "\u201ca\u201d");
assert.strictEqual(single("b"), "\u2018b\u2019");
