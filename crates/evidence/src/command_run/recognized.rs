//! Results that were recognized in runs on the base.

use super::{CommandRun, RunComparison, TestStability};
use crate::results::RecognizedResults;

/// Returns the reason why runs on the base have no results of single tests, as text. A run that was cut short proves nothing
/// about its format.
#[must_use]
pub fn explain_unusable(runs: &[CommandRun]) -> Option<String> {
    if runs.iter().any(|run| run.end.is_cut_short()) {
        return None;
    }
    let observed = RunComparison::compare(runs);
    if let Some(problem) = observed.problems.first() {
        return Some(problem.clone());
    }
    if runs.iter().any(|run| run.tests.as_ref().is_none_or(|tests| tests.tests.is_empty())) {
        return Some("there are no results".to_owned());
    }
    let names =
        |run: &CommandRun| run.tests.as_ref().map(|tests| tests.tests.keys().cloned().collect::<Vec<_>>());
    let first = runs.first().and_then(names);
    if runs.iter().any(|run| names(run) != first) {
        return Some("the names of its tests differ between runs".to_owned());
    }
    let fails =
        observed.tests_with(TestStability::Fails).chain(observed.tests_with(TestStability::Breaks)).next();
    (fails.is_some() && observed.is_always_successful())
        .then(|| "it exits with 0 although tests fail".to_owned())
}

/// Returns the results that were recognized in the output of all runs. Without them, removes the results of single runs.
pub fn take_recognized(runs: &mut [CommandRun]) -> Option<RecognizedResults> {
    let format = |run: &CommandRun| run.tests.as_ref()?.format;
    let first = runs.first().and_then(format);
    let is_common = runs.iter().all(|run| format(run) == first) && explain_unusable(runs).is_none();
    let recognized = first.filter(|_| is_common);
    if recognized.is_none() {
        runs.iter_mut().for_each(|run| run.tests = None);
    }
    recognized.map(|format| RecognizedResults { format, report: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_run::CommandEnd;
    use crate::results::ResultsFormat;
    use crate::testing::{plain, run};

    #[test]
    fn runs_on_the_base_show_whether_results_can_be_used() {
        let with_problem = {
            let mut run = run(0, "+a");
            run.tests.as_mut().unwrap().problems.push("no plan".to_owned());
            run
        };
        for (runs, expected) in [
            (vec![run(0, "+a"), run(0, "+a")], None),
            (vec![run(1, "-a"), run(1, "-a")], None),
            (vec![CommandRun::new(CommandEnd::TimedOut)], None),
            (vec![plain(0)], Some("there are no results")),
            (vec![run(0, "")], Some("there are no results")),
            (vec![with_problem], Some("no plan")),
            (vec![run(0, "+a-1"), run(0, "+a-2")], Some("the names of its tests differ between runs")),
            (vec![run(0, "-a")], Some("it exits with 0 although tests fail")),
        ] {
            assert_eq!(explain_unusable(&runs).as_deref(), expected, "{runs:?}");
        }
    }

    #[test]
    fn results_of_different_formats_are_not_used() {
        let with = |format: ResultsFormat| {
            let mut run = run(0, "+a");
            run.tests.as_mut().unwrap().format = Some(format);
            run
        };
        let mut runs = [with(ResultsFormat::Tap), with(ResultsFormat::Tap)];
        assert_eq!(take_recognized(&mut runs).map(|results| results.format), Some(ResultsFormat::Tap));
        let mut runs = [with(ResultsFormat::Tap), with(ResultsFormat::Cargo)];
        assert_eq!(take_recognized(&mut runs), None);
        assert!(runs.iter().all(|run| run.tests.is_none()));
    }
}
