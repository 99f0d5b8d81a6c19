//! The conversation on a pseudo-terminal, compared with static programs that do the least of the same.
#![expect(clippy::disallowed_methods, reason = "runs both programs")]

mod pty;
mod server;

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::json;

use self::pty::Terminal;
use self::server::{Answer, Server};
use crate::dialect::Part;
use crate::goals::goal_time;
use crate::measure::{Aim, Comparison, Cost, Round, Spread, milliseconds};
use crate::report::{Bound, Fact, Report};
use crate::shipped::{LARGE, MODEL, SMALL, User};
use crate::start::{mebibytes, program};
use crate::status;

/// Allowed delay of the first prompt in excess of the baseline, in an empty home, where the sandbox is probed first.
const FIRST_START_AIM: Duration = Duration::from_millis(40);

/// Allowed time from a key to its echo, in milliseconds.
const ECHO_AIM: f64 = 10.0;

/// How long a stream is measured.
const STREAM_TIME: Duration = Duration::from_secs(10);

/// Allowed CPU time for it in excess of the baseline: 5 % of a core.
const STREAM_AIM: Duration = Duration::from_millis(500);

/// Allowed memory of the process after many turns, in MiB.
const MEMORY_AIM: f64 = 40.0;

const FIRST_START: &str = "pintle, for the first time in an empty home: from start to the first prompt";
const ECHO_OF_BOTH: &str = "200 keys while 200 tokens a second stream and a background command prints 50 MB";
const ECHO_OF_CALL: &str = "200 keys while the command of a call prints 50 MB";
const STREAM: &str = "10 s of a response that streams at 100 tokens a second";
const MEMORY: &str = "a conversation of 500 turns";

/// Shown where nothing is written; both programs print it.
const PROMPT: &str = "say what to do";

/// Keys are letters that nothing else on the screen has, so that what appears is their echo.
const KEYS: [&str; 20] =
    ["б", "в", "г", "д", "ж", "з", "и", "й", "л", "п", "у", "ф", "ц", "ч", "ш", "щ", "ы", "э", "ю", "я"];

/// Times that the keys are typed in one round.
const PASSES: usize = 10;

/// Between an echo and the next key.
const KEY_PAUSE: Duration = Duration::from_millis(20);

/// Prints 50 MB in pieces of 1 MB, each as fast as it is read, in about 8 s.
const PRINT: &str =
    "for piece in $(seq 50); do echo $piece >> printed; head -c 750000 /dev/zero | base64; sleep 0.15; done";

/// Milliseconds after which a call leaves its command in the background: the shortest time, and longer than it takes.
const YIELD_AT_ONCE: u64 = 250;
const YIELD_LATE: u64 = 30_000;

/// Pieces that must have been printed when the last key was typed, or the row has not measured what it says.
const LEAST_PRINTED: usize = 25;

/// How long the command may take to begin.
const BEGIN_TIME: Duration = Duration::from_secs(60);

/// Rounds of a row that takes many seconds.
const ROUNDS: usize = 3;

const TURNS: usize = 500;

pub(crate) fn run(wanted: &str) -> Report {
    let mut report = Report::default();
    starts(wanted, &mut report);
    for (what, yield_ms) in [(ECHO_OF_BOTH, YIELD_AT_ONCE), (ECHO_OF_CALL, YIELD_LATE)] {
        if what.contains(wanted) {
            echoes(what, yield_ms, &mut report);
        }
    }
    if STREAM.contains(wanted) {
        let baseline = "a static program that prints the same stream";
        report.rows.push(
            Comparison::new(STREAM, baseline, Aim::MoreCpu(STREAM_AIM))
                .with_rounds(ROUNDS)
                .compare(|| streamed(|server, _| begin_print(server)), || streamed(begin_conversation)),
        );
    }
    if MEMORY.contains(wanted) {
        memory(&mut report);
    }
    report
}

/// A start whose time to the first prompt is measured.
struct Start {
    what: &'static str,
    figure: &'static str,
    /// Files of the repository.
    files: usize,
    has_caches: bool,
    /// Whether each start has a directory in which no conversation was before.
    is_fresh: bool,
}

