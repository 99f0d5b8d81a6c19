//! The report of a launcher about the program that it starts. Linux only.

use std::{io, os::fd::OwnedFd, time::Duration};

use tokio::{io::AsyncReadExt, net::unix::pipe::Receiver, time::timeout};

/// Time that a launcher may take to start its program.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Maximum size of a report; the launcher writes some hundred bytes.
const MAX_REPORT: usize = 4 << 10;

/// The pipe on which a launcher reports the start of its program: the id of the first process that
/// it starts, as JSON; a line `w` if it waits for its program; a line `s` when it is about to execute
/// the program; a line `f` and the exit code if that fails. The end without an `f` is the success.
#[derive(Debug)]
pub(crate) struct StartReport {
    pipe: Receiver,
    program: String,
    /// The bytes that were read.
    report: Vec<u8>,
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
        Ok(Self { pipe: Receiver::from_owned_fd(pipe)?, program, report: Vec::new() })
    }

    /// Sets the name of the program.
    pub(super) fn set_program(&mut self, program: String) {
        self.program = program;
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
        self.read_until(|_| false).await?;
        Ok(parse(&String::from_utf8_lossy(&self.report)))
    }

    /// Reads until the launcher waits for its program. Returns the id of the first process of its namespace; `None` if the
    /// launcher has failed.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](io::ErrorKind::TimedOut) after [`START_LIMIT`].
    pub(super) async fn read_waiting(&mut self) -> io::Result<Option<i32>> {
        self.read_until(|report| waiting_id(report).is_some()).await?;
        Ok(waiting_id(&self.report))
    }

    /// Reads until the end, or until the report is long enough.
    async fn read_until(&mut self, is_enough: impl Fn(&[u8]) -> bool) -> io::Result<()> {
        let Self { pipe, report, .. } = self;
        let read = async {
            while report.len() < MAX_REPORT && !is_enough(report.as_slice()) {
                if pipe.read_buf(report).await? == 0 {
                    break;
                }
            }
            Ok::<(), io::Error>(())
        };
        timeout(START_LIMIT, read).await.map_err(io::Error::from)?
    }
}

/// Returns the id of the first process of a namespace whose launcher waits.
fn waiting_id(report: &[u8]) -> Option<i32> {
    let report = String::from_utf8_lossy(report);
    let waits = report.lines().any(|line| line.trim() == "w");
    first_process(&report).filter(|_| waits)
}

/// Returns the id in the JSON of a report.
fn first_process(report: &str) -> Option<i32> {
    let id = report.lines().find_map(|line| line.trim().strip_prefix("\"child-pid\":"));
    id?.trim_matches([' ', ',']).parse().ok()
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
    first_process(report).map_or(LaunchOutcome::Launcher, LaunchOutcome::Running)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

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

    #[tokio::test]
    async fn the_report_of_a_waiting_launcher_is_read_in_two_parts() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut report = StartReport::new(reader.into(), "sh".to_owned()).unwrap();
        writer.write_all(b"{\n    \"child-pid\": 4711\n}\nw\n").unwrap();
        assert_eq!(report.read_waiting().await.unwrap(), Some(4711));
        writer.write_all(b"s\nf127\n").unwrap();
        drop(writer);
        assert_eq!(report.read().await.unwrap(), LaunchOutcome::Failed(io::ErrorKind::NotFound));
        let (reader, mut writer) = io::pipe().unwrap();
        let mut report = StartReport::new(reader.into(), "sh".to_owned()).unwrap();
        writer.write_all(b"{\n    \"child-pid\": 4711\n}\n").unwrap();
        drop(writer);
        assert_eq!(report.read_waiting().await.unwrap(), None);
    }
}
