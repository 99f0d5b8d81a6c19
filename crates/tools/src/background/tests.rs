use pintle_env::ExecutionEnvironmentExt as _;

use super::*;
use crate::tests::harness::Harness;

/// Longer than any of these commands takes, even on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Reads until a running command has written `expected`.
async fn read_until(commands: &BackgroundCommands, id: u64, expected: &str) -> String {
    let mut text = String::new();
    let reading = async {
        while !text.contains(expected) {
            let output = commands.read(id, Duration::from_millis(20)).await.unwrap();
            assert_eq!(output.status.state, BackgroundState::Running, "{text}{}", output.text);
            text.push_str(&output.text);
        }
    };
    tokio::time::timeout(LONG, reading).await.unwrap();
    text
}

/// Waits until the process with this id is gone.
async fn gone(harness: &Harness, id: &str) {
    let gone = async {
        while harness.env.file_exists(format!("/proc/{}", id.trim()).as_ref()).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, gone).await.unwrap();
}

#[tokio::test]
async fn a_command_can_be_read_and_written_until_it_exits() {
    let harness = Harness::new();
    let commands = BackgroundCommands::new();
    let id =
        commands.start(harness.env.as_ref(), "echo ready; read line; echo got $line; exit 3").await.unwrap();
    assert_eq!(id, 1);
    assert_eq!(read_until(&commands, id, "ready\n").await, "ready\n");
    assert_eq!(commands.read(id, Duration::ZERO).await.unwrap().text, "");
    commands.write(id, b"it\n", false).await.unwrap();
    let output = commands.read(id, LONG).await.unwrap();
    assert_eq!((output.text.as_str(), output.dropped), ("got it\n", 0));
    assert_eq!(output.status.state, BackgroundState::Exited(3));
    let error = commands.write(id, b"more\n", false).await.unwrap_err();
    assert_eq!(error.for_model(), "cannot write to background command 1: it exited with code 3");
}

#[tokio::test]
async fn closing_the_input_ends_it() {
    let harness = Harness::new();
    let commands = BackgroundCommands::new();
    let id = commands.start(harness.env.as_ref(), "cat; sleep 60").await.unwrap();
    commands.write(id, b"text", true).await.unwrap();
    assert_eq!(read_until(&commands, id, "text").await, "text");
    let error = commands.write(id, b"more", false).await.unwrap_err();
    assert_eq!(error.for_model(), "cannot write to background command 1: its input is closed");
}

#[tokio::test]
async fn stopping_a_command_terminates_its_children() {
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
async fn children_of_an_exited_command_are_terminated() {
    let harness = Harness::new();
    let commands = BackgroundCommands::new();
    let id = commands.start(harness.env.as_ref(), "sleep 600 & echo $!").await.unwrap();
    let output = commands.read(id, LONG).await.unwrap();
    assert_eq!(output.status.state, BackgroundState::Exited(0));
    gone(&harness, &output.text).await;
}

#[tokio::test]
async fn no_command_outlives_the_session() {
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
async fn unread_output_is_bounded_and_counted() {
    let harness = Harness::new();
    let commands = BackgroundCommands::new();
    let line = "head -c 3000000 /dev/zero | tr '\\0' x; echo end";
    let id = commands.start(harness.env.as_ref(), line).await.unwrap();
    commands.entry(id).unwrap().ended_within(LONG).await;
    let output = commands.read(id, Duration::ZERO).await.unwrap();
    assert_eq!(output.text.len(), 1 << 20);
    assert!(output.text.ends_with("xend\n"));
    assert_eq!(output.dropped, 3_000_004 - (1 << 20));
    assert!(output.for_model().starts_with("[1951428 bytes of older output were dropped.]\nxxx"));
}

#[tokio::test]
async fn output_goes_to_the_latest_follower() {
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
        let piece = tokio::time::timeout(LONG, pieces.recv()).await.unwrap();
        commands.stop(id).await.unwrap();
        piece
    };
    let (piece, followed) = tokio::join!(earlier, commands.follow(id, LONG, Some(later)));
    assert_eq!(piece.as_deref(), Some("got it\n"));
    assert_eq!(followed.unwrap().status.state, BackgroundState::Stopped);
}

#[tokio::test]
async fn writing_to_a_command_that_does_not_read_fails() {
    let harness = Harness::new();
    let commands = BackgroundCommands::new();
    let id = commands.start(harness.env.as_ref(), "exec sleep 600").await.unwrap();
    let error = commands.write(id, &vec![b'x'; 1 << 20], false).await.unwrap_err();
    let message = error.for_model();
    assert!(message.contains("of 1048576 bytes and does not read the rest"), "{message}");
}

#[tokio::test]
async fn running_and_listed_commands_are_limited() {
    let harness = Harness::new();
    let commands = BackgroundCommands::with_max_running(1);
    for id in 1..=MAX_LISTED as u64 + 3 {
        assert_eq!(commands.start(harness.env.as_ref(), "exit 0").await.unwrap(), id);
        commands.read(id, LONG).await.unwrap();
    }
    assert_eq!(commands.list().len(), MAX_LISTED);
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