const STARTS: [Start; 4] = [
    Start {
        what: "pintle, in a known directory: from start to the first prompt",
        figure: "prompt-known",
        files: SMALL,
        has_caches: false,
        is_fresh: false,
    },
    Start {
        what: "pintle, in a fresh directory: from start to the first prompt",
        figure: "prompt-fresh",
        files: SMALL,
        has_caches: false,
        is_fresh: true,
    },
    Start {
        what: "pintle, in a repository of 10,000 files: from start to the first prompt",
        figure: "prompt-large",
        files: LARGE,
        has_caches: false,
        is_fresh: false,
    },
    Start {
        what: "pintle, in a fresh directory, with 400 MB of package caches at home: from start to the first prompt",
        figure: "prompt-caches",
        files: SMALL,
        has_caches: true,
        is_fresh: true,
    },
];

/// Rounds of a start.
const START_ROUNDS: usize = 15;

fn starts(wanted: &str, report: &mut Report) {
    let server = Server::start(|_| Answer { parts: vec![Part::text("Hello.")], pause: Duration::ZERO });
    let row = |what, aim| {
        let baseline = "a static program in raw mode that prints a prompt";
        Comparison::new(what, baseline, Aim::More(aim)).with_rounds(START_ROUNDS)
    };
    for start in STARTS.iter().filter(|start| start.what.contains(wanted)) {
        let user = if start.has_caches { User::new().with_caches() } else { User::new() };
        let mut project = Project::with_user(user, start.files);
        // The first start on a machine also probes its sandbox.
        first_prompt(&project.conversation(&server));
        let costs = (0..=START_ROUNDS).map(|_| {
            if start.is_fresh {
                project.directory = project.user.create_project(start.files);
            }
            (first_prompt(&echo()), first_prompt(&project.conversation(&server)))
        });
        let measured = row(start.what, goal_time(start.figure)).of(costs);
        report.push_figures(measured, &[(start.figure, Round::more)]);
    }
    if FIRST_START.contains(wanted) {
        let first = || first_prompt(&Project::new().conversation(&server));
        report.rows.push(row(FIRST_START, FIRST_START_AIM).compare(|| first_prompt(&echo()), first));
    }
}

/// A user with a repository. The state is not among the files that are watched, since the home is beside the repository.
struct Project {
    user: User,
    directory: PathBuf,
}

impl Project {
    fn new() -> Self {
        Self::with_user(User::new(), SMALL)
    }

    fn with_user(user: User, files: usize) -> Self {
        let directory = user.create_project(files);
        Self { user, directory }
    }

    fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the command for a conversation with a server.
    fn conversation(&self, server: &Server) -> Command {
        let mut command = self.user.pintle(&self.directory);
        command
            .args(["chat", "--provider", "openai", "--model", MODEL, "--mode", "auto", "--base-url"])
            .arg(format!("http://{}/v1", server.address()))
            .env("TERM", "xterm-256color");
        command
    }
}

fn echo() -> Command {
    let mut command = Command::new(program("baseline-terminal"));
    command.arg("echo");
    command
}

/// Measures the time until the prompt is printed, and the CPU time of the process until then.
fn first_prompt(command: &Command) -> Cost {
    let terminal = Terminal::start(command);
    let at = terminal.wait_for(PROMPT, 0);
    Cost { wall: at.saturating_duration_since(terminal.started()), cpu: terminal.cpu() }
}

