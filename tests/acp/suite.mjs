// Drives the example agent of pintle-acp with clients that others have written, and checks every line that it sends against
// the JSON schema that the SDK publishes.
//
// Usage: node suite.mjs AGENT [--update | --pintle]
//
// `--update` writes the conversations to `golden/` instead of comparing them. With `--pintle`, AGENT is a program that runs
// `pintle acp` with the scripted model that COMPAT_SCRIPT names, whose address is in COMPAT_STATE; its conversations have costs
// and titles, and are compared with nothing.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { Writable } from "node:stream";
import { fileURLToPath } from "node:url";

import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";
import Ajv from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

const [agentPath, flag] = process.argv.slice(2);
assert.ok(agentPath, "usage: node suite.mjs AGENT [--update | --pintle]");
const isPintle = flag === "--pintle";
const agent = [path.resolve(agentPath), ...(isPintle ? ["acp"] : [])];
const here = path.dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);
const packageDirectory = (name) => {
  const entry = require.resolve.paths(name).map((root) => path.join(root, name));
  return entry.find((directory) => {
    try {
      readFileSync(path.join(directory, "package.json"));
      return true;
    } catch {
      return false;
    }
  });
};

const schema = JSON.parse(
  readFileSync(path.join(packageDirectory("@agentclientprotocol/sdk"), "schema/v1/schema.json"), "utf8"),
);
const ajv = new Ajv({ strict: false, validateFormats: false, discriminator: false });
addFormats(ajv);
ajv.addSchema(schema, "acp");
const validators = new Map();
const validate = (definition, value, line) => {
  if (!validators.has(definition)) {
    validators.set(definition, ajv.compile({ $ref: `acp#/$defs/${definition}` }));
  }
  const check = validators.get(definition);
  assert.ok(check(value), `${definition}: ${line}\n${JSON.stringify(check.errors, null, 1)}`);
};

// The definition of parameters or results of each method.
const definitions = { params: new Map(), results: new Map() };
for (const [name, definition] of Object.entries(schema.$defs)) {
  const method = definition["x-method"];
  if (method && name.endsWith("Response")) definitions.results.set(method, name);
  else if (method) definitions.params.set(method, name);
}

/** Checks one line of the agent. `requests` has the methods of the client's requests by their ids. */
function checkLine(line, requests) {
  const message = JSON.parse(line);
  assert.equal(message.jsonrpc, "2.0", line);
  if (message.method === "$/cancel_request") return validate("CancelRequestNotification", message.params, line);
  if (message.method) {
    const definition = definitions.params.get(message.method);
    assert.ok(definition, `unknown method: ${line}`);
    return validate(definition, message.params, line);
  }
  if (message.error) return validate("Error", message.error, line);
  const definition = definitions.results.get(requests.get(JSON.stringify(message.id)));
  assert.ok(definition, `response to nothing: ${line}`);
  return validate(definition, message.result, line);
}

/** Checks a conversation: lines of both sides, in order. */
function checkConversation(lines) {
  const requests = new Map();
  for (const { from, line } of lines) {
    const message = JSON.parse(line);
    if (from === "agent") checkLine(line, requests);
    else if (message.method && "id" in message) requests.set(JSON.stringify(message.id), message.method);
  }
}

/** What the scripted model of `pintle` does first. The model of the example does the same when it reads the word. */
const FIRST_CALLS = {
  write: 'tool = "Write", arguments = { file_path = "hello.txt", content = "hello\\n" }',
  run: 'tool = "Bash", arguments = { command = "echo ran" }',
  wait: 'tool = "Bash", arguments = { command = "sleep 5" }',
};

const states = [];

/** Removes a directory in which an agent that was ended may still write. */
const remove = (directory) => rm(directory, { recursive: true, force: true, maxRetries: 10 });

/** Returns the environment of an agent whose model does what `word` says, and a state of its own. */
function scripted(word) {
  if (!isPintle) return process.env;
  const state = mkdtempSync(path.join(tmpdir(), "acp-state-"));
  states.push(state);
  const script = path.join(state, "script.toml");
  const said = '[[turn]]\ntext = "Done."\n'.repeat(4);
  writeFileSync(script, `name = "acp"\n[[turn]]\ncall = [{ ${FIRST_CALLS[word]} }]\n${said}`);
  return { ...process.env, HOME: state, COMPAT_SCRIPT: script, COMPAT_STATE: state };
}

