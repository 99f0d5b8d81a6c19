//! A conversation that grows sends the bytes that it sent before, so that a provider's cache serves them. Compared are
//! the bytes that arrived at the server, not values that were parsed from them.
//!
//! With Anthropic the unit is the content block, since what the user says next joins the results before it in one
//! message, and the cache points are taken out first: they move on with the conversation by design, and are no part of
//! what is cached. Where they stand is checked apart.

use std::collections::BTreeMap;
use std::path::Path;

use pintle_llm::{
    Client, ContentPart, HistoryItem, ImageData, Message, ReasoningEffort, Request, Role, Segment,
    ToolDefinition, ToolResult,
};
use pintle_testkit::{Call, Dialect, RecordedRequest, Script, ScriptedServer, ServerOptions, Turn};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::lab::{KEY, client, in_each_dialect};

in_each_dialect!(
    fifty_turns_send_what_they_sent_before,
    a_history_that_was_stored_sends_the_same_bytes,
    the_chain_names_what_moved_on_the_wire,
);

/// Model turns of the long conversation.
const TURNS: usize = 50;

/// A task ends with every turn of this many.
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

/// Each turn thinks and speaks; all but the last of a task call tools, every third of them two at once.
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
        ToolDefinition::new("list", "Lists a folder.", schema).unwrap(),
    ]
}

fn png(bytes: &[u8]) -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\n", bytes].concat()
}

/// A provider's adapter, the server that plays the provider, and the conversation between them.
struct Talk {
    dialect: Dialect,
    server: ScriptedServer,
    client: Client,
    history: Vec<HistoryItem>,
}

impl Talk {
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

    /// One model turn with the results of what it calls.
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

    /// The whole long conversation. A picture of the first question is a file, which changes later.
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

    /// All requests, which the server found legal.
    fn requests(&self) -> Vec<RecordedRequest> {
        let requests = self.server.requests();
        for request in &requests {
            assert_eq!((request.status, request.violations.as_slice()), (Some(200), [].as_slice()));
        }
        requests
    }
}

/// The parts of a body as the bytes that were sent: tools, system prompt, and the items of the conversation.
#[derive(Debug, PartialEq)]
struct Sent {
    tools: String,
    system: String,
    items: Vec<String>,
}

impl Sent {
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
                // The system prompt is a message here.
                Dialect::ChatCompletions if role(item) == "system" => sent.system.push_str(item.get()),
                Dialect::ChatCompletions => sent.items.push(item.get().to_owned()),
            }
        }
        sent
    }

    /// The first part in which `next` departs from this, as the prefix chain would name it; `None` if it goes on.
    fn first_moved(&self, next: &Self) -> Option<Moved> {
        if self.tools != next.tools {
            return Some(Moved::Tools);
        }
        if self.system != next.system {
            return Some(Moved::System);
        }
        let same = self.items.iter().zip(&next.items).take_while(|(one, two)| one == two).count();
        (same < self.items.len()).then_some(Moved::Item(same))
    }
}

/// Where two bodies depart from each other.
#[derive(Debug, PartialEq)]
enum Moved {
    Tools,
    System,
    Item(usize),
}

fn role(message: &RawValue) -> String {
    let message: Value = serde_json::from_str(message.get()).unwrap();
    message["role"].as_str().unwrap_or_default().to_owned()
}

/// The content blocks of a message of Anthropic's, each with its role and without its cache point.
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

async fn fifty_turns_send_what_they_sent_before(dialect: Dialect) {
    let folder = tempfile::tempdir().unwrap();
    let mut talk = Talk::start(dialect, script()).await;
    talk.fifty_turns(&folder.path().join("picture.png")).await;
    let requests = talk.requests();
    assert_eq!(requests.len(), TURNS);
    let sealed = if dialect == Dialect::ChatCompletions { 0 } else { TURNS };
    assert_eq!(seals(&talk.history).len(), sealed);
    for (turn, pair) in requests.windows(2).enumerate() {
        let [before, now] = [&pair[0], &pair[1]].map(|request| Sent::read(dialect, &request.raw_body));
        assert_eq!(before.first_moved(&now), None, "turn {turn}: {before:#?} became {now:#?}");
        assert!(now.items.len() >= before.items.len() + 2, "turn {turn}: the answer and what followed it");
        continues_to_the_byte(dialect, &pair[0].raw_body, &pair[1].raw_body);
    }
    let last = String::from_utf8(requests[TURNS - 1].raw_body.clone()).unwrap();
    for words in ["Turn 0.", "the lines of 48", "Steered at 48.", "Task 44.", "https://example.com/b.png"] {
        assert!(last.contains(words), "{words:?} is not in {last}");
    }
    for seal in seals(&talk.history[..talk.history.len() - 2]) {
        assert_eq!(last.matches(&seal).count(), 1, "{seal}");
    }
    if dialect == Dialect::AnthropicMessages {
        requests.iter().for_each(check_cache_points);
    }
}

/// What the server has sealed: each turn has its own, but for compatible servers, which seal nothing.
fn seals(history: &[HistoryItem]) -> Vec<String> {
    let seal = |part: &ContentPart| match part {
        ContentPart::Thinking(data) => data.signature.clone(),
        ContentPart::ToolCall(call) => call.signature.clone(),
        ContentPart::Text(data) => data.signature.clone(),
        _ => None,
    };
    history.iter().flat_map(|item| item.content.iter().filter_map(seal)).collect()
}

