//! What has been spent, in this session and below it.

use serde::{Deserialize, Serialize};

/// What was spent on the way to an answer: tokens, money, and calls of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Spent {
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// Millionths of a US dollar; `None` as soon as the price of any call is unknown.
    pub cost_micros: Option<u64>,
    /// Calls of tools.
    pub tool_calls: u64,
}

impl Default for Spent {
    /// Nothing, which costs nothing.
    fn default() -> Self {
        Self { input_tokens: 0, output_tokens: 0, cost_micros: Some(0), tool_calls: 0 }
    }
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, more: Self) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.cost_micros =
            self.cost_micros.zip(more.cost_micros).map(|(ours, theirs)| ours.saturating_add(theirs));
        self.tool_calls = self.tool_calls.saturating_add(more.tool_calls);
    }
}
