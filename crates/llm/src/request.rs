//! The request (client specification, section 3.6).

mod media;
mod messages;
mod order;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::messages::MessageList;
use crate::history::{Fingerprint, HistoryItem};
use crate::message::Role;
use crate::tool::{ToolChoice, ToolList};

/// The single input of [`Client::complete`](crate::Client::complete) and [`Client::stream`](crate::Client::stream).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Request {
    /// The provider's own name of the model.
    pub model: String,
    /// The conversation, system messages included.
    pub messages: MessageList,
    /// The provider to route to; the client's default if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The tools that the model may call.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub tools: ToolList,
    /// Whether it may, must or must not; `None` means auto if there are tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// The form of the answer; text if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The most tokens to write; the provider's default if `None` (Anthropic: 4,096).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Texts that end the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// How much to reason; the provider's default if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Arbitrary pairs for the provider's records.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Parameters that only one provider has, keyed by the provider's name. Not portable, by design.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provider_options: Map<String, Value>,
    /// How long to wait; the adapter's own limits if `None`. Not part of what the model sees.
    #[serde(skip)]
    pub timeout: Option<AdapterTimeout>,
}

impl Request {
    /// A request with a model and a conversation; everything else is unset.
    #[must_use]
    pub fn new<M: Into<HistoryItem>>(
        model: impl Into<String>,
        messages: impl IntoIterator<Item = M>,
    ) -> Self {
        Self {
            model: model.into(),
            messages: messages.into_iter().map(Into::into).collect(),
            provider: None,
            tools: ToolList::default(),
            tool_choice: None,
            response_format: None,
            temperature: None,
            top_p: None,
            max_tokens: None,
            stop_sequences: Vec::new(),
            reasoning_effort: None,
            metadata: BTreeMap::new(),
            provider_options: Map::new(),
            timeout: None,
        }
    }

    /// With a provider to route to.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<String>) -> Self {
        self.provider = Some(provider.into());
        self
    }

    /// With tools.
    #[must_use]
    pub fn with_tools(mut self, tools: impl Into<ToolList>) -> Self {
        self.tools = tools.into();
        self
    }

    /// With a tool choice.
    #[must_use]
    pub fn with_tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = Some(choice);
        self
    }

    /// With a limit on the answer, in tokens.
    #[must_use]
    pub fn with_max_tokens(mut self, max_tokens: u64) -> Self {
        self.max_tokens = Some(max_tokens);
        self
    }

    /// With a reasoning effort.
    #[must_use]
    pub fn with_reasoning_effort(mut self, effort: ReasoningEffort) -> Self {
        self.reasoning_effort = Some(effort);
        self
    }

    /// With one provider's own parameters.
    #[must_use]
    pub fn with_provider_options(mut self, provider: impl Into<String>, options: Value) -> Self {
        self.provider_options.insert(provider.into(), options);
        self
    }

    /// With other time limits than the adapter's.
    #[must_use]
    pub fn with_timeout(mut self, timeout: AdapterTimeout) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The options of this provider, if any were given as an object.
    #[must_use]
    pub fn options_of(&self, provider: &str) -> Option<&Map<String, Value>> {
        self.provider_options.get(provider).and_then(Value::as_object)
    }

    /// The hash chain over what a provider caches, in the order in which it reads it: tools, the system prompt, then
    /// each other message.
    ///
    /// Two requests share a prefix as far as their chains agree; the first link that differs names what moved.
    /// System and developer messages count as the system prompt wherever they stand, since most dialects put them
    /// in front of the conversation: one that comes late moves everything.
    #[must_use]
    pub fn prefix_chain(&self) -> PrefixChain {
        let mut last = self.tools.fingerprint();
        let mut links = Vec::with_capacity(self.messages.len() + 2);
        links.push(last);
        last = self
            .messages
            .iter()
            .filter(|item| is_system(item))
            .fold(last, |last, item| last.chain(item.fingerprint()));
        links.push(last);
        for item in &self.messages {
            // A system message adds nothing at its own place, so that places remain those of `messages`.
            last = if is_system(item) { last } else { last.chain(item.fingerprint()) };
            links.push(last);
        }
        PrefixChain { links }
    }
}

/// Whether a message is part of the system prompt, wherever it stands.
fn is_system(item: &HistoryItem) -> bool {
    matches!(item.role, Role::System | Role::Developer)
}

/// The fingerprints of a request's growing prefixes: tools first, then the system prompt, then one per message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixChain {
    links: Vec<Fingerprint>,
}

impl PrefixChain {
    /// The fingerprint of the whole.
    #[must_use]
    pub fn last(&self) -> Option<Fingerprint> {
        self.links.last().copied()
    }

