// Tests of the console's modules that need no page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { activity, contextOf, stateOf } from "../../crates/server/console/activity.js";
import { parseTerminal, plainLine } from "../../crates/server/console/ansi.js";
import { diffOfArguments, fromHunks, parseDiff, replacement } from "../../crates/server/console/diff.js";
import { choose, stateText, waits } from "../../crates/server/console/filter.js";
import { ago, bytes, cost, counted, duration, percent, tokens } from "../../crates/server/console/format.js";
import { Heights } from "../../crates/server/console/heights.js";
import { BINDINGS, bindingOf, keyName } from "../../crates/server/console/keys.js";
import { questionsOf } from "../../crates/server/console/questions.js";
import { planOf, proposedPlan } from "../../crates/server/console/reduce-calls.js";
import { apply, fold } from "../../crates/server/console/reducer.js";
import { Log, pause, Replay } from "../../crates/server/console/replay.js";
import { changedLines, findEntry, outcome, subject, visibleEntries } from "../../crates/server/console/rows.js";
import { htmlDocument, serialize } from "../../crates/server/console/serialize.js";
import { initialState } from "../../crates/server/console/state.js";
import { highlight, languageOf } from "../../crates/server/console/syntax.js";
import { dropBytes, endOfPage, escapedJson, firstLine, startOfPage, utf8Length, visible } from "../../crates/server/console/text.js";
import { droppedRanges, rewindPreview, turnsBefore, turnsThrough } from "../../crates/server/console/turns.js";
import { Script } from "./events.mjs";

function session() {
  const script = new Script("s-1");
  script.start();
  script.input("Mend the failing test.");
  script.request(2);
  script.reasoning("Nine is IX.");
  script.text("I look at the test first.");
  script.response(900, 60, 700, "tool_calls");
  script.call("call_1", "shell", "command", { command: "cargo test" });
  script.result("call_1", "shell", "running 3 tests\nExit code: 101", { exit_code: 101, duration_ms: 3480 });
  script.request(5, { message: 4 });
  script.text("Done.");
  script.response(1200, 20, 0);
  script.end();
  return script;
}

test("a session becomes entries in order", () => {
  const state = fold("s-1", session().events);
  assert.deepEqual(state.entries.map((entry) => entry.type), ["input", "round", "reasoning", "text", "call", "round", "text", "end"]);
  assert.equal(state.phase, "IDLE");
  assert.deepEqual(state.usage, { input: 2100, output: 80, cacheRead: 700, cacheWrite: 0, reasoning: 0 });
  assert.equal(state.misses, 1);
  assert.equal(state.entries[5].moved, "message 4");
  assert.equal(state.entries[4].exitCode, 101);
  assert.equal(state.entries.at(-1).calls, 1);
});

test("an event that arrives twice changes nothing", () => {
  const { events } = session();
  const state = initialState("s-1");
  for (const event of events) assert.equal(apply(state, event), true);
  for (const event of events) assert.equal(apply(state, event), false);
  assert.equal(state.entries.length, 8);
});

test("events of other sessions are ignored", () => {
  const state = initialState("s-2");
  assert.equal(apply(state, session().events[0]), false);
});

test("an unknown event is counted and otherwise ignored", () => {
  const state = initialState("s-1");
  apply(state, { seq: 0, timestamp: "2025-11-22T10:00:00.000Z", session_id: "s-1", kind: "LATER_KIND", data: {} });
  assert.equal(state.lastSeq, 0);
  assert.equal(state.entries.length, 0);
});

function streaming() {
  const script = new Script("s-1");
  script.start();
  script.input("Hello");
  script.request(2);
  const state = fold("s-1", script.events);
  const start = script.add("ASSISTANT_TEXT_START", {});
  apply(state, start);
  return { script, state, start, text: () => state.entries.at(-1) };
}

