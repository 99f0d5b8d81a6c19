//! Sessions that start in the middle of another one.

use std::sync::atomic::{AtomicUsize, Ordering};

use pintle_env::{EnvError, ExecutionEnvironment, MemoryEnvironment, forward};

use super::*;
use crate::protocol::ForkedFrom;

/// Checks that history, system prompt and tools of `fork` begin like those of `of`.
fn begins_alike(of: &Request, fork: &Request) {
    assert_eq!((&fork.tools, &fork.model), (&of.tools, &of.model));
    let same = fork.messages.iter().zip(&of.messages).take_while(|(a, b)| a == b).count();
    // The new input, and possibly the answers to calls without results.
    assert!(same + 2 >= fork.messages.len(), "{same} of {}", fork.messages.len());
}

#[tokio::test]
async fn fork_from_any_entry_sends_the_same_bytes() {
    let harness = Harness::new(script());
    let session = harness.builder().build().unwrap();
    session.submit("one").await.unwrap();
    let history = session.history();
    let longest = harness.requests().last().unwrap().clone();
    for turns in 0..=history.len() {
        let fork = session.fork(turns).await.unwrap().build().unwrap();
        assert_ne!(fork.id(), session.id());
        let before = harness.requests().len();
        assert_eq!(fork.history()[..turns], history[..turns]);
        fork.submit("instead").await.unwrap();
        begins_alike(&longest, &harness.requests()[before]);
        well_formed(&fork.history());
        let started = fork.events().next().await.unwrap();
        let EventKind::SessionStart { forked_from, .. } = started.kind else { panic!("{started:?}") };
        assert_eq!(forked_from, Some(ForkedFrom { session_id: session.id().clone(), turns }));
        assert_eq!(fork.record().unwrap().replay().unwrap().history, fork.history());
        fork.close().await;
    }
    assert_eq!(session.history(), history, "the original session is unchanged");
    assert_eq!(session.state(), SessionState::Idle);
    let after = harness.requests().len();
    session.submit("two").await.unwrap();
    begins_alike(&longest, &harness.requests()[after]);
}

#[tokio::test]
async fn fork_beyond_the_history_is_rejected() {
    let harness = Harness::new(script());
    let session = harness.builder().build().unwrap();
    session.submit("one").await.unwrap();
    let turns = session.history().len();
    let error = session.fork(turns + 1).await.unwrap_err();
    assert_eq!(error.to_string(), format!("the history has no entry {}: it has {turns} so far", turns + 1));
    let record = session.record().unwrap();
    assert_eq!(record.fork(turns + 1).unwrap(), None);
}

#[tokio::test]
async fn fork_works_live_and_from_a_record() {
    let harness = Harness::new(vec![calling(0, &["look", "hang"]), Message::assistant("not so")]);
    let session = harness.builder().build().unwrap();
    let mut run = session.submit("go");
    while !matches!(run.next().await.unwrap().kind, EventKind::ToolCallEnd { .. }) {}
    session.handle().follow_up("later").await.unwrap();
    let fork = session.fork(2).await.unwrap().build().unwrap();
    assert_eq!(fork.submit("and now?").await.unwrap().text, "not so");
    well_formed(&fork.history());
    assert_eq!(fork.history().len(), 5, "the queue of the other session is kept");
    assert_eq!(session.state(), SessionState::Processing);
    fork.close().await;
    let handle = session.handle();
    session.close().await;

    let start = handle.record().unwrap().fork(1).unwrap().unwrap();
    let again = Harness::new(vec![Message::assistant("from the record")]);
    let fork = again.builder().start(start).build().unwrap();
    assert_eq!(fork.submit("and now?").await.unwrap().text, "from the record");
    assert_eq!(fork.history()[0].content(), "go");
}

/// A prompt for other tools is not kept.
#[tokio::test]
async fn fork_with_another_profile_loads_its_prompt() {
    let harness = Harness::new(script());
    let session = harness.builder().build().unwrap();
    session.submit("one").await.unwrap();
    session.handle().set_model("claude-sonnet-4-5").unwrap();
    let fork = session.fork(1).await.unwrap().build().unwrap();
    fork.submit("instead").await.unwrap();
    assert_eq!(harness.requests().last().unwrap().model, "claude-sonnet-4-5");
}

/// Environment that counts how often it is initialised and cleaned up.
#[derive(Debug)]
struct Initialised {
    inner: MemoryEnvironment,
    times: AtomicUsize,
    cleanups: AtomicUsize,
}

impl Initialised {
    fn new(directory: &str) -> Arc<Self> {
        let inner = MemoryEnvironment::new(directory);
        Arc::new(Self { inner, times: AtomicUsize::new(0), cleanups: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl ExecutionEnvironment for Initialised {
    forward! {
        inner: working_directory, platform, os_version, spawn, read, write, metadata, list, remove, rename, canonicalize
    }

    async fn initialize(&self) -> Result<(), EnvError> {
        self.times.fetch_add(1, Ordering::Relaxed);
        self.inner.initialize().await
    }

    async fn cleanup(&self) -> Result<(), EnvError> {
        self.cleanups.fetch_add(1, Ordering::Relaxed);
        self.inner.cleanup().await
    }
}

#[tokio::test]
async fn a_session_and_its_fork_do_not_initialise_an_initialised_environment() {
    for (is_shared, cleanups) in [(false, 1), (true, 0)] {
        let harness = Harness::new(["one", "two"].map(Message::assistant).to_vec());
        let client =
            Client::builder().shared_provider(Arc::clone(&harness.adapter) as Arc<dyn ProviderAdapter>);
        let env = Initialised::new("/project");
        let builder = Session::builder(client.build().unwrap(), harness.profile(), Arc::clone(&env));
        let builder = if is_shared { builder.shared_environment() } else { builder };
        let session = builder.initialized_environment().build().unwrap();
        session.submit("go").await.unwrap();
        let fork = session.fork(0).await.unwrap().build().unwrap();
        let outcome = fork.submit("instead").await.unwrap();
        assert_eq!(outcome.status, OutcomeStatus::Completed, "{:?}", outcome.error);
        fork.close().await;
        session.close().await;
        assert_eq!(env.times.load(Ordering::Relaxed), 0);
        assert_eq!(env.cleanups.load(Ordering::Relaxed), cleanups, "{is_shared}");
    }
}

/// A session and its forks initialise one environment, once: the one that it was built with. The embedding application
/// initialises any later one.
#[tokio::test]
async fn fork_shares_environment_initialisation() {
    for has_started in [true, false] {
        let answers = ["one", "two"].map(Message::assistant).to_vec();
        let harness = Harness::new(answers);
        let client =
            Client::builder().shared_provider(Arc::clone(&harness.adapter) as Arc<dyn ProviderAdapter>);
        let [begins, goes] = ["/one", "/two"].map(Initialised::new);
        let session = Session::builder(client.build().unwrap(), harness.profile(), Arc::clone(&begins))
            .build()
            .unwrap();
        if has_started {
            session.submit("go").await.unwrap();
        }
        session.handle().set_environment(goes.clone()).unwrap();
        let fork = session.fork(0).await.unwrap().build().unwrap();
        let outcome = fork.submit("instead").await.unwrap();
        assert_eq!(outcome.status, OutcomeStatus::Completed, "{has_started}: {:?}", outcome.error);
        fork.close().await;
        session.close().await;
        let times = [&begins, &goes].map(|env| env.times.load(Ordering::Relaxed));
        assert_eq!(times, [1, 0], "{has_started}");
    }
}
