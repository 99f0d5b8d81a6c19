//! Output limits, by tool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::kind::ToolKind;

/// The part that is kept of an output with too many characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TruncationMode {
    /// Half of the limit from the start, half from the end.
    HeadTail,
    /// A fifth of the limit from the start, the rest from the end.
    LongTail,
    /// All of the limit from the end.
    Tail,
}

/// The text that shows the model that characters are missing.
///
/// Models know the marker of the agent that they were trained with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TruncationMarker {
    /// The warning of the loop specification, section 5.1.
    Warning,
    /// The markers of codex: `…N tokens truncated…` in the gap, with four bytes to a token, and a first line with the
    /// number of lines.
    Tokens,
    /// The markers of gemini-cli: a line `... [N characters omitted] ...`, and a last line with the location of the
    /// full output.
    Characters,
}

/// The default limits on one tool's output. [`TruncationLimits`] take precedence.
///
/// A limit of `usize::MAX` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TruncationRule {
    /// Maximum number of characters that are kept.
    pub chars: usize,
    /// Maximum number of lines that are kept.
    pub lines: Option<usize>,
    /// The part that is kept.
    pub mode: TruncationMode,
    /// The format of the marker.
    pub marker: TruncationMarker,
}

/// Output limits that replace the defaults (loop specification, sections 5.2 and 5.3).
///
/// Keys are names of tools. The tool's name is looked up first, then its canonical kind, so that a limit for `shell`
/// applies to a shell called `Bash`. Without an entry, the tool's [`TruncationRule`] applies. Its default is the rule
/// of the tool's kind ([`TruncationRule::of_kind`]).
///
/// A limit of `usize::MAX` disables a default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TruncationLimits {
    /// Maximum number of characters by tool (`tool_output_limits` of the specification).
    pub chars: BTreeMap<String, usize>,
    /// Maximum number of lines by tool (`tool_line_limits` of the specification).
    pub lines: BTreeMap<String, usize>,
}

impl TruncationRule {
    /// Creates a rule without a line limit, with the marker of the specification.
    #[must_use]
    pub const fn new(chars: usize, mode: TruncationMode) -> Self {
        Self { chars, lines: None, mode, marker: TruncationMarker::Warning }
    }

    /// Returns the defaults of the specification for a canonical kind:
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

    /// Sets the line limit.
    #[must_use]
    pub const fn with_lines(mut self, lines: Option<usize>) -> Self {
        self.lines = lines;
        self
    }

    /// Sets the marker.
    #[must_use]
    pub const fn with_marker(mut self, marker: TruncationMarker) -> Self {
        self.marker = marker;
        self
    }
}

impl TruncationLimits {
    /// Creates limits without entries: the defaults apply.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limit on characters of a tool.
    #[must_use]
    pub fn with_chars(mut self, tool: impl Into<String>, limit: usize) -> Self {
        self.chars.insert(tool.into(), limit);
        self
    }

    /// Sets the limit on lines of a tool.
    #[must_use]
    pub fn with_lines(mut self, tool: impl Into<String>, limit: usize) -> Self {
        self.lines.insert(tool.into(), limit);
        self
    }

    /// Returns the effective rule of the tool `name` with this canonical `kind`: `own`, replaced by the limits that are
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
        let cases = [
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
        for (tool, chars, lines, mode) in cases {
            let expected = TruncationRule { chars, lines, mode, marker: TruncationMarker::Warning };
            assert_eq!(TruncationRule::of_kind(tool), expected, "{tool}");
        }
    }

    #[test]
    fn a_limit_for_the_name_precedes_the_kind() {
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
    fn limits_round_trip_as_json() {
        let limits = TruncationLimits::new().with_chars("shell", 7);
        let text = serde_json::to_string(&limits).unwrap();
        assert_eq!(text, r#"{"chars":{"shell":7},"lines":{}}"#);
        assert_eq!(serde_json::from_str::<TruncationLimits>(&text).unwrap(), limits);
        assert_eq!(serde_json::from_str::<TruncationLimits>("{}").unwrap(), TruncationLimits::new());
    }
}
