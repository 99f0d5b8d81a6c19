// Both SDKs with the command in its default settings: the sandbox is on, sessions are in the state directory of the home, and the
// project is a repository of a user with a git configuration. Only the command has these, so the examples do not run it.
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { query } from "@anthropic-ai/claude-agent-sdk";
import { Codex } from "@openai/codex-sdk";

import { binary, workspace } from "./support.mjs";

// Mends a sum and commits it, and continues in another process.
const MEND = `
[[turn]]
call = [{ tool = "Read", arguments = { file_path = "add.sh" } }]
[[turn]]
call = [{ tool = "Edit", arguments = { file_path = "add.sh", old_string = "$1 - $2", new_string = "$1 + $2" } }]
[[turn]]
call = [{ tool = "Bash", arguments = { command = "git commit --quiet --all --message=Mend; echo beyond >../beyond.txt; echo ran >ran.txt" } }]
[[turn]]
text = "Mended."
[[turn]]
call = [{ tool = "Bash", arguments = { command = ". ./add.sh; add 3 2 >sum.txt" } }]
[[turn.expect]]
request_contains = "Mend the sum"
[[turn]]
text = "It is 5."
`;

function setUp(t) {
  const { home, directory, env, run } = workspace(t, MEND);
  writeFileSync(join(directory, "add.sh"), "add() { echo $(($1 - $2)); }\n");
  run("git", "add", "add.sh");
  run("git", "commit", "--quiet", "--message=second");
  const read = (name) => readFileSync(join(directory, name), "utf8");
  const sessions = () => JSON.parse(run(binary("PINTLE_BINARY"), "sessions", "list", "--output", "json")).map((row) => row.id);
  const isMended = (id) => {
    assert.equal(run("git", "log", "--format=%an: %s"), "A User: Mend\nA User: second\nA User: first\n");
    assert.equal(read("add.sh"), "add() { echo $(($1 + $2)); }\n");
    assert.deepEqual([read("ran.txt"), existsSync(join(home, "beyond.txt"))], ["ran\n", false]);
    assert.deepEqual(sessions(), [id]);
    assert.ok(existsSync(join(home, ".local/state/pintle/sessions")));
  };
  return { directory, env, read, sessions, isMended };
}

test("Claude's SDK edits and commits in the sandbox, and resumes the session", async (t) => {
  const { directory, env, read, sessions, isMended } = setUp(t);
  const asked = [];
  const canUseTool = async (name, input) => {
    asked.push(name);
    return { behavior: "allow", updatedInput: input };
  };
  const base = { pathToClaudeCodeExecutable: binary("CLAUDE_BINARY"), cwd: directory, env, canUseTool };
  const ask = async (prompt, options = {}) => {
    let end;
    for await (const message of query({ prompt, options: { ...base, ...options } })) {
      if (message.type === "result") end = message;
    }
    return end;
  };
  const first = await ask("Mend the sum");
  assert.deepEqual([first.subtype, first.result, asked], ["success", "Mended.", ["Edit", "Bash"]]);
  isMended(first.session_id);
  const second = await ask("Add 3 and 2", { resume: first.session_id });
  assert.deepEqual([second.result, second.session_id], ["It is 5.", first.session_id]);
  assert.equal(read("sum.txt"), "5\n");
  assert.deepEqual(sessions(), [first.session_id]);
});

test("the SDK of codex edits and commits in the sandbox, and resumes the thread", async (t) => {
  const { directory, env, read, sessions, isMended } = setUp(t);
  const codex = new Codex({ codexPathOverride: binary("CODEX_BINARY"), env });
  const options = { workingDirectory: directory, sandboxMode: "workspace-write" };
  const thread = codex.startThread(options);
  const turn = await thread.run("Mend the sum");
  assert.equal(turn.finalResponse, "Mended.");
  const changes = turn.items.filter((item) => item.type === "file_change").flatMap((item) => item.changes);
  assert.deepEqual(changes, [{ path: "add.sh", kind: "update" }]);
  isMended(thread.id);
  const again = codex.resumeThread(thread.id, options);
  assert.equal((await again.run("Add 3 and 2")).finalResponse, "It is 5.");
  assert.equal(again.id, thread.id);
  assert.equal(read("sum.txt"), "5\n");
  assert.deepEqual(sessions(), [thread.id]);
});
