//! Runs whose final answer has a type.

use pintle_llm::{AnswerSchema, Verdict};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::Session;
use crate::error::RunError;
use crate::protocol::{Outcome, OutcomeStatus, UserMessage};

/// Limit on the requests to repair an answer.
const MAX_REPAIRS: u32 = 3;

/// Answer of a [typed run](Session::run_typed).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TypedOutcome<T> {
    /// The answer.
    pub value: T,
    /// Outcome of the run. The usage and the calls include the repairs, and the text is the last answer.
    pub outcome: Outcome,
}

impl Session {
    /// Submits an input and returns the final answer as a value. Doc comments of the type's fields describe them to the model.
    ///
    /// The message contains the schema of the type, and a provider that can enforce a schema beside tools gets it in the
    /// request as well. An answer that does not match is sent back with its problem at most three times.
    ///
    /// Dropping the future interrupts the run.
    ///
    /// ```
    /// use pintle_agent::{ProviderProfile, Session};
    /// # use pintle_llm::{Client, testing::FakeAdapter};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Verdict {
    ///     /// Whether all tests pass.
    ///     passed: bool,
    ///     /// Number of tests.
    ///     tests: u32,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let adapter = FakeAdapter::new("anthropic").answer(r#"{"passed": true, "tests": 12}"#);
    /// # let client = Client::builder().provider(adapter).build()?;
    /// # let env = pintle_env::MemoryEnvironment::new("/project");
    /// let session = Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), env).build()?;
    /// let verdict = session.run_typed::<Verdict>("Run the tests.").await?.value;
    /// assert_eq!((verdict.passed, verdict.tests), (true, 12));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for a [`Run`](crate::Run); [`RunError::NoAnswer`] if the run ends at a limit, by an interrupt or with a refusal;
    /// [`RunError::Unmatched`] if no answer matches the type; [`RunError::Schema`] before anything is sent if the type has no
    /// usable schema.
    pub async fn run_typed<T>(&self, message: impl Into<UserMessage>) -> Result<TypedOutcome<T>, RunError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let mut answers = AnswerSchema::for_type::<T>(MAX_REPAIRS).map_err(RunError::Schema)?;
        let format = answers.response_format();
        let mut message = message.into();
        message.text = format!("{}\n\n{}", message.text, answers.instructions());
        message.format.clone_from(&format);
        let mut outcome = self.submit(message).await?;
        loop {
            if !matches!(outcome.status, OutcomeStatus::Completed | OutcomeStatus::AwaitingInput) {
                return Err(RunError::NoAnswer { outcome: Box::new(outcome) });
            }
            match answers.check_as(&outcome.text) {
                Verdict::Accept(value) => return Ok(TypedOutcome { value, outcome }),
                Verdict::Fail(source) => {
                    return Err(RunError::Unmatched { source, outcome: Box::new(outcome) });
                }
                Verdict::AskAgain(repair) => {
                    let mut repair = UserMessage::from(repair);
                    repair.format.clone_from(&format);
                    outcome = self.submit(repair).await?.continuing(&outcome);
                }
            }
        }
    }
}
