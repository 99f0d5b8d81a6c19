//! Sessions once more from their records, beside themselves, and on after the death of their host, over real HTTP.

use std::io::BufReader;
use std::sync::Arc;

use pintle_agent::{
    EventKind, OutcomeStatus, Record, ReplayError, Session, SessionConfig, SessionEvent, SessionState,
};
use pintle_env::LocalEnvironment;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

use crate::lab::{KEY, Lab, client, in_each_dialect, profile};
use crate::stability::continues_to_the_byte;

in_each_dialect![
    a_replay_gives_the_same_events_and_sends_the_same_bytes,
    a_changed_tool_is_told_with_the_first_request_that_differs,
    a_fork_goes_on_to_the_byte_and_is_served_from_the_cache,
    after_the_death_of_its_host_a_session_goes_on_and_repeats_nothing,
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

async fn recorded(dialect: Dialect) -> Lab {
    Lab::with(dialect, TURNS, SessionConfig::default(), |builder| builder.record(true)).await
}

/// The record as a file gives it back.
fn stored(record: &Record) -> Record {
    let mut file = tempfile::tempfile().unwrap();
    record.write(&mut file).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    Record::read(BufReader::new(file)).unwrap()
}

async fn a_replay_gives_the_same_events_and_sends_the_same_bytes(dialect: Dialect) {
    let lab = recorded(dialect).await;
    lab.session.handle().steer("Be quick.").unwrap();
    lab.run("Write and read a file").await;
    lab.run("Thank you").await;
    let (handle, mut events) = (lab.session.handle(), lab.session.events());
    let sent = lab.requests();
    let history = lab.session.history();
    lab.finish().await;
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

    // What it answers does not matter, only what it is sent.
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

async fn a_changed_tool_is_told_with_the_first_request_that_differs(dialect: Dialect) {
    let lab = recorded(dialect).await;
    let (events, _) = lab.run("Write and read a file").await;
    let record = lab.session.record().unwrap();
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
    lab.session.close().await;
}

async fn a_fork_goes_on_to_the_byte_and_is_served_from_the_cache(dialect: Dialect) {
    let lab = recorded(dialect).await;
    lab.run("Write and read a file").await;
    let before = lab.requests();
    // Input, call, result: what the second request held.
    let fork = lab.session.fork(3).await.unwrap().build().unwrap();
    let mut run = fork.submit("Something else");
    let mut cached = None;
    while let Some(event) = run.next().await {
        if let EventKind::ModelResponse { usage, .. } = event.kind {
            cached = usage.cache_read_tokens;
        }
    }
    // The script goes by how many answers a conversation has.
    assert_eq!(run.await.unwrap().text, "Done.");
    let now = lab.requests().pop().unwrap();
    continues_to_the_byte(dialect, &before[1].raw_body, &now.raw_body);
    assert!(cached.is_some_and(|tokens| tokens > 0), "{cached:?}");
    fork.close().await;
    assert_eq!(
        lab.run("Thank you").await.1.text,
        "Goodbye.",
        "the session that was forked goes on as before"
    );
    lab.finish().await;
}

async fn after_the_death_of_its_host_a_session_goes_on_and_repeats_nothing(dialect: Dialect) {
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
    let lab = Lab::with(dialect, turns, SessionConfig::default(), |builder| builder.journal(lines)).await;
    let mut run = lab.session.submit("Begin");
    while !matches!(run.next().await.unwrap().kind, EventKind::ToolCallOutputDelta { ref delta, .. } if delta.contains("begun"))
    {
    }
    let Lab { server, folder, session, .. } = lab;
    // Nobody has the time to interrupt anything.
    run.detach();
    drop(session);
    std::fs::remove_file(folder.path().join("a.txt")).unwrap();

    let record = Record::read(BufReader::new(journal.reopen().unwrap())).unwrap();
    let env = LocalEnvironment::with_host_env(folder.path(), std::env::vars_os()).unwrap();
    let builder = Session::builder(client(&server, dialect, KEY), profile(dialect), Arc::new(env));
    let mut session = builder.resume(record).build().unwrap();
    let outcome = session.resumed().unwrap().await.unwrap();
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "Then I look first."));
    assert!(!folder.path().join("a.txt").exists(), "what had ended is not done again");
    assert_eq!(std::fs::read_to_string(folder.path().join("effects.txt")).unwrap(), "effect\n");
    for request in server.requests() {
        assert_eq!(request.violations, [], "{}", request.body);
    }
    let [.., before, now] = &server.requests()[..] else { unreachable!() };
    continues_to_the_byte(dialect, &before.raw_body, &now.raw_body);
    assert!(server.finished(dialect));
    session.close().await;
}
