//! The report of a launcher about the program that it starts. Linux only.

use std::{io, os::fd::OwnedFd, time::Duration};

use tokio::{io::AsyncReadExt, net::unix::pipe::Receiver, time::timeout};

/// Time that a launcher may take to start its program.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Maximum size of a report; the launcher writes some hundred bytes.
const MAX_REPORT: usize = 4 << 10;

/// The pipe on which a launcher reports the start of its program: the id of the first process that
/// it starts, as JSON; a line `s` when it is about to execute the program; a line `f` and the exit
/// code if that fails. The end without an `f` is the success.
#[derive(Debug)]
pub(crate) struct StartReport {
    pipe: Receiver,
    program: String,
}

/// How a launch ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LaunchOutcome {
    /// The program runs. The id identifies the first process of its namespace.
    Running(i32),
    /// The program could not be executed.
    Failed(io::ErrorKind),
    /// The launcher itself failed before.
    Launcher,
}

impl StartReport {
    /// Reads the report about `program` from this end of a pipe.
    pub(crate) fn new(pipe: OwnedFd, program: String) -> io::Result<Self> {
        Ok(Self { pipe: Receiver::from_owned_fd(pipe)?, program })
    }

    /// Returns the name of the program.
    pub(super) fn into_program(self) -> String {
        self.program
    }

    /// Reads until the program runs or cannot.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](io::ErrorKind::TimedOut) after [`START_LIMIT`].
    pub(super) async fn read(&mut self) -> io::Result<LaunchOutcome> {
        let mut report = Vec::new();
        let mut pipe = (&mut self.pipe).take(MAX_REPORT as u64);
        timeout(START_LIMIT, pipe.read_to_end(&mut report)).await.map_err(io::Error::from)??;
        Ok(parse(&String::from_utf8_lossy(&report)))
    }
}

fn parse(report: &str) -> LaunchOutcome {
    let lines = || report.lines().map(str::trim);
    if !lines().any(|line| line == "s") {
        return LaunchOutcome::Launcher;
    }
    match lines().find_map(|line| line.strip_prefix('f')) {
        Some("127") => return LaunchOutcome::Failed(io::ErrorKind::NotFound),
        Some("126") => return LaunchOutcome::Failed(io::ErrorKind::PermissionDenied),
        Some(_) => return LaunchOutcome::Failed(io::ErrorKind::Other),
        None => {}
    }
    let id = lines().find_map(|line| line.strip_prefix("\"child-pid\":"));
    id.and_then(|id| id.trim_matches([' ', ',']).parse().ok())
        .map_or(LaunchOutcome::Launcher, LaunchOutcome::Running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_parsed() {
        let info = "{\n    \"child-pid\": 4711,\n    \"net-namespace\": 4026531840\n}\n";
        for (report, start) in [
            (format!("{info}s\n"), LaunchOutcome::Running(4711)),
            (format!("{info}s\nf127\n"), LaunchOutcome::Failed(io::ErrorKind::NotFound)),
            (format!("{info}s\nf126\n"), LaunchOutcome::Failed(io::ErrorKind::PermissionDenied)),
            (info.to_owned(), LaunchOutcome::Launcher),
            ("s\n".to_owned(), LaunchOutcome::Launcher),
            (String::new(), LaunchOutcome::Launcher),
        ] {
            assert_eq!(parse(&report), start, "{report}");
        }
    }
}
