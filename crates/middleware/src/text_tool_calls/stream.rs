//! Parsing of calls in streamed text.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pintle_llm::{Error, EventStream, PartialToolCall, Response, StreamEvent, ToolCall};

use super::recognizer::{CallRecognizer, TextSegment};
use super::{ResponseParser, set_tool_calls};

pub(super) fn parse(events: EventStream, parser: ResponseParser) -> EventStream {
    let rewriter = StreamRewriter { response_parser: parser.clone(), parser, texts: Vec::new() };
    Box::pin(ParsedStream { events: Some(events), rewriter, ready: VecDeque::new() })
}

struct ParsedStream {
    /// `None` after the end.
    events: Option<EventStream>,
    rewriter: StreamRewriter,
    ready: VecDeque<Result<StreamEvent, Error>>,
}

impl Stream for ParsedStream {
    type Item = Result<StreamEvent, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { events, rewriter, ready } = self.get_mut();
        loop {
            if let Some(item) = ready.pop_front() {
                return Poll::Ready(Some(item));
            }
            let Some(open) = events else { return Poll::Ready(None) };
            let mut out = Vec::new();
            let error = match ready!(open.as_mut().poll_next(cx)) {
                Some(Ok(event)) => {
                    rewriter.rewrite(event, &mut out);
                    None
                }
                // Emit the text that was held back before the error.
                Some(Err(error)) => {
                    rewriter.abort(&mut out);
                    Some(error)
                }
                None => {
                    *events = None;
                    rewriter.abort(&mut out);
                    None
                }
            };
            ready.extend(out.into_iter().map(Ok));
            ready.extend(error.map(Err));
        }
    }
}

struct StreamRewriter {
    parser: ResponseParser,
    /// Parses the complete response of the final event, and finds the same calls.
    response_parser: ResponseParser,
    /// Open text segments of the provider.
    texts: Vec<OpenText>,
}

/// A text segment of the provider, which is split at its calls.
struct OpenText {
    /// The provider's id.
    id: String,
    recognizer: CallRecognizer,
    /// Number of segments emitted.
    parts: usize,
    /// Id of the emitted segment that is open.
    open: Option<String>,
    /// White space held back until text follows.
    blank: String,
    /// The segment contains a call.
    has_call: bool,
}

impl StreamRewriter {
    fn rewrite(&mut self, event: StreamEvent, out: &mut Vec<StreamEvent>) {
        match event {
            StreamEvent::TextStart { text_id } => {
                self.texts.push(OpenText::new(text_id, self.parser.recognizer()));
            }
            StreamEvent::TextDelta { text_id, delta } => {
                let Some(index) = self.index_of(&text_id) else {
                    return out.push(StreamEvent::TextDelta { text_id, delta });
                };
                self.recognize(index, |recognizer, segments| recognizer.feed(&delta, segments), out);
            }
            StreamEvent::TextEnd { text_id, signature } => {
                let Some(index) = self.index_of(&text_id) else {
                    return out.push(StreamEvent::TextEnd { text_id, signature });
                };
                self.recognize(index, CallRecognizer::finish, out);
                self.texts.remove(index).end(signature, out);
            }
            StreamEvent::Finish { mut finish_reason, usage, response } => {
                self.recognize_all(CallRecognizer::finish, out);
                let first = self.response_parser.next_id;
                let response: Response = self.response_parser.parse(*response);
                if self.response_parser.next_id != first {
                    set_tool_calls(&mut finish_reason.reason);
                }
                out.push(StreamEvent::Finish { finish_reason, usage, response: Box::new(response) });
            }
            StreamEvent::StreamStart { .. }
            | StreamEvent::ReasoningStart { .. }
            | StreamEvent::ReasoningDelta { .. }
            | StreamEvent::ReasoningEnd { .. }
            | StreamEvent::ToolCallStart { .. }
            | StreamEvent::ToolCallDelta { .. }
            | StreamEvent::ToolCallEnd { .. }
            | StreamEvent::StepFinish { .. }
            | StreamEvent::ProviderEvent { .. }
            | _ => out.push(event),
        }
    }

    fn index_of(&self, id: &str) -> Option<usize> {
        self.texts.iter().rposition(|text| text.id == id)
    }

    fn recognize(
        &mut self,
        index: usize,
        step: impl FnOnce(&mut CallRecognizer, &mut Vec<TextSegment>),
        out: &mut Vec<StreamEvent>,
    ) {
        let Some(text) = self.texts.get_mut(index) else { return };
        let mut segments = Vec::new();
        step(&mut text.recognizer, &mut segments);
        for segment in segments {
            match segment {
                TextSegment::Text(delta) => text.push_text(delta, out),
                TextSegment::Call(parsed) => {
                    let call = self.parser.tool_call(parsed);
                    text.push_call(call, out);
                }
            }
        }
    }

    /// Emits the text held back by open segments. They stay open, which shows consumers that the response broke off.
    fn abort(&mut self, out: &mut Vec<StreamEvent>) {
        self.recognize_all(CallRecognizer::abort, out);
    }

    fn recognize_all(
        &mut self,
        step: impl Fn(&mut CallRecognizer, &mut Vec<TextSegment>),
        out: &mut Vec<StreamEvent>,
    ) {
        for index in 0..self.texts.len() {
            self.recognize(index, &step, out);
        }
    }
}

impl OpenText {
    fn new(id: String, recognizer: CallRecognizer) -> Self {
        Self { id, recognizer, parts: 0, open: None, blank: String::new(), has_call: false }
    }

    fn push_text(&mut self, text: String, out: &mut Vec<StreamEvent>) {
        let text_id = match &self.open {
            Some(id) => id.clone(),
            None => {
                self.blank.push_str(&text);
                // `blank` holds white space only, so this decides for both.
                if text.trim().is_empty() {
                    return;
                }
                self.start_part(out)
            }
        };
        let blank = std::mem::take(&mut self.blank);
        let delta = if blank.is_empty() { text } else { blank };
        out.push(StreamEvent::TextDelta { text_id, delta });
    }

    /// Starts the next segment; the first one has the provider's id.
    fn start_part(&mut self, out: &mut Vec<StreamEvent>) -> String {
        let id = if self.parts == 0 { self.id.clone() } else { format!("{}.{}", self.id, self.parts) };
        self.parts += 1;
        self.open = Some(id.clone());
        out.push(StreamEvent::TextStart { text_id: id.clone() });
        id
    }

    fn push_call(&mut self, call: ToolCall, out: &mut Vec<StreamEvent>) {
        self.has_call = true;
        self.blank.clear();
        out.extend(self.open.take().map(|text_id| StreamEvent::TextEnd { text_id, signature: None }));
        let tool_call = PartialToolCall { id: call.id.clone(), name: call.name.clone() };
        out.push(StreamEvent::ToolCallStart { tool_call: tool_call.clone() });
        out.push(StreamEvent::ToolCallDelta { tool_call, delta: call.arguments_text().into_owned() });
        out.push(StreamEvent::ToolCallEnd { tool_call: call });
    }

    fn end(mut self, signature: Option<String>, out: &mut Vec<StreamEvent>) {
        if self.has_call {
            out.extend(self.open.map(|text_id| StreamEvent::TextEnd { text_id, signature: None }));
            return;
        }
        let text_id = match self.open.take() {
            Some(id) => id,
            None => self.start_part(out),
        };
        if !self.blank.is_empty() {
            let delta = std::mem::take(&mut self.blank);
            out.push(StreamEvent::TextDelta { text_id: text_id.clone(), delta });
        }
        out.push(StreamEvent::TextEnd { text_id, signature });
    }
}
