//! Decoding streams, against `serde_json` on the same payloads and nothing else.
//!
//! The adapters' decoders have no door of their own, so that a stream comes over loopback. What hyper alone takes to
//! read the same bytes is not counted; all else is, reqwest's part as well.

use std::path::PathBuf;

use futures_util::StreamExt as _;
use pintle_llm::{Client, Message, Request, StreamEvent};
use tokio::runtime::Runtime;

use crate::dialect::Dialect;
use crate::floor::{self, Connection};
use crate::lab;
use crate::measure::{Aim, Contest, Row, cost_of};
use crate::model::{ModelServer, Place};
use crate::plan::Plan;
use crate::report::{Bound, Fact, Report};

const AIM: f64 = 2.0;

/// Once eight times as much may take so many times what eight times as little takes: a quadratic case takes eight times
/// that, and large buffers take fresh pages, which small ones do not.
const LINEAR_AIM: f64 = 2.0;
const TIMES: usize = 8;

const EVENTS: usize = 50_000;
const EVENTS_AIM: f64 = 100_000.0;
const ROUNDS: usize = 7;

/// How often each small event of a recorded answer comes.
const REPEATS: usize = 1_000;

/// Recorded answers that have text or reasoning, by dialect.
const RECORDINGS: [(Dialect, &str); 6] = [
    (Dialect::Responses, "otel-text.sse"),
    (Dialect::Responses, "rb-text-count.sse"),
    (Dialect::Messages, "rb-text.sse"),
    (Dialect::Messages, "rb-thinking.sse"),
    (Dialect::Gemini, "pyd-text.sse"),
    (Dialect::Chat, "pyd-text.sse"),
];

pub(crate) fn run(wanted: &str) -> Report {
    let recordings = recordings();
    let bench = Bench { runtime: crate::runtime(), model: ModelServer::start(recordings.as_ref()) };
    let mut report = Report::default();
    for dialect in Dialect::ALL {
        let what = format!("{}: {EVENTS} small events", dialect.name());
        if what.contains(wanted) {
            let plan = Plan::Small { dialect, events: EVENTS };
            report.rows.push(bench.decode(&what, dialect, &plan));
            report.facts.push(bench.events_a_second(&what, dialect, &plan));
        }
    }
    for (dialect, file) in RECORDINGS {
        let what = format!("{}: recorded {}", dialect.name(), file.trim_end_matches(".sse"));
        if !what.contains(wanted) {
            continue;
        }
        if recordings.is_none() {
            println!("SKIPPED: {what}, PINTLE_WIRE names no folder of recorded answers");
            continue;
        }
        let plan = Plan::Recorded { dialect, file: file.to_owned(), times: REPEATS };
        report.rows.push(bench.decode(&what, dialect, &plan));
    }
    for dialect in Dialect::ALL {
        let growths = [
            (
                "one event of 8 MiB",
                Plan::Large { dialect, bytes: 1 << 20 },
                Plan::Large { dialect, bytes: 8 << 20 },
            ),
            (
                "800 calls in one answer",
                Plan::Calls { dialect, count: 100 },
                Plan::Calls { dialect, count: 800 },
            ),
            (
                "arguments of 2 MiB in 32,768 pieces",
                Plan::Arguments { dialect, bytes: 256 << 10 },
                Plan::Arguments { dialect, bytes: 2 << 20 },
            ),
            (
                "80,000 small events",
                Plan::Small { dialect, events: 10_000 },
                Plan::Small { dialect, events: 80_000 },
            ),
        ];
        for (what, small, large) in growths {
            let what = format!("{}: {what}", dialect.name());
            if what.contains(wanted) {
                report.rows.push(bench.growth(&what, dialect, &small, &large));
            }
        }
    }
    report
}

/// Where recorded answers of providers are, if the person who measures has some.
#[expect(clippy::disallowed_methods, reason = "a variable says where the recorded answers are")]
fn recordings() -> Option<PathBuf> {
    std::env::var_os("PINTLE_WIRE").map(PathBuf::from)
}

struct Bench {
    runtime: Runtime,
    model: ModelServer,
}

impl Bench {
    fn decode(&self, what: &str, dialect: Dialect, plan: &Plan) -> Row {
        let (client, place) = self.client(dialect, plan);
        let stream = self.read(&place, dialect);
        let payloads = floor::payloads(&stream);
        let bytes: usize = payloads.iter().map(|payload| payload.len()).sum();
        let row = Contest::new(what, "serde_json alone", Aim::Cpu(AIM)).with_rounds(ROUNDS).compare(
            || cost_of(|| floor::parse_payloads(&payloads)),
            || {
                let whole = cost_of(|| self.decode_all(&client));
                whole.less(cost_of(|| self.read(&place, dialect)))
            },
        );
        row.with_note(format!("{what}: {} payloads, {} KiB", payloads.len(), bytes >> 10))
    }

    /// Of processor time, with all that it takes to read them.
    fn events_a_second(&self, what: &str, dialect: Dialect, plan: &Plan) -> Fact {
        let (client, _) = self.client(dialect, plan);
        let rate = |_| {
            let cost = cost_of(|| self.decode_all(&client));
            f64::from(u32::try_from(EVENTS).unwrap_or_default()) / cost.cpu.as_secs_f64()
        };
        let rates = (0..ROUNDS).map(rate).collect();
        let what = format!("{what}, decoded, HTTP and all");
        Fact::new(what, "a second and core", Bound::AtLeast(EVENTS_AIM), rates)
    }

    /// Eight small answers against one that is eight times as large.
    fn growth(&self, what: &str, dialect: Dialect, small: &Plan, large: &Plan) -> Row {
        let (small, _) = self.client(dialect, small);
        let (large, _) = self.client(dialect, large);
        let floor = "8 answers of an eighth each";
        Contest::new(what, floor, Aim::Cpu(LINEAR_AIM)).with_rounds(ROUNDS).measure(
            || {
                for _ in 0..TIMES {
                    self.decode_all(&small);
                }
            },
            || self.decode_all(&large),
        )
    }

    fn client(&self, dialect: Dialect, plan: &Plan) -> (Client, Place) {
        let place = self.model.place(plan);
        (lab::client_of(dialect, &place), place)
    }

    /// How many events came of it.
    fn decode_all(&self, client: &Client) -> usize {
        let client = client.clone();
        crate::on_a_worker(&self.runtime, async move {
            let request = Request::new("bench", vec![Message::user("Go on.")]);
            let mut stream = client.stream(request).await.expect("it is answered");
            let mut events = 0;
            let mut finished = false;
            while let Some(event) = stream.next().await {
                finished |= matches!(event.expect("the stream is whole"), StreamEvent::Finish { .. });
                events += 1;
            }
            assert!(finished, "the answer has its end");
            events
        })
    }

    /// The bytes of the same answer, by hyper alone.
    fn read(&self, place: &Place, dialect: Dialect) -> Vec<u8> {
        let (place, path) = (place.clone(), format!("{}/{}", place.path(), dialect.name()));
        crate::on_a_worker(&self.runtime, async move {
            let mut connection = Connection::open(&place.address).await;
            let mut stream = Vec::new();
            let body = hyper::body::Bytes::from_static(b"{}");
            connection.post(&path, body, |piece| stream.extend_from_slice(piece)).await;
            stream
        })
    }
}
