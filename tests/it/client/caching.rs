//! Section 8.6: prompt caching. The server compares the bytes of each request with those of the previous one.

use pintle_llm::{HistoryItem, Message, Request, ToolDefinition, Usage};
use pintle_testkit::{Call, Dialect, RecordedRequest, Script, Turn};
use serde_json::{Value, json};

use super::harness::{ClientHarness, read_file};

per_provider!(most_of_the_prompt_is_cached_from_turn_five);

/// Usage and requests of a session of several model turns.
pub(super) struct Session {
    pub(super) usages: Vec<Usage>,
    requests: Vec<RecordedRequest>,
}

/// Runs one conversation of `turns` model turns, each of which reads a file. Every other response is streamed.
pub(super) async fn session(dialect: Dialect, turns: usize, options: Value) -> Session {
    let answer = |turn: usize| {
        let path = format!("src/part_{turn}.rs");
        Turn::text("I'll read on.")
            .with_reasoning("There is more to read.")
            .with_call(Call::new("read_file", json!({"file_path": path})))
    };
    let script = (0..turns).map(answer).fold(Script::new("session"), Script::with_turn);
    let harness = ClientHarness::start(dialect, script).await;
    let mut history: Vec<HistoryItem> = vec![
        Message::system("You are careful. ".repeat(60)).into(),
        Message::user("Read the whole project.").into(),
    ];
    let mut usages = Vec::new();
    for turn in 0..turns {
        let mut request = harness.request(history.clone()).with_tools(tools());
        if options.is_object() {
            request = request.with_provider_options(dialect.name(), options.clone());
        }
        let response =
            if turn % 2 == 0 { harness.streamed(request).await } else { harness.complete(request).await };
        let id = response.tool_calls().next().expect("a call").id.clone();
        let lines = format!("// the lines of part {turn}\n").repeat(8);
        history.extend([response.message.into(), Message::tool_result(id, lines, false).into()]);
        usages.push(response.usage);
    }
    let requests = harness.server.requests();
    assert!(requests.iter().all(|request| request.status == Some(200)), "{requests:?}");
    Session { usages, requests }
}

fn tools() -> Vec<ToolDefinition> {
    let schema = json!({"type": "object", "properties": {"pattern": {"type": "string"}}});
    vec![read_file(), ToolDefinition::new("glob", "Finds files.", schema).unwrap()]
}

async fn most_of_the_prompt_is_cached_from_turn_five(dialect: Dialect) {
    let session = session(dialect, 8, Value::Null).await;
    for (turn, usage) in session.usages.iter().enumerate().skip(4) {
        let (read, prompt) = (usage.cache_read_tokens.unwrap_or(0), usage.input_tokens);
        assert!(read * 2 > prompt, "turn {}: {read} of {prompt}", turn + 1);
    }
}

