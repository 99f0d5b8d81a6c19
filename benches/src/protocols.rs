//! Costs of the Model Context Protocol: servers that are declared and not used, and calls of a server that answers at once.

mod server;

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use self::server::{BareClient, Pipes, Session};
use crate::measure::{Aim, Comparison, Cost, Moment, Row, Spread};
use crate::report::{Bound, Fact, Report};
use crate::start::Stage;

pub(crate) use self::server::{SERVE, serve};

/// Number of declared servers.
const SERVERS: usize = 20;

/// Allowed multiple of both times of a start without servers.
const DECLARED_AIM: f64 = 1.05;

/// Allowed multiple of the time of a call with the SDK alone.
const CALL_AIM: f64 = 1.5;

/// Allowed time above the SDK, as a multiple of the time in which the server answers through two pipes.
const ABOVE_AIM: f64 = 1.5;

/// Calls of one round.
const CALLS: u32 = 2_000;

const DECLARED: &str = "pintle run with 20 declared servers: from start to the first byte of a request";
const CALL: &str = "a call of a server that answers at once";
const ABOVE: &str =
    "a call of a server that answers at once: time above the SDK, per time of the server's own answer";

pub(crate) fn run(wanted: &str) -> Report {
    let mut report = Report::default();
    if DECLARED.contains(wanted) {
        report.rows.push(declared());
    }
    if CALL.contains(wanted) || ABOVE.contains(wanted) {
        let (row, fact) = calls();
        report.rows.push(row);
        report.facts.push(fact);
    }
    report
}

/// Compares the start of a session with many servers with one without. No server is used, so none may start.
fn declared() -> Row {
    let stage = Stage::new();
    let servers = Declarations::write();
    let row = Comparison::new(DECLARED, "the same without a server", Aim::Both(DECLARED_AIM)).compare(
        || stage.first(stage.pintle().arg("--no-mcp")),
        || stage.first(stage.pintle().arg("--mcp-config").arg(servers.file())),
    );
    servers.require_unused();
    row
}

/// A file that declares servers, each of which leaves a file behind when it is started.
struct Declarations {
    directory: TempDir,
}

#[expect(clippy::disallowed_methods, reason = "the command reads the file")]
impl Declarations {
    fn write() -> Self {
        let declarations = Self { directory: TempDir::new().expect("there is room for a directory") };
        let servers: Map<String, Value> = (0..SERVERS)
            .map(|number| {
                let trace = declarations.directory.path().join(format!("started-{number}"));
                // Outside of the sandbox, which would not let it write there.
                let server = json!({"command": "/usr/bin/touch", "args": [trace], "sandbox": false});
                (format!("server-{number}"), server)
            })
            .collect();
        let text = json!({"mcpServers": servers}).to_string();
        fs::write(declarations.file(), text).expect("the directory can be written");
        declarations
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("mcp.json")
    }

    fn require_unused(&self) {
        let files = fs::read_dir(self.directory.path()).expect("the directory can be read").count();
        assert_eq!(files, 1, "a server was started that no call has used");
    }
}

/// Compares calls through the pipeline of a session with calls by the SDK alone, and their difference with the answers of the
/// server to a program that only writes and reads lines.
fn calls() -> (Row, Fact) {
    let runtime = crate::runtime();
    let mut pipes = Pipes::start();
    let bare = runtime.block_on(BareClient::start());
    let session = runtime.block_on(Session::start());
    let answers = RefCell::new(Vec::new());
    let rounds = 31;
    let costs = (0..=rounds).map(|_| {
        let answer = timed(|| (0..CALLS).for_each(|_| pipes.call())).wall;
        let bare = timed(|| runtime.block_on(bare.calls(CALLS)));
        let session = timed(|| runtime.block_on(session.calls(CALLS)));
        let above = session.wall.saturating_sub(bare.wall);
        answers.borrow_mut().push((answer, above));
        (bare, session)
    });
    let row = Comparison::new(CALL, "the same call by rmcp alone", Aim::Wall(CALL_AIM)).of(costs);
    runtime.block_on(session.close());
    let answers = answers.into_inner();
    // As in the row, the first round only warms up.
    let measured = answers.get(1..).unwrap_or_default();
    let own = Spread::of(measured.iter().map(|(answer, _)| microseconds(*answer)));
    let own = own.expect("something was measured");
    let ratios = measured.iter().map(|(answer, above)| above.as_secs_f64() / answer.as_secs_f64());
    let fact = Fact::new(ABOVE, "×", Bound::AtMost(ABOVE_AIM), ratios.collect());
    let note = format!(
        "{CALL}: the server answers lines that are written to its pipe in {:.0} µs ({:.0} to {:.0})",
        own.median, own.least, own.most
    );
    (row.with_note(note), fact)
}

/// Returns the cost of one of the calls that `run` makes.
fn timed(run: impl FnOnce()) -> Cost {
    let begun = Moment::now();
    run();
    begun.until(Moment::now()).per(f64::from(CALLS))
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
