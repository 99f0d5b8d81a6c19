//! Quirks of the server that receives a request.

use pintle_llm::{Error, ErrorKind, Request, ServerQuirks};
use serde::Deserialize as _;
use serde_json::Value;

use crate::options::options_for;

/// Provider option that overrides detected quirks.
pub(crate) const OPTION: &str = "quirks";

/// Documented placeholder for a missing thought signature, which makes Gemini 3 skip its check.
pub(crate) const SKIP_SIGNATURE: &str = "skip_thought_signature_validator";

/// Returns the quirks of the server for a request: values of its options, else detected ones.
///
/// # Errors
///
/// [`ErrorKind::Configuration`] if the option is invalid.
pub(crate) fn quirks_for(request: &Request, provider: &str, host: &str) -> Result<ServerQuirks, Error> {
    let detected = ServerQuirks::detect(host, &request.model);
    match options_for(request, provider)?.and_then(|options| options.get(OPTION)) {
        None | Some(Value::Null) => Ok(detected),
        Some(given) => {
            let given = ServerQuirks::deserialize(given).map_err(|error| {
                let message = format!("provider_options.{provider}.{OPTION} is invalid: {error}");
                Error::new(ErrorKind::Configuration, message).with_provider(provider)
            })?;
            Ok(given.or(&detected))
        }
    }
}

/// Returns whether the chat template of a model contains the opening tag of the reasoning, in a dialect without the option.
pub(crate) fn has_opened_thinking(request: &Request) -> bool {
    ServerQuirks::detect("", &request.model).opened_thinking == Some(true)
}

#[cfg(test)]
mod tests {
    use pintle_llm::{CallIds, Message, OutputLimit};
    use serde_json::json;

    use super::*;

    #[test]
    fn options_override_detected_quirks() {
        let host = "api.mistral.ai";
        let request = Request::new("m", [Message::user("x")]);
        let detected = quirks_for(&request, "p", host).unwrap();
        assert_eq!((detected.call_ids, detected.output_limit), (Some(CallIds::NineAlphanumeric), None));
        let options = json!({"quirks": {"call_ids": "any", "output_limit": "max_completion_tokens"}});
        let given = quirks_for(&request.clone().with_provider_options("p", options), "p", host).unwrap();
        assert_eq!(
            (given.call_ids, given.output_limit, given.stream_options),
            (Some(CallIds::Any), Some(OutputLimit::MaxCompletionTokens), Some(false))
        );
        let refused = |quirks: Value| {
            let request = request.clone().with_provider_options("p", json!({"quirks": quirks}));
            let error = quirks_for(&request, "p", host).unwrap_err();
            assert_eq!((error.kind(), error.provider()), (ErrorKind::Configuration, Some("p")));
            error.message().to_owned()
        };
        assert!(
            refused(json!({"ids": "any"}))
                .starts_with("provider_options.p.quirks is invalid: unknown field `ids`")
        );
        assert!(refused(json!({"call_ids": 9})).starts_with("provider_options.p.quirks is invalid: "));
    }
}
