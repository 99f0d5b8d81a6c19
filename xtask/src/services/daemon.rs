//! A background process, identified by its pid file.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::cannot;
use crate::failure::{Context as _, Failure};

/// Time limit for a service to start, and to stop before it is killed.
const LIMIT: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(50);

/// Number of bytes of the end of a log that an error shows.
const LOG_TAIL: u64 = 1500;

/// A service process.
pub(super) struct Daemon {
    pub(super) pid_file: PathBuf,
    /// A path in its command line, by which a reused process id is recognized.
    pub(super) marker: PathBuf,
}

impl Daemon {
    /// Returns the id of the process if it is running.
    pub(super) fn id(&self) -> Option<u32> {
        let id: u32 = fs::read_to_string(&self.pid_file).ok()?.trim().parse().ok()?;
        let line = fs::read(format!("/proc/{id}/cmdline")).ok()?;
        let marker = self.marker.as_os_str().as_encoded_bytes();
        line.windows(marker.len()).any(|part| part == marker).then_some(id)
    }

    /// Terminates the process and its group. Returns whether it was running.
    pub(super) fn terminate(&self) -> Result<bool, Failure> {
        let Some(id) = self.id() else { return Ok(false) };
        for signal in ["TERM", "KILL"] {
            // An error means that it has already exited.
            let _ = Command::new("kill").args([&format!("-{signal}"), "--", &format!("-{id}")]).status();
            if wait_until(|| self.id() != Some(id)) {
                return Ok(true);
            }
        }
        Err(Failure::new(format!("process {id} of {} cannot be stopped", self.marker.display())))
    }
}

/// Starts `command` in a new process group with its output in `log`, waits until `is_ready`, and returns its id.
pub(super) fn start(command: &mut Command, log: &Path, is_ready: impl Fn() -> bool) -> Result<u32, Failure> {
    let file = File::create(log).map_err(|cause| cannot("write", log).with_source(cause))?;
    let errors = file.try_clone().map_err(|cause| cannot("write", log).with_source(cause))?;
    command.process_group(0).stdin(Stdio::null()).stdout(file).stderr(errors);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().with_context(|| format!("{program} could not be started"))?;
    let mut is_up = false;
    wait_until(|| {
        is_up = is_ready();
        is_up || matches!(child.try_wait(), Ok(Some(_)))
    });
    if is_up {
        return Ok(child.id());
    }
    // It is our child, and its id is not recorded yet.
    let _ = child.kill();
    let _ = child.wait();
    Err(Failure::new(format!("{program} is not ready; its output:\n{}", tail(log))))
}

fn wait_until(mut holds: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if started.elapsed() > LIMIT {
            return false;
        }
        thread::sleep(POLL);
    }
}

fn tail(log: &Path) -> String {
    let mut text = Vec::new();
    if let Ok(mut file) = File::open(log) {
        let len = file.metadata().map(|metadata| metadata.len()).unwrap_or_default();
        let _ = file.seek(SeekFrom::Start(len.saturating_sub(LOG_TAIL)));
        let _ = file.read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("pintle-daemon-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    #[test]
    fn a_daemon_is_identified_and_terminated() {
        let directory = directory("ends");
        let (pid_file, marker) = (directory.join("pid"), directory.join("config"));
        let script = "echo $$ >\"$1\"; while :; do sleep 0.1; done";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).arg(&marker).arg(&pid_file);
        // A file that is there may still be empty.
        let is_written = || fs::read_to_string(&pid_file).is_ok_and(|id| id.ends_with('\n'));
        start(&mut command, &directory.join("log"), is_written).unwrap();
        let other = Daemon { pid_file: pid_file.clone(), marker: directory.join("other") };
        assert_eq!(other.id(), None);
        assert!(!other.terminate().unwrap());
        let daemon = Daemon { pid_file, marker };
        assert!(daemon.id().is_some());
        assert!(daemon.terminate().unwrap());
        assert!(!daemon.terminate().unwrap());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_failed_start_shows_the_output() {
        let directory = directory("fails");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo no such key >&2; exit 1"]);
        let failure = start(&mut command, &directory.join("log"), || false).unwrap_err();
        assert_eq!(failure.to_string(), "/bin/sh is not ready; its output:\nno such key\n");
        fs::remove_dir_all(directory).unwrap();
    }
}
