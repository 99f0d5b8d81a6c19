//! A conversation switches from one provider to another and back, over real HTTP: the real adapters with a server that
//! checks every request by the rules of its dialect, and recognizes the reasoning that it sealed.

use std::collections::BTreeSet;

use futures_util::StreamExt as _;
use pintle_llm::{
    Client, ContentPart, ErrorKind, Grammar, HistoryItem, ImageData, Message, Origin, ReasoningEffort,
    Request, Response, StreamAccumulator, StreamEvent, ToolCallKind, ToolDefinition, ToolResult,
};
use pintle_providers::{Anthropic, Gemini, OpenAi, OpenAiCompatible};
use pintle_testkit::{
    Call, Dialect, Expectation, Failure, RecordedRequest, Script, ScriptedServer, ServerOptions, Turn,
};
use serde_json::{Value, json};

const KEY: &str = "key-of-the-switch";

/// Generates a test for each ordered pair of dialects: `openai::to_anthropic` and so on.
macro_rules! each_pair {
    ($($from:ident $from_dialect:ident => $($to:ident $to_dialect:ident)+;)+) => {
        $(mod $from {
            use pintle_testkit::Dialect;
            $(
                #[tokio::test]
                async fn $to() {
                    super::there_and_back(Dialect::$from_dialect, Dialect::$to_dialect).await;
                }
            )+
        })+
    };
}

each_pair! {
    openai OpenAiResponses =>
        to_anthropic AnthropicMessages to_gemini Gemini to_compatible ChatCompletions;
    anthropic AnthropicMessages =>
        to_openai OpenAiResponses to_gemini Gemini to_compatible ChatCompletions;
    gemini Gemini =>
        to_openai OpenAiResponses to_anthropic AnthropicMessages to_compatible ChatCompletions;
    compatible ChatCompletions =>
        to_openai OpenAiResponses to_anthropic AnthropicMessages to_gemini Gemini;
}

/// Returns the model of each dialect. Claude has a thinking budget here, so that its server insists on getting its
/// thinking back; this generation of Gemini requires signatures.
fn model(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAiResponses => "gpt-5.2",
        Dialect::AnthropicMessages => "claude-sonnet-4-5",
        Dialect::Gemini => "gemini-3-pro-preview",
        Dialect::ChatCompletions => "local-model",
    }
}

/// Returns the reasoning of a turn.
fn thought(dialect: Dialect, turn: usize) -> String {
    format!("What {dialect} thinks, {turn}.")
}

fn said(dialect: Dialect, turn: usize) -> String {
    format!("What {dialect} says, {turn}.")
}

/// Four turns, with the tool calls of each dialect: two with calls, the end of the task, and another one.
fn script() -> Script {
    let read = |path: &str| Call::new("read_file", json!({"path": path}));
    let turn = |dialect: Dialect, number: usize| {
        Turn::text(said(dialect, number)).with_reasoning(thought(dialect, number)).with_only([dialect])
    };
    let mut script = Script::new("switch");
    for dialect in Dialect::ALL {
        // Only one dialect has free-form tools.
        let patch = match dialect {
            Dialect::OpenAiResponses => Call::freeform("apply_patch", "*** Begin Patch"),
            Dialect::AnthropicMessages | Dialect::Gemini | Dialect::ChatCompletions => {
                Call::new("apply_patch", json!({"patch": "*** Begin Patch"}))
            }
        };
        let first = turn(dialect, 0).with_call(read("a.png")).with_call(patch).with_call(read("c.rs"));
        let second = turn(dialect, 1)
            .with_call(read("d.rs"))
            .with_expectation(Expectation::result_contains(0, "read of a.png"))
            .with_expectation(Expectation::result_contains(1, "no such file"))
            .with_expectation(Expectation::result_is_error(1, true))
            .with_expectation(Expectation::result_contains(2, "read of c.rs"));
        let third = turn(dialect, 2)
            .with_expectation(Expectation::result_contains(0, "read of d.rs"))
            .with_expectation(Expectation::request_contains("Mind the tests."));
        script = script.with_turn(first).with_turn(second).with_turn(third).with_turn(turn(dialect, 3));
    }
    script
}

/// A conversation, a client of all four providers, and the server that plays them.
struct Conversation {
    server: ScriptedServer,
    client: Client,
    history: Vec<HistoryItem>,
    streaming: bool,
}

impl Conversation {
    async fn start(streaming: bool) -> Self {
        Self::follow(script(), streaming).await
    }

