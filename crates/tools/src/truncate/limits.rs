//! How much of an output a model reads, tool by tool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Which part of an output is kept when it has too many characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruncationMode {
    /// Half of the limit from the beginning, half from the end.
    HeadTail,
    /// The end.
    Tail,
}

/// What a host sets in place of the default limits (loop specification, sections 5.2 and 5.3).
///
/// Keys are names of tools. A tool's own name is looked up first, then its canonical kind, so that a limit for
/// `shell` holds for a shell that is called `Bash`. What is not set here has the default of the specification:
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

/// The limits that hold for one output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) chars: usize,
    pub(super) lines: Option<usize>,
    pub(super) mode: TruncationMode,
}

const DEFAULTS: [(&str, Rule); 8] = [
    ("read_file", Rule { chars: 50_000, lines: None, mode: TruncationMode::HeadTail }),
    ("shell", Rule { chars: 30_000, lines: Some(256), mode: TruncationMode::HeadTail }),
    ("grep", Rule { chars: 20_000, lines: Some(200), mode: TruncationMode::Tail }),
    ("glob", Rule { chars: 20_000, lines: Some(500), mode: TruncationMode::Tail }),
    ("edit_file", Rule { chars: 10_000, lines: None, mode: TruncationMode::Tail }),
    ("apply_patch", Rule { chars: 10_000, lines: None, mode: TruncationMode::Tail }),
    ("write_file", Rule { chars: 1_000, lines: None, mode: TruncationMode::Tail }),
    ("spawn_agent", Rule { chars: 20_000, lines: None, mode: TruncationMode::HeadTail }),
];

/// For tools that the specification does not know.
const OTHERS: Rule = Rule { chars: 30_000, lines: None, mode: TruncationMode::HeadTail };

impl TruncationLimits {
    /// The defaults of the specification.
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

    pub(super) fn rule(&self, name: &str, kind: &str) -> Rule {
        let default = default_rule(name).or_else(|| default_rule(kind)).unwrap_or(OTHERS);
        let set = |limits: &BTreeMap<String, usize>| limits.get(name).or_else(|| limits.get(kind)).copied();
        Rule {
            chars: set(&self.chars).unwrap_or(default.chars),
            lines: set(&self.lines).or(default.lines),
            mode: default.mode,
        }
    }
}

fn default_rule(tool: &str) -> Option<Rule> {
    DEFAULTS.iter().find(|(known, _)| *known == tool).map(|(_, rule)| *rule)
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
            assert_eq!(TruncationLimits::new().rule(tool, tool), Rule { chars, lines, mode }, "{tool}");
        }
    }

    #[test]
    fn the_name_comes_before_the_kind_and_a_setting_before_the_default() {
        let shell = |limits: &TruncationLimits| limits.rule("Bash", "shell");
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
