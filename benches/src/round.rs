//! A tool round: request, stream, decode, trivial tool, next request.

use std::path::{Path, PathBuf};

use pintle_agent::{ProviderProfile, Session, SessionConfig, Start};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::floor::{self, Connection, Conversation};
use crate::lab::{self, Moments};
use crate::measure::{Aim, Contest, Cost, Moment, Round, Row};
use crate::model::{ModelServer, Place};
use crate::plan::Plan;
use crate::report::Report;

const AIM: f64 = 1.25;
const GROWTH_AIM: f64 = 1.1;
const PROMPT: &str = "Do what there is to do.";

/// Rounds at each end of a long session that are compared.
const SHARE: usize = 20;

/// A trip over so many rounds with one tool.
#[derive(Clone, Copy)]
pub(crate) struct Trip {
    pub(crate) tool: &'static str,
    pub(crate) rounds: usize,
}

/// What a session is made of.
pub(crate) struct Setup {
    pub(crate) profile: ProviderProfile,
    pub(crate) config: SessionConfig,
    pub(crate) start: Option<Start>,
    pub(crate) prompt: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self { profile: lab::profile(), config: lab::config(), start: None, prompt: PROMPT }
    }
}

struct Case {
    what: &'static str,
    floor: &'static str,
    trip: Trip,
    repeats: usize,
}

const CASES: [Case; 4] = [
    Case {
        what: "20 rounds with a shell command",
        floor: "hyper, serde_json, /bin/sh -c true",
        trip: Trip { tool: "shell", rounds: 20 },
        repeats: 21,
    },
    Case {
        what: "20 rounds with a tool in process",
        floor: "hyper and serde_json",
        trip: Trip { tool: "note", rounds: 20 },
        repeats: 31,
    },
    Case {
        what: "2,000 rounds with a shell command",
        floor: "hyper, serde_json, /bin/sh -c true",
        trip: Trip { tool: "shell", rounds: 2_000 },
        repeats: 3,
    },
    Case {
        what: "2,000 rounds with a tool in process",
        floor: "hyper and serde_json",
        trip: Trip { tool: "note", rounds: 2_000 },
        repeats: 3,
    },
];

const GROWTH: &str = "CPU per byte sent, around round 2,000";

pub(crate) fn run(wanted: &str) -> Report {
    let bench = Bench::new();
    let mut rows: Vec<Row> =
        CASES.iter().filter(|case| case.what.contains(wanted)).map(|case| bench.row(case)).collect();
    if GROWTH.contains(wanted) {
        rows.push(bench.growth());
    }
    rows.into()
}

/// What both sides need.
pub(crate) struct Bench {
    runtime: Runtime,
    pub(crate) model: ModelServer,
    folder: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            runtime: crate::runtime(),
            model: ModelServer::start(None),
            folder: TempDir::new().expect("there is room for a directory"),
        }
    }

    fn row(&self, case: &Case) -> Row {
        let head = self.head(Setup::default);
        let (floor, subject) = (self.place(case.trip), self.place(case.trip));
        self.floor(&head, &floor);
        self.subject(&subject, Setup::default());
        let bytes = |place: &Place| place.sent().iter().sum::<u64>();
        let note = format!("{}: {} bytes sent, the floor {}", case.what, bytes(&subject), bytes(&floor));
        let all = |moments: Vec<Moment>| {
            let (first, last) = moments.first().zip(moments.last()).expect("there were rounds");
            first.until(*last).per(count(moments.len() - 1))
        };
        let row = Contest::new(case.what, case.floor, Aim::Both(AIM)).with_rounds(case.repeats).compare(
            || all(self.floor(&head, &self.place(case.trip))),
            || all(self.subject(&self.place(case.trip), Setup::default())),
        );
        let more = row.spread(Round::more).map_or(0.0, |spread| spread.median * 1_000.0);
        row.with_note(format!("{note}; a round takes {more:.0} µs more"))
    }

    /// The last rounds of a long session against those around the 20th, in the same session.
    fn growth(&self) -> Row {
        let trip = Trip { tool: "note", rounds: 2_000 };
        let sides = || {
            let place = self.place(trip);
            let moments = self.subject(&place, Setup::default());
            let sent = place.sent();
            let of = |from: usize| {
                let (first, last) = (moments.get(from), moments.get(from + SHARE));
                let cost = first.zip(last).map_or_else(Cost::default, |(first, last)| first.until(*last));
                // The request that follows the first of these moments is the one after the call's own.
                let bytes: u64 = sent.iter().skip(from + 1).take(SHARE).sum();
                cost.per(bytes as f64 / 1_024.0)
            };
            (of(SHARE / 2), of(trip.rounds - SHARE))
        };
        let measured: Vec<(Cost, Cost)> = (0..4).map(|_| sides()).collect();
        let (early, late) = (measured.iter().map(|pair| pair.0), measured.iter().map(|pair| pair.1));
        let (early, late) = (std::cell::RefCell::new(early), std::cell::RefCell::new(late));
        Contest::new(GROWTH, "the same around round 20, per KiB", Aim::Cpu(GROWTH_AIM))
            .with_rounds(measured.len() - 1)
            .compare(
                || early.borrow_mut().next().unwrap_or_default(),
                || late.borrow_mut().next().unwrap_or_default(),
            )
    }

    pub(crate) fn place(&self, trip: Trip) -> Place {
        // One more round, so that there is a call at both ends of each.
        self.model.place(&Plan::rounds(trip.tool, trip.rounds + 1))
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// What such a session's first request begins with, so that the floor sends as much: all but the closing brackets.
    pub(crate) fn head(&self, setup: impl Fn() -> Setup) -> Vec<u8> {
        let place = self.model.place(&Plan::text());
        self.subject(&place, setup());
        let mut head = place.first_body();
        head.truncate(head.len().saturating_sub(2));
        head
    }

    /// A session of this library; a moment for the end of each call.
    pub(crate) fn subject(&self, place: &Place, setup: Setup) -> Vec<Moment> {
        let moments = Moments::default();
        let session = work(place.clone(), self.folder().to_path_buf(), setup, moments.clone());
        crate::on_a_worker(&self.runtime, session);
        moments.take()
    }

    /// The loop by hand.
    pub(crate) fn floor(&self, head: &[u8], place: &Place) -> Vec<Moment> {
        let moments = Moments::default();
        crate::on_a_worker(&self.runtime, work_by_hand(place.clone(), head.to_vec(), moments.clone()));
        moments.take()
    }
}

/// One session from its beginning to its end.
pub(crate) async fn work(place: Place, folder: PathBuf, setup: Setup, moments: Moments) {
    let environment = lab::environment(&folder);
    let Setup { profile, config, start, prompt } = setup;
    let mut builder =
        Session::builder(lab::client(&place), profile, environment).config(config).gate(moments);
    if let Some(start) = start {
        builder = builder.start(start);
    }
    let session = builder.build().expect("it is complete");
    lab::submit(&session, prompt).await;
    session.close().await;
}

/// The same by hand.
pub(crate) async fn work_by_hand(place: Place, head: Vec<u8>, moments: Moments) {
    let mut connection = Connection::open(&place.address).await;
    let mut conversation = Conversation::new(&head);
    let path = format!("{}/responses", place.path());
    loop {
        let calls = conversation.ask(&mut connection, &path).await;
        for call in &calls {
            assert!(!call.arguments.is_empty(), "a call says something");
            let output = if call.name == "shell" { floor::run_true().await } else { "ok".to_owned() };
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
