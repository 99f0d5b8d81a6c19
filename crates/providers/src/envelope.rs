//! The reason of a provider inside the error of an aggregator.
//!
//! `OpenRouter` answers "Provider returned error" for any failure of a provider; the provider's own error is in
//! `error.metadata.raw`, as JSON, as JSON in a string, or as text.

use memchr::memmem;
use serde_json::Value;

/// Maximum number of envelopes inside one another.
const MAX_DEPTH: usize = 4;

/// Error of a provider that an aggregator passed on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Upstream {
    /// Name of the provider, as the aggregator spells it.
    pub(crate) provider: Option<String>,
    /// Most precise code: `code` before `type`.
    pub(crate) code: Option<String>,
    pub(crate) message: String,
}

/// Returns the error of the provider in the body of an aggregator's error, if there is one.
pub(crate) fn upstream(body: &[u8]) -> Option<Upstream> {
    memmem::find(body, b"\"metadata\"")?;
    let body: Value = serde_json::from_slice(body).ok()?;
    innermost(&body, MAX_DEPTH)
}

/// Returns the innermost error in this body.
fn innermost(body: &Value, depth: usize) -> Option<Upstream> {
    let metadata = metadata(body)?;
    let raw = metadata.get("raw")?;
    let provider = metadata.get("provider_name").and_then(Value::as_str).map(str::to_owned);
    let parsed = raw.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let raw = parsed.as_ref().filter(|parsed| parsed.is_object() || parsed.is_array()).unwrap_or(raw);
    let inner = depth.checked_sub(1).and_then(|depth| innermost(raw, depth));
    let found = inner.or_else(|| reason(raw))?;
    Some(Upstream { provider: found.provider.or(provider), ..found })
}

/// Returns the metadata of an error object, which may be the body itself or lie in `error` of another one.
fn metadata(body: &Value) -> Option<&Value> {
    let body = body.get(0).unwrap_or(body);
    let body = body.get("response").unwrap_or(body);
    let nested = ["/error/error/metadata", "/error/metadata", "/metadata"];
    nested.iter().find_map(|path| body.pointer(path).filter(|metadata| metadata.get("raw").is_some()))
}

/// Returns the message and the code of a provider's error. Without a message, there is no reason to show.
fn reason(raw: &Value) -> Option<Upstream> {
    let raw = raw.get(0).unwrap_or(raw);
    let error = raw.get("error").filter(|error| !error.is_null()).unwrap_or(raw);
    let text = |name: &str| error.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let message = error.as_str().or_else(|| text("message")).or_else(|| text("detail"))?;
    let code = ["code", "type", "status"].iter().find_map(|name| text(name)).map(str::to_owned);
    let message = message.trim().to_owned();
    Some(Upstream { provider: None, code, message }).filter(|found| !found.message.is_empty())
}

impl Upstream {
    /// Returns the aggregator's message, followed by the provider's name and its message.
    pub(crate) fn explain(&self, outer: Option<&str>) -> String {
        let outer = outer.map(str::trim).filter(|outer| !outer.is_empty());
        let Some(outer) = outer.filter(|outer| !outer.contains(&self.message)) else {
            return outer.unwrap_or(&self.message).to_owned();
        };
        match &self.provider {
            Some(provider) => format!("{outer} ({provider}): {}", self.message),
            None => format!("{outer}: {}", self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_reason_is_found_in_every_form() {
        let inner = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}});
        let coded = json!({"error": {"code": "context_length_exceeded", "type": "x", "message": "Too long"}});
        let cases = [
            (json!(inner.to_string()), Some("invalid_request_error"), "prompt is too long"),
            (inner, Some("invalid_request_error"), "prompt is too long"),
            (json!(coded.to_string()), Some("context_length_exceeded"), "Too long"),
            (json!([coded]), Some("context_length_exceeded"), "Too long"),
            (json!("temporarily rate-limited upstream"), None, "temporarily rate-limited upstream"),
            (json!({"error": "model is gone"}), None, "model is gone"),
            (json!({"message": "bare"}), None, "bare"),
            (json!("502"), None, "502"),
        ];
        for (raw, code, message) in cases {
            let metadata = json!({"raw": raw, "provider_name": "P"});
            let error = json!({"message": "Provider returned error", "code": 400, "metadata": metadata});
            let expected = Upstream {
                provider: Some("P".to_owned()),
                code: code.map(str::to_owned),
                message: message.to_owned(),
            };
            for body in [
                json!({"error": error}),
                json!({"error": {"error": error}}),
                json!({"type": "response.failed", "response": {"error": error}}),
                json!([{"error": error}]),
                error.clone(),
            ] {
                let found = upstream(body.to_string().as_bytes());
                assert_eq!(found.as_ref(), Some(&expected), "{body}");
                let shown = found.unwrap().explain(Some("Provider returned error"));
                assert_eq!(shown, format!("Provider returned error (P): {message}"));
            }
        }
    }

    #[test]
    fn the_innermost_of_several_envelopes_counts() {
        let provider = json!({"error": {"message": "prompt is too long"}}).to_string();
        let inner = json!({"error": {"message": "Provider returned error", "metadata": {"raw": provider, "provider_name": "Deep"}}});
        let outer = json!({"error": {"message": "Upstream failed", "metadata": {"raw": inner.to_string(), "provider_name": "Near"}}});
        let found = upstream(outer.to_string().as_bytes()).unwrap();
        assert_eq!((found.provider.as_deref(), found.message.as_str()), (Some("Deep"), "prompt is too long"));
    }

    #[test]
    fn other_bodies_have_no_reason() {
        for body in [
            "",
            "<html>metadata</html>",
            r#"{"error": {"message": "x", "metadata": {"provider_name": "P"}}}"#,
            r#"{"error": {"message": "x", "metadata": {"raw": null}}}"#,
            r#"{"error": {"message": "x", "metadata": {"raw": ""}}}"#,
            r#"{"error": {"message": "x", "metadata": {"raw": {"code": 7}}}}"#,
            r#"{"error": {"message": "x"}}"#,
        ] {
            assert_eq!(upstream(body.as_bytes()), None, "{body}");
        }
    }

    #[test]
    fn a_message_that_has_the_reason_is_unchanged() {
        let found = Upstream { message: "too long".to_owned(), ..Upstream::default() };
        assert_eq!(found.explain(Some("The prompt is too long.")), "The prompt is too long.");
        assert_eq!(found.explain(Some("Failed")), "Failed: too long");
        assert_eq!(found.explain(None), "too long");
    }
}
