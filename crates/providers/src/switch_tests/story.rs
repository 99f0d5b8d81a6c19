//! Generated conversations, with what must become of each of their parts.
//!
//! Every text, result and opaque value carries a mark of its own, so that a body can be searched for it.

mod strategy;

use pintle_llm::{
    ContentPart, DocumentData, ImageData, Message, OpaqueData, Origin, Role, TextData, ThinkingData,
    ToolCall, ToolResult,
};
use serde_json::{Value, json};

pub(super) use strategy::steps;

/// Who may have written an answer: the models that the tests switch between, and others.
pub(super) const WRITERS: [(&str, &str); 9] = [
    ("openai", "gpt-5.2"),
    ("anthropic", "claude-opus-4-6"),
    ("anthropic", "claude-sonnet-4-5"),
    ("gemini", "gemini-3-pro-preview"),
    ("gemini", "gemini-2.5-pro"),
    ("openai-compatible", "llama"),
    ("openai", "gpt-4.1"),
    ("another-server", "llama"),
    // Nobody: an answer that a host wrote by hand.
    ("", ""),
];

/// The id of a call on the provider's side that was cut off before its result.
const CUT: &str = "srvtoolu_cut";

/// One thing that happens in a conversation.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The user speaks: a question, or steering while a turn is open.
    User(Vec<UserPart>),
    /// A system or developer message, anywhere.
    Instruct { developer: bool, text: String },
    /// A model answers; without calls it may have been interrupted.
    Answer { writer: usize, parts: Vec<AnswerPart>, calls: Vec<Call>, delivery: Delivery },
}

/// How the results of an answer's calls come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Delivery {
    /// All in one message.
    Together,
    /// Each in a message of its own.
    Apart,
    /// After the user has spoken.
    Steered,
    /// Each in a message of its own, with the user speaking in between.
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
pub(super) enum AnswerPart {
    /// `true` where the provider would sign it.
    Text(String, bool),
    Thinking(String, bool),
    Redacted,
    /// A block of a tool that ran on the provider's side.
    Opaque,
    /// The beginning of such: the call of a tool whose result never came.
    OpaqueCall,
    Image,
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    id: IdShape,
    name: &'static str,
    arguments: Arguments,
    signed: bool,
    result: Outcome,
}

#[derive(Clone, Copy, Debug)]
enum IdShape {
    OpenAi,
    Anthropic,
    Uuid,
    Counted,
    Empty,
    Long,
    /// Two of them differ in a letter only that not every provider takes.
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
struct Outcome {
    text: String,
    structured: bool,
    is_error: bool,
    images: usize,
}

/// A conversation as messages, and what is known of it.
#[derive(Debug, Default)]
pub(super) struct Story {
    pub(super) messages: Vec<Message>,
    /// Marks of the visible texts of users and models, in order.
    pub(super) said: Vec<String>,
    /// Marks of system and developer texts.
    pub(super) instructed: Vec<String>,
    /// Marks of readable reasoning, with the writer.
    pub(super) thought: Vec<(String, Origin)>,
    pub(super) sealed: Vec<Sealed>,
    pub(super) calls: Vec<Called>,
    /// Numbers of messages after which a request may be sent: a user has spoken, or every call has its result.
    pub(super) ends: Vec<usize>,
    marks: usize,
}

/// An opaque value: it goes back to its writer, and to nobody else.
#[derive(Debug)]
pub(super) struct Sealed {
    pub(super) mark: String,
    pub(super) writer: Origin,
    /// The object that its writer gets; its members must be among those of an object of the body.
    pub(super) wire: Value,
    /// Whether it must go back; else it may be left out, as reasoning that led to nothing.
    pub(super) certain: bool,
}

/// A call, and the mark of its result.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) name: String,
    /// The object, if it is one, or the text.
    pub(super) arguments: Value,
    pub(super) result: String,
}

