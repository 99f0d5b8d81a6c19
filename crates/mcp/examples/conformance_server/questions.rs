//! Tools that ask the client while they run, or log.

use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::model::{JsonObject, LoggingMessageNotificationParam, ProtocolVersion};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::{fixtures, typed};

/// Time between two lines of a log.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Logs three lines. From version 2026-07-28 on, only a request that asks for a log receives it.
pub(crate) async fn log(context: &RequestContext<RoleServer>) -> Value {
    let is_asked = context.meta.log_level().is_some();
    let is_older = context.protocol_version().is_none_or(|version| version < ProtocolVersion::V_2026_07_28);
    for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        if is_asked || is_older {
            let fixture = json!({"level": "info", "logger": "conformance", "data": line});
            if let Ok(params) = typed::<LoggingMessageNotificationParam>(fixture) {
                // A disconnected client reads no log.
                let _ = context.peer.notify_logging_message(params).await;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    fixtures::text("logged")
}

/// Asks the client's model.
pub(crate) async fn sample(
    context: &RequestContext<RoleServer>,
    arguments: &JsonObject,
) -> Result<Value, ErrorData> {
    let prompt = arguments.get("prompt").and_then(Value::as_str).unwrap_or_default();
    let params = typed(fixtures::sampling(prompt, 100))?;
    Ok(match context.peer.create_message(params).await {
        Ok(result) => {
            let result = serde_json::to_value(result).unwrap_or_default();
            let text = result.pointer("/content/text").or_else(|| result.pointer("/content/0/text"));
            fixtures::text(&format!("LLM response: {}", text.and_then(Value::as_str).unwrap_or_default()))
        }
        Err(error) => fixtures::failure(&format!("the client did not answer: {error}")),
    })
}

/// Asks the user of the client.
pub(crate) async fn elicit(
    context: &RequestContext<RoleServer>,
    tool: &str,
    arguments: &JsonObject,
) -> Result<Value, ErrorData> {
    let message = arguments.get("message").and_then(Value::as_str).unwrap_or("Please answer.");
    let params = typed(json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {"type": "object", "properties": fixtures::question(tool)},
    }))?;
    Ok(match context.peer.create_elicitation(params).await {
        Ok(result) => {
            let result = serde_json::to_value(result).unwrap_or_default();
            let text = |key: &str| result.get(key).map(Value::to_string).unwrap_or_default();
            let (action, content) = (text("action"), text("content"));
            fixtures::text(&format!("completed: action={}, content={content}", action.trim_matches('"')))
        }
        Err(error) => fixtures::failure(&format!("the client did not answer: {error}")),
    })
}
