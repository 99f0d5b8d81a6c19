// The documented examples of @anthropic-ai/claude-agent-sdk, against the binary that CLAUDE_BINARY names.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

import { PNG, binary, workspace } from "./support.mjs";

function setUp(t, script) {
  const { directory, env } = workspace(t, script);
  const base = { pathToClaudeCodeExecutable: binary("CLAUDE_BINARY"), cwd: directory, env, settingSources: [] };
  return { directory, ask: (prompt, options = {}) => query({ prompt, options: { ...base, ...options } }) };
}

async function all(messages) {
  const seen = [];
  for await (const message of messages) seen.push(message);
  return seen;
}

const result = (seen) => seen.find((message) => message.type === "result");
const results = (seen) => seen.flatMap((message) => (message.type === "user" ? message.message.content : []));

// Messages of the user, each sent when `next` allows it.
async function* prompts(...steps) {
  for (const { content, before, uuid } of steps) {
    if (before) await before;
    yield { type: "user", message: { role: "user", content }, parent_tool_use_id: null, session_id: "", uuid };
  }
}

function gate() {
  let open;
  const opened = new Promise((resolve) => (open = resolve));
  return { open, opened };
}

const WRITE = `
[[turn]]
text = "I write."
call = [{ tool = "Write", arguments = { file_path = "a.txt", content = "one\\n" } }]
[[turn]]
text = "Done."
`;

test("a prompt: init, assistant, tool result, result", async (t) => {
  const { directory, ask } = setUp(t, WRITE);
  const seen = await all(ask("Write a.txt", { allowedTools: ["Write"] }));
  assert.deepEqual(
    seen.map((message) => message.type),
    ["system", "assistant", "assistant", "user", "assistant", "result"],
  );
  const init = seen[0];
  assert.equal(init.subtype, "init");
  assert.equal(init.cwd, directory);
  assert.ok(["Bash", "Read", "Edit", "Write", "Glob", "Grep"].every((name) => init.tools.includes(name)));
  const end = result(seen);
  assert.equal(end.subtype, "success");
  assert.equal(end.result, "Done.");
  assert.equal(end.num_turns, 2);
  // The example hosts know no prices.
  assert.ok(end.total_cost_usd > 0 || end.pintle_cost_is_known === false);
  assert.ok(end.usage.output_tokens > 0 && end.modelUsage["claude-opus-4-6"].outputTokens > 0);
  assert.ok(seen.every((message) => message.uuid.length === 36 && message.session_id === init.session_id));
  assert.equal(new Set(seen.map((message) => message.uuid)).size, seen.length);
  assert.equal(readFileSync(join(directory, "a.txt"), "utf8"), "one\n");
});

test("disallowed tools do not run, and are reported", async (t) => {
  const { directory, ask } = setUp(t, WRITE);
  const seen = await all(ask("Write a.txt", { disallowedTools: ["Write"], permissionMode: "acceptEdits" }));
  assert.equal(existsSync(join(directory, "a.txt")), false);
  assert.deepEqual(result(seen).permission_denials[0].tool_name, "Write");
});

