//! Generated conversations, with the expected treatment of each of their parts.
//!
//! Every text, result and opaque value contains a unique marker, so that a body can be searched for it.

mod strategy;

use pintle_llm::{
    ContentPart, DocumentData, ImageData, Message, OpaqueData, Origin, Role, TextData, ThinkingData,
    ToolCall, ToolResult,
};
use serde_json::{Value, json};

pub(super) use strategy::steps;

/// Origins of responses: the models that the tests switch between, and others.
pub(super) const ORIGINS: [(&str, &str); 9] = [
    ("openai", "gpt-5.2"),
    ("anthropic", "claude-opus-4-6"),
    ("anthropic", "claude-sonnet-4-5"),
    ("gemini", "gemini-3-pro-preview"),
    ("gemini", "gemini-2.5-pro"),
    ("openai-compatible", "llama"),
    ("openai", "gpt-4.1"),
    ("another-server", "llama"),
    // No origin: a response that the embedding application built.
    ("", ""),
];

/// Id of a server tool call without a result, as in a truncated response.
const UNANSWERED: &str = "srvtoolu_cut";

/// One step of a conversation.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A user message: a question, or steering while a turn is open.
    User(Vec<UserPart>),
    /// A system or developer message at any position.
    Instruct { developer: bool, text: String },
    /// A model response. Without calls it may have been interrupted.
    Response { origin: usize, parts: Vec<AssistantPart>, calls: Vec<Call>, delivery: Delivery },
}

/// Form in which the results of a response's calls are delivered.
#[derive(Clone, Copy, Debug)]
pub(super) enum Delivery {
    /// All in one message.
    Together,
    /// Each in its own message.
    Apart,
    /// After a user message.
    Steered,
    /// Each in its own message, with user messages in between.
    Interleaved,
    /// Each as plain text in a message that names its call.
    Plain,
}

#[derive(Clone, Debug)]
pub(super) enum UserPart {
    Text(String),
    ImageBytes,
    ImageUrl,
    Document,
}

#[derive(Clone, Debug)]
pub(super) enum AssistantPart {
    /// `true` if the provider signs it.
    Text(String, bool),
    Thinking(String, bool),
    Redacted,
    /// Blocks of a server tool.
    Opaque,
    /// Call of a server tool without a result.
    OpaqueCall,
    Image,
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    id: IdShape,
    name: &'static str,
    arguments: Arguments,
    signed: bool,
    result: ResultSpec,
}

#[derive(Clone, Copy, Debug)]
enum IdShape {
    OpenAi,
    Anthropic,
    Uuid,
    Counted,
    Empty,
    Long,
    /// Pairs that differ only in a character that not every provider accepts.
    Twin,
    Hostile,
}

#[derive(Clone, Debug)]
enum Arguments {
    Object,
    Nothing,
    Broken(&'static str),
    Freeform(String),
}

#[derive(Clone, Debug)]
struct ResultSpec {
    text: String,
    structured: bool,
    is_error: bool,
    images: usize,
}

/// A conversation as messages, with the expectations on its encodings.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    pub(super) messages: Vec<Message>,
    /// Markers of the visible texts of users and models, in order.
    pub(super) texts: Vec<String>,
    /// Markers of system and developer texts.
    pub(super) instructions: Vec<String>,
    /// Markers of readable reasoning, with its origin.
    pub(super) reasoning: Vec<(String, Origin)>,
    pub(super) sealed: Vec<SealedValue>,
    pub(super) calls: Vec<ExpectedCall>,
    /// Numbers of messages after which a request is legal: after a user message, or when every call has its result.
    pub(super) ends: Vec<usize>,
    markers: usize,
}

/// An opaque value, which is returned to its origin only.
#[derive(Debug)]
pub(super) struct SealedValue {
    pub(super) marker: String,
    pub(super) origin: Origin,
    /// Object sent to its origin: an object of the body must have all its members.
    pub(super) wire: Value,
    /// Whether it must be returned. Otherwise it may be dropped, as trailing reasoning is.
    pub(super) required: bool,
}

/// A call with the marker of its result.
#[derive(Debug)]
pub(super) struct ExpectedCall {
    pub(super) name: String,
    /// Object or text.
    pub(super) arguments: Value,
    pub(super) result: String,
}