/** Starts the agent, with a record of both directions. */
function start(directory, word) {
  const [program, ...args] = agent;
  const child = spawn(program, args, { cwd: directory, env: scripted(word), stdio: ["pipe", "pipe", "inherit"] });
  const lines = [];
  const recorded = (from) => {
    let rest = "";
    return new TransformStream({
      transform(chunk, controller) {
        rest += Buffer.from(chunk).toString("utf8");
        const complete = rest.split("\n");
        rest = complete.pop();
        for (const line of complete) if (line.trim()) lines.push({ from, line });
        controller.enqueue(chunk);
      },
    });
  };
  const output = recorded("client");
  output.readable.pipeTo(Writable.toWeb(child.stdin)).catch(() => {});
  const input = drained(child.stdout).pipeThrough(recorded("agent"));
  const exited = new Promise((resolve) => child.on("exit", resolve));
  return { child, lines, stream: ndJsonStream(output.writable, input), exited };
}

/** Reads to the end, also after the SDK has enough: an agent may say something until its input ends. */
function drained(output) {
  const start = (controller) => {
    let isWanted = true;
    const unless = (act) => {
      try {
        if (isWanted) act();
      } catch {
        isWanted = false;
      }
    };
    output.on("data", (chunk) => unless(() => controller.enqueue(chunk)));
    output.on("end", () => unless(() => controller.close()));
  };
  return new ReadableStream({ start });
}

/** Has the SDK's client converse with the agent, and returns the lines. */
async function converse(directory, options, talk) {
  const { permission = "allow_once", onUpdate = () => {}, capabilities = {}, word = "write" } = options;
  const { child, lines, stream, exited } = start(directory, word);
  const app = client({ name: "suite" })
    .onRequest(methods.client.session.requestPermission, async () =>
      permission === "cancelled"
        ? { outcome: { outcome: "cancelled" } }
        : { outcome: { outcome: "selected", optionId: permission } },
    )
    .onNotification(methods.client.session.update, async (context) => onUpdate(context.params, context));
  await app.connectWith(stream, async (agentContext) => {
    await agentContext.request(methods.agent.initialize, {
      protocolVersion: 1,
      clientCapabilities: capabilities,
    });
    await talk(agentContext);
  });
  child.stdin.end();
  assert.equal(await exited, 0, "the agent exits when its input is closed");
  checkConversation(lines);
  return lines;
}

const text = (words) => [{ type: "text", text: words }];

/**
 * Replaces what differs from run to run. The lines of each side are in order; how those of the two sides interleave depends on
 * the machine.
 */
function normalized(lines, directory) {
  const ids = new Map();
  const name = (id) => {
    if (!ids.has(id)) ids.set(id, `session-${ids.size + 1}`);
    return ids.get(id);
  };
  const of = (side) => lines.filter(({ from }) => from === side).map(({ line }) => line);
  return `# client\n${of("client").join("\n")}\n# agent\n${of("agent").join("\n")}\n`
    .replaceAll(directory, "/project")
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, name)
    .replaceAll(/"version":"[0-9.]+"/g, '"version":"0.0.0"');
}

function golden(name, conversation) {
  if (isPintle) return undefined;
  const file = path.join(here, "golden", `${name}.txt`);
  if (flag === "--update") return writeFileSync(file, conversation);
  return assert.equal(conversation, readFileSync(file, "utf8"), `${name} differs from its golden file`);
}