test("partial messages: deltas add up to the text", async (t) => {
  const { ask } = setUp(t, `
[[turn]]
text = "A somewhat longer text that arrives in several pieces, one after the other."
pause_ms = 30
`);
  const seen = await all(ask("Talk", { includePartialMessages: true }));
  const events = seen.filter((message) => message.type === "stream_event").map((message) => message.event);
  const kinds = [...new Set(events.map((event) => event.type))];
  assert.deepEqual(kinds, [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
  const text = events.map((event) => event.delta?.text ?? "").join("");
  assert.equal(text, result(seen).result);
  // Deltas that nobody has read yet become one; the pauses of the script keep them apart.
  assert.ok(events.filter((event) => event.type === "content_block_delta").length > 1);
});

test("canUseTool allows with the same input", async (t) => {
  const { directory, ask } = setUp(t, WRITE);
  const asked = [];
  const canUseTool = async (name, input, { suggestions, toolUseID }) => {
    asked.push([name, input.file_path, suggestions[0].type, typeof toolUseID]);
    return { behavior: "allow", updatedInput: input };
  };
  const seen = await all(ask("Write a.txt", { canUseTool }));
  assert.deepEqual(asked, [["Write", "a.txt", "setMode", "string"]]);
  assert.equal(result(seen).subtype, "success");
  assert.ok(existsSync(join(directory, "a.txt")));
});

test("canUseTool with updatedInput makes a new call", async (t) => {
  const { directory, ask } = setUp(t, WRITE);
  const canUseTool = async (_name, input) => ({
    behavior: "allow",
    updatedInput: { ...input, file_path: "b.txt", content: "two\n" },
  });
  await all(ask("Write a.txt", { canUseTool }));
  assert.equal(existsSync(join(directory, "a.txt")), false);
  assert.equal(readFileSync(join(directory, "b.txt"), "utf8"), "two\n");
});

test("canUseTool with an updatedInput of the wrong form runs nothing", async (t) => {
  const { directory, ask } = setUp(t, WRITE);
  const canUseTool = async () => ({ behavior: "allow", updatedInput: { path: 7 } });
  const seen = await all(ask("Write a.txt", { canUseTool }));
  assert.equal(existsSync(join(directory, "a.txt")), false);
  assert.equal(results(seen)[0].is_error, true);
});

test("canUseTool denies with a message for the model", async (t) => {
  const { directory, ask } = setUp(t, `${WRITE}
[[turn.expect]]
call = 0
contains = "not on a Friday"
`);
  const canUseTool = async () => ({ behavior: "deny", message: "not on a Friday" });
  const seen = await all(ask("Write a.txt", { canUseTool }));
  assert.equal(existsSync(join(directory, "a.txt")), false);
  assert.equal(result(seen).result, "Done.");
  assert.equal(result(seen).permission_denials.length, 1);
});

test("hooks: denied before the call, and seen after it", async (t) => {
  const { directory, ask } = setUp(t, `
[[turn]]
call = [{ tool = "Bash", arguments = { command = "touch hooked" } }]
[[turn]]
call = [{ tool = "Write", arguments = { file_path = "a.txt", content = "one" } }]
[[turn.expect]]
call = 0
contains = "no commands here"
[[turn]]
text = "Done."
`);
  const seen = [];
  const before = async (input, toolUseID) => {
    seen.push([input.hook_event_name, input.tool_name, input.tool_use_id === toolUseID]);
    return {
      hookSpecificOutput: {
        hookEventName: "PreToolUse",
        permissionDecision: "deny",
        permissionDecisionReason: "no commands here",
      },
    };
  };
  const after = async (input) => {
    seen.push([input.hook_event_name, input.tool_name, typeof input.tool_response]);
    return {};
  };
  const hooks = {
    PreToolUse: [{ matcher: "Bash|Task", hooks: [before] }],
    PostToolUse: [{ matcher: "Write", hooks: [after] }],
  };
  const messages = await all(ask("Go", { hooks, permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true }));
  assert.deepEqual(seen, [["PreToolUse", "Bash", true], ["PostToolUse", "Write", "string"]]);
  assert.equal(result(messages).result, "Done.");
  assert.equal(existsSync(join(directory, "hooked")), false);
  assert.ok(existsSync(join(directory, "a.txt")));
});

test("hooks: other arguments make a new call", async (t) => {
  const { directory, ask } = setUp(t, WRITE);
  const change = async (input) => ({
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: "allow",
      updatedInput: { ...input.tool_input, file_path: "c.txt" },
    },
  });
  const options = { permissionMode: "acceptEdits", hooks: { PreToolUse: [{ hooks: [change] }] } };
  await all(ask("Write", options));
  assert.ok(existsSync(join(directory, "c.txt")) && !existsSync(join(directory, "a.txt")));
});

test("tools of an MCP server in the SDK's process", async (t) => {
  const { ask } = setUp(t, `
[[turn]]
call = [{ tool = "mcp__calculator__add", arguments = { a = 2, b = 3 } }]
[[turn]]
text = "Five."
[[turn.expect]]
call = 0
contains = "sum: 5"
`);
  const add = tool("add", "Adds two numbers", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
    content: [{ type: "text", text: `sum: ${a + b}` }],
  }));
  const calculator = createSdkMcpServer({ name: "calculator", version: "1.0.0", tools: [add] });
  const options = { mcpServers: { calculator }, allowedTools: ["mcp__calculator__add"] };
  const seen = await all(ask(prompts({ content: "Add 2 and 3" }), options));
  assert.equal(result(seen).result, "Five.");
  assert.deepEqual(seen[0].mcp_servers, [{ name: "calculator", status: "connected" }]);
  assert.ok(seen[0].tools.includes("mcp__calculator__add"));
});

