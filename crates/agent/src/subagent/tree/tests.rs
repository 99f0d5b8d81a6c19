//! Members of a tree and the data that it keeps of them.

use std::time::Duration;

use pintle_llm::testing::FakeAdapter;

use super::*;
use crate::event_log::Identity;
use crate::protocol::{EventKind, SubagentStatus, Timestamp};
use crate::subagent::TreeEvents;

/// A tree with fake sessions that share one set of channels.
struct Harness {
    tree: Arc<Tree>,
    client: Client,
    commands: mpsc::Sender<SentCommand>,
    shared: watch::Sender<PublishedState>,
    _inbox: mpsc::Receiver<SentCommand>,
}

impl Harness {
    fn new() -> Self {
        let (commands, inbox) = mpsc::channel(1);
        let client = Client::builder().provider(FakeAdapter::new("p")).build().unwrap();
        Self { tree: Arc::default(), client, commands, shared: watch::Sender::default(), _inbox: inbox }
    }

    /// Adds a session as a child of another one.
    fn join(&self, name: &str, parent: &str) -> Arc<EventLog> {
        let identity =
            Identity { session_id: SessionId::new(name), depth: 1, parent: Some(SessionId::new(parent)) };
        let log = Arc::new(EventLog::new(identity));
        let link = SessionLink {
            commands: self.commands.clone(),
            shared: self.shared.subscribe(),
            client: self.client.clone(),
            recorder: None,
            tree: Arc::clone(&self.tree),
        };
        self.tree.join(Member::new(Arc::clone(&log), &link));
        log
    }

    fn leave(&self, name: &str) {
        self.tree.leave(&SessionId::new(name));
    }

    /// Adds and ends `count` sessions, named `0`, `1`, …
    fn join_and_leave(&self, count: usize) {
        for name in (0..count).map(|number| number.to_string()) {
            self.join(&name, "root");
            self.leave(&name);
        }
    }

    fn forget(&self, names: &[&str]) {
        self.tree.forget(names.iter().map(|name| SessionId::new(*name)).collect());
    }

    /// Returns whether a new stream can read this session.
    fn is_readable(&self, name: &str) -> bool {
        self.tree.subscribe().take(&SessionId::new(name)).is_some()
    }

    fn has_handle(&self, name: &str) -> bool {
        self.tree.handle(&SessionId::new(name)).is_some()
    }
}

#[test]
fn only_the_log_of_an_ended_session_is_kept() {
    let harness = Harness::new();
    harness.join("a", "root");
    harness.join("b", "root");
    assert_eq!((harness.shared.receiver_count(), harness.commands.weak_count()), (2, 2));
    harness.leave("a");
    assert_eq!((harness.shared.receiver_count(), harness.commands.weak_count()), (1, 1));
    assert_eq!((harness.has_handle("a"), harness.has_handle("b")), (false, true));
    assert_eq!((harness.is_readable("a"), harness.is_readable("b")), (true, true));
}

#[test]
fn the_last_ended_sessions_are_kept() {
    let harness = Harness::new();
    harness.join("at work", "root");
    harness.join_and_leave(MAX_ENDED);
    harness.leave("7");
    assert_eq!((harness.is_readable("0"), harness.tree.member_count()), (true, 1 + MAX_ENDED));
    harness.join("last", "root");
    harness.leave("last");
    let readable = ["at work", "0", "1", "last"].map(|name| harness.is_readable(name));
    assert_eq!(readable, [true, false, true, true]);
    assert_eq!(harness.tree.member_count(), 1 + MAX_ENDED);
}

#[test]
fn forgotten_sessions_do_not_count_as_ended() {
    let harness = Harness::new();
    harness.join_and_leave(MAX_ENDED);
    harness.forget(&["7"]);
    harness.join("last", "root");
    harness.leave("last");
    let readable = ["0", "7", "last"].map(|name| harness.is_readable(name));
    assert_eq!(readable, [true, false, true]);
}

#[test]
fn forgetting_a_session_forgets_its_descendants() {
    let harness = Harness::new();
    for (name, parent) in [("a", "root"), ("b", "root"), ("c", "a"), ("d", "c"), ("e", "b")] {
        harness.join(name, parent);
    }
    for name in ["d", "c", "a", "e", "b"] {
        harness.leave(name);
    }
    harness.forget(&["a"]);
    let readable = ["a", "b", "c", "d", "e"].map(|name| harness.is_readable(name));
    assert_eq!(readable, [false, true, false, false, true]);
}

#[test]
fn a_stream_keeps_logs_that_the_tree_forgets() {
    let harness = Harness::new();
    harness.join("a", "root");
    let [stream, dropped] = [(); 2].map(|()| harness.tree.subscribe());
    drop(dropped);
    harness.join("b", "root");
    assert_eq!(harness.tree.lock().streams.len(), 1, "the other stream was dropped");
    harness.leave("a");
    harness.leave("b");
    harness.forget(&["a", "b"]);
    let taken = ["a", "b", "b"].map(|name| stream.take(&SessionId::new(name)).is_some());
    assert_eq!(taken, [true, true, false]);
}

/// A subagent may join the tree and end between two polls of a stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_lived_subagent_is_delivered_before_its_end() {
    let now = Timestamp::from_millis(0);
    let harness = Harness::new();
    let root = harness.join("root", "none");
    let child = SessionId::new("child");
    let spawned =
        EventKind::SubagentSpawned { agent_id: "a".into(), child: child.clone(), task: "Look.".into() };
    let ended = EventKind::SubagentEnded {
        agent_id: "a".into(),
        child,
        status: SubagentStatus::Completed,
        turns_used: 0,
    };
    root.append(now, spawned);
    let mut events = TreeEvents::new(Arc::clone(&harness.tree), SessionId::new("root"), Arc::clone(&root));
    let mut reading = tokio::task::JoinSet::new();
    reading.spawn(async move {
        let mut sessions = Vec::new();
        while let Some(event) = events.next().await {
            sessions.push(event.session_id.to_string());
        }
        sessions
    });
    // The stream has read all events and waits.
    tokio::time::sleep(Duration::from_millis(50)).await;
    root.append_after(now, ended, || {
        harness.join("another", "root");
        // The stream was woken and waits for the lock of this log.
        std::thread::sleep(Duration::from_millis(50));
        let log = harness.join("child", "root");
        log.append(now, EventKind::SessionEnd { state: crate::protocol::SessionState::Closed });
        log.close();
    });
    root.close();
    let sessions = reading.join_next().await.unwrap().unwrap();
    assert_eq!(sessions, ["root", "child", "root"]);
}
