use std::sync::{Arc, Mutex};

use pintle_env::OutputSink;
use serde_json::json;

use super::*;
use crate::harness::Harness;

/// What the model sees, without the duration, which no two runs share.
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
async fn output_comes_with_the_exit_code() {
    let harness = Harness::new();
    let rows = [
        ("printf 'a\\nb\\n'", "ok: a\nb\nExit code: 0"),
        ("printf a; printf b >&2; exit 3", "error: ab\nExit code: 3"),
        ("true", "ok: (no output)\nExit code: 0"),
        ("kill -KILL $$", "error: (no output)\nExit code: 137"),
        ("pwd", "ok: DIR\nExit code: 0"),
        ("printf '\\377'", "ok: \u{FFFD}\nExit code: 0"),
    ];
    for (command, expected) in rows {
        // Both streams of one command may arrive together, and then in either order.
        let answer = shown(&harness, json!({"command": command})).await.replace("ba\n", "ab\n");
        assert_eq!(answer, expected, "{command}");
    }
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_and_said_so() {
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
async fn jobs_that_are_left_running_are_ended_and_named() {
    let harness = Harness::new();
    let answer = shown(&harness, json!({"command": "sleep 60 & echo started"})).await;
    insta::assert_snapshot!(answer, @"
    ok: started
    [1 process of this command still ran when it returned and was ended: commands in the background are not kept. Run what you need within one call, or start what shall run on with shell_start, if you have that tool.]
    Exit code: 0
    ");
}

#[test]
fn the_time_out_is_the_calls_own_then_the_tools_then_the_sessions_and_never_above_the_maximum() {
    let timeouts = CommandTimeouts { default: Duration::from_secs(10), max: Duration::from_secs(600) };
    let anthropic = Shell::with_default_timeout(Duration::from_secs(120));
    let long = Shell::with_default_timeout(Duration::from_secs(9000));
    let rows = [
        (Shell::new(), None, 10_000, None),
        (Shell::new(), Some(1), 1, None),
        (Shell::new(), Some(600_000), 600_000, None),
        (Shell::new(), Some(900_000), 600_000, Some(900_000)),
        (anthropic, None, 120_000, None),
        (anthropic, Some(5), 5, None),
        (long, None, 600_000, None),
    ];
    for (shell, asked, granted, reported) in rows {
        let timeout = shell.timeout(asked, timeouts);
        assert_eq!(timeout.granted, Duration::from_millis(granted), "{shell:?} {asked:?}");
        assert_eq!(timeout.asked, reported.map(Duration::from_millis), "{shell:?} {asked:?}");
    }
}

#[tokio::test]
async fn a_time_out_above_the_maximum_is_cut_and_said_so() {
    let harness = Harness::new();
    let answer = shown(&harness, json!({"command": "echo a", "timeout_ms": 900_000})).await;
    insta::assert_snapshot!(answer, @"
    ok: a
    [timeout_ms 900000 is more than the maximum: 600000 was used.]
    Exit code: 0
    ");
}

#[tokio::test]
async fn output_is_passed_on_as_it_comes() {
    let harness = Harness::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&seen);
    let sink: OutputSink = Arc::new(move |chunk| keep.lock().unwrap().extend(chunk.bytes));
    let cx = harness.context().with_on_output(sink);
    harness.execute_in(&cx, Shell::new(), r#"{"command": "echo one; echo two"}"#).await;
    assert_eq!(*seen.lock().unwrap(), b"one\ntwo\n");
}

#[tokio::test]
async fn a_cancelled_command_is_ended() {
    let harness = Harness::new();
    let cx = harness.context();
    let cancel = cx.cancel.clone();
    // The command itself says when it runs, and the watcher cancels it then.
    let cx = cx.with_on_output(Arc::new(move |_| cancel.cancel()));
    let execution = harness.execute_in(&cx, Shell::new(), r#"{"command": "echo up; exec sleep 60"}"#).await;
    assert_eq!(execution.error, Some(ToolErrorKind::Cancelled));
    assert!(execution.result.is_error);
}

#[tokio::test]
async fn a_large_output_is_whole_for_the_host_and_cut_for_the_model() {
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