    async fn follow(script: Script, streaming: bool) -> Self {
        let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
        let url = |dialect| server.base_url(dialect);
        let compatible = OpenAiCompatible::builder(url(Dialect::ChatCompletions)).with_api_key(KEY);
        let client = Client::builder()
            .provider(OpenAi::builder(KEY).with_base_url(url(Dialect::OpenAiResponses)).build().unwrap())
            .provider(Anthropic::builder(KEY).with_base_url(url(Dialect::AnthropicMessages)).build().unwrap())
            .provider(Gemini::builder(KEY).with_base_url(url(Dialect::Gemini)).build().unwrap())
            .provider(compatible.build().unwrap())
            .build()
            .unwrap();
        let history = vec![Message::system("Be careful.").into(), Message::user("Fix it.").into()];
        Self { server, client, history, streaming }
    }

    fn request(&self, dialect: Dialect) -> Request {
        Request::new(model(dialect), self.history.clone())
            .with_provider(dialect.name())
            .with_tools(tools(dialect))
            .with_max_tokens(32_000)
            .with_reasoning_effort(ReasoningEffort::High)
    }

    /// Requests the next turn from the model of this dialect, and appends it and the results of its calls.
    async fn ask(&mut self, dialect: Dialect) {
        let request = self.request(dialect);
        let response = if self.streaming {
            streamed(&self.client, request).await
        } else {
            self.client.complete(request).await.unwrap()
        };
        assert_eq!(response.message.origin, Some(Origin::new(dialect.name(), model(dialect))));
        let results: Vec<ToolResult> = response.tool_calls().map(result).collect();
        self.history.push(response.message.into());
        if !results.is_empty() {
            self.history.push(Message::tool_results(results).into());
        }
    }

    fn say(&mut self, text: &str) {
        self.history.push(Message::user(text).into());
    }

    /// Returns the last request, which must be valid.
    fn sent(&self) -> RecordedRequest {
        let sent = self.server.requests().pop().expect("a request");
        assert_eq!((sent.status, sent.violations.as_slice()), (Some(200), [].as_slice()), "{:#}", sent.body);
        sent
    }

    /// Checks that the last request used this dialect and contains all text, but no reasoning of other models.
    fn check_sent(&self, dialect: Dialect) {
        let sent = self.sent();
        assert_eq!(sent.dialect, Some(dialect));
        let body = String::from_utf8(sent.raw_body).unwrap();
        let visible =
            self.history.iter().flat_map(|item| item.content.iter().filter_map(ContentPart::as_text));
        // The last response is newer than the request.
        let answered = self.history.iter().rfind(|item| item.origin.is_some()).map(|item| item.text());
        for text in visible.filter(|text| answered.as_deref() != Some(text)) {
            assert!(body.contains(text), "{text:?} is not in {body}");
        }
        for other in Dialect::ALL.into_iter().filter(|other| *other != dialect) {
            for turn in 0..4 {
                assert!(!body.contains(&thought(other, turn)), "{other} {turn} leaks into {body}");
            }
        }
    }
}

fn result(call: &pintle_llm::ToolCall) -> ToolResult {
    if call.name == "apply_patch" {
        return ToolResult::new(&call.id, "no such file", true);
    }
    let path = call.arguments["path"].as_str().expect("a path");
    let result = ToolResult::new(&call.id, format!("read of {path}"), false);
    if path.ends_with(".png") {
        result.with_image(ImageData::data(b"\x89PNG\r\n\x1a\n".to_vec(), "image/png"))
    } else {
        result
    }
}

fn tools(dialect: Dialect) -> Vec<ToolDefinition> {
    let schema = |name: &str| {
        let property = json!({name: {"type": "string"}});
        json!({"type": "object", "properties": property, "required": [name]})
    };
    let read = ToolDefinition::new("read_file", "Reads a file.", schema("path")).unwrap();
    let patch = ToolDefinition::new("apply_patch", "Changes files.", schema("patch")).unwrap();
    let patch = match dialect {
        Dialect::OpenAiResponses => {
            let (syntax, definition) = ("lark".to_owned(), "start: /.+/".to_owned());
            patch.with_grammar(Grammar { syntax, definition })
        }
        Dialect::AnthropicMessages | Dialect::Gemini | Dialect::ChatCompletions => patch,
    };
    vec![read, patch]
}

async fn streamed(client: &Client, request: Request) -> Response {
    let mut stream = client.stream(request).await.unwrap();
    let mut last = None;
    while let Some(event) = stream.next().await {
        last = Some(event.unwrap());
    }
    match last {
        Some(StreamEvent::Finish { response, .. }) => *response,
        other => panic!("expected the stream to end with FINISH, found {other:?}"),
    }
}