test("streaming input: several messages, images, a change of model and mode", async (t) => {
  const { directory, ask } = setUp(t, `
[[turn]]
text = "A pixel."
[[turn]]
call = [{ tool = "Write", arguments = { file_path = "a.txt", content = "one" } }]
[[turn]]
text = "Done."
`);
  const { open, opened } = gate();
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: PNG.toString("base64") } };
  const messages = ask(prompts(
    { content: [{ type: "text", text: "What is it?" }, image] },
    { content: "Write a.txt", before: opened },
  ));
  const seen = [];
  for await (const message of messages) {
    seen.push(message);
    if (message.type === "result" && message.result === "A pixel.") {
      await messages.setModel("claude-sonnet-4-5");
      await messages.setPermissionMode("acceptEdits");
      open();
    }
  }
  const inits = seen.filter((message) => message.subtype === "init");
  assert.deepEqual(inits.map((init) => [init.model, init.permissionMode]), [
    ["claude-opus-4-6", "default"],
    ["claude-sonnet-4-5", "acceptEdits"],
  ]);
  assert.ok(existsSync(join(directory, "a.txt")));
});

test("interrupt stops a run, and the session goes on", async (t) => {
  const { ask } = setUp(t, `
[[turn]]
call = [{ tool = "Bash", arguments = { command = "sleep 60" } }]
[[turn]]
text = "Still here."
`);
  const { open, opened } = gate();
  const messages = ask(
    prompts({ content: "Sleep" }, { content: "Are you there?", before: opened }),
    { allowedTools: ["Bash"] },
  );
  const ends = [];
  for await (const message of messages) {
    if (message.type === "assistant" && ends.length === 0) await messages.interrupt();
    if (message.type === "result") {
      ends.push([message.subtype, message.result]);
      open();
    }
  }
  assert.deepEqual(ends, [["error_during_execution", undefined], ["success", "Still here."]]);
});

test("resume and continue go on with the conversation", async (t) => {
  const { ask } = setUp(t, `
[[turn]]
text = "One."
[[turn]]
text = "Two."
[[turn.expect]]
request_contains = "First"
[[turn]]
text = "Three."
`);
  const first = result(await all(ask("First")));
  const second = result(await all(ask("Second", { resume: first.session_id })));
  assert.deepEqual([second.result, second.session_id], ["Two.", first.session_id]);
  const third = result(await all(ask("Third", { continue: true })));
  assert.equal(third.result, "Three.");
});

const SCHEMA = {
  type: "object",
  properties: { name: { type: "string" }, files: { type: "integer" } },
  required: ["name", "files"],
};

test("structured output: repaired, and a failure after the last repair", async (t) => {
  const outputFormat = { type: "json_schema", schema: SCHEMA };
  const good = setUp(t, `
[[turn]]
text = "It is pintle, with 7 files."
[[turn]]
text = '{"name": "pintle", "files": 7}'
`);
  const end = result(await all(good.ask("Count", { outputFormat })));
  assert.deepEqual([end.subtype, end.structured_output], ["success", { name: "pintle", files: 7 }]);
  const bad = setUp(t, ["a", "b", "c", "d"].map((text) => `[[turn]]\ntext = "${text}"\n`).join(""));
  const failed = result(await all(bad.ask(prompts({ content: "Count" }), { outputFormat })));
  assert.equal(failed.subtype, "error_max_structured_output_retries");
  assert.match(failed.errors[0], /not JSON/);
});

test("requests that nobody serves are answered with an error", async (t) => {
  const { ask } = setUp(t, '[[turn]]\ntext = "Hello."\n');
  const { open, opened } = gate();
  const messages = ask(prompts({ content: "Hello" }, { content: "never", before: opened }));
  const seen = [];
  for await (const message of messages) {
    seen.push(message);
    if (message.type !== "result") continue;
    await assert.rejects(messages.mcpServerStatus().then(() => messages.reconnectMcpServer("x")), /subtype/);
    const rewind = await messages.rewindFiles("00000000-0000-0000-0000-000000000000", { dryRun: true });
    assert.ok(rewind.canRewind === false && rewind.error.length > 0);
    assert.ok((await messages.supportedModels()).length > 0);
    messages.close();
    open();
    break;
  }
  assert.equal(result(seen).result, "Hello.");
});

test("options that restrict and are not supported are refused", async (t) => {
  const { ask } = setUp(t, '[[turn]]\ntext = "Never said."\n');
  const refused = [
    { sandbox: { enabled: true, network: { allowLocalBinding: false } } },
    { managedSettings: { permissions: { deny: ["Bash"] } } },
    { extraArgs: { "tool-policy": "strict" } },
    { hooks: { PreToolUse: [{ matcher: "B(a)sh?", hooks: [async () => ({})] }] } },
  ];
  for (const options of refused) {
    await assert.rejects(all(ask("Go", options)), /may restrict|expected|not supported/, JSON.stringify(options));
  }
});