test("deltas extend an open text", () => {
  const { script, state, start, text } = streaming();
  apply(state, script.delta(start, 0, "Grüße "));
  apply(state, script.delta(start, 8, "an 🦀 "));
  assert.equal(text().text, "Grüße an 🦀 ");
  assert.equal(text().open, true);
  apply(state, script.add("ASSISTANT_TEXT_END", { text: "Grüße an 🦀 alle", interrupted: false }));
  assert.equal(text().text, "Grüße an 🦀 alle");
  assert.equal(text().open, false);
});

test("a delta at offset 0 replaces the text so far", () => {
  const { script, state, start, text } = streaming();
  apply(state, script.delta(start, 0, "abc"));
  apply(state, script.delta(start, 3, "def"));
  apply(state, script.delta(start, 0, "abcdefghi"));
  apply(state, script.delta(start, 9, "j"));
  assert.equal(text().text, "abcdefghij");
});

test("deltas that overlap are not doubled", () => {
  const { script, state, start, text } = streaming();
  apply(state, script.delta(start, 0, "äbc"));
  assert.equal(apply(state, script.delta(start, 2, "b")), false);
  apply(state, script.delta(start, 2, "bcd"));
  assert.equal(text().text, "äbcd");
});

test("a delta after the end of its segment is ignored", () => {
  const { script, state, start, text } = streaming();
  apply(state, script.add("ASSISTANT_TEXT_END", { text: "abc", interrupted: true }));
  assert.equal(apply(state, script.delta(start, 0, "late")), false);
  assert.equal(text().text, "abc");
  assert.equal(text().interrupted, true);
});

test("a gap is marked in the text", () => {
  const { script, state, start, text } = streaming();
  apply(state, script.delta(start, 0, "abc"));
  apply(state, { ...start, offset: 3, kind: "GAP", data: { skipped: 100 } });
  apply(state, script.delta(start, 103, "xyz"));
  assert.match(text().text, /^abc\n\[100 bytes are missing here\]\nxyz$/);
});

test("arguments and output of a call are segments of one entry", () => {
  const script = new Script("s-1");
  const state = initialState("s-1");
  const next = (event) => apply(state, event) && event;
  const writing = next(script.add("TOOL_CALL_ARGUMENTS_START", { call_id: "c", tool_name: "shell", call_kind: "command" }));
  apply(state, script.delta(writing, 0, '{"command": "ma'));
  const call = state.entries[0];
  assert.equal(call.status, "writing");
  assert.equal(subject(call), '{"command": "ma');
  next(script.add("TOOL_CALL_ARGUMENTS_END", { call_id: "c", interrupted: false }));
  const start = next(script.call("c", "shell", "command", { command: "make" }));
  apply(state, script.delta(start, 0, "cc a.c\n"));
  assert.equal(call.output, "cc a.c\n");
  assert.equal(call.status, "running");
  next(script.result("c", "shell", "cc a.c\ndone\n", { exit_code: 0 }));
  assert.equal(state.entries.length, 1);
  assert.equal(outcome(call), "done");
  assert.equal(state.segments.size, 0);
});

test("an approval is asked for, decided, and leaves a remark", () => {
  const script = new Script("s-1");
  const ask = { call_id: "c", tool_name: "shell", call_kind: "command", arguments: { command: "rm -r build" }, reason: "it removes files", fingerprint: "00" };
  script.add("APPROVAL_REQUESTED", ask);
  let state = fold("s-1", script.events);
  assert.deepEqual([...state.asking], ["c"]);
  assert.equal(state.entries[0].status, "asking");
  script.add("APPROVAL_DECIDED", { call_id: "c", approved: false, ending: "denied", reason: "keep it", by: "jan" });
  state = fold("s-1", script.events);
  assert.equal(state.asking.size, 0);
  assert.equal(state.entries[0].status, "denied");
  assert.equal(state.entries[0].remarks.at(-1), "Approval denied by jan: keep it");
});