impl Conversation {
    /// Converts steps to messages.
    pub(super) fn new(steps: &[Step]) -> Self {
        let mut conversation = Self::default();
        conversation.user(&[UserPart::Text("Go on.".into())]);
        for step in steps {
            match step {
                Step::User(parts) => conversation.user(parts),
                Step::Instruct { developer, text } => conversation.instruct(*developer, text),
                Step::Response { origin, parts, calls, delivery } => {
                    conversation.response(*origin, parts, calls, *delivery);
                }
            }
        }
        if conversation.ends.last() != Some(&conversation.messages.len()) {
            conversation.user(&[UserPart::Text("And now?".into())]);
        }
        conversation
    }

    fn marker(&mut self, letter: char) -> String {
        self.markers += 1;
        format!("{letter}{:04}x", self.markers)
    }

    /// Prepends a marker to a text, unless it is blank.
    fn text(&mut self, text: &str) -> String {
        if text.trim().is_empty() {
            return text.to_owned();
        }
        let marker = self.marker('T');
        let marked = format!("{marker}{text}");
        self.texts.push(marker);
        marked
    }

    fn user(&mut self, parts: &[UserPart]) {
        let document = json!({"data": "JVBERg==", "media_type": "application/pdf", "file_name": "a.pdf"});
        let content = parts.iter().map(|part| match part {
            UserPart::Text(text) => ContentPart::text(self.text(text)),
            UserPart::ImageBytes => ImageData::data(b"png".to_vec(), "image/png").into(),
            UserPart::ImageUrl => ImageData::url("https://example.com/a.png").into(),
            UserPart::Document => {
                ContentPart::Document(serde_json::from_value::<DocumentData>(document.clone()).unwrap())
            }
        });
        let content: Vec<ContentPart> = content.collect();
        let visible = content.iter().any(|part| part.as_text().is_none_or(|text| !text.trim().is_empty()));
        self.messages.push(Message::new(Role::User, content));
        if visible {
            self.ends.push(self.messages.len());
        }
    }

    fn instruct(&mut self, developer: bool, text: &str) {
        let mut text = text.to_owned();
        if !text.trim().is_empty() {
            let marker = self.marker('S');
            text.insert_str(0, &marker);
            self.instructions.push(marker);
        }
        self.messages.push(if developer { Message::developer(text) } else { Message::system(text) });
        if self.ends.last() == Some(&(self.messages.len() - 1)) {
            self.ends.push(self.messages.len());
        }
    }

    fn response(&mut self, origin: usize, parts: &[AssistantPart], calls: &[Call], delivery: Delivery) {
        let (provider, model) = ORIGINS[origin];
        let origin = Origin::new(provider, model);
        let first_seal = self.sealed.len();
        let mut content = Vec::new();
        for part in parts {
            self.part(part, &origin, &mut content);
        }
        let mut results = Vec::new();
        for call in calls {
            let (call, result) = self.call(call, &origin);
            content.push(call.into());
            results.push(result);
        }
        for sealed in &mut self.sealed[first_seal..] {
            let position =
                content.iter().position(|part| format!("{part:?}").contains(&sealed.marker)).unwrap();
            let unanswered = matches!(&content[position], ContentPart::Opaque(data) if is_unanswered(data));
            let follows = content[position + 1..].iter().any(|part| is_sent(part, provider));
            let has_content = content.iter().any(|part| is_sent(part, provider));
            sealed.required = match provider {
                "gemini" => true,
                "openai-compatible" | "another-server" => has_content,
                _ if content[position].as_thinking().is_some() => follows,
                _ if unanswered => false,
                _ => true,
            };
        }
        let mut message = Message::new(Role::Assistant, content);
        message.origin = (!provider.is_empty()).then_some(origin);
        self.messages.push(message);
        if !results.is_empty() {
            self.deliver(results, delivery);
            self.ends.push(self.messages.len());
        }
    }

    fn deliver(&mut self, results: Vec<ToolResult>, delivery: Delivery) {
        match delivery {
            Delivery::Together => self.messages.push(Message::tool_results(results)),
            Delivery::Apart => {
                self.messages.extend(results.into_iter().map(|result| Message::tool_results(vec![result])));
            }
            Delivery::Steered => {
                self.steer();
                self.messages.push(Message::tool_results(results));
            }
            Delivery::Interleaved => {
                for result in results {
                    self.messages.push(Message::tool_results(vec![result]));
                    self.steer();
                }
            }
            Delivery::Plain => {
                self.messages.extend(results.into_iter().map(|result| {
                    let mut plain = Message::new(Role::Tool, vec![ContentPart::text(result.text())]);
                    plain.tool_call_id = Some(result.tool_call_id);
                    plain
                }));
            }
        }
    }

    /// Adds a user message while calls wait for their results.
    fn steer(&mut self) {
        let text = self.text("Mind the tests.");
        self.messages.push(Message::user(text));
    }

