//! Pieces, usage and finish reasons of responses in all dialects.

use proptest::prelude::*;
use serde_json::json;

use super::*;

proptest! {
    #[test]
    fn pieces_concatenate_to_the_text(text in "\\PC{0,400}") {
        let pieces = pieces(&text);
        prop_assert_eq!(pieces.concat(), text.as_str());
        prop_assert!(pieces.iter().all(|piece| !piece.is_empty()));
        prop_assert!(pieces.len() <= MAX_PIECES + 1);
    }
}

fn parts(turn: &Turn, dialect: Dialect) -> ResponseSpec<'_> {
    ResponseSpec {
        script: "test",
        dialect,
        model: "gemini-3-pro",
        conversation: 1,
        index: 0,
        turn,
        input: InputTokens { cached: 40, created: 20, fresh: 10 },
        stream_usage: true,
        requires_thinking: false,
        gemini_call_ids: false,
    }
}

#[test]
fn short_texts_are_split() {
    assert_eq!(pieces("Hello there, world."), ["Hello ", "there, ", "world."]);
    assert_eq!(pieces(""), Vec::<&str>::new());
}

#[test]
fn usage_follows_each_dialect() {
    let turn = Turn::text("12345678").with_reasoning("1234");
    let usage = |dialect: Dialect, pointer: &str| {
        ModelResponse::new(&parts(&turn, dialect)).complete(dialect).pointer(pointer).cloned().unwrap()
    };
    let expected = json!({
        "input_tokens": 70, "input_tokens_details": {"cached_tokens": 40},
        "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 1}, "total_tokens": 73,
    });
    assert_eq!(usage(Dialect::OpenAiResponses, "/usage"), expected);
    let expected = json!({
        "input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 40, "output_tokens": 3,
    });
    assert_eq!(usage(Dialect::AnthropicMessages, "/usage"), expected);
    let expected = json!({
        "promptTokenCount": 70, "cachedContentTokenCount": 40, "candidatesTokenCount": 2,
        "thoughtsTokenCount": 1, "totalTokenCount": 73,
    });
    assert_eq!(usage(Dialect::Gemini, "/usageMetadata"), expected);
    let expected = json!({
        "prompt_tokens": 70, "completion_tokens": 3, "total_tokens": 73,
        "prompt_tokens_details": {"cached_tokens": 40}, "completion_tokens_details": {"reasoning_tokens": 1},
    });
    assert_eq!(usage(Dialect::ChatCompletions, "/usage"), expected);
}

#[test]
fn finish_reasons_follow_each_dialect() {
    let call = || Turn::new().with_call(Call::new("f", json!({})));
    let cases = [
        (Turn::text("a"), ["completed", "end_turn", "STOP", "stop"]),
        (call(), ["completed", "tool_use", "STOP", "tool_calls"]),
        (Turn::text("a").with_finish(Finish::Length), ["incomplete", "max_tokens", "MAX_TOKENS", "length"]),
        (
            Turn::text("a").with_finish(Finish::ContentFilter),
            ["incomplete", "refusal", "SAFETY", "content_filter"],
        ),
    ];
    let pointers = ["/status", "/stop_reason", "/candidates/0/finishReason", "/choices/0/finish_reason"];
    for (turn, expected) in cases {
        for ((dialect, pointer), expected) in Dialect::ALL.into_iter().zip(pointers).zip(expected) {
            let complete = ModelResponse::new(&parts(&turn, dialect)).complete(dialect);
            assert_eq!(complete.pointer(pointer), Some(&json!(expected)), "{dialect}");
        }
    }
}

#[test]
fn unparsable_arguments_are_malformed_for_gemini() {
    let turn = Turn::new().with_call(Call::raw("f", "not json"));
    let complete = ModelResponse::new(&parts(&turn, Dialect::Gemini)).complete(Dialect::Gemini);
    assert_eq!(complete.pointer("/candidates/0/finishReason"), Some(&json!("MALFORMED_FUNCTION_CALL")));
    let complete =
        ModelResponse::new(&parts(&turn, Dialect::ChatCompletions)).complete(Dialect::ChatCompletions);
    assert_eq!(
        complete.pointer("/choices/0/message/tool_calls/0/function/arguments"),
        Some(&json!("not json"))
    );
}

#[test]
fn required_thinking_begins_with_an_empty_block() {
    let turn = Turn::text("a");
    let thinking = ResponseSpec { requires_thinking: true, ..parts(&turn, Dialect::AnthropicMessages) };
    let complete = ModelResponse::new(&thinking).complete(Dialect::AnthropicMessages);
    assert_eq!(complete.pointer("/content/0/type"), Some(&json!("thinking")));
    let signature = complete.pointer("/content/0/signature").and_then(Value::as_str).unwrap();
    assert!(Seal::open(signature).unwrap().binds(""));
}
