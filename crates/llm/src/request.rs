//! Requests (client specification, section 3.6).

mod media;
mod messages;
mod order;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::messages::MessageList;
use crate::fingerprint::Fingerprint;
use crate::history::HistoryItem;
use crate::message::{Message, Role};
use crate::tool::{ToolChoice, ToolList};

/// Input of [`Client::complete`](crate::Client::complete) and [`Client::stream`](crate::Client::stream).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Request {
    /// The provider's name for the model.
    pub model: String,
    /// Conversation, including system messages.
    pub messages: MessageList,
    /// Provider to route to; the client's default if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Tools that the model may call.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub tools: ToolList,
    /// Tool choice; `None` means `auto` if there are tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Response format; text if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// Sampling temperature, from 0 to 1 or 2 by provider; the provider's default if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling: share of the probability mass to sample from, 0 to 1; the provider's default if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Limit on the output tokens; the provider's default if `None` (Anthropic: 4,096).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Texts that end the response.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// Reasoning effort; the provider's default if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Pairs for the provider's records.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Parameters of individual providers, keyed by the provider's name. Not portable, by design.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provider_options: Map<String, Value>,
    /// Time limits; the adapter's if `None`. Not sent to the provider.
    #[serde(skip)]
    pub timeout: Option<AdapterTimeout>,
}

impl Request {
    /// Creates a request with a model and a conversation; everything else is unset.
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

    /// Adds a system message before the conversation.
    #[must_use]
    pub fn with_system(mut self, system: impl Into<String>) -> Self {
        self.messages.insert(0, Message::system(system).into());
        self
    }

    /// Appends messages.
    #[must_use]
    pub fn with_messages<M: Into<HistoryItem>>(mut self, messages: impl IntoIterator<Item = M>) -> Self {
        self.messages.extend(messages.into_iter().map(Into::into));
        self
    }

    /// Sets the provider to route to.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<String>) -> Self {
        self.provider = Some(provider.into());
        self
    }

    /// Sets the tools.
    #[must_use]
    pub fn with_tools(mut self, tools: impl Into<ToolList>) -> Self {
        self.tools = tools.into();
        self
    }

    /// Sets the tool choice.
    #[must_use]
    pub fn with_tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = Some(choice);
        self
    }

    /// Sets the response format.
    #[must_use]
    pub fn with_response_format(mut self, format: ResponseFormat) -> Self {
        self.response_format = Some(format);
        self
    }

    /// Sets the sampling temperature, from 0 to 1 or 2 by provider.
    #[must_use]
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets nucleus sampling: the share of the probability mass to sample from, 0 to 1.
    #[must_use]
    pub fn with_top_p(mut self, top_p: f64) -> Self {
        self.top_p = Some(top_p);
        self
    }

    /// Adds a text that ends the response.
    #[must_use]
    pub fn with_stop_sequence(mut self, text: impl Into<String>) -> Self {
        self.stop_sequences.push(text.into());
        self
    }

    /// Adds a pair for the provider's records.
    #[must_use]
    pub fn with_metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }

    /// Limits the output tokens.
    #[must_use]
    pub fn with_max_tokens(mut self, max_tokens: u64) -> Self {
        self.max_tokens = Some(max_tokens);
        self
    }

    /// Sets the reasoning effort.
    #[must_use]
    pub fn with_reasoning_effort(mut self, effort: ReasoningEffort) -> Self {
        self.reasoning_effort = Some(effort);
        self
    }

    /// Sets the parameters of one provider.
    #[must_use]
    pub fn with_provider_options(mut self, provider: impl Into<String>, options: Value) -> Self {
        self.provider_options.insert(provider.into(), options);
        self
    }

    /// Replaces the adapter's time limits.
    #[must_use]
    pub fn with_timeout(mut self, timeout: AdapterTimeout) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Options of this provider, if given as an object.
    #[must_use]
    pub fn options_of(&self, provider: &str) -> Option<&Map<String, Value>> {
        self.provider_options.get(provider).and_then(Value::as_object)
    }

    /// Returns the hash chain over what a provider caches, in the order in which it reads it: tools, the system prompt,
    /// then each other message.
    ///
    /// Two requests share a prefix up to the first link that differs, which names the segment that moved. System and
    /// developer messages at any position count as the system prompt, since most dialects put them before the
    /// conversation: a late one moves everything.
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
            // A system message repeats the link, so that indices match the indices of `messages`.
            last = if is_system(item) { last } else { last.chain(item.fingerprint()) };
            links.push(last);
        }
        PrefixChain { links }
    }
}

