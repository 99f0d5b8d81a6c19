//! What can be wrong with a script.

/// A script that cannot be used, with the place and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The text is not TOML, or a key is unknown or has the wrong type.
    #[error("script is wrong at line {line}, column {column}: {problem}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What was found and what was expected.
        problem: String,
    },
    /// The script has no turn.
    #[error("script `{script}` has no turn; expected at least one [[turn]]")]
    Empty {
        /// The script's name.
        script: String,
    },
    /// A turn is out of bounds or contradicts itself.
    #[error("turn {turn} {problem}")]
    Turn {
        /// The turn, from 1, counted over all dialects.
        turn: usize,
        /// What was found and what was expected.
        problem: String,
    },
}

impl ScriptError {
    /// Keeps position and message of a TOML error, and not its type: the parser is no part of this crate's API.
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
