//! Reports about a session for the commands of a conversation, in a terminal or an editor.

use std::path::Path;

use pintle_agent::{PolicyRule, SessionId};
use pintle_governance::Policy;
use pintle_llm::{ToolItem, ToolList};

use crate::render::{Face, StyledLine, sanitize};

/// Asks for the instructions of a project.
pub const INIT: &str = include_str!("../prompts/init.md").trim_ascii_end();

/// Appended to the task of a plan. The description of the tool has more details.
pub const PLAN_FIRST: &str = include_str!("../prompts/plan_first.md").trim_ascii_end();

/// Returns a line with a label.
pub fn labelled(label: &str, text: impl Into<String>) -> StyledLine {
    StyledLine::new(format!("{label}: "), Face::BOLD).and(text, Face::PLAIN)
}

/// Returns the usage of the context window, from the used tokens and the size of the window.
pub fn context(context: Option<(u64, u64)>) -> StyledLine {
    let text = match context {
        Some((used, window)) if used > 0 => format!("about {used} of {window} tokens"),
        Some(_) | None => "nothing was sent yet".to_owned(),
    };
    labelled("context", text)
}

/// Returns the cost of the session, in US dollars.
pub fn cost(total: Option<f64>) -> StyledLine {
    let text = match total {
        Some(cost) => format!("${cost:.4}"),
        None => "the price of the model is unknown".to_owned(),
    };
    labelled("cost", text)
}

/// Lists the tools that the model has.
pub fn tools(offered: &ToolList) -> Vec<StyledLine> {
    let line = |tool: &ToolItem| {
        let meaning = first_sentence(&tool.description);
        let name = format!("  {:<24} ", sanitize(&tool.name));
        StyledLine::new(name, Face::BOLD).and(sanitize(meaning), Face::DIM)
    };
    offered.iter().map(line).collect()
}

/// Returns the beginning of a description. A full stop within a word, as in `*.rs`, ends no sentence.
fn first_sentence(description: &str) -> &str {
    let line = description.lines().next().unwrap_or_default();
    line.split(". ").next().unwrap_or_default().trim_end_matches('.')
}

/// Lists the rules of the session.
pub fn permissions(policy: &Policy) -> Vec<StyledLine> {
    let rules = policy.rules();
    let line = |rule: PolicyRule| labelled(rule.permission.as_str(), rule.rule);
    let lines: Vec<StyledLine> = rules.on_record().map(line).collect();
    if lines.is_empty() { vec![labelled("permissions", "no rules: the mode decides")] } else { lines }
}

/// Explains how to store a key. Keys must not be typed into a conversation, which is recorded.
pub fn login() -> Vec<StyledLine> {
    vec![labelled("login", "`pintle login` in another terminal stores a key for conversations to come")]
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
    pub fn lines(self) -> Vec<StyledLine> {
        vec![
            labelled("session", self.session.to_string()),
            labelled("model", self.model),
            labelled("directory", self.directory.display().to_string()),
            labelled("environment", self.environment),
            labelled("mode", self.policy.mode().to_string()),
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
}