/// Returns `true` if a message is part of the system prompt.
fn is_system(item: &HistoryItem) -> bool {
    matches!(item.role, Role::System | Role::Developer)
}

/// Fingerprints of a request's prefixes: tools first, then the system prompt, then one per message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixChain {
    links: Vec<Fingerprint>,
}

impl PrefixChain {
    /// Fingerprint of the complete prompt.
    #[must_use]
    pub fn last(&self) -> Option<Fingerprint> {
        self.links.last().copied()
    }

    /// Number of links: two more than messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Number of messages.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.links.len().saturating_sub(2)
    }

    /// Returns `true` for a chain without links, which only deserialisation can create.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Extends the chain by the messages that follow the messages of its request. Returns `false`, and leaves the chain
    /// unchanged, if one of them is a system or developer message, which would move the start of the prompt.
    #[must_use]
    pub fn extend(&mut self, messages: &[HistoryItem]) -> bool {
        let Some(mut last) = self.last().filter(|_| !messages.iter().any(is_system)) else { return false };
        self.links.extend(messages.iter().map(|item| {
            last = last.chain(item.fingerprint());
            last
        }));
        true
    }

    /// Returns the first segment in which `next` differs; `None` if it only extends this chain.
    #[must_use]
    pub fn first_moved(&self, next: &Self) -> Option<Segment> {
        let index = self.links.iter().zip(&next.links).position(|(a, b)| a != b);
        let index = index.or_else(|| (next.links.len() < self.links.len()).then_some(next.links.len()))?;
        Some(match index {
            0 => Segment::Tools,
            1 => Segment::System,
            index => Segment::Message(index - 2),
        })
    }
}

/// Segment of the prompt, for prompt caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Segment {
    /// Tool definitions.
    Tools,
    /// System prompt: all system and developer messages.
    System,
    /// Message at this index of the request, system messages included.
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

/// Reasoning effort.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ReasoningEffort {
    /// Fast and cheap.
    Low,
    /// Balanced.
    Medium,
    /// Slow and deep.
    High,
    /// A value of some providers, such as `minimal` or `xhigh`; passed on unchanged.
    Other(String),
}

impl ReasoningEffort {
    /// Returns the value as providers spell it.
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

/// Response format (specification section 3.10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResponseFormat {
    /// Plain text.
    Text,
    /// Any JSON value.
    Json,
    /// JSON that matches a schema.
    JsonSchema {
        /// The schema.
        json_schema: Value,
        /// Whether the provider enforces it.
        #[serde(default)]
        strict: bool,
    },
}

