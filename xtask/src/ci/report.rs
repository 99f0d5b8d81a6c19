//! The times of a run.

use std::{
    fmt::Write as _,
    fs,
    path::PathBuf,
    process,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{
    background::{BackgroundSteps, FinishedStep},
    build::Build,
};
use crate::test_run::TestRun;

/// Test programs that are listed take at least this long.
const LONG_PROGRAM: Duration = Duration::from_secs(2);
/// Number of tests that are listed.
const SLOWEST: usize = 30;

/// Times of the steps of a run.
pub(super) struct Report {
    started: Instant,
    times: Arc<Mutex<Times>>,
}

#[derive(Default)]
struct Times {
    /// Time before the first step.
    preparation: Option<Duration>,
    finished: Vec<FinishedStep>,
    running: Option<(&'static str, Instant)>,
    /// Process id and log of the background steps.
    background: Option<(Pid, PathBuf)>,
}

impl Report {
    /// Starts the report of a run. When its time is over, the process prints the table and exits with a failure.
    pub(super) fn start(started: Instant, limit: Option<Duration>) -> Self {
        let report = Self { started, times: Arc::default() };
        let Some(limit) = limit else { return report };
        let watched = Self { started, times: Arc::clone(&report.times) };
        thread::spawn(move || {
            thread::sleep(limit.saturating_sub(started.elapsed()));
            if let Some((process, log)) = &watched.times().background {
                print!("{}", fs::read_to_string(log).unwrap_or_default());
                // It may have ended.
                let _ = kill(*process, Signal::SIGKILL);
            }
            print!("{}", watched.table());
            println!("ci FAILED: it took longer than {}", seconds(limit));
            process::exit(1);
        });
        report
    }

    /// Has the watchdog print the output of these steps and end them.
    pub(super) fn watch(&self, steps: &BackgroundSteps) {
        let process = Pid::from_raw(steps.process_id().cast_signed());
        self.times().background = Some((process, steps.log().to_owned()));
    }

    pub(super) fn unwatch(&self) {
        self.times().background = None;
    }

    pub(super) fn begin(&self, step: &'static str) {
        let mut times = self.times();
        times.preparation.get_or_insert_with(|| self.started.elapsed());
        times.running = Some((step, Instant::now()));
    }

    /// Ends the step that runs. Returns how long it took.
    pub(super) fn end(&self) -> Duration {
        self.times().running.take().map_or(Duration::ZERO, |(_, started)| started.elapsed())
    }

    /// Adds a step that has ended to the table.
    pub(super) fn add(&self, end: FinishedStep) {
        self.times().finished.push(end);
    }

    /// Returns the time before the first step, and a line for each step.
    pub(super) fn table(&self) -> String {
        let times = self.times();
        let mut text = format!("{:<12} {:>9} {:>9}\n", "== step", "time", "CPU time");
        let preparation = times.preparation.unwrap_or_else(|| self.started.elapsed());
        let _ = writeln!(text, "{:<12} {:>9}", "preparation", seconds(preparation));
        for FinishedStep { step, wall, cpu, .. } in &times.finished {
            let _ = writeln!(text, "{step:<12} {:>9} {:>9}", seconds(*wall), seconds(*cpu));
        }
        if let Some((step, started)) = times.running {
            let _ = writeln!(text, "{step:<12} {:>9} (running)", seconds(started.elapsed()));
        }
        text
    }

    /// Returns the time since the start, as text.
    pub(super) fn total(&self) -> String {
        seconds(self.started.elapsed())
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Renders the times of compilers, linkers and test programs, and the slowest tests.
pub(super) fn render_test_times(build: Option<&Build>, tests: &TestRun) -> String {
    let mut text = String::new();
    if let Some(build) = build {
        let (count, links) = build.links;
        let _ = writeln!(
            text,
            "== compile: CPU {}, link: CPU {} ({count} programs), both: {}",
            seconds(build.cpu.saturating_sub(links)),
            seconds(links),
            seconds(build.wall),
        );
    }
    if !tests.slowest(1).is_empty() {
        text.push_str("== test programs\n");
    }
    for (program, time) in tests.programs(LONG_PROGRAM) {
        let _ = writeln!(text, "{:>9} CPU {:>9}  {program}", seconds(time.wall), seconds(time.cpu));
    }
    if !tests.slowest(1).is_empty() {
        text.push_str("== slowest tests\n");
    }
    for (time, test) in tests.slowest(SLOWEST) {
        let _ = writeln!(text, "{:>9}  {test}", seconds(*time));
    }
    text
}

pub(super) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{FinishedStep, Report};

    #[test]
    fn a_step_that_runs_is_in_the_table() {
        let report = Report::start(Instant::now(), None);
        let times = |step: &str, wall| FinishedStep { step: step.to_owned(), wall, cpu: wall, skipped: None };
        report.begin("first");
        report.end();
        report.add(times("first", Duration::ZERO));
        report.begin("second");
        report.add(times("background", Duration::from_secs(2)));
        let table = report.table();
        let lines: Vec<&str> = table.lines().collect();
        let [_, preparation, first, background, second] = lines.as_slice() else { panic!("{table}") };
        assert!(preparation.starts_with("preparation "), "{preparation}");
        assert!(first.starts_with("first ") && first.ends_with(" 0.0 s"), "{first}");
        assert!(background.starts_with("background ") && background.ends_with(" 2.0 s"), "{background}");
        assert!(second.starts_with("second ") && second.ends_with(" (running)"), "{second}");
    }
}
