//! A tool round: request, stream, decode, trivial tool, next request.
#![expect(clippy::disallowed_methods, reason = "measures sessions without a host")]

mod shipped;

use std::path::{Path, PathBuf};

use pintle_agent::{ProviderProfile, Session, SessionConfig, Start};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::baseline::{self, Connection, Conversation};
use crate::measure::{Aim, Comparison, Cost, Moment, Round, Row};
use crate::model::{Endpoint, ModelServer};
use crate::plan::Plan;
use crate::report::Report;
use crate::sessions::{self, CallTimes};

const AIM: f64 = 1.25;
const GROWTH_AIM: f64 = 1.1;
const PROMPT: &str = "Do what there is to do.";

/// Number of rounds compared at each end of a long session.
const SHARE: usize = 20;

/// A number of rounds with one tool.
#[derive(Clone, Copy)]
pub(crate) struct RoundPlan {
    pub(crate) tool: &'static str,
    pub(crate) rounds: usize,
}

/// Configuration of a session.
pub(crate) struct Setup {
    pub(crate) profile: ProviderProfile,
    pub(crate) config: SessionConfig,
    pub(crate) start: Option<Start>,
    pub(crate) prompt: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self { profile: sessions::profile(), config: sessions::config(), start: None, prompt: PROMPT }
    }
}

struct Case {
    what: &'static str,
    baseline: &'static str,
    rounds_plan: RoundPlan,
    repeats: usize,
}

const CASES: [Case; 4] = [
    Case {
        what: "20 rounds with a shell command",
        baseline: "hyper, serde_json, /bin/sh -c true",
        rounds_plan: RoundPlan { tool: "shell", rounds: 20 },
        repeats: 21,
    },
    Case {
        what: "20 rounds with a tool in process",
        baseline: "hyper and serde_json",
        rounds_plan: RoundPlan { tool: "note", rounds: 20 },
        repeats: 31,
    },
    Case {
        what: "2,000 rounds with a shell command",
        baseline: "hyper, serde_json, /bin/sh -c true",
        rounds_plan: RoundPlan { tool: "shell", rounds: 2_000 },
        repeats: 3,
    },
    Case {
        what: "2,000 rounds with a tool in process",
        baseline: "hyper and serde_json",
        rounds_plan: RoundPlan { tool: "note", rounds: 2_000 },
        repeats: 3,
    },
];

const GROWTH: &str = "CPU per byte sent, around round 2,000";

pub(crate) fn run(wanted: &str) -> Report {
    let harness = Harness::new();
    let mut rows: Vec<Row> =
        CASES.iter().filter(|case| case.what.contains(wanted)).map(|case| harness.row(case)).collect();
    if GROWTH.contains(wanted) {
        rows.push(harness.growth());
    }
    let mut report = Report::from(rows);
    shipped::run(wanted, &harness.model, &mut report);
    report
}

