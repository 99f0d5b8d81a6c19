//! Runs of a session up to the final answer of the model, which may have to match a schema.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use pintle_agent::{Outcome, OutcomeStatus, Run, RunError, Session, Turn, TurnKind, TurnLimits, UserMessage};
use pintle_llm::{AnswerSchema, UnmatchedAnswer, Verdict};
use serde_json::Value;

/// Times that a model may repair its answer.
pub const REPAIRS: u32 = 3;

/// Input of a run.
#[derive(Debug)]
pub struct RunInput {
    /// Prompt of the user. `None` only continues the unfinished run.
    pub prompt: Option<UserMessage>,
    /// Run that an earlier process left unfinished.
    pub unfinished: Option<Run>,
    /// Turn limits of the session.
    pub limits: TurnLimits,
    /// Schema of the final answer.
    pub answers: Option<AnswerSchema>,
}

/// User who answers the questions that end the runs of a model.
#[async_trait]
pub trait RunUser: Send + Sync {
    /// Answers the question at the end of a run. Runs are counted from 1. Returns `None` if there is no answer. Dropping the
    /// future withdraws the question.
    async fn answer(&self, run: u64, question: &str) -> Option<String>;
}

/// Outcome of a run, also of a failed one. If a schema applies, it contains the answer or the mismatch.
#[derive(Debug)]
#[non_exhaustive]
pub struct AnsweredRun {
    /// The outcome.
    pub outcome: Outcome,
    /// The answer, if it had to match a schema and does.
    pub answer: Option<Value>,
    /// Reason why the answer cannot be used.
    pub unmatched: Option<UnmatchedAnswer>,
}

impl From<Outcome> for AnsweredRun {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, answer: None, unmatched: None }
    }
}

/// Submits the prompt, then the user's answer to each question of the model. The session counts each answer as a separate
/// run, but the user sees one run. The outcome and the limits therefore cover all of them. Without a user, a question ends
/// the run.
///
/// Dropping the future interrupts the run.
///
/// # Errors
///
/// A [`RunError`] without an outcome: the session has ended, or does not accept a command.
pub async fn run_until_answered(
    session: &Session,
    input: RunInput,
    user: Option<&dyn RunUser>,
) -> Result<AnsweredRun, RunError> {
    let started = Instant::now();
    let RunInput { prompt, unfinished, limits, mut answers } = input;
    let prompt = prompt.map(|prompt| with_instructions(prompt, answers.as_ref()));
    let mut outcome = start(session, prompt, unfinished).await?;
    for run in 1_u64.. {
        let asked = user.filter(|_| outcome.status == OutcomeStatus::AwaitingInput);
        if let Some(answers) = answers.as_mut().filter(|_| asked.is_none() && has_answer(&outcome)) {
            match answers.check(&outcome.text) {
                Verdict::Accept(value) => {
                    // Drop the text that the model puts around the value.
                    outcome.text = value.to_string();
                    outcome.status = OutcomeStatus::Completed;
                    return Ok(AnsweredRun { answer: Some(value), ..AnsweredRun::from(outcome) });
                }
                Verdict::Fail(unmatched) => {
                    return Ok(AnsweredRun { unmatched: Some(unmatched), ..AnsweredRun::from(outcome) });
                }
                Verdict::AskAgain(message) => {
                    let Some(limits) = remaining_limits(&limits, session, started.elapsed()) else {
                        outcome.status = OutcomeStatus::RoundLimit;
                        break;
                    };
                    session.handle().set_limits(limits)?;
                    outcome = reported(session.submit(message)).await?.continuing(&outcome);
                    continue;
                }
            }
        }
        let Some(user) = asked else { break };
        let Some(limits) = remaining_limits(&limits, session, started.elapsed()) else {
            // No rounds are left in which to use an answer.
            outcome.status = OutcomeStatus::RoundLimit;
            break;
        };
        let Some(answer) = user.answer(run, &outcome.text).await else { break };
        session.handle().set_limits(limits)?;
        outcome = reported(session.submit(answer)).await?.continuing(&outcome);
    }
    Ok(AnsweredRun::from(outcome))
}

/// Appends the instructions of a schema to a prompt.
fn with_instructions(mut prompt: UserMessage, answers: Option<&AnswerSchema>) -> UserMessage {
    if let Some(answers) = answers {
        prompt.text = format!("{}\n\n{}", prompt.text, answers.instructions());
    }
    prompt
}

/// Runs the prompt. Finishes the unfinished run first.
async fn start(
    session: &Session,
    prompt: Option<UserMessage>,
    unfinished: Option<Run>,
) -> Result<Outcome, RunError> {
    match (unfinished, prompt) {
        (Some(run), prompt) => {
            // The new prompt runs after the unfinished run ends.
            if let Some(prompt) = prompt {
                session.handle().follow_up(prompt).await?;
            }
            reported(run).await
        }
        (None, prompt) => reported(session.submit(prompt.unwrap_or_else(|| String::new().into()))).await,
    }
}

/// Returns the outcome of a run, also of a failed one.
async fn reported(run: Run) -> Result<Outcome, RunError> {
    run.await.or_else(RunError::into_outcome)
}

/// Returns whether the model has ended the run, with an answer or a question.
fn has_answer(outcome: &Outcome) -> bool {
    matches!(outcome.status, OutcomeStatus::Completed | OutcomeStatus::AwaitingInput)
}

/// Returns the limits less the tool rounds and time already used, or `None` if no rounds are left. The session counts
/// both per input, and all other limits from its start.
fn remaining_limits(limits: &TurnLimits, session: &Session, elapsed: Duration) -> Option<TurnLimits> {
    let mut remaining = limits.clone();
    remaining.budget.wall_time = limits.budget.wall_time.map(|limit| limit.saturating_sub(elapsed));
    if limits.max_tool_rounds_per_input > 0 {
        let is_round = |turn: &Turn| turn.kind == TurnKind::ToolResults;
        let rounds = session.history().iter().filter(|turn| is_round(turn)).count() as u64;
        let left = limits.max_tool_rounds_per_input.saturating_sub(rounds);
        remaining.max_tool_rounds_per_input = Some(left).filter(|left| *left > 0)?;
    }
    Some(remaining)
}