/// Types the same keys into both programs, in turns, while Pintle runs a command that its call awaits so long.
fn echoes(load: &str, yield_ms: u64, report: &mut Report) {
    let rounds: Vec<[Echoes; 2]> = (0..=ROUNDS).map(|_| round_of_echoes(yield_ms)).collect();
    let baseline = "a static program in raw mode that prints every key, beside it";
    for (name, of) in [("median", median as fn(&Echoes) -> Duration), ("slowest", slowest)] {
        let cost = |echoes: &Echoes| Cost { wall: of(echoes), cpu: echoes.cpu };
        let costs = rounds.iter().map(|[baseline, pintle]| (cost(baseline), cost(pintle)));
        let aim = Aim::More(Duration::from_millis(10));
        let what = format!("{load}: {name} time to the echo");
        report.rows.push(Comparison::new(&what, baseline, aim).of(costs));
        let times = rounds.iter().skip(1).map(|[_, pintle]| milliseconds(of(pintle))).collect();
        report.facts.push(Fact::new(what, "ms", Bound::AtMost(ECHO_AIM), times));
    }
}

/// Times from a key to its echo in one round, and the CPU time of the process meanwhile.
struct Echoes {
    times: Vec<Duration>,
    cpu: Duration,
}

fn median(echoes: &Echoes) -> Duration {
    let times = echoes.times.iter().map(Duration::as_secs_f64);
    Duration::from_secs_f64(Spread::of(times).expect("keys were typed").median)
}

fn slowest(echoes: &Echoes) -> Duration {
    echoes.times.iter().copied().max().unwrap_or_default()
}

/// Returns the times of the baseline and of Pintle. After a call that runs in the background, a response streams.
fn round_of_echoes(yield_ms: u64) -> [Echoes; 2] {
    let project = Project::new();
    let server = Server::start(move |index| match index {
        0 => {
            let arguments = json!({ "cmd": PRINT, "yield_time_ms": yield_ms }).to_string();
            Answer { parts: vec![Part::call("call_1", "exec_command", &arguments)], pause: Duration::ZERO }
        }
        _ => Answer { parts: vec![tokens(20_000)], pause: Duration::from_millis(5) },
    });
    let mut terminals = [Terminal::start(&echo()), Terminal::start(&project.conversation(&server))];
    for terminal in &terminals {
        terminal.wait_for(PROMPT, 0);
    }
    let [_, pintle] = &mut terminals;
    pintle.type_keys("go\r");
    let printed = || std::fs::read_to_string(project.directory().join("printed")).unwrap_or_default();
    let began = Instant::now();
    while printed().is_empty() {
        assert!(began.elapsed() < BEGIN_TIME, "the command does not begin");
        std::thread::sleep(KEY_PAUSE);
    }
    let before = terminals.each_ref().map(Terminal::cpu);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..PASSES {
        for key in KEYS {
            for (terminal, times) in terminals.iter_mut().zip(&mut times) {
                std::thread::sleep(KEY_PAUSE);
                times.push(time_to_echo(terminal, key));
            }
        }
        // Cuts what was written, so that the same letters can appear again.
        terminals.iter_mut().for_each(|terminal| terminal.type_keys("\u{15}"));
    }
    let printed = printed().lines().count();
    assert!(printed >= LEAST_PRINTED, "the command has printed {printed} MB");
    let [before_of_baseline, before_of_pintle] = before;
    let [baseline, pintle] = terminals.each_ref().map(Terminal::cpu);
    let [times_of_baseline, times_of_pintle] = times;
    [
        Echoes { times: times_of_baseline, cpu: baseline.saturating_sub(before_of_baseline) },
        Echoes { times: times_of_pintle, cpu: pintle.saturating_sub(before_of_pintle) },
    ]
}

fn time_to_echo(terminal: &mut Terminal, key: &str) -> Duration {
    let printed = terminal.printed();
    let typed = Instant::now();
    terminal.type_keys(key);
    terminal.wait_for(key, printed).saturating_duration_since(typed)
}

/// Measures the CPU time of the process that `begin` starts, while a response streams to it.
fn streamed(begin: impl Fn(&Server, &Project) -> Terminal) -> Cost {
    let project = Project::new();
    let server = Server::start(|_| Answer { parts: vec![tokens(2_000)], pause: Duration::from_millis(10) });
    let terminal = begin(&server, &project);
    server.wait_for_text();
    let (began, before) = (Instant::now(), terminal.cpu());
    std::thread::sleep(STREAM_TIME);
    Cost { wall: began.elapsed(), cpu: terminal.cpu().saturating_sub(before) }
}

