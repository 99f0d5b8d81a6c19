//! One conversation, read from each dialect.

use serde_json::json;

use super::*;

/// Returns a conversation in each dialect: a prompt, two parallel calls with results, steering, and a final text.
fn bodies() -> [(Dialect, Value); 4] {
    [
        (
            Dialect::OpenAiResponses,
            json!({"model": "m", "stream": true, "instructions": "system", "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "prompt"}]},
                {"type": "reasoning", "summary": [], "encrypted_content": "seal"},
                {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
                {"type": "function_call", "call_id": "b", "name": "g", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "of b"}]},
                {"type": "function_call_output", "call_id": "a", "output": "of a"},
                {"role": "user", "content": "steering"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
            ]}),
        ),
        (
            Dialect::AnthropicMessages,
            json!({"model": "m", "stream": true, "system": [{"type": "text", "text": "system"}], "messages": [
                {"role": "user", "content": "prompt"},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "thought", "signature": "seal"},
                    {"type": "tool_use", "id": "a", "name": "f", "input": {}},
                    {"type": "tool_use", "id": "b", "name": "g", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "b", "content": "of b", "is_error": true},
                    {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "of a"}]},
                    {"type": "text", "text": "steering"},
                ]},
                {"role": "assistant", "content": "done"},
            ]}),
        ),
        (
            Dialect::Gemini,
            json!({"systemInstruction": {"parts": [{"text": "system"}]}, "contents": [
                {"role": "user", "parts": [{"text": "prompt"}]},
                {"role": "model", "parts": [
                    {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "seal"},
                    {"functionCall": {"name": "g", "args": {}}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "f", "response": {"output": "of a"}}},
                    {"functionResponse": {"name": "g", "response": {"error": "of b"}}},
                ]},
                {"role": "user", "parts": [{"text": "steering"}]},
                {"role": "model", "parts": [{"text": "done"}]},
            ]}),
        ),
        (
            Dialect::ChatCompletions,
            json!({"model": "m", "stream": true, "messages": [
                {"role": "system", "content": "system"},
                {"role": "user", "content": [{"type": "text", "text": "prompt"}]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                    {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
                ]},
                {"role": "tool", "tool_call_id": "a", "content": "of a"},
                {"role": "tool", "tool_call_id": "b", "content": "of b"},
                {"role": "user", "content": "steering"},
                {"role": "assistant", "content": "done"},
            ]}),
        ),
    ]
}

#[test]
fn every_dialect_reads_the_same_history() {
    let path = "/v1beta/models/m:streamGenerateContent?alt=sse";
    let mut conversations = Vec::new();
    for (dialect, body) in bodies() {
        let history = History::read(dialect, path, &body);
        assert_eq!((history.model.as_str(), history.stream, history.turn()), ("m", true, 2), "{dialect}");
        assert_eq!(history.prompts().collect::<Vec<_>>(), ["system", "prompt", "steering"], "{dialect}");
        let results: Vec<&str> =
            history.steps[0].calls.iter().map(|call| call.outcome.as_ref().unwrap().text.as_str()).collect();
        assert_eq!(results, ["of a", "of b"], "{dialect}");
        let errors: Vec<Option<bool>> =
            history.steps[0].calls.iter().map(|call| call.outcome.as_ref().unwrap().is_error).collect();
        let has_error_flag = matches!(dialect, Dialect::AnthropicMessages | Dialect::Gemini);
        assert_eq!(
            errors,
            if has_error_flag { [Some(false), Some(true)] } else { [None, None] },
            "{dialect}"
        );
        let seals: Vec<&str> = history.steps[0].reasoning.iter().map(|sealed| sealed.seal.as_str()).collect();
        assert_eq!(seals.is_empty(), dialect == Dialect::ChatCompletions, "{dialect}");
        conversations.push(history.conversation());
    }
    conversations.dedup();
    assert_eq!(conversations.len(), 1, "the first user message is the same everywhere");
}
