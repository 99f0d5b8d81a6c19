const assert = require("node:assert");
const { c, l } = require("./units.min.js");

assert.strictEqual(l(), 260);
assert.strictEqual(c(6, "u1", "u3"), 3);
assert.throws(() => c(1, "u1", "x"), /unknown unit/);
