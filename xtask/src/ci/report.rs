//! The times of a run.

use std::{
    fmt::Write as _,
    process,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::build::Build;
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
    finished: Vec<(&'static str, Duration, Duration)>,
    running: Option<(&'static str, Instant)>,
}

impl Report {
    /// Starts the report of a run. When its time is over, the process prints the table and exits with a failure.
    pub(super) fn start(started: Instant, limit: Option<Duration>) -> Self {
        let report = Self { started, times: Arc::default() };
        let Some(limit) = limit else { return report };
        let watched = Self { started, times: Arc::clone(&report.times) };
        thread::spawn(move || {
            thread::sleep(limit.saturating_sub(started.elapsed()));
            print!("{}", watched.table());
            println!("ci FAILED: it took longer than {}", seconds(limit));
            process::exit(1);
        });
        report
    }

    pub(super) fn begin(&self, step: &'static str) {
        self.times().running = Some((step, Instant::now()));
    }

    /// Ends the step that runs. Returns how long it took.
    pub(super) fn end(&self, cpu: Duration) -> Duration {
        let mut times = self.times();
        let Some((step, started)) = times.running.take() else { return Duration::ZERO };
        let wall = started.elapsed();
        times.finished.push((step, wall, cpu));
        wall
    }

    /// Returns a line for each step, with the time before the first step.
    pub(super) fn table(&self) -> String {
        let times = self.times();
        let mut text = format!("{:<12} {:>9} {:>9}\n", "== step", "time", "CPU time");
        for (step, wall, cpu) in &times.finished {
            let _ = writeln!(text, "{step:<12} {:>9} {:>9}", seconds(*wall), seconds(*cpu));
        }
        if let Some((step, started)) = times.running {
            let _ = writeln!(text, "{step:<12} {:>9} (running)", seconds(started.elapsed()));
        }
        let in_steps: Duration = times.finished.iter().map(|(_, wall, _)| *wall).sum();
        let in_running = times.running.map_or(Duration::ZERO, |(_, started)| started.elapsed());
        let before = self.started.elapsed().saturating_sub(in_steps + in_running);
        let _ = writeln!(text, "{:<12} {:>9}", "preparation", seconds(before));
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

    use super::Report;

    #[test]
    fn a_step_that_runs_is_in_the_table() {
        let report = Report::start(Instant::now(), None);
        report.begin("first");
        report.end(Duration::from_secs(2));
        report.begin("second");
        let table = report.table();
        let lines: Vec<&str> = table.lines().collect();
        let [_, first, second, preparation] = lines.as_slice() else { panic!("{table}") };
        assert!(first.starts_with("first ") && first.ends_with(" 2.0 s"), "{first}");
        assert!(second.starts_with("second ") && second.ends_with(" (running)"), "{second}");
        assert!(preparation.starts_with("preparation "), "{preparation}");
    }
}
