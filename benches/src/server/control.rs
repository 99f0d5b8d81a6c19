//! Processes that answer each line of their input with a line of output.
#![expect(clippy::disallowed_methods, reason = "runs this program again, as each of the measured processes")]

use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::{measure, status};

/// A process that is controlled. It exits when its input is closed.
pub(super) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub(super) fn start(arguments: &[&OsStr]) -> Self {
        let program = std::env::current_exe().expect("the path of this program is known");
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program runs");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("it has an output"));
        Self { child, input, output }
    }

    pub(super) fn ask(&mut self, line: &str) -> String {
        let input = self.input.as_mut().expect("it is open until the end");
        writeln!(input, "{line}").and_then(|()| input.flush()).expect("the process reads");
        let mut answer = String::new();
        self.output.read_line(&mut answer).expect("the process answers");
        assert!(answer.ends_with('\n'), "the process ended at `{line}`");
        answer.trim_end().to_owned()
    }

    pub(super) fn number(&mut self, line: &str) -> u64 {
        self.ask(line).parse().expect("it is a number")
    }

    /// Opens sessions and returns the paths of their streams.
    pub(super) fn open(&mut self, number: usize) -> Vec<String> {
        words(&self.ask(&format!("open {number}")))
    }

    /// Has a plain server stream recorded frames, and returns the paths of the streams.
    pub(super) fn load(&mut self, recorded: &Path, streams: usize) -> Vec<String> {
        words(&self.ask(&format!("load {streams} {}", recorded.display())))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// Answers the lines of the input until it is closed: those that all processes know, and others by `answer`.
pub(crate) fn answer_lines(mut answer: impl FnMut(&str, &str) -> Option<String>) -> io::Result<()> {
    let (input, mut output) = (io::stdin().lock(), io::stdout().lock());
    for line in input.lines() {
        let line = line?;
        let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match verb {
            "cpu" => measure::cpu().as_micros().to_string(),
            "memory" => status::private_memory_of("self").to_string(),
            _ => answer(verb, rest).ok_or_else(|| io::Error::other(format!("unknown line `{verb}`")))?,
        };
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(ToOwned::to_owned).collect()
}
