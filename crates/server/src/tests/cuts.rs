//! Clients whose connections are cut at random, of sessions whose server ends again and again.

#![expect(clippy::disallowed_methods, reason = "variables ask for a longer run")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pintle_llm::testing::FakeAdapter;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::harness::{Fixture, Frame, Request, Setup, Stream, runs, scripted, try_send, try_stream};

/// Time between two attempts to reach a server that is not there.
const PAUSE: Duration = Duration::from_millis(5);

/// Random numbers from a seed (xorshift), so that a failure can be repeated.
#[derive(Clone, Copy, Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A client that follows one session, approves its calls, and gives it work.
struct Follower {
    address: SocketAddr,
    id: String,
    random: Random,
    /// Events of the record by their ids, as they came.
    events: Vec<(String, Value)>,
    cuts: usize,
    submitted: usize,
    is_working: bool,
}

impl Follower {
    /// Follows until there is nothing more to do.
    async fn follow(mut self, is_over: Arc<AtomicBool>) -> Self {
        loop {
            if !self.is_working {
                if is_over.load(Ordering::Relaxed) {
                    return self;
                }
                self.submitted += 1;
                let body = json!({"text": format!("Go on, {}", self.submitted)});
                let key = format!("submit-{}", self.submitted);
                self.send(&format!("/v1/sessions/{}/submit", self.id), &body, &key).await;
                self.is_working = true;
            }
            let after = self.events.last().map(|(id, _)| format!("?after={id}")).unwrap_or_default();
            let Some(mut stream) =
                try_stream(self.address, &format!("/v1/sessions/{}/events{after}", self.id)).await
            else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let frames = 1 + self.random.below(12);
            self.read(&mut stream, frames).await;
            self.cuts += 1;
        }
    }

    /// Reads so many events, unless the stream or the work ends before.
    async fn read(&mut self, stream: &mut Stream, frames: u64) {
        for _ in 0..frames {
            let Some(frame) = stream.next().await else { return };
            if frame.name.as_deref() == Some("reset") {
                self.events.clear();
            }
            self.take(frame).await;
            if !self.is_working {
                return;
            }
        }
    }

    async fn take(&mut self, frame: Frame) {
        let Some(id) = frame.id else { return };
        let data = frame.data;
        if data["kind"] == "APPROVAL_REQUESTED" {
            let path = format!(
                "/v1/sessions/{}/approvals/{}",
                self.id,
                data["data"]["call_id"].as_str().unwrap_or_default()
            );
            let body = json!({"fingerprint": data["data"]["fingerprint"], "decision": "approve"});
            // Two clients at once, of which one may come too late.
            let (first, second) = (format!("a-{id}"), format!("b-{id}"));
            tokio::join!(self.send(&path, &body, &first), self.send(&path, &body, &second));
        }
        self.is_working = data["kind"] != "PROCESSING_END";
        self.events.push((id, data));
    }

    /// Sends a request again and again until a server has answered it.
    async fn send(&self, path: &str, body: &Value, key: &str) {
        loop {
            let request = Request::new("POST", path).json(body).header("idempotency-key", key);
            match try_send(self.address, request).await {
                Some(response) if matches!(response.status().as_u16(), 202 | 409) => return,
                Some(_) | None => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// A model that calls a command or answers, each call with an id of its own.
fn model(random: &mut Random) -> FakeAdapter {
    (0..20_000).fold(scripted(), |adapter, number| match random.below(3) {
        0 => adapter.answer(format!("Answer {number}.")),
        _ => adapter.message(runs(&format!("c{number}"), &format!("make {number}"))),
    })
}

/// Returns the events of the record after this one.
async fn record_of(fixture: &Fixture, id: &str, after: Option<&str>) -> Vec<(String, Value)> {
    let is_last = |frame: &Frame| frame.name.as_deref() == Some("ready");
    let frames = fixture.follow(id, after).await.until(is_last).await;
    frames.into_iter().filter_map(|frame| Some((frame.id?, frame.data))).collect()
}

/// Cuts and restarts until there were enough, and compares what the clients have with the record.
async fn cut(seed: u64, sessions: usize, restarts: u64) {
    let mut random = Random(seed);
    let mut fixture = Setup::new(model(&mut random)).asking().start().await;
    let is_over = Arc::new(AtomicBool::new(false));
    let mut followers = JoinSet::new();
    for _ in 0..sessions {
        let follower = Follower {
            address: fixture.address,
            id: fixture.create().await,
            random: Random(1 + random.below(u64::MAX - 1)),
            events: Vec::new(),
            cuts: 0,
            submitted: 0,
            is_working: false,
        };
        followers.spawn(follower.follow(Arc::clone(&is_over)));
    }
    for _ in 0..restarts {
        tokio::time::sleep(Duration::from_millis(20 + random.below(200))).await;
        fixture.restart().await;
    }
    is_over.store(true, Ordering::Relaxed);
    let (mut cuts, mut events) = (0, 0);
    for mut follower in followers.join_all().await {
        // The last server may have taken the session up after its work had ended.
        let last = follower.events.last().map(|(id, _)| id.clone());
        follower.events.extend(record_of(&fixture, &follower.id, last.as_deref()).await);
        assert_eq!(follower.events, record_of(&fixture, &follower.id, None).await, "seed {seed}");
        cuts += follower.cuts;
        events += follower.events.len();
    }
    assert!(cuts > sessions && events > sessions, "{cuts} cuts, {events} events: seed {seed}");
    let mut released = BTreeMap::new();
    for command in fixture.host.ran.lock().unwrap().iter() {
        *released.entry(command.clone()).or_insert(0) += 1;
    }
    assert!(!released.is_empty(), "seed {seed}");
    assert!(released.values().all(|times| *times == 1), "seed {seed}: {released:?}");
}

#[tokio::test]
async fn cut_clients_have_what_the_record_has_and_calls_run_once() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    // For a longer run, such as 50 sessions and 100 restarts.
    let (seed, sessions, restarts) =
        (number("CUTS_SEED", 7), number("CUTS_SESSIONS", 8), number("CUTS_RESTARTS", 6));
    cut(seed, usize::try_from(sessions).unwrap(), restarts).await;
}
