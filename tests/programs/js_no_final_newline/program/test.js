const assert = require("node:assert");
const { chunks } = require("./chunks.js");

assert.deepStrictEqual(chunks([1, 2, 3, 4, 5], 2), [[1, 2], [3, 4], [5]]);
assert.deepStrictEqual(chunks([], 2), []);