    fn part(&mut self, part: &AssistantPart, origin: &Origin, content: &mut Vec<ContentPart>) {
        let provider = origin.provider.as_str();
        match part {
            AssistantPart::Text(text, signed) => {
                let text = self.text(text);
                let signed = *signed && provider == "gemini";
                let signature = signed.then(|| {
                    let wire = json!({"text": text});
                    self.seal(origin, wire, "thoughtSignature")
                });
                content.push(ContentPart::Text(TextData { text, signature }));
            }
            AssistantPart::Thinking(text, signed) => self.thinking(text, *signed, origin, content),
            AssistantPart::Redacted if provider == "anthropic" => {
                let data = self.seal(origin, json!({"type": "redacted_thinking"}), "data");
                content.push(ThinkingData::redacted(data).into());
            }
            AssistantPart::Opaque => self.opaque(origin, content),
            AssistantPart::OpaqueCall if provider == "anthropic" => {
                let call = json!({"type": "server_tool_use", "id": UNANSWERED, "name": "web_search"});
                let input = self.seal(origin, call.clone(), "input");
                let data = with(call, "input", input.into());
                content.push(ContentPart::Opaque(OpaqueData { kind: "server_tool_use".into(), data }));
            }
            AssistantPart::Image if provider == "gemini" => {
                content.push(ImageData::data(b"made".to_vec(), "image/png").into());
            }
            AssistantPart::Redacted | AssistantPart::OpaqueCall | AssistantPart::Image => {}
        }
    }

