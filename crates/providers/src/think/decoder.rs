//! Reasoning in the first text of a stream.

use pintle_llm::{Error, StreamEvent, ThinkingData};

use super::{ThinkPiece, ThinkSplitter};
use crate::dialect::{Decoder, SseEvent};

/// Decoder that separates the reasoning at the start of the content from the events of another decoder.
///
/// Only the first text can begin with reasoning, and only if neither reasoning nor a call precedes it.
#[derive(Debug)]
pub(crate) struct ThinkDecoder<D> {
    inner: D,
    splitter: ThinkSplitter,
    state: DecoderState,
    /// Whether content of the first text was received since the last [`take_progress`](Decoder::take_progress).
    has_progressed: bool,
    /// Events of the inner decoder that are not handled yet.
    events: Vec<StreamEvent>,
}

#[derive(Debug)]
enum DecoderState {
    /// Before any content.
    Start,
    /// In the first text, which may contain reasoning.
    Text(FirstText),
    /// All further events are unchanged.
    Done,
}

/// The first text, whose start event is held until it has an answer.
#[derive(Debug)]
struct FirstText {
    id: String,
    /// Text of its reasoning, while that is open.
    reasoning: Option<String>,
    has_reasoning: bool,
    /// Whether its start event has been emitted.
    started: bool,
}

impl<D: Decoder> ThinkDecoder<D> {
    /// Creates a decoder. If `opened`, text up to a closing tag is reasoning without an opening tag.
    pub(crate) fn new(inner: D, opened: bool) -> Self {
        Self {
            inner,
            splitter: ThinkSplitter::new(opened),
            state: DecoderState::Start,
            has_progressed: false,
            events: Vec::new(),
        }
    }

    fn take_events(&mut self, out: &mut Vec<StreamEvent>) {
        for event in std::mem::take(&mut self.events) {
            match std::mem::replace(&mut self.state, DecoderState::Done) {
                DecoderState::Start => self.state = start(event, out),
                DecoderState::Text(text) => self.state = self.text_event(text, event, out),
                DecoderState::Done => out.push(event),
            }
        }
    }

    /// Handles an event in the first text, and returns the next state.
    fn text_event(
        &mut self,
        mut text: FirstText,
        event: StreamEvent,
        out: &mut Vec<StreamEvent>,
    ) -> DecoderState {
        if let StreamEvent::TextDelta { text_id, delta } = &event
            && *text_id == text.id
        {
            self.has_progressed |= !delta.is_empty();
            for piece in self.splitter.push(delta) {
                text.push(piece, out);
            }
            return if self.splitter.is_in_answer() { DecoderState::Done } else { DecoderState::Text(text) };
        }
        if let StreamEvent::TextEnd { text_id, signature } = &event
            && *text_id == text.id
        {
            if let Some(piece) = self.splitter.finish() {
                text.push(piece, out);
            }
            text.end(signature.clone(), out);
            return DecoderState::Done;
        }
        if begins_part(&event) || matches!(event, StreamEvent::Finish { .. }) {
            self.settle(text, out);
            out.push(event);
            return DecoderState::Done;
        }
        out.push(event);
        DecoderState::Text(text)
    }

    /// Emits the held part of the first text. Its further deltas are part of the answer.
    fn settle(&mut self, mut text: FirstText, out: &mut Vec<StreamEvent>) {
        if let Some(piece) = self.splitter.finish() {
            text.push(piece, out);
        }
        text.end_reasoning(out);
        text.start(out);
    }
}

impl<D: Decoder> Decoder for ThinkDecoder<D> {
    fn feed(&mut self, event: SseEvent<'_>, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if matches!(self.state, DecoderState::Done) {
            return self.inner.feed(event, out);
        }
        let fed = self.inner.feed(event, &mut self.events);
        self.take_events(out);
        fed
    }

    fn take_progress(&mut self) -> bool {
        let has_inner_progressed = self.inner.take_progress();
        std::mem::take(&mut self.has_progressed) || has_inner_progressed
    }

    fn end(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Error> {
        let ended = self.inner.end(&mut self.events);
        self.take_events(out);
        if let DecoderState::Text(text) = std::mem::replace(&mut self.state, DecoderState::Done) {
            self.settle(text, out);
        }
        ended
    }
}

impl FirstText {
    fn new(id: String) -> Self {
        Self { id, reasoning: None, has_reasoning: false, started: false }
    }

    fn push(&mut self, piece: ThinkPiece, out: &mut Vec<StreamEvent>) {
        match piece {
            ThinkPiece::Reasoning(delta) => {
                let reasoning_id = self.reasoning_id();
                if self.reasoning.is_none() {
                    self.has_reasoning = true;
                    out.push(StreamEvent::ReasoningStart { reasoning_id: reasoning_id.clone() });
                }
                self.reasoning.get_or_insert_default().push_str(&delta);
                out.push(StreamEvent::ReasoningDelta { reasoning_id, reasoning_delta: delta });
            }
            ThinkPiece::Text(delta) => {
                self.end_reasoning(out);
                self.start(out);
                out.push(StreamEvent::TextDelta { text_id: self.id.clone(), delta });
            }
        }
    }

    fn reasoning_id(&self) -> String {
        format!("{}.think", self.id)
    }

    fn end_reasoning(&mut self, out: &mut Vec<StreamEvent>) {
        if let Some(text) = self.reasoning.take() {
            let (reasoning_id, thinking) = (self.reasoning_id(), ThinkingData::new(text));
            out.push(StreamEvent::ReasoningEnd { reasoning_id, thinking });
        }
    }

    fn start(&mut self, out: &mut Vec<StreamEvent>) {
        if !std::mem::replace(&mut self.started, true) {
            out.push(StreamEvent::TextStart { text_id: self.id.clone() });
        }
    }

    /// Emits its end. A text without an answer is only reasoning.
    fn end(mut self, signature: Option<String>, out: &mut Vec<StreamEvent>) {
        self.end_reasoning(out);
        if !self.has_reasoning || signature.is_some() {
            self.start(out);
        }
        if self.started {
            out.push(StreamEvent::TextEnd { text_id: self.id, signature });
        }
    }
}

/// Handles an event before any content, and returns the next state.
fn start(event: StreamEvent, out: &mut Vec<StreamEvent>) -> DecoderState {
    if let StreamEvent::TextStart { text_id } = event {
        return DecoderState::Text(FirstText::new(text_id));
    }
    let next = if begins_part(&event) { DecoderState::Done } else { DecoderState::Start };
    out.push(event);
    next
}

/// Returns whether an event begins a part of the message.
fn begins_part(event: &StreamEvent) -> bool {
    matches!(
        event,
        StreamEvent::TextStart { .. }
            | StreamEvent::ReasoningStart { .. }
            | StreamEvent::ToolCallStart { .. }
            | StreamEvent::ProviderEvent { part: Some(_), .. }
    )
}