    /// The number of links: two more than there are messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// The number of messages that it is of.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.links.len().saturating_sub(2)
    }

    /// `true` only for a chain that was read from somewhere without links.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Continues the chain with the messages that follow those of its request, and says whether it could. A system or
    /// developer message among them moves what stands before all others: the chain is then as it was.
    #[must_use]
    pub fn extend(&mut self, messages: &[HistoryItem]) -> bool {
        let Some(mut last) = self.last().filter(|_| !messages.iter().any(is_system)) else { return false };
        self.links.extend(messages.iter().map(|item| {
            last = last.chain(item.fingerprint());
            last
        }));
        true
    }

    /// The first segment in which `next` departs from this chain: `None` if it only continues it.
    #[must_use]
    pub fn first_moved(&self, next: &Self) -> Option<Segment> {
        let place = self.links.iter().zip(&next.links).position(|(a, b)| a != b);
        let place = place.or_else(|| (next.links.len() < self.links.len()).then_some(next.links.len()))?;
        Some(match place {
            0 => Segment::Tools,
            1 => Segment::System,
            place => Segment::Message(place - 2),
        })
    }
}

/// A part of the prompt that a cache sees as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Segment {
    /// The tool definitions.
    Tools,
    /// The system prompt: all system and developer messages.
    System,
    /// The message at this index of [`Request::messages`], which has the system messages too.
    Message(usize),
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tools => f.write_str("tools"),
            Self::System => f.write_str("system prompt"),
            Self::Message(index) => write!(f, "message {index}"),
        }
    }
}

/// How much the model reasons before it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ReasoningEffort {
    /// Fast and cheap.
    Low,
    /// Balanced.
    Medium,
    /// Slow and deep.
    High,
    /// A value that only some providers know, such as `minimal` or `xhigh`; passed on as it is.
    Other(String),
}

impl ReasoningEffort {
    /// The value as providers spell it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Other(other) => other,
        }
    }
}

impl From<String> for ReasoningEffort {
    fn from(text: String) -> Self {
        match text.as_str() {
            "low" => Self::Low,
            "medium" => Self::Medium,
            "high" => Self::High,
            _ => Self::Other(text),
        }
    }
}

impl From<ReasoningEffort> for String {
    fn from(effort: ReasoningEffort) -> Self {
        effort.as_str().to_owned()
    }
}

impl FromStr for ReasoningEffort {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.to_owned().into())
    }
}

impl fmt::Display for ReasoningEffort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The form of the answer (specification section 3.10).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseFormat {
    /// Plain text.
    Text,
    /// Any JSON value.
    Json,
    /// JSON that fits a schema.
    JsonSchema {
        /// The schema.
        json_schema: Value,
        /// Whether the provider enforces it.
        #[serde(default)]
        strict: bool,
    },
}

/// How long an adapter waits (specification section 4.7).
///
/// Silence ([`first_byte`](Self::first_byte), [`stream_read`](Self::stream_read)) is counted in raw bytes, so that a
/// provider's keep-alive comments keep a stream alive; how long a server may go on without saying anything is limited
/// by [`content`](Self::content). The limit that is reached first ends the exchange with
/// [`ErrorKind::RequestTimeout`](crate::ErrorKind::RequestTimeout). Every duration is possible; zero never waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdapterTimeout {
    /// To establish a connection. Default 10 s. Fixed when the adapter is built.
    pub connect: Duration,
    /// For the whole exchange; `None` sets no such limit. Default 120 s, for whole answers only.
    pub request: Option<Duration>,
    /// From the end of sending the request to the end of the response's headers. Default 60 s, for streamed answers
    /// only: the headers of a whole answer come when it is complete, so that `first_byte` and `request` limit them.
    pub headers: Duration,
    /// From the start of the exchange, connecting and sending included, to the first byte of the answer's
    /// body. Default 120 s.
    pub first_byte: Duration,
    /// Between two reads of an answer's body, streamed or whole. Default 30 s.
    pub stream_read: Duration,
    /// Without content ([`StreamEvent::is_content`](crate::StreamEvent::is_content)): from the start of the exchange to
    /// the first content of a streamed answer and between two, and for a whole answer from the start to its end.
    /// Comments, pings and other signs of life are no content, and neither are bytes of an event that is not complete.
    /// Only the time that the adapter waits is counted, not that of a consumer who is slow to read. `None` sets no such
    /// limit. Default 15 minutes.
    pub content: Option<Duration>,
}

impl Default for AdapterTimeout {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            request: Some(Duration::from_secs(120)),
            headers: Duration::from_secs(60),
            first_byte: Duration::from_secs(120),
            stream_read: Duration::from_secs(30),
            content: Some(Duration::from_secs(15 * 60)),
        }
    }
}

impl AdapterTimeout {
    /// The limits of a session's model calls: 300 s to the first byte and between bytes, no total; 60 s for the headers
    /// of a stream and 15 minutes without content, as by default.
    #[must_use]
    pub fn patient() -> Self {
        let long = Duration::from_secs(300);
        Self { request: None, first_byte: long, stream_read: long, ..Self::default() }
    }

    /// With another limit between two reads.
    #[must_use]
    pub fn with_stream_read(mut self, limit: Duration) -> Self {
        self.stream_read = limit;
        self
    }

    /// With another limit to the first byte.
    #[must_use]
    pub fn with_first_byte(mut self, limit: Duration) -> Self {
        self.first_byte = limit;
        self
    }

    /// With another limit for the headers of a streamed answer.
    #[must_use]
    pub fn with_headers(mut self, limit: Duration) -> Self {
        self.headers = limit;
        self
    }

