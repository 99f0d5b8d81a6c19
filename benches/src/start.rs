//! `pintle run` with one response, as shipped.
//!
//! The first byte of the request is compared with one `git status` in the same tree, and the whole process with the same run
//! without sandbox and store.
#![expect(clippy::disallowed_methods, reason = "runs the command")]

use std::{
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    time::Instant,
};

use crate::dialect::{Dialect, Part};
use crate::goals::{goal, goal_time};
use crate::measure::{Aim, Comparison, Cost, Round, cost_of};
use crate::report::{Bound, Fact, Report};
use crate::shipped::{self, BARE, LARGE, MODEL, SMALL, User, succeed};
use crate::status;

/// Rounds of each row.
const ROUNDS: usize = 15;

const WHOLE: &str = "pintle run, one response: the whole process";
const MEMORY: &str = "pintle run, one response: peak resident memory";
const PRIVATE: &str = "pintle run, one response: private memory while the request is answered";
const REQUEST: &str = "pintle run: size of the first request, Anthropic native tools";
const SIZE: &str = "size of the pintle executable";

/// A start whose time to the first byte of the request is measured.
struct Case {
    what: &'static str,
    figure: &'static str,
    /// Files of the repository.
    files: usize,
    has_caches: bool,
    /// Whether each run has a directory in which no session was before.
    is_fresh: bool,
    flags: &'static [&'static str],
}

const CASES: [Case; 5] = [
    Case {
        what: "pintle run in a known directory: from start to the first byte of a request",
        figure: "first-byte-known",
        files: SMALL,
        has_caches: false,
        is_fresh: false,
        flags: &[],
    },
    Case {
        what: "pintle run in a fresh directory: from start to the first byte of a request",
        figure: "first-byte-fresh",
        files: SMALL,
        has_caches: false,
        is_fresh: true,
        flags: &[],
    },
    Case {
        what: "pintle run in a repository of 10,000 files: from start to the first byte of a request",
        figure: "first-byte-large",
        files: LARGE,
        has_caches: false,
        is_fresh: false,
        flags: &[],
    },
    Case {
        what: "pintle run in a fresh directory, with 400 MB of package caches at home: from start to the first byte of a request",
        figure: "first-byte-caches",
        files: SMALL,
        has_caches: true,
        is_fresh: true,
        flags: &[],
    },
    Case {
        what: "pintle run with --no-session and 400 MB of package caches at home: from start to the first byte of a request",
        figure: "first-byte-unstored",
        files: SMALL,
        has_caches: true,
        is_fresh: false,
        flags: &["--no-session"],
    },
];

/// Argument with which this program runs another one and prints its memory.
pub(crate) const WATCH: &str = "watch";

pub(crate) fn run(wanted: &str) -> Report {
    let mut report = Report::default();
    for case in CASES.iter().filter(|case| case.what.contains(wanted)) {
        case.measure(&mut report);
    }
    if [WHOLE, MEMORY, PRIVATE, REQUEST].iter().any(|what| what.contains(wanted)) {
        known_directory(wanted, &mut report);
    }
    if SIZE.contains(wanted) {
        let bytes = std::fs::metadata(shipped::program()).map_or(0, |metadata| metadata.len());
        report.facts.push(Fact::new(SIZE, "MiB", Bound::None, vec![mebibytes(bytes)]));
    }
    report
}

impl Case {
    fn measure(&self, report: &mut Report) {
        let user = if self.has_caches { User::new().with_caches() } else { User::new() };
        let stage = Stage::with_user(user, self.files);
        // The first run on a machine also probes its sandbox.
        stage.first(&mut stage.pintle());
        let first = || {
            let fresh = self.is_fresh.then(|| stage.user.create_project(self.files));
            let directory = fresh.as_deref().unwrap_or(&stage.directory);
            stage.first(stage.pintle_in(directory).args(self.flags))
        };
        let git_status = || cost_of(|| succeed(&mut stage.user.git_status(&stage.directory)));
        let row =
            Comparison::new(self.what, "git status in the same tree", Aim::More(goal_time(self.figure)))
                .with_rounds(ROUNDS)
                .compare(git_status, first);
        report.push_figures(row, &[(self.figure, Round::more)]);
    }
}

/// Measures what needs no other directory than one in which a session was before.
fn known_directory(wanted: &str, report: &mut Report) {
    let stage = Stage::new();
    stage.first(&mut stage.pintle());
    if WHOLE.contains(wanted) {
        let baseline = "the same with --no-sandbox --no-session";
        let row = Comparison::new(WHOLE, baseline, Aim::Wall(goal("run-wall")))
            .with_rounds(ROUNDS)
            .compare(|| stage.whole(stage.pintle().args(BARE)), || stage.whole(&mut stage.pintle()));
        report.push_figures(row, &[("run-wall", Round::wall)]);
    }
    for (what, figure, unit, measure) in [
        (MEMORY, "memory-resident", "MiB", Stage::memory as fn(&Stage) -> f64),
        (PRIVATE, "memory-private", "MiB", Stage::private_memory),
        (REQUEST, "first-request", "KB", Stage::request_size),
    ] {
        if what.contains(wanted) {
            let values = (0..11).map(|_| measure(&stage)).collect();
            report.push_figure(Fact::new(what, unit, Bound::AtMost(goal(figure)), values), figure);
        }
    }
}

/// Runs the program in the arguments and prints its peak memory, in bytes.
pub(crate) fn watch(arguments: &[String]) -> io::Result<()> {
    let mut words = arguments.iter();
    let status = Command::new(words.next().map_or("", String::as_str))
        .args(words)
        .stdout(Stdio::null())
        .stdin(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(io::Error::other(format!("the program ended with {status}")));
    }
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN)?;
    println!("{}", usage.max_rss() << 10);
    Ok(())
}