    /// Adds reasoning in the form of its provider.
    fn thinking(&mut self, text: &str, signed: bool, origin: &Origin, content: &mut Vec<ContentPart>) {
        let marker = self.marker('H');
        let text = format!("{marker}{text}");
        self.reasoning.push((marker, origin.clone()));
        let thinking = ThinkingData::new(text.clone());
        let thinking = match origin.provider.as_str() {
            "" => thinking,
            // This model does not reason.
            _ if !signed || origin.model == "gpt-4.1" => thinking,
            "openai" => {
                let summary = json!([{"type": "summary_text", "text": text}]);
                let wire = json!({"type": "reasoning", "summary": summary});
                let seal = self.seal(origin, wire, "encrypted_content");
                let raw =
                    json!({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": seal});
                thinking.with_signature(Some(seal)).with_raw(raw)
            }
            "anthropic" => {
                let wire = json!({"type": "thinking", "thinking": text});
                thinking.with_signature(Some(self.seal(origin, wire, "signature")))
            }
            "gemini" => {
                let wire = json!({"text": text, "thought": true});
                thinking.with_signature(Some(self.seal(origin, wire, "thoughtSignature")))
            }
            _ => {
                let data = self.seal(origin, json!({"type": "reasoning.encrypted"}), "data");
                let details = json!([{"type": "reasoning.encrypted", "data": data}]);
                thinking.with_raw(json!({"reasoning_details": details}))
            }
        };
        content.push(thinking.into());
    }

    fn opaque(&mut self, origin: &Origin, content: &mut Vec<ContentPart>) {
        let mut push = |kind: &str, data: Value| {
            content.push(ContentPart::Opaque(OpaqueData { kind: kind.into(), data }));
        };
        match origin.provider.as_str() {
            "openai" => {
                let wire = json!({"type": "web_search_call", "status": "completed"});
                let query = self.seal(origin, wire.clone(), "action");
                push("web_search_call", with(with(wire, "action", query.into()), "id", "ws_1".into()));
            }
            "anthropic" => {
                let id = format!("srvtoolu_{}", self.markers);
                let call = json!({"type": "server_tool_use", "id": id, "name": "web_search"});
                let input = self.seal(origin, call.clone(), "input");
                push("server_tool_use", with(call, "input", input.into()));
                let result = json!({"type": "web_search_tool_result", "tool_use_id": id});
                let found = self.seal(origin, result.clone(), "content");
                push("web_search_tool_result", with(result, "content", found.into()));
            }
            "gemini" => {
                let wire = json!({"language": "PYTHON"});
                let code = self.seal(origin, wire.clone(), "code");
                push("executableCode", json!({"executableCode": with(wire, "code", code.into())}));
            }
            _ => {}
        }
    }

    /// Returns a fresh opaque value, which is sent to its origin as the member `name` of `wire`.
    fn seal(&mut self, origin: &Origin, wire: Value, name: &str) -> String {
        let marker = self.marker('Z');
        let wire = with(wire, name, marker.as_str().into());
        self.sealed.push(SealedValue {
            marker: marker.clone(),
            origin: origin.clone(),
            wire,
            required: true,
        });
        marker
    }

    fn call(&mut self, call: &Call, origin: &Origin) -> (ToolCall, ToolResult) {
        let number = self.calls.len();
        let id = call.id.id(number);
        let mut tool_call = match &call.arguments {
            Arguments::Object => {
                ToolCall::from_raw(&id, call.name, format!(r#"{{"path" : "a", "n": {number}}}"#))
            }
            Arguments::Nothing => ToolCall::from_raw(&id, call.name, ""),
            Arguments::Broken(text) => ToolCall::from_raw(&id, call.name, *text),
            Arguments::Freeform(text) => ToolCall::custom(&id, call.name, text.as_str()),
        };
        if call.signed && origin.provider == "gemini" {
            let seal = self.seal(origin, json!({}), "thoughtSignature");
            tool_call = tool_call.with_signature(Some(seal));
        }
        let marker = self.marker('R');
        let text = format!("{marker}{}", call.result.text);
        self.calls.push(ExpectedCall {
            name: tool_call.name.clone(),
            arguments: Value::clone(&tool_call.arguments),
            result: marker,
        });
        let mut result = ToolResult::new(&id, text.as_str(), call.result.is_error);
        if call.result.structured {
            result.content = json!({"text": text, "list": [1, null]});
        }
        for _ in 0..call.result.images {
            result = result.with_image(ImageData::data(b"png".to_vec(), "image/png"));
        }
        (tool_call, result)
    }
}

impl IdShape {
    /// Returns a unique id of this shape.
    fn id(self, number: usize) -> String {
        match self {
            Self::OpenAi => format!("call_{number:024x}"),
            Self::Anthropic => format!("toolu_01{number:024x}"),
            Self::Uuid => format!("00000000-0000-4000-8000-{number:012x}"),
            Self::Counted => format!("functions.read_file:{number}"),
            Self::Empty if number == 0 => String::new(),
            Self::Empty => format!("{number}"),
            Self::Long => format!("{}{number}", "call|fc_".repeat(20)),
            Self::Twin if number.is_multiple_of(2) => format!("x:{}", number / 2),
            Self::Twin => format!("x_{}", number / 2),
            Self::Hostile => format!("ид \"{number}\"\n\\\u{0}\u{1F600}"),
        }
    }
}

/// Returns whether a part of a model's own response is sent back to it, so that reasoning before it is kept.
fn is_sent(part: &ContentPart, provider: &str) -> bool {
    match part {
        // Blank text is dropped for some providers.
        ContentPart::Text(data) => !data.text.trim().is_empty(),
        ContentPart::ToolCall(_) | ContentPart::Image(_) => true,
        ContentPart::Opaque(data) => {
            !is_unanswered(data) && !["openai-compatible", "another-server"].contains(&provider)
        }
        ContentPart::Audio(_)
        | ContentPart::Document(_)
        | ContentPart::ToolResult(_)
        | ContentPart::Thinking(_)
        | _ => false,
    }
}

/// Removes server tool calls without a result.
pub(super) fn without_unanswered_calls(mut step: Step) -> Step {
    if let Step::Response { parts, .. } = &mut step {
        parts.retain(|part| !matches!(part, AssistantPart::OpaqueCall));
    }
    step
}

fn is_unanswered(data: &OpaqueData) -> bool {
    data.data.get("id").is_some_and(|id| id == UNANSWERED)
}

fn with(mut object: Value, name: &str, value: Value) -> Value {
    object[name] = value;
    object
}

/// Returns a conversation with a response of every origin, with a part of each kind and two calls.
pub(super) fn one_of_each() -> Vec<Step> {
    let call = |arguments| Call {
        id: IdShape::Twin,
        name: "read_file",
        arguments,
        signed: true,
        result: ResultSpec { text: "ok".into(), structured: false, is_error: false, images: 1 },
    };
    let response = |origin| Step::Response {
        origin,
        parts: vec![
            AssistantPart::Thinking("hm".into(), true),
            AssistantPart::Redacted,
            AssistantPart::Text("Looking.".into(), true),
            AssistantPart::Opaque,
            AssistantPart::Image,
        ],
        calls: vec![call(Arguments::Object), call(Arguments::Freeform("*** Begin Patch".into()))],
        delivery: Delivery::Together,
    };
    let instruct = Step::Instruct { developer: false, text: "Be brief.".into() };
    std::iter::once(instruct).chain((0..ORIGINS.len()).map(response)).collect()
}