/// The runtime and server that both sides use.
pub(crate) struct Harness {
    runtime: Runtime,
    pub(crate) model: ModelServer,
    directory: TempDir,
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self {
            runtime: crate::runtime(),
            model: ModelServer::start(None),
            directory: TempDir::new().expect("there is room for a directory"),
        }
    }

    fn row(&self, case: &Case) -> Row {
        let head = self.head(Setup::default);
        let (baseline, subject) = (self.endpoint(case.rounds_plan), self.endpoint(case.rounds_plan));
        self.baseline(&head, &baseline);
        self.subject(&subject, Setup::default());
        let bytes = |endpoint: &Endpoint| endpoint.sent().iter().sum::<u64>();
        let note =
            format!("{}: {} bytes sent, the baseline {}", case.what, bytes(&subject), bytes(&baseline));
        let all = |moments: Vec<Moment>| {
            let (first, last) = moments.first().zip(moments.last()).expect("there were rounds");
            first.until(*last).per(count(moments.len() - 1))
        };
        let row =
            Comparison::new(case.what, case.baseline, Aim::Both(AIM)).with_rounds(case.repeats).compare(
                || all(self.baseline(&head, &self.endpoint(case.rounds_plan))),
                || all(self.subject(&self.endpoint(case.rounds_plan), Setup::default())),
            );
        let more = row.spread(Round::more).map_or(0.0, |spread| spread.median * 1_000.0);
        row.with_note(format!("{note}; a round takes {more:.0} µs more"))
    }

    /// Compares the last rounds of a long session with those around the 20th.
    fn growth(&self) -> Row {
        let rounds_plan = RoundPlan { tool: "note", rounds: 2_000 };
        let sides = || {
            let endpoint = self.endpoint(rounds_plan);
            let moments = self.subject(&endpoint, Setup::default());
            let sent = endpoint.sent();
            let of = |from: usize| {
                let (first, last) = (moments.get(from), moments.get(from + SHARE));
                let cost = first.zip(last).map_or_else(Cost::default, |(first, last)| first.until(*last));
                // The first request after a moment is the next one, not that of the call that ended.
                let bytes: u64 = sent.iter().skip(from + 1).take(SHARE).sum();
                cost.per(bytes as f64 / 1_024.0)
            };
            (of(SHARE / 2), of(rounds_plan.rounds - SHARE))
        };
        let measured: Vec<(Cost, Cost)> = (0..4).map(|_| sides()).collect();
        let (early, late) = (measured.iter().map(|pair| pair.0), measured.iter().map(|pair| pair.1));
        let (early, late) = (std::cell::RefCell::new(early), std::cell::RefCell::new(late));
        Comparison::new(GROWTH, "the same around round 20, per KiB", Aim::Cpu(GROWTH_AIM))
            .with_rounds(measured.len() - 1)
            .compare(
                || early.borrow_mut().next().unwrap_or_default(),
                || late.borrow_mut().next().unwrap_or_default(),
            )
    }

    pub(crate) fn endpoint(&self, rounds_plan: RoundPlan) -> Endpoint {
        // One more round, so that each round has a call at both ends.
        self.model.endpoint(&Plan::rounds(rounds_plan.tool, rounds_plan.rounds + 1))
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Returns the first request of such a session without the closing brackets, so that the baseline sends as much.
    pub(crate) fn head(&self, setup: impl Fn() -> Setup) -> Vec<u8> {
        let endpoint = self.model.endpoint(&Plan::text());
        self.subject(&endpoint, setup());
        let mut head = endpoint.first_body();
        head.truncate(head.len().saturating_sub(2));
        head
    }

    /// Runs a session. Returns the time at which each call ended.
    pub(crate) fn subject(&self, endpoint: &Endpoint, setup: Setup) -> Vec<Moment> {
        let moments = CallTimes::default();
        let session = work(endpoint.clone(), self.directory().to_path_buf(), setup, moments.clone());
        crate::on_a_worker(&self.runtime, session);
        moments.take()
    }

    /// Runs the loop written by hand. Returns the time at which each call ended.
    pub(crate) fn baseline(&self, head: &[u8], endpoint: &Endpoint) -> Vec<Moment> {
        let moments = CallTimes::default();
        crate::on_a_worker(&self.runtime, work_by_hand(endpoint.clone(), head.to_vec(), moments.clone()));
        moments.take()
    }
}

/// Runs one session.
pub(crate) async fn work(endpoint: Endpoint, directory: PathBuf, setup: Setup, moments: CallTimes) {
    let environment = sessions::environment(&directory);
    let Setup { profile, config, start, prompt } = setup;
    let mut builder =
        Session::builder(sessions::client(&endpoint), profile, environment).with_config(config).gate(moments);
    if let Some(start) = start {
        builder = builder.start(start);
    }
    let session = builder.build().expect("it is complete");
    sessions::submit(&session, prompt).await;
    session.close().await;
}

/// Runs the loop written by hand.
pub(crate) async fn work_by_hand(endpoint: Endpoint, head: Vec<u8>, moments: CallTimes) {
    let mut connection = Connection::open(&endpoint.address).await;
    let mut conversation = Conversation::new(&head);
    let path = format!("{}/responses", endpoint.path());
    loop {
        let calls = conversation.ask(&mut connection, &path).await;
        for call in &calls {
            assert!(!call.arguments.is_empty(), "a call says something");
            let output = if call.name == "shell" { baseline::run_true().await } else { "ok".to_owned() };
            moments.push();
            conversation.answer(call, &output);
        }
        if calls.is_empty() {
            return;
        }
    }
}

fn count(rounds: usize) -> f64 {
    f64::from(u32::try_from(rounds).unwrap_or(u32::MAX))
}
