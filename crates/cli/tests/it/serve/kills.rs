//! A server that is killed again and again, and clients whose streams are cut: they have what the record has, and no call runs
//! twice.

#![expect(clippy::disallowed_methods, reason = "variables ask for a longer run")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a client looks at few kinds of events")]
#![expect(clippy::print_stdout, reason = "a longer run says what it did")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use pintle_agent::{Decision, EventKind, SessionEvent, SessionId};
use pintle_client::{
    Backoff, Client, ClientError, ClientOptions, EventId, NewSession, SessionItem, SettingsChange,
};
use pintle_llm::Fingerprint;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::*;

/// More turns than a run takes.
const MAX_TURNS: usize = 20_000;

/// Most items that are read before a stream is cut.
const MAX_ITEMS: u64 = 12;

/// Random numbers from a seed (xorshift), so that a choice can be repeated.
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

/// Turns that answer, or run a command of their own that leaves a line.
fn turns(random: &mut Random) -> String {
    let mut turns = String::new();
    for number in 0..MAX_TURNS {
        match random.below(3) {
            0 => write!(turns, "[[turn]]\ntext = \"Answer {number}: Grüße ✓\"\n").unwrap(),
            _ => write!(
                turns,
                "[[turn]]\ntext = \"Run {number}\"\n[[turn.call]]\ntool = \"shell\"\n\
                 arguments = {{ command = \"echo {number} >>ran\" }}\n"
            )
            .unwrap(),
        }
    }
    turns
}

/// A server at the socket of the harness, which the next one takes over.
struct Killed<'a> {
    harness: &'a Harness,
    child: Child,
}

impl<'a> Killed<'a> {
    fn start(harness: &'a Harness) -> Self {
        Self { harness, child: Self::serve(harness) }
    }

