//! Openings of sessions: different sessions are opened at the same time, and each session by one request.

use std::sync::Arc;

use async_trait::async_trait;
use axum::body::Body;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use pintle_agent::SessionId;
use pintle_store::SessionStore as _;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use super::harness::{Fixture, PATIENCE, Setup, TestHost, scripted};
use crate::api;
use crate::hub::{Hub, LiveSession};
use crate::problem::{FAILED, NOT_FOUND, Problem, UNAVAILABLE};
use crate::{HostError, NewSession, OpenSession, Server, ServerLimits, SessionHost};

/// Host that opens a session when the test lets it.
#[derive(Debug)]
struct HeldHost {
    inner: TestHost,
    openings: mpsc::UnboundedSender<HeldOpening>,
}

/// An opening that has started.
#[derive(Debug)]
struct HeldOpening {
    id: SessionId,
    result: oneshot::Sender<Result<(), HostError>>,
}

impl HeldOpening {
    fn succeed(self) {
        self.result.send(Ok(())).unwrap();
    }

    fn fail(self) {
        self.result.send(Err(HostError::Failed { what: "it failed".to_owned(), source: None })).unwrap();
    }
}

#[async_trait]
impl SessionHost for HeldHost {
    async fn create(&self, id: SessionId, request: NewSession) -> Result<OpenSession, HostError> {
        self.inner.create(id, request).await
    }

    async fn open(&self, id: &SessionId) -> Result<OpenSession, HostError> {
        let (result, received) = oneshot::channel();
        self.openings.send(HeldOpening { id: id.clone(), result }).unwrap();
        received.await.unwrap()?;
        self.inner.open(id).await
    }

    async fn fork(
        &self,
        origin: &SessionId,
        turns: usize,
        fork: SessionId,
    ) -> Result<OpenSession, HostError> {
        self.inner.fork(origin, turns, fork).await
    }

    async fn delete(&self, id: &SessionId) -> Result<(), HostError> {
        self.inner.delete(id).await
    }
}

/// A hub with its openings, and requests to it.
struct Openings {
    hub: Arc<Hub>,
    held: mpsc::UnboundedReceiver<HeldOpening>,
    requests: JoinSet<(SessionId, Result<Arc<LiveSession>, Problem>)>,
    fixture: Fixture,
}

/// Creates a hub, and closed sessions of its store.
async fn setup<const N: usize>(limits: ServerLimits) -> (Openings, [SessionId; N]) {
    let mut fixture = Setup::new(scripted()).start().await;
    let mut sessions = Vec::new();
    for _ in 0..N {
        sessions.push(SessionId::new(fixture.create().await));
    }
    fixture.shut_down().await;
    let (openings, held) = mpsc::unbounded_channel();
    let host = HeldHost { inner: fixture.host.clone(), openings };
    let hub = Hub::new(Arc::new(host), Arc::new(fixture.host.store.clone()), limits);
    (Openings { hub, held, requests: JoinSet::new(), fixture }, sessions.try_into().unwrap())
}

impl Openings {
    /// Starts a request that needs a session.
    fn request(&mut self, id: &SessionId) -> AbortHandle {
        let (hub, id) = (Arc::clone(&self.hub), id.clone());
        self.requests.spawn(async move {
            let opened = hub.open(&id).await;
            (id, opened)
        })
    }

    /// Returns the next opening that starts.
    async fn next_held(&mut self) -> HeldOpening {
        let next = tokio::time::timeout(PATIENCE, self.held.recv()).await;
        next.expect("an opening starts").unwrap()
    }

    /// Returns the next answer, and the session of its request.
    async fn next_answer(&mut self) -> (SessionId, Result<Arc<LiveSession>, Problem>) {
        let next = tokio::time::timeout(PATIENCE, self.requests.join_next()).await;
        next.expect("a request is answered").unwrap().unwrap()
    }

