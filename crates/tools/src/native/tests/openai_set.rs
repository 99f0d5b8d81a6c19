use pintle_llm::{ToolCall, ToolCallKind};

use super::openai::{ApplyPatch, ExecCommand, ViewImage, WriteStdin};
use super::*;
use crate::pipeline::{JudgedCall, execute, prepare};
use crate::registry::ToolRegistry;
use crate::truncate::TruncationLimits;

/// Returns what the model reads, with varying parts replaced by letters.
async fn called(harness: &Harness, cx: &crate::ToolContext, tool: impl DynTool, arguments: Value) -> String {
    let execution = harness.execute_in(cx, tool, &arguments.to_string()).await;
    let sign = if execution.result.is_error { "error" } else { "ok" };
    let seen = harness.mask(&text(&execution.result));
    let lines = seen.lines().map(|line| match line.strip_prefix("Wall time: ") {
        Some(time) => {
            let seconds = time.strip_suffix(" seconds").unwrap();
            assert!(seconds.parse::<f64>().unwrap() < 60.0 && seconds.split_once('.').unwrap().1.len() == 4);
            "Wall time: T seconds"
        }
        None => line,
    });
    format!("{sign}: {}", lines.collect::<Vec<_>>().join("\n"))
}

#[tokio::test]
async fn a_non_zero_exit_is_a_result() {
    let harness = Harness::new();
    harness.write("sub/file", "");
    let cx = harness.context();
    insta::assert_snapshot!(
        called(&harness, &cx, ExecCommand::new(), json!({"cmd": "{ echo out; echo err >&2; } 2>&1"})).await, @"
    ok: Chunk ID: 970624
    Wall time: T seconds
    Process exited with code 0
    Original token count: 2
    Output:
    out
    err
    ");
    insta::assert_snapshot!(
        called(&harness, &cx, ExecCommand::new(), json!({"cmd": "ls; cat; exit 3", "workdir": "sub"})).await, @"
    ok: Chunk ID: 970624
    Wall time: T seconds
    Process exited with code 3
    Original token count: 2
    Output:
    file
    ");
}

#[tokio::test]
async fn a_running_command_is_read_and_written() {
    let harness = Harness::new();
    let cx = harness.context();
    let line =
        json!({"cmd": "echo ready; read word; echo got $word; sleep 600", "tty": true, "yield_time_ms": 300});
    let started = called(&harness, &cx, ExecCommand::new(), line).await;
    assert!(started.contains("\nProcess running with session ID 1\n"), "{started}");
    assert!(started.ends_with("\nOutput:\nready"), "{started}");
    let typed = json!({"session_id": 1, "chars": "this\n", "yield_time_ms": 500});
    let typed = called(&harness, &cx, WriteStdin::new(), typed).await;
    assert!(typed.starts_with("ok: ") && typed.ends_with("\nOutput:\ngot this"), "{typed}");
    let ended = called(&harness, &cx, WriteStdin::new(), json!({"session_id": 1, "chars": "\u{3}"})).await;
    assert!(ended.starts_with("error: ") && ended.contains("\nProcess was stopped\n"), "{ended}");
    let unknown = harness.call(WriteStdin::new(), r#"{"session_id": 7}"#).await;
    assert!(
        unknown.starts_with("error: Tool error (write_stdin): there is no background command 7"),
        "{unknown}"
    );
}

#[tokio::test]
async fn a_cancelled_call_terminates_its_command() {
    let harness = Harness::new();
    let cancel = tokio_util::sync::CancellationToken::new();
    let cx = harness.context().with_cancel(cancel.clone());
    let stop = async {
        while cx.background.list().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let call = called(&harness, &cx, ExecCommand::new(), json!({"cmd": "sleep 600"}));
    let (answer, ()) = tokio::join!(call, stop);
    assert_eq!(
        answer,
        "error: Tool error (exec_command): the command was stopped, with all that it had started"
    );
    let states: Vec<_> = cx.background.list().into_iter().map(|status| status.state).collect();
    assert_eq!(states, [crate::builtin::BackgroundState::Stopped]);
    let not_started = called(&harness, &cx, ExecCommand::new(), json!({"cmd": "sleep 600"})).await;
    assert!(
        not_started.ends_with("the command was not started: the call was stopped before"),
        "{not_started}"
    );
    assert_eq!(cx.background.list().len(), 1);
}

#[tokio::test]
async fn a_cancelled_call_does_not_wait_for_writing() {
    let harness = Harness::new();
    let cancel = tokio_util::sync::CancellationToken::new();
    let cx = harness.context().with_cancel(cancel.clone());
    let line = json!({"cmd": "exec sleep 600", "tty": true, "yield_time_ms": 250});
    called(&harness, &cx, ExecCommand::new(), line).await;
    let stop = async {
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let typed = json!({"session_id": 1, "chars": "x".repeat(1 << 20)});
    let (answer, ()) = tokio::join!(called(&harness, &cx, WriteStdin::new(), typed), stop);
    assert_eq!(
        answer,
        "error: Tool error (write_stdin): the command was stopped, with all that it had started"
    );
}

#[tokio::test]
async fn output_is_streamed() {
    let harness = Harness::new();
    let (sender, mut chunks) = tokio::sync::mpsc::unbounded_channel();
    let cx = harness.context().with_on_output(std::sync::Arc::new(move |chunk: pintle_env::OutputChunk| {
        let _ = sender.send(String::from_utf8(chunk.bytes).unwrap());
    }));
    let line = json!({"cmd": "echo one; read word; echo got $word", "tty": true, "yield_time_ms": 60_000});
    let watching = async {
        assert_eq!(chunks.recv().await.unwrap(), "one\n");
        cx.background.write(1, b"two\n", false).await.unwrap();
        assert_eq!(chunks.recv().await.unwrap(), "got two\n");
    };
    let (answer, ()) = tokio::join!(called(&harness, &cx, ExecCommand::new(), line), watching);
    assert!(answer.ends_with("\nOutput:\none\ngot two"), "{answer}");
    assert!(chunks.try_recv().is_err(), "no output is streamed twice");
}

#[tokio::test]
async fn long_output_is_cut_and_counted_in_tokens() {
    let harness = Harness::new();
    let execution = harness.execute(ExecCommand::new(), r#"{"cmd": "seq 1 40000"}"#).await;
    let seen = text(&execution.result);
    let bytes = execution.output.len();
    let removed = bytes - 40_000;
    assert!(seen.contains(&format!("\nOriginal token count: {}\n", bytes.div_ceil(4))), "{seen}");
    assert!(seen.contains("\nOutput:\nTotal output lines: 40000\n\n1\n2\n"), "{seen}");
    assert!(seen.contains(&format!("…{} tokens truncated…", removed.div_ceil(4))), "{seen}");
    assert!(seen.ends_with("\n40000\n"), "{seen}");
    let few = json!({"cmd": "seq 1 40000", "max_output_tokens": 100}).to_string();
    let execution = harness.execute(ExecCommand::new(), &few).await;
    let seen = text(&execution.result);
    assert!(seen.contains(&format!("…{} tokens truncated…", (bytes - 400).div_ceil(4))), "{seen}");
}

#[tokio::test]
async fn a_patch_is_free_text() {
    let harness = Harness::new();
    harness.write("old.txt", "a\nb\n");
    harness.write("gone.txt", "");
    let patch = "*** Begin Patch\n*** Delete File: gone.txt\n*** Update File: old.txt\n*** Move to: new.txt\n@@\n-a\n+A\n b\n*** Add File: more.txt\n+x\n*** End Patch";
    let mut registry = ToolRegistry::new();
    registry.register(ApplyPatch::new()).unwrap();
    let mut call = ToolCall::from_raw("c1", "apply_patch", patch);
    call.kind = ToolCallKind::Custom;
    call.arguments = Value::String(patch.to_owned()).into();
    let JudgedCall::Ready { call, .. } = prepare(&registry, &[], harness.env.as_ref(), &call).await else {
        panic!("the call is valid");
    };
    assert_eq!(call.writes().len(), 4);
    let execution = execute(&call, &harness.context(), &TruncationLimits::new()).await;
    let shown = text(&execution.result);
    let (head, rest) = shown.split_once("\nOutput:\n").unwrap();
    let time = head.strip_prefix("Exit code: 0\nWall time: ").and_then(|head| head.strip_suffix(" seconds"));
    assert!(time.unwrap().parse::<f64>().unwrap() < 60.0, "{head}");
    insta::assert_snapshot!(rest, @"
    Success. Updated the following files:
    A more.txt
    M new.txt
    D gone.txt
    ");
    assert_eq!((harness.text("new.txt"), harness.read("gone.txt")), ("A\nb\n".to_owned(), None));
    assert_eq!(execution.changes.len(), 3);
}

#[tokio::test]
async fn a_failed_patch_explains_itself() {
    let harness = Harness::new();
    harness.write("old.txt", "a\nb\n");
    let arguments = json!({"input": "*** Begin Patch\n*** Update File: old.txt\n@@\n-c\n+d\n*** End Patch"});
    let answer = harness.call(ApplyPatch::new(), &arguments.to_string()).await;
    assert!(
        answer.starts_with("error: Tool error (apply_patch): apply_patch verification failed: old.txt"),
        "{answer}"
    );
}

#[test]
fn the_definition_has_the_grammar() {
    let grammar = ApplyPatch::new().definition().unwrap().grammar.unwrap();
    assert_eq!(grammar.syntax, "lark");
    for marker in [
        "Begin Patch",
        "End Patch",
        "Add File: ",
        "Delete File: ",
        "Update File: ",
        "Move to: ",
        "End of File",
    ] {
        assert!(grammar.definition.contains(&format!("\"*** {marker}\"")), "{marker}");
    }
}

#[tokio::test]
async fn only_images_can_be_viewed() {
    let harness = Harness::new();
    harness.write("a.png", b"\x89PNG\r\n\x1a\nrest");
    harness.write("a.txt", "text\n");
    let execution = harness.execute(ViewImage::new(), r#"{"path": "a.png"}"#).await;
    assert_eq!(execution.result.images.len(), 1);
    assert_eq!(
        harness.call(ViewImage::new(), r#"{"path": "a.txt"}"#).await,
        "error: Tool error (view_image): a.txt is no image: expected PNG, JPEG, GIF or WebP"
    );
}