/// A request as the server received it.
struct Request {
    /// When its first byte arrived.
    at: Instant,
    /// Bytes of its body.
    bytes: usize,
}

/// A server that answers every request with one text, and a user with a repository.
pub(crate) struct Stage {
    address: String,
    requests: Receiver<Request>,
    /// Whether the server waits for `answers` before it answers.
    is_held: Arc<AtomicBool>,
    answers: Sender<()>,
    user: User,
    directory: PathBuf,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with_user(User::new(), SMALL)
    }

    /// Creates a server, and a repository with so many files for the user.
    fn with_user(user: User, files: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it listens").to_string();
        let (sender, requests) = mpsc::channel();
        let (answers, allowed) = mpsc::channel();
        let is_held = Arc::new(AtomicBool::new(false));
        let held = Arc::clone(&is_held);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // The program may exit before the whole response is written.
                let _ = answer_once(stream, |request| {
                    // Read before the request is reported: the other thread may then release the response.
                    let is_held = held.load(Ordering::SeqCst);
                    let _ = sender.send(request);
                    if is_held {
                        let _ = allowed.recv();
                    }
                });
            }
        });
        let directory = user.create_project(files);
        Self { address, requests, is_held, answers, user, directory }
    }

    /// Returns `pintle run` in the directory of this stage, with one prompt.
    pub(crate) fn pintle(&self) -> Command {
        self.pintle_in(&self.directory)
    }

    fn pintle_in(&self, directory: &Path) -> Command {
        let mut command = self.user.pintle(directory);
        command
            .args(["run", "--provider", "openai", "--model", MODEL, "--base-url"])
            .arg(format!("http://{}/v1", self.address))
            .arg("Say hello.");
        command
    }

    fn whole(&self, command: &mut Command) -> Cost {
        let cost = cost_of(|| succeed(command));
        self.request();
        cost
    }

    /// Measures the time to the first byte of the request. The CPU time is that of the whole process.
    pub(crate) fn first(&self, command: &mut Command) -> Cost {
        let start = Instant::now();
        let cost = cost_of(|| succeed(command));
        Cost { wall: self.request().at.saturating_duration_since(start), ..cost }
    }

    fn request(&self) -> Request {
        self.requests.recv().expect("it sent a request")
    }

    /// Returns the peak memory in MiB. The program is run by a small one, since the peak of the parent counts.
    fn memory(&self) -> f64 {
        let pintle = self.pintle();
        let mut watch = Command::new(std::env::current_exe().expect("this program has a file"));
        watch.arg(WATCH).arg(pintle.get_program()).args(pintle.get_args()).current_dir(&self.directory);
        watch.env_clear().envs(pintle.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = watch.stderr(Stdio::null()).output().expect("this program runs");
        self.request();
        let bytes: u32 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("it prints a number");
        mebibytes(bytes)
    }

    /// Returns the memory in MiB that the process shares with no other, while it waits for the response.
    fn private_memory(&self) -> f64 {
        self.is_held.store(true, Ordering::SeqCst);
        let mut pintle = self.pintle();
        pintle.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = pintle.spawn().expect("the program is built");
        self.request();
        let bytes = status::private_memory_of(&child.id().to_string());
        self.is_held.store(false, Ordering::SeqCst);
        self.answers.send(()).expect("the server waits");
        let status = child.wait().expect("it is a child of this process");
        assert!(status.success(), "pintle ended with {status}");
        mebibytes(bytes)
    }

    /// Returns the size of the first request with the tools of Anthropic's models, in KB.
    fn request_size(&self) -> f64 {
        let mut command = self.user.pintle(&self.directory);
        command.args(["run", "--provider", "anthropic", "--base-url"]);
        succeed(command.arg(format!("http://{}", self.address)).arg("Say hello."));
        let bytes = u32::try_from(self.request().bytes).unwrap_or(u32::MAX);
        f64::from(bytes) / 1_000.0
    }
}

/// Answers one request. `received` is called before the response is written.
fn answer_once(mut stream: TcpStream, received: impl FnOnce(Request)) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut length = stream.read(&mut buffer)?;
    let at = Instant::now();
    let (path, bytes) = loop {
        let text = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()).to_ascii_lowercase();
        if let Some(request) = whole_request(&text) {
            break request;
        }
        match stream.read(buffer.get_mut(length..).unwrap_or_default())? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => length += more,
        }
    };
    received(Request { at, bytes });
    let dialect = if path.ends_with("/messages") { Dialect::Messages } else { Dialect::Responses };
    let answer = dialect.stream(&[Part::text("Hello.")]);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ncontent-length: ";
    stream.write_all(format!("{head}{}\r\n\r\n", answer.len()).as_bytes())?;
    stream.write_all(&answer)
}

/// Returns the path of a complete request and the bytes of its body, by its content length.
fn whole_request(text: &str) -> Option<(String, usize)> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let path = head.split(' ').nth(1)?.to_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.and_then(|length| length.trim().parse().ok())?;
    (body.len() >= length).then_some((path, length))
}

/// Returns the path of a program built beside this one.
pub(crate) fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("this program has a file");
    own.parent().unwrap_or(Path::new(".")).join(name)
}

pub(crate) fn mebibytes(bytes: impl TryInto<u32>) -> f64 {
    bytes.try_into().map_or(f64::NAN, |bytes| f64::from(bytes) / f64::from(1 << 20))
}