    /// Waits until this number of requests hold the slot of a session or wait for it.
    async fn until_users(&self, id: &SessionId, users: usize) {
        let are_there = async {
            while self.hub.slot_users(id) != users {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, are_there).await.expect("all requests are there");
    }
}

fn one_session() -> ServerLimits {
    ServerLimits::default().with_sessions(1)
}

#[tokio::test]
async fn an_opening_does_not_wait_for_that_of_another_session() {
    let (mut openings, [slow, quick]) = setup::<2>(ServerLimits::default()).await;
    openings.request(&slow);
    let held = openings.next_held().await;
    openings.request(&quick);
    let other = openings.next_held().await;
    assert_eq!((&held.id, &other.id), (&slow, &quick));
    other.succeed();
    let (id, opened) = openings.next_answer().await;
    opened.unwrap();
    assert_eq!(id, quick);
    assert!(openings.hub.live(&quick).is_some());
    assert!(openings.hub.live(&slow).is_none());
    held.succeed();
    let (id, opened) = openings.next_answer().await;
    opened.unwrap();
    assert_eq!(id, slow);
    assert!(openings.hub.live(&slow).is_some());
}

#[tokio::test]
async fn requests_for_one_session_share_its_opening() {
    let (mut openings, [id]) = setup::<1>(ServerLimits::default()).await;
    openings.request(&id);
    let held = openings.next_held().await;
    openings.request(&id);
    openings.until_users(&id, 2).await;
    held.succeed();
    let (_, first) = openings.next_answer().await;
    let (_, second) = openings.next_answer().await;
    assert!(Arc::ptr_eq(&first.unwrap(), &second.unwrap()));
    assert!(openings.held.try_recv().is_err(), "it was opened once");
    assert_eq!(openings.hub.slot_users(&id), 0);
}

#[tokio::test]
async fn an_opening_that_fails_is_tried_again() {
    let (mut openings, [id]) = setup::<1>(one_session()).await;
    openings.request(&id);
    let held = openings.next_held().await;
    openings.request(&id);
    openings.until_users(&id, 2).await;
    held.fail();
    let (_, failed) = openings.next_answer().await;
    assert!(failed.unwrap_err().is(FAILED));
    // The request that waited tries it itself, and the place is free.
    openings.next_held().await.fail();
    let (_, failed) = openings.next_answer().await;
    assert!(failed.unwrap_err().is(FAILED));
    assert_eq!(openings.hub.slot_users(&id), 0);
    openings.request(&id);
    openings.next_held().await.succeed();
    let (_, opened) = openings.next_answer().await;
    opened.unwrap();
    assert_eq!(openings.hub.slot_users(&id), 0);
}

#[tokio::test]
async fn a_cancelled_opening_leaves_no_slot_and_no_place() {
    let (mut openings, [id]) = setup::<1>(one_session()).await;
    let opening = openings.request(&id);
    let held = openings.next_held().await;
    let waiting = openings.request(&id);
    openings.until_users(&id, 2).await;
    for (request, users) in [(waiting, 1), (opening, 0)] {
        request.abort();
        let ended = openings.requests.join_next().await.unwrap();
        assert!(ended.unwrap_err().is_cancelled());
        assert_eq!(openings.hub.slot_users(&id), users);
    }
    assert!(held.result.is_closed(), "the host's opening was dropped");
    openings.request(&id);
    openings.next_held().await.succeed();
    let (_, opened) = openings.next_answer().await;
    opened.unwrap();
    assert_eq!(openings.hub.slot_users(&id), 0);
}

/// A client that disconnects drops its request.
#[tokio::test]
async fn an_opening_continues_without_the_request_that_started_it() {
    let mut fixture = Setup::new(scripted()).start().await;
    let id = SessionId::new(fixture.create().await);
    fixture.shut_down().await;
    let (openings, mut held) = mpsc::unbounded_channel();
    let host = HeldHost { inner: fixture.host.clone(), openings };
    let store = Arc::new(fixture.host.store.clone());
    let server = Server::new(Arc::new(host), store, ServerLimits::default());
    let router = TowerToHyperService::new(api::router(server.app(None, false)));
    let tools = || {
        let request = hyper::Request::builder().uri(format!("/v1/sessions/{id}/tools"));
        router.call(request.body(Body::empty()).unwrap())
    };
    let mut first = Box::pin(tools());
    let opening = tokio::select! {
        opening = held.recv() => opening.unwrap(),
        answer = &mut first => panic!("{answer:?}"),
    };
    drop(first);
    assert!(!opening.result.is_closed(), "the host's opening continues");
    let answer = async {
        let succeed = async {
            // The second request waits for the same opening.
            while server.hub.slot_users(&id) != 2 {
                tokio::task::yield_now().await;
            }
            opening.succeed();
        };
        tokio::join!(tools(), succeed).0
    };
    let answer = tokio::time::timeout(PATIENCE, answer).await.expect("the second request is answered");
    assert_eq!(answer.unwrap().status(), 200);
    assert!(held.try_recv().is_err(), "it was opened once");
    assert!(server.hub.live(&id).is_some());
    server.hub.shut_down().await;
}

#[tokio::test]
async fn a_session_that_is_being_opened_counts_as_open() {
    let (mut openings, [first, second, third]) = setup::<3>(one_session()).await;
    openings.request(&first);
    let held = openings.next_held().await;
    let cancelled = openings.request(&second);
    openings.until_users(&second, 1).await;
    assert!(openings.held.try_recv().is_err(), "there is one place");
    held.fail();
    let (id, failed) = openings.next_answer().await;
    assert_eq!(id, first);
    assert!(failed.unwrap_err().is(FAILED));
    let held = openings.next_held().await;
    assert_eq!(held.id, second);
    openings.request(&third);
    openings.until_users(&third, 1).await;
    assert!(openings.held.try_recv().is_err(), "there is one place");
    cancelled.abort();
    assert!(openings.requests.join_next().await.unwrap().unwrap_err().is_cancelled());
    drop(held);
    let held = openings.next_held().await;
    assert_eq!(held.id, third);
    held.succeed();
    let (id, opened) = openings.next_answer().await;
    opened.unwrap();
    assert_eq!(id, third);
}

#[tokio::test]
async fn a_deletion_waits_for_an_opening_and_closes_the_session() {
    let (mut openings, [id]) = setup::<1>(ServerLimits::default()).await;
    openings.request(&id);
    let held = openings.next_held().await;
    let (hub, deleted) = (Arc::clone(&openings.hub), id.clone());
    let mut deletion = JoinSet::new();
    deletion.spawn(async move {
        let read =
            || async { assert!(hub.live(&deleted).is_none(), "it is closed before its record is read") };
        hub.delete(&deleted, &deleted, None, read).await
    });
    openings.until_users(&id, 2).await;
    openings.request(&id);
    openings.until_users(&id, 3).await;
    held.succeed();
    let (_, opened) = openings.next_answer().await;
    opened.unwrap();
    let ended = tokio::time::timeout(PATIENCE, deletion.join_next()).await.expect("the deletion ends");
    ended.unwrap().unwrap().unwrap();
    assert!(openings.hub.live(&id).is_none());
    assert!(openings.fixture.host.store.summary(&id).await.unwrap().is_none());
    // The request that came after the deletion finds no session.
    openings.next_held().await.succeed();
    let (_, missing) = openings.next_answer().await;
    assert!(missing.unwrap_err().is(NOT_FOUND));
    assert_eq!(openings.hub.slot_users(&id), 0);
}

#[tokio::test]
async fn a_server_that_shuts_down_closes_a_session_that_it_is_opening() {
    let (mut openings, [id, other]) = setup::<2>(ServerLimits::default()).await;
    let mut tasks = JoinSet::new();
    let (hub, opened) = (Arc::clone(&openings.hub), id.clone());
    tasks.spawn(async move {
        let opening = Arc::clone(&hub);
        let answer = hub.carry_out(async move { opening.open(&opened).await.map(drop) }).await;
        answer.expect("the request does not panic").unwrap();
    });
    let held = openings.next_held().await;
    let hub = Arc::clone(&openings.hub);
    tasks.spawn(async move { hub.shut_down().await });
    openings.hub.closing().cancelled().await;
    openings.request(&other);
    let (_, refused) = openings.next_answer().await;
    assert!(refused.unwrap_err().is(UNAVAILABLE));
    assert!(!openings.hub.drained().is_cancelled(), "the opening is waited for");
    held.succeed();
    while let Some(ended) = tokio::time::timeout(PATIENCE, tasks.join_next()).await.expect("both end") {
        ended.unwrap();
    }
    assert!(openings.hub.all_live().is_empty());
    assert!(openings.fixture.host.store.holder(&id).await.unwrap().is_none());
}