    fn serve(harness: &Harness) -> Child {
        let path = harness.path("server.sock");
        let mut command = command(harness, &["--socket", path.to_str().unwrap(), "--max-rate", "1000000"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        assert!(first_line(&mut child).starts_with("listening on "));
        child
    }

    /// Kills the server, and starts the next one.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = Self::serve(self.harness);
    }
}

impl Drop for Killed<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that follows one session, approves its calls, and gives it work.
struct Follower {
    client: Client,
    id: SessionId,
    random: Random,
    events: Vec<SessionEvent>,
    last: Option<EventId>,
    /// Text of the open segment, as far as it was streamed.
    text: String,
    submitted: usize,
    is_working: bool,
}

impl Follower {
    /// Follows until there is nothing more to do.
    async fn follow(mut self, is_over: Arc<AtomicBool>, cuts: Arc<AtomicUsize>) -> Self {
        loop {
            if !self.is_working {
                if is_over.load(Ordering::Relaxed) {
                    return self;
                }
                self.submitted += 1;
                let said = format!("Go on, {}", self.submitted);
                let once = self.client.with_key(&format!("{}-{}", self.id, self.submitted));
                once.submit(&self.id, said).await.unwrap();
                self.is_working = true;
            }
            let mut items = self.client.events(&self.id, self.last.clone());
            self.text.clear();
            for _ in 0..=self.random.below(MAX_ITEMS) {
                let item = tokio::time::timeout(PATIENCE, items.next()).await.expect("an item arrives");
                self.take(item.unwrap().unwrap()).await;
                if !self.is_working {
                    break;
                }
            }
            cuts.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn take(&mut self, item: SessionItem) {
        match item {
            SessionItem::Event { id, event } => {
                match &event.kind {
                    EventKind::AssistantTextEnd { text, .. } => {
                        let streamed = std::mem::take(&mut self.text);
                        // The end is what counts: text that was not on record yet when the server was killed is not in it.
                        let agree = text.starts_with(&streamed) || streamed.starts_with(text.as_str());
                        assert!(agree, "{streamed:?} of {text:?}");
                    }
                    EventKind::ApprovalRequested { call_id, fingerprint, .. } => {
                        // Two clients at once, of which one comes too late.
                        tokio::join!(
                            self.approve(call_id, *fingerprint),
                            self.approve(call_id, *fingerprint)
                        );
                    }
                    _ => {}
                }
                self.is_working = !matches!(event.kind, EventKind::ProcessingEnd { .. });
                self.last = Some(id);
                self.events.push(*event);
            }
            SessionItem::Delta(event) => {
                if let EventKind::AssistantTextDelta { delta } = &event.kind {
                    if event.offset == Some(0) {
                        self.text.clear();
                    }
                    assert_eq!(event.offset, Some(self.text.len() as u64), "{event:?}");
                    self.text.push_str(delta);
                }
            }
            SessionItem::Reset { .. } => {
                self.events.clear();
                self.text.clear();
            }
            _ => {}
        }
    }
}

impl Follower {
    /// Approves a call, unless somebody else was faster.
    async fn approve(&self, call_id: &str, fingerprint: Fingerprint) {
        match self.client.decide(&self.id, call_id, fingerprint, Decision::Approve).await {
            Ok(()) => {}
            Err(error) => assert_eq!(error.code(), Some("conflict"), "{error:?}"),
        }
    }

    /// Compares what was received with the record, and that with what was said. Returns the number of events.
    async fn compare(mut self) -> usize {
        let rest = recorded(&self.client, &self.id, self.last.take()).await.unwrap();
        self.events.extend(rest);
        let record = recorded(&self.client, &self.id, None).await.unwrap();
        assert_eq!(self.events, record, "session {}", self.id);
        let inputs = record.iter().filter_map(|event| match &event.kind {
            EventKind::UserInput { content, .. } => Some(content.clone()),
            _ => None,
        });
        let said: Vec<String> = (1..=self.submitted).map(|number| format!("Go on, {number}")).collect();
        assert_eq!(inputs.collect::<Vec<_>>(), said, "session {}: each message counts once", self.id);
        record.len()
    }
}

/// Returns the events after this one, up to those of the moment.
async fn recorded(
    client: &Client,
    id: &SessionId,
    after: Option<EventId>,
) -> Result<Vec<SessionEvent>, ClientError> {
    let (mut items, mut events) = (client.events(id, after), Vec::new());
    while let Some(item) = items.next().await {
        match item? {
            SessionItem::Event { event, .. } => events.push(*event),
            SessionItem::Ready => break,
            _ => {}
        }
    }
    Ok(events)
}

/// Faults of a run before it ends.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    seed: u64,
    sessions: u64,
    kills: u64,
    /// Cuts and kills together.
    faults: u64,
}

/// Cuts and kills until there were enough, and compares what the clients have with the record.
async fn kill(harness: &Harness, wanted: Wanted, mut random: Random) {
    let mut server = Killed::start(harness);
    let address = format!("unix:{}", harness.path("server.sock").display());
    let backoff = Backoff { first: Duration::from_millis(5), longest: Duration::from_millis(50) };
    let options = ClientOptions::default().with_retries(10_000).with_backoff(backoff);
    let client = Client::with_options(&address, None, options).unwrap();
    let (is_over, cuts) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut followers = JoinSet::new();
    for number in 0..wanted.sessions {
        // The model says the same to all of them.
        let directory = harness.path(&format!("project-{number}"));
        std::fs::create_dir(&directory).unwrap();
        let settings = SettingsChange { mode: Some("ask".to_owned()), ..SettingsChange::default() };
        let directory = Some(directory.display().to_string());
        let new = NewSession { directory, settings, ..NewSession::default() };
        let follower = Follower {
            client: client.clone(),
            id: client.create_session(new).await.unwrap().id,
            random: Random(1 + random.below(u64::MAX - 1)),
            events: Vec::new(),
            last: None,
            text: String::new(),
            submitted: 0,
            is_working: false,
        };
        followers.spawn(follower.follow(Arc::clone(&is_over), Arc::clone(&cuts)));
    }
    let mut kills = 0;
    while kills < wanted.kills || cuts.load(Ordering::Relaxed) as u64 + kills < wanted.faults {
        tokio::time::sleep(Duration::from_millis(50 + random.below(800))).await;
        tokio::task::block_in_place(|| server.kill());
        kills += 1;
    }
    is_over.store(true, Ordering::Relaxed);
    let followers = followers.join_all().await;
    tokio::task::block_in_place(|| server.kill());
    let mut events = 0;
    for follower in followers {
        events += follower.compare().await;
    }
    let cuts = cuts.load(Ordering::Relaxed);
    println!("{wanted:?}: {cuts} cuts, {kills} kills, {events} events");
}

#[test]
fn a_server_that_is_killed_loses_and_doubles_nothing() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    // For a longer run, such as 50 sessions, 100 kills and 1,000 faults.
    let wanted = Wanted {
        seed: number("KILLS_SEED", 7),
        sessions: number("KILLS_SESSIONS", 6),
        kills: number("KILLS", 4),
        faults: number("KILLS_FAULTS", 60),
    };
    let mut random = Random(wanted.seed);
    let harness = Harness::new(Dialect::AnthropicMessages, &turns(&mut random));
    Runtime::new().unwrap().block_on(kill(&harness, wanted, random));
    let mut commands = 0;
    for number in 0..wanted.sessions {
        // It is missing if no call of the session came as far.
        let written = std::fs::read_to_string(harness.path(&format!("project-{number}/ran")));
        let mut ran = BTreeMap::new();
        for command in written.unwrap_or_default().lines() {
            *ran.entry(command.to_owned()).or_insert(0) += 1;
        }
        assert!(ran.values().all(|times| *times == 1), "session {number}: {ran:?}");
        commands += ran.len();
    }
    assert!(commands > 0);
    println!("{commands} commands, each once");
}
