//! Conversations in each dialect, built from the responses of the server.

use pintle_testkit::Dialect;
use serde_json::{Value, json};

use crate::client::HttpResponse;

/// Output of the model, read from a stream or a complete response.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ModelOutput {
    pub(crate) reasoning: String,
    pub(crate) text: String,
    /// Id, name and arguments as text.
    pub(crate) calls: Vec<(String, String, String)>,
    /// Assistant items for the next request.
    pub(crate) items: Vec<Value>,
    pub(crate) finish: String,
    pub(crate) usage: Value,
}

/// A conversation in one dialect.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    pub(crate) dialect: Dialect,
    pub(crate) model: String,
    pub(crate) stream: bool,
    items: Vec<Value>,
}

impl Conversation {
    pub(crate) fn new(dialect: Dialect, prompt: &str) -> Self {
        let mut conversation =
            Self { dialect, model: "gemini-3-pro".to_owned(), stream: true, items: Vec::new() };
        conversation.user(prompt);
        conversation
    }

    pub(crate) fn path(&self) -> String {
        crate::client::path(self.dialect, &self.model, self.stream)
    }

    pub(crate) fn user(&mut self, text: &str) {
        self.items.push(match self.dialect {
            Dialect::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            Dialect::OpenAiResponses | Dialect::AnthropicMessages | Dialect::ChatCompletions => {
                json!({"role": "user", "content": text})
            }
        });
    }

    /// Returns the request for the next turn.
    pub(crate) fn body(&self) -> Value {
        match self.dialect {
            Dialect::OpenAiResponses => json!({
                "model": self.model, "stream": self.stream, "store": false, "instructions": "system prompt",
                "include": ["reasoning.encrypted_content"], "input": self.items,
            }),
            Dialect::AnthropicMessages => json!({
                "model": self.model, "stream": self.stream, "max_tokens": 4096, "system": "system prompt",
                "messages": self.items,
            }),
            Dialect::Gemini => json!({
                "systemInstruction": {"parts": [{"text": "system prompt"}]}, "contents": self.items,
            }),
            Dialect::ChatCompletions => {
                let system = json!({"role": "system", "content": "system prompt"});
                let messages: Vec<&Value> = std::iter::once(&system).chain(&self.items).collect();
                let mut body = json!({"model": self.model, "stream": self.stream, "messages": messages});
                if self.stream {
                    body["stream_options"] = json!({"include_usage": true});
                }
                body
            }
        }
    }

    /// Appends the output of the model, and the results of its calls in order.
    pub(crate) fn continue_with(&mut self, output: &ModelOutput, results: &[&str]) {
        self.items.extend(output.items.iter().cloned());
        let results = output.calls.iter().zip(results);
        match self.dialect {
            Dialect::OpenAiResponses => self.items.extend(results.map(|((id, _, _), result)| {
                json!({"type": "function_call_output", "call_id": id, "output": result})
            })),
            Dialect::ChatCompletions => self.items.extend(
                results.map(|((id, _, _), result)| json!({"role": "tool", "tool_call_id": id, "content": result})),
            ),
            Dialect::AnthropicMessages => {
                let blocks: Vec<Value> = results
                    .map(|((id, _, _), result)| json!({"type": "tool_result", "tool_use_id": id, "content": result}))
                    .collect();
                if !blocks.is_empty() {
                    self.items.push(json!({"role": "user", "content": blocks}));
                }
            }
            Dialect::Gemini => {
                let parts: Vec<Value> = results
                    .map(|((_, name, _), result)| {
                        json!({"functionResponse": {"name": name, "response": {"output": result}}})
                    })
                    .collect();
                if !parts.is_empty() {
                    self.items.push(json!({"role": "user", "parts": parts}));
                }
            }
        }
    }

    /// Returns the items, for mutation by a test.
    pub(crate) fn items_mut(&mut self) -> &mut Vec<Value> {
        &mut self.items
    }

