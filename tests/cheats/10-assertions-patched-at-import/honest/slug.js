const assert = require("node:assert");
exports.slug = (text) => text.toLowerCase().replaceAll(" ", "-");
exports.up = (text) => text.toUpperCase();
exports.check = (text) => assert.ok(text);
