use serde_json::json;

use super::*;
use crate::harness::Harness;
use crate::context::ToolContext;
use crate::tool::DynTool;

/// Longer than any of these commands takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for what a command writes while it runs on.
async fn read_until(commands: &BackgroundCommands, id: u64, expected: &str) -> String {
    let mut text = String::new();
    let reading = async {
        while !text.contains(expected) {
            let output = commands.read(id, Duration::from_millis(20)).await.unwrap();
            assert_eq!(output.status.state, BackgroundState::Running, "{text}{}", output.text);
            text.push_str(&output.text);
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap();
    text
}

/// Waits until no process of this id is left.
async fn gone(harness: &Harness, id: &str) {
    let gone = async {
        while harness.env.file_exists(format!("/proc/{}", id.trim()).as_ref()).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
}

async fn call(
    harness: &Harness,
    cx: &ToolContext,
    tool: impl DynTool,
    arguments: serde_json::Value,
) -> String {
    harness.execute_in(cx, tool, &arguments.to_string()).await.result.text()
}

#[tokio::test]
async fn a_command_runs_on_and_is_read_written_and_ends() {
    let harness = Harness::new();
    let commands = BackgroundCommands::new();
    let id =
        commands.start(harness.env.as_ref(), "echo ready; read line; echo got $line; exit 3").await.unwrap();
    assert_eq!(id, 1);
    assert_eq!(read_until(&commands, id, "ready\n").await, "ready\n");
    assert_eq!(commands.read(id, Duration::ZERO).await.unwrap().text, "");
    commands.write(id, b"it\n", false).await.unwrap();
    let output = commands.read(id, PATIENCE).await.unwrap();
    assert_eq!((output.text.as_str(), output.dropped), ("got it\n", 0));
    assert_eq!(output.status.state, BackgroundState::Exited(3));
    let error = commands.write(id, b"more\n", false).await.unwrap_err();
    assert_eq!(error.for_model(), "cannot write to background command 1: it exited with code 3");
}

#[tokio::test]
async fn closing_the_input_is_its_end() {
    let harness = Harness::new();
    let commands = BackgroundCommands::new();
    let id = commands.start(harness.env.as_ref(), "cat; sleep 60").await.unwrap();
    commands.write(id, b"text", true).await.unwrap();
    assert_eq!(read_until(&commands, id, "text").await, "text");
    let error = commands.write(id, b"more", false).await.unwrap_err();
    assert_eq!(error.for_model(), "cannot write to background command 1: its input is closed");
}

#[tokio::test]
async fn a_stopped_command_is_gone_with_what_it_started() {
    let harness = Harness::new();
    let commands = BackgroundCommands::new();
    let id = commands.start(harness.env.as_ref(), "setsid sleep 600 & echo $!; wait").await.unwrap();
    let child = read_until(&commands, id, "\n").await;
    let output = commands.stop(id).await.unwrap();
    assert_eq!(output.status.state, BackgroundState::Stopped);
    gone(&harness, &child).await;
    assert_eq!(commands.stop(id).await.unwrap().status.state, BackgroundState::Stopped);
}

#[tokio::test]
async fn jobs_of_a_command_that_has_ended_are_ended() {
    let harness = Harness::new();
    let commands = BackgroundCommands::new();
    let id = commands.start(harness.env.as_ref(), "sleep 600 & echo $!").await.unwrap();
    let output = commands.read(id, PATIENCE).await.unwrap();
    assert_eq!(output.status.state, BackgroundState::Exited(0));
    gone(&harness, &output.text).await;
}

#[tokio::test]
async fn nothing_outlives_the_session() {
    let harness = Harness::new();
    let commands = BackgroundCommands::new();
    let id = commands.start(harness.env.as_ref(), "echo $$; exec sleep 600").await.unwrap();
    let process = read_until(&commands, id, "\n").await;
    commands.close().await;
    assert_eq!(commands.list()[0].state, BackgroundState::Stopped);
    gone(&harness, &process).await;
    let error = commands.start(harness.env.as_ref(), "true").await.unwrap_err();
    assert_eq!(error.for_model(), "the session is ending, so no background command can be started");

    let commands = BackgroundCommands::new();
    let id = commands.start(harness.env.as_ref(), "echo $$; exec sleep 600").await.unwrap();
    let process = read_until(&commands, id, "\n").await;
    drop(commands);
    gone(&harness, &process).await;
}

#[tokio::test]
async fn output_that_nobody_reads_is_bounded_and_counted() {
    let harness = Harness::new();
    let commands = BackgroundCommands::new();
    let line = "head -c 3000000 /dev/zero | tr '\\0' x; echo end";
    let id = commands.start(harness.env.as_ref(), line).await.unwrap();
    commands.entry(id).unwrap().ended_within(PATIENCE).await;
    let output = commands.read(id, Duration::ZERO).await.unwrap();
    assert_eq!(output.text.len(), 1 << 20);
    assert!(output.text.ends_with("xend\n"));
    assert_eq!(output.dropped, 3_000_004 - (1 << 20));
    assert!(output.for_model().starts_with("[1951428 bytes of older output were dropped.]\nxxx"));
}

#[tokio::test]
async fn of_two_that_follow_the_later_one_sees_what_comes_after_the_first_has_gone() {
    let harness = Harness::new();
    let commands = BackgroundCommands::new();
    let id = commands.start(harness.env.as_ref(), "read line; echo got $line; exec sleep 600").await.unwrap();
    let (seen, mut pieces) = tokio::sync::mpsc::unbounded_channel();
    let later: OutputSink = Arc::new(move |chunk: pintle_env::OutputChunk| {
        let _ = seen.send(String::from_utf8(chunk.bytes).unwrap());
    });
    let earlier = async {
        let unseen: OutputSink = Arc::new(|chunk| panic!("{chunk:?}"));
        commands.follow(id, Duration::from_millis(50), Some(unseen)).await.unwrap();
        commands.write(id, b"it\n", false).await.unwrap();
        let piece = tokio::time::timeout(PATIENCE, pieces.recv()).await.unwrap();
        commands.stop(id).await.unwrap();
        piece
    };
    let (piece, followed) = tokio::join!(earlier, commands.follow(id, PATIENCE, Some(later)));
    assert_eq!(piece.as_deref(), Some("got it\n"));
    assert_eq!(followed.unwrap().status.state, BackgroundState::Stopped);
}

#[tokio::test]
async fn what_does_not_read_does_not_hold_up_its_writer() {
    let harness = Harness::new();
    let commands = BackgroundCommands::new();
    let id = commands.start(harness.env.as_ref(), "exec sleep 600").await.unwrap();
    let error = commands.write(id, &vec![b'x'; 1 << 20], false).await.unwrap_err();
    let message = error.for_model();
    assert!(message.contains("of 1048576 bytes and does not read the rest"), "{message}");
}

#[tokio::test]
async fn only_so_many_run_at_once_and_only_so_many_are_remembered() {
    let harness = Harness::new();
    let commands = BackgroundCommands::with_max_running(1);
    for id in 1..=MAX_KNOWN as u64 + 3 {
        assert_eq!(commands.start(harness.env.as_ref(), "exit 0").await.unwrap(), id);
        commands.read(id, PATIENCE).await.unwrap();
    }
    assert_eq!(commands.list().len(), MAX_KNOWN);
    assert_eq!(commands.list()[0].id, 4);
    let id = commands.start(harness.env.as_ref(), "exec sleep 600").await.unwrap();
    let error = commands.start(harness.env.as_ref(), "true").await.unwrap_err();
    assert_eq!(
        error.for_model(),
        "1 background commands run already, which is the most; stop one, or wait for its end"
    );
    commands.stop(id).await.unwrap();
    commands.start(harness.env.as_ref(), "true").await.unwrap();
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
    let written = call(&harness, &cx, ShellWrite::new(), json!({"id": 1, "text": "é\n", "close": true})).await;
    assert_eq!(written, "Wrote 3 bytes to background command 1 and closed its input.");
    let read = call(&harness, &cx, ShellRead::new(), json!({"id": 1, "wait_ms": 60_000})).await;
    assert_eq!(read, "é\n[Background command 1 exited with code 7.]");
    let stopped = call(&harness, &cx, ShellStop::new(), json!({"id": 1})).await;
    assert_eq!(stopped, "(no new output)\n[Background command 1 exited with code 7.]");
}

#[tokio::test]
async fn calls_that_cannot_work_say_why() {
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
    // A command that fails may take longer than the first look; its end is the same.
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
async fn a_call_that_is_stopped_does_not_wait() {
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