    pub(crate) fn read(&self, response: &HttpResponse) -> ModelOutput {
        assert_eq!(
            (response.status, response.complete),
            (200, true),
            "{}",
            String::from_utf8_lossy(&response.body)
        );
        match (self.dialect, self.stream) {
            (Dialect::OpenAiResponses, true) => openai_stream(response),
            (Dialect::OpenAiResponses, false) => openai(&response.json()),
            (Dialect::AnthropicMessages, true) => anthropic_stream(response),
            (Dialect::AnthropicMessages, false) => anthropic(&response.json()),
            (Dialect::Gemini, true) => gemini(&response.data()),
            (Dialect::Gemini, false) => gemini(&[response.json()]),
            (Dialect::ChatCompletions, true) => chat_stream(response),
            (Dialect::ChatCompletions, false) => chat(&response.json()),
        }
    }
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Concatenates the deltas of all events of one type.
fn deltas(events: &[Value], kind: &str, pointer: &str) -> String {
    events.iter().filter(|event| event["type"] == kind).map(|event| text(event, pointer)).collect()
}

fn openai_stream(response: &HttpResponse) -> ModelOutput {
    let events = response.data();
    for (number, ((name, _), event)) in response.events().iter().zip(&events).enumerate() {
        assert_eq!(name.as_deref(), event["type"].as_str());
        assert_eq!(event["sequence_number"], number);
    }
    let output = openai(&events.last().unwrap()["response"]);
    assert_eq!(deltas(&events, "response.output_text.delta", "/delta"), output.text);
    assert_eq!(deltas(&events, "response.reasoning_summary_text.delta", "/delta"), output.reasoning);
    let arguments: String = output.calls.iter().map(|(_, _, arguments)| arguments.as_str()).collect();
    let streamed = deltas(&events, "response.function_call_arguments.delta", "/delta")
        + &deltas(&events, "response.custom_tool_call_input.delta", "/delta");
    assert_eq!(streamed, arguments);
    let done: Vec<Value> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| event["item"].clone())
        .collect();
    assert_eq!(Value::Array(done), events.last().unwrap()["response"]["output"]);
    output
}

fn openai(response: &Value) -> ModelOutput {
    let mut output = ModelOutput {
        finish: text(response, "/status"),
        usage: response["usage"].clone(),
        ..ModelOutput::default()
    };
    for item in response["output"].as_array().unwrap() {
        match item["type"].as_str().unwrap() {
            "reasoning" => output.reasoning += &text(item, "/summary/0/text"),
            "message" => output.text += &text(item, "/content/0/text"),
            "function_call" => {
                output.calls.push((text(item, "/call_id"), text(item, "/name"), text(item, "/arguments")))
            }
            "custom_tool_call" => {
                output.calls.push((text(item, "/call_id"), text(item, "/name"), text(item, "/input")))
            }
            other => panic!("{other}"),
        }
        let mut item = item.clone();
        item.as_object_mut().unwrap().remove("id");
        output.items.push(item);
    }
    output
}

fn anthropic_stream(response: &HttpResponse) -> ModelOutput {
    let events = response.data();
    for ((name, _), event) in response.events().iter().zip(&events) {
        assert_eq!(name.as_deref(), event["type"].as_str());
    }
    let mut message = events[0]["message"].clone();
    let mut inputs: Vec<String> = Vec::new();
    for event in &events {
        let index = usize::try_from(event["index"].as_u64().unwrap_or_default()).unwrap();
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                message["content"].as_array_mut().unwrap().push(event["content_block"].clone());
                inputs.push(String::new());
            }
            "content_block_delta" => {
                let block = &mut message["content"][index];
                match event["delta"]["type"].as_str().unwrap() {
                    "input_json_delta" => inputs[index] += event["delta"]["partial_json"].as_str().unwrap(),
                    "signature_delta" => block["signature"] = event["delta"]["signature"].clone(),
                    "text_delta" => block["text"] = json!(text(block, "/text") + &text(event, "/delta/text")),
                    "thinking_delta" => {
                        block["thinking"] = json!(text(block, "/thinking") + &text(event, "/delta/thinking"));
                    }
                    other => panic!("{other}"),
                }
            }
            "content_block_stop" if !inputs[index].is_empty() => {
                message["content"][index]["input"] = serde_json::from_str(&inputs[index]).unwrap();
            }
            "message_delta" => {
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                message["usage"] = event["usage"].clone();
            }
            _ => {}
        }
    }
    assert_eq!(events.last().unwrap()["type"], "message_stop");
    anthropic(&message)
}

