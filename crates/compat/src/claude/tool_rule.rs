//! Rules on tools, as in `--allowedTools`.

use std::fmt;

use super::tool_names::own_tool_names;

/// A tool, or some of its calls: `Read`, `Bash(git *)`, `mcp__server`, `mcp__server__tool`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolRule {
    /// Claude's name of the tool.
    pub tool: String,
    /// Claude's pattern for some of its calls: the text between the parentheses. All calls if `None`.
    pub scope: Option<String>,
}

/// The text is not a rule on a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a rule such as `Bash` or `Bash(git *)`, found `{0}`")]
pub struct InvalidToolRule(pub String);

/// Effect of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleBehavior {
    /// The call runs.
    Allow,
    /// The call does not run.
    Deny,
    /// The call needs an approval.
    Ask,
}

impl RuleBehavior {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }
}

impl ToolRule {
    /// Creates a rule on all or some calls of a tool.
    #[must_use]
    pub fn new(tool: impl Into<String>, scope: Option<String>) -> Self {
        Self { tool: tool.into(), scope }
    }

    /// Parses one rule.
    ///
    /// # Errors
    ///
    /// [`InvalidToolRule`] without a name, or with parentheses that do not enclose the rest.
    pub fn parse(text: &str) -> Result<Self, InvalidToolRule> {
        let invalid = || InvalidToolRule(crate::command_line::shorten(text));
        let text = text.trim();
        let (tool, scope) = match text.split_once('(') {
            Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').ok_or_else(invalid)?)),
            None => (text, None),
        };
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '*' | ':');
        if tool.is_empty() || !tool.chars().all(is_name) {
            return Err(invalid());
        }
        // A scope that is empty, or matches everything, is the same as no scope.
        let scope = scope.filter(|scope| !matches!(*scope, "" | "*" | "**")).map(str::to_owned);
        Ok(Self::new(tool, scope))
    }

    /// Parses rules separated by commas or spaces outside of parentheses.
    ///
    /// ```
    /// use pintle_compat::claude::ToolRule;
    ///
    /// let rules = ToolRule::parse_list("Read,Bash(git log, --oneline)")?;
    /// assert_eq!(rules[1].scope.as_deref(), Some("git log, --oneline"));
    /// # Ok::<(), pintle_compat::claude::InvalidToolRule>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`ToolRule::parse`].
    pub fn parse_list(text: &str) -> Result<Vec<Self>, InvalidToolRule> {
        let mut depth = 0_usize;
        let is_separator = |c: char| {
            match c {
                '(' => depth = depth.saturating_add(1),
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && (c == ',' || c.is_whitespace())
        };
        text.split(is_separator).filter(|rule| !rule.is_empty()).map(Self::parse).collect()
    }

    /// Returns the names of a session's tools to which a rule of this behaviour applies. An MCP server, `mcp__server`,
    /// has the pattern `mcp__server__*`. A rule that denies `Edit`, or asks, applies to every tool that changes files;
    /// a rule that allows it does not.
    #[must_use]
    pub fn own_tool_names(&self, behavior: RuleBehavior) -> Vec<String> {
        let is_server = self.tool.strip_prefix("mcp__").is_some_and(|rest| !rest.contains("__"));
        if is_server {
            vec![format!("{}__*", self.tool)]
        } else if self.tool == "Edit" && behavior != RuleBehavior::Allow {
            ["Edit", "Write", "NotebookEdit"].into_iter().flat_map(own_tool_names).collect()
        } else {
            own_tool_names(&self.tool)
        }
    }
}

impl fmt::Display for ToolRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Some(scope) => write!(f, "{}({scope})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_what_is_none() {
        let texts = |rules: Vec<ToolRule>| rules.iter().map(ToString::to_string).collect::<Vec<_>>();
        let cases = [
            ("Read, Edit", vec!["Read", "Edit"]),
            ("Bash(npm run test:*),mcp__a__b", vec!["Bash(npm run test:*)", "mcp__a__b"]),
            ("Bash(echo (a, b)) Glob", vec!["Bash(echo (a, b))", "Glob"]),
            ("Bash(*)", vec!["Bash"]),
            ("", vec![]),
        ];
        for (text, expected) in cases {
            assert_eq!(texts(ToolRule::parse_list(text).expect(text)), expected, "{text}");
        }
        for text in ["Bash(git", "(git)", "a/b", "Bash(git)x"] {
            ToolRule::parse_list(text).expect_err(text);
        }
    }

    #[test]
    fn rules_name_the_tools_of_every_toolset() {
        use RuleBehavior::{Allow, Ask, Deny};
        let names = |text, behavior| ToolRule::parse(text).expect(text).own_tool_names(behavior);
        assert_eq!(names("mcp__web", Deny), ["mcp__web__*"]);
        assert_eq!(names("mcp__web__fetch", Ask), ["mcp__web__fetch"]);
        assert!(names("Edit", Allow).contains(&"apply_patch".to_owned()));
        assert!(names("Edit", Deny).contains(&"write_file".to_owned()));
        assert!(!names("Edit", Allow).contains(&"write_file".to_owned()));
    }
}
