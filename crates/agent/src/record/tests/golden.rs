//! Journals that earlier versions wrote, byte for byte. They have to open for ever, with the same history, spending and open
//! calls. Each is the same session: two inputs, a steering message, decisions, failed and unknown calls, and a process that
//! died while a call ran and a follow-up waited.
#![expect(clippy::wildcard_enum_match_arm, reason = "tests look at few kinds of events")]

use pintle_llm::Money;

use super::*;
use crate::protocol::{BudgetUsage, TurnKind};

const JOURNALS: [(u32, &str); 6] = [
    (1, include_str!("../golden/v1.jsonl")),
    (2, include_str!("../golden/v2.jsonl")),
    (3, include_str!("../golden/v3.jsonl")),
    (4, include_str!("../golden/v4.jsonl")),
    (5, include_str!("../golden/v5.jsonl")),
    (6, include_str!("../golden/v6.jsonl")),
];

fn read(text: &str) -> Record {
    Record::read(text.as_bytes()).unwrap()
}

fn shown(turn: &Turn) -> String {
    let calls: Vec<&str> = turn.item.tool_calls().map(|call| call.id.as_str()).collect();
    let results: Vec<String> =
        turn.item.results().map(|result| format!("{}: {}", result.tool_call_id, result.text())).collect();
    let text = match turn.kind {
        TurnKind::Assistant if !calls.is_empty() => calls.join(", "),
        TurnKind::ToolResults => results.join("\n  "),
        _ => turn.item.text(),
    };
    format!("{:?}: {text}", turn.kind)
}

#[test]
fn journals_of_every_version_open_with_the_same_session() {
    for (version, text) in JOURNALS {
        let record = read(text);
        assert_eq!(record.header.version, version);
        let replay = record.replay().unwrap();
        let history: Vec<String> = replay.history.iter().map(shown).collect();
        insta::allow_duplicates! {
            insta::assert_snapshot!(history.join("\n"), @"
            User: one
            Steering: also this
            Assistant: t0c0_look, t0c1_note
            ToolResults: t0c0_look: look did t0c0_look
              t0c1_note: note did t0c1_note
            Assistant: t1c0_run, t1c1_look, t1c2_run
            ToolResults: t1c0_run: run did t1c0_run
              t1c1_look: look did t1c1_look
              t1c2_run: run did t1c2_run
            Assistant: t2c0_fail, t2c1_nothing
            ToolResults: t2c0_fail: Tool error (fail): it does not work
              t2c1_nothing: Unknown tool: nothing. Did you mean note?
            Assistant: first
            User: two
            Assistant: t4c0_note
            ToolResults: t4c0_note: note did t4c0_note
            Assistant: t5c0_look, t5c1_hang, t5c2_note
            ");
        }
        let spent = BudgetUsage {
            input_tokens: 60,
            output_tokens: 30,
            cost: Some(Money::from_micros(1_050)),
            tool_calls: 10,
        };
        assert_eq!((replay.spent, replay.state), (spent, SessionState::Processing), "version {version}");
        let outcomes: Vec<_> = replay.outcomes.iter().map(|(run, outcome)| (run.0, outcome.status)).collect();
        assert_eq!(outcomes, [(0, OutcomeStatus::Completed)], "version {version}");
        let open = |event: &SessionEvent| match &event.kind {
            EventKind::ToolCallStart { call_id, .. } => Some((call_id.clone(), true)),
            EventKind::ToolCallEnd { call_id, .. } => Some((call_id.clone(), false)),
            _ => None,
        };
        let mut begun: Vec<String> = Vec::new();
        for (call, begins) in replay.events.iter().filter_map(open) {
            if begins { begun.push(call) } else { begun.retain(|known| *known != call) }
        }
        assert_eq!(begun, ["t5c1_hang"], "version {version}");
        assert!(replay.events.iter().enumerate().all(|(seq, event)| event.seq == seq as u64));
    }
}

#[tokio::test]
async fn journals_of_every_version_are_resumed_and_open_again() {
    for (version, text) in JOURNALS {
        let mut answers = vec![Message::assistant("unused"); 6];
        answers.extend([Message::assistant("so it is"), Message::assistant("then nothing")]);
        let harness = Harness::new(answers);
        let mut session = harness.builder().resume(read(text)).build().unwrap();
        let outcome = session.resumed().unwrap().await.unwrap();
        assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "then nothing"));
        assert_eq!(harness.effects(), [""; 0], "version {version}: nothing runs again");
        let sent: Vec<String> = harness.requests()[0].messages.iter().map(|message| message.text()).collect();
        assert_eq!(sent.iter().filter(|text| *text == "also this").count(), 1, "version {version}");
        let result = harness.requests()[0].messages.last().unwrap().results().nth(1).unwrap().text();
        assert!(result.starts_with("Interrupted: the program that ran this call ended"), "{result}");
        assert_eq!(harness.requests()[1].messages.last().unwrap().text(), "and then?", "version {version}");

        // What this version added is stepped, after what was folded.
        let record = session.record().unwrap();
        let history = session.history();
        let again = read(&{
            let mut text = Vec::new();
            record.write(&mut text).unwrap();
            String::from_utf8(text).unwrap()
        });
        let replay = again.replay().unwrap();
        assert_eq!(replay.history, history, "version {version}");
        assert_eq!(replay.events, lifecycle_so_far(session).await, "version {version}");
    }
}

/// Returns all events of a session that is not closed, without deltas.
async fn lifecycle_so_far(session: Session) -> Vec<SessionEvent> {
    let mut events = lifecycle(session).await;
    let end = events.iter().position(|event| matches!(event.kind, EventKind::SessionEnd { .. })).unwrap();
    events.truncate(end);
    events
}

#[test]
fn journal_that_a_newer_version_went_on_with_is_refused() {
    let (_, text) = JOURNALS[5];
    let newer = format!("{text}{}\n", r#"{"at":"2026-11-23T10:00:00.000Z","input":"taken_up","version":7}"#);
    let error = read(&newer).replay().unwrap_err();
    assert_eq!(error.to_string(), "the end of the record has version 7, expected at most 6");
}
