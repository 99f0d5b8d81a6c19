#!/usr/bin/env node
// Runs `pintle`, which PINTLE_BINARY names, as the SDKs run the vendors' programs: with their arguments and default settings, and
// with a scripted model that ends with it. See README.md for the variables.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const { PINTLE_BINARY, COMPAT_SCRIPT, COMPAT_STATE, HOME } = process.env;
if (!PINTLE_BINARY) throw new Error("set PINTLE_BINARY to the path of the command");

// A session that goes on in another process finds its model at the same address.
const known = join(COMPAT_STATE, "address");
const listen = existsSync(known) ? readFileSync(known, "utf8") : "127.0.0.1:0";
const model = spawn(PINTLE_BINARY, ["mock", "serve", "--listen", listen, "--script", COMPAT_SCRIPT], {
  stdio: ["ignore", "pipe", "inherit"],
});
process.on("exit", () => model.kill("SIGINT"));

const NAME = "anthropic ";
for await (const line of createInterface({ input: model.stdout })) {
  if (!line.startsWith(NAME)) continue;
  const url = line.slice(NAME.length).trim();
  writeFileSync(known, new URL(url).host);
  const config = join(HOME, ".config/pintle");
  mkdirSync(config, { recursive: true });
  writeFileSync(join(config, "config.toml"), 'model = "claude-opus-4-6"\nprovider = "anthropic"\n');
  // Variables of the machine would replace defaults.
  const inherited = Object.entries(process.env).filter(([name]) => !/^(PINTLE|XDG)_/.test(name));
  const env = { ...Object.fromEntries(inherited), ANTHROPIC_API_KEY: "any-key", ANTHROPIC_BASE_URL: url };
  const pintle = spawn(PINTLE_BINARY, process.argv.slice(2), { env, stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => pintle.kill(signal));
  pintle.on("exit", (code) => process.exit(code ?? 1));
  break;
}
