//! Scripts: model turns with expectations on the requests.

mod call;
mod error;
mod expectation;
mod failure;
mod turn;
mod variant;

#[cfg(test)]
mod tests;

use serde::Deserialize;

pub use call::{Call, CallInput};
pub use error::ScriptError;
pub use expectation::Expectation;
pub use failure::{ErrorEvent, Failure, FailureKind};
pub use turn::{Finish, Turn};
pub use variant::TurnVariant;

use crate::dialect::Dialect;

/// A scripted model: its turns in order.
///
/// A script is usually a TOML file ([`Script::parse`]); tests may also build one in code.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Script {
    /// Name for error messages.
    pub name: String,
    /// Default dialect for a command. The server speaks all four regardless.
    #[serde(default)]
    pub dialect: Option<Dialect>,
    /// The only accepted model; any model if absent.
    #[serde(default)]
    pub model: Option<String>,
    /// Turns for all dialects; [`Script::turns_for`] selects the turns of one.
    #[serde(default, rename = "turn")]
    pub turns: Vec<Turn>,
}

impl Script {
    /// Creates a script without turns; add them with [`Script::with_turn`].
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), dialect: None, model: None, turns: Vec::new() }
    }

    /// Parses a script from TOML and validates it.
    ///
    /// # Errors
    ///
    /// [`ScriptError::Syntax`] with line and column if the text is not TOML or has an unknown or wrongly typed key, and the
    /// errors of [`Script::validate`].
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let script: Self = toml::from_str(text).map_err(|error| ScriptError::syntax(&error, text))?;
        script.validate()?;
        Ok(script)
    }

    /// Appends a turn.
    #[must_use]
    pub fn with_turn(mut self, turn: Turn) -> Self {
        self.turns.push(turn);
        self
    }

    /// Sets the only accepted model.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Checks that every turn has content, is within limits and is supported by its dialects.
    ///
    /// # Errors
    ///
    /// [`ScriptError::Empty`] without turns, [`ScriptError::Turn`] for the first invalid turn.
    pub fn validate(&self) -> Result<(), ScriptError> {
        if self.turns.is_empty() {
            return Err(ScriptError::Empty { script: self.name.clone() });
        }
        for (index, turn) in self.turns.iter().enumerate() {
            turn.validate().map_err(|problem| ScriptError::Turn { turn: index + 1, problem })?;
        }
        for dialect in Dialect::ALL {
            self.validate_call_indices(dialect)?;
        }
        Ok(())
    }

    /// Returns the turns of one dialect, in order.
    pub fn turns_for(&self, dialect: Dialect) -> impl Iterator<Item = &Turn> {
        self.turns.iter().filter(move |turn| turn.is_for(dialect))
    }

    /// Checks that the calls that expectations refer to exist in the preceding turn of each dialect.
    fn validate_call_indices(&self, dialect: Dialect) -> Result<(), ScriptError> {
        let mut calls_before = 0;
        for (index, turn) in self.turns.iter().enumerate().filter(|(_, turn)| turn.is_for(dialect)) {
            let unknown =
                turn.expectations.iter().filter_map(Expectation::call).find(|call| *call >= calls_before);
            if let Some(call) = unknown {
                let problem = format!(
                    "expects a result of call {call}, but the turn before it in dialect {dialect} makes {calls_before} calls"
                );
                return Err(ScriptError::Turn { turn: index + 1, problem });
            }
            calls_before = turn.calls.len();
        }
        Ok(())
    }
}