test("the end of a run has its outcome", () => {
  for (const outcome of ["completed", "output_limit", undefined]) {
    const script = new Script("s-1");
    script.input("x");
    script.add("PROCESSING_END", { state: "IDLE", ...(outcome ? { outcome } : {}) });
    assert.equal(fold("s-1", script.events).entries.at(-1).outcome, outcome ?? null);
  }
});

test("calls that never started are cut off at the end of the run", () => {
  const script = new Script("s-1");
  script.input("x");
  script.add("TOOL_CALL_ARGUMENTS_START", { call_id: "c", tool_name: "shell", call_kind: "command" });
  script.add("TOOL_CALL_ARGUMENTS_END", { call_id: "c", interrupted: false });
  script.end();
  assert.equal(fold("s-1", script.events).calls.get("c").status, "cut");
});

test("subagents, plans, limits and errors become entries", () => {
  const script = new Script("s-1");
  script.input("x");
  script.call("p", "update_plan", "read", { plan: [{ step: "Read", status: "completed" }, { step: "Write", status: "in_progress" }] });
  script.add("SUBAGENT_SPAWNED", { agent_id: "agent_1", child: "s-1-1", task: "Find it" });
  script.add("SUBAGENT_ENDED", { agent_id: "agent_1", child: "s-1-1", status: "COMPLETED", turns_used: 3 });
  script.add("BUDGET_REACHED", { budget: "cost_micros", limit: 2_000_000, spent: 1_900_000 });
  script.add("CONTEXT_USAGE", { window: 200000, used: 64120, system: 1520, tools: 4100, history: 58500 });
  script.add("ERROR", { error: { kind: "rate_limit", message: "too many requests" } });
  const state = fold("s-1", script.events);
  assert.equal(subject(state.calls.get("p")), "1 of 2: Write");
  assert.equal(state.plan.length, 2);
  assert.equal(state.agents.get("s-1-1").status, "COMPLETED");
  assert.equal(state.context.used, 64120);
  const notices = state.entries.filter((entry) => entry.type === "notice");
  assert.deepEqual(notices.map((entry) => entry.level), ["warning", "error"]);
  assert.equal(notices[0].text, "$1.90 of $2.00 spent");
});

test("a subagent rests when the call that waits for it ends, and can be resumed", () => {
  const script = new Script("s");
  script.start();
  script.call("c1", "Task", "agent", { prompt: "Count." });
  script.add("SUBAGENT_SPAWNED", { agent_id: "agent_1", child: "s-1", task: "Count." });
  const at = (count) => fold("s", script.events, count).agents.get("s-1");
  assert.equal(at().status, "RUNNING");
  const { timestamp } = script.result("c1", "Task", "Three.");
  assert.deepEqual([at().status, at().endedAt], ["RESTING", Date.parse(timestamp)]);
  script.call("c2", "Task", "agent", { prompt: "Count again.", resume: "agent_1" });
  assert.deepEqual([at().status, at().endedAt], ["RUNNING", null]);
  script.result("c2", "Task", "Four.");
  assert.equal(at().status, "RESTING");
  script.add("SUBAGENT_ENDED", { agent_id: "agent_1", child: "s-1", status: "COMPLETED", turns_used: 2 });
  assert.deepEqual([at().status, at().turns], ["COMPLETED", 2]);
});

test("a fork says what it begins with", () => {
  const script = new Script("s");
  script.start("m", { forked_from: { session_id: "s-0", turns: 1 } });
  const [entry] = fold("s", script.events).entries;
  assert.deepEqual([entry.title, entry.text], ["Fork", "It begins with the first 1 entry of s-0."]);
});

