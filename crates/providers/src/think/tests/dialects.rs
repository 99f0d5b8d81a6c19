//! Reasoning in the text of all dialects.

use pintle_llm::{Message, Request, Response};
use serde_json::{Value, json};

use crate::anthropic::Messages;
use crate::compatible::Chat;
use crate::dialect::Dialect;
use crate::gemini::GenerateContent;
use crate::openai::Responses;
use crate::secret::Secret;
use crate::tests::snapshot::{decoded, next, sent, streamed};

/// A text as events of a stream and as a complete response.
struct Wire {
    events: Vec<Value>,
    body: Value,
}

fn anthropic(pieces: &[&str]) -> Wire {
    let block = |text: &str| json!({"type": "text", "text": text});
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "r", "content": []}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block("")}),
    ];
    events.extend(pieces.iter().map(|piece| {
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}})
    }));
    events.extend([
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ]);
    let content = [block(&pieces.concat())];
    Wire { events, body: json!({"type": "message", "content": content, "stop_reason": "end_turn"}) }
}

fn openai(pieces: &[&str]) -> Wire {
    let part = json!({"type": "output_text", "text": pieces.concat()});
    let item = json!({"type": "message", "id": "m", "role": "assistant", "content": [part]});
    let body = json!({"id": "r", "model": "m", "status": "completed", "output": [item]});
    let mut events = vec![json!({
        "type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m"},
    })];
    events.extend(pieces.iter().map(|piece| {
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": piece})
    }));
    events.extend([
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": body}),
    ]);
    Wire { events, body }
}

fn gemini(pieces: &[&str]) -> Wire {
    let chunk = |text: &str, reason: Option<&str>| {
        let content = json!({"role": "model", "parts": [{"text": text}]});
        json!({"candidates": [{"content": content, "finishReason": reason}]})
    };
    let mut events: Vec<Value> = pieces.iter().map(|piece| chunk(piece, None)).collect();
    events.push(json!({"candidates": [{"finishReason": "STOP"}]}));
    Wire { events, body: chunk(&pieces.concat(), Some("STOP")) }
}

fn compatible(pieces: &[&str]) -> Wire {
    let delta = |piece: &&str| json!({"choices": [{"index": 0, "delta": {"content": piece}}]});
    let mut events: Vec<Value> = pieces.iter().map(delta).collect();
    events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    let message = json!({"role": "assistant", "content": pieces.concat()});
    Wire { events, body: json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}) }
}

/// Decodes a text as a stream and as a complete response, and encodes the next request after each.
fn replies(dialect: &impl Dialect, model: &str, wire: &Wire) -> [(Response, String); 2] {
    let request = Request::new(model, [Message::user("Why?")]);
    let stream = streamed(dialect, &request, &wire.events).1;
    let complete = decoded(dialect, &request, &wire.body).1;
    [stream, complete].map(|response| {
        let sent = sent(dialect, &next(&request, &response, Vec::new()));
        (response, sent)
    })
}

#[test]
fn reasoning_at_the_start_of_a_text_is_separated_in_all_dialects() {
    let key = || Secret::new("k");
    let cases: [(&str, &[&str], Option<&str>, &str); 9] = [
        ("m", &["<think>Hm.</think>", "So."], Some("Hm."), "So."),
        ("m", &["<th", "ink>\nH", "m.</t", "hink>\n\nSo", "."], Some("Hm."), "So."),
        ("m", &[" \n", "<think>é \u{fffd}</think>é \u{fffd}", "."], Some("é \u{fffd}"), "é \u{fffd}."),
        ("m", &["<think>Hm"], Some("Hm"), ""),
        ("m", &["<thin"], None, "<thin"),
        ("m", &["So ", "be it."], None, "So be it."),
        ("m", &["The tag <think>", " opens it."], None, "The tag <think> opens it."),
        ("deepseek-r1:8b", &["Hm.", "</thi", "nk>\n\nSo."], Some("Hm."), "So."),
        ("deepseek-r1:8b", &["No ", "tag."], None, "No tag."),
    ];
    for (model, pieces, reasoning, answer) in cases {
        let chat = Chat { provider: "local".into(), api_key: None, host: String::new() };
        let messages = Messages { api_key: key(), host: String::new() };
        for (dialect, replies) in [
            ("anthropic", replies(&messages, model, &anthropic(pieces))),
            ("openai", replies(&Responses { api_key: key() }, model, &openai(pieces))),
            ("gemini", replies(&GenerateContent { api_key: key() }, model, &gemini(pieces))),
            ("compatible", replies(&chat, model, &compatible(pieces))),
        ] {
            for (reply, sent) in replies {
                let found = (reply.reasoning(), reply.text());
                assert_eq!(
                    (found.0.as_deref(), found.1.as_str()),
                    (reasoning, answer),
                    "{dialect}: {pieces:?}"
                );
                // A server with unsigned thinking receives it as thinking.
                let is_returned = dialect == "anthropic" && model.starts_with("deepseek");
                let is_sent = reasoning.is_some_and(|text| sent.contains(&format!("\"{text}\"")));
                assert_eq!(is_sent, reasoning.is_some() && is_returned, "{dialect}: {sent}");
            }
        }
    }
}
