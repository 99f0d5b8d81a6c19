//! A growing conversation resends the same bytes, so that a provider's cache can serve them. The comparison uses the
//! bytes received by the server, not parsed values.
//!
//! For Anthropic the unit is the content block, since the user's next text is appended to the message with the results.
//! Cache points are removed first: they move with the conversation by design and are not part of the cached content.
//! Their positions are checked separately.

use std::collections::BTreeMap;
use std::path::Path;

use pintle_llm::{
    Client, ContentPart, HistoryItem, ImageData, Message, ReasoningEffort, Request, Role, Segment,
    ToolDefinition, ToolResult,
};
use pintle_testkit::{Call, Dialect, RecordedRequest, Script, ScriptedServer, ServerOptions, Turn};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::harness::{KEY, client, in_each_dialect};

in_each_dialect!(
    fifty_turns_keep_the_prefix,
    a_stored_history_sends_the_same_bytes,
    the_prefix_chain_names_the_changed_segment,
);

/// Number of model turns in the long conversation.
const TURNS: usize = 50;

/// Number of turns per task.
const TASK: usize = 5;

const CACHE_POINT: &str = r#","cache_control":{"type":"ephemeral"}"#;

fn model(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiResponses => "gpt-5.2",
        Dialect::AnthropicMessages => "claude-sonnet-4-5",
        Dialect::Gemini => "gemini-3-pro-preview",
        Dialect::ChatCompletions => "local-model",
    }
}

fn ends_a_task(turn: usize) -> bool {
    turn % TASK == TASK - 1
}

/// Each turn has reasoning and text. All but the last of a task call tools, every third of them two in parallel.
fn script() -> Script {
    let call = |turn: usize, file: &str| Call::new("read_file", json!({"path": format!("{turn}/{file}")}));
    let turn = |number: usize| {
        let turn = Turn::text(format!("Turn {number}.")).with_reasoning(format!("Thought {number}."));
        match (ends_a_task(number), number % 3) {
            (true, _) => turn,
            (false, 0) => turn.with_call(call(number, "a.rs")).with_call(call(number, "b.png")),
            (false, _) => turn.with_call(call(number, "c.rs")),
        }
    };
    (0..TURNS).map(turn).fold(Script::new("long"), Script::with_turn)
}

fn tools() -> Vec<ToolDefinition> {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    vec![
        ToolDefinition::new("read_file", "Reads a file.", schema.clone()).unwrap(),
        ToolDefinition::new("list", "Lists a directory.", schema).unwrap(),
    ]
}

fn png(bytes: &[u8]) -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\n", bytes].concat()
}

/// A real adapter, the server that plays the provider, and the conversation between them.
struct Conversation {
    dialect: Dialect,
    server: ScriptedServer,
    client: Client,
    history: Vec<HistoryItem>,
}

impl Conversation {
    async fn start(dialect: Dialect, script: Script) -> Self {
        let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
        let client = client(&server, dialect, KEY);
        Self { dialect, server, client, history: Vec::new() }
    }

    fn request(&self, history: &[HistoryItem]) -> Request {
        Request::new(model(self.dialect), history.to_vec())
            .with_tools(tools())
            .with_max_tokens(32_000)
            .with_reasoning_effort(ReasoningEffort::High)
    }

    /// Runs one model turn and appends the results of its calls.
    async fn turn(&mut self) {
        let response = self.client.complete(self.request(&self.history)).await.unwrap();
        let results: Vec<ToolResult> = response
            .tool_calls()
            .map(|call| {
                let path = call.arguments["path"].as_str().expect("a path");
                let failed = path.ends_with("7/c.rs");
                let result = ToolResult::new(&call.id, format!("the lines of {path}"), failed);
                if path.ends_with(".png") {
                    result.with_image(ImageData::data(png(path.as_bytes()), "image/png"))
                } else {
                    result
                }
            })
            .collect();
        self.history.push(response.message.into());
        if !results.is_empty() {
            self.history.push(Message::tool_results(results).into());
        }
    }

