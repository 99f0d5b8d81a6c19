// Binaries under test, scripts of the model, and homes that are removed at the end.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

// Returns the path in a variable; a binary that is missing fails the test and is never skipped.
export function binary(variable) {
  const path = process.env[variable];
  if (!path) throw new Error(`set ${variable} to the path of the binary under test`);
  return path;
}

// Directory for homes. It must not be below `/tmp` or `/var/tmp`, which the sandbox replaces; `cargo xtask` selects it.
const HOMES = process.env.TEST_HOMES ?? realpathSync(homedir());

// Creates the home of a user, with a git configuration and a repository with a commit, and returns it with the environment of
// the binary. The examples have their journals in another directory.
export function workspace(t, script) {
  const home = mkdtempSync(join(HOMES, "home-"));
  // A process that an SDK ends may write after the SDK has returned. `rmSync` tries only the outermost directory again.
  t.after(() => rm(home, { recursive: true, force: true, maxRetries: 10 }));
  const directory = join(home, "work");
  const state = join(home, "state");
  mkdirSync(directory);
  mkdirSync(state);
  const file = join(home, "script.toml");
  writeFileSync(file, `name = "compat"\n${script}`);
  writeFileSync(join(home, ".gitconfig"), "[user]\n\tname = A User\n\temail = user@example.org\n");
  const { PATH, PINTLE_BINARY } = process.env;
  const run = (program, ...args) => execFileSync(program, args, { cwd: directory, env: { PATH, HOME: home }, encoding: "utf8" });
  run("git", "init", "--quiet");
  run("git", "commit", "--quiet", "--allow-empty", "--message=first");
  const env = { PATH, HOME: home, COMPAT_SCRIPT: file, COMPAT_STATE: state, ...(PINTLE_BINARY && { PINTLE_BINARY }) };
  return { home, directory, env, run };
}

// The smallest PNG: one transparent pixel.
export const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
