//! `pintle run` with one response, compared with a static program that sends the same request.
#![expect(clippy::disallowed_methods, reason = "runs both programs")]

use std::{
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc::{self, Receiver},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::dialect::{Dialect, Part};
use crate::measure::{Aim, Comparison, Cost, cost_of};
use crate::report::{Bound, Fact, Report};
use crate::sessions::MODEL;

/// Allowed delay in excess of the baseline.
const AIM: Duration = Duration::from_millis(20);

/// Allowed resident memory of the process, in MiB.
const MEMORY_AIM: f64 = 20.0;

const WHOLE: &str = "pintle run, one response: the whole process";
const FIRST: &str = "pintle run: from start to the first byte of a request";
const MEMORY: &str = "pintle run, one response: peak resident memory";
const SIZE: &str = "size of the pintle executable";

/// Argument with which this program runs another one and prints its memory.
pub(crate) const WATCH: &str = "watch";

pub(crate) fn run(wanted: &str) -> Report {
    let stage = Stage::new();
    let mut report = Report::default();
    let baseline = "a static program that connects, sends and prints";
    if WHOLE.contains(wanted) {
        report.rows.push(
            Comparison::new(WHOLE, baseline, Aim::More(AIM))
                .compare(|| stage.whole(&mut stage.baseline()), || stage.whole(&mut stage.pintle())),
        );
    }
    if FIRST.contains(wanted) {
        report.rows.push(
            Comparison::new(FIRST, baseline, Aim::More(AIM))
                .compare(|| stage.first(&mut stage.baseline()), || stage.first(&mut stage.pintle())),
        );
    }
    if MEMORY.contains(wanted) {
        let memory = (0..11).map(|_| stage.memory()).collect();
        report.facts.push(Fact::new(MEMORY, "MiB", Bound::AtMost(MEMORY_AIM), memory));
    }
    if SIZE.contains(wanted) {
        let bytes = std::fs::metadata(shipped("pintle")).map_or(0, |metadata| metadata.len());
        report.facts.push(Fact::new(SIZE, "MiB", Bound::None, vec![mebibytes(bytes)]));
    }
    report
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

/// A server that answers every request with one text, and an empty project.
pub(crate) struct Stage {
    address: String,
    /// Times at which the first byte of each request arrived.
    requests: Receiver<Instant>,
    directory: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it listens").to_string();
        let (sender, requests) = mpsc::channel();
        let answer = Dialect::Responses.stream(&[Part::text("Hello.")]);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // The program may exit before the whole response is written.
                if let Ok(at) = answer_once(stream, &answer)
                    && sender.send(at).is_err()
                {
                    return;
                }
            }
        });
        Self { address, requests, directory: TempDir::new().expect("there is room for a directory") }
    }

    fn baseline(&self) -> Command {
        let mut command = Command::new(program("baseline-start"));
        command.arg(&self.address);
        command
    }

    pub(crate) fn pintle(&self) -> Command {
        let mut command = Command::new(shipped("pintle"));
        command
            .args(["run", "--provider", "openai", "--model", MODEL, "--base-url"])
            .arg(format!("http://{}/v1", self.address))
            .arg("Say hello.")
            .current_dir(self.directory.path())
            .env("OPENAI_API_KEY", "sk-bench");
        command
    }

    fn whole(&self, command: &mut Command) -> Cost {
        let cost = cost_of(|| succeed(command));
        let _ = self.requests.recv();
        cost
    }

    /// Measures the time to the first byte of the request. The CPU time is that of the whole process.
    pub(crate) fn first(&self, command: &mut Command) -> Cost {
        let start = Instant::now();
        let cost = cost_of(|| succeed(command));
        let first = self.requests.recv().expect("it sent a request");
        Cost { wall: first.saturating_duration_since(start), ..cost }
    }

    /// Returns the peak memory in MiB. The program is run by a small one, since the peak of the parent counts.
    fn memory(&self) -> f64 {
        let pintle = self.pintle();
        let output = Command::new(std::env::current_exe().expect("this program has a file"))
            .arg(WATCH)
            .arg(pintle.get_program())
            .args(pintle.get_args())
            .current_dir(self.directory.path())
            .env("OPENAI_API_KEY", "sk-bench")
            .stderr(Stdio::null())
            .output()
            .expect("this program runs");
        let _ = self.requests.recv();
        let bytes: u32 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("it tells how much");
        mebibytes(bytes)
    }
}

fn succeed(command: &mut Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.expect("the program is built").success(), "{command:?} fails");
}

/// Answers one request. Returns the time at which its first byte arrived.
fn answer_once(mut stream: TcpStream, answer: &[u8]) -> io::Result<Instant> {
    let mut buffer = vec![0; 1 << 20];
    let mut length = stream.read(&mut buffer)?;
    let at = Instant::now();
    while !is_whole(buffer.get(..length).unwrap_or_default()) {
        length += stream.read(buffer.get_mut(length..).unwrap_or_default())?;
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ncontent-length: ";
    stream.write_all(format!("{head}{}\r\n\r\n", answer.len()).as_bytes())?;
    stream.write_all(answer)?;
    Ok(at)
}

/// Returns whether a request is complete, by its content length.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    length.and_then(|length| length.trim().parse().ok()).is_none_or(|length: usize| body.len() >= length)
}

/// Returns the path of a program built beside this one.
pub(crate) fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("this program has a file");
    own.parent().unwrap_or(Path::new(".")).join(name)
}

/// Returns the path of a program that is built in the profile `dist`.
pub(crate) fn shipped(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("this program has a file");
    own.ancestors().nth(2).unwrap_or(Path::new(".")).join("dist").join(name)
}

pub(crate) fn mebibytes(bytes: impl TryInto<u32>) -> f64 {
    bytes.try_into().map_or(f64::NAN, |bytes| f64::from(bytes) / f64::from(1 << 20))
}
