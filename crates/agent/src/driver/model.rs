//! One call of the model: streamed, retried, cancellable.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use pintle_llm::{
    Client, Error, ErrorKind, Finish, Request, Response, Retry, RetryPolicy, StreamEvent, jitter,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::room::Room;
use super::{Driver, Report, trace};
use crate::id::{ModelCallId, SegmentId};
use crate::turn::{InputKind, SegmentKind};

impl Driver {
    pub(super) fn call_model(&mut self, model_call: ModelCallId, request: Request) {
        // The round before is over, and the calls of this answer mean the tools that it offers.
        self.forget_waiting_calls();
        self.subagents.clear_reservations();
        self.tools = self.profile.tool_registry.clone();
        self.place = Arc::clone(&self.env);
        let cancel = CancellationToken::new();
        self.model = Some(cancel.clone());
        let reports = self.reports.clone();
        let call = ModelCall {
            client: self.profile.reading_text_calls(&self.client),
            request: request.with_timeout(self.config.model_timeout.0),
            streams: self.profile.supports_streaming,
            policy: self.config.retry.0.clone(),
            answer_limit: self.config.answer_limit.0,
            model_call,
            segments: Segments {
                reports: reports.clone(),
                drawn: Arc::clone(&self.segments_drawn),
                open: Vec::new(),
                text: String::new(),
                said: String::new(),
            },
        };
        let span = self.trace.model_call(&call.request);
        let inside = span.clone();
        let calling = async move {
            let kind = call.run(cancel).await;
            trace::ended(&span, &kind);
            // Without a driver nobody waits for the answer.
            let _ = reports.send(Report::input(kind)).await;
        };
        self.spawn(calling.instrument(inside));
    }
}

struct ModelCall {
    client: Client,
    request: Request,
    streams: bool,
    policy: RetryPolicy,
    /// In bytes.
    answer_limit: u64,
    model_call: ModelCallId,
    segments: Segments,
}

impl ModelCall {
    async fn run(mut self, cancel: CancellationToken) -> InputKind {
        let model_call = self.model_call;
        let result = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Error::new(ErrorKind::Abort, "the model call was cancelled")),
            result = AssertUnwindSafe(self.attempts()).catch_unwind() => result.unwrap_or_else(|_| Err(panicked())),
        };
        match result {
            Ok(response) => {
                // The answer ends what its adapter has left open.
                self.segments.close_all(false).await;
                InputKind::ModelReplied { model_call, response: Box::new(response) }
            }
            Err(error) => {
                self.segments.interrupt().await;
                let partial = self.segments.said;
                InputKind::ModelFailed { model_call, error: error.info().clone(), partial }
            }
        }
    }

    /// Tries until an attempt succeeds or the policy says no more. No tool has started, so trying again is safe.
    async fn attempts(&mut self) -> Result<Response, Error> {
        let mut attempt = 0;
        loop {
            let error = match self.attempt().await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let Some(delay) = self.policy.delay(attempt, &error, jitter()) else { return Err(error) };
            attempt += 1;
            self.segments.interrupt().await;
            self.tell_retry(attempt, delay, &error).await;
            tokio::time::sleep(delay).await;
        }
    }

    async fn tell_retry(&self, attempt: u32, delay: Duration, error: &Error) {
        let kind = InputKind::ModelRetrying {
            model_call: self.model_call,
            attempt,
            delay,
            error: error.info().clone(),
        };
        self.segments.tell(kind).await;
    }

    async fn attempt(&mut self) -> Result<Response, Error> {
        let response = if self.streams {
            self.streamed().await?
        } else {
            let response = self.client.complete(self.request.clone()).await?;
            Room::new(self.answer_limit).fits(&response)?;
            self.segments.whole(&response).await;
            response
        };
        match response.finish_reason.reason {
            Finish::Error => Err(given_up(&response)),
            Finish::Stop | Finish::Length | Finish::ToolCalls | Finish::ContentFilter | Finish::Other => {
                Ok(response)
            }
        }
    }

    async fn streamed(&mut self) -> Result<Response, Error> {
        let mut events = self.client.stream(self.request.clone()).await?;
        let mut room = Room::new(self.answer_limit);
        while let Some(event) = events.next().await {
            let event = event?;
            room.take(&event)?;
            if let StreamEvent::Finish { response, .. } = self.segments.follow(event).await {
                room.fits(&response)?;
                return Ok(*response);
            }
        }
        Err(Error::new(ErrorKind::Stream, "the stream ended without its final event"))
    }
}

/// The session stays usable: another answer may not meet the defect.
fn panicked() -> Error {
    tracing::error!("a provider adapter panicked");
    Error::new(ErrorKind::Stream, "the provider adapter panicked").with_retry(Retry::Never)
}

/// The provider says that generation failed, as Gemini does for a call that it could not parse. The next attempt
/// may well succeed.
fn given_up(response: &Response) -> Error {
    let reason = response.finish_reason.raw.as_deref().unwrap_or("no reason given");
    let message = format!("the model stopped in the middle of its answer ({reason})");
    Error::new(ErrorKind::Stream, message).with_provider(response.provider.clone())
}

