//! Classification of provider errors (client specification, sections 6.4 and 6.5): one table for all dialects.
//!
//! `docs/reference/errors.md` lists real error responses and their classification; a test sends each of its rows.

use std::borrow::Cow;

use pintle_llm::{Error, ErrorKind, Retry};
use serde_json::Value;

use crate::envelope::{self, Upstream};
use crate::overflow;
use crate::refused_reasoning;
use crate::retry_after;

/// Maximum number of bytes of an error body that are read and kept.
pub(crate) const MAX_ERROR_BODY: usize = 64 * 1024;

/// Maximum length of a message, in characters.
const MAX_MESSAGE: usize = 2_000;

/// A provider error, parsed by its dialect.
///
/// The driver adds the request id and `Retry-After` from the headers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Failure<'a> {
    pub(crate) provider: &'a str,
    /// HTTP status; `None` for an error in a stream without one.
    pub(crate) status: Option<u16>,
    /// The provider's most precise error code (`code` before `type`).
    pub(crate) code: Option<&'a str>,
    /// The provider's message.
    pub(crate) message: Option<&'a str>,
    /// The raw body.
    pub(crate) body: &'a [u8],
}

impl Failure<'_> {
    /// Converts it to an error. The reason of a provider inside the envelope of an aggregator is classified, too.
    pub(crate) fn into_error(self) -> Error {
        let Some(upstream) = envelope::upstream(self.body) else { return self.classified() };
        let Upstream { code, .. } = &upstream;
        let message = upstream.explain(self.message);
        let code = code.as_deref().filter(|code| is_known(code)).or(self.code);
        Failure { code, message: Some(&message), ..self }.classified()
    }

    fn classified(self) -> Error {
        let refuses_reasoning = self.refuses_reasoning();
        let kind = if refuses_reasoning { ErrorKind::InvalidRequest } else { self.kind() };
        let mut error = Error::new(kind, self.text()).with_provider(self.provider);
        if refuses_reasoning {
            error = error.with_refused_reasoning();
        } else if kind == ErrorKind::InvalidRequest && self.is_unknown() {
            error = error.with_retry(Retry::After(None));
        }
        if error.retry() == Retry::After(None)
            && let Some(delay) = self.message.and_then(retry_after::from_message)
        {
            error = error.with_retry(Retry::After(Some(delay)));
        }
        if let Some(status) = self.status {
            error = error.with_status(status);
        }
        if let Some(code) = self.code {
            error = error.with_error_code(code);
        }
        match raw(self.body) {
            Some(raw) => error.with_raw(raw),
            None => error,
        }
    }

    fn kind(&self) -> ErrorKind {
        let kind = self.kind_by_message();
        let is_open =
            self.message.is_none() && matches!(kind, ErrorKind::InvalidRequest | ErrorKind::RateLimit);
        if is_open && is_too_long(&self.explanation()) { ErrorKind::ContextLength } else { kind }
    }

    /// Returns whether the server refuses the reasoning of earlier responses. Gateways may report it with the status of a
    /// server error; the same request fails again then.
    fn refuses_reasoning(&self) -> bool {
        use ErrorKind::{InvalidRequest, Server};
        if self.code == Some(refused_reasoning::CODE) {
            return true;
        }
        let may = |status| matches!(ErrorKind::from_status(status), InvalidRequest | Server);
        if !self.status.is_none_or(may) {
            return false;
        }
        let Some(form) = refused_reasoning::form_of(&self.explanation()) else { return false };
        tracing::debug!(
            servers = form.servers,
            source = form.source,
            "the message means that reasoning is refused"
        );
        true
    }

    /// Returns the message in lower case. A server with the errors of another dialect has it elsewhere in the body.
    fn explanation(&self) -> String {
        let body = self.body.get(..MAX_ERROR_BODY).unwrap_or(self.body);
        let message = self.message.map_or_else(|| String::from_utf8_lossy(body), Cow::from);
        message.to_lowercase()
    }

    fn kind_by_message(&self) -> ErrorKind {
        let by_status = self.status.map(ErrorKind::from_status);
        let lower = self.message.unwrap_or_default().to_lowercase();
        if self.status == Some(402) {
            return ErrorKind::QuotaExceeded;
        }
        match self.code.and_then(by_code) {
            Some(Verdict::Precise(kind)) => kind,
            Some(Verdict::Broad(kind)) => by_message(by_status.unwrap_or(kind), &lower),
            None => match by_status {
                Some(kind) => by_message(kind, &lower),
                // Only the message is known. A failure of unknown kind is retryable (section 6.3).
                None => Some(by_message(ErrorKind::InvalidRequest, &lower))
                    .filter(|kind| *kind != ErrorKind::InvalidRequest)
                    .unwrap_or(ErrorKind::Server),
            },
        }
    }

    /// Returns whether neither the code nor the table of section 6.4 covers it. Such a failure is retryable (section 6.3).
    fn is_unknown(&self) -> bool {
        let known = |status| matches!(status, 400..=404 | 408 | 413 | 422 | 429 | 500..=599);
        !self.status.is_none_or(known) && self.code.and_then(by_code).is_none()
    }

    fn text(&self) -> String {
        match self.message {
            Some(message) if !message.trim().is_empty() => message.trim().chars().take(MAX_MESSAGE).collect(),
            Some(_) | None if self.body.is_empty() => "no reason given".to_owned(),
            Some(_) | None => format!("the body begins with {}", excerpt(self.body)),
        }
    }
}

