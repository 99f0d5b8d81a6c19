//! How a transcript ends.

use pintle_agent::OutcomeStatus;

use super::super::{DemoResult, diff_lines, summary};
use super::{Block, Footer, Detail, Highlight, TextView, tokens};

/// Lines of the last test run that are shown, the last ones.
const TEST_LINES: usize = 6;

impl TextView {
    /// The final answer where only that is wanted, else one line of facts and what a demonstration found.
    pub(in crate::render) fn closing(&mut self, closing: &Footer<'_>) -> String {
        if self.detail == Detail::Quiet {
            let text = closing.outcome.text.as_str();
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            return format!("{}{end}", self.style.answer(text, self.columns));
        }
        let waited = self.waited();
        // Set off from everything, lines included.
        let gap = self.gap_before(Block::Ended);
        let mut shown = format!("{waited}{gap}{}\n", self.style.highlight(Highlight::Faint, &facts(closing)));
        if let Some(demonstration) = closing.demonstration {
            shown.push_str(&self.demonstration(demonstration));
        }
        shown
    }

    fn demonstration(&self, found: &DemoResult) -> String {
        let (ink, verdict) = if found.passed { (Highlight::Good, "passed") } else { (Highlight::Bad, "failed") };
        let mut shown =
            format!("\nThe tests, run once more by the command itself: {}\n", self.style.ink(ink, verdict));
        let lines: Vec<&str> =
            found.test_output.lines().filter(|line| line.contains("test result:")).collect();
        let last = lines.get(lines.len().saturating_sub(TEST_LINES)..).unwrap_or_default();
        for line in last {
            shown.push_str(&format!("    {}\n", summary::output_line(line, super::LINE)));
        }
        if found.diff.is_empty() {
            shown.push_str("\nNo file has changed.\n");
        } else {
            shown.push_str("\nWhat has changed:\n\n");
            shown.extend(diff_lines(&found.diff).map(|line| format!("{}\n", self.style.diff_line(line))));
        }
        shown.push_str(&format!("\nThe folder is kept: {}\n", found.folder.display()));
        shown
    }
}

/// Status, calls, tokens, time and cost.
fn facts(closing: &Footer<'_>) -> String {
    let outcome = closing.outcome;
    let mut facts = vec![
        summary::plural(outcome.model_calls, "model call"),
        summary::plural(outcome.tool_calls, "tool call"),
        tokens(&outcome.usage),
        summary::duration(closing.duration),
    ];
    if let Some(cost) = closing.cost.filter(|cost| *cost > 0.0) {
        facts.push(format!("${cost:.4}"));
    }
    let below = closing.below.filter(|below| below.subagents > 0).map(|below| {
        let calls = summary::plural(below.model_calls, "model call");
        let tool_calls = summary::plural(below.tool_calls, "tool call");
        let subagents = summary::plural(below.subagents, "subagent");
        format!("; {subagents}: {calls}, {tool_calls}, {}", tokens(&below.usage))
    });
    format!("[{}] {}{}", status_words(outcome.status), facts.join(", "), below.unwrap_or_default())
}

fn status_words(status: OutcomeStatus) -> &'static str {
    match status {
        OutcomeStatus::Completed => "done",
        OutcomeStatus::AwaitingInput => "done, with a question",
        OutcomeStatus::Refused => "refused",
        OutcomeStatus::RoundLimit => "stopped at the limit of tool rounds",
        OutcomeStatus::TurnLimit => "stopped at the limit of turns",
        OutcomeStatus::Budget => "stopped at a limit on what may be spent",
        OutcomeStatus::ContextFull => "stopped at the context window",
        OutcomeStatus::Interrupted | OutcomeStatus::Aborted => "interrupted",
        // A status that this version does not know is no success.
        OutcomeStatus::Failed | _ => "failed",
    }
}
