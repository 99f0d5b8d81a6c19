// The scripts of the double's sessions.

import { Script } from "./events.mjs";

export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAgCAIAAAAt/+nTAAAAT0lEQVR42u3XoQ0AIAwEQAZjMEZjIgyGEVigqBoIl7x80VOfljFXmNp6mNv6BQAAAAAgBXjl0FMfAAAAACAHsMQAAAAA/gFLDAAAAPAtYAMO67Txjr9LvQAAAABJRU5ErkJggg==";

const DIFF = `@@ -10,9 +10,11 @@ const VALUES: [(u32, &str); 13] = [
     (10, "X"),
-    (5, "V"),
+    (9, "IX"),
+    (5, "V"),
+    (4, "IV"),
     (1, "I"),
 ];
 
 /// Writes a number in Roman numerals.
-pub fn to_roman(number: u32) -> String {
+pub fn to_roman(mut number: u32) -> String {
     let mut out = String::new();
     // Largest values first
`;

const TEST_OUTPUT = "\u001b[32m   Compiling\u001b[0m roman v0.1.0 (/project/roman)\n\u001b[32m    Finished\u001b[0m test profile in 1.20s\n     Running tests/roman.rs\n\nrunning 3 tests\ntest one ... \u001b[32mok\u001b[0m\ntest nine ... \u001b[31mFAILED\u001b[0m\ntest forty ... \u001b[32mok\u001b[0m\n\nfailures:\n\n---- nine stdout ----\nassertion `left == right` failed\n  left: \"VIIII\"\n right: \"IX\"\n\ntest result: \u001b[31mFAILED\u001b[0m. 2 passed; 1 failed\n";

function roman() {
  const s = new Script("s-roman");
  s.start();
  s.input("Mend the failing test, and explain what was wrong.", { images: [{ media_type: "image/png", bytes: 78, hash: "0a0b" }] });
  s.add("PROJECT_LOADED", { documents: [{ path: "/project/roman/AGENTS.md", bytes: 412, truncated: false }], skills: [], skipped: [] });
  s.request(2);
  s.reasoning("The test for nine fails. I should look at the table of values first, then run the tests.");
  s.text("I look at the test first, and run it.");
  s.response(9200, 160, 7900, "tool_calls");
  s.call("c1", "update_plan", "read", { plan: [{ step: "Run the tests", status: "in_progress" }, { step: "Mend `to_roman`", status: "pending" }, { step: "Run the tests again", status: "pending" }] });
  s.result("c1", "update_plan", "0 of 3 steps completed");
  s.call("c2", "read_file", "read", { file_path: "src/lib.rs" });
  s.result("c2", "read_file", Array.from({ length: 40 }, (_, i) => `${String(i + 1).padStart(5)}\tlet line_${i} = ${i};`).join("\n"));
  s.call("c3", "shell", "command", { command: "cargo test", timeout_ms: 60000 });
  s.result("c3", "shell", TEST_OUTPUT, { exit_code: 101, duration_ms: 3480 });
  s.add("CONTEXT_USAGE", { window: 200000, used: 64120, system: 1520, tools: 4100, history: 58500 });
  s.request(5);
  s.text("The table has no entry for nine. I add the **subtractive pairs**:\n\n| value | numeral |\n|---|---|\n| 9 | `IX` |\n| 4 | `IV` |\n\n1. Extend the table\n2. Run the tests\n   - all of them\n\n```rust\nfn main() {\n    println!(\"{}\", to_roman(9)); // IX\n}\n```\n\nSee [the reference](https://example.org/roman).");
  s.response(11800, 240, 9100, "tool_calls");
  s.add("CALL_JUDGED", { call_id: "c4", tool_name: "edit_file", permission: "allow", steps: [{ gate: "rules", permission: "allow", rule: "mode edit" }] });
  s.add("CHECKPOINT_TAKEN", { reason: "before_call", checkpoint: { id: "5f3a", entries: 214 }, turns: 4 });
  s.call("c4", "edit_file", "edit", { file_path: "src/lib.rs", old_string: "(5, \"V\")", new_string: "(9, \"IX\")" });
  s.result("c4", "edit_file", "Replaced 1 occurrence.", { changes: [{ path: "src/lib.rs", kind: "modified", diff: DIFF }] });
  s.request(7, { message: 4 });
  s.text("Now the tests again.");
  s.response(12900, 40, 0, "tool_calls");
  s.call("c5", "shell", "command", { command: "cargo test" });
  s.result("c5", "shell", "running 3 tests\n...\ntest result: ok. 3 passed\n", { exit_code: 0, duration_ms: 2100 });
  s.call("c6", "web_fetch", "fetch", { url: "https://example.org/roman" });
  s.result("c6", "web_fetch", "", { error: "timed_out", timeout_ms: 30000, duration_ms: 30000 });
  s.add("WARNING", { message: "Context usage at ~84% of context window" });
  s.call("c7", "update_plan", "read", { plan: [{ step: "Run the tests", status: "completed" }, { step: "Mend `to_roman`", status: "completed" }, { step: "Run the tests again", status: "in_progress" }] });
  s.result("c7", "update_plan", "2 of 3 steps completed");
  s.request(10);
  s.text("All three tests pass. The table had no entries for **nine** and **four**, so the function repeated the next smaller numeral.");
  s.response(14100, 90, 12800);
  s.end();
  const hunk = { old_start: 10, new_start: 10, lines: [{ kind: "context", text: "    (10, \"X\")," }, { kind: "remove", text: "    (5, \"V\")," }, { kind: "add", text: "    (9, \"IX\")," }, { kind: "add", text: "    (5, \"V\")," }] };
  const diff = [{ path: "src/lib.rs", change: "modified", hunks: [hunk] }, { path: "notes.md", change: "added", hunks: [{ old_start: 0, new_start: 1, lines: [{ kind: "add", text: "# Notes" }] }] }];
  return [[s, { title: "Mend the failing test of to_roman", diff }]];
}

