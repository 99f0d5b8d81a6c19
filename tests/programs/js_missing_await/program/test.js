const assert = require("node:assert");
const { remove } = require("./access.js");

async function main() {
  const store = new Map([["a", 1], ["b", 2]]);
  assert.strictEqual(await remove(store, "ann", "a"), true);
  await assert.rejects(remove(store, "bob", "b"), /bob may not remove b/);
  assert.deepStrictEqual([...store.keys()], ["b"]);
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
