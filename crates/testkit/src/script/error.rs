//! Errors of scripts.

/// Error of an invalid script, with its position and the expectation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The text is not TOML, or a key is unknown or has the wrong type.
    #[error("invalid script at line {line}, column {column}: {problem}")]
    Syntax {
        /// Line number, from 1.
        line: usize,
        /// Column number in characters, from 1.
        column: usize,
        /// Found and expected content.
        problem: String,
    },
    /// The script has no turn.
    #[error("script `{script}` has no turn; expected at least one [[turn]]")]
    Empty {
        /// The script's name.
        script: String,
    },
    /// A turn is out of bounds or contradictory.
    #[error("turn {turn} {problem}")]
    Turn {
        /// Number of the turn, from 1, over all dialects.
        turn: usize,
        /// Found and expected content.
        problem: String,
    },
}

impl ScriptError {
    /// Converts position and message of a TOML error. Its type is not part of this crate's API.
    pub(super) fn syntax(error: &toml::de::Error, text: &str) -> Self {
        let offset = error.span().map_or(0, |span| span.start);
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self::Syntax {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).map_or(0, |line| line.chars().count()) + 1,
            problem: error.message().trim_end().replace('\n', "; "),
        }
    }
}