function long() {
  const s = new Script("s-long");
  s.start();
  let call = 0;
  while (s.events.length < 5000) {
    s.input(`Step ${s.events.length}: rename the next module.`);
    for (let round = 0; round < 8; round += 1) {
      s.request(round * 2 + 2);
      s.text(`Round ${round}. I rename \`module_${call}\` and look at what depends on it.`);
      s.response(4000 + call * 10, 50, 3500, "tool_calls");
      for (let i = 0; i < 3; i += 1) {
        call += 1;
        s.call(`c${call}`, i === 2 ? "edit_file" : "grep", i === 2 ? "edit" : "search", i === 2 ? { file_path: `src/module_${call}.rs`, old_string: "a", new_string: "b" } : { pattern: `module_${call}`, path: "src" });
        s.result(`c${call}`, i === 2 ? "edit_file" : "grep", `src/lib.rs:${call}: mod module_${call};`, i === 2 ? { changes: [{ path: `src/module_${call}.rs`, kind: "modified", diff: "@@ -1 +1 @@\n-a\n+b\n" }] } : {});
      }
    }
    s.end();
  }
  return [[s, { title: "Rename four hundred modules" }]];
}

function streaming() {
  const s = new Script("s-stream");
  s.start();
  return [[s, { title: "Text as it is written" }]];
}

function approval() {
  const s = new Script("s-approval");
  s.start();
  s.input("Add the subtractive pairs.");
  s.request(2);
  s.text("I change the table.");
  s.response(2100, 80, 1900, "tool_calls");
  const args = { file_path: "src/lib.rs", old_string: "(5, \"V\")", new_string: "(9, \"IX\"), (5, \"V\")" };
  const fingerprint = "00112233445566778899aabbccddeeff";
  s.add("APPROVAL_REQUESTED", { call_id: "c1", tool_name: "edit_file", call_kind: "edit", arguments: args, reason: "no rule names this file", fingerprint });
  const diff = `--- a/src/lib.rs\n+++ b/src/lib.rs\n${DIFF}`;
  const approvals = [{ call_id: "c1", fingerprint, session: "s-approval", tool_name: "edit_file", arguments: args, reason: "no rule names this file", sandbox: "inside", writes: ["src/lib.rs"], suggested_rules: ["edit_file(src/**)"], diff }];
  return [[s, { title: "Wants to change a file", approvals, mode: "ask" }]];
}