test("gates that have nothing to say leave no remark", () => {
  const script = new Script("s");
  script.start();
  const steps = [{ gate: "paths", permission: "allow" }, { gate: "rules", permission: "allow", rule: "mode auto", by_default: true }, { gate: "rules", permission: "ask", rule: "mode ask", reason: "it runs a command" }];
  script.add("CALL_JUDGED", { call_id: "c1", tool_name: "shell", permission: "ask", steps });
  assert.deepEqual(fold("s", script.events).calls.get("c1").remarks, ["rules: ask by mode ask because it runs a command"]);
});

test("plans are steps or Markdown", () => {
  for (const [args, steps, text] of [
    [{ plan: [{ step: "Read", status: "completed" }] }, 1, ""],
    [{ todos: [{ content: "Read", status: "pending" }] }, 1, ""],
    [{ plan: "# Plan\n\n1. Read" }, 0, "# Plan\n\n1. Read"],
    [{ plan: [] }, 0, ""],
    [{}, 0, ""],
    [undefined, 0, ""],
  ]) {
    assert.equal(planOf(args)?.length ?? 0, steps);
    assert.equal(proposedPlan(args), text);
  }
  assert.equal(subject({ arguments: { plan: "# Add numerals\n\n1. Read" }, plan: null, tool: "present_plan" }), "# Add numerals …");
});

test("questions of each tool have a text and options", () => {
  const ask = (tool, args) => questionsOf({ tool, arguments: args });
  assert.deepEqual(ask("ask_user", { question: "Which?", options: ["80", "81"] }), [{ text: "Which?", several: false, options: ["80", "81"] }]);
  const several = { questions: [{ question: "Which?", multiSelect: true, options: [{ label: "80", description: "as usual" }] }, { question: "Why?" }] };
  assert.deepEqual(ask("AskUserQuestion", several).map(({ text, several: many, options }) => [text, many, options]), [["Which?", true, ["80: as usual"]], ["Why?", false, []]]);
  assert.deepEqual(ask("shell", { question: "Which?" }), []);
  assert.deepEqual(ask("ask_user", undefined), []);
});

test("a compaction is no cache miss", () => {
  const script = new Script("s-1");
  script.add("COMPACTION_START", { through: 42 });
  script.request(3, "system");
  script.add("COMPACTION_END", { through: 42, from: 38, tokens_before: 172300, tokens_after: 21800, usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 } });
  const state = fold("s-1", script.events);
  assert.equal(state.misses, 0);
  assert.equal(state.entries[1].purpose, "summary");
  assert.equal(state.entries[1].status, "done");
  assert.match(state.entries[2].text, /^4 entries, /);
  assert.equal(state.usage.input, 10);
});

test("a replay has the state of the prefix at each position", () => {
  const log = new Log("s-1");
  for (const event of session().events) log.add(event);
  const replay = new Replay(log);
  for (const position of [5, 2, 9, 0, log.events.length]) {
    assert.deepEqual(replay.seek(position), fold("s-1", log.events, position));
  }
  replay.seek(0);
  assert.equal(log.events[replay.seekTurn(1) && replay.position - 1].kind, "USER_INPUT");
  replay.seekTurn(1);
  assert.equal(replay.position, log.events.length);
});

test("pauses of a replay are cut", () => {
  const at = (timestamp) => ({ timestamp });
  assert.equal(pause(at("2025-11-22T10:00:00Z"), at("2025-11-22T11:00:00Z"), 1), 1500);
  assert.equal(pause(at("2025-11-22T10:00:00Z"), at("2025-11-22T10:00:01Z"), 4), 250);
});

test("views choose entries", () => {
  const { entries } = fold("s-1", session().events);
  assert.deepEqual(visibleEntries(entries, "talk", false).map((entry) => entry.type), ["input", "text", "text", "end"]);
  assert.deepEqual(visibleEntries(entries, "problems", false).map((entry) => entry.type), ["call", "round"]);
  assert.equal(visibleEntries(entries, "changes", false).length, 1);
});

