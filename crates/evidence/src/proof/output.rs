//! Output of commands that have failed.

use serde::Serialize;

use super::CandidateFacts;
use crate::command_run::CommandRun;
use crate::names::escape_name;

/// End of the output of a command that has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedOutput {
    /// Name of the check, or `None` for the anchor.
    pub check: Option<String>,
    /// Last lines of its output.
    pub lines: Vec<String>,
}

impl FailedOutput {
    /// Returns the sentence before the lines.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.check {
            Some(check) => format!("The output of check `{}` ends with:", escape_name(check)),
            None => "The output of the anchor ends with:".to_owned(),
        }
    }
}

/// Returns the end of the output of the anchor and of each check, if a run has failed.
#[must_use]
pub fn failed_outputs(facts: &CandidateFacts) -> Vec<FailedOutput> {
    let failed = |check: Option<&String>, runs: &[CommandRun]| {
        let run = runs.iter().find(|run| !run.last_lines.is_empty())?;
        Some(FailedOutput { check: check.cloned(), lines: run.last_lines.clone() })
    };
    let checks = facts.checks.iter().filter_map(|(name, runs)| failed(Some(name), runs));
    failed(None, &facts.anchor).into_iter().chain(checks).collect()
}

/// Returns the end of failed output, for a candidate.
#[must_use]
pub fn render_failed_outputs(facts: &CandidateFacts) -> String {
    let render = |output: FailedOutput| {
        let lines: String = output.lines.iter().map(|line| format!("      {line}\n")).collect();
        format!("- {}\n{lines}", output.describe())
    };
    failed_outputs(facts).into_iter().map(render).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{diff, modified, plain};

    #[test]
    fn the_output_of_failed_commands_is_shown() {
        let mut facts = CandidateFacts::from_diff(diff([modified("src/sums.py", 1, 1)]));
        let failed = |line: &str| {
            let mut run = plain(1);
            run.last_lines = vec![line.to_owned(), "  done".to_owned()];
            run
        };
        facts.anchor = vec![plain(0), failed("no sum")];
        facts.checks.insert("tests".to_owned(), vec![failed("1 failed"), failed("2 failed")]);
        facts.checks.insert("lints".to_owned(), vec![plain(0)]);
        insta::assert_snapshot!(render_failed_outputs(&facts), @r"
        - The output of the anchor ends with:
              no sum
                done
        - The output of check `tests` ends with:
              1 failed
                done
        ");
    }
}
