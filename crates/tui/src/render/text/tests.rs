use std::path::Path;
use std::time::Duration;

use pintle_agent::{BudgetKind, Outcome, OutcomeStatus, SessionId};
use pintle_host::sanitize::diff_lines;
use pintle_llm::Usage;
use serde_json::{Value, json};

use super::super::transcript::RUN_DIFF_LINES;
use super::super::{DemoResult, summary};
use super::*;

const PLAIN: Style = Style::PLAIN;

fn event(kind: &str, data: &Value) -> SessionEvent {
    let record = json!({
        "seq": 0, "timestamp": "2026-01-02T03:04:05.000Z", "session_id": "s", "kind": kind, "data": data,
    });
    serde_json::from_value(record).unwrap()
}

fn transcript(view: &mut TextView, events: &[(&str, Value)]) -> String {
    events.iter().map(|(kind, data)| view.event(&event(kind, data))).collect()
}

fn footer<'a>(session_id: &'a SessionId, outcome: &'a Outcome) -> Footer<'a> {
    let duration = Duration::from_millis(4_250);
    Footer {
        is_stored: false,
        session_id,
        outcome,
        answer: None,
        exit_code: 0,
        failure: None,
        error: None,
        duration,
        cost: None,
        subagents: None,
        demo: None,
    }
}

fn sample_run() -> Vec<(&'static str, Value)> {
    let diff = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-old\n+new\n";
    vec![
        ("SESSION_START", json!({"provider": "openai", "model": "m", "working_directory": "/w"})),
        ("USER_INPUT", json!({"content": "fix it"})),
        ("REQUEST_PREPARED", json!({"fingerprint": "00000000000000ff", "messages": 2})),
        ("REASONING_START", json!({})),
        ("REASONING_DELTA", json!({"delta": "Where "})),
        ("REASONING_DELTA", json!({"delta": "is it?"})),
        ("REASONING_END", json!({"text": "Where is it?"})),
        ("ASSISTANT_TEXT_START", json!({})),
        ("ASSISTANT_TEXT_DELTA", json!({"delta": "I look "})),
        ("ASSISTANT_TEXT_DELTA", json!({"delta": "around."})),
        ("ASSISTANT_TEXT_END", json!({"text": "I look around."})),
        (
            "MODEL_RESPONSE",
            json!({
                "response_id": "r", "model": "m", "finish_reason": {"reason": "tool_calls"},
                "usage": {"input_tokens": 1200, "output_tokens": 34, "total_tokens": 1234, "cache_read_tokens": 1000},
            }),
        ),
        (
            "TOOL_CALL_START",
            json!({"call_id": "1", "tool_name": "read_file", "arguments": {"file_path": "a.rs"}}),
        ),
        (
            "TOOL_CALL_START",
            json!({"call_id": "2", "tool_name": "shell", "arguments": {"command": "cargo test"}}),
        ),
        ("TOOL_CALL_OUTPUT_DELTA", json!({"call_id": "2", "delta": "compiling\n"})),
        (
            "TOOL_CALL_END",
            json!({"call_id": "1", "tool_name": "read_file", "output": "1 | old", "duration_ms": 3}),
        ),
        (
            "TOOL_CALL_END",
            json!({
                "call_id": "2", "tool_name": "shell", "error": "failed", "duration_ms": 1_250,
                "output": "1\n2\n\n3\n4\n5\ntest result: FAILED\nExit code: 101\nDuration: 1250 ms",
            }),
        ),
        (
            "TOOL_CALL_START",
            json!({"call_id": "3", "tool_name": "edit_file", "arguments": {"file_path": "b.rs"}}),
        ),
        (
            "TOOL_CALL_END",
            json!({
                "call_id": "3", "tool_name": "edit_file", "error": "edit_conflict", "duration_ms": 0,
                "output": "old_string was not found in b.rs\nline 1 differs",
            }),
        ),
        (
            "TOOL_CALL_START",
            json!({"call_id": "4", "tool_name": "edit_file", "arguments": {"file_path": "src/a.rs"}}),
        ),
        (
            "TOOL_CALL_END",
            json!({
                "call_id": "4", "tool_name": "edit_file", "output": "edited", "duration_ms": 2,
                "changes": [{"path": "src/a.rs", "kind": "modified", "diff": diff}],
            }),
        ),
        ("WARNING", json!({"message": "Context usage at ~80%"})),
        ("ASSISTANT_TEXT_START", json!({})),
        ("ASSISTANT_TEXT_DELTA", json!({"delta": "Done.\n"})),
        ("ASSISTANT_TEXT_END", json!({"text": "Done.\n"})),
        ("PROCESSING_END", json!({"state": "IDLE"})),
    ]
}