test("the search goes around the end, in both directions", () => {
  const { entries } = fold("s-1", session().events);
  assert.equal(findEntry(entries, "CARGO", 6, 1), 4);
  assert.equal(findEntry(entries, "done", 0, -1), 6);
  assert.equal(findEntry(entries, "absent", 0, 1), -1);
});

test("history entries before and through an entry", () => {
  const turns = [
    { index: 0, kind: "user", text: "", event: 1 },
    { index: 1, kind: "assistant", text: "", event: 7 },
    { index: 2, kind: "tool", text: "", event: 9 },
    { index: 3, kind: "assistant", text: "", event: 13 },
  ];
  const { entries } = fold("s-1", session().events);
  assert.equal(turnsBefore(turns, entries[0]), 0);
  assert.equal(turnsThrough(turns, entries[0]), 1);
  assert.equal(turnsThrough(turns, entries[3]), 2);
  assert.equal(turnsThrough(turns, entries[6]), 4);
});

test("the preview of a rewind lists turns and files", () => {
  const script = new Script("s-1");
  script.input("x");
  script.call("c", "edit_file", "edit", {});
  script.result("c", "edit_file", "", { changes: [{ path: "a.rs", kind: "modified", diff: "" }] });
  const state = fold("s-1", script.events);
  const turns = [{ index: 0, kind: "user", text: "x", event: 0 }, { index: 1, kind: "tool", text: "", event: 2 }];
  assert.deepEqual(rewindPreview(turns, state, 1), { removed: [turns[1]], files: [{ path: "a.rs", changes: 1 }] });
  assert.deepEqual(rewindPreview(turns, state, 2), { removed: [], files: [] });
});

test("rewinds remove what followed the entries that are left", () => {
  const turn = (event) => ({ index: 0, kind: "", text: "", event });
  assert.deepEqual(droppedRanges([turn(1), turn(7)], [20]), [{ from: 7, to: 20 }]);
  assert.deepEqual(droppedRanges([], [20]), [{ from: -1, to: 20 }]);
  assert.deepEqual(droppedRanges([turn(1), turn(25)], [10, 20]), [{ from: 1, to: 10 }, { from: 1, to: 20 }]);
});

test("the activity of a session in words", () => {
  const script = new Script("s-1");
  script.input("x");
  script.request(2);
  const at = script.now;
  assert.equal(activity(fold("s-1", script.events), at + 3500), "Waiting for the model · 3 s");
  script.call("c", "shell", "command", {});
  assert.equal(activity(fold("s-1", script.events), at), "shell runs");
  script.result("c", "shell", "");
  script.end();
  const state = fold("s-1", script.events);
  assert.equal(activity(state, at), "");
  assert.equal(stateOf(null, state), "idle");
});

test("the use of the context is that of the last request until it is reported", () => {
  const script = session();
  assert.equal(contextOf(fold("s-1", script.events), 0), null);
  assert.equal(contextOf(fold("s-1", script.events), 200000).used, 1220);
  script.add("CONTEXT_USAGE", { window: 200000, used: 64120, system: 1520, tools: 4100, history: 58500 });
  assert.equal(contextOf(fold("s-1", script.events), 1000).window, 200000);
});

test("heights give offsets, rows and ranges", () => {
  const heights = new Heights();
  const plain = [];
  for (let i = 0; i < 200; i += 1) {
    heights.push(10 + (i % 7));
    plain.push(10 + (i % 7));
  }
  const sum = (end) => plain.slice(0, end).reduce((a, b) => a + b, 0);
  for (const i of [0, 1, 7, 64, 199, 200]) assert.equal(heights.offset(i), sum(i));
  assert.equal(heights.set(64, 500), 500 - plain[64]);
  plain[64] = 500;
  for (const i of [63, 64, 65, 66, 128, 200]) assert.equal(heights.offset(i), sum(i));
  assert.equal(heights.at(sum(65) - 1), 64);
  assert.equal(heights.at(sum(65)), 65);
  assert.equal(heights.at(1e9), 199);
  heights.truncate(65);
  heights.push(3);
  assert.equal(heights.total(), sum(65) + 3);
  const { from, to } = heights.range(100, 50, 0);
  assert.ok(sum(from) <= 100 && sum(to) >= 150 && to - from < 8);
});

