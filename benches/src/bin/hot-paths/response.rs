//! Model responses: decoding of events, and encoding of requests.

use std::{
    io::{BufRead, BufReader, Read as _, Write as _},
    net::TcpListener,
};

use futures_util::StreamExt as _;
use pintle_llm::{
    Client, Finish, FinishReason, Message, ProviderAdapter, Request, Response, StreamAccumulator,
};
use pintle_llm::{StreamEvent, ToolCall, Usage};
use pintle_providers::{Anthropic, Gemini, OpenAi, OpenAiCompatible};

use crate::block_on;

const EVENTS: usize = 5_000;
const ROUNDS: usize = 500;
const REQUESTS: usize = 4;

/// Accumulates the events of a response.
pub(crate) fn accumulate() {
    let delta = StreamEvent::TextDelta { text_id: "0".to_owned(), delta: " token".to_owned() };
    let mut accumulator = StreamAccumulator::new("openai", "bench");
    accumulator.process(&StreamEvent::TextStart { text_id: "0".to_owned() });
    (0..EVENTS).for_each(|_| accumulator.process(&delta));
    let response = Box::new(Response::new("openai", "bench", Message::assistant("")));
    let finish_reason = FinishReason::new(Finish::Stop);
    accumulator.process(&StreamEvent::Finish { finish_reason, usage: Usage::default(), response });
    assert_eq!(accumulator.response().expect("it has its end").text().len(), EVENTS * 6);
}

/// Decodes a stream of the Responses API with many small events.
pub(crate) fn decode_responses() {
    let mut stream = String::from(
        "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"model\":\"m\",\"output\":[]}}\n\n\
         data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"id\":\"i\",\"type\":\"message\",\
         \"role\":\"assistant\",\"content\":[]}}\n\n",
    );
    stream.push_str(
        &"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"i\",\
          \"output_index\":0,\"content_index\":0,\"delta\":\" token\",\"logprobs\":[]}\n\n"
            .repeat(EVENTS),
    );
    stream.push_str(
        "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"model\":\"m\",\"status\":\"completed\",\
         \"output\":[]}}\n\n",
    );
    decode(stream, |url| {
        Box::new(OpenAi::builder("k-bench").with_base_url(url).build().expect("the URL is valid"))
    });
}

/// Decodes a stream of the Messages API with many small events.
pub(crate) fn decode_anthropic() {
    let mut stream = String::from(
        "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\
         \"model\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n\
         data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    );
    stream.push_str(
        &"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\
          \"delta\":{\"type\":\"text_delta\",\"text\":\" token\"}}\n\n"
            .repeat(EVENTS),
    );
    stream.push_str(
        "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
         data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\n\
         data: {\"type\":\"message_stop\"}\n\n",
    );
    decode(stream, |url| {
        Box::new(Anthropic::builder("k-bench").with_base_url(url).build().expect("the URL is valid"))
    });
}

/// Decodes a stream of Chat Completions with many small events, as OpenAI sends them.
pub(crate) fn decode_chat() {
    let chunk = |delta: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
             \"system_fingerprint\":\"f\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\
             \"finish_reason\":{finish}}}],\"usage\":null}}\n\n"
        )
    };
    let mut stream = chunk("{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null}", "null");
    stream.push_str(&chunk("{\"content\":\" token\"}", "null").repeat(EVENTS));
    stream.push_str(&chunk("{}", "\"stop\""));
    stream.push_str("data: [DONE]\n\n");
    decode(stream, |url| Box::new(OpenAiCompatible::builder(url).build().expect("the URL is valid")));
}

/// Decodes a stream of the Gemini API with many small events.
pub(crate) fn decode_gemini() {
    let chunk = |finish: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\" token\"}}],\"role\":\"model\"}},\
             {finish}\"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":1,\"candidatesTokenCount\":1,\
             \"totalTokenCount\":2}},\"modelVersion\":\"m\",\"responseId\":\"r\"}}\r\n\r\n"
        )
    };
    let mut stream = chunk("").repeat(EVENTS);
    stream.push_str(&chunk("\"finishReason\":\"STOP\","));
    decode(stream, |url| {
        Box::new(Gemini::builder("k-bench").with_base_url(url).build().expect("the URL is valid"))
    });
}

/// Encodes requests with a long history. The first request fills the cache of encodings.
pub(crate) fn encode_responses() {
    let stream = "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"model\":\"m\",\
                  \"status\":\"completed\",\"output\":[]}}\n\n";
    let mut messages = vec![Message::system("Be brief."), Message::user("Go on.")];
    for round in 0..ROUNDS {
        let id = format!("call_{round}");
        let call = ToolCall::from_raw(&id, "note", r#"{"text":"noted"}"#);
        messages.push(Message::assistant("").with_part(call.into()));
        messages.push(Message::tool_result(id, "ok", false));
    }
    let request = Request::new("bench", messages);
    let url = serve(stream.to_owned());
    let adapter = OpenAi::builder("k-bench").with_base_url(url).build().expect("the URL is valid");
    block_on(async {
        for _ in 0..REQUESTS {
            let mut stream = adapter.stream(&request).await.expect("it is answered");
            while stream.next().await.is_some() {}
        }
    });
}

fn decode(stream: String, adapter: impl Fn(String) -> Box<dyn ProviderAdapter>) {
    let adapter = adapter(serve(stream));
    let name = adapter.name().to_owned();
    let builder = Client::builder().shared_provider(adapter.into()).default_provider(name);
    let client = builder.build().expect("the default is registered");
    let events = block_on(async {
        let request = Request::new("bench", vec![Message::user("Go on.")]);
        let stream = client.stream(request).await.expect("it is answered");
        stream.filter(|event| std::future::ready(event.is_ok())).count().await
    });
    assert!(events > EVENTS, "only {events} events");
}

/// Starts a thread that answers each request with this stream. Returns its URL.
fn serve(stream: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it listens");
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let mut reader = BufReader::new(connection);
            while let Some(length) = read_head(&mut reader) {
                let mut body = reader.by_ref().take(length);
                std::io::copy(&mut body, &mut std::io::sink()).expect("the request is complete");
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{stream}",
                    stream.len()
                );
                // The client may disconnect once it has what it needs.
                let _ = reader.get_mut().write_all(answer.as_bytes());
            }
        }
    });
    format!("http://{address}")
}

/// Reads the head of a request. Returns the length of the body; `None` at the end of the connection.
fn read_head(reader: &mut impl BufRead) -> Option<u64> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            return Some(length);
        }
    }
}