/// The open stretches of text and reasoning of an answer.
struct Segments {
    reports: mpsc::Sender<Report>,
    drawn: Arc<AtomicU64>,
    open: Vec<Open>,
    /// All visible text of the attempt.
    text: String,
    /// That of the newest attempt that has failed and had any: the user has read it, whatever follows.
    said: String,
}

struct Open {
    id: String,
    /// `None` until its first text has come, without which it is no segment.
    segment: Option<SegmentId>,
    kind: SegmentKind,
    text: String,
}

impl Segments {
    /// Tells the driver what an event means for the segments and gives it back.
    async fn follow(&mut self, event: StreamEvent) -> StreamEvent {
        match &event {
            StreamEvent::TextStart { text_id } => self.begin(text_id, SegmentKind::Text),
            StreamEvent::TextDelta { text_id, delta } => self.add(text_id, SegmentKind::Text, delta).await,
            StreamEvent::TextEnd { text_id, .. } => self.end(text_id, SegmentKind::Text).await,
            StreamEvent::ReasoningStart { reasoning_id } => self.begin(reasoning_id, SegmentKind::Reasoning),
            StreamEvent::ReasoningDelta { reasoning_id, reasoning_delta } => {
                self.add(reasoning_id, SegmentKind::Reasoning, reasoning_delta).await;
            }
            StreamEvent::ReasoningEnd { reasoning_id, .. } => {
                self.end(reasoning_id, SegmentKind::Reasoning).await
            }
            // Tool calls show when they run; the rest is in the answer.
            StreamEvent::StreamStart { .. }
            | StreamEvent::ToolCallStart { .. }
            | StreamEvent::ToolCallDelta { .. }
            | StreamEvent::ToolCallEnd { .. }
            | StreamEvent::Finish { .. }
            | StreamEvent::StepFinish { .. }
            | StreamEvent::ProviderEvent { .. }
            | _ => {}
        }
        event
    }

    /// The segments of an answer that came whole.
    async fn whole(&mut self, response: &Response) {
        if let Some(reasoning) = response.reasoning() {
            self.begin("0", SegmentKind::Reasoning);
            self.add("0", SegmentKind::Reasoning, &reasoning).await;
            self.end("0", SegmentKind::Reasoning).await;
        }
        let text = response.text();
        if !text.is_empty() {
            self.begin("1", SegmentKind::Text);
            self.add("1", SegmentKind::Text, &text).await;
            self.end("1", SegmentKind::Text).await;
        }
    }

    fn begin(&mut self, id: &str, kind: SegmentKind) {
        self.open.push(Open { id: id.to_owned(), segment: None, kind, text: String::new() });
    }

    async fn add(&mut self, id: &str, kind: SegmentKind, delta: &str) {
        let Some(place) = self.place(id, kind).filter(|_| !delta.is_empty()) else { return };
        let Some(segment) = self.opened(place).await else { return };
        if let Some(open) = self.open.get_mut(place) {
            open.text.push_str(delta);
        }
        if kind == SegmentKind::Text {
            self.text.push_str(delta);
        }
        // The channel is the brake: a stream is read no faster than the driver follows.
        let _ = self.reports.send(Report::Text { segment, delta: delta.to_owned() }).await;
    }

    /// The newest segment of this name.
    fn place(&self, id: &str, kind: SegmentKind) -> Option<usize> {
        self.open.iter().rposition(|open| open.id == id && open.kind == kind)
    }

    /// The segment at `place`, of which the driver is told when its first text comes.
    async fn opened(&mut self, place: usize) -> Option<SegmentId> {
        let open = self.open.get(place)?;
        if open.segment.is_some() {
            return open.segment;
        }
        let segment = SegmentId(self.drawn.fetch_add(1, Ordering::Relaxed));
        // The call may be cancelled while it waits: it is open here only when the driver knows it.
        self.tell(InputKind::SegmentOpened { segment, kind: open.kind }).await;
        self.open.get_mut(place)?.segment = Some(segment);
        Some(segment)
    }

    async fn end(&mut self, id: &str, kind: SegmentKind) {
        if let Some(place) = self.place(id, kind) {
            self.close(place, false).await;
        }
    }

    /// Ends the attempt, and what is open of it as interrupted.
    async fn interrupt(&mut self) {
        self.close_all(true).await;
        let text = std::mem::take(&mut self.text);
        // One that said nothing takes nothing back.
        if !text.trim().is_empty() {
            self.said = text;
        }
    }

    async fn close_all(&mut self, interrupted: bool) {
        while let Some(newest) = self.open.len().checked_sub(1) {
            self.close(newest, interrupted).await;
        }
    }

    /// Closes the segment at `place`. As it is open until the driver is told, none is forgotten if the call is
    /// cancelled while it waits.
    async fn close(&mut self, place: usize, interrupted: bool) {
        let room = self.reports.reserve().await;
        let Open { segment, kind, text, .. } = self.open.remove(place);
        // Without a driver nobody listens.
        if let (Ok(room), Some(segment)) = (room, segment) {
            room.send(Report::input(InputKind::SegmentClosed { segment, kind, text, interrupted }));
        }
    }

    async fn tell(&self, kind: InputKind) {
        // Without a driver nobody listens.
        let _ = self.reports.send(Report::input(kind)).await;
    }
}