/// Returns the first 200 characters of a body, quoted, for messages about unexpected data.
pub(crate) fn excerpt(body: &[u8]) -> String {
    let head = body.get(..800).unwrap_or(body);
    let text: String = String::from_utf8_lossy(head).chars().take(200).collect();
    format!("{text:?}")
}

/// Returns the error for a response that is not of its dialect: [`ErrorKind::Stream`], which is retryable, because a proxy's
/// error page may be temporary.
pub(crate) fn malformed(provider: &str, expected: &str, body: &[u8]) -> Error {
    Error::new(ErrorKind::Stream, format!("expected {expected}, found {}", excerpt(body)))
        .with_provider(provider)
}

/// Returns whether the error code is in the table.
pub(crate) fn is_known(code: &str) -> bool {
    by_code(code).is_some()
}

/// Classification by error code.
enum Verdict {
    /// This kind, regardless of the status.
    Precise(ErrorKind),
    /// A class that status and message may refine.
    Broad(ErrorKind),
}

fn by_code(code: &str) -> Option<Verdict> {
    use Verdict::{Broad, Precise};
    Some(match code {
        "context_length_exceeded"
        | "context_window_exceeded"
        | "model_context_window_exceeded"
        | "exceed_context_size_error"
        | "model_max_prompt_tokens_exceeded"
        | "request_too_large" => Precise(ErrorKind::ContextLength),
        "insufficient_quota"
        | "billing_error"
        | "billing_hard_limit_reached"
        | "billing_not_active"
        | "insufficient_balance"
        | "quota_exceeded"
        | "exceeded_current_quota_error"
        | "QUOTA_PER_DAY" => Precise(ErrorKind::QuotaExceeded),
        "invalid_api_key" | "authentication_error" | "API_KEY_INVALID" | "UNAUTHENTICATED" => {
            Precise(ErrorKind::Authentication)
        }
        "permission_error" | "PERMISSION_DENIED" | "permission_denied" => Precise(ErrorKind::AccessDenied),
        "model_not_found" | "not_found_error" | "NOT_FOUND" => Precise(ErrorKind::NotFound),
        "content_filter" | "content_policy_violation" | "responsible_ai_policy_violation" => {
            Precise(ErrorKind::ContentFilter)
        }
        refused_reasoning::CODE => Precise(ErrorKind::InvalidRequest),
        // OpenAI reports an image of the request that it does not accept, also in a stream, where there is no status.
        "image_content_policy_violation"
        | "invalid_image"
        | "invalid_image_format"
        | "invalid_base64_image"
        | "invalid_image_url"
        | "invalid_image_mode"
        | "image_too_large"
        | "image_too_small"
        | "image_parse_error"
        | "image_file_too_large"
        | "image_file_not_found"
        | "unsupported_image_media_type"
        | "empty_image_file"
        | "failed_to_download_image" => Precise(ErrorKind::InvalidRequest),
        "rate_limit_exceeded" | "rate_limit_error" | "RateLimitReached" | "RESOURCE_EXHAUSTED" => {
            Broad(ErrorKind::RateLimit)
        }
        "overloaded_error"
        | "engine_overloaded_error"
        | "unavailable_error"
        | "slow_down"
        | "server_error"
        | "api_error"
        | "internal_error"
        | "internal_server_error"
        | "INTERNAL"
        | "UNAVAILABLE" => Broad(ErrorKind::Server),
        "timeout_error" | "DEADLINE_EXCEEDED" => Broad(ErrorKind::RequestTimeout),
        "invalid_request_error"
        | "invalid_prompt"
        | "INVALID_ARGUMENT"
        | "FAILED_PRECONDITION"
        | "tool_use_failed" => Broad(ErrorKind::InvalidRequest),
        _ => return None,
    })
}

