//! Result of a run.

use pintle_llm::{ErrorInfo, Money, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of a run.
///
/// A [`Run`](crate::Run) returns an outcome if it ended without failing. The outcome of a failed run is part of its
/// [`RunError`](crate::RunError): it has the status [`Failed`](OutcomeStatus::Failed) or
/// [`Aborted`](OutcomeStatus::Aborted), and the text and usage up to the failure, as events and replays report them.
///
/// ```
/// use pintle_agent::{OutcomeStatus, ProviderProfile, Session};
/// # use pintle_llm::{Client, testing::FakeAdapter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let client = Client::builder().provider(FakeAdapter::new("anthropic").answer("It is a parser.")).build()?;
/// # let env = pintle_env::MemoryEnvironment::new("/project");
/// # let session = Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), env).build()?;
/// let outcome = session.submit("What does this program do?").await?;
/// let answer = match outcome.status {
///     OutcomeStatus::Completed => outcome.text,
///     // The next input answers the question in `text`.
///     OutcomeStatus::AwaitingInput => format!("Please answer: {}", outcome.text),
///     // Limits, an interrupt and a refusal are no errors: the session stays usable.
///     ended => format!("{ended:?} after {} model calls", outcome.model_calls),
/// };
/// assert_eq!(answer, "It is a parser.");
/// assert!(outcome.cost.is_some(), "the price of this model is known");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outcome {
    /// How the run ended.
    pub status: OutcomeStatus,
    /// Reason why the result of a completed run may be incomplete, such as an empty final response. `None` if it is
    /// complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Text of the last model response, or the question that the model asked with a tool; empty if there was none. Includes
    /// the earlier parts of a response that was continued after the output limit cut it off.
    pub text: String,
    /// Tokens of all model calls of the run.
    pub usage: Usage,
    /// Cost of the run, including the spending of subagents meanwhile; `None` if a price is unknown, or was in an earlier run of
    /// the session.
    #[serde(default, rename = "cost_micros", skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// Number of model calls.
    pub model_calls: u64,
    /// Number of tool calls.
    pub tool_calls: u64,
    /// Error that ended the run, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// Reason why the input did not start a run.
    #[serde(skip)]
    pub(crate) rejection: Option<Rejection>,
}

/// Reason why an input did not start a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// Another run is in progress.
    Busy,
    /// The session is closed.
    Closed,
    /// The input is invalid, or a hook refused it.
    Input,
}

impl Outcome {
    /// Creates an outcome with this status, no text and no usage.
    #[must_use]
    pub fn new(status: OutcomeStatus) -> Self {
        Self {
            status,
            text: String::new(),
            usage: Usage::default(),
            cost: Some(Money::ZERO),
            model_calls: 0,
            tool_calls: 0,
            error: None,
            rejection: None,
            warning: None,
        }
    }

    /// Adds the usage, the cost and the calls of an earlier run. Status, text and error of this run stay unchanged.
    ///
    /// For an embedding application that answers a question with the next input and reports both runs as one.
    #[must_use]
    pub fn continuing(mut self, earlier: &Self) -> Self {
        self.usage += &earlier.usage;
        self.cost = self.cost.zip(earlier.cost).map(|(cost, earlier)| cost + earlier);
        self.model_calls = self.model_calls.saturating_add(earlier.model_calls);
        self.tool_calls = self.tool_calls.saturating_add(earlier.tool_calls);
        self
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutcomeStatus {
    /// The model answered without calling tools.
    Completed,
    /// The model asked a question; the next input answers it.
    AwaitingInput,
    /// The model, or a content filter, refused.
    Refused,
    /// The limit on tool rounds for one input was reached.
    RoundLimit,
    /// The limit on assistant turns of the session was reached.
    TurnLimit,
    /// A limit of the budget was reached. The session stays usable; raise the limit to continue.
    Budget,
    /// The next request cannot fit the model's context window. The session stays usable with a model that has a larger
    /// window, or from a fork at an earlier turn.
    ContextFull,
    /// The output limit cut off the response, and its continuations as well. The text of the outcome has the parts that arrived.
    OutputLimit,
    /// Interrupted by the embedding application; the session stays usable.
    Interrupted,
    /// Aborted by the embedding application; the session is closed. Only in events and in the error of a run.
    Aborted,
    /// Ended by an error. Only in events and in the error of a run.
    Failed,
}

impl OutcomeStatus {
    /// Returns `true` if the run completed its input, which only [`Completed`](Self::Completed) means. A question, a
    /// refusal, a reached limit, an interrupt and an error are not a success.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::Completed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_completed_run_is_a_success() {
        let cases = [
            (OutcomeStatus::Completed, true),
            (OutcomeStatus::AwaitingInput, false),
            (OutcomeStatus::Refused, false),
            (OutcomeStatus::RoundLimit, false),
            (OutcomeStatus::TurnLimit, false),
            (OutcomeStatus::Budget, false),
            (OutcomeStatus::ContextFull, false),
            (OutcomeStatus::OutputLimit, false),
            (OutcomeStatus::Interrupted, false),
            (OutcomeStatus::Aborted, false),
            (OutcomeStatus::Failed, false),
        ];
        for (status, expected) in cases {
            assert_eq!(status.is_success(), expected, "{status:?}");
        }
    }

    #[test]
    fn continuing_adds_usage_and_keeps_the_later_status() {
        let run = |status, text: &str, calls: u64| Outcome {
            status,
            text: text.to_owned(),
            usage: Usage::new(10 * calls, calls),
            cost: Some(Money::from_micros(calls)),
            model_calls: calls,
            tool_calls: calls - 1,
            error: None,
            rejection: None,
            warning: None,
        };
        let question = run(OutcomeStatus::AwaitingInput, "Which port?", 3);
        let both = run(OutcomeStatus::Completed, "Done.", 1).continuing(&question);
        let expected = Outcome { tool_calls: 2, ..run(OutcomeStatus::Completed, "Done.", 4) };
        assert_eq!(both, expected);
    }
}