function agents() {
  const s = new Script("s-agents");
  s.start();
  s.input("Find out who calls `to_roman`, and whether the documentation is right.");
  s.request(2);
  s.text("I ask two subagents.");
  s.response(2100, 80, 1900, "tool_calls");
  const made = [];
  for (const [n, task] of ["Find out who calls `to_roman`.", "Read the documentation of `to_roman` and compare it with the code."].entries()) {
    const id = `s-agents-${n + 1}`;
    s.call(`c${n}`, "spawn_agent", "agent", { task });
    s.add("SUBAGENT_SPAWNED", { agent_id: `agent_${n + 1}`, child: id, task });
    const child = new Script(id, { at: s.now, parent: "s-agents", depth: 1 });
    child.start();
    child.input(task);
    child.request(2);
    child.text("I search for it.");
    child.response(1500, 30, 0, "tool_calls");
    child.call("g", "grep", "search", { pattern: "to_roman", path: "." });
    child.result("g", "grep", "src/main.rs:4: to_roman(9)", { duration_ms: 40 });
    if (n === 0) {
      child.request(4);
      child.text("Only `src/main.rs` calls it.");
      child.response(1700, 30, 1400);
      child.end();
      child.add("SESSION_END", { state: "CLOSED" });
    } else child.call("r", "read_file", "read", { file_path: "docs/roman.md" });
    made.push([child, { title: task, parent: "s-agents", live: n === 1 }]);
  }
  s.add("SUBAGENT_ENDED", { agent_id: "agent_1", child: "s-agents-1", status: "COMPLETED", turns_used: 2 }, 3200);
  s.result("c0", "spawn_agent", "Only `src/main.rs` calls it.", { duration_ms: 3200 });
  return [[s, { title: "Two subagents" }], ...made];
}

export const HOSTILE_HTML = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script><svg onload=window.hacked=1>";

function hostile() {
  const s = new Script("s-hostile");
  s.start();
  s.input(HOSTILE_HTML);
  s.request(2);
  s.text(`${HOSTILE_HTML}\n\n[click me](javascript:window.hacked=1) and <a href="javascript:window.hacked=1">me</a> and [good](https://example.org/)\n\n![pixel](https://evil.example/pixel.png)\n\nuser\u202enimda\u202c and zero\u200bwidth\n\n\`\`\`html\n${HOSTILE_HTML}\n\`\`\`\n\n| ${HOSTILE_HTML.replaceAll("|", "")} |\n|---|\n| [x](javascript:alert(1)) |`);
  s.response(2000, 100, 0, "tool_calls");
  s.call("c1", "shell", "command", { command: `echo '${HOSTILE_HTML}' \u202e` });
  s.result("c1", "shell", `${HOSTILE_HTML}\n\u001b]0;title\u0007\u001b[31mred\u001b[0m \u202eevil\n`, { exit_code: 0 });
  s.call("c2", "shell", "command", { command: "head -c 10000000 /dev/zero | tr '\\0' x" });
  s.result("c2", "shell", "x".repeat(10_000_000), { exit_code: 0 });
  s.call("c3", `<b>tool</b>`, "edit", { file_path: `<i>a</i>\u202e.rs`, old_string: "a", new_string: HOSTILE_HTML });
  s.result("c3", `<b>tool</b>`, "", { changes: [{ path: `<i>a</i>\u202e.rs`, kind: "modified", diff: `@@ -1 +1 @@\n-a\n+${HOSTILE_HTML}\n` }], images: [{ media_type: `image/png"><script>`, bytes: 5 }] });
  s.request(4);
  s.text("y".repeat(10_000_000));
  s.response(2000, 100, 0);
  s.end();
  return [[s, { title: `${HOSTILE_HTML} \u202etitle` }]];
}

function question() {
  const s = new Script("s-question");
  s.start();
  s.input("Release it.");
  s.request(2);
  s.response(2100, 40, 1900, "tool_calls");
  s.call("c1", "ask_user", "read", { question: "Which version is it?", options: ["0.2.0", "1.0.0"] });
  s.result("c1", "ask_user", "The question was asked.");
  s.end("AWAITING_INPUT");
  return [[s, { title: "Asks for the version", diff: null }]];
}

function others() {
  return Array.from({ length: 70 }, (_, i) => {
    const s = new Script(`s-old-${i}`, { at: Date.parse("2025-10-01T08:00:00Z") + i * 3_600_000 });
    s.start();
    s.input(`Task ${i}`);
    s.request(2);
    s.text("Done.");
    s.response(1000 + i, 10, 0);
    s.end();
    if (i % 2 === 0) s.add("SESSION_END", { state: "CLOSED" });
    return [s, { title: `Earlier task ${i}`, live: false, directory: `/project/other-${i % 5}` }];
  });
}

export const ALL = [roman, long, streaming, approval, agents, hostile, question, others];
