//! Converts failed model calls and unsuccessful outcomes into failures with hints.

use pintle_agent::{Outcome, OutcomeStatus, ReachedBudget};
use pintle_llm::{ErrorInfo, ErrorKind, Retry};

use crate::failure::{Failure, FailureKind};
use crate::limit_sources::LimitSources;
use crate::route::Route;

/// Converts the error of a model call into a failure.
pub fn model_error(error: &ErrorInfo, route: &Route) -> Failure {
    // A gate or hook has ended the run. For a changed file, for example, the message contains the diff.
    if error.kind == ErrorKind::InvalidToolCall && error.provider.is_none() {
        return Failure::multi_line(error_kind(error.kind), &error.message).with_info(error);
    }
    let messages: Vec<String> =
        std::iter::once(error.to_string()).chain(error.causes.iter().cloned()).collect();
    let failure = Failure::new(error_kind(error.kind), messages.join(": ")).with_info(error);
    match hint(error, route) {
        Some(hint) => failure.with_hint(&hint),
        None => failure,
    }
}

/// Converts the outcome of a run into a failure, unless it was successful. `reached` is the limit of the budget that ended the
/// run, and a hint names its source.
pub fn outcome(
    outcome: &Outcome,
    route: &Route,
    sources: &LimitSources,
    reached: Option<ReachedBudget>,
) -> Option<Failure> {
    let kind = outcome_kind(outcome)?;
    Some(match (outcome.status, &outcome.error) {
        (_, Some(error)) => model_error(error, route).with_kind(kind),
        (OutcomeStatus::RoundLimit, None) => {
            Failure::new(kind, "tool round limit reached").with_hint(&sources.round_hint())
        }
        (OutcomeStatus::TurnLimit, None) => {
            Failure::new(kind, "turn limit reached").with_hint(&sources.turn_hint())
        }
        (OutcomeStatus::Budget, None) => {
            Failure::new(kind, "budget exhausted").with_hint(&sources.budget_hint(reached))
        }
        (OutcomeStatus::ContextFull, None) => {
            Failure::new(kind, "the next request exceeds the model's context window and was not sent")
                .with_hint("use a model with a larger window, or split the task")
        }
        (OutcomeStatus::OutputLimit, None) => {
            Failure::new(kind, "the response was cut off by the output limit of the model")
                .with_hint("ask for a shorter answer, or for one in parts")
        }
        (OutcomeStatus::Refused, None) => {
            Failure::new(kind, "the model or a content filter refused the request")
        }
        // The user has already been notified.
        (OutcomeStatus::Interrupted | OutcomeStatus::Aborted, None) => Failure::silent(kind),
        (OutcomeStatus::Failed | _, None) => Failure::new(kind, "the run failed"),
    })
}

/// Returns the kind of failure of an outcome; `None` if it is successful.
fn outcome_kind(outcome: &Outcome) -> Option<FailureKind> {
    match outcome.status {
        OutcomeStatus::Completed | OutcomeStatus::AwaitingInput => None,
        OutcomeStatus::RoundLimit
        | OutcomeStatus::TurnLimit
        | OutcomeStatus::Budget
        | OutcomeStatus::ContextFull
        | OutcomeStatus::OutputLimit => Some(FailureKind::LimitReached),
        OutcomeStatus::Interrupted | OutcomeStatus::Aborted => Some(FailureKind::Interrupted),
        OutcomeStatus::Failed => {
            Some(outcome.error.as_ref().map_or(FailureKind::Other, |error| error_kind(error.kind)))
        }
        // Treat a status unknown to this version as a failure.
        OutcomeStatus::Refused | _ => Some(FailureKind::Other),
    }
}

