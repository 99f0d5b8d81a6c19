//! Replacement of the application's secrets in an input, before it has any consequences.

use pintle_env::{Output, OutputLimits, Redactions};
use pintle_tools::pipeline::Execution;
use serde_json::Value;

use crate::protocol::{HookAdditions, InputKind, Preparation, UserMessage};

/// Replaces an output that cannot be read and therefore cannot be searched for secrets.
const UNREADABLE: &str = include_str!("../../prompts/unreadable.md").trim_ascii_end();

/// Replaces the secrets in texts of users and hosts. Results of calls are redacted at their source.
pub(super) fn redact_input(redactions: &Redactions, kind: &mut InputKind) {
    if redactions.is_empty() {
        return;
    }
    if let InputKind::Submit { message: UserMessage { text, .. }, .. }
    | InputKind::Steer { message: UserMessage { text, .. } }
    | InputKind::FollowUp { message: UserMessage { text, .. } }
    | InputKind::ApprovalDecided { reason: Some(text), .. }
    | InputKind::CallPrepared { preparation: Preparation::Refused { message: text, .. }, .. } = kind
    {
        redact_text(redactions, text);
    }
    if let InputKind::CallPrepared { additions: HookAdditions { context, stop }, .. } = kind {
        for text in [context, stop].into_iter().flatten() {
            redact_text(redactions, text);
        }
    }
    if let InputKind::CallPrepared { judgement, .. } | InputKind::CallJudged { judgement, .. } = kind {
        for step in judgement.steps_mut() {
            redact_text(redactions, &mut step.reason);
        }
    }
}

/// Replaces the secrets in the result of a call. A spooled output is read on a separate thread.
pub(super) async fn redact_execution(
    redactions: &Redactions,
    mut execution: Execution,
    limits: OutputLimits,
) -> Execution {
    if redactions.is_empty() {
        return execution;
    }
    redact_value(redactions, &mut execution.result.content);
    for text in [&mut execution.question, &mut execution.stop].into_iter().flatten() {
        redact_text(redactions, text);
    }
    for change in &mut execution.changes {
        redact_text(redactions, &mut change.diff);
    }
    if let Some(output) = redacted_output(redactions, &execution.output, limits).await {
        execution.output = output;
    }
    execution
}

/// Replaces the secrets in a text.
pub(super) fn redact_text(redactions: &Redactions, text: &mut String) {
    if let std::borrow::Cow::Owned(redacted) = redactions.text(text) {
        *text = redacted;
    }
}

fn redact_value(redactions: &Redactions, value: &mut Value) {
    match value {
        Value::String(text) => redact_text(redactions, text),
        Value::Array(values) => values.iter_mut().for_each(|value| redact_value(redactions, value)),
        Value::Object(members) => members.values_mut().for_each(|value| redact_value(redactions, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

async fn redacted_output(redactions: &Redactions, output: &Output, limits: OutputLimits) -> Option<Output> {
    let redacted = if output.is_spooled() {
        let (redactions, output) = (redactions.clone(), output.clone());
        let redacting = tokio::task::spawn_blocking(move || redactions.output(&output, limits));
        redacting.await.unwrap_or_else(|failed| Err(std::io::Error::other(failed)))
    } else {
        redactions.output(output, limits)
    };
    redacted.unwrap_or_else(|error| {
        tracing::warn!(%error, "an output cannot be searched for secrets");
        Some(Output::from(UNREADABLE))
    })
}
