use serde_json::json;

use super::*;
use crate::context::ToolContext;
use crate::tests::harness::Harness;
use crate::tool::DynTool;

async fn call(
    harness: &Harness,
    cx: &ToolContext,
    tool: impl DynTool,
    arguments: serde_json::Value,
) -> String {
    harness.execute_in(cx, tool, &arguments.to_string()).await.result.text()
}

#[tokio::test]
async fn the_tools_share_the_commands_of_their_context() {
    let harness = Harness::new();
    let cx = harness.context();
    let started = call(&harness, &cx, ShellStart::new(), json!({"command": "cat; exit 7"})).await;
    insta::assert_snapshot!(started, @"
    Started background command 1.
    (no new output)
    [Background command 1 is running.]
    ");
    let listed = call(&harness, &cx, ShellList::new(), json!({})).await;
    assert!(
        listed.starts_with("1: is running, ") && listed.ends_with(" s, 0 bytes unread: cat; exit 7"),
        "{listed}"
    );
    let written =
        call(&harness, &cx, ShellWrite::new(), json!({"id": 1, "text": "é\n", "close": true})).await;
    assert_eq!(written, "Wrote 3 bytes to background command 1 and closed its input.");
    let read = call(&harness, &cx, ShellRead::new(), json!({"id": 1, "wait_ms": 60_000})).await;
    assert_eq!(read, "é\n[Background command 1 exited with code 7.]");
    let stopped = call(&harness, &cx, ShellStop::new(), json!({"id": 1})).await;
    assert_eq!(stopped, "(no new output)\n[Background command 1 exited with code 7.]");
}

#[tokio::test]
async fn failed_calls_explain_themselves() {
    let harness = Harness::new();
    let cx = harness.context();
    let mut answers = vec![
        call(&harness, &cx, ShellList::new(), json!({})).await,
        call(&harness, &cx, ShellRead::new(), json!({"id": 1})).await,
        call(&harness, &cx, ShellStart::new(), json!({"command": " "})).await,
        call(&harness, &cx, ShellStart::new(), json!({"command": "no-such-program-here 2>/dev/null"})).await,
    ];
    answers.push(call(&harness, &cx, ShellStop::new(), json!({"id": 9})).await);
    answers.push(call(&harness, &cx, ShellWrite::new(), json!({"id": 1, "text": ""})).await);
    // The command may exit after the call has returned.
    answers[3] = call(&harness, &cx, ShellRead::new(), json!({"id": 1, "wait_ms": 60_000})).await;
    insta::assert_snapshot!(answers.join("\n"), @"
    (no background command was started)
    Tool error (shell_read): there is no background command 1: none was started
    Tool error (shell_start): command is empty, so there is nothing to start
    (no new output)
    [Background command 1 exited with code 127.]
    Tool error (shell_stop): there is no background command 9: known are 1
    Tool error (shell_write): text is empty and close is not set, so there is nothing to do
    ");
}

#[tokio::test]
async fn a_cancelled_call_does_not_wait() {
    let harness = Harness::new();
    let cx = harness.context();
    call(&harness, &cx, ShellStart::new(), json!({"command": "exec sleep 600"})).await;
    cx.cancel.cancel();
    let read = call(&harness, &cx, ShellRead::new(), json!({"id": 1, "wait_ms": 600_000})).await;
    assert!(read.ends_with("the command runs on, and its output can still be read"), "{read}");
    let started = call(&harness, &cx, ShellStart::new(), json!({"command": "true"})).await;
    assert!(started.ends_with("the command was not started: the call was stopped before"), "{started}");
    assert_eq!(cx.background.list().len(), 1);
}