/// The other provider takes over in the middle of a turn, returns it in the middle, and takes over again at its end.
async fn there_and_back(from: Dialect, to: Dialect) {
    for streaming in [false, true] {
        let mut conversation = Conversation::start(streaming).await;
        conversation.ask(from).await;
        conversation.check_sent(from);
        // The turn is open: three calls have results that no model has seen yet.
        conversation.ask(to).await;
        conversation.check_sent(to);
        // Steered, and back at the first provider.
        conversation.say("Mind the tests.");
        conversation.ask(from).await;
        conversation.check_sent(from);
        // A new task for the other provider.
        conversation.say("And now the rest.");
        conversation.ask(to).await;
        conversation.check_sent(to);

        let spoken: Vec<String> = conversation
            .history
            .iter()
            .filter(|item| item.origin.is_some())
            .map(|item| item.text())
            .collect();
        assert_eq!(spoken, [said(from, 0), said(to, 1), said(from, 2), said(to, 3)]);
        let kinds: Vec<ToolCallKind> = conversation.history[2].tool_calls().map(|call| call.kind).collect();
        let custom =
            if from == Dialect::OpenAiResponses { ToolCallKind::Custom } else { ToolCallKind::Function };
        assert_eq!(kinds, [ToolCallKind::Function, custom, ToolCallKind::Function]);
        own_reasoning_came_back(&conversation, from);
    }
}

/// The first provider gets its sealed reasoning back unchanged.
fn own_reasoning_came_back(conversation: &Conversation, from: Dialect) {
    let seals = |part: &ContentPart| match part {
        ContentPart::Thinking(data) => data.signature.clone(),
        ContentPart::ToolCall(call) => call.signature.clone(),
        _ => None,
    };
    let seals: Vec<String> = conversation.history[2].content.iter().filter_map(seals).collect();
    // Compatible servers seal nothing.
    assert_eq!(seals.len(), usize::from(from != Dialect::ChatCompletions));
    let requests = conversation.server.requests();
    for (index, expected) in [(1, 0), (2, 1), (3, 0)] {
        let body = requests[index].body.to_string();
        for seal in &seals {
            assert_eq!(body.matches(seal).count(), expected, "request {index}: {body}");
        }
    }
}

/// Thinking is disabled while the open turn was started by a model that did not think, and enabled again with the next
/// question.
#[tokio::test]
async fn claude_thinks_again_in_its_own_turn() {
    let mut conversation = Conversation::start(true).await;
    let thinking = |conversation: &Conversation| conversation.sent().body["thinking"].clone();
    conversation.ask(Dialect::OpenAiResponses).await;
    conversation.ask(Dialect::AnthropicMessages).await;
    assert_eq!(thinking(&conversation), Value::Null, "the turn is another's");
    conversation.say("Mind the tests.");
    conversation.ask(Dialect::AnthropicMessages).await;
    assert_eq!(thinking(&conversation), Value::Null, "steering does not begin another turn");
    conversation.say("And now the rest.");
    conversation.ask(Dialect::AnthropicMessages).await;
    assert_eq!(thinking(&conversation), json!({"type": "enabled", "budget_tokens": 24_576}));
}

/// Calls of other models carry the placeholder that Gemini documents; Gemini's own calls carry their signatures.
#[tokio::test]
async fn gemini_accepts_unsigned_calls_of_other_models() {
    let mut conversation = Conversation::start(true).await;
    conversation.ask(Dialect::AnthropicMessages).await;
    conversation.ask(Dialect::Gemini).await;
    let signatures = |conversation: &Conversation| -> Vec<Value> {
        let contents = conversation.sent().body["contents"].as_array().unwrap().clone();
        let parts = contents.iter().flat_map(|content| content["parts"].as_array().unwrap());
        let calls = parts.filter(|part| part.get("functionCall").is_some());
        calls.map(|part| part["thoughtSignature"].clone()).collect()
    };
    let skip = json!("skip_thought_signature_validator");
    assert_eq!(signatures(&conversation), [skip.clone(), Value::Null, Value::Null], "the first of the step");
    conversation.say("Mind the tests.");
    conversation.ask(Dialect::Gemini).await;
    let found = signatures(&conversation);
    let own = found.last().and_then(Value::as_str).expect("its own");
    assert_eq!(found[..3], [skip, Value::Null, Value::Null]);
    assert!(!own.starts_with("skip"), "{own}");
}

