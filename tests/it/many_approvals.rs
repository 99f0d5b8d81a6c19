//! Calls of many sessions wait for decisions in one store, and two users decide on all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pintle_agent::{
    Decision, EventKind, OutcomeStatus, PendingApproval, PostedInput, Principal, ProviderProfile, Session,
    SessionId, Timestamp,
};
use pintle_env::{CommandScript, ExecutionEnvironment, MemoryEnvironment, Program};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Client, Message, Role, ToolCall};
use pintle_store::{FileStore, Filter, Page, SessionStore, StoredJournal, Summary, post_input, read_record};
use pintle_test_conditions::cases;
use pintle_tools::Effect;
use pintle_tools::gate::{EffectGate, Permission};
use serde_json::json;

const CALLS: usize = 4;

/// Longest wait for something that happens within seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// Starts a session whose commands wait for a decision by the inbox.
async fn start(store: &Arc<dyn SessionStore>, env: &Arc<MemoryEnvironment>, number: usize) -> Session {
    let calls = (0..CALLS).map(|call| {
        let arguments = json!({"command": format!("run {number}-{call}")});
        ToolCall::from_raw(format!("c{call}"), "shell", arguments.to_string()).into()
    });
    let model = FakeAdapter::new("anthropic").message(Message::new(Role::Assistant, calls.collect()));
    let client = Client::builder().provider(model.answer("Done.")).build().unwrap();
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let id = SessionId::new(format!("s{number}"));
    let summary = Summary::new(id.clone(), Timestamp::from_millis(0));
    let writer = store.create(summary.clone()).await.unwrap();
    Session::builder(client, profile, Arc::clone(env) as Arc<dyn ExecutionEnvironment>)
        .with_id(id)
        .journal(StoredJournal::new(writer, summary))
        .gate(EffectGate::new().with_permission(Effect::Execute, Permission::Ask))
        .build()
        .unwrap()
}

/// Returns the calls that wait in all sessions, once all of them wait.
async fn waiting(store: &dyn SessionStore, sessions: usize) -> Vec<(SessionId, PendingApproval)> {
    let filter = Filter::default().with_property(StoredJournal::PENDING_APPROVALS, CALLS.to_string());
    let summaries = loop {
        let summaries = store.list(&filter, &Page::default()).await.unwrap();
        if summaries.len() == sessions {
            break summaries;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let mut waiting = Vec::new();
    for summary in summaries {
        let record = read_record(store, &summary.id).await.unwrap();
        let pending = record.replay().unwrap().pending_approvals();
        waiting.extend(pending.into_iter().map(|pending| (summary.id.clone(), pending)));
    }
    waiting
}

/// Decides on all of these calls. Ada approves everything, and Bob every second call.
async fn decide(store: Arc<dyn SessionStore>, who: &'static str, calls: Vec<(SessionId, PendingApproval)>) {
    for (session, pending) in calls {
        let is_even = pending.call_id.ends_with(['0', '2']);
        let decision =
            if who == "ada" || is_even { Decision::Approve } else { Decision::Deny { reason: None } };
        let input_id = format!("{who}-{}", pending.call_id);
        let PendingApproval { call_id, fingerprint, .. } = pending;
        let input = PostedInput::Decision { call_id, fingerprint, decision, by: Some(Principal::new(who)) };
        post_input(store.as_ref(), &session, &input_id, input).await.unwrap();
    }
}

/// Waits until whoever was second has been told, for each call.
async fn settled(session: &Session) {
    let mut events = session.events_from(0);
    let mut late = 0;
    while late < CALLS {
        let event = tokio::time::timeout(PATIENCE, events.next()).await.unwrap().unwrap();
        late += usize::from(matches!(event.kind, EventKind::ApprovalLate { .. }));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_have_one_decision_each() {
    let number_of_sessions = cases(40, 250);
    let directory = tempfile::tempdir().unwrap();
    let store: Arc<dyn SessionStore> = Arc::new(FileStore::open(directory.path()).unwrap());
    let env = MemoryEnvironment::new("/w").with_commands(|_| CommandScript::exit(0));
    let env = Arc::new(env);
    let mut sessions = Vec::new();
    let mut runs = Vec::new();
    for number in 0..number_of_sessions {
        let session = start(&store, &env, number).await;
        runs.push(session.submit("go"));
        sessions.push(session);
    }
    let waiting = waiting(store.as_ref(), number_of_sessions).await;
    assert_eq!(waiting.len(), number_of_sessions * CALLS);
    let backwards: Vec<_> = waiting.iter().rev().cloned().collect();
    let ada = tokio::spawn(decide(Arc::clone(&store), "ada", waiting));
    let bob = tokio::spawn(decide(Arc::clone(&store), "bob", backwards));
    ada.await.unwrap();
    bob.await.unwrap();
    for run in runs {
        assert_eq!(run.await.unwrap().status, OutcomeStatus::Completed);
    }
    for session in sessions {
        settled(&session).await;
        session.close().await;
    }

    let mut started: BTreeMap<String, usize> = BTreeMap::new();
    for command in env.commands() {
        if let Program::Shell(line) = &command.program
            && let Some(name) = line.strip_prefix("run ")
        {
            *started.entry(name.to_owned()).or_default() += 1;
        }
    }
    let mut deciders = BTreeSet::new();
    for number in 0..number_of_sessions {
        let record = read_record(store.as_ref(), &SessionId::new(format!("s{number}"))).await.unwrap();
        let events = record.replay().unwrap().events;
        let mut decided: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
        for event in &events {
            if let EventKind::ApprovalDecided { call_id, approved, by, .. } = &event.kind {
                decided.entry(call_id).or_default().push(*approved);
                deciders.insert(by.clone().unwrap().as_str().to_owned());
            }
        }
        for call in 0..CALLS {
            let id = format!("c{call}");
            let [approved] = decided[id.as_str()][..] else { panic!("{number} {id}: {decided:?}") };
            let starts = started.get(&format!("{number}-{call}")).copied().unwrap_or_default();
            assert_eq!(starts, usize::from(approved), "{number} {id}");
            assert!(approved || call % 2 == 1, "nobody denied {number} {id}");
        }
    }
    assert_eq!(deciders.len(), 2, "each of them was first somewhere: {deciders:?}");
}