/// Returns the kind of failure of a failed model call.
fn error_kind(kind: ErrorKind) -> FailureKind {
    match kind {
        ErrorKind::Authentication | ErrorKind::AccessDenied => FailureKind::Credentials,
        ErrorKind::Abort => FailureKind::Interrupted,
        ErrorKind::ContextLength => FailureKind::LimitReached,
        ErrorKind::NotFound
        | ErrorKind::InvalidRequest
        | ErrorKind::RateLimit
        | ErrorKind::Server
        | ErrorKind::ContentFilter
        | ErrorKind::QuotaExceeded
        | ErrorKind::RequestTimeout
        | ErrorKind::Network
        | ErrorKind::Stream
        | ErrorKind::InvalidToolCall
        | ErrorKind::UnsupportedToolChoice
        | ErrorKind::NoObjectGenerated
        | ErrorKind::Configuration
        | _ => FailureKind::Other,
    }
}

fn hint(error: &ErrorInfo, route: &Route) -> Option<String> {
    match error.kind {
        ErrorKind::Authentication => Some(match &route.key {
            Some(key) => format!("check the key in {}", key.source),
            None => "the server requires a key: set OPENAI_API_KEY, or `pintle login openai-compatible`"
                .to_owned(),
        }),
        ErrorKind::AccessDenied => {
            let key = route.key.as_ref().map_or("the key", |key| key.source);
            Some(format!("check that {key} has access to the model {}", route.model))
        }
        ErrorKind::NotFound => Some(match &route.base_url {
            Some(url) => {
                format!(
                    "check the model {} and the base URL {} ({})",
                    route.model,
                    url.redacted(),
                    url.source
                )
            }
            None => format!("check the model {} (--model)", route.model),
        }),
        // Without a provider, the connection to the execution environment failed.
        ErrorKind::Network if error.provider.is_none() => None,
        ErrorKind::Network => Some(match &route.base_url {
            Some(url) => format!("check that a server is listening at {} ({})", url.redacted(), url.source),
            None => "check the network connection".to_owned(),
        }),
        // Without a status, a local limit expired.
        ErrorKind::RequestTimeout if error.status.is_none() && error.provider.is_some() => {
            Some("raise the limit with --timeout".to_owned())
        }
        // With a delay, the error message already contains the time to wait.
        ErrorKind::RateLimit if error.retry == Retry::After(None) => Some("try again later".to_owned()),
        ErrorKind::RateLimit => None,
        ErrorKind::ContextLength => Some("shorten the prompt or split the task".to_owned()),
        ErrorKind::QuotaExceeded => Some("check the plan and limits of the account".to_owned()),
        ErrorKind::InvalidRequest
        | ErrorKind::Server
        | ErrorKind::ContentFilter
        | ErrorKind::RequestTimeout
        | ErrorKind::Abort
        | ErrorKind::Stream
        | ErrorKind::InvalidToolCall
        | ErrorKind::UnsupportedToolChoice
        | ErrorKind::NoObjectGenerated
        | ErrorKind::Configuration
        | _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pintle_llm::Error;

    use super::*;
    use crate::provider::Provider;

    fn route() -> Route {
        let url = "http://user:secret@127.0.0.1:9/v1".to_owned();
        Route::scripted(Provider::OpenAi, "m".to_owned(), url)
    }

    #[test]
    fn model_errors_have_hints() {
        let cases = [
            (
                Error::new(ErrorKind::Network, "no connection to 127.0.0.1:9").with_provider("openai"),
                FailureKind::Other,
                "network failure (openai): no connection to 127.0.0.1:9; \
                 check that a server is listening at http://127.0.0.1:9/v1 (--script)",
            ),
            (
                Error::new(ErrorKind::Authentication, "bad key").with_status(401),
                FailureKind::Credentials,
                "authentication failed (HTTP 401): bad key; check the key in --script",
            ),
            (
                Error::new(ErrorKind::NotFound, "no such model"),
                FailureKind::Other,
                "not found: no such model; check the model m and the base URL http://127.0.0.1:9/v1 (--script)",
            ),
            (
                Error::new(ErrorKind::RateLimit, "slow down")
                    .with_retry(Retry::After(Some(Duration::from_secs(86_400)))),
                FailureKind::Other,
                "rate limit reached: slow down; retry after 24 h",
            ),
            (
                Error::new(ErrorKind::RateLimit, "slow down"),
                FailureKind::Other,
                "rate limit reached: slow down; try again later",
            ),
            (
                Error::new(ErrorKind::Server, "overloaded"),
                FailureKind::Other,
                "the provider failed: overloaded",
            ),
            (
                Error::new(ErrorKind::Network, "the execution environment is lost"),
                FailureKind::Other,
                "network failure: the execution environment is lost",
            ),
        ];
        for (error, kind, sentence) in cases {
            let failure = model_error(error.info(), &route());
            assert_eq!((failure.kind(), failure.message().as_str()), (kind, sentence));
        }
    }

    fn of_run(run: &Outcome) -> Option<Failure> {
        outcome(run, &route(), &LimitSources::default(), None)
    }

    #[test]
    fn unsuccessful_outcomes_become_failures() {
        let cases = [
            (
                OutcomeStatus::RoundLimit,
                FailureKind::LimitReached,
                "tool round limit reached; raise it with --max-tool-rounds",
            ),
            (
                OutcomeStatus::TurnLimit,
                FailureKind::LimitReached,
                "turn limit reached; raise it with --max-turns",
            ),
            (
                OutcomeStatus::Budget,
                FailureKind::LimitReached,
                "budget exhausted; raise it with --max-tokens, --max-cost, --max-calls, --max-time or --budget",
            ),
            (
                OutcomeStatus::ContextFull,
                FailureKind::LimitReached,
                "the next request exceeds the model's context window and was not sent; use a model with a larger window, or split the task",
            ),
            (
                OutcomeStatus::OutputLimit,
                FailureKind::LimitReached,
                "the response was cut off by the output limit of the model; ask for a shorter answer, or for one in parts",
            ),
            (OutcomeStatus::Refused, FailureKind::Other, "the model or a content filter refused the request"),
            (OutcomeStatus::Interrupted, FailureKind::Interrupted, ""),
            (OutcomeStatus::Aborted, FailureKind::Interrupted, ""),
            (OutcomeStatus::Failed, FailureKind::Other, "the run failed"),
        ];
        for (status, kind, sentence) in cases {
            let failure = of_run(&Outcome::new(status)).unwrap();
            assert_eq!((failure.kind(), failure.message().as_str()), (kind, sentence), "{status:?}");
        }
        for status in [OutcomeStatus::Completed, OutcomeStatus::AwaitingInput] {
            assert_eq!(of_run(&Outcome::new(status)), None);
        }
        // The provider may have refused the request.
        let error = Error::new(ErrorKind::ContextLength, "too long").with_status(400);
        for status in [OutcomeStatus::ContextFull, OutcomeStatus::Failed] {
            let mut full = Outcome::new(status);
            full.error = Some(error.info().clone());
            assert_eq!(of_run(&full).unwrap().kind(), FailureKind::LimitReached, "{status:?}");
        }
        assert_eq!(model_error(error.info(), &route()).kind(), FailureKind::LimitReached);
    }

    #[test]
    fn failed_runs_have_the_kind_of_their_error() {
        let cases = [
            (ErrorKind::Authentication, FailureKind::Credentials),
            (ErrorKind::AccessDenied, FailureKind::Credentials),
            (ErrorKind::Abort, FailureKind::Interrupted),
            (ErrorKind::ContextLength, FailureKind::LimitReached),
            (ErrorKind::Network, FailureKind::Other),
            (ErrorKind::InvalidRequest, FailureKind::Other),
            (ErrorKind::Configuration, FailureKind::Other),
        ];
        for (error, kind) in cases {
            let mut failed = Outcome::new(OutcomeStatus::Failed);
            failed.error = Some(Error::new(error, "x").info().clone());
            assert_eq!(of_run(&failed).unwrap().kind(), kind, "{error:?}");
        }
    }
}