/// Returns the partial response of a connection that is cut after this many events.
async fn interrupted(conversation: &Conversation, dialect: Dialect) -> Message {
    let request = conversation.request(dialect);
    let mut answer = StreamAccumulator::new(dialect.name(), model(dialect));
    let mut stream = conversation.client.stream(request).await.unwrap();
    loop {
        match stream.next().await.expect("an error before the end") {
            Ok(event) => answer.process(&event),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Stream, "{error}");
                return answer.partial().message;
            }
        }
    }
}

/// The partial text of an interrupted response is part of the history, and every provider can continue from there.
#[tokio::test]
async fn an_interrupted_response_continues_with_every_provider() {
    let call = || Call::new("read_file", json!({"path": "a.rs"}));
    let cut_off = |from: Dialect, after: usize| {
        let turn = Turn::text("I'll look into the file first.").with_reasoning(thought(from, 0));
        Script::new("cut").with_turn(turn.with_call(call()).with_failure(Failure::cut_after_events(after)))
    };
    let goes_on = || ["Anew.", "On."].map(Turn::text).into_iter().fold(Script::new("cut"), Script::with_turn);
    let mut kinds = BTreeSet::new();
    // The largest number stands for the last event.
    let places = || (0..16).chain([usize::MAX]);
    let cuts = Dialect::ALL.into_iter().flat_map(|from| places().map(move |after| (from, after)));
    for (from, after) in cuts {
        let conversation = Conversation::follow(cut_off(from, after), true).await;
        let partial = interrupted(&conversation, from).await;
        kinds.insert((from, partial.content.iter().map(|part| part.kind().to_owned()).collect::<Vec<_>>()));
        // A call that is kept needs a result.
        let results: Vec<ToolResult> =
            partial.tool_calls().map(|call| ToolResult::new(&call.id, "interrupted", true)).collect();
        let mut conversation = Conversation::follow(goes_on(), true).await;
        conversation.history.push(partial.with_origin(Origin::new(from.name(), model(from))).into());
        if !results.is_empty() {
            conversation.history.push(Message::tool_results(results).into());
        }
        conversation.say("Go on.");
        let history = conversation.history.clone();
        for to in Dialect::ALL {
            conversation.history.clone_from(&history);
            conversation.ask(to).await;
            conversation.check_sent(to);
        }
    }
    for from in Dialect::ALL {
        let of_this: Vec<_> =
            kinds.iter().filter(|(dialect, _)| *dialect == from).map(|(_, kinds)| kinds).collect();
        let mut whole = vec![vec![], vec!["THINKING"], vec!["THINKING", "TEXT"]];
        // Chat Completions signals the end of a call only with the end of the response.
        whole.extend((from != Dialect::ChatCompletions).then(|| vec!["THINKING", "TEXT", "TOOL_CALL"]));
        for expected in whole {
            assert!(of_this.iter().any(|kinds| **kinds == expected), "{from} was cut at {of_this:?} only");
        }
    }
}

/// Steering that arrives while tools run is stored before their results, but sent after them, to every provider.
#[tokio::test]
async fn steering_before_the_results_is_sent_after_them() {
    for dialect in Dialect::ALL {
        let mut conversation = Conversation::start(true).await;
        conversation.ask(dialect).await;
        let results = conversation.history.pop().expect("the results");
        conversation.say("Mind the tests.");
        conversation.history.push(results);
        conversation.ask(dialect).await;
        conversation.check_sent(dialect);
        let body = conversation.sent().body.to_string();
        let [result, steering] = ["read of c.rs", "Mind the tests."].map(|words| body.find(words));
        assert!(result < steering, "{dialect}: {body}");
    }
}

/// A history that every provider would refuse is refused before it is sent.
#[tokio::test]
async fn calls_without_results_are_refused_before_they_are_sent() {
    for dialect in Dialect::ALL {
        let mut conversation = Conversation::start(false).await;
        conversation.ask(dialect).await;
        let results = conversation.history.pop().expect("the results");
        let id = results.results().next().expect("a result").tool_call_id.clone();
        for (more, message) in [
            (vec![], format!("the call `{id}` of the tool `read_file` has no result")),
            (vec![results.clone(), results.clone()], format!("the call `{id}` has a second result")),
        ] {
            let history = [conversation.history.clone(), more].concat();
            let request = Request::new(model(dialect), history).with_provider(dialect.name());
            let error = conversation.client.complete(request.clone()).await.unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidRequest, message.as_str()));
            assert_eq!(error.provider(), Some(dialect.name()));
            let Err(streamed) = conversation.client.stream(request).await else { panic!("the stream began") };
            assert_eq!(streamed.message(), message);
        }
        assert_eq!(conversation.server.requests().len(), 1, "nothing else was sent");
    }
}