fn begin_print(server: &Server) -> Terminal {
    let mut command = Command::new(program("baseline-terminal"));
    command.args(["print", server.address()]);
    Terminal::start(&command)
}

fn begin_conversation(server: &Server, project: &Project) -> Terminal {
    let mut terminal = Terminal::start(&project.conversation(server));
    terminal.wait_for(PROMPT, 0);
    terminal.type_keys("go\r");
    terminal
}

/// Measures resident memory after one turn and after many.
fn memory(report: &mut Report) {
    let mut values = [Vec::new(), Vec::new(), Vec::new()];
    // Most of the time passes between the drawings, and memory does not depend on what else runs.
    let rounds = std::thread::scope(|scope| {
        let started = [(); 3].map(|()| scope.spawn(memory_of_turns));
        started.map(|round| round.join().expect("a conversation ends"))
    });
    for round in rounds {
        for (values, value) in values.iter_mut().zip(round) {
            values.push(value);
        }
    }
    let [first, last, peak] = values;
    let facts = [
        ("resident memory after the first turn", Bound::None, first),
        ("resident memory after the last turn", Bound::AtMost(MEMORY_AIM), last),
        ("peak of resident memory", Bound::AtMost(MEMORY_AIM), peak),
    ];
    for (what, bound, values) in facts {
        report.facts.push(Fact::new(format!("{MEMORY}: {what}"), "MiB", bound, values));
    }
}

/// Returns resident memory after the first turn and after the last, and its peak, in MiB.
///
/// Every turn has two responses: a text with the call of a tool, and a text.
fn memory_of_turns() -> [f64; 3] {
    let project = Project::new();
    let notes = "A note of some length, as files have them.\n".repeat(20);
    std::fs::write(project.directory().join("notes.txt"), notes).expect("there is room for a file");
    let server = Server::start(|index| {
        let turn = index / 2;
        let parts = if index.is_multiple_of(2) {
            let call = Part::call(format!("call_{turn}"), "exec_command", r#"{"cmd":"cat notes.txt"}"#);
            vec![tokens(100), call]
        } else {
            let end = format!("\n\nanswer number {turn} ends here.\n");
            vec![Part::Text { deltas: vec![text(100), text(100), text(100), end] }]
        };
        Answer { parts, pause: Duration::from_millis(if index.is_multiple_of(2) { 0 } else { 30 }) }
    });
    let mut terminal = Terminal::start(&project.conversation(&server));
    terminal.wait_for(PROMPT, 0);
    let mut first = 0.0;
    for turn in 0..TURNS {
        let printed = terminal.printed();
        terminal.type_keys(&format!("question number {turn}, with some words around it\r"));
        terminal.wait_for("ends here", printed);
        // The title of the window changes if the turn takes longer than the time between two drawings.
        terminal.wait_for(": ready\x07", printed);
        if turn == 0 {
            first = resident(terminal.pid(), "VmRSS");
        }
    }
    [first, resident(terminal.pid(), "VmRSS"), resident(terminal.pid(), "VmHWM")]
}

fn resident(pid: u32, name: &str) -> f64 {
    mebibytes(status::memory_of(&pid.to_string(), name))
}

/// Returns a text that arrives in so many pieces.
fn tokens(count: usize) -> Part {
    Part::Text { deltas: words().take(count).collect() }
}

/// Returns a text of so many words.
fn text(count: usize) -> String {
    words().take(count).collect()
}

/// Returns the words of a text as a model writes it: paragraphs, a list, and code.
fn words() -> impl Iterator<Item = String> {
    const TEXT: &str = "the parser reads one line at a time and keeps **no more** than it needs. an error names \
                        the line, and what was expected there.\n\n* `read_line` returns the next line\n* the \
                        second list item is a little longer than the first one\n\n```rust\nfn main() {\n    let \
                        total = 1 + 2; // a comment\n}\n```\n\n";
    TEXT.split_inclusive(' ').cycle().map(ToOwned::to_owned)
}