/// Refines an ambiguous kind by the message.
fn by_message(kind: ErrorKind, lower: &str) -> ErrorKind {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    let too_long = matches!(kind, ErrorKind::InvalidRequest | ErrorKind::RateLimit) && is_too_long(lower);
    if kind == ErrorKind::RateLimit {
        // "Too many tokens" may mean a rate. Only a prompt that is too long exceeds a context, and one that is larger
        // than the rate limit window never fits.
        let never_fits = says(&["request too large", "must be reduced"]);
        return if too_long || never_fits { ErrorKind::ContextLength } else { kind };
    }
    if kind != ErrorKind::InvalidRequest {
        return kind;
    }
    if too_long || says(&["too many tokens"]) {
        ErrorKind::ContextLength
    } else if says(&["credit balance is too low"]) {
        ErrorKind::QuotaExceeded
    } else if says(&[
        "unauthorized",
        "invalid key",
        "invalid api key",
        "api key not valid",
        "api key expired",
        "incorrect api key",
    ]) {
        ErrorKind::Authentication
    } else if says(&["content filter", "safety"]) {
        ErrorKind::ContentFilter
    } else if says(&["not found", "does not exist"]) {
        ErrorKind::NotFound
    } else {
        kind
    }
}

/// Returns whether a message in lower case means that the prompt is too long.
fn is_too_long(lower: &str) -> bool {
    let Some(form) = overflow::form_of(lower) else { return false };
    tracing::debug!(
        servers = form.servers,
        source = form.source,
        "the message means that the prompt is too long"
    );
    true
}