    /// Runs the long conversation. The first question has an image in a file, which changes later.
    async fn fifty_turns(&mut self, picture: &Path) {
        std::fs::write(picture, png(b"before")).unwrap();
        let question = vec![
            ContentPart::text("What is in here?"),
            ImageData::path(picture.to_string_lossy()).into(),
            ImageData::url("https://example.com/b.png").into(),
        ];
        self.history.push(Message::system("You are careful.").into());
        self.history.push(Message::new(Role::User, question).into());
        for turn in 0..TURNS {
            self.turn().await;
            match (ends_a_task(turn), turn % 4) {
                (true, _) => self.history.push(Message::user(format!("Task {turn}.")).into()),
                (false, 0) => self.history.push(Message::user(format!("Steered at {turn}.")).into()),
                (false, _) => {}
            }
            if turn == TURNS / 2 {
                std::fs::write(picture, png(b"after")).unwrap();
            }
        }
        assert!(self.server.finished(self.dialect));
    }

    /// Returns all requests, which must be valid.
    fn requests(&self) -> Vec<RecordedRequest> {
        let requests = self.server.requests();
        for request in &requests {
            assert_eq!((request.status, request.violations.as_slice()), (Some(200), [].as_slice()));
        }
        requests
    }
}

/// Parts of a body as sent: tools, system prompt, and items of the conversation.
#[derive(Debug, PartialEq)]
struct SentParts {
    tools: String,
    system: String,
    items: Vec<String>,
}

impl SentParts {
    fn read(dialect: Dialect, body: &[u8]) -> Self {
        let (system, list) = match dialect {
            Dialect::OpenAiResponses => ("instructions", "input"),
            Dialect::AnthropicMessages => ("system", "messages"),
            Dialect::Gemini => ("systemInstruction", "contents"),
            Dialect::ChatCompletions => ("", "messages"),
        };
        let body: BTreeMap<String, &RawValue> = serde_json::from_slice(body).unwrap();
        let raw = |name: &str| body.get(name).map(|value| value.get().to_owned()).unwrap_or_default();
        let list: Vec<&RawValue> = serde_json::from_str(body[list].get()).unwrap();
        let mut sent = Self { tools: raw("tools"), system: raw(system), items: Vec::new() };
        for item in list {
            match dialect {
                Dialect::OpenAiResponses | Dialect::Gemini => sent.items.push(item.get().to_owned()),
                Dialect::AnthropicMessages => sent.items.extend(blocks(item)),
                // Here the system prompt is a message.
                Dialect::ChatCompletions if role(item) == "system" => sent.system.push_str(item.get()),
                Dialect::ChatCompletions => sent.items.push(item.get().to_owned()),
            }
        }
        sent
    }

    /// Returns the first part in which `next` differs, as the prefix chain names it; `None` if `next` only appends.
    fn first_moved(&self, next: &Self) -> Option<ChangedPart> {
        if self.tools != next.tools {
            return Some(ChangedPart::Tools);
        }
        if self.system != next.system {
            return Some(ChangedPart::System);
        }
        let same = self.items.iter().zip(&next.items).take_while(|(one, two)| one == two).count();
        (same < self.items.len()).then_some(ChangedPart::Item(same))
    }
}

/// First difference between two bodies.
#[derive(Debug, PartialEq)]
enum ChangedPart {
    Tools,
    System,
    Item(usize),
}

fn role(message: &RawValue) -> String {
    let message: Value = serde_json::from_str(message.get()).unwrap();
    message["role"].as_str().unwrap_or_default().to_owned()
}

/// Returns the content blocks of an Anthropic message, each with its role and without its cache point.
fn blocks(message: &RawValue) -> Vec<String> {
    let role = role(message);
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(message.get()).unwrap();
    let blocks: Vec<&RawValue> = serde_json::from_str(members["content"].get()).unwrap();
    let bare = |block: &&RawValue| match block.get().strip_suffix(&format!("{CACHE_POINT}}}")) {
        Some(block) => format!("{role}: {block}}}"),
        None => format!("{role}: {}", block.get()),
    };
    blocks.iter().map(bare).collect()
}

