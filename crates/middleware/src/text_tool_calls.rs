//! Tool calls that a model writes as text.

mod candidate;
mod parse;
mod recognizer;
mod stream;

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use pintle_llm::{
    ContentPart, Error, Finish, Middleware, Mode, Next, Reply, Request, Response, TextData, ToolCall,
    ToolChoice, ToolItem,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::parse::ParsedCall;
use self::recognizer::{CallRecognizer, TextSegment};

/// Syntax in which a model writes tool calls as text when its server does not parse them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TextToolCallForm {
    /// `<tool_call>{"name": …, "arguments": …}</tool_call>`: Hermes, Qwen.
    Hermes,
    /// `<function=NAME><parameter=KEY>…</parameter></function>`, or JSON in place of the parameters, with or without
    /// `<tool_call>` around it: Qwen Coder, Llama.
    Function,
    /// `[TOOL_CALLS]` before a list of calls, or before `NAME[ARGS]{…}`: Mistral.
    Mistral,
    /// `<|python_tag|>` before a JSON object: Llama.
    PythonTag,
    /// A response that begins with the JSON of a call, or of a list of calls: Llama, and others whose server omits the
    /// marker.
    Json,
    /// A fenced block of `json` or `tool_call` that holds the JSON of a call.
    FencedJson,
    /// DeepSeek's special tokens, from `<｜tool▁calls▁begin｜>` to `<｜tool▁calls▁end｜>`.
    DeepSeek,
}

/// Middleware that parses tool calls written as text, in the given forms. For servers that do not parse them.
///
/// Recognition is strict; everything else stays text, character for character. A call must
///
/// * match one of the forms completely, within 1 MiB. Its JSON has a name, arguments (an object), optionally the usual
///   `id` and `type`, and nothing else; in a block of several calls each one must match. A missing end marker is
///   accepted at the end of a response, since servers remove it as a stop word, but not where a stream breaks;
/// * name a tool that the request offers;
/// * be outside of fenced code blocks, of code spans (which end with their line here), of lines that begin with `>`,
///   and of `<think>` at the start of a response: there a model explains, quotes or thinks.
///
/// In a stream, text is passed on as it arrives. Only a possible start of a call is held back until it is decided, and
/// the events of a call are emitted when it is complete. Its id is `text_call_N`, numbered over the conversation, so
/// the same conversation has the same ids. A response with a call that stopped normally gets the finish reason
/// [`Finish::ToolCalls`]. Segments of white space next to calls are dropped.
///
/// Register it inside of [`Logging`](pintle_llm::Logging) and [`ResponseCache`](crate::ResponseCache), which then see
/// the parsed calls.
#[derive(Clone, Debug)]
pub struct TextToolCalls {
    forms: BTreeSet<TextToolCallForm>,
}

impl TextToolCalls {
    /// Recognises these forms; without any, every response is passed on unchanged.
    #[must_use]
    pub fn new(forms: impl IntoIterator<Item = TextToolCallForm>) -> Self {
        Self { forms: forms.into_iter().collect() }
    }

    /// Returns the parser for the response to a request; `None` if the response may not contain calls.
    fn parser(&self, request: &Request) -> Option<ResponseParser> {
        let may_call = request.tool_choice != Some(ToolChoice::None) && !request.tools.is_empty();
        (may_call && !self.forms.is_empty()).then(|| ResponseParser {
            forms: self.forms.clone(),
            tools: OfferedTools::new(&request.tools),
            next_id: next_id(request),
        })
    }
}

#[async_trait]
impl Middleware for TextToolCalls {
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        let parser = self.parser(&request);
        let reply = next.run(request, mode).await?;
        Ok(match (reply, parser) {
            (reply, None) => reply,
            (Reply::Response(response), Some(mut parser)) => {
                Reply::Response(Box::new(parser.parse(*response)))
            }
            (Reply::Stream(events), Some(parser)) => Reply::Stream(stream::parse(events, parser)),
        })
    }
}

/// The tools of a request, each with its string parameters.
#[derive(Clone, Debug, Default)]
struct OfferedTools(BTreeMap<String, BTreeSet<String>>);

impl OfferedTools {
    fn new(tools: &[ToolItem]) -> Self {
        Self(tools.iter().map(|tool| (tool.name.clone(), string_properties(&tool.parameters))).collect())
    }

    fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn takes_text(&self, name: &str, parameter: &str) -> bool {
        self.0.get(name).is_some_and(|strings| strings.contains(parameter))
    }
}

/// Names of the schema's properties that may be strings.
fn string_properties(schema: &Value) -> BTreeSet<String> {
    let is_string = |property: &Value| match property.get("type") {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        Some(_) | None => false,
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let strings = properties.into_iter().flatten().filter(|(_, property)| is_string(property));
    strings.map(|(name, _)| name.clone()).collect()
}

/// The first call number that is unused in the conversation.
fn next_id(request: &Request) -> u64 {
    let numbers = request
        .messages
        .iter()
        .flat_map(|item| item.tool_calls())
        .filter_map(|call| call.id.strip_prefix(ID_PREFIX)?.parse::<u64>().ok());
    numbers.max().unwrap_or(0).saturating_add(1)
}

const ID_PREFIX: &str = "text_call_";

/// Parser of one response.
#[derive(Clone, Debug)]
struct ResponseParser {
    forms: BTreeSet<TextToolCallForm>,
    tools: OfferedTools,
    /// Number of the next call.
    next_id: u64,
}

impl ResponseParser {
    fn recognizer(&self) -> CallRecognizer {
        CallRecognizer::new(&self.forms, self.tools.clone())
    }

    fn tool_call(&mut self, parsed: ParsedCall) -> ToolCall {
        let id = format!("{ID_PREFIX}{}", self.next_id);
        self.next_id = self.next_id.saturating_add(1);
        ToolCall::from_raw(id, parsed.name, parsed.arguments)
    }

    /// Replaces calls in the response's text by tool calls.
    fn parse(&mut self, mut response: Response) -> Response {
        let first = self.next_id;
        let parts = std::mem::take(&mut response.message.content);
        for part in parts {
            if let ContentPart::Text(data) = part {
                self.parse_text(data, &mut response.message.content);
            } else {
                response.message.content.push(part);
            }
        }
        if self.next_id != first {
            set_tool_calls(&mut response.finish_reason.reason);
        }
        response
    }

    fn parse_text(&mut self, data: TextData, out: &mut Vec<ContentPart>) {
        let mut recognizer = self.recognizer();
        let mut segments = Vec::new();
        recognizer.feed(&data.text, &mut segments);
        recognizer.finish(&mut segments);
        if !segments.iter().any(|segment| matches!(segment, TextSegment::Call(_))) {
            out.push(ContentPart::Text(data));
            return;
        }
        // The signature is dropped: it covers the complete text.
        let mut text = String::new();
        let flush = |text: &mut String, out: &mut Vec<ContentPart>| {
            let text = std::mem::take(text);
            out.extend((!text.trim().is_empty()).then(|| ContentPart::text(text)));
        };
        for segment in segments {
            match segment {
                TextSegment::Text(more) => text.push_str(&more),
                TextSegment::Call(parsed) => {
                    flush(&mut text, out);
                    out.push(self.tool_call(parsed).into());
                }
            }
        }
        flush(&mut text, out);
    }
}

/// Adjusts the finish reason of a response with calls in its text. A truncated or failed response stays one.
fn set_tool_calls(reason: &mut Finish) {
    if matches!(reason, Finish::Stop | Finish::Other) {
        *reason = Finish::ToolCalls;
    }
}

#[cfg(test)]
mod tests;