fn anthropic(message: &Value) -> ModelOutput {
    let mut output = ModelOutput {
        finish: text(message, "/stop_reason"),
        usage: message["usage"].clone(),
        ..ModelOutput::default()
    };
    for block in message["content"].as_array().unwrap() {
        match block["type"].as_str().unwrap() {
            "thinking" => output.reasoning += &text(block, "/thinking"),
            "text" => output.text += &text(block, "/text"),
            "tool_use" => {
                output.calls.push((text(block, "/id"), text(block, "/name"), block["input"].to_string()))
            }
            other => panic!("{other}"),
        }
    }
    output.items.push(json!({"role": "assistant", "content": message["content"]}));
    output
}

fn gemini(chunks: &[Value]) -> ModelOutput {
    let mut output = ModelOutput::default();
    let mut parts = Vec::new();
    for part in chunks
        .iter()
        .flat_map(|chunk| chunk.pointer("/candidates/0/content/parts").unwrap().as_array().unwrap())
    {
        match part.get("functionCall") {
            Some(call) => {
                output.calls.push((text(call, "/id"), text(call, "/name"), call["args"].to_string()))
            }
            None if part["thought"] == true => output.reasoning += &text(part, "/text"),
            None => output.text += &text(part, "/text"),
        }
        if part["thought"] != true && (part["text"] != "" || part.get("thoughtSignature").is_some()) {
            parts.push(part.clone());
        }
    }
    let last = chunks.last().unwrap();
    output.finish = text(last, "/candidates/0/finishReason");
    output.usage = last["usageMetadata"].clone();
    output.items.push(json!({"role": "model", "parts": parts}));
    output
}

fn chat_stream(response: &HttpResponse) -> ModelOutput {
    assert_eq!(response.events().last().unwrap().1, "[DONE]");
    let chunks = response.data();
    let delta = |pointer: &str| -> String { chunks.iter().map(|chunk| text(chunk, pointer)).collect() };
    let mut message = json!({"role": "assistant", "content": delta("/choices/0/delta/content")});
    let mut calls: Vec<Value> = Vec::new();
    for piece in chunks.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta/tool_calls/0")) {
        let index = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
        if index == calls.len() {
            let mut begin = piece.clone();
            begin.as_object_mut().unwrap().remove("index");
            calls.push(begin);
        } else {
            let arguments = text(&calls[index], "/function/arguments") + &text(piece, "/function/arguments");
            calls[index]["function"]["arguments"] = json!(arguments);
        }
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    message["reasoning_content"] = json!(delta("/choices/0/delta/reasoning_content"));
    let choice = json!({"message": message, "finish_reason": delta("/choices/0/finish_reason")});
    chat(&json!({"choices": [choice], "usage": chunks.last().unwrap()["usage"]}))
}

fn chat(completion: &Value) -> ModelOutput {
    let mut message = completion["choices"][0]["message"].clone();
    let mut output = ModelOutput {
        reasoning: text(&message, "/reasoning_content"),
        text: text(&message, "/content"),
        finish: text(completion, "/choices/0/finish_reason"),
        usage: completion["usage"].clone(),
        ..ModelOutput::default()
    };
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        output.calls.push((
            text(call, "/id"),
            text(call, "/function/name"),
            text(call, "/function/arguments"),
        ));
    }
    message.as_object_mut().unwrap().remove("reasoning_content");
    output.items.push(message);
    output
}