fn outcome() -> Outcome {
    let mut outcome = Outcome::new(OutcomeStatus::Completed);
    outcome.text = "Done.".to_owned();
    outcome.usage = Usage::new(12_345, 678);
    outcome.usage.cache_read_tokens = Some(9_000);
    outcome.usage.cache_write_tokens = Some(1_000);
    outcome.model_calls = 2;
    outcome.tool_calls = 4;
    outcome
}

#[test]
fn non_zero_exit_is_neither_success_nor_failure() {
    let end = json!({"call_id": "1", "tool_name": "shell", "output": "", "exit_code": 3, "duration_ms": 2});
    let shown = transcript(&mut TextView::new(PLAIN, Detail::Normal), &[("TOOL_CALL_END", end.clone())]);
    assert_eq!(shown, "[shell] (exit 3, 2 ms)\n");
    let style = Style { terminal: true, colour: false, moves: true };
    let shown = transcript(&mut TextView::new(style, Detail::Normal), &[("TOOL_CALL_END", end)]);
    assert_eq!(shown, "• shell exit 3, 2 ms\n");
}

#[test]
fn nouns_agree_with_their_number() {
    assert_eq!(summary::tokens(&Usage::new(1, 1)), "1 token in, 1 out");
    assert_eq!(summary::tokens(&Usage::new(1_200, 0)), "1,200 tokens in, 0 out");
    assert_eq!(summary::amount_of_budget(BudgetKind::Tokens, 1), "1 token");
}

#[test]
fn a_compaction_is_shown_with_the_entries_that_it_summarized() {
    for (through, from, expected) in [
        (954, Some(950), "4 entries"),
        (951, Some(950), "1 entry"),
        (12, Some(0), "12 entries"),
        (12, None, "12 entries"),
    ] {
        let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
        let mut end =
            json!({"through": through, "tokens_before": 9_000, "tokens_after": 1_000, "usage": usage});
        if let Some(from) = from {
            end["from"] = json!(from);
        }
        let mut view = TextView::new(PLAIN, Detail::Normal);
        let shown = transcript(&mut view, &[("COMPACTION_END", end)]);
        assert!(shown.contains(&format!("[compacted] {expected} summarized, ")), "{shown}");
    }
}