/// Time limits of an adapter (specification section 4.7).
///
/// [`first_byte`](Self::first_byte) and [`stream_read`](Self::stream_read) count raw bytes, so a provider's keep-alive
/// comments keep a stream alive. [`content`](Self::content) limits how long a stream may stay alive without content. The
/// first limit reached ends the exchange with [`ErrorKind::RequestTimeout`](crate::ErrorKind::RequestTimeout). Any
/// duration is valid; zero never waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdapterTimeout {
    /// Connecting. Default 10 s. Fixed when the adapter is built.
    pub connect: Duration,
    /// The complete exchange; `None` for no limit. Default 120 s, for complete responses only.
    pub request: Option<Duration>,
    /// From the end of sending the request to the end of the response's headers. Default 60 s, for streams only: the
    /// headers of a complete response arrive when it is finished, so `first_byte` and `request` limit them.
    pub headers: Duration,
    /// From the start of the exchange, including connecting and sending, to the first byte of the response body.
    /// Default 120 s.
    pub first_byte: Duration,
    /// Between two reads of a response body, streamed or complete. Default 30 s.
    pub stream_read: Duration,
    /// Without content ([`StreamEvent::is_content`](crate::StreamEvent::is_content)): for a stream, from the start of the
    /// exchange to the first content and between two; for a complete response, from start to end. Text that an adapter holds
    /// because it may be reasoning is content. Comments, pings and bytes of an incomplete event are no content. Only time
    /// spent waiting for the provider counts, not the time of a slow consumer. `None` for no limit. Default 15 minutes.
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
    /// Limits of a session's model calls: 300 s to the first byte and between reads, and no limit on the exchange; 60 s
    /// for the headers of a stream and 15 minutes without content, as by default.
    #[must_use]
    pub fn patient() -> Self {
        let long = Duration::from_secs(300);
        Self { request: None, first_byte: long, stream_read: long, ..Self::default() }
    }

    /// Sets the limit between two reads.
    #[must_use]
    pub fn with_stream_read(mut self, limit: Duration) -> Self {
        self.stream_read = limit;
        self
    }

    /// Sets the limit to the first byte.
    #[must_use]
    pub fn with_first_byte(mut self, limit: Duration) -> Self {
        self.first_byte = limit;
        self
    }

    /// Sets the limit for the headers of a stream.
    #[must_use]
    pub fn with_headers(mut self, limit: Duration) -> Self {
        self.headers = limit;
        self
    }

    /// Sets the limit without content; `None` for no limit.
    #[must_use]
    pub fn with_content(mut self, limit: Option<Duration>) -> Self {
        self.content = limit;
        self
    }

    /// Sets the same limit for each wait: headers, first byte, between two reads and without content. Lowers the limit for
    /// connecting if it is longer.
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

    /// Sets the limit for the complete exchange.
    #[must_use]
    pub fn with_request(mut self, limit: Option<Duration>) -> Self {
        self.request = limit;
        self
    }

    /// Sets the limit for connecting.
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
    use crate::tool::ToolDefinition;

    fn request(texts: &[&str]) -> Request {
        Request::new("m", texts.iter().map(|text| Message::user(*text)))
    }

    fn tool(description: &str) -> ToolDefinition {
        ToolDefinition::new("t", description, json!({"type": "object"})).unwrap()
    }

    fn request_with_system(system: &str, texts: &[&str]) -> Request {
        request(texts).with_system(system).with_tools(vec![tool("Does it.")])
    }

    /// A change, and the first segment that it moves.
    type Case = (fn(&mut Request), Option<Segment>);

    #[test]
    fn the_chain_names_the_first_segment_that_moved() {
        let base = request_with_system("Be brief.", &["a", "b"]);
        let moved = |change: fn(&mut Request)| {
            let mut next = base.clone();
            change(&mut next);
            base.prefix_chain().first_moved(&next.prefix_chain())
        };
        let cases: [Case; 12] = [
            (|_| {}, None),
            (|next| next.messages.push(Message::user("c").into()), None),
            (|next| next.temperature = Some(0.5), None),
            (|next| next.tools = vec![tool("Does it!")].into(), Some(Segment::Tools)),
            (|next| next.tools = ToolList::default(), Some(Segment::Tools)),
            (
                |next| *next = request_with_system("Be long.", &["a", "b"]).with_tools(ToolList::default()),
                Some(Segment::Tools),
            ),
            (|next| next.messages[0] = Message::system("Be long.").into(), Some(Segment::System)),
            (|next| drop(next.messages.remove(0)), Some(Segment::System)),
            (|next| next.messages.push(Message::developer("And now?").into()), Some(Segment::System)),
            (|next| next.messages[1] = Message::user("x").into(), Some(Segment::Message(1))),
            (|next| next.messages[2] = Message::assistant("b").into(), Some(Segment::Message(2))),
            (|next| drop(next.messages.pop()), Some(Segment::Message(2))),
        ];
        for (index, (change, expected)) in cases.into_iter().enumerate() {
            assert_eq!(moved(change), expected, "case {index}");
        }
    }

    #[test]
    fn an_extended_chain_equals_that_of_the_longer_request() {
        let long = request_with_system("Be brief.", &["a", "b", "c"]);
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
        assert!(
            !PrefixChain { links: Vec::new() }.extend(&[]),
            "a chain without links belongs to no request"
        );
    }

    #[test]
    fn segments_are_displayed_and_serialised() {
        let words = [Segment::Tools, Segment::System, Segment::Message(3)].map(|segment| {
            let text = serde_json::to_string(&segment).unwrap();
            assert_eq!(serde_json::from_str::<Segment>(&text).unwrap(), segment);
            segment.to_string()
        });
        assert_eq!(words, ["tools", "system prompt", "message 3"]);
        let chain = request_with_system("s", &["a"]).prefix_chain();
        assert_eq!((chain.len(), chain.is_empty()), (4, false));
        assert_eq!(chain.last(), request_with_system("s", &["a"]).prefix_chain().last());
    }

    #[test]
    fn unknown_efforts_are_kept() {
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
