//! Reports about a session for its slash commands, in a terminal or an editor.

use std::fmt;
use std::path::Path;

use pintle_agent::{Count, GroupedNumber, Money, PolicyRule, SessionId};
use pintle_governance::Policy;
use pintle_llm::{ToolItem, ToolList};

use crate::sanitize::sanitize;

/// Asks for the instructions of a project.
pub const INIT: &str = include_str!("../prompts/init.md").trim_ascii_end();

/// Appended to the task of a plan. The description of the tool has more details.
pub const PLAN_FIRST: &str = include_str!("../prompts/plan_first.md").trim_ascii_end();

/// Line of a report. Its `Display` is plain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportLine {
    /// Text with a label.
    Labelled {
        /// The label.
        label: String,
        /// The text.
        text: String,
    },
    /// Entry of a list.
    Entry {
        /// Name of the entry.
        name: String,
        /// Description of the entry.
        description: String,
    },
}

impl ReportLine {
    /// Creates a text with a label.
    pub fn labelled(label: &str, text: impl Into<String>) -> Self {
        Self::Labelled { label: label.to_owned(), text: text.into() }
    }

    /// Returns the label or the name, with the space before the text.
    pub fn head(&self) -> String {
        match self {
            Self::Labelled { label, .. } => format!("{label}: "),
            Self::Entry { name, .. } => format!("  {name:<24} "),
        }
    }

    /// Returns the text or the description.
    pub fn text(&self) -> &str {
        match self {
            Self::Labelled { text, .. } => text,
            Self::Entry { description, .. } => description,
        }
    }
}

impl fmt::Display for ReportLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.head(), self.text())
    }
}

/// Returns the usage of the context window, from the used tokens and the size of the window.
pub fn context(context: Option<(u64, u64)>) -> ReportLine {
    let text = match context {
        Some((used, window)) if used > 0 => format!("about {used} of {window} tokens"),
        Some(_) | None => "nothing was sent yet".to_owned(),
    };
    ReportLine::labelled("context", text)
}

/// Returns the cost of the session.
pub fn cost(total: Option<Money>) -> ReportLine {
    let text = match total {
        Some(cost) => format!("{cost:.4}"),
        None => "the price of the model is unknown".to_owned(),
    };
    ReportLine::labelled("cost", text)
}

/// Returns the result of a compaction, from the number of summarized entries and the tokens of the next request without and
/// with the summary.
pub fn compaction(summarized: u64, tokens_before: u64, tokens_after: u64) -> String {
    let [before, after] = [tokens_before, tokens_after].map(GroupedNumber);
    format!("{} summarized, ~{before} to ~{after} tokens", Count(summarized, "entry"))
}

/// Lists the tools that the model has.
pub fn tools(offered: &ToolList) -> Vec<ReportLine> {
    let line = |tool: &ToolItem| ReportLine::Entry {
        name: sanitize(&tool.name).into_owned(),
        description: sanitize(first_sentence(&tool.description)).into_owned(),
    };
    offered.iter().map(line).collect()
}

/// Returns the beginning of a description. A full stop within a word, as in `*.rs`, ends no sentence.
fn first_sentence(description: &str) -> &str {
    let line = description.lines().next().unwrap_or_default();
    line.split(". ").next().unwrap_or_default().trim_end_matches('.')
}

/// Lists the rules of the session.
pub fn permissions(policy: &Policy) -> Vec<ReportLine> {
    let rules = policy.rules();
    let line = |rule: PolicyRule| ReportLine::labelled(rule.permission.as_str(), rule.rule);
    let lines: Vec<ReportLine> = rules.on_record().map(line).collect();
    match lines.is_empty() {
        true => vec![ReportLine::labelled("permissions", "no rules: the mode decides")],
        false => lines,
    }
}

/// Explains how to store a key. Keys must not be typed into a conversation, which is recorded.
pub fn login() -> Vec<ReportLine> {
    let text = "`pintle login` in another terminal stores a key for conversations to come";
    vec![ReportLine::labelled("login", text)]
}

/// Contents of `/status`.
#[derive(Clone, Copy, Debug)]
pub struct StatusReport<'a> {
    /// Id of the session.
    pub session: &'a SessionId,
    /// Model of the next request.
    pub model: &'a str,
    /// Working directory of the tools.
    pub directory: &'a Path,
    /// Environment and sandbox, as shown to the user.
    pub environment: &'a str,
    /// Policy of the session.
    pub policy: &'a Policy,
}

impl StatusReport<'_> {
    /// Returns a line for each entry.
    pub fn lines(self) -> Vec<ReportLine> {
        vec![
            ReportLine::labelled("session", self.session.to_string()),
            ReportLine::labelled("model", self.model),
            ReportLine::labelled("directory", self.directory.display().to_string()),
            ReportLine::labelled("environment", self.environment),
            ReportLine::labelled("mode", self.policy.mode().to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_for_the_model_are_whole() {
        assert_eq!(
            INIT,
            "Look at this project and write the instructions that a new colleague would need into `AGENTS.md` at its root: \
             how it is built, tested and run, how its code is organized, and conventions that are not obvious. Verify \
             commands before you name them. Keep it below 150 lines, and leave out what any project has. If the file \
             exists, keep what is right in it and mend the rest."
        );
        assert_eq!(
            PLAN_FIRST,
            "Do not change anything yet: read what you need, and then present a complete plan with the tool \
             `present_plan`."
        );
    }

    #[test]
    fn a_tool_is_described_by_its_first_sentence() {
        for (description, first) in [
            ("Finds files, such as `**/*.rs`. Newest first.", "Finds files, such as `**/*.rs`"),
            ("Writes a file.\nWhole.", "Writes a file"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(description), first);
        }
    }

    #[test]
    fn lines_have_a_label_or_a_name() {
        let entry = ReportLine::Entry { name: "shell".to_owned(), description: "Runs a command".to_owned() };
        for (line, expected) in [
            (cost(Some(Money::from_micros(500_000))), "cost: $0.5000"),
            (context(Some((12, 200))), "context: about 12 of 200 tokens"),
            (entry, "  shell                    Runs a command"),
        ] {
            assert_eq!(line.to_string(), expected);
        }
        assert_eq!(compaction(1, 12_345, 900), "1 entry summarized, ~12,345 to ~900 tokens");
    }
}
