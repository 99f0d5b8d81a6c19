//! A process that goes on after this program, known by its pid file.

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
use crate::failure::Failure;

/// How long a service may take to come up, and to go down before it is killed.
const LIMIT: Duration = Duration::from_secs(60);

const POLL: Duration = Duration::from_millis(50);

/// How much of a log an error shows.
const LOG_TAIL: u64 = 1500;

/// What is known of a service's process without asking it.
pub(super) struct Daemon {
    pub(super) pid_file: PathBuf,
    /// A path that stands in its command line, so that a number that somebody else has by now is not taken for it.
    pub(super) mark: PathBuf,
}

impl Daemon {
    /// The id of the process, if it runs.
    pub(super) fn id(&self) -> Option<u32> {
        let id: u32 = fs::read_to_string(&self.pid_file).ok()?.trim().parse().ok()?;
        let line = fs::read(format!("/proc/{id}/cmdline")).ok()?;
        let mark = self.mark.as_os_str().as_encoded_bytes();
        line.windows(mark.len()).any(|part| part == mark).then_some(id)
    }

    /// Ends it with its group; says whether it was there.
    pub(super) fn end(&self) -> Result<bool, Failure> {
        let Some(id) = self.id() else { return Ok(false) };
        for signal in ["TERM", "KILL"] {
            // It may have gone by itself, which is what is wanted.
            let _ = Command::new("kill").args([&format!("-{signal}"), "--", &format!("-{id}")]).status();
            if wait_until(|| self.id() != Some(id)) {
                return Ok(true);
            }
        }
        Err(Failure::new(format!("process {id} of {} does not go", self.mark.display())))
    }
}

/// Starts `command` in a group of its own, its words in `log`, waits until `is_ready`, and says its id.
pub(super) fn start(command: &mut Command, log: &Path, is_ready: impl Fn() -> bool) -> Result<u32, Failure> {
    let file = File::create(log).map_err(|cause| cannot("write", log).because(cause))?;
    let errors = file.try_clone().map_err(|cause| cannot("write", log).because(cause))?;
    command.process_group(0).stdin(Stdio::null()).stdout(file).stderr(errors);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .spawn()
        .map_err(|cause| Failure::new(format!("{program} could not be started")).because(cause))?;
    let mut is_up = false;
    wait_until(|| {
        is_up = is_ready();
        is_up || matches!(child.try_wait(), Ok(Some(_)))
    });
    if is_up {
        return Ok(child.id());
    }
    // It is ours and nobody knows it yet.
    let _ = child.kill();
    let _ = child.wait();
    Err(Failure::new(format!("{program} is not ready; it says:\n{}", tail(log))))
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

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("pintle-daemon-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_daemon_is_known_by_its_mark_and_ended_by_its_pid_file() {
        let folder = folder("ends");
        let (pid_file, mark) = (folder.join("pid"), folder.join("config"));
        let script = "echo $$ >\"$1\"; while :; do sleep 0.1; done";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).arg(&mark).arg(&pid_file);
        start(&mut command, &folder.join("log"), || pid_file.exists()).unwrap();
        let other = Daemon { pid_file: pid_file.clone(), mark: folder.join("other") };
        assert_eq!(other.id(), None);
        assert!(!other.end().unwrap());
        let daemon = Daemon { pid_file, mark };
        assert!(daemon.id().is_some());
        assert!(daemon.end().unwrap());
        assert!(!daemon.end().unwrap());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn one_that_fails_is_quoted() {
        let folder = folder("fails");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo no such key >&2; exit 1"]);
        let failure = start(&mut command, &folder.join("log"), || false).unwrap_err();
        assert_eq!(failure.to_string(), "/bin/sh is not ready; it says:\nno such key\n");
        fs::remove_dir_all(folder).unwrap();
    }
}