/// Returns the names in a value that speak of caching or of a conversation stored at the provider, at any depth.
fn cache_settings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let lower = name.to_lowercase();
                if lower.contains("cache") || ["previous_response_id", "conversation"].contains(&&*lower) {
                    found.push(name.clone());
                }
                cache_settings(field, found);
            }
        }
        Value::Array(list) => list.iter().for_each(|element| cache_settings(element, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Expects requests that leave caching to the provider.
pub(crate) fn expect_no_cache_settings(requests: &[RecordedRequest]) {
    assert!(!requests.is_empty());
    for request in requests {
        let mut found: Vec<String> = request.headers.iter().map(|(name, _)| name.clone()).collect();
        found.retain(|name| name.contains("cache"));
        cache_settings(&request.body, &mut found);
        assert!(found.is_empty(), "{found:?} in {}", request.body);
        assert!(!request.path.to_lowercase().contains("cache"), "{}", request.path);
    }
}

/// Expects each request to read all of the previous one from the cache, up to rounding to tokens. The server compares
/// bytes, so a single changed byte would show.
pub(crate) fn expect_complete_reads(usages: &[Usage]) {
    assert!(usages.len() > 1);
    let mut before = 0;
    for (turn, usage) in usages.iter().enumerate() {
        let read = usage.cache_read_tokens.unwrap_or(0);
        assert!(read.abs_diff(before) <= 1, "turn {}: read {read} of the previous {before}", turn + 1);
        assert!(usage.input_tokens > read, "turn {}: {usage:?}", turn + 1);
        before = usage.input_tokens;
    }
}

/// Caching works without any configuration, and the reads are those in the provider's record at `recorded`.
async fn caches_automatically(dialect: Dialect, recorded: &str) {
    let session = session(dialect, 6, Value::Null).await;
    expect_no_cache_settings(&session.requests);
    expect_complete_reads(&session.usages);
    for (turn, usage) in session.usages.iter().enumerate() {
        let raw = usage.raw.as_ref().and_then(|raw| raw.pointer(recorded)).and_then(Value::as_u64);
        assert_eq!(usage.cache_read_tokens, raw, "turn {}", turn + 1);
    }
}

#[tokio::test]
async fn openai_caches_automatically() {
    caches_automatically(Dialect::OpenAiResponses, "/input_tokens_details/cached_tokens").await;
}

#[tokio::test]
async fn gemini_caches_automatically() {
    caches_automatically(Dialect::Gemini, "/cachedContentTokenCount").await;
}

/// Returns a request late in a conversation, with tools and a system prompt of two parts.
fn long_conversation(harness: &ClientHarness) -> Request {
    let messages = [
        Message::system("Be careful."),
        Message::system("Be brief."),
        Message::user("one"),
        Message::assistant("1"),
        Message::user("two"),
        Message::assistant("2"),
        Message::user("three").with_part(pintle_llm::ContentPart::text("and a half")),
    ];
    harness.request(messages).with_tools(tools())
}

async fn anthropic() -> ClientHarness {
    let script = ["1", "2", "3.5"].map(Turn::text).into_iter().fold(Script::new("count"), Script::with_turn);
    ClientHarness::start(Dialect::AnthropicMessages, script).await
}

/// Returns the indices of the elements with a cache point.
fn points(list: &Value) -> Vec<usize> {
    let list = list.as_array().expect("a list");
    let marked = |element: &Value| element["cache_control"] == json!({"type": "ephemeral"});
    list.iter().enumerate().filter(|(_, element)| marked(element)).map(|(index, _)| index).collect()
}

#[tokio::test]
async fn anthropic_sets_cache_points_by_its_rule() {
    let harness = anthropic().await;
    let response = harness.complete(long_conversation(&harness)).await;
    assert!(response.usage.cache_write_tokens.is_some_and(|written| written > 0), "{:?}", response.usage);
    let sent = harness.sent();
    assert_eq!(points(&sent.body["tools"]), [1], "the last tool");
    assert_eq!(points(&sent.body["system"]), [1], "the last system block");
    let messages = sent.body["messages"].as_array().unwrap();
    let of_messages: Vec<Vec<usize>> = messages.iter().map(|message| points(&message["content"])).collect();
    assert_eq!(
        of_messages,
        [vec![], vec![], vec![0], vec![], vec![1]],
        "the ends of the last two of the user"
    );
    let all = String::from_utf8_lossy(&sent.raw_body).matches("cache_control").count();
    assert_eq!(all, 4, "the API takes no more");
}

#[tokio::test]
async fn anthropic_sends_the_beta_header_of_cache_points() {
    let beta = "prompt-caching-2024-07-31";
    let harness = anthropic().await;
    let request = || long_conversation(&harness);
    let betas = || harness.sent().header("anthropic-beta").unwrap_or_default().to_owned();
    harness.complete(request()).await;
    assert_eq!(betas(), beta);
    let mine = json!({"beta_headers": ["files-api-2025-04-14", beta]});
    harness.complete(request().with_provider_options("anthropic", mine)).await;
    assert_eq!(betas(), format!("files-api-2025-04-14,{beta}"), "each once");
    harness.complete(request().with_provider_options("anthropic", json!({"auto_cache": false}))).await;
    assert_eq!(betas(), "");
    let by_hand = json!({"auto_cache": false, "cache_control": {"type": "ephemeral"}});
    harness.complete(request().with_provider_options("anthropic", by_hand)).await;
    assert_eq!(betas(), beta, "for a point that was set by hand too");
}

#[tokio::test]
async fn anthropic_counts_reads_and_writes() {
    let session = session(Dialect::AnthropicMessages, 5, Value::Null).await;
    let mut cached_before = 0;
    for (turn, usage) in session.usages.iter().enumerate() {
        let raw = usage.raw.as_ref().expect("the provider's own record");
        let recorded = |name: &str| raw[name].as_u64();
        assert_eq!(usage.cache_read_tokens, recorded("cache_read_input_tokens"));
        assert_eq!(usage.cache_write_tokens, recorded("cache_creation_input_tokens"));
        let (read, written) = (usage.cache_read_tokens.unwrap(), usage.cache_write_tokens.unwrap());
        assert!(written > 0, "turn {}", turn + 1);
        // Each request reads what the previous one wrote, except for rounding to tokens.
        assert!(read.abs_diff(cached_before) <= 1, "turn {}: {read}, not {cached_before}", turn + 1);
        cached_before = read + written;
    }
}

#[tokio::test]
async fn anthropic_caching_can_be_disabled() {
    let session = session(Dialect::AnthropicMessages, 3, json!({"auto_cache": false})).await;
    for (usage, request) in session.usages.iter().zip(&session.requests) {
        assert_eq!((usage.cache_read_tokens, usage.cache_write_tokens), (Some(0), Some(0)));
        assert!(!String::from_utf8_lossy(&request.raw_body).contains("cache_control"));
        assert!(request.body.get("auto_cache").is_none(), "it is no field of the body");
        assert_eq!(request.header("anthropic-beta"), None);
    }
}

#[tokio::test]
async fn a_changed_tool_invalidates_the_cache() {
    for dialect in Dialect::ALL {
        let script = Script::new("two").with_turn(Turn::text("1")).with_turn(Turn::text("2"));
        let harness = ClientHarness::start(dialect, script).await;
        let question: HistoryItem = Message::user("one ".repeat(100)).into();
        let first = harness.complete(harness.request([question.clone()]).with_tools(tools())).await;
        let history = [question, first.message.into(), Message::user("two").into()];
        let asked = |tools| harness.request(history.clone()).with_tools(tools);
        let same = harness.complete(asked(tools())).await.usage;
        assert!(same.cache_read_tokens.is_some_and(|read| read > 50), "{dialect}: {same:?}");
        let mut changed = tools();
        changed[0].description.push('!');
        let other = harness.complete(asked(changed)).await.usage;
        assert_eq!(other.cache_read_tokens.unwrap_or(0), 0, "{dialect}: {other:?}");
    }
}