async fn fifty_turns_keep_the_prefix(dialect: Dialect) {
    let directory = tempfile::tempdir().unwrap();
    let mut conversation = Conversation::start(dialect, script()).await;
    conversation.fifty_turns(&directory.path().join("picture.png")).await;
    let requests = conversation.requests();
    assert_eq!(requests.len(), TURNS);
    let sealed = if dialect == Dialect::ChatCompletions { 0 } else { TURNS };
    assert_eq!(seals(&conversation.history).len(), sealed);
    for (turn, pair) in requests.windows(2).enumerate() {
        let [before, now] = [&pair[0], &pair[1]].map(|request| SentParts::read(dialect, &request.raw_body));
        assert_eq!(before.first_moved(&now), None, "turn {turn}: {before:#?} became {now:#?}");
        assert!(now.items.len() >= before.items.len() + 2, "turn {turn}: the answer and what followed it");
        continues_to_the_byte(dialect, &pair[0].raw_body, &pair[1].raw_body);
    }
    let last = String::from_utf8(requests[TURNS - 1].raw_body.clone()).unwrap();
    for words in ["Turn 0.", "the lines of 48", "Steered at 48.", "Task 44.", "https://example.com/b.png"] {
        assert!(last.contains(words), "{words:?} is not in {last}");
    }
    for seal in seals(&conversation.history[..conversation.history.len() - 2]) {
        assert_eq!(last.matches(&seal).count(), 1, "{seal}");
    }
    if dialect == Dialect::AnthropicMessages {
        requests.iter().for_each(check_cache_points);
    }
}

/// Returns the seals of the server: each turn has its own, except with compatible servers, which seal nothing.
fn seals(history: &[HistoryItem]) -> Vec<String> {
    let seal = |part: &ContentPart| match part {
        ContentPart::Thinking(data) => data.signature.clone(),
        ContentPart::ToolCall(call) => call.signature.clone(),
        ContentPart::Text(data) => data.signature.clone(),
        _ => None,
    };
    history.iter().flat_map(|item| item.content.iter().filter_map(seal)).collect()
}

/// Stronger than comparing items: the body itself is a continuation of the previous one. The conversation is its last
/// part, and nothing before it changes.
pub(crate) fn continues_to_the_byte(dialect: Dialect, before: &[u8], now: &[u8]) {
    let text = |body: &[u8]| {
        let text = String::from_utf8(body.to_vec()).unwrap();
        if dialect == Dialect::AnthropicMessages { text.replace(CACHE_POINT, "") } else { text }
    };
    // The closing brackets of the list and the body; for Anthropic also those of the last message, which may be
    // extended.
    let end = if dialect == Dialect::AnthropicMessages { "]}]}" } else { "]}" };
    let before = text(before);
    let begun = before.strip_suffix(end).expect("the conversation stands last");
    assert!(text(now).starts_with(begun), "{} does not begin with {begun}", text(now));
}

/// At most four cache points, always at the same positions: the last tool, the last block of the system prompt, and the
/// ends of the user's last two messages.
fn check_cache_points(request: &RecordedRequest) {
    let marked = |list: &Value| -> Vec<usize> {
        let elements = list.as_array().unwrap().iter().enumerate();
        elements
            .filter(|(_, element)| element.get("cache_control").is_some())
            .map(|(index, _)| index)
            .collect()
    };
    let body = &request.body;
    assert_eq!((marked(&body["tools"]), marked(&body["system"])), (vec![1], vec![0]));
    let of_user: Vec<&Value> =
        body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user").collect();
    for (from_the_end, message) in of_user.iter().rev().enumerate() {
        let last = message["content"].as_array().unwrap().len() - 1;
        let expected = if from_the_end < 2 { vec![last] } else { vec![] };
        assert_eq!(marked(&message["content"]), expected, "message of the user {from_the_end} from the end");
    }
    let all = String::from_utf8_lossy(&request.raw_body).matches("cache_control").count();
    assert_eq!(all, 2 + of_user.len().min(2), "none stands elsewhere");
}

