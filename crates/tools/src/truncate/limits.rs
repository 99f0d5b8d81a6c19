//! How much of an output a model reads, tool by tool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::tool::ToolKind;

/// Which part of an output is kept when it has too many characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruncationMode {
    /// Half of the limit from the beginning, half from the end.
    HeadTail,
    /// A fifth of the limit from the beginning, the rest from the end.
    LongTail,
    /// The end.
    Tail,
}

/// How the model is told that characters are missing.
///
/// A model knows the marker of the agent that it was trained with, and acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruncationMarker {
    /// The warning of the loop specification, section 5.1.
    Warning,
    /// `…N tokens truncated…` in the gap, four bytes to a token, below a first line that counts all lines, as in
    /// codex.
    Tokens,
    /// `... [N characters omitted] ...` on a line of its own, and a last line that says where the whole is, as in
    /// gemini-cli.
    Characters,
}

/// How much of one tool's output a model reads, where the host sets nothing else.
///
/// A limit of `usize::MAX` is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TruncationRule {
    /// The most characters that are kept.
    pub chars: usize,
    /// The most lines that are kept.
    pub lines: Option<usize>,
    /// Which characters are kept.
    pub mode: TruncationMode,
    /// How the model is told.
    pub marker: TruncationMarker,
}

/// What a host sets in place of the default limits (loop specification, sections 5.2 and 5.3).
///
/// Keys are names of tools. A tool's own name is looked up first, then its canonical kind, so that a limit for
/// `shell` holds for a shell that is called `Bash`. What is not set here is as the tool's own [`TruncationRule`] says,
/// which is by default that of its kind ([`TruncationRule::of_kind`]).
///
/// A limit of `usize::MAX` switches a default off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TruncationLimits {
    /// The most characters by tool (`tool_output_limits` of the specification).
    pub chars: BTreeMap<String, usize>,
    /// The most lines by tool (`tool_line_limits` of the specification).
    pub lines: BTreeMap<String, usize>,
}

impl TruncationRule {
    /// A rule without a limit on lines, told as the specification tells it.
    #[must_use]
    pub const fn new(chars: usize, mode: TruncationMode) -> Self {
        Self { chars, lines: None, mode, marker: TruncationMarker::Warning }
    }

    /// The defaults of the specification:
    ///
    /// | kind | characters | mode | lines |
    /// |---|---|---|---|
    /// | `read_file` | 50,000 | head and tail | no limit |
    /// | `shell` | 30,000 | head and tail | 256 |
    /// | `grep` | 20,000 | tail | 200 |
    /// | `glob` | 20,000 | tail | 500 |
    /// | `edit_file` | 10,000 | tail | no limit |
    /// | `apply_patch` | 10,000 | tail | no limit |
    /// | `write_file` | 1,000 | tail | no limit |
    /// | `spawn_agent` | 20,000 | head and tail | no limit |
    /// | any other | 30,000 | head and tail | no limit |
    #[must_use]
    pub fn of_kind(kind: &str) -> Self {
        use TruncationMode::{HeadTail, Tail};
        match ToolKind::from_name(kind) {
            Some(ToolKind::ReadFile) => Self::new(50_000, HeadTail),
            Some(ToolKind::Shell) => Self::new(30_000, HeadTail).with_lines(Some(256)),
            Some(ToolKind::Grep) => Self::new(20_000, Tail).with_lines(Some(200)),
            Some(ToolKind::Glob) => Self::new(20_000, Tail).with_lines(Some(500)),
            Some(ToolKind::EditFile | ToolKind::ApplyPatch) => Self::new(10_000, Tail),
            Some(ToolKind::WriteFile) => Self::new(1_000, Tail),
            Some(ToolKind::SpawnAgent) => Self::new(20_000, HeadTail),
            Some(ToolKind::ReadManyFiles | ToolKind::ListDir) | None => Self::new(30_000, HeadTail),
        }
    }

    /// With another limit of lines.
    #[must_use]
    pub const fn with_lines(mut self, lines: Option<usize>) -> Self {
        self.lines = lines;
        self
    }

    /// With another marker.
    #[must_use]
    pub const fn with_marker(mut self, marker: TruncationMarker) -> Self {
        self.marker = marker;
        self
    }
}

impl TruncationLimits {
    /// Nothing set: the defaults hold.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With another limit of characters for a tool.
    #[must_use]
    pub fn with_chars(mut self, tool: impl Into<String>, limit: usize) -> Self {
        self.chars.insert(tool.into(), limit);
        self
    }

    /// With another limit of lines for a tool.
    #[must_use]
    pub fn with_lines(mut self, tool: impl Into<String>, limit: usize) -> Self {
        self.lines.insert(tool.into(), limit);
        self
    }

    /// The rule that holds for the tool that is called `name` and is of this canonical `kind`: its own, with what is
    /// set here.
    #[must_use]
    pub fn rule(&self, name: &str, kind: &str, own: TruncationRule) -> TruncationRule {
        let set = |limits: &BTreeMap<String, usize>| limits.get(name).or_else(|| limits.get(kind)).copied();
        TruncationRule {
            chars: set(&self.chars).unwrap_or(own.chars),
            lines: set(&self.lines).or(own.lines),
            ..own
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_specification() {
        let rows = [
            ("read_file", 50_000, None, TruncationMode::HeadTail),
            ("shell", 30_000, Some(256), TruncationMode::HeadTail),
            ("grep", 20_000, Some(200), TruncationMode::Tail),
            ("glob", 20_000, Some(500), TruncationMode::Tail),
            ("edit_file", 10_000, None, TruncationMode::Tail),
            ("apply_patch", 10_000, None, TruncationMode::Tail),
            ("write_file", 1_000, None, TruncationMode::Tail),
            ("spawn_agent", 20_000, None, TruncationMode::HeadTail),
            ("anything", 30_000, None, TruncationMode::HeadTail),
        ];
        for (tool, chars, lines, mode) in rows {
            let expected = TruncationRule { chars, lines, mode, marker: TruncationMarker::Warning };
            assert_eq!(TruncationRule::of_kind(tool), expected, "{tool}");
        }
    }

    #[test]
    fn the_name_comes_before_the_kind_and_a_setting_before_the_default() {
        let own = TruncationRule::of_kind("shell");
        let shell = |limits: &TruncationLimits| limits.rule("Bash", "shell", own);
        assert_eq!(
            (shell(&TruncationLimits::new()).chars, shell(&TruncationLimits::new()).lines),
            (30_000, Some(256))
        );
        let by_kind = TruncationLimits::new().with_chars("shell", 7).with_lines("shell", 3);
        assert_eq!((shell(&by_kind).chars, shell(&by_kind).lines), (7, Some(3)));
        let by_name = by_kind.with_chars("Bash", 9).with_lines("Bash", 5);
        assert_eq!((shell(&by_name).chars, shell(&by_name).lines), (9, Some(5)));
    }

    #[test]
    fn limits_are_plain_data() {
        let limits = TruncationLimits::new().with_chars("shell", 7);
        let text = serde_json::to_string(&limits).unwrap();
        assert_eq!(text, r#"{"chars":{"shell":7},"lines":{}}"#);
        assert_eq!(serde_json::from_str::<TruncationLimits>(&text).unwrap(), limits);
        assert_eq!(serde_json::from_str::<TruncationLimits>("{}").unwrap(), TruncationLimits::new());
    }
}
