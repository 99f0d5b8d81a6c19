//! The events of a stream, with the calls of its text made events.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::recognizer::{Piece, Recognizer};
use super::{Reader, called};
use crate::content::ToolCall;
use crate::error::Error;
use crate::response::Response;
use crate::stream::{EventStream, PartialToolCall, StreamEvent};

pub(super) fn read(events: EventStream, reader: Reader) -> EventStream {
    let rewriter = Rewriter { whole: reader.clone(), reader, segments: Vec::new() };
    Box::pin(Read { events: Some(events), rewriter, ready: VecDeque::new() })
}

struct Read {
    /// `None` once it has ended.
    events: Option<EventStream>,
    rewriter: Rewriter,
    ready: VecDeque<Result<StreamEvent, Error>>,
}

impl Stream for Read {
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
                // What was held back has been said, whatever becomes of the answer.
                Some(Err(error)) => {
                    rewriter.give_up(&mut out);
                    Some(error)
                }
                None => {
                    *events = None;
                    rewriter.give_up(&mut out);
                    None
                }
            };
            ready.extend(out.into_iter().map(Ok));
            ready.extend(error.map(Err));
        }
    }
}

struct Rewriter {
    reader: Reader,
    /// Reads the whole answer at the end, and finds the same calls.
    whole: Reader,
    /// Open segments of text.
    segments: Vec<Segment>,
}

/// A segment of text, which becomes several where calls stand in it.
struct Segment {
    /// As the provider names it.
    id: String,
    recognizer: Recognizer,
    /// How many segments it has become.
    parts: usize,
    /// The open one.
    open: Option<String>,
    /// White space that waits for text to stand before.
    blank: String,
    /// A call was in it.
    called: bool,
}

impl Rewriter {
    fn rewrite(&mut self, event: StreamEvent, out: &mut Vec<StreamEvent>) {
        match event {
            StreamEvent::TextStart { text_id } => {
                self.segments.push(Segment::new(text_id, self.reader.recognizer()));
            }
            StreamEvent::TextDelta { text_id, delta } => {
                let Some(place) = self.place(&text_id) else {
                    return out.push(StreamEvent::TextDelta { text_id, delta });
                };
                self.read(place, |recognizer, pieces| recognizer.feed(&delta, pieces), out);
            }
            StreamEvent::TextEnd { text_id, signature } => {
                let Some(place) = self.place(&text_id) else {
                    return out.push(StreamEvent::TextEnd { text_id, signature });
                };
                self.read(place, Recognizer::finish, out);
                self.segments.remove(place).end(signature, out);
            }
            StreamEvent::Finish { mut finish_reason, usage, response } => {
                self.read_all(Recognizer::finish, out);
                let first = self.whole.next;
                let response: Response = self.whole.read(*response);
                if self.whole.next != first {
                    called(&mut finish_reason.reason);
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
            | StreamEvent::ProviderEvent { .. } => out.push(event),
        }
    }

    fn place(&self, id: &str) -> Option<usize> {
        self.segments.iter().rposition(|segment| segment.id == id)
    }

    fn read(
        &mut self,
        place: usize,
        read: impl FnOnce(&mut Recognizer, &mut Vec<Piece>),
        out: &mut Vec<StreamEvent>,
    ) {
        let Some(segment) = self.segments.get_mut(place) else { return };
        let mut pieces = Vec::new();
        read(&mut segment.recognizer, &mut pieces);
        for piece in pieces {
            match piece {
                Piece::Text(text) => segment.say(text, out),
                Piece::Call(written) => {
                    let call = self.reader.call(written);
                    segment.call(call, out);
                }
            }
        }
    }

    /// Says what open segments hold back. They stay open: who reads the events knows that the answer broke off.
    fn give_up(&mut self, out: &mut Vec<StreamEvent>) {
        self.read_all(Recognizer::give_up, out);
    }

    fn read_all(&mut self, read: impl Fn(&mut Recognizer, &mut Vec<Piece>), out: &mut Vec<StreamEvent>) {
        for place in 0..self.segments.len() {
            self.read(place, &read, out);
        }
    }
}

impl Segment {
    fn new(id: String, recognizer: Recognizer) -> Self {
        Self { id, recognizer, parts: 0, open: None, blank: String::new(), called: false }
    }

    fn say(&mut self, text: String, out: &mut Vec<StreamEvent>) {
        let text_id = match &self.open {
            Some(id) => id.clone(),
            None => {
                self.blank.push_str(&text);
                // What stands there already is blank.
                if text.trim().is_empty() {
                    return;
                }
                self.begin(out)
            }
        };
        let blank = std::mem::take(&mut self.blank);
        let delta = if blank.is_empty() { text } else { blank };
        out.push(StreamEvent::TextDelta { text_id, delta });
    }

    /// Begins the next part, which has the segment's own id if it is the first.
    fn begin(&mut self, out: &mut Vec<StreamEvent>) -> String {
        let id = if self.parts == 0 { self.id.clone() } else { format!("{}.{}", self.id, self.parts) };
        self.parts += 1;
        self.open = Some(id.clone());
        out.push(StreamEvent::TextStart { text_id: id.clone() });
        id
    }

    fn call(&mut self, call: ToolCall, out: &mut Vec<StreamEvent>) {
        self.called = true;
        self.blank.clear();
        out.extend(self.open.take().map(|text_id| StreamEvent::TextEnd { text_id, signature: None }));
        let tool_call = PartialToolCall { id: call.id.clone(), name: call.name.clone() };
        out.push(StreamEvent::ToolCallStart { tool_call: tool_call.clone() });
        out.push(StreamEvent::ToolCallDelta { tool_call, delta: call.arguments_text().into_owned() });
        out.push(StreamEvent::ToolCallEnd { tool_call: call });
    }

    fn end(mut self, signature: Option<String>, out: &mut Vec<StreamEvent>) {
        if self.called {
            out.extend(self.open.map(|text_id| StreamEvent::TextEnd { text_id, signature: None }));
            return;
        }
        let text_id = match self.open.take() {
            Some(id) => id,
            None => self.begin(out),
        };
        if !self.blank.is_empty() {
            let delta = std::mem::take(&mut self.blank);
            out.push(StreamEvent::TextDelta { text_id: text_id.clone(), delta });
        }
        out.push(StreamEvent::TextEnd { text_id, signature });
    }
}