const cases = {
  async "a turn that writes a file"(directory) {
    const lines = await converse(directory, {}, async (context) => {
      const { sessionId } = await context.request(methods.agent.session.new, { cwd: directory, mcpServers: [] });
      const { stopReason } = await context.request(methods.agent.session.prompt, {
        sessionId,
        prompt: text("please write"),
      });
      assert.equal(stopReason, "end_turn");
    });
    assert.equal(readFileSync(path.join(directory, "hello.txt"), "utf8"), "hello\n");
    golden("write", normalized(lines, directory));
  },

  async "a denied call"(directory) {
    const lines = await converse(directory, { permission: "reject_once" }, async (context) => {
      const { sessionId } = await context.request(methods.agent.session.new, { cwd: directory, mcpServers: [] });
      await context.request(methods.agent.session.prompt, { sessionId, prompt: text("please write") });
    });
    golden("deny", normalized(lines, directory));
  },

  async "close, list, load and go on"(directory) {
    const lines = await converse(directory, {}, async (context) => {
      const { sessionId } = await context.request(methods.agent.session.new, { cwd: directory, mcpServers: [] });
      await context.request(methods.agent.session.prompt, { sessionId, prompt: text("please write") });
      await context.request(methods.agent.session.close, { sessionId });
      const { sessions } = await context.request(methods.agent.session.list, {});
      assert.deepEqual(sessions.map((session) => session.sessionId), [sessionId]);
      await context.request(methods.agent.session.load, { sessionId, cwd: directory, mcpServers: [] });
      await context.request(methods.agent.session.setMode, { sessionId, modeId: "ask" });
      await context.request(methods.agent.session.prompt, { sessionId, prompt: text("/help") });
    });
    golden("load", normalized(lines, directory));
  },

  async "authentication, deletion and logout"(directory) {
    const lines = await converse(directory, {}, async (context) => {
      await context.request(methods.agent.authenticate, { methodId: isPintle ? "api-key" : "script" });
      const { sessionId } = await context.request(methods.agent.session.new, { cwd: directory, mcpServers: [] });
      await context.request(methods.agent.session.prompt, { sessionId, prompt: text("hi") });
      await context.request(methods.agent.session.delete, { sessionId });
      const { sessions } = await context.request(methods.agent.session.list, {});
      assert.deepEqual(sessions, []);
      await context.request(methods.agent.session.delete, { sessionId });
      await assert.rejects(
        context.request(methods.agent.session.load, { sessionId, cwd: directory, mcpServers: [] }),
        /no session/,
      );
      const logout = context.request(methods.agent.logout, {});
      // The key of the scripted model is in a variable, which no logout removes.
      await (isPintle ? assert.rejects(logout, /is still used/) : logout);
    });
    const updates = lines.map(({ line }) => JSON.parse(line).params?.update).filter(Boolean);
    assert.deepEqual(
      updates.filter((update) => update.sessionUpdate === "session_info_update").map(({ title }) => title),
      ["hi"],
    );
    const usage = updates.filter((update) => update.sessionUpdate === "usage_update");
    assert.ok(usage.length > 0 && usage.every(({ cost }) => isPintle === cost.amount > 0 && cost.currency === "USD"));
  },

  async "cancel at every update"(directory) {
    // The command is running after six of them.
    for (let after = 0; after < 6; after += 1) {
      let seen = 0;
      let cancelled = false;
      const onUpdate = (params, context) => {
        seen += 1;
        if (seen === after + 1) {
          cancelled = true;
          return context.agent.notify(methods.agent.session.cancel, { sessionId: params.sessionId });
        }
      };
      await converse(directory, { onUpdate, word: "wait" }, async (context) => {
        const { sessionId } = await context.request(methods.agent.session.new, { cwd: directory, mcpServers: [] });
        const { stopReason } = await context.request(methods.agent.session.prompt, {
          sessionId,
          prompt: text("please wait"),
        });
        assert.ok(cancelled, `the turn ends before ${after + 1} updates`);
        // The commands that are available are told before the prompt is sent.
        assert.equal(stopReason, after === 0 ? stopReason : "cancelled", `after ${after}`);
        const next = await context.request(methods.agent.session.prompt, { sessionId, prompt: text("hi") });
        assert.equal(next.stopReason, "end_turn");
      });
    }
  },

  async "acpx: exec, approvals and sessions"(directory) {
    const bin = path.join(packageDirectory("acpx"), JSON.parse(readFileSync(path.join(packageDirectory("acpx"), "package.json"))).bin.acpx);
    for (const [approval, word] of [["--approve-all", "write"], ["--approve-reads", "run"], ["--deny-all", "write"]]) {
      const home = mkdtempSync(path.join(tmpdir(), "acp-home-"));
      const lines = await new Promise((resolve, reject) => {
        const args = [bin, "--agent", agent.join(" "), approval, "--format", "json", "exec", `please ${word}`];
        const child = spawn(process.execPath, args, {
          cwd: directory,
          env: { ...scripted(word), HOME: home },
          stdio: ["ignore", "pipe", "inherit"],
        });
        let output = "";
        child.stdout.on("data", (chunk) => (output += chunk));
        child.on("error", reject);
        child.on("exit", () => resolve(output.split("\n").filter((line) => line.trim())));
      });
      await remove(home);
      // acpx prints the lines of both sides. The SDK has checked its own.
      const requests = new Map();
      let stopReason;
      for (const line of lines) {
        const message = JSON.parse(line);
        const isOfAgent = !line.startsWith('{"jsonrpc"') || message.method === "session/update";
        if (isOfAgent) checkLine(line, requests);
        else if (message.method && "id" in message) requests.set(JSON.stringify(message.id), message.method);
        stopReason = message.result?.stopReason ?? stopReason;
      }
      assert.equal(stopReason, "end_turn", `${approval}\n${lines.join("\n")}`);
    }
  },
};

for (const [name, run] of Object.entries(cases)) {
  const directory = realpathSync(mkdtempSync(path.join(tmpdir(), "acp-")));
  try {
    await run(directory);
    console.log(`ok   ${name}`);
  } catch (error) {
    console.log(`FAIL ${name}`);
    console.log(error);
    process.exitCode = 1;
  } finally {
    await remove(directory);
    for (const state of states.splice(0)) await remove(state);
  }
}
