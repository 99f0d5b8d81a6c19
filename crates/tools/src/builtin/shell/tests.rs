use std::sync::{Arc, Mutex};

use pintle_env::OutputSink;
use serde_json::json;

use super::*;
use crate::error::ToolErrorKind;
use crate::tests::harness::Harness;

/// Returns what the model reads, without the duration.
async fn shown(harness: &Harness, arguments: serde_json::Value) -> String {
    timeless(&harness.call(Shell::new(), &arguments.to_string()).await)
}

fn timeless(text: &str) -> String {
    let (rest, duration) = text.rsplit_once("\nDuration: ").unwrap();
    let milliseconds = duration.strip_suffix(" ms").unwrap();
    assert!(milliseconds.parse::<u64>().unwrap() < 60_000, "{duration}");
    rest.to_owned()
}

#[tokio::test]
async fn a_non_zero_exit_is_a_result() {
    let harness = Harness::new();
    let cases = [
        ("printf 'a\\nb\\n'", "ok: a\nb\nExit code: 0"),
        ("printf a; printf b >&2; exit 3", "ok: ab\nExit code: 3"),
        ("true", "ok: (no output)\nExit code: 0"),
        ("kill -KILL $$", "ok: (no output)\nExit code: 137"),
        ("pwd", "ok: DIR\nExit code: 0"),
        ("printf '\\377'", "ok: \u{FFFD}\nExit code: 0"),
    ];
    for (command, expected) in cases {
        // The order of output from different streams is not defined.
        let answer = shown(&harness, json!({"command": command})).await.replace("ba\n", "ab\n");
        assert_eq!(answer, expected, "{command}");
    }
}

#[tokio::test]
async fn a_timed_out_command_is_an_error() {
    let harness = Harness::new();
    let answer = shown(&harness, json!({"command": "echo begun; exec sleep 60", "timeout_ms": 1500})).await;
    insta::assert_snapshot!(answer, @"
    error: begun
    [ERROR: Command timed out after 1500ms. Partial output is shown above.
    You can retry with a longer timeout by setting the timeout_ms parameter.]
    Exit code: 143
    ");
}

#[tokio::test]
async fn remaining_child_processes_are_terminated_and_counted() {
    let harness = Harness::new();
    let answer = shown(&harness, json!({"command": "sleep 60 & echo started"})).await;
    insta::assert_snapshot!(answer, @"
    ok: started
    [1 process of this command still ran when it returned and was ended: commands in the background are not kept. Run what you need within one call, or start what shall run on with shell_start, if you have that tool.]
    Exit code: 0
    ");
}

#[test]
fn the_call_then_tool_then_session_sets_the_timeout() {
    let timeouts = CommandTimeouts { default: Duration::from_secs(10), max: Duration::from_secs(600) };
    let anthropic = Shell::with_default_timeout(Duration::from_secs(120));
    let long = Shell::with_default_timeout(Duration::from_secs(9000));
    let cases = [
        (Shell::new(), None, 10_000, None),
        (Shell::new(), Some(1), 1, None),
        (Shell::new(), Some(600_000), 600_000, None),
        (Shell::new(), Some(900_000), 600_000, Some(900_000)),
        (anthropic, None, 120_000, None),
        (anthropic, Some(5), 5, None),
        (long, None, 600_000, None),
    ];
    for (shell, requested, granted, excessive) in cases {
        let timeout = shell.timeout(requested, timeouts);
        assert_eq!(timeout.granted, Duration::from_millis(granted), "{shell:?} {requested:?}");
        assert_eq!(timeout.excessive, excessive.map(Duration::from_millis), "{shell:?} {requested:?}");
    }
}

#[tokio::test]
async fn a_timeout_above_the_maximum_is_reduced() {
    let harness = Harness::new();
    let answer = shown(&harness, json!({"command": "echo a", "timeout_ms": 900_000})).await;
    insta::assert_snapshot!(answer, @"
    ok: a
    [timeout_ms 900000 is more than the maximum: 600000 was used.]
    Exit code: 0
    ");
}

#[tokio::test]
async fn output_is_streamed() {
    let harness = Harness::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&seen);
    let sink: OutputSink = Arc::new(move |chunk| keep.lock().unwrap().extend(chunk.bytes));
    let cx = harness.context().with_on_output(sink);
    harness.execute_in(&cx, Shell::new(), r#"{"command": "echo one; echo two"}"#).await;
    assert_eq!(*seen.lock().unwrap(), b"one\ntwo\n");
}

#[tokio::test]
async fn a_cancelled_command_is_terminated() {
    let harness = Harness::new();
    let cx = harness.context();
    let cancel = cx.cancel.clone();
    // Cancel once the command runs, which its output shows.
    let cx = cx.with_on_output(Arc::new(move |_| cancel.cancel()));
    let execution = harness.execute_in(&cx, Shell::new(), r#"{"command": "echo up; exec sleep 60"}"#).await;
    assert_eq!(execution.error, Some(ToolErrorKind::Cancelled));
    assert!(execution.result.is_error);
}

#[tokio::test]
async fn a_large_output_is_truncated_for_the_model_only() {
    let harness = Harness::new();
    let execution = harness.execute(Shell::new(), r#"{"command": "seq 1 400000"}"#).await;
    let whole = execution.output.to_text_lossy().unwrap();
    assert!(execution.output.is_spooled());
    assert!(whole.starts_with("1\n2\n") && timeless(&whole).ends_with("\n399999\n400000\nExit code: 0"));
    let shown = execution.result.text();
    assert!(shown.starts_with("1\n2\n") && shown.contains("characters were removed from the middle"));
    assert!(
        shown.contains("[... 399746 lines omitted ...]")
            && timeless(&shown).ends_with("400000\nExit code: 0")
    );
}
