const assert = require("node:assert");
const slugs = require("./index.js");

assert.deepStrictEqual(slugs(["Hello, World!", "a  b"]), ["hello-world", "a-b"]);
