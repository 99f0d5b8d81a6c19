//! Footer of a transcript.

use pintle_agent::{Money, OutcomeStatus};

use super::super::call::MAX_LINE_CHARS;
use super::super::line::{Face, StyledLine};
use super::super::{DemoResult, diff, summary};
use super::{Detail, Footer, TextView};

/// Number of result lines of the final test run to show.
const TEST_LINES: usize = 6;

impl TextView {
    /// Returns the final response in quiet mode, otherwise a line of totals and the result of a demo.
    pub(in crate::render) fn footer(&mut self, footer: &Footer<'_>) -> String {
        if self.detail == Detail::Quiet {
            let text = footer.outcome.text.as_str();
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            return format!("{}{end}", self.style.body(text, self.columns));
        }
        self.transcript.footer(StyledLine::new(totals(footer), Face::DIM));
        let out = self.take();
        out + &footer.demo.map(|demo| self.demo_result(demo)).unwrap_or_default()
    }

    fn demo_result(&self, result: &DemoResult) -> String {
        let (face, verdict) =
            if result.passed { (Face::SUCCESS, "passed") } else { (Face::FAILURE, "failed") };
        let mut out = format!("\nFinal test run: {}\n", self.style.paint(verdict, face));
        let lines: Vec<&str> =
            result.test_output.lines().filter(|line| line.contains("test result:")).collect();
        let last = lines.get(lines.len().saturating_sub(TEST_LINES)..).unwrap_or_default();
        for line in last {
            out.push_str(&format!("    {}\n", summary::output_line(line, MAX_LINE_CHARS)));
        }
        if result.diff.is_empty() {
            out.push_str("\nNo files changed.\n");
        } else {
            out.push_str("\nChanges:\n\n");
            let lines = diff::lines(&result.diff, str::to_owned);
            out.extend(lines.iter().map(|line| line.to_terminal(self.style.depth()) + "\n"));
        }
        out.push_str(&format!("\nThe project is kept in {}\n", result.directory.display()));
        out
    }
}

/// Formats status, calls, tokens, time and cost.
fn totals(footer: &Footer<'_>) -> String {
    let outcome = footer.outcome;
    let mut totals = vec![
        summary::plural(outcome.model_calls, "model call"),
        summary::plural(outcome.tool_calls, "tool call"),
        summary::tokens(&outcome.usage),
        summary::duration(footer.duration),
    ];
    if let Some(cost) = footer.cost.filter(|cost| *cost > Money::ZERO) {
        totals.push(format!("{cost:.4}"));
    }
    if footer.is_stored {
        totals.push(format!("session {}", footer.session_id));
    }
    let subagents = footer.subagents.filter(|subagents| subagents.count > 0).map(|subagents| {
        let count = summary::plural(subagents.count, "subagent");
        let model_calls = summary::plural(subagents.model_calls, "model call");
        let tool_calls = summary::plural(subagents.tool_calls, "tool call");
        format!("; {count}: {model_calls}, {tool_calls}, {}", summary::tokens(&subagents.usage))
    });
    format!("[{}] {}{}", status_label(outcome.status), totals.join(", "), subagents.unwrap_or_default())
}

fn status_label(status: OutcomeStatus) -> &'static str {
    match status {
        OutcomeStatus::Completed => "done",
        OutcomeStatus::AwaitingInput => "done, with a question",
        OutcomeStatus::Refused => "refused",
        OutcomeStatus::RoundLimit => "stopped: tool round limit",
        OutcomeStatus::TurnLimit => "stopped: turn limit",
        OutcomeStatus::Budget => "stopped: budget exhausted",
        OutcomeStatus::ContextFull => "stopped: context window full",
        OutcomeStatus::OutputLimit => "stopped: output limit",
        OutcomeStatus::Interrupted | OutcomeStatus::Aborted => "interrupted",
        // Treat a status unknown to this version as a failure.
        OutcomeStatus::Failed | _ => "failed",
    }
}