/// Returns the body as JSON or text, truncated to [`MAX_ERROR_BODY`].
fn raw(body: &[u8]) -> Option<Value> {
    let bounded = body.get(..MAX_ERROR_BODY).unwrap_or(body);
    if bounded.is_empty() {
        return None;
    }
    Some(
        serde_json::from_slice(bounded)
            .unwrap_or_else(|_| String::from_utf8_lossy(bounded).into_owned().into()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_code_and_message_determine_the_kind() {
        use ErrorKind as K;
        let cases: &[(Option<u16>, Option<&str>, &str, K)] = &[
            (Some(400), None, "bad", K::InvalidRequest),
            (Some(400), None, "This model's maximum context length is 8192 tokens", K::ContextLength),
            (Some(400), Some("invalid_request_error"), "prompt is too long: 210000 tokens", K::ContextLength),
            (
                Some(400),
                Some("INVALID_ARGUMENT"),
                "API key not valid. Please pass a valid API key.",
                K::Authentication,
            ),
            (Some(400), None, "The model `x` does not exist", K::NotFound),
            (Some(400), Some("content_filter"), "blocked", K::ContentFilter),
            (Some(400), None, "blocked by safety settings", K::ContentFilter),
            (Some(401), None, "", K::Authentication),
            (Some(402), None, "Insufficient Balance", K::QuotaExceeded),
            (Some(403), Some("PERMISSION_DENIED"), "no", K::AccessDenied),
            (Some(404), None, "no", K::NotFound),
            (Some(408), None, "", K::RequestTimeout),
            (Some(413), Some("request_too_large"), "", K::ContextLength),
            (None, Some("request_too_large"), "", K::ContextLength),
            (Some(429), Some("QUOTA_PER_DAY"), "You exceeded your current quota", K::QuotaExceeded),
            (Some(400), None, "input length and `max_tokens` exceed context limit", K::ContextLength),
            (None, Some("timeout_error"), "", K::RequestTimeout),
            (Some(400), Some("invalid_request_error"), "Your credit balance is too low", K::QuotaExceeded),
            (
                Some(429),
                Some("rate_limit_exceeded"),
                "Request too large for m: Limit 1, Requested 2",
                K::ContextLength,
            ),
            (Some(422), None, "too many tokens", K::ContextLength),
            (Some(429), None, "slow down", K::RateLimit),
            (Some(429), None, "too many tokens per minute", K::RateLimit),
            (Some(429), None, "the context length of the model is 8k", K::ContextLength),
            (Some(429), Some("insufficient_quota"), "", K::QuotaExceeded),
            (Some(429), Some("RESOURCE_EXHAUSTED"), "You exceeded your current quota", K::RateLimit),
            (Some(500), None, "not found", K::Server),
            (Some(529), Some("overloaded_error"), "Overloaded", K::Server),
            (None, Some("overloaded_error"), "Overloaded", K::Server),
            (None, Some("rate_limit_exceeded"), "TPM", K::RateLimit),
            (None, Some("invalid_request_error"), "bad", K::InvalidRequest),
            (None, None, "something unheard of", K::Server),
            (None, None, "maximum context reached", K::ContextLength),
        ];
        for (status, code, message, kind) in cases {
            let failure =
                Failure { provider: "p", status: *status, code: *code, message: Some(message), body: b"" };
            let error = failure.into_error();
            assert_eq!(error.kind(), *kind, "{failure:?}");
            assert_eq!(error.is_retryable(), kind.default_retry() != Retry::Never, "{failure:?}");
            assert_eq!((error.provider(), error.status(), error.error_code()), (Some("p"), *status, *code));
        }
    }

    #[test]
    fn overflows_without_a_known_code_are_recognised() {
        use ErrorKind as K;
        type Case = (Option<u16>, Option<&'static str>, Option<&'static str>, &'static str, ErrorKind);
        let cases: &[Case] = &[
            (Some(400), Some("model_max_prompt_tokens_exceeded"), None, "", K::ContextLength),
            (Some(400), Some("1261"), Some("Prompt exceeds max length"), "", K::ContextLength),
            (Some(400), Some("invalid-argument"), Some("maximum prompt length is 9"), "", K::ContextLength),
            (Some(422), None, Some("`inputs` must have less than 9 tokens"), "", K::ContextLength),
            (Some(429), None, Some("Please reduce the length of the messages"), "", K::ContextLength),
            (None, None, Some("Range of input length should be [1, 9]"), "", K::ContextLength),
            (Some(500), None, Some("Prompt too long"), "", K::Server),
            (Some(401), None, Some("Prompt too long"), "", K::Authentication),
            // The errors of another dialect.
            (Some(400), None, None, r#"{"error": "Prompt too long"}"#, K::ContextLength),
            (Some(400), None, None, r#"{"error": "no such file: not found"}"#, K::InvalidRequest),
            (Some(503), None, None, r#"{"error": "Prompt too long"}"#, K::Server),
        ];
        for (status, code, message, body, kind) in cases {
            let failure = Failure {
                provider: "p",
                status: *status,
                code: *code,
                message: *message,
                body: body.as_bytes(),
            };
            assert_eq!(failure.into_error().kind(), *kind, "{failure:?}");
        }
    }

    #[test]
    fn refused_reasoning_is_an_invalid_request_that_is_not_retried() {
        type Case = (Option<u16>, Option<&'static str>, Option<&'static str>, &'static str, bool);
        let message = Some("messages.1.content.0: Invalid `signature` in `thinking` block");
        let cases: &[Case] = &[
            (Some(400), Some("invalid_encrypted_content"), None, "", true),
            (None, Some("invalid_encrypted_content"), Some("no"), "", true),
            (Some(400), Some("invalid_request_error"), message, "", true),
            (Some(400), Some("invalid_request_body"), message, "", true),
            (Some(422), None, message, "", true),
            (Some(498), None, message, "", true),
            // A gateway reports the failure of its provider with its own status.
            (Some(500), Some("api_error"), message, "", true),
            (Some(502), None, message, "", true),
            (None, Some("INVALID_ARGUMENT"), Some("Corrupted thought signature."), "", true),
            (None, None, Some("Corrupted thought signature."), "", true),
            (Some(400), None, None, r#"{"reason": {"text": "Invalid signature in thinking block"}}"#, true),
            (Some(429), None, message, "", false),
            (Some(401), None, message, "", false),
            (Some(400), Some("invalid_request_error"), Some("bad"), "", false),
        ];
        for (status, code, message, body, expected) in cases {
            let failure = Failure {
                provider: "p",
                status: *status,
                code: *code,
                message: *message,
                body: body.as_bytes(),
            };
            let error = failure.into_error();
            assert_eq!(error.is_reasoning_refused(), *expected, "{failure:?}");
            if *expected {
                assert_eq!(
                    (error.kind(), error.retry()),
                    (ErrorKind::InvalidRequest, Retry::Never),
                    "{failure:?}"
                );
            }
        }
    }

    #[test]
    fn refused_images_are_invalid_requests_without_a_status() {
        for code in ["invalid_image_format", "image_content_policy_violation", "failed_to_download_image"] {
            let failure =
                Failure { code: Some(code), message: Some("not found: safety"), ..Failure::default() };
            let error = failure.into_error();
            assert_eq!((error.kind(), error.retry()), (ErrorKind::InvalidRequest, Retry::Never), "{code}");
        }
    }

    #[test]
    fn the_reason_inside_an_envelope_is_classified_and_shown() {
        use ErrorKind as K;
        let cases = [
            (
                400,
                r#""{\"type\": \"error\", \"error\": {\"type\": \"invalid_request_error\", \"message\": \"prompt is too long: 9 > 5\"}}""#,
                K::ContextLength,
                "Provider returned error (P): prompt is too long: 9 > 5",
            ),
            (
                400,
                r#"{"error": {"code": "context_length_exceeded", "message": "no"}}"#,
                K::ContextLength,
                "Provider returned error (P): no",
            ),
            (
                400,
                r#"{"error": {"type": "invalid_request_error", "message": "at most 1 image"}}"#,
                K::InvalidRequest,
                "Provider returned error (P): at most 1 image",
            ),
            (429, r#""busy upstream""#, K::RateLimit, "Provider returned error (P): busy upstream"),
            (
                429,
                r#"{"error": {"code": "insufficient_quota", "message": "paid up?"}}"#,
                K::QuotaExceeded,
                "Provider returned error (P): paid up?",
            ),
            (502, r#""prompt is too long""#, K::Server, "Provider returned error (P): prompt is too long"),
        ];
        for (status, raw, kind, message) in cases {
            let body = format!(
                r#"{{"error": {{"message": "Provider returned error", "metadata": {{"raw": {raw}, "provider_name": "P"}}}}}}"#
            );
            let failure = Failure {
                status: Some(status),
                message: Some("Provider returned error"),
                body: body.as_bytes(),
                ..Failure::default()
            };
            let error = failure.into_error();
            assert_eq!((error.kind(), error.message()), (kind, message), "{body}");
        }
    }

    #[test]
    fn unknown_failures_are_retryable() {
        let cases = [
            (Some(409), None, true),
            (Some(425), Some("a_new_word"), true),
            (Some(409), Some("invalid_request_error"), false),
            (Some(400), Some("a_new_word"), false),
            (Some(402), None, false),
            (None, Some("a_new_word"), true),
        ];
        for (status, code, retryable) in cases {
            let error = Failure { status, code, ..Failure::default() }.into_error();
            assert_eq!(error.is_retryable(), retryable, "{status:?} {code:?}: {error}");
        }
    }

    #[test]
    fn delays_in_messages_apply_to_retryable_errors() {
        let cases = [
            (
                Some(429),
                Some("rate_limit_exceeded"),
                Retry::After(Some(std::time::Duration::from_millis(1_500))),
            ),
            (None, Some("server_error"), Retry::After(Some(std::time::Duration::from_millis(1_500)))),
            (Some(429), Some("insufficient_quota"), Retry::Never),
            (Some(401), None, Retry::Never),
        ];
        for (status, code, retry) in cases {
            let message = Some("Please try again in 1.5s.");
            let failure = Failure { status, code, message, ..Failure::default() };
            assert_eq!(failure.into_error().retry(), retry, "{failure:?}");
        }
    }

    #[test]
    fn error_bodies_are_truncated() {
        let failure = Failure { status: Some(500), body: br#"{"a": 1}"#, ..Failure::default() };
        assert_eq!(failure.into_error().raw(), Some(&serde_json::json!({"a": 1})));
        let page = format!("<html>{}", "x".repeat(100_000));
        let error = Failure { status: Some(502), body: page.as_bytes(), ..Failure::default() }.into_error();
        assert_eq!(error.raw().and_then(Value::as_str).map(str::len), Some(MAX_ERROR_BODY));
        assert!(error.message().starts_with("the body begins with \"<html>x"), "{error}");
        assert!(error.message().len() < 300);
        let error = Failure { message: Some(&"m".repeat(10_000)), ..Failure::default() }.into_error();
        assert_eq!(error.message().len(), MAX_MESSAGE);
        assert_eq!(Failure::default().into_error().message(), "no reason given");
    }
}
