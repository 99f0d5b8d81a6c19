//! `pintle ask --output stream-json` prints exactly the events of the adapter.
#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use futures_util::StreamExt as _;
use pintle_llm::{Message, ProviderAdapter, Request};
use pintle_providers::{Anthropic, Gemini, OpenAi, OpenAiCompatible};
use serde_json::{Value, json};

use crate::harness::{KEY, pintle, run};

const MODEL: &str = "some-model";

/// Stream in one dialect with its expected events.
struct Case {
    provider: &'static str,
    /// Path of the base URL.
    path: &'static str,
    key: &'static str,
    adapter: fn(String) -> Arc<dyn ProviderAdapter>,
    data: Vec<Value>,
    events: &'static str,
}

fn cases() -> [Case; 4] {
    [
        Case {
            provider: "openai",
            path: "/v1",
            key: "OPENAI_API_KEY",
            adapter: |url| Arc::new(OpenAi::builder(KEY).with_base_url(url).build().unwrap()),
            data: responses(),
            events: "STREAM_START REASONING_START REASONING_DELTA REASONING_END TEXT_START TEXT_DELTA TEXT_DELTA \
                     TEXT_END PROVIDER_EVENT TOOL_CALL_START TOOL_CALL_DELTA TOOL_CALL_DELTA TOOL_CALL_END FINISH",
        },
        Case {
            provider: "anthropic",
            path: "",
            key: "ANTHROPIC_API_KEY",
            adapter: |url| Arc::new(Anthropic::builder(KEY).with_base_url(url).build().unwrap()),
            data: messages(),
            events: "STREAM_START REASONING_START REASONING_DELTA REASONING_END TEXT_START TEXT_DELTA TEXT_DELTA \
                     TEXT_END PROVIDER_EVENT TOOL_CALL_START TOOL_CALL_DELTA TOOL_CALL_DELTA TOOL_CALL_END FINISH",
        },
        Case {
            provider: "gemini",
            path: "",
            key: "GEMINI_API_KEY",
            adapter: |url| Arc::new(Gemini::builder(KEY).with_base_url(url).build().unwrap()),
            data: contents(),
            events: "STREAM_START REASONING_START REASONING_DELTA REASONING_END TEXT_START TEXT_DELTA TEXT_DELTA \
                     TEXT_END PROVIDER_EVENT TOOL_CALL_START TOOL_CALL_END FINISH",
        },
        Case {
            provider: "openai-compatible",
            path: "/v1",
            key: "OPENAI_API_KEY",
            adapter: |url| Arc::new(OpenAiCompatible::builder(url).with_api_key(KEY).build().unwrap()),
            data: chunks(),
            events: "STREAM_START REASONING_START REASONING_DELTA REASONING_END TEXT_START TEXT_DELTA TEXT_DELTA \
                     TEXT_END TOOL_CALL_START TOOL_CALL_DELTA TOOL_CALL_DELTA TOOL_CALL_END FINISH",
        },
    ]
}

/// OpenAI Responses: reasoning, text in two pieces, a provider-side search, a call in two pieces.
fn responses() -> Vec<Value> {
    let items = [
        json!({"type": "reasoning", "id": "rs", "encrypted_content": "ENC", "summary": [{"type": "summary_text", "text": "Hm."}]}),
        json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Héllo."}]}),
        json!({"type": "web_search_call", "id": "ws", "status": "completed"}),
        json!({"type": "function_call", "id": "fc", "call_id": "c1", "name": "look", "arguments": "{\"at\": 1}"}),
    ];
    let done = |index: usize| json!({"type": "response.output_item.done", "output_index": index, "item": items[index]});
    let delta = |kind: &str, index: usize, delta: &str| json!({"type": format!("response.{kind}.delta"), "output_index": index, "content_index": 0, "delta": delta});
    let call = json!({"type": "function_call", "id": "fc", "call_id": "c1", "name": "look", "arguments": ""});
    let usage = json!({"input_tokens": 9, "output_tokens": 7, "total_tokens": 16});
    vec![
        json!({"type": "response.created", "response": {"id": "r1", "model": MODEL}}),
        done(0),
        delta("output_text", 1, "Hé"),
        delta("output_text", 1, "llo."),
        done(1),
        done(2),
        json!({"type": "response.output_item.added", "output_index": 3, "item": call}),
        delta("function_call_arguments", 3, "{\"at\""),
        delta("function_call_arguments", 3, ": 1}"),
        done(3),
        json!({"type": "response.completed", "response": {
            "id": "r1", "model": MODEL, "status": "completed", "output": items, "usage": usage}}),
    ]
}

/// Anthropic Messages: the same.
fn messages() -> Vec<Value> {
    let block = |index: usize, block: Value, deltas: &[Value]| {
        let start = json!({"type": "content_block_start", "index": index, "content_block": block});
        let stop = json!({"type": "content_block_stop", "index": index});
        let deltas =
            deltas.iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta}));
        [start].into_iter().chain(deltas).chain([stop]).collect::<Vec<_>>()
    };
    let text = |text: &str| json!({"type": "text_delta", "text": text});
    let piece = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
    let thinking = json!({"type": "thinking", "thinking": "", "signature": ""});
    let thoughts = [
        json!({"type": "thinking_delta", "thinking": "Hm."}),
        json!({"type": "signature_delta", "signature": "SIG"}),
    ];
    let search =
        json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}});
    let call = json!({"type": "tool_use", "id": "c1", "name": "look", "input": {}});
    [
        vec![json!({"type": "message_start", "message": {"id": "r1", "model": MODEL, "content": [],
            "usage": {"input_tokens": 9, "output_tokens": 1}}})],
        block(0, thinking, &thoughts),
        block(1, json!({"type": "text", "text": ""}), &[text("Hé"), text("llo.")]),
        block(2, search, &[]),
        block(3, call, &[piece("{\"at\""), piece(": 1}")]),
        vec![
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}),
            json!({"type": "message_stop"}),
        ],
    ]
    .concat()
}