    /// With another limit on waiting without content; `None` sets none.
    #[must_use]
    pub fn with_content(mut self, limit: Option<Duration>) -> Self {
        self.content = limit;
        self
    }

    /// With the same limit for each wait: for the headers, for the first byte, between two reads and without content.
    /// The limit to connect becomes no longer than it was.
    #[must_use]
    pub fn with_each_wait(self, limit: Duration) -> Self {
        Self {
            connect: self.connect.min(limit),
            request: self.request,
            headers: limit,
            first_byte: limit,
            stream_read: limit,
            content: Some(limit),
        }
    }

    /// With another limit for the whole exchange.
    #[must_use]
    pub fn with_request(mut self, limit: Option<Duration>) -> Self {
        self.request = limit;
        self
    }

    /// With another limit to connect.
    #[must_use]
    pub fn with_connect(mut self, limit: Duration) -> Self {
        self.connect = limit;
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::Message;
    use crate::tool::ToolDefinition;

    fn request(texts: &[&str]) -> Request {
        Request::new("m", texts.iter().map(|text| Message::user(*text)))
    }

    fn tool(description: &str) -> ToolDefinition {
        ToolDefinition::new("t", description, json!({"type": "object"})).unwrap()
    }

    fn instructed(system: &str, texts: &[&str]) -> Request {
        let mut request = request(texts);
        request.messages.insert(0, Message::system(system).into());
        request.with_tools(vec![tool("Does it.")])
    }

    /// A change, and the first segment that it moves.
    type Row = (fn(&mut Request), Option<Segment>);

    #[test]
    fn the_chain_names_the_first_segment_that_moved() {
        let base = instructed("Be brief.", &["a", "b"]);
        let moved = |change: fn(&mut Request)| {
            let mut next = base.clone();
            change(&mut next);
            base.prefix_chain().first_moved(&next.prefix_chain())
        };
        let rows: [Row; 12] = [
            (|_| {}, None),
            (|next| next.messages.push(Message::user("c").into()), None),
            (|next| next.temperature = Some(0.5), None),
            (|next| next.tools = vec![tool("Does it!")].into(), Some(Segment::Tools)),
            (|next| next.tools = ToolList::default(), Some(Segment::Tools)),
            (
                |next| *next = instructed("Be long.", &["a", "b"]).with_tools(ToolList::default()),
                Some(Segment::Tools),
            ),
            (|next| next.messages[0] = Message::system("Be long.").into(), Some(Segment::System)),
            (|next| drop(next.messages.remove(0)), Some(Segment::System)),
            (|next| next.messages.push(Message::developer("And now?").into()), Some(Segment::System)),
            (|next| next.messages[1] = Message::user("x").into(), Some(Segment::Message(1))),
            (|next| next.messages[2] = Message::assistant("b").into(), Some(Segment::Message(2))),
            (|next| drop(next.messages.pop()), Some(Segment::Message(2))),
        ];
        for (index, (change, expected)) in rows.into_iter().enumerate() {
            assert_eq!(moved(change), expected, "row {index}");
        }
    }

    #[test]
    fn a_chain_that_is_continued_is_that_of_the_longer_request() {
        let long = instructed("Be brief.", &["a", "b", "c"]);
        for known in 1..=long.messages.len() {
            let mut short = long.clone();
            short.messages.truncate(known);
            let mut chain = short.prefix_chain();
            assert!(chain.extend(&long.messages[known..]));
            assert_eq!(chain, long.prefix_chain(), "from {known}");
        }
        for late in [Message::system("And now?"), Message::developer("And now?")] {
            let mut chain = long.prefix_chain();
            assert!(!chain.extend(&[Message::user("d").into(), late.into()]));
            assert_eq!(chain, long.prefix_chain());
        }
        assert!(!PrefixChain { links: Vec::new() }.extend(&[]), "a chain without links is of no request");
    }

    #[test]
    fn segments_are_told_in_words_and_survive_serialisation() {
        let words = [Segment::Tools, Segment::System, Segment::Message(3)].map(|segment| {
            let text = serde_json::to_string(&segment).unwrap();
            assert_eq!(serde_json::from_str::<Segment>(&text).unwrap(), segment);
            segment.to_string()
        });
        assert_eq!(words, ["tools", "system prompt", "message 3"]);
        let chain = instructed("s", &["a"]).prefix_chain();
        assert_eq!((chain.len(), chain.is_empty()), (4, false));
        assert_eq!(chain.last(), instructed("s", &["a"]).prefix_chain().last());
    }

    #[test]
    fn effort_keeps_values_it_does_not_know() {
        for text in ["low", "medium", "high", "xhigh"] {
            assert_eq!(ReasoningEffort::from(text.to_owned()).to_string(), text);
        }
    }

    #[test]
    fn a_request_survives_serialisation() {
        let request = request(&["hello"])
            .with_provider("openai")
            .with_tool_choice(ToolChoice::Named("t".into()))
            .with_reasoning_effort(ReasoningEffort::High)
            .with_provider_options("openai", json!({"store": true}));
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
    }
}
