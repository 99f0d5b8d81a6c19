// Binaries under test, scripts of the model, and directories that are removed at the end.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Returns the path in a variable; a binary that is missing fails the test and is never skipped.
export function binary(variable) {
  const path = process.env[variable];
  if (!path) throw new Error(`set ${variable} to the path of the binary under test`);
  return path;
}

// Creates a working directory, a directory of journals, and the environment of the binary.
export function workspace(t, script) {
  const root = mkdtempSync(join(tmpdir(), "pintle-compat-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const directory = join(root, "work");
  const state = join(root, "state");
  mkdirSync(directory);
  mkdirSync(state);
  const file = join(root, "script.toml");
  writeFileSync(file, `name = "compat"\n${script}`);
  const { PATH, PINTLE_BINARY } = process.env;
  const env = { PATH, HOME: root, COMPAT_SCRIPT: file, COMPAT_STATE: state, ...(PINTLE_BINARY && { PINTLE_BINARY }) };
  return { root, directory, env };
}

// The smallest PNG: one transparent pixel.
export const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
