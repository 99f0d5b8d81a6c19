//! Which sessions a tree knows, and what it holds of them.

use std::time::Duration;

use pintle_llm::testing::FakeAdapter;

use super::*;
use crate::event_log::Identity;
use crate::protocol::{EventKind, SubagentStatus, Timestamp};
use crate::subagent::TreeEvents;

/// A tree, and what its members have given it to hold.
struct Bench {
    tree: Arc<Tree>,
    client: Client,
    commands: mpsc::Sender<Command>,
    shared: watch::Sender<Shared>,
    _inbox: mpsc::Receiver<Command>,
}

impl Bench {
    fn new() -> Self {
        let (commands, inbox) = mpsc::channel(1);
        let client = Client::builder().provider(FakeAdapter::new("p")).build().unwrap();
        Self { tree: Arc::default(), client, commands, shared: watch::Sender::default(), _inbox: inbox }
    }

    /// A session of this name joins below another one.
    fn joins(&self, name: &str, parent: &str) -> Arc<EventLog> {
        let identity =
            Identity { session_id: SessionId::new(name), depth: 1, parent: Some(SessionId::new(parent)) };
        let log = Arc::new(EventLog::new(identity));
        let handle = SessionHandle {
            commands: self.commands.clone(),
            shared: self.shared.subscribe(),
            client: self.client.clone(),
            recorder: None,
            tree: Arc::clone(&self.tree),
        };
        self.tree.join(Member::new(Arc::clone(&log), &handle));
        log
    }

    fn leaves(&self, name: &str) {
        self.tree.leave(&SessionId::new(name));
    }

    /// So many sessions join and leave, in order: `0`, `1`, …
    fn pass(&self, count: usize) {
        for name in (0..count).map(|number| number.to_string()) {
            self.joins(&name, "root");
            self.leaves(&name);
        }
    }

    fn forgets(&self, names: &[&str]) {
        self.tree.forget(names.iter().map(|name| SessionId::new(*name)).collect());
    }

    /// Whether a stream that begins now could read this session.
    fn knows(&self, name: &str) -> bool {
        self.tree.unread().take(&SessionId::new(name)).is_some()
    }

    fn reaches(&self, name: &str) -> bool {
        self.tree.handle(&SessionId::new(name)).is_some()
    }
}

#[test]
fn of_a_session_that_has_ended_nothing_is_held_but_its_events() {
    let bench = Bench::new();
    bench.joins("a", "root");
    bench.joins("b", "root");
    assert_eq!((bench.shared.receiver_count(), bench.commands.weak_count()), (2, 2));
    bench.leaves("a");
    assert_eq!((bench.shared.receiver_count(), bench.commands.weak_count()), (1, 1));
    assert_eq!((bench.reaches("a"), bench.reaches("b")), (false, true));
    assert_eq!((bench.knows("a"), bench.knows("b")), (true, true));
}

#[test]
fn the_newest_that_have_ended_are_known_and_each_counts_once() {
    let bench = Bench::new();
    bench.joins("at work", "root");
    bench.pass(MAX_ENDED);
    bench.leaves("7");
    assert_eq!((bench.knows("0"), bench.tree.known()), (true, 1 + MAX_ENDED));
    bench.joins("last", "root");
    bench.leaves("last");
    let known = ["at work", "0", "1", "last"].map(|name| bench.knows(name));
    assert_eq!(known, [true, false, true, true]);
    assert_eq!(bench.tree.known(), 1 + MAX_ENDED);
}

#[test]
fn what_is_forgotten_takes_no_place_of_those_that_have_ended() {
    let bench = Bench::new();
    bench.pass(MAX_ENDED);
    bench.forgets(&["7"]);
    bench.joins("last", "root");
    bench.leaves("last");
    let known = ["0", "7", "last"].map(|name| bench.knows(name));
    assert_eq!(known, [true, false, true]);
}

#[test]
fn who_is_forgotten_is_forgotten_with_all_below() {
    let bench = Bench::new();
    for (name, parent) in [("a", "root"), ("b", "root"), ("c", "a"), ("d", "c"), ("e", "b")] {
        bench.joins(name, parent);
    }
    for name in ["d", "c", "a", "e", "b"] {
        bench.leaves(name);
    }
    bench.forgets(&["a"]);
    let known = ["a", "b", "c", "d", "e"].map(|name| bench.knows(name));
    assert_eq!(known, [false, true, false, false, true]);
}

#[test]
fn a_stream_has_those_that_join_later_and_keeps_what_the_tree_forgets() {
    let bench = Bench::new();
    bench.joins("a", "root");
    let [stream, gone] = [(); 2].map(|()| bench.tree.unread());
    drop(gone);
    bench.joins("b", "root");
    assert_eq!(bench.tree.lock().unread.len(), 1, "nobody reads the other stream");
    bench.leaves("a");
    bench.leaves("b");
    bench.forgets(&["a", "b"]);
    let taken = ["a", "b", "b"].map(|name| stream.take(&SessionId::new(name)).is_some());
    assert_eq!(taken, [true, true, false]);
}

/// Between two looks of a stream a subagent may join the tree and be over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subagent_that_comes_and_goes_while_a_stream_looks_is_told_of_before_its_end() {
    let now = Timestamp::from_millis(0);
    let bench = Bench::new();
    let root = bench.joins("root", "nobody");
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
    let mut events = TreeEvents::new(Arc::clone(&bench.tree), SessionId::new("root"), Arc::clone(&root));
    let mut reading = tokio::task::JoinSet::new();
    reading.spawn(async move {
        let mut told = Vec::new();
        while let Some(event) = events.next().await {
            told.push(event.session_id.to_string());
        }
        told
    });
    // The stream has read what there is, and waits for more.
    tokio::time::sleep(Duration::from_millis(50)).await;
    root.append_after(now, ended, || {
        bench.joins("another", "root");
        // By now that has woken the stream, and it waits for this log.
        std::thread::sleep(Duration::from_millis(50));
        let log = bench.joins("child", "root");
        log.append(now, EventKind::SessionEnd { state: crate::protocol::SessionState::Closed });
        log.close();
    });
    root.close();
    let told = reading.join_next().await.unwrap().unwrap();
    assert_eq!(told, ["root", "child", "root"]);
}