async fn a_stored_history_sends_the_same_bytes(dialect: Dialect) {
    let directory = tempfile::tempdir().unwrap();
    let mut conversation = Conversation::start(dialect, script()).await;
    // Only bytes in the history itself, since a file would be read again after a resume.
    let picture = ImageData::data(png(b"picture"), "image/png");
    conversation.history.push(Message::system("You are careful.").into());
    conversation
        .history
        .push(Message::new(Role::User, vec![ContentPart::text("Look."), picture.into()]).into());
    for turn in 0..8 {
        conversation.turn().await;
        if ends_a_task(turn) {
            conversation.history.push(Message::user("Go on.").into());
        }
    }
    let file = directory.path().join("session.json");
    std::fs::write(&file, serde_json::to_vec(&conversation.history).unwrap()).unwrap();
    let stored: Vec<HistoryItem> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for history in [&conversation.history, &stored] {
        conversation.client.complete(conversation.request(history)).await.unwrap();
    }
    let requests = conversation.requests();
    let [kept, resumed] =
        [&requests[8], &requests[9]].map(|request| String::from_utf8_lossy(&request.raw_body));
    assert_eq!(kept, resumed);
}

/// Modifies the tools of a request.
fn with_tools(request: &mut Request, change: fn(&mut Vec<ToolDefinition>)) {
    let mut tools = request.tools.iter().map(|tool| tool.definition().clone()).collect();
    change(&mut tools);
    request.tools = tools.into();
}

/// A change, the segment that the chain reports, and the first difference in the bytes.
type Change = (fn(&mut Request), Option<Segment>, Option<ChangedPart>);

const CHANGES: &[Change] = &[
    (|_| {}, None, None),
    (|request| request.messages.push(Message::user("And?").into()), None, None),
    (
        |request| with_tools(request, |tools| tools[0].description.push('!')),
        Some(Segment::Tools),
        Some(ChangedPart::Tools),
    ),
    (
        |request| {
            with_tools(request, |tools| {
                tools[1].parameters["properties"]["path"]["type"] = json!("integer");
            });
        },
        Some(Segment::Tools),
        Some(ChangedPart::Tools),
    ),
    (|request| with_tools(request, |tools| tools.swap(0, 1)), Some(Segment::Tools), Some(ChangedPart::Tools)),
    (
        |request| request.messages[0] = Message::system("You are quick.").into(),
        Some(Segment::System),
        Some(ChangedPart::System),
    ),
    (
        |request| {
            request.messages[0] = Message::system("You are quick.").into();
            with_tools(request, |tools| tools.truncate(1));
        },
        Some(Segment::Tools),
        Some(ChangedPart::Tools),
    ),
    (
        |request| request.messages[1] = Message::user("What else?").into(),
        Some(Segment::Message(1)),
        Some(ChangedPart::Item(0)),
    ),
    (
        |request| request.messages[3] = Message::user("Two!").into(),
        Some(Segment::Message(3)),
        Some(ChangedPart::Item(2)),
    ),
    (|request| request.messages.truncate(4), Some(Segment::Message(4)), Some(ChangedPart::Item(3))),
];

/// The prefix chain, the bytes and the server's cache agree on the first change of two requests.
async fn the_prefix_chain_names_the_changed_segment(dialect: Dialect) {
    let base = || {
        let words = "One thing after the other. ".repeat(20);
        let messages = [
            Message::system("You are careful."),
            Message::user(words),
            Message::assistant("Done."),
            Message::user("Two."),
            Message::assistant("Done too."),
            Message::user("Three."),
        ];
        Request::new(model(dialect), messages).with_tools(tools()).with_max_tokens(100)
    };
    for (index, (change, segment, moved)) in CHANGES.iter().enumerate() {
        let script = (0..3).map(|_| Turn::text("Yes.")).fold(Script::new("chain"), Script::with_turn);
        let conversation = Conversation::start(dialect, script).await;
        let mut changed = base();
        change(&mut changed);
        assert_eq!(base().prefix_chain().first_moved(&changed.prefix_chain()), *segment, "change {index}");
        conversation.client.complete(base()).await.unwrap();
        let cached =
            conversation.client.complete(changed).await.unwrap().usage.cache_read_tokens.unwrap_or(0);
        let requests = conversation.requests();
        let [before, now] = [0, 1].map(|index: usize| SentParts::read(dialect, &requests[index].raw_body));
        assert_eq!(before.first_moved(&now), *moved, "change {index}: {before:#?} became {now:#?}");
        match segment {
            // A prefix without the conversation is shorter.
            Some(Segment::Tools | Segment::System) => assert!(cached < 100, "change {index}: {cached}"),
            Some(Segment::Message(_)) => {}
            None => assert!(cached > 100, "change {index}: {cached}"),
        }
    }
}
