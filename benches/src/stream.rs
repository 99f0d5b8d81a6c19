//! Decoding of streams, compared with parsing the same payloads by `serde_json`.
//!
//! The decoders of the adapters are not public, so the streams are read over loopback. The cost of reading the same
//! bytes with hyper alone is subtracted; everything else counts, including reqwest.

use std::path::PathBuf;

use futures_util::StreamExt as _;
use pintle_llm::{Client, Message, Request, StreamEvent};
use tokio::runtime::Runtime;

use crate::baseline::{self, Connection};
use crate::dialect::Dialect;
use crate::measure::{Aim, Comparison, Row, cost_of};
use crate::model::{Endpoint, ModelServer};
use crate::plan::Plan;
use crate::report::{Bound, Fact, Report};
use crate::sessions;

const AIM: f64 = 2.0;

/// Allowed ratio of one response to eight responses of an eighth of its size. It would be eight if decoding were
/// quadratic. It may exceed one, since large buffers need fresh pages.
const LINEAR_AIM: f64 = 2.0;
const TIMES: usize = 8;

const EVENTS: usize = 50_000;
const EVENTS_AIM: f64 = 100_000.0;
const ROUNDS: usize = 7;

/// Number of repetitions of each small event of a recorded response.
const REPEATS: usize = 1_000;

/// Recorded responses with text or reasoning, by dialect.
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
    let harness = Harness { runtime: crate::runtime(), model: ModelServer::start(recordings.as_ref()) };
    let mut report = Report::default();
    for dialect in Dialect::ALL {
        let what = format!("{}: {EVENTS} small events", dialect.name());
        if what.contains(wanted) {
            let plan = Plan::Small { dialect, events: EVENTS };
            report.rows.push(harness.decode(&what, dialect, &plan));
            report.facts.push(harness.events_a_second(&what, dialect, &plan));
        }
    }
    for (dialect, file) in RECORDINGS {
        let what = format!("{}: recorded {}", dialect.name(), file.trim_end_matches(".sse"));
        if !what.contains(wanted) {
            continue;
        }
        if recordings.is_none() {
            println!("SKIPPED: {what}, PINTLE_WIRE is not set to a directory of recordings");
            continue;
        }
        let plan = Plan::Recorded { dialect, file: file.to_owned(), times: REPEATS };
        report.rows.push(harness.decode(&what, dialect, &plan));
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
                report.rows.push(harness.growth(&what, dialect, &small, &large));
            }
        }
    }
    report
}

/// Returns the directory of recorded responses, if there is one.
#[expect(clippy::disallowed_methods, reason = "a variable names the directory of recordings")]
fn recordings() -> Option<PathBuf> {
    std::env::var_os("PINTLE_WIRE").map(PathBuf::from)
}

struct Harness {
    runtime: Runtime,
    model: ModelServer,
}

impl Harness {
    fn decode(&self, what: &str, dialect: Dialect, plan: &Plan) -> Row {
        let (client, endpoint) = self.client(dialect, plan);
        let stream = self.read(&endpoint, dialect);
        let payloads = baseline::payloads(&stream);
        let bytes: usize = payloads.iter().map(|payload| payload.len()).sum();
        let row = Comparison::new(what, "serde_json alone", Aim::Cpu(AIM)).with_rounds(ROUNDS).compare(
            || cost_of(|| baseline::parse_payloads(&payloads)),
            || {
                let whole = cost_of(|| self.decode_all(&client));
                whole.less(cost_of(|| self.read(&endpoint, dialect)))
            },
        );
        row.with_note(format!("{what}: {} payloads, {} KiB", payloads.len(), bytes >> 10))
    }

    /// Measures the events per second of CPU time, including HTTP.
    fn events_a_second(&self, what: &str, dialect: Dialect, plan: &Plan) -> Fact {
        let (client, _) = self.client(dialect, plan);
        let rate = |_| {
            let cost = cost_of(|| self.decode_all(&client));
            f64::from(u32::try_from(EVENTS).unwrap_or_default()) / cost.cpu.as_secs_f64()
        };
        let rates = (0..ROUNDS).map(rate).collect();
        let what = format!("{what}, decoded, HTTP included");
        Fact::new(what, "a second and core", Bound::AtLeast(EVENTS_AIM), rates)
    }

    /// Compares one response with eight responses of an eighth of its size.
    fn growth(&self, what: &str, dialect: Dialect, small: &Plan, large: &Plan) -> Row {
        let (small, _) = self.client(dialect, small);
        let (large, _) = self.client(dialect, large);
        let baseline = "8 answers of an eighth each";
        Comparison::new(what, baseline, Aim::Cpu(LINEAR_AIM)).with_rounds(ROUNDS).measure(
            || {
                for _ in 0..TIMES {
                    self.decode_all(&small);
                }
            },
            || self.decode_all(&large),
        )
    }

    fn client(&self, dialect: Dialect, plan: &Plan) -> (Client, Endpoint) {
        let endpoint = self.model.endpoint(plan);
        (sessions::client_of(dialect, &endpoint), endpoint)
    }

    /// Decodes a response. Returns the number of events.
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

    /// Reads the bytes of the same response with hyper alone.
    fn read(&self, endpoint: &Endpoint, dialect: Dialect) -> Vec<u8> {
        let (endpoint, path) = (endpoint.clone(), format!("{}/{}", endpoint.path(), dialect.name()));
        crate::on_a_worker(&self.runtime, async move {
            let mut connection = Connection::open(&endpoint.address).await;
            let mut stream = Vec::new();
            let body = hyper::body::Bytes::from_static(b"{}");
            connection.post(&path, body, |piece| stream.extend_from_slice(piece)).await;
            stream
        })
    }
}
