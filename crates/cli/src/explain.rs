//! What a failed model call or a stopped run means for the person at the terminal: the facts, and what to do.

use pintle_agent::{Outcome, OutcomeStatus};
use pintle_llm::{ErrorInfo, ErrorKind, Retry};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::route::Route;

/// The sentence for an error, with its causes.
pub(crate) fn model_error(error: &ErrorInfo, route: &Route) -> Failure {
    let told: Vec<String> = std::iter::once(error.to_string()).chain(error.causes.iter().cloned()).collect();
    let failure = Failure::new(Exit::of_error(error.kind), told.join(": ")).about(error);
    match advice(error, route) {
        Some(advice) => failure.advise(&advice),
        None => failure,
    }
}

/// The failure that a run's end is, if it is none that the person wanted.
pub(crate) fn outcome(outcome: &Outcome, route: &Route) -> Option<Failure> {
    let exit = Exit::of_outcome(outcome);
    Some(match (outcome.status, &outcome.error) {
        (OutcomeStatus::Completed | OutcomeStatus::AwaitingInput, _) => return None,
        (_, Some(error)) => model_error(error, route),
        (OutcomeStatus::RoundLimit, None) => {
            Failure::new(exit, "the limit of tool rounds is reached").advise("--max-tool-rounds sets it")
        }
        (OutcomeStatus::TurnLimit, None) => {
            Failure::new(exit, "the limit of turns is reached").advise("--max-turns sets it")
        }
        (OutcomeStatus::Budget, None) => Failure::new(exit, "a limit on what may be spent is reached")
            .advise("--max-tokens, --max-cost and --max-time set them"),
        (OutcomeStatus::ContextFull, None) => {
            Failure::new(exit, "the next request is larger than the model's context window, and was not sent")
                .advise("take a model with a larger window, or give the task in smaller parts")
        }
        (OutcomeStatus::Refused, None) => Failure::new(exit, "the model, or a filter before it, refused"),
        // Whoever interrupted it knows, and was told when it was noticed.
        (OutcomeStatus::Interrupted | OutcomeStatus::Aborted, None) => Failure::silent(exit),
        (OutcomeStatus::Failed | _, None) => Failure::new(exit, "the run failed"),
    })
}

fn advice(error: &ErrorInfo, route: &Route) -> Option<String> {
    match error.kind {
        ErrorKind::Authentication => Some(match &route.key {
            Some(key) => format!("check the key in {}", key.variable),
            None => "the server wants a key: set OPENAI_API_KEY".to_owned(),
        }),
        ErrorKind::AccessDenied => {
            let key = route.key.as_ref().map_or("the key", |key| key.variable);
            Some(format!("check that {key} may use the model {}", route.model))
        }
        ErrorKind::NotFound => Some(match &route.base_url {
            Some(url) => {
                format!("check the model {} and the base URL {} ({})", route.model, url.shown(), url.given_by)
            }
            None => format!("check the model {} (--model)", route.model),
        }),
        // Without a provider it was not the way to the model, but that to the place where tools run.
        ErrorKind::Network if error.provider.is_none() => None,
        ErrorKind::Network => Some(match &route.base_url {
            Some(url) => format!("check that a server listens at {} ({})", url.shown(), url.given_by),
            None => "check the connection to the Internet".to_owned(),
        }),
        // Without a status it was a limit of ours.
        ErrorKind::RequestTimeout if error.status.is_none() && error.provider.is_some() => {
            Some("--timeout sets how long a model call is waited for".to_owned())
        }
        // Else the error says how long to wait.
        ErrorKind::RateLimit if error.retry == Retry::After(None) => {
            Some("wait and try again; the provider does not say how long".to_owned())
        }
        ErrorKind::RateLimit => None,
        ErrorKind::ContextLength => Some("ask for less at a time".to_owned()),
        ErrorKind::QuotaExceeded => Some("check the account's plan and limits".to_owned()),
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
        Route::to_script(Provider::OpenAi, "m".to_owned(), url)
    }

    #[test]
    fn an_error_says_what_to_do() {
        let rows = [
            (
                Error::new(ErrorKind::Network, "no connection to 127.0.0.1:9").with_provider("openai"),
                1,
                "network failure (openai): no connection to 127.0.0.1:9; \
                 check that a server listens at http://127.0.0.1:9/v1 (--script)",
            ),
            (
                Error::new(ErrorKind::Authentication, "bad key").with_status(401),
                4,
                "authentication failed (HTTP 401): bad key; check the key in --script",
            ),
            (
                Error::new(ErrorKind::NotFound, "no such model"),
                1,
                "not found: no such model; check the model m and the base URL http://127.0.0.1:9/v1 (--script)",
            ),
            (
                Error::new(ErrorKind::RateLimit, "slow down")
                    .with_retry(Retry::After(Some(Duration::from_secs(86_400)))),
                1,
                "rate limit reached: slow down; retry after 24 h",
            ),
            (
                Error::new(ErrorKind::RateLimit, "slow down"),
                1,
                "rate limit reached: slow down; wait and try again; the provider does not say how long",
            ),
            (Error::new(ErrorKind::Server, "overloaded"), 1, "the provider failed: overloaded"),
            (
                Error::new(ErrorKind::Network, "the place where tools run is lost"),
                1,
                "network failure: the place where tools run is lost",
            ),
        ];
        for (error, code, sentence) in rows {
            let failure = model_error(error.info(), &route());
            assert_eq!((failure.exit().code(), failure.sentence().as_str()), (code, sentence));
        }
    }

    #[test]
    fn an_end_says_what_stopped_it() {
        let rows = [
            (OutcomeStatus::RoundLimit, "the limit of tool rounds is reached; --max-tool-rounds sets it"),
            (OutcomeStatus::TurnLimit, "the limit of turns is reached; --max-turns sets it"),
            (
                OutcomeStatus::Budget,
                "a limit on what may be spent is reached; --max-tokens, --max-cost and --max-time set them",
            ),
            (
                OutcomeStatus::ContextFull,
                "the next request is larger than the model's context window, and was not sent; take a model with a larger window, or give the task in smaller parts",
            ),
            (OutcomeStatus::Refused, "the model, or a filter before it, refused"),
            (OutcomeStatus::Aborted, ""),
            (OutcomeStatus::Failed, "the run failed"),
        ];
        for (status, sentence) in rows {
            let failure = outcome(&Outcome::new(status), &route()).unwrap();
            assert_eq!(failure.sentence(), sentence);
            assert_eq!(failure.exit(), Exit::of_outcome(&Outcome::new(status)));
        }
        assert_eq!(outcome(&Outcome::new(OutcomeStatus::AwaitingInput), &route()), None);
    }
}