test("unified diffs are parsed with line numbers", () => {
  const [file, other] = parseDiff(
    "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,3 +1,3 @@ fn main\n a\n-VIIII\n+IX\n b\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+++ x\n\\ No newline at end of file\n",
  );
  assert.equal(file.path, "src/lib.rs");
  assert.deepEqual(file.hunks[0].lines.map(({ kind, text, oldLine, newLine }) => [kind, text, oldLine, newLine]), [
    ["context", "a", 1, 1],
    ["remove", "VIIII", 2, null],
    ["add", "IX", null, 2],
    ["context", "b", 3, 3],
  ]);
  assert.equal(other.change, "added");
  assert.equal(other.hunks[0].lines[0].text, "++ x");
});

test("files without text that changed are in a diff of git, too", () => {
  const parts = [
    "diff --git a/logo b.png b/logo b.png\nnew file mode 100644\nindex 000..abc\nGIT binary patch\nliteral 3\nKcmZQzfPeq\n\nliteral 0\nHcmV?d00001\n",
    "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n",
    "diff --git a/empty b/empty\ndeleted file mode 100644\nindex e69..000\n",
    "diff --git a/old name b/new\nsimilarity index 100%\nrename from old name\nrename to new\n",
    "diff --git a/lib.rs b/lib.rs\nindex 111..222 100644\n--- a/lib.rs\n+++ b/lib.rs\n@@ -1 +1 @@\n-diff --git a/x b/x\n+IX\n\\ No newline at end of file\n",
  ];
  const files = parseDiff(parts.join(""));
  assert.deepEqual(files.map((file) => [file.path, file.change, file.hunks.length]), [
    ["logo b.png", "added", 0],
    ["run.sh", "made executable", 0],
    ["empty", "removed", 0],
    ["new", "renamed", 0],
    ["lib.rs", "modified", 1],
  ]);
  assert.deepEqual(files[4].hunks[0].lines.map((line) => line.text), ["diff --git a/x b/x", "IX", "No newline at end of file"]);
});

test("a diff without a header, as in events, is parsed", () => {
  const [file] = parseDiff("@@ -1 +1 @@\n--- x\n+IX\n", "src/lib.rs");
  assert.deepEqual(file.hunks[0].lines.map((line) => line.text), ["-- x", "IX"]);
  assert.deepEqual(parseDiff("", "x"), []);
});

test("edits, new files and patches have a diff before they run", () => {
  const [edit] = diffOfArguments({ file_path: "a", old_string: "1\n2\n3", new_string: "1\n4\n3" });
  assert.deepEqual(edit.hunks[0].lines.map((line) => line.kind), ["context", "remove", "add", "context"]);
  assert.equal(diffOfArguments({ path: "a", content: "x\ny\n" })[0].hunks[0].lines.length, 2);
  const files = diffOfArguments("*** Begin Patch\n*** Update File: a\n@@\n-1\n+2\n*** Delete File: b\n*** End Patch");
  assert.deepEqual(files.map((file) => [file.path, file.change]), [["a", "modified"], ["b", "removed"]]);
  assert.deepEqual(diffOfArguments({ command: "ls" }), []);
  assert.deepEqual(replacement("a", "a").map((line) => line.kind), ["context"]);
});

test("hunks of the workspace diff get line numbers", () => {
  const file = fromHunks({ path: "a", change: "modified", hunks: [{ old_start: 4, new_start: 5, lines: [{ kind: "context", text: "x" }, { kind: "add", text: "y" }, { kind: "context", text: "z" }] }] });
  assert.deepEqual(file.hunks[0].lines.map((line) => [line.oldLine, line.newLine]), [[4, 5], [null, 6], [5, 7]]);
});

