import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { serve } from "./support.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

test("the example of the README runs", async (t) => {
  const server = await serve(t, `
[[turn]]
text = "I run the tests."
[[turn.call]]
tool = "Bash"
arguments = { command = "make test", description = "Run the tests" }
[[turn]]
text = "I may not."
`);
  const readme = readFileSync(join(PACKAGE, "README.md"), "utf8");
  const example = /```js\n([^]*?)```/.exec(readme)?.[1];
  assert.ok(example);
  // Within the package, where its name is known.
  const directory = mkdtempSync(join(PACKAGE, "dist", "readme-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, "example.mjs");
  writeFileSync(file, example);
  const options = { cwd: server.directory, env: { ...process.env, PINTLE_URL: server.line } };
  const { stdout } = await promisify(execFile)(process.execPath, [file], options);
  assert.equal(stdout, "I run the tests.\ndenied: it runs a command, and mode edit asks about that\nI may not.\n");
});

