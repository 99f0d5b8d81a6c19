//! Recorded sessions over real HTTP: replay, fork, and resume after the process was killed.

use std::io::BufReader;
use std::sync::Arc;

use pintle_agent::{
    EventKind, JsonLines, OutcomeStatus, Record, ReplayError, Session, SessionConfig, SessionEvent,
    SessionState,
};
use pintle_env::LocalEnvironment;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

use crate::harness::{Harness, KEY, client, in_each_dialect, profile};
use crate::stability::continues_to_the_byte;

in_each_dialect![
    a_replay_repeats_events_and_request_bytes,
    a_changed_tool_is_reported_at_the_first_difference,
    a_fork_keeps_the_prefix_and_the_cache,
    a_killed_session_resumes_without_repeating_calls,
];

const TURNS: &str = r#"
[[turn]]
reasoning = "First a file."
text = "Writing."
[[turn.call]]
tool = "write_file"
arguments = { file_path = "a.txt", content = "one\n" }
[[turn]]
[[turn.call]]
tool = "read_file"
arguments = { file_path = "a.txt" }
[[turn.call]]
tool = "shell"
arguments = { command = "echo out; exit 3" }
[[turn]]
text = "Done."
[[turn]]
text = "Goodbye."
"#;

async fn recorded(dialect: Dialect) -> Harness {
    Harness::with(dialect, TURNS, SessionConfig::default(), |builder| builder.record(true)).await
}

/// Serializes and parses the record, as if it were read from a file.
fn stored(record: &Record) -> Record {
    let mut file = tempfile::tempfile().unwrap();
    record.write(&mut file).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    Record::read(BufReader::new(file)).unwrap()
}

async fn a_replay_repeats_events_and_request_bytes(dialect: Dialect) {
    let harness = recorded(dialect).await;
    harness.session.handle().steer("Be quick.").await.unwrap();
    harness.run("Write and read a file").await;
    harness.run("Thank you").await;
    let (handle, mut events) = (harness.session.handle(), harness.session.events());
    let sent = harness.requests();
    let history = harness.session.history();
    harness.finish().await;
    let mut lifecycle: Vec<SessionEvent> = Vec::new();
    while let Some(event) = events.next().await {
        lifecycle.extend(Some(event).filter(|event| event.offset.is_none()));
    }

    let record = handle.record().unwrap();
    let mut text = Vec::new();
    record.write(&mut text).unwrap();
    assert!(!String::from_utf8_lossy(&text).contains(KEY), "the key is in the record");
    let replay = Session::replay(&stored(&record)).unwrap();
    assert_eq!(replay.events, lifecycle);
    assert_eq!((replay.history, replay.state), (history, SessionState::Closed));
    let statuses: Vec<OutcomeStatus> = replay.outcomes.iter().map(|(_, outcome)| outcome.status).collect();
    assert_eq!(statuses, [OutcomeStatus::Completed; 2]);

    // Only the requests matter here, not the responses.
    let script = Script::parse(&format!("name = \"again\"\n{TURNS}")).unwrap();
    let again = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
    let client = client(&again, dialect, KEY);
    assert_eq!(replay.requests.len(), sent.len());
    for request in replay.requests {
        drop(client.stream(request).await);
    }
    for (index, (before, now)) in sent.iter().zip(again.requests()).enumerate() {
        assert_eq!(before.path, now.path);
        let [before, now] = [&before.raw_body, &now.raw_body].map(|body| String::from_utf8_lossy(body));
        assert_eq!(before, now, "request {index}");
    }
}

async fn a_changed_tool_is_reported_at_the_first_difference(dialect: Dialect) {
    let harness = recorded(dialect).await;
    let (events, _) = harness.run("Write and read a file").await;
    let record = harness.session.record().unwrap();
    let sent = events.iter().find_map(|event| match event.kind {
        EventKind::RequestPrepared { fingerprint, .. } => Some(fingerprint),
        _ => None,
    });
    let fewer = || {
        let mut changed = profile(dialect);
        let last = changed.tool_registry.names().last().unwrap().to_owned();
        changed.tool_registry.unregister(&last);
        changed
    };
    let error = record.replay_with(|context| context.tools = fewer().tools()).unwrap_err();
    let ReplayError::Diverged(at) = &error else { panic!("{error}") };
    assert_eq!(at.recorded, sent);
    assert!(at.replayed.is_some() && at.replayed != sent);
    assert_eq!(record.entries[..at.input].iter().filter(|entry| entry.request.is_some()).count(), 0);
    assert_eq!(record.entries[at.input].request, sent);
    harness.session.close().await;
}

async fn a_fork_keeps_the_prefix_and_the_cache(dialect: Dialect) {
    let harness = recorded(dialect).await;
    harness.run("Write and read a file").await;
    let before = harness.requests();
    // Input, call, result: the content of the second request.
    let fork = harness.session.fork(3).await.unwrap().build().unwrap();
    let mut run = fork.submit("Something else");
    let mut cached = None;
    while let Some(event) = run.next().await {
        if let EventKind::ModelResponse { usage, .. } = event.kind {
            cached = usage.cache_read_tokens;
        }
    }
    // The script selects the turn by the number of responses in the conversation.
    assert_eq!(run.await.unwrap().text, "Done.");
    let now = harness.requests().pop().unwrap();
    continues_to_the_byte(dialect, &before[1].raw_body, &now.raw_body);
    assert!(cached.is_some_and(|tokens| tokens > 0), "{cached:?}");
    fork.close().await;
    assert_eq!(
        harness.run("Thank you").await.1.text,
        "Goodbye.",
        "the session that was forked goes on as before"
    );
    harness.finish().await;
}

async fn a_killed_session_resumes_without_repeating_calls(dialect: Dialect) {
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "write_file"
        arguments = { file_path = "a.txt", content = "one\n" }
        [[turn]]
        [[turn.call]]
        tool = "shell"
        arguments = { command = "echo effect >> effects.txt; echo begun; sleep 1000" }
        [[turn]]
        text = "Then I look first."
        [[turn.expect]]
        call = 0
        is_error = true
        contains = "Nobody knows whether it had its effect"
    "#;
    let journal = tempfile::NamedTempFile::new().unwrap();
    let lines = journal.reopen().unwrap();
    let harness = Harness::with(dialect, turns, SessionConfig::default(), |builder| {
        builder.journal(JsonLines::new(lines))
    })
    .await;
    let mut run = harness.session.submit("Begin");
    while !matches!(run.next().await.unwrap().kind, EventKind::ToolCallOutputDelta { ref delta, .. } if delta.contains("begun"))
    {
    }
    let Harness { server, directory, session, .. } = harness;
    // The process is killed without an interrupt.
    run.detach();
    drop(session);
    std::fs::remove_file(directory.path().join("a.txt")).unwrap();

    let record = Record::read(BufReader::new(journal.reopen().unwrap())).unwrap();
    let env = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os()).unwrap();
    let builder = Session::builder(client(&server, dialect, KEY), profile(dialect), Arc::new(env));
    let mut session = builder.resume(record).build().unwrap();
    let outcome = session.resumed().unwrap().await.unwrap();
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "Then I look first."));
    assert!(!directory.path().join("a.txt").exists(), "what had ended is not done again");
    assert_eq!(std::fs::read_to_string(directory.path().join("effects.txt")).unwrap(), "effect\n");
    for request in server.requests() {
        assert_eq!(request.violations, [], "{}", request.body);
    }
    let [.., before, now] = &server.requests()[..] else { unreachable!() };
    continues_to_the_byte(dialect, &before.raw_body, &now.raw_body);
    assert!(server.finished(dialect));
    session.close().await;
}
