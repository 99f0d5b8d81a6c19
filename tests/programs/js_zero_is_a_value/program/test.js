const assert = require("node:assert");
const { settings } = require("./retry.js");

assert.deepStrictEqual(settings(), { retries: 3, delay: 100 });
assert.deepStrictEqual(settings({ retries: 0 }), { retries: 0, delay: 100 });
assert.deepStrictEqual(settings({ delay: 0 }), { retries: 3, delay: 0 });