impl Story {
    /// Tells the steps as messages.
    pub(super) fn new(steps: &[Step]) -> Self {
        let mut story = Self::default();
        story.user(&[UserPart::Text("Go on.".into())]);
        for step in steps {
            match step {
                Step::User(parts) => story.user(parts),
                Step::Instruct { developer, text } => story.instruct(*developer, text),
                Step::Answer { writer, parts, calls, delivery } => {
                    story.answer(*writer, parts, calls, *delivery);
                }
            }
        }
        if story.ends.last() != Some(&story.messages.len()) {
            story.user(&[UserPart::Text("And now?".into())]);
        }
        story
    }

    fn mark(&mut self, letter: char) -> String {
        self.marks += 1;
        format!("{letter}{:04}x", self.marks)
    }

    /// The text with a mark in front; a blank text stays blank.
    fn text(&mut self, text: &str) -> String {
        if text.trim().is_empty() {
            return text.to_owned();
        }
        let mark = self.mark('T');
        let marked = format!("{mark}{text}");
        self.said.push(mark);
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
            let mark = self.mark('S');
            text.insert_str(0, &mark);
            self.instructed.push(mark);
        }
        self.messages.push(if developer { Message::developer(text) } else { Message::system(text) });
        if self.ends.last() == Some(&(self.messages.len() - 1)) {
            self.ends.push(self.messages.len());
        }
    }

    fn answer(&mut self, writer: usize, parts: &[AnswerPart], calls: &[Call], delivery: Delivery) {
        let (provider, model) = WRITERS[writer];
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
            let place = content.iter().position(|part| format!("{part:?}").contains(&sealed.mark)).unwrap();
            let unanswered = matches!(&content[place], ContentPart::Opaque(data) if is_cut(data));
            let follows = content[place + 1..].iter().any(|part| stays(part, provider));
            let stands = content.iter().any(|part| stays(part, provider));
            sealed.certain = match provider {
                "gemini" => true,
                "openai-compatible" | "another-server" => stands,
                _ if content[place].as_thinking().is_some() => follows,
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

    /// The user speaks while calls wait for their results.
    fn steer(&mut self) {
        let text = self.text("Mind the tests.");
        self.messages.push(Message::user(text));
    }

    fn part(&mut self, part: &AnswerPart, origin: &Origin, content: &mut Vec<ContentPart>) {
        let provider = origin.provider.as_str();
        match part {
            AnswerPart::Text(text, signed) => {
                let text = self.text(text);
                let signed = *signed && provider == "gemini";
                let signature = signed.then(|| {
                    let wire = json!({"text": text});
                    self.seal(origin, wire, "thoughtSignature")
                });
                content.push(ContentPart::Text(TextData { text, signature }));
            }
            AnswerPart::Thinking(text, signed) => self.thinking(text, *signed, origin, content),
            AnswerPart::Redacted if provider == "anthropic" => {
                let data = self.seal(origin, json!({"type": "redacted_thinking"}), "data");
                content.push(ThinkingData::redacted(data).into());
            }
            AnswerPart::Opaque => self.opaque(origin, content),
            AnswerPart::OpaqueCall if provider == "anthropic" => {
                let call = json!({"type": "server_tool_use", "id": CUT, "name": "web_search"});
                let input = self.seal(origin, call.clone(), "input");
                let data = with(call, "input", input.into());
                content.push(ContentPart::Opaque(OpaqueData { kind: "server_tool_use".into(), data }));
            }
            AnswerPart::Image if provider == "gemini" => {
                content.push(ImageData::data(b"made".to_vec(), "image/png").into());
            }
            AnswerPart::Redacted | AnswerPart::OpaqueCall | AnswerPart::Image => {}
        }
    }

    /// Reasoning in the form that the writer's provider gives it.
    fn thinking(&mut self, text: &str, signed: bool, origin: &Origin, content: &mut Vec<ContentPart>) {
        let mark = self.mark('H');
        let text = format!("{mark}{text}");
        self.thought.push((mark, origin.clone()));
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
                let id = format!("srvtoolu_{}", self.marks);
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

    /// A fresh opaque value, which its writer gets as the member `name` of `wire`.
    fn seal(&mut self, writer: &Origin, wire: Value, name: &str) -> String {
        let mark = self.mark('Z');
        let wire = with(wire, name, mark.as_str().into());
        self.sealed.push(Sealed { mark: mark.clone(), writer: writer.clone(), wire, certain: true });
        mark
    }

    fn call(&mut self, call: &Call, origin: &Origin) -> (ToolCall, ToolResult) {
        let number = self.calls.len();
        let id = call.id.id(number);
        let mut made = match &call.arguments {
            Arguments::Object => {
                ToolCall::from_raw(&id, call.name, format!(r#"{{"path" : "a", "n": {number}}}"#))
            }
            Arguments::Nothing => ToolCall::from_raw(&id, call.name, ""),
            Arguments::Broken(text) => ToolCall::from_raw(&id, call.name, *text),
            Arguments::Freeform(text) => ToolCall::custom(&id, call.name, text.as_str()),
        };
        if call.signed && origin.provider == "gemini" {
            let seal = self.seal(origin, json!({}), "thoughtSignature");
            made = made.with_signature(Some(seal));
        }
        let mark = self.mark('R');
        let text = format!("{mark}{}", call.result.text);
        self.calls.push(Called {
            name: made.name.clone(),
            arguments: Value::clone(&made.arguments),
            result: mark,
        });
        let mut result = ToolResult::new(&id, text.as_str(), call.result.is_error);
        if call.result.structured {
            result.content = json!({"text": text, "list": [1, null]});
        }
        for _ in 0..call.result.images {
            result = result.with_image(ImageData::data(b"png".to_vec(), "image/png"));
        }
        (made, result)
    }
}

impl IdShape {
    /// An id of this shape, unlike that of any other call.
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

/// Whether a part of a model's own answer stands in what its provider is sent, so that reasoning before it led to it.
fn stays(part: &ContentPart, provider: &str) -> bool {
    match part {
        // A blank is sent to some and left out for others.
        ContentPart::Text(data) => !data.text.trim().is_empty(),
        ContentPart::ToolCall(_) | ContentPart::Image(_) => true,
        ContentPart::Opaque(data) => {
            !is_cut(data) && !["openai-compatible", "another-server"].contains(&provider)
        }
        ContentPart::Audio(_)
        | ContentPart::Document(_)
        | ContentPart::ToolResult(_)
        | ContentPart::Thinking(_)
        | _ => false,
    }
}

/// The step without calls on the provider's side that were cut off.
pub(super) fn without_cut_calls(mut step: Step) -> Step {
    if let Step::Answer { parts, .. } = &mut step {
        parts.retain(|part| !matches!(part, AnswerPart::OpaqueCall));
    }
    step
}

fn is_cut(data: &OpaqueData) -> bool {
    data.data.get("id").is_some_and(|id| id == CUT)
}

fn with(mut object: Value, name: &str, value: Value) -> Value {
    object[name] = value;
    object
}

/// A conversation in which every writer has answered with a part of each kind, and with two calls.
pub(super) fn one_of_each() -> Vec<Step> {
    let call = |arguments| Call {
        id: IdShape::Twin,
        name: "read_file",
        arguments,
        signed: true,
        result: Outcome { text: "ok".into(), structured: false, is_error: false, images: 1 },
    };
    let answer = |writer| Step::Answer {
        writer,
        parts: vec![
            AnswerPart::Thinking("hm".into(), true),
            AnswerPart::Redacted,
            AnswerPart::Text("Looking.".into(), true),
            AnswerPart::Opaque,
            AnswerPart::Image,
        ],
        calls: vec![call(Arguments::Object), call(Arguments::Freeform("*** Begin Patch".into()))],
        delivery: Delivery::Together,
    };
    let instruct = Step::Instruct { developer: false, text: "Be brief.".into() };
    std::iter::once(instruct).chain((0..WRITERS.len()).map(answer)).collect()
}