test("changed lines are counted without the header", () => {
  assert.deepEqual(changedLines("--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\n+c\n"), { added: 2, removed: 1 });
});

test("code is split into tokens without losing text", () => {
  const line = 'let x = parse("a // b", 0x1f); // why';
  const tokens = highlight(line, languageOf("src/lib.rs"));
  assert.equal(tokens.map((token) => token.text).join(""), line);
  assert.deepEqual(tokens.filter((token) => token.type !== "plain").map((token) => token.type), ["keyword", "name", "string", "number", "comment"]);
  assert.deepEqual(highlight("# x", languageOf("a.py")), [{ text: "# x", type: "comment" }]);
  assert.equal(languageOf("constructor"), null);
  assert.equal(highlight("x".repeat(5000), languageOf("rs")).length, 1);
});

test("terminal colours become styles, other sequences are dropped", () => {
  assert.deepEqual(parseTerminal("\u001b[1;31merror\u001b[0m: no\u001b[2K"), [
    { text: "error", style: "t-bold t-red" },
    { text: ": no", style: "" },
  ]);
  assert.deepEqual(parseTerminal("10%\r50%\r100%\nend\r\n"), [{ text: "100%\nend\n", style: "" }]);
  assert.deepEqual(parseTerminal("\u001b]0;title\u0007x\u001b[38;2;1;2;3my"), [{ text: "xy", style: "" }]);
});

test("a line without control sequences", () => {
  assert.equal(plainLine("\u001b[32m  Compiling\u001b[0m roman\nnext", 40), "Compiling roman …");
});

test("invisible marks are made visible", () => {
  assert.equal(visible("a\u202eb\u2066c\u200bd"), "a⟨U+202E⟩b⟨U+2066⟩c⟨U+200B⟩d");
  assert.equal(visible("tab\tline\nend"), "tab\tline\nend");
  assert.equal(visible("\u{e0041}"), "⟨U+E0041⟩");
  assert.equal(visible("a\r\nb\u0000"), "a\nb⟨U+0000⟩");
});

test("JSON for an editor shows hidden characters, and means the same", () => {
  const value = { text: "a\u202eb\u200b\u{e0041}\n" };
  assert.ok(escapedJson(value).includes("a\\u202eb\\u200b\\udb40\\udc41\\n"));
  assert.deepEqual(JSON.parse(escapedJson(value)), value);
});

test("exported HTML is escaped", () => {
  const text = (nodeValue) => ({ nodeType: 3, nodeName: "#text", nodeValue });
  const element = (nodeName, attributes, ...childNodes) => ({ nodeType: 1, nodeName, nodeValue: null, attributes, childNodes });
  const tree = element("P", [{ name: "title", value: '"><script>' }, { name: "onclick", value: "x" }], text("<b>&"), element("BR", []), element("SCRIPT", [], text("x")), element("BUTTON", [], text("x")));
  assert.equal(serialize(tree), '<p title="&quot;&gt;&lt;script&gt;">&lt;b&gt;&amp;<br></p>');
  assert.equal(serialize(element("PRE", [], text("\nx"))), "<pre>\n\nx</pre>");
  const html = htmlDocument("</title><script>", "a{content:'</style>'}", "<p></p>", "dark");
  assert.ok(!html.includes("<script>") && html.split("</style>").length === 2);
});

test("UTF-8 lengths and cuts", () => {
  for (const text of ["", "abc", "äß", "中", "🦀", "a🦀ä"]) assert.equal(utf8Length(text), new TextEncoder().encode(text).length);
  assert.equal(dropBytes("ä🦀x", 2), "🦀x");
  assert.equal(dropBytes("ä🦀x", 6), "x");
});

