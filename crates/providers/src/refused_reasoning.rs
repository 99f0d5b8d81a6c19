//! Messages with which servers refuse the reasoning of earlier responses.
//!
//! Reasoning is signed or encrypted, and valid for one key, account, region or version of a model. A server that cannot verify
//! it refuses every request that contains it. The table has one row per message form, with the server and the public report
//! that shows it. A test has one message per row.

use crate::message_form::MessageForm;

/// Error code of OpenAI, in a separate field or in a message.
pub(crate) const CODE: &str = "invalid_encrypted_content";

/// The parts contain no quotation marks, because some servers leave them out.
static FORMS: &[MessageForm] = &[
    MessageForm::new(
        "OpenAI, Azure, OpenRouter",
        &["encrypted content", "could not be verified"],
        "openai/codex#8119",
    ),
    MessageForm::new("OpenAI behind gateways", &[CODE], "pydantic/pydantic-ai#4608"),
    MessageForm::new("xAI", &["could not decrypt", "encrypted_content"], "hackerai-tech/hackerai#996"),
    MessageForm::new(
        "OpenCode Zen",
        &["encrypted_content was not issued to this caller"],
        "can1357/oh-my-pi#11928",
    ),
    MessageForm::new(
        "Anthropic, Amazon Bedrock, Vertex, GitHub Copilot",
        &["invalid signature in thinking block"],
        "github/copilot-cli#3407",
    ),
    MessageForm::new("Anthropic", &["invalid data in redacted_thinking block"], "microsoft/vscode#320196"),
    MessageForm::new("Anthropic", &["thinking.signature: "], "earendil-works/pi#1523"),
    MessageForm::new("Anthropic", &["redacted_thinking.data: "], "diegosouzapw/OmniRoute#2191"),
    MessageForm::new(
        "Anthropic",
        &["thinking or redacted_thinking blocks in the latest assistant message cannot be modified"],
        "anthropics/claude-code#63404",
    ),
    MessageForm::new(
        "Anthropic",
        &["expected thinking or redacted_thinking, but found"],
        "zed-industries/zed#33317",
    ),
    MessageForm::new("Gemini", &["corrupted thought signature"], "google-gemini/gemini-cli#13467"),
    MessageForm::new("Gemini", &["invalid thought signature"], "lbjlaq/Antigravity-Manager#3342"),
    MessageForm::new("Vertex", &["thought signature is not valid"], "decolua/9router#301"),
    MessageForm::new(
        "Gemini",
        &["thought_signature", "base64 decoding failed"],
        "google-gemini/gemini-cli#8003",
    ),
];

/// Returns the form that a message in lower case has, if it means that reasoning is refused.
pub(crate) fn form_of(lower: &str) -> Option<&'static MessageForm> {
    let bare = lower.replace(['`', '\'', '"', '\\'], "");
    FORMS.iter().find(|form| form.matches(&bare))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Server, and a message that it sends.
    const MESSAGES: &[(&str, &str)] = &[
        ("OpenAI", "The encrypted content gAAA...c90= could not be verified."),
        (
            "OpenAI",
            "The encrypted content gAAA... could not be verified. Reason: Encrypted content organization_id did not match the target organization.",
        ),
        ("Azure", "The encrypted content for item rs_0a18 could not be verified."),
        ("OpenAI behind gateways", "Error code: 400 - invalid_encrypted_content"),
        (
            "xAI",
            "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content.",
        ),
        (
            "OpenCode Zen",
            "Upstream request failed: reasoning `encrypted_content` was not issued to this caller",
        ),
        ("Anthropic", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        ("Amazon Bedrock", "messages.7.content.2: Invalid signature in thinking block"),
        (
            "Vertex",
            r#"{"type":"error","error":{"message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}"#,
        ),
        ("Anthropic", "messages.3.content.0: Invalid 'data' in 'redacted_thinking' block"),
        ("Anthropic", "messages.1.content.0.thinking.signature: Field required"),
        ("Anthropic", "messages.0.content.0.redacted_thinking.data: Field required"),
        (
            "Anthropic",
            "messages.5.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
        ),
        (
            "Anthropic",
            "messages.9.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
        ),
        ("Gemini", "Corrupted thought signature."),
        ("Gemini", "Invalid thought signature."),
        ("Vertex", "Unable to submit request because Thought signature is not valid."),
        (
            "Gemini",
            "Invalid value at 'contents[3].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed for \"CiQB\"",
        ),
    ];

    #[test]
    fn the_message_of_each_server_is_recognised() {
        for (server, message) in MESSAGES {
            let form = form_of(&message.to_lowercase()).unwrap_or_else(|| panic!("{server}: {message}"));
            assert!(form.servers.contains(server), "{server}: {form:?}");
        }
    }

    #[test]
    fn each_form_has_a_message_and_a_source() {
        for form in FORMS {
            let is_sent = |(_, message): &(&str, &str)| {
                form_of(&message.to_lowercase()).is_some_and(|found| std::ptr::eq(found, form))
            };
            assert!(MESSAGES.iter().any(is_sent), "{form:?}");
            assert!(form.source.contains('#'), "{form:?}");
            assert!(form.parts.iter().all(|part| part.to_lowercase() == **part), "{form:?}");
        }
    }

    #[test]
    fn other_refusals_are_not_about_old_reasoning() {
        for message in [
            "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model.",
            "thinking.budget_tokens: Input should be greater than or equal to 1024",
            "Function call is missing a thought_signature in functionCall parts.",
            "Missing `reasoning_content` field in the assistant message",
            "The file is encrypted and its content could not be read",
            "Invalid signature of the request",
            "max_tokens must be greater than thinking.budget_tokens",
        ] {
            assert!(form_of(&message.to_lowercase()).is_none(), "{message}");
        }
    }
}