/// Gemini: the same, with complete arguments.
fn contents() -> Vec<Value> {
    let chunk = |parts: Value| json!({"responseId": "r1", "modelVersion": MODEL, "candidates": [{"content": {"parts": parts}}]});
    let call =
        json!({"functionCall": {"id": "c1", "name": "look", "args": {"at": 1}}, "thoughtSignature": "SIG"});
    let mut last = chunk(json!([call]));
    last["candidates"][0]["finishReason"] = "STOP".into();
    last["usageMetadata"] = json!({"promptTokenCount": 9, "candidatesTokenCount": 7, "totalTokenCount": 16});
    vec![
        chunk(json!([{"text": "Hm.", "thought": true}])),
        chunk(json!([{"text": "Hé"}])),
        chunk(json!([{"text": "llo."}])),
        chunk(json!([{"executableCode": {"language": "PYTHON", "code": "1"}}])),
        last,
    ]
}

/// Chat Completions: the same without a search.
fn chunks() -> Vec<Value> {
    let chunk = |delta: Value| json!({"id": "r1", "model": MODEL, "choices": [{"index": 0, "delta": delta}]});
    let call = |id: &str, name: Value, piece: &str| json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": piece}}]});
    vec![
        chunk(json!({"reasoning_content": "Hm."})),
        chunk(json!({"content": "Hé"})),
        chunk(json!({"content": "llo."})),
        chunk(call("c1", "look".into(), "{\"at\"")),
        chunk(call("", Value::Null, ": 1}")),
        json!({"id": "r1", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16}}),
    ]
}

/// Returns a stream of these events, each after `before`.
fn stream(data: &[Value], before: &str) -> String {
    data.iter().map(|data| format!("{before}data: {data}\r\n\r\n")).collect()
}

/// Serves this stream several times and returns the address.
fn serve(events: String, times: usize) -> (String, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let server = thread::spawn(move || {
        for _ in 0..times {
            let (mut socket, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !is_complete(&request) {
                let mut bytes = [0; 4096];
                let read = socket.read(&mut bytes).unwrap();
                assert!(read > 0, "the request ends early");
                request.extend_from_slice(&bytes[..read]);
            }
            socket.write_all(format!("{head}{events}").as_bytes()).unwrap();
        }
    });
    (address, server)
}

fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).into_owned();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}

#[test]
fn ask_stream_equals_the_adapter_events() {
    for case in cases() {
        let (address, server) = serve(stream(&case.data, ""), 2);
        let url = format!("{address}{}", case.path);
        let mut command = pintle(&["ask", "--provider", case.provider, "--base-url", &url, "--model", MODEL]);
        let output = run(command.args(["--output", "stream-json", "Well?"]).env(case.key, KEY));
        assert_eq!(output.code, Some(0), "{}: {output:?}", case.provider);
        let shown: Vec<Value> =
            output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();

        let adapter = (case.adapter)(url);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let events: Vec<Value> = runtime.block_on(async {
            let stream = adapter.stream(&Request::new(MODEL, [Message::user("Well?")])).await.unwrap();
            stream.map(|event| serde_json::to_value(event.unwrap()).unwrap()).collect().await
        });
        server.join().unwrap();
        assert_eq!(shown, events, "{}", case.provider);

        let kinds: Vec<&str> = shown.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(kinds.join(" "), case.events, "{}", case.provider);
        let finish = shown.last().unwrap();
        assert_eq!(finish["usage"]["output_tokens"], 7, "{}", case.provider);
        let call = &finish["response"]["message"]["content"].as_array().unwrap().last().unwrap()["tool_call"];
        assert_eq!((&call["id"], &call["arguments"]), (&"c1".into(), &json!({"at": 1})), "{}", case.provider);
    }
}

#[test]
fn ask_reads_streams_with_keep_alives() {
    for case in cases() {
        for alive in ["data:\n\n", "data: ping\n\n", "event: keepalive\ndata: keepalive\n\n", ": ping\n\n"] {
            let (address, server) = serve(stream(&case.data, alive), 1);
            let url = format!("{address}{}", case.path);
            let mut command =
                pintle(&["ask", "--provider", case.provider, "--base-url", &url, "--model", MODEL]);
            let output = run(command.args(["--output", "stream-json", "Well?"]).env(case.key, KEY));
            assert_eq!(output.code, Some(0), "{} {alive:?}: {output:?}", case.provider);
            server.join().unwrap();
            let events = output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let kinds: Vec<String> = events.map(|event| event["type"].as_str().unwrap().to_owned()).collect();
            assert_eq!(kinds.join(" "), case.events, "{} {alive:?}", case.provider);
        }
    }
}