/// Stronger than item by item: the body itself goes on where the one before ended. Nothing in front of the
/// conversation changes, and the conversation stands last.
pub(crate) fn continues_to_the_byte(dialect: Dialect, before: &[u8], now: &[u8]) {
    let text = |body: &[u8]| {
        let text = String::from_utf8(body.to_vec()).unwrap();
        if dialect == Dialect::AnthropicMessages { text.replace(CACHE_POINT, "") } else { text }
    };
    // What closes the list and the body; with Anthropic also the last message, which may go on.
    let end = if dialect == Dialect::AnthropicMessages { "]}]}" } else { "]}" };
    let before = text(before);
    let begun = before.strip_suffix(end).expect("the conversation stands last");
    assert!(text(now).starts_with(begun), "{} does not begin with {begun}", text(now));
}

/// At most four, and always in the same places: the last tool, the last block of the system prompt, and the ends of the
/// last two messages of the user.
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

async fn a_history_that_was_stored_sends_the_same_bytes(dialect: Dialect) {
    let folder = tempfile::tempdir().unwrap();
    let mut talk = Talk::start(dialect, script()).await;
    // Bytes that are in the history itself: a file is read again by whoever resumes.
    let picture = ImageData::data(png(b"picture"), "image/png");
    talk.history.push(Message::system("You are careful.").into());
    talk.history.push(Message::new(Role::User, vec![ContentPart::text("Look."), picture.into()]).into());
    for turn in 0..8 {
        talk.turn().await;
        if ends_a_task(turn) {
            talk.history.push(Message::user("Go on.").into());
        }
    }
    let file = folder.path().join("session.json");
    std::fs::write(&file, serde_json::to_vec(&talk.history).unwrap()).unwrap();
    let stored: Vec<HistoryItem> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for history in [&talk.history, &stored] {
        talk.client.complete(talk.request(history)).await.unwrap();
    }
    let requests = talk.requests();
    let [kept, resumed] =
        [&requests[8], &requests[9]].map(|request| String::from_utf8_lossy(&request.raw_body));
    assert_eq!(kept, resumed);
}

/// Gives the request other tools: those that it has, changed.
fn with_tools(request: &mut Request, change: fn(&mut Vec<ToolDefinition>)) {
    let mut tools = request.tools.iter().map(|tool| tool.definition().clone()).collect();
    change(&mut tools);
    request.tools = tools.into();
}

/// A change, the segment that the chain names, and where the bytes depart.
type Change = (fn(&mut Request), Option<Segment>, Option<Moved>);

const CHANGES: &[Change] = &[
    (|_| {}, None, None),
    (|request| request.messages.push(Message::user("And?").into()), None, None),
    (
        |request| with_tools(request, |tools| tools[0].description.push('!')),
        Some(Segment::Tools),
        Some(Moved::Tools),
    ),
    (
        |request| {
            with_tools(request, |tools| {
                tools[1].parameters["properties"]["path"]["type"] = json!("integer");
            });
        },
        Some(Segment::Tools),
        Some(Moved::Tools),
    ),
    (|request| with_tools(request, |tools| tools.swap(0, 1)), Some(Segment::Tools), Some(Moved::Tools)),
    (
        |request| request.messages[0] = Message::system("You are quick.").into(),
        Some(Segment::System),
        Some(Moved::System),
    ),
    (
        |request| {
            request.messages[0] = Message::system("You are quick.").into();
            with_tools(request, |tools| tools.truncate(1));
        },
        Some(Segment::Tools),
        Some(Moved::Tools),
    ),
    (
        |request| request.messages[1] = Message::user("What else?").into(),
        Some(Segment::Message(1)),
        Some(Moved::Item(0)),
    ),
    (
        |request| request.messages[3] = Message::user("Two!").into(),
        Some(Segment::Message(3)),
        Some(Moved::Item(2)),
    ),
    (|request| request.messages.truncate(4), Some(Segment::Message(4)), Some(Moved::Item(3))),
];

/// What the chain says of two requests is what their bytes say, and the server's cache says the same.
async fn the_chain_names_what_moved_on_the_wire(dialect: Dialect) {
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
        let talk = Talk::start(dialect, script).await;
        let mut changed = base();
        change(&mut changed);
        assert_eq!(base().prefix_chain().first_moved(&changed.prefix_chain()), *segment, "change {index}");
        talk.client.complete(base()).await.unwrap();
        let cached = talk.client.complete(changed).await.unwrap().usage.cache_read_tokens.unwrap_or(0);
        let requests = talk.requests();
        let [before, now] = [0, 1].map(|index: usize| Sent::read(dialect, &requests[index].raw_body));
        assert_eq!(before.first_moved(&now), *moved, "change {index}: {before:#?} became {now:#?}");
        match segment {
            // The conversation alone has more.
            Some(Segment::Tools | Segment::System) => assert!(cached < 100, "change {index}: {cached}"),
            Some(Segment::Message(_)) => {}
            None => assert!(cached > 100, "change {index}: {cached}"),
        }
    }
}
