//! Steps that run in a second process during `test`, which does not use all CPUs.
//!
//! A separate process, so that `getrusage` attributes CPU time to each side.

use std::{
    fmt,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::{STARTED, Step};
use crate::failure::{Context as _, Failure};

/// Internal flag: the parent process has already run `build`.
pub(super) const BUILT: &str = "--built";

/// Steps that run in a second process.
pub(super) struct BackgroundSteps {
    child: Child,
    names: Vec<&'static str>,
    log: PathBuf,
}

/// Result of a step. Its `Display` form is the last line of the step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FinishedStep {
    pub(super) step: String,
    pub(super) wall: Duration,
    pub(super) cpu: Duration,
    /// Reason, if the step was skipped.
    pub(super) skipped: Option<String>,
}

impl BackgroundSteps {
    /// Starts the steps. `program` is this program.
    pub(super) fn start(program: &Path, steps: &[&Step], is_full: bool) -> Result<Self, Failure> {
        let log = program.with_extension("background.log");
        let stdout = File::create(&log).with_context(|| format!("cannot create `{}`", log.display()))?;
        let stderr = stdout.try_clone().with_context(|| format!("cannot duplicate `{}`", log.display()))?;
        let names: Vec<&'static str> = steps.iter().map(|step| step.name).collect();
        let mut command = Command::new(program);
        command.args(["ci", BUILT]).args(is_full.then_some("--full")).args(&names);
        // Only the parent enforces the time limit.
        command.env_remove(STARTED).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        let child = command.spawn().context("cannot start the background steps")?;
        Ok(Self { child, names, log })
    }

    pub(super) fn process_id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Waits for the end and prints the output. Returns the steps that have not failed, and whether one has.
    pub(super) fn finish(mut self) -> (Vec<FinishedStep>, Result<(), Failure>) {
        let status = self.child.wait().context("cannot wait for the background steps");
        let output = fs::read(&self.log).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        print!("{output}");
        let finished: Vec<FinishedStep> = output.lines().filter_map(FinishedStep::parse).collect();
        let missing: Vec<&str> = self
            .names
            .iter()
            .filter(|name| !finished.iter().any(|one| one.step == **name))
            .copied()
            .collect();
        let outcome = match (status, missing.as_slice()) {
            (Err(failure), _) => Err(failure),
            (Ok(status), []) if status.success() => Ok(()),
            (Ok(status), []) => Err(Failure::new(format!("the background steps ended with {status}"))),
            (Ok(_), missing) => {
                Err(Failure::new(format!("background steps without a result: {}", missing.join(", "))))
            }
        };
        (finished, outcome)
    }
}

/// A panic elsewhere must not leave the steps behind.
impl Drop for BackgroundSteps {
    fn drop(&mut self) {
        // Both fail if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl fmt::Display for FinishedStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, wall, cpu, skipped } = self;
        let (verb, reason) = match skipped {
            None => ("ok", String::new()),
            Some(why) => ("SKIPPED", format!(": {why}")),
        };
        let (wall, cpu) = (wall.as_secs_f64(), cpu.as_secs_f64());
        write!(formatter, "== {step}: {verb} in {wall:.1} s, CPU {cpu:.1} s{reason}")
    }
}

impl FinishedStep {
    fn parse(line: &str) -> Option<Self> {
        let (step, end) = line.strip_prefix("== ")?.split_once(": ")?;
        let (verb, times) = end.split_once(" in ")?;
        let (times, skipped) = match verb {
            "ok" => (times, None),
            "SKIPPED" => times.split_once(": ").map(|(times, why)| (times, Some(why.to_owned())))?,
            _ => return None,
        };
        let (wall, cpu) = times.strip_suffix(" s")?.split_once(" s, CPU ")?;
        let seconds = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok();
        Some(Self { step: step.to_owned(), wall: seconds(wall)?, cpu: seconds(cpu)?, skipped })
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt as _, time::Duration};

    use super::{super::STEPS, BackgroundSteps, FinishedStep};

    #[test]
    fn the_last_line_of_a_step_is_parsed() {
        let (wall, cpu) = (Duration::from_millis(1_500), Duration::from_secs(2));
        for skipped in [None, Some("there is none: none".to_owned())] {
            let finished = FinishedStep { step: "wire".to_owned(), wall, cpu, skipped };
            assert_eq!(FinishedStep::parse(&finished.to_string()), Some(finished.clone()), "{finished}");
        }
        for other in
            ["== wire", "== step            time  CPU time", "== compile: CPU 1.0 s", "-- ok in 1.0 s"]
        {
            assert_eq!(FinishedStep::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_step_without_a_result_is_a_failure() {
        let directory = std::env::temp_dir().join(format!("pintle-background-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let steps: Vec<_> = STEPS.iter().filter(|step| ["wire", "clients"].contains(&step.name)).collect();
        let (wire, clients) = ("== wire: ok in 1.0 s, CPU 2.0 s", "== clients: ok in 1.0 s, CPU 2.0 s");
        for (number, (script, found, expected)) in [
            (format!("echo '{wire}'; echo '{clients}'"), 2, Ok(())),
            (format!("echo '{wire}'; echo 'unfinished{clients}'"), 1, Err("without a result: clients")),
            (format!("echo '{wire}'; exit 1"), 1, Err("without a result: clients")),
            (format!("echo '{wire}'; echo '{clients}'; exit 1"), 2, Err("exit status: 1")),
        ]
        .into_iter()
        .enumerate()
        {
            let program = directory.join(format!("program-{number}"));
            std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
            let (finished, outcome) = BackgroundSteps::start(&program, &steps, false).unwrap().finish();
            assert_eq!(finished.len(), found, "{script}");
            match (outcome, expected) {
                (Ok(()), Ok(())) => {}
                (Err(failure), Err(reason)) => assert!(failure.to_string().contains(reason), "{failure}"),
                (outcome, _) => panic!("{script}: {outcome:?}"),
            }
        }
        std::fs::remove_dir_all(directory).unwrap();
    }
}
