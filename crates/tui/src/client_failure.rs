//! Failed requests to a server.

use pintle_client::ClientError;
use pintle_host::failure::Failure;

/// Returns a failed request as a failure with its remedy.
pub fn explain(error: &ClientError) -> Failure {
    match (error, error.code()) {
        (ClientError::InvalidUrl { .. } | ClientError::InvalidHeader(_), _) => {
            Failure::usage(error.to_string()).with_hint("expected the line that `pintle serve` prints")
        }
        (_, Some("unauthorized")) => Failure::failed("the server refused the token").caused_by(error).with_hint(
            "the token that `pintle serve` prints is a new one at every start; one of `pintle tokens` stays",
        ),
        (_, Some("not_found" | "invalid")) => Failure::usage(error.to_string()),
        _ => Failure::failed("the server cannot be asked").caused_by(error),
    }
}