test("long texts are cut into pages", () => {
  const lines = Array.from({ length: 1000 }, (_, i) => `line ${i}`).join("\n");
  assert.equal(lines.slice(0, endOfPage(lines, 0, 2, 1e6)), "line 0\nline 1\n");
  assert.equal(lines.slice(startOfPage(lines, lines.length, 2, 1e6)), "line 998\nline 999");
  const long = "x".repeat(10_000_000);
  assert.equal(endOfPage(long, 0, 100, 20_000), 20_000);
  assert.equal(startOfPage(long, long.length, 100, 20_000), long.length - 20_000);
  assert.equal(endOfPage("🦀🦀", 0, 9, 1), 2);
  assert.equal(startOfPage("a\nb\n", 4, 1, 100), 2);
  assert.equal(startOfPage("a\nb\n", 4, 5, 100), 0);
});

test("the first line is cut", () => {
  assert.equal(firstLine("\n  abc\ndef"), "abc …");
  assert.equal(firstLine("abc\n"), "abc");
  assert.equal(firstLine("x".repeat(500), 10), "xxxxxxxxx…");
});

test("sessions that wait come first", () => {
  const make = (id, more) => ({ id, title: id, created_at: "", updated_at: "2025-01-01", state: "IDLE", live: true, pending_approvals: 0, ...more });
  const sessions = [make("a"), make("b", { updated_at: "2025-02-01" }), make("c", { pending_approvals: 2 }), make("d", { parent: "a" }), make("e", { state: "AWAITING_INPUT", directory: "/x" })];
  assert.deepEqual(choose(sessions, "all", "").map((session) => session.id), ["c", "e", "b", "a"]);
  assert.deepEqual(choose(sessions, "waiting", "").map((session) => session.id), ["c", "e"]);
  assert.deepEqual(choose(sessions, "all", "/X e").map((session) => session.id), ["e"]);
  assert.equal(waits(sessions[0]), false);
  assert.equal(stateText(sessions[2]), "2 approvals");
  assert.equal(stateText({ ...sessions[0], pending_approvals: 0, queue_position: 3 }), "waits for room, place 3");
});

test("numbers are short", () => {
  assert.deepEqual([tokens(950), tokens(12_345), tokens(120_000), tokens(1_250_000)], ["950", "12.3k", "120k", "1.3M"]);
  assert.deepEqual([cost(0), cost(0.0042), cost(1.239), cost(0.000001)], ["$0", "$0.0042", "$1.24", "<$0.0001"]);
  assert.deepEqual([duration(3), duration(1234), duration(65_000), duration(7_200_000)], ["3 ms", "1.2 s", "1 min 5 s", "2 h"]);
  assert.deepEqual([bytes(10), bytes(2048), bytes(5_000_000)], ["10 B", "2 KiB", "4.8 MiB"]);
  assert.deepEqual([percent(0, 10), percent(999, 1000), percent(10, 10), percent(1, 1000)], ["0%", "99%", "100%", "1%"]);
  assert.deepEqual([ago(0, 1000), ago(0, 600_000), ago(0, 7_200_000)], ["now", "10 min", "2 h"]);
  assert.equal(counted(1, "entry", "entries") + counted(2, "entry", "entries"), "1 entry2 entries");
});

test("keys are unique within a group and found by precedence", () => {
  for (const group of new Set(BINDINGS.map((binding) => binding.group))) {
    const keys = BINDINGS.filter((binding) => binding.group === group).flatMap((binding) => binding.keys);
    assert.equal(new Set(keys).size, keys.length, group);
  }
  assert.equal(bindingOf("n", ["Approvals", "Everywhere"]), "deny");
  assert.equal(bindingOf("n", ["Everywhere"]), "new");
  assert.equal(keyName({ key: ".", ctrlKey: true, metaKey: false, altKey: false, shiftKey: false }), "Ctrl+.");
  assert.equal(keyName({ key: "?", ctrlKey: false, metaKey: false, altKey: false, shiftKey: true }), "?");
});
