//! Sessions of a server: their memory, that of subscribers, and what a streamed event costs.
//!
//! Servers and subscribers are processes of their own, so that the cost of one is not counted with another. The same
//! subscribers read from a server with sessions and from a plain axum server, which streams the bytes that one of them
//! recorded. What the sessions cost without a server is measured in a third process, and subtracted.

mod client;
mod control;
mod latency;
mod pace;
mod sessions;

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use self::client::Round;
pub(crate) use self::client::{DELTA, subscribe};
use self::control::Process;
pub(crate) use self::control::answer_lines;
use self::latency::Percentiles;
pub(crate) use self::latency::stamped_again;
pub(crate) use self::pace::Pace;
pub(crate) use self::sessions::{bare, serve};
use crate::measure::{Aim, Comparison, Cost, Row, Spread};
use crate::report::{Bound, Fact, Report};

/// Argument with which this program serves sessions.
pub(crate) const SERVE: &str = "serve-sessions";

/// Argument with which this program has sessions without a server.
pub(crate) const BARE: &str = "bare-sessions";

/// Argument with which this program streams recorded bytes with axum alone.
pub(crate) const PLAIN: &str = "serve-plain-streams";

/// Argument with which this program follows streams.
pub(crate) const SUBSCRIBE: &str = "subscribe";

const SESSIONS: usize = 1_000;

/// Subscribers of each session.
const COPIES: usize = 2;

/// Allowed multiple of the CPU time of a plain axum stream.
const AIM: f64 = 1.5;

/// Rounds of each comparison, after one that only warms up.
const ROUNDS: usize = 7;

/// Processes whose memory is measured.
const MEMORY_ROUNDS: usize = 3;

const ALL: Pace = Pace { period: Duration::from_millis(250), deltas: 20 };
const ONE: Pace = Pace { period: Duration::from_millis(10), deltas: 200 };

const SESSION: &str = "private memory of an idle session that answered once, 1,000 of them";
const SUBSCRIBER: &str = "private memory of a subscriber, 2,000 of them";
const PLAIN_SUBSCRIBER: &str = "private memory of a subscriber of a plain axum stream, 2,000 of them";
const EVENT: &str = "1,000 sessions stream to 2,000 subscribers, without the work of the sessions: an event";
const WHOLE: &str =
    "1,000 sessions stream to 2,000 subscribers, with the work of the sessions: CPU of an event";
const RATE: &str = "1,000 sessions stream to 2,000 subscribers, with the work of the sessions: events";
const IDLE: &str = "a delta to the only subscriber, 1,000 sessions idle";
const BUSY: &str = "a delta to a client, 1,000 sessions streaming to 2,000 subscribers";

pub(crate) fn run(wanted: &str) -> Report {
    let mut report = Report::default();
    if [SESSION, SUBSCRIBER, PLAIN_SUBSCRIBER].iter().any(|name| name.contains(wanted)) {
        report.facts.extend(memory());
    }
    if IDLE.contains(wanted) {
        Stage::new(1, 1, &ONE).compare(&ONE, IDLE, &mut report);
    }
    if [EVENT, WHOLE, RATE, BUSY].iter().any(|name| name.contains(wanted)) {
        Stage::new(SESSIONS, COPIES, &ALL).compare(&ALL, BUSY, &mut report);
    }
    report
}

