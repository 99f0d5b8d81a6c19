// The documented examples of @openai/codex-sdk, against the binary that CODEX_BINARY names.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Codex } from "@openai/codex-sdk";

import { PNG, binary, workspace } from "./support.mjs";

function start(t, script, options = {}, codex = {}) {
  const { directory, env } = workspace(t, script);
  const client = new Codex({ codexPathOverride: binary("CODEX_BINARY"), env, ...codex });
  const threadOptions = { workingDirectory: directory, skipGitRepoCheck: true, ...options };
  return { client, directory, threadOptions, thread: client.startThread(threadOptions) };
}

test("quickstart: a turn and the next one", async (t) => {
  const { thread } = start(t, `
[[turn]]
text = "The test divides by zero."
[[turn]]
text = "Fixed."
[[turn.expect]]
request_contains = "Diagnose"
`);
  const turn = await thread.run("Diagnose the test failure and propose a fix");
  assert.equal(turn.finalResponse, "The test divides by zero.");
  assert.deepEqual(turn.items.map((item) => item.type), ["agent_message"]);
  assert.ok(turn.usage.input_tokens > 0 && turn.usage.output_tokens > 0);
  const next = await thread.run("Implement the fix");
  assert.equal(next.finalResponse, "Fixed.");
});

test("streaming: items of every kind, in order", async (t) => {
  const { thread, directory } = start(t, `
[[turn]]
reasoning = "Plan first."
text = "I begin."
call = [{ tool = "TodoWrite", arguments = { todos = [{ content = "write", activeForm = "writing", status = "in_progress" }] } }]
[[turn]]
call = [
  { tool = "Write", arguments = { file_path = "a.txt", content = "one\\n" } },
  { tool = "Bash", arguments = { command = "cat a.txt; exit 3" } },
]
[[turn]]
text = "Done\u2028and done."
`, { sandboxMode: "workspace-write" });
  const { events } = await thread.runStreamed("Write a.txt");
  const seen = [];
  for await (const event of events) seen.push(event);
  const kinds = seen.map((event) => (event.item ? `${event.type} ${event.item.type}` : event.type));
  assert.deepEqual(kinds, [
    "thread.started",
    "turn.started",
    "item.completed reasoning",
    "item.completed agent_message",
    "item.started todo_list",
    "item.completed file_change",
    "item.started command_execution",
    "item.completed command_execution",
    "item.completed agent_message",
    "item.completed todo_list",
    "turn.completed",
  ]);
  const command = seen[7].item;
  assert.deepEqual([command.exit_code, command.status, command.aggregated_output], [3, "failed", "one\n"]);
  assert.deepEqual(seen[5].item.changes, [{ path: "a.txt", kind: "add" }]);
  assert.equal(seen[8].item.text, "Done\u2028and done.");
  assert.equal(readFileSync(join(directory, "a.txt"), "utf8"), "one\n");
  assert.equal(thread.id, seen[0].thread_id);
});

const SCHEMA = {
  type: "object",
  properties: { summary: { type: "string" }, status: { type: "string", enum: ["ok", "action_required"] } },
  required: ["summary", "status"],
  additionalProperties: false,
};

test("structured output: repaired, and without its fence", async (t) => {
  const { thread } = start(t, `
[[turn]]
text = '{"summary": "fine", "status": "great"}'
[[turn]]
text = """
\`\`\`json
{"summary": "fine", "status": "ok"}
\`\`\`"""
`);
  const turn = await thread.run("Summarize repository status", { outputSchema: SCHEMA });
  assert.deepEqual(JSON.parse(turn.finalResponse), { summary: "fine", status: "ok" });
});

test("structured output: a failure after the last repair", async (t) => {
  const { thread } = start(t, `
[[turn]]
text = "No."
[[turn]]
text = "Still no."
[[turn]]
text = "Never."
[[turn]]
text = "Not at all."
`);
  await assert.rejects(thread.run("Summarize", { outputSchema: SCHEMA }), /schema/);
});

test("images go with the text", async (t) => {
  const { thread, directory } = start(t, `
[[turn]]
text = "A pixel."
[[turn.expect]]
request_contains = "Describe these"
`);
  const image = join(directory, "ui.png");
  writeFileSync(image, PNG);
  const turn = await thread.run([
    { type: "text", text: "Describe these" },
    { type: "local_image", path: image },
  ]);
  assert.equal(turn.finalResponse, "A pixel.");
});

test("resume: another object goes on with the thread", async (t) => {
  const { client, thread, threadOptions } = start(t, `
[[turn]]
text = "One."
[[turn]]
text = "Two."
`);
  await thread.run("First");
  const again = client.resumeThread(thread.id, threadOptions);
  const turn = await again.run("Second");
  assert.equal(turn.finalResponse, "Two.");
  assert.equal(again.id, thread.id);
});

test("options: model, sandbox, search, network, approval, configuration", async (t) => {
  const { thread } = start(
    t,
    `
[[turn]]
call = [{ tool = "Write", arguments = { file_path = "a.txt", content = "x" } }]
[[turn]]
text = "I cannot."
`,
    {
      model: "claude-opus-4-6",
      sandboxMode: "read-only",
      modelReasoningEffort: "low",
      networkAccessEnabled: false,
      webSearchMode: "disabled",
      approvalPolicy: "never",
      additionalDirectories: ["/tmp"],
    },
    { config: { show_raw_agent_reasoning: true } },
  );
  const turn = await thread.run("Write a.txt");
  const change = turn.items.find((item) => item.type === "file_change");
  assert.equal(change.status, "failed");
});

test("configuration that restricts and is unknown is refused", async (t) => {
  const { thread } = start(t, `
[[turn]]
text = "Never said."
`, {}, { configOverrides: ['permissions.audit.filesystem={":root"="read"}'] });
  await assert.rejects(thread.run("Go"), /permissions\.audit\.filesystem is not supported/);
});

test("abort stops the process", async (t) => {
  const { thread } = start(t, `
[[turn]]
call = [{ tool = "Bash", arguments = { command = "sleep 60", timeout = 600000 } }]
[[turn]]
text = "Never said."
`);
  const abort = new AbortController();
  const { events } = await thread.runStreamed("Sleep", { signal: abort.signal });
  await assert.rejects(async () => {
    for await (const event of events) {
      if (event.type === "item.started") abort.abort();
    }
  }, /abort/i);
});