#[test]
fn run_is_formatted_as_a_transcript() {
    let mut view = TextView::new(PLAIN, Detail::Normal);
    let mut shown = transcript(&mut view, &sample_run());
    shown.push_str(&view.footer(&footer(&SessionId::new("s"), &outcome())));
    insta::assert_snapshot!(shown, @r"
    I look around.

    [read_file] a.rs (ok, 3 ms)
    [shell] cargo test (failed, 1.2 s)
        3
        4
        5
        test result: FAILED
        Exit code: 101
        Duration: 1250 ms
    [edit_file] b.rs (does not apply, 0 ms)
        old_string was not found in b.rs
        line 1 differs
    [edit_file] src/a.rs (ok, 2 ms)
        --- a/src/a.rs
        +++ b/src/a.rs
        @@ -1 +1 @@
        -old
        +new
    [warning] Context usage at ~80%

    Done.

    [done] 2 model calls, 4 tool calls, 12,345 tokens in (9,000 cached, 1,000 written to cache), 678 out, 4.2 s
    ");
}

/// Returns the output of a command as shown below the call.
fn formatted_output(output: &str) -> String {
    let end = json!({"call_id": "1", "tool_name": "shell", "output": output, "duration_ms": 1});
    let shown = transcript(&mut TextView::new(PLAIN, Detail::Normal), &[("TOOL_CALL_END", end)]);
    shown.strip_prefix("[shell] (ok, 1 ms)\n").unwrap().to_owned()
}

#[test]
fn command_output_keeps_its_form() {
    let cases = [
        ("def f():\n    return 1\n", "    def f():\n        return 1\n"),
        ("\n\tall:\n\n\n  x \n", "\n    \tall:\n\n\n      x \n"),
        ("0\n\n\n1\n\n2\n3\n4\n5\n6\n", "    1\n\n    2\n    3\n    4\n    5\n    6\n"),
        ("", ""),
    ];
    for (output, expected) in cases {
        assert_eq!(formatted_output(output), expected, "{output:?}");
    }
    let blank = formatted_output(&format!("begin{}end\n", "\n".repeat(3_000)));
    assert_eq!(blank, "    end\n");
}

#[test]
fn tool_errors_keep_their_form() {
    let output = "old_string was not found:\n\n    return 1\nmore";
    let end = json!({
        "call_id": "1", "tool_name": "edit_file", "error": "edit_conflict", "output": output, "duration_ms": 1,
    });
    let shown = transcript(&mut TextView::new(PLAIN, Detail::Normal), &[("TOOL_CALL_END", end)]);
    assert!(shown.ends_with("\n    old_string was not found:\n\n        return 1\n"), "{shown}");
}

#[test]
fn diffs_keep_their_form_and_escape_hidden_characters() {
    let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n \tdef f():\n-\n+one\rtwo\u{200b}\n+\n+\treturn 1\r\n";
    let end = json!({
        "call_id": "1", "tool_name": "edit_file", "output": "", "duration_ms": 1,
        "changes": [{"path": "x", "kind": "modified", "diff": diff}],
    });
    let shown = transcript(&mut TextView::new(PLAIN, Detail::Normal), &[("TOOL_CALL_END", end)]);
    let expected = "\n     \tdef f():\n    -\n    +one\\rtwo\\u{200b}\n    +\n    +\treturn 1\\r\n";
    assert!(shown.ends_with(expected), "{shown}");
    // A carriage return on every line is the line ending of the file.
    let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+b\r\n";
    assert_eq!(diff_lines(diff).collect::<Vec<_>>()[3..], ["-a", "+b"]);
}

#[test]
fn verbose_shows_reasoning_requests_and_tokens() {
    let mut view = TextView::new(PLAIN, Detail::Verbose);
    let session_id = SessionId::new("s");
    let header =
        Header { session_id: &session_id, provider: "openai", model: "m", directory: Path::new("/w") };
    let shown = view.header(&header) + &transcript(&mut view, &sample_run()[..12]);
    insta::assert_snapshot!(shown, @r"
    [session] s: openai m in /w
    [request] 2 messages

    [reasoning] Where is it?

    I look around.

    [response] m: 1,200 tokens in (1,000 cached), 34 out
    ");
}

#[test]
fn quiet_shows_the_final_response() {
    let mut view = TextView::new(PLAIN, Detail::Quiet);
    assert_eq!(transcript(&mut view, &sample_run()), "");
    assert_eq!(view.footer(&footer(&SessionId::new("s"), &outcome())), "Done.\n");
}

#[test]
fn interrupted_text_is_marked() {
    let mut view = TextView::new(PLAIN, Detail::Normal);
    let events = [
        ("ASSISTANT_TEXT_DELTA", json!({"delta": "I think"})),
        ("ASSISTANT_TEXT_END", json!({"text": "I think", "interrupted": true})),
        ("ASSISTANT_TEXT_DELTA", json!({"delta": "I think so."})),
        ("ASSISTANT_TEXT_END", json!({"text": "I think so."})),
    ];
    let shown = transcript(&mut view, &events);
    assert_eq!(shown, "I think\n\n[interrupted] response cut off\n\nI think so.\n");
}

#[test]
fn control_characters_are_removed() {
    let events = [
        ("ASSISTANT_TEXT_DELTA", json!({"delta": "a\u{1b}[2Jb"})),
        (
            "TOOL_CALL_START",
            json!({"call_id": "1", "tool_name": "shell", "arguments": {"command": "x\u{1b}[2J"}}),
        ),
        (
            "TOOL_CALL_END",
            json!({
                "call_id": "1", "tool_name": "shell", "output": "\u{1b}]0;title\u{7}out", "duration_ms": 1,
                "changes": [{"path": "f", "kind": "modified", "diff": "+\u{1b}c\n"}],
            }),
        ),
        ("WARNING", json!({"message": "\u{1b}[31m"})),
    ];
    // Piped text may end up on a terminal, too.
    for terminal in [true, false] {
        let mut view = TextView::new(Style { terminal, colour: false, moves: terminal }, Detail::Normal);
        assert!(!transcript(&mut view, &events).contains('\u{1b}'), "{terminal}");
    }
}

#[test]
fn long_diffs_are_truncated() {
    let mut view = TextView::new(PLAIN, Detail::Normal);
    let diff = "+x\n".repeat(1_000);
    let data = json!({
        "call_id": "1", "tool_name": "write_file", "output": "", "duration_ms": 1,
        "changes": [{"path": "f", "kind": "added", "diff": diff}],
    });
    let shown = transcript(&mut view, &[("TOOL_CALL_END", data)]);
    assert_eq!(shown.lines().count(), 1 + RUN_DIFF_LINES + 1);
    assert!(shown.ends_with("    … 880 more lines\n"), "{shown}");
}

#[test]
fn demo_footer_shows_tests_and_diff() {
    let mut view = TextView::new(PLAIN, Detail::Normal);
    let (session_id, outcome) = (SessionId::new("s"), outcome());
    let mut demo = DemoResult {
        directory: "/w".into(),
        passed: true,
        test_output: "running 9 tests\ntest result: ok. 9 passed\n   Doc-tests\ntest result: ok. 1 passed\n"
            .into(),
        diff: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n".into(),
    };
    let passed = Footer { demo: Some(&demo), ..footer(&session_id, &outcome) };
    insta::assert_snapshot!(view.footer(&passed), @r"
    [done] 2 model calls, 4 tool calls, 12,345 tokens in (9,000 cached, 1,000 written to cache), 678 out, 4.2 s

    Final test run: passed
        test result: ok. 9 passed
        test result: ok. 1 passed

    Changes:

    --- a/x
    +++ b/x
    @@ -1 +1 @@
    -old
    +new

    The project is kept in /w
    ");
    demo.passed = false;
    demo.diff.clear();
    let failed = Footer { demo: Some(&demo), ..footer(&session_id, &outcome) };
    let shown = view.footer(&failed);
    assert!(shown.contains("Final test run: failed\n") && shown.contains("No files changed."), "{shown}");
}

#[test]
fn long_diff_lines_are_truncated() {
    let mut view = TextView::new(PLAIN, Detail::Normal);
    let diff = format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+{}\n", "é".repeat(100_000));
    let change = json!({"path": "x", "kind": "modified", "diff": diff});
    let ended = json!({
        "call_id": "1", "tool_name": "edit_file", "output": "", "duration_ms": 3, "changes": [change],
    });
    let shown = transcript(&mut view, &[("TOOL_CALL_END", ended)]);
    assert!(shown.ends_with(&format!("\n    +{}…\n", "é".repeat(499))), "{} bytes", shown.len());
}

#[test]
fn events_of_subagents_are_labelled_as_in_a_conversation() {
    let mut view = TextView::new(PLAIN, Detail::Normal);
    let requested = json!({
        "call_id": "1", "tool_name": "shell", "arguments": {}, "reason": "it runs", "fingerprint": "00000000000000ff",
    });
    let events = [
        ("SUBAGENT_SPAWNED", 0, json!({"agent_id": "agent_1", "child": "c", "task": "Look."})),
        ("WARNING", 1, json!({"message": "slow"})),
        ("STEERING_INJECTED", 1, json!({"content": "be quick"})),
        ("APPROVAL_REQUESTED", 1, requested),
    ];
    let mut shown = String::new();
    for (kind, depth, data) in events {
        let mut event = event(kind, &data);
        (event.depth, event.session_id) = (depth, SessionId::new(if depth == 0 { "s" } else { "c" }));
        shown.push_str(&view.event(&event));
    }
    insta::assert_snapshot!(shown, @r"
    [agent_1] started: Look.
    [agent_1] warning: slow
    [agent_1] steering: be quick
    [agent_1] shell needs approval: it runs
    ");
}

#[test]
fn blank_text_before_the_first_word_is_dropped() {
    let mut view = TextView::new(PLAIN, Detail::Normal);
    let deltas = ["\n", "\n", "Done."].map(|delta| ("ASSISTANT_TEXT_DELTA", json!({ "delta": delta })));
    assert_eq!(transcript(&mut view, &deltas), "Done.");
}

#[test]
fn changed_words_are_marked_where_there_are_colours() {
    let change = json!({"path": "x", "kind": "modified", "diff": "-let a = 1;\n+let a = 2;\n"});
    let end = json!({
        "call_id": "1", "tool_name": "edit_file", "output": "", "duration_ms": 1, "changes": [change],
    });
    for colour in [false, true] {
        let style = Style { terminal: true, colour, moves: true };
        let mut view = TextView::new(style, Detail::Normal);
        let shown = transcript(&mut view, &[("TOOL_CALL_END", end.clone())]);
        assert_eq!(shown.contains("\x1b[7;31m1\x1b[0m"), colour, "{shown:?}");
        assert_eq!(shown.ends_with("    -let a = 1;\n    +let a = 2;\n"), !colour, "{shown:?}");
    }
}