/// Measures the growth of a server by its sessions, and by their subscribers.
fn memory() -> Vec<Fact> {
    let kilobytes = |bytes: u64, parts: usize| float(bytes) / 1_000.0 / count(parts);
    let (mut sessions, mut subscribers, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..MEMORY_ROUNDS {
        let directory = TempDir::new().expect("there is room for a directory");
        let mut server = Process::start(&[SERVE.as_ref(), directory.path().as_os_str()]);
        // Initializes everything that sessions and streams share.
        let paths = server.open(1);
        Subscribers::connect(&mut server, &paths, COPIES).leave();
        let before = server.number("memory");
        let paths = server.open(SESSIONS);
        let with_sessions = server.number("memory");
        let connected = Subscribers::connect(&mut server, &paths, COPIES);
        let with_subscribers = server.number("memory");
        connected.leave();
        sessions.push(kilobytes(with_sessions.saturating_sub(before), SESSIONS));
        subscribers.push(kilobytes(with_subscribers.saturating_sub(with_sessions), SESSIONS * COPIES));

        let mut axum = Process::start(&[PLAIN.as_ref()]);
        let recorded = directory.path().join("recorded");
        write(&recorded, b"data: {}\n\n");
        let paths = axum.load(&recorded, SESSIONS);
        Subscribers::connect(&mut axum, paths.get(..1).unwrap_or_default(), COPIES).leave();
        let before = axum.number("memory");
        let connected = Subscribers::connect(&mut axum, &paths, COPIES);
        plain.push(kilobytes(axum.number("memory").saturating_sub(before), SESSIONS * COPIES));
        connected.leave();
    }
    vec![
        Fact::new(SESSION, "KB each", Bound::None, sessions),
        Fact::new(SUBSCRIBER, "KB each", Bound::None, subscribers),
        Fact::new(PLAIN_SUBSCRIBER, "KB each", Bound::None, plain),
    ]
}

/// Client process with streams of one server.
struct Subscribers(Process);

impl Subscribers {
    fn connect(server: &mut Process, paths: &[String], copies: usize) -> Self {
        let address = server.ask("address");
        let mut client = Process::start(&[SUBSCRIBE.as_ref(), address.as_ref()]);
        for path in paths {
            client.ask(&format!("path {path}"));
        }
        client.ask(&format!("connect {copies}"));
        Self(client)
    }

    /// Starts a round, in which the first stream is recorded to a file.
    fn begin(&mut self, record: Option<&Path>) {
        let record = record.map(|file| format!(" {}", file.display())).unwrap_or_default();
        self.0.ask(&format!("begin{record}"));
    }

    /// Waits for the ends of this many responses.
    fn wait(&mut self, responses: usize) -> Round {
        Round::parse(&self.0.ask(&format!("wait {responses}")))
    }

    fn leave(self) {
        drop(self);
        // The server sees the ends of the connections.
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Servers with subscribers, and sessions without a server.
struct Stage {
    server: Process,
    bare: Process,
    axum: Process,
    of_server: Subscribers,
    of_axum: Subscribers,
    /// Sessions that stream.
    streaming: usize,
    copies: usize,
    _directory: TempDir,
}

/// Result of one round.
struct Measured {
    server: Cost,
    bare: Cost,
    axum: Cost,
    of_server: Round,
    of_axum: Round,
    in_process: Percentiles,
}

impl Stage {
    /// Opens the sessions, the first `streaming` of which have `copies` subscribers each, and records what one of them gets
    /// when no other session streams.
    fn new(streaming: usize, copies: usize, pace: &Pace) -> Self {
        let directory = TempDir::new().expect("there is room for a directory");
        let of = |name: &str| directory.path().join(name);
        let mut server = Process::start(&[SERVE.as_ref(), of("served").as_os_str()]);
        let mut bare = Process::start(&[BARE.as_ref(), of("bare").as_os_str()]);
        let mut axum = Process::start(&[PLAIN.as_ref()]);
        let paths = server.open(SESSIONS);
        bare.open(SESSIONS);
        let paths = paths.get(..streaming).unwrap_or_default();
        let mut of_server = Subscribers::connect(&mut server, paths, copies);
        let recorded = directory.path().join("recorded");
        of_server.begin(Some(&recorded));
        server.ask("arm 1");
        server.ask(&format!("go {}", pace.words()));
        of_server.wait(copies);
        let paths = axum.load(&recorded, streaming);
        let of_axum = Subscribers::connect(&mut axum, &paths, copies);
        Self { server, bare, axum, of_server, of_axum, streaming, copies, _directory: directory }
    }

    fn compare(mut self, pace: &Pace, name: &str, report: &mut Report) {
        // The first round warms up.
        let rounds: Vec<Measured> = (0..=ROUNDS).map(|_| self.round(pace)).collect();
        let rounds = rounds.get(1..).unwrap_or_default();
        if self.streaming == SESSIONS {
            report.rows.push(row(rounds));
            let whole = rounds.iter().map(|round| {
                let of = |cost: Cost, round: &Round| cost.per(count(round.events)).cpu.as_secs_f64();
                of(round.server, &round.of_server) / of(round.axum, &round.of_axum)
            });
            report.facts.push(Fact::new(WHOLE, "× that of axum", Bound::None, whole.collect()));
            let rate = rounds
                .iter()
                .map(|round| count(round.of_server.events) / round.server.cpu.as_secs_f64().max(1e-9));
            report.facts.push(Fact::new(RATE, "a second and core", Bound::None, rate.collect()));
        }
        let p50: fn(&Percentiles) -> u64 = |times| times.p50;
        for (percentile, of) in [("p50", p50), ("p99", |times| times.p99)] {
            let mut fact = |what: &str, unit, value: &dyn Fn(&Measured) -> f64| {
                let values = rounds.iter().map(value).collect();
                let what = format!("{name}: {what}, {percentile}");
                report.facts.push(Fact::new(what, unit, Bound::None, values));
            };
            let microseconds = |times: &Percentiles| float(of(times)) / 1_000.0;
            let client = |round: &Measured| microseconds(&round.of_server.percentiles);
            let process = |round: &Measured| microseconds(&round.in_process);
            fact("added to the time in process", "µs", &|round| client(round) - process(round));
            fact("relative to the time in process", "×", &|round| client(round) / process(round).max(1e-3));
            fact("time in process", "µs", &process);
        }
    }

    /// Streams one response of each session, in turns.
    fn round(&mut self, pace: &Pace) -> Measured {
        let (streaming, responses) = (self.streaming, self.streaming * self.copies);
        self.server.ask("latencies");
        self.of_server.begin(None);
        self.server.ask(&format!("arm {streaming}"));
        let of_server = &mut self.of_server;
        let (server, served) = cost(&mut self.server, pace, |server| {
            let served = of_server.wait(responses);
            server.ask("wait");
            served
        });
        let in_process = Percentiles::parse(&self.server.ask("latencies"));
        self.bare.ask(&format!("arm {streaming}"));
        let (bare, ()) = cost(&mut self.bare, pace, |bare| drop(bare.ask("wait")));
        let of_axum = &mut self.of_axum;
        of_axum.begin(None);
        let (axum, plain) = cost(&mut self.axum, pace, |_| of_axum.wait(responses));
        Measured { server, bare, axum, of_server: served, of_axum: plain, in_process }
    }
}

/// Measures the CPU time of a process from the start of its streams until `wait` returns.
fn cost<T>(process: &mut Process, pace: &Pace, wait: impl FnOnce(&mut Process) -> T) -> (Cost, T) {
    let before = process.number("cpu");
    let begun = std::time::Instant::now();
    process.ask(&format!("go {}", pace.words()));
    let waited = wait(process);
    let wall = begun.elapsed();
    let used = process.number("cpu").saturating_sub(before);
    (Cost { wall, cpu: Duration::from_micros(used) }, waited)
}

/// Compares the cost of an event.
fn row(rounds: &[Measured]) -> Row {
    let costs = rounds.iter().map(|round| {
        let served = round.server.less(Cost { wall: Duration::ZERO, cpu: round.bare.cpu });
        (round.axum.per(count(round.of_axum.events)), served.per(count(round.of_server.events)))
    });
    // A comparison leaves out its first round, which was left out before.
    let first = std::iter::once((Cost::default(), Cost::default()));
    let row = Comparison::new(EVENT, "axum, the same bytes", Aim::Cpu(AIM)).of(first.chain(costs));
    let spread =
        |of: &dyn Fn(&Measured) -> f64| Spread::of(rounds.iter().map(of)).map_or(0.0, |spread| spread.median);
    row.with_note(format!(
        "{EVENT}: {:.0} of {:.0} deltas arrived on their own, the others with the next one; {:.0} bytes an event, with \
         axum {:.0}; the sessions without a server take {:.1} µs of CPU for each event",
        spread(&|round| count(round.of_server.deltas)),
        spread(&|round| count(round.of_axum.deltas)),
        spread(&|round| count(round.of_server.bytes) / count(round.of_server.events)),
        spread(&|round| count(round.of_axum.bytes) / count(round.of_axum.events)),
        spread(&|round| round.bare.cpu.as_secs_f64() * 1e6 / count(round.of_server.events)),
    ))
}

#[expect(clippy::disallowed_methods, reason = "the plain server reads its frames from a file")]
fn write(file: &Path, bytes: &[u8]) {
    std::fs::write(file, bytes).expect("the directory can be written");
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "numbers of bytes are far below 2^52")]
fn float(number: u64) -> f64 {
    number as f64
}
