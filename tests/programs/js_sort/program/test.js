const assert = require("node:assert");
const { percentile } = require("./stats.js");

const values = [100, 9, 25, 3, 40];
assert.strictEqual(percentile(values, 50), 25);
assert.strictEqual(percentile(values, 100), 100);
assert.strictEqual(percentile(values, 0), 3);
assert.deepStrictEqual(values, [100, 9, 25, 3, 40]);
