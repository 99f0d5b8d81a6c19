//! One model call: streamed, retried, cancellable.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use pintle_llm::{
    Client, Error, ErrorKind, Finish, PartialToolCall, Request, Response, Retry, RetryPolicy, StreamEvent,
    jitter,
};
use pintle_tools::gate::Gate;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::hooks::HookPoint;
use super::response_size::ResponseSizeLimit;
use super::{Driver, Report, trace};
use crate::protocol::{CompactionTrigger, InputKind, ModelCallId, SegmentId, SegmentKind};
use crate::record::Fence;

impl Driver {
    pub(super) fn call_model(&mut self, model_call: ModelCallId, request: Request) {
        // The previous round is over, and the calls of the response refer to the tools that this request offers.
        self.drop_waiting_calls();
        self.subagents.clear_reservations();
        self.tools = self.profile.tool_registry.clone();
        self.environment.start_request();
        let cancel = CancellationToken::new();
        self.model = Some(cancel.clone());
        let reports = self.reports.clone();
        let call = ModelCall {
            client: self.profile.reading_text_calls(&self.client),
            request: request.with_timeout(self.config.model_timeout.0),
            streams: self.profile.supports_streaming,
            policy: self.config.retry.0.clone(),
            response_limit: self.config.response_limit.0,
            fence: self.recording.fence(),
            hooks: ModelHooks {
                hooks: self.hooks.clone(),
                gates: Arc::clone(&self.gates),
                compaction: self.machine.compaction_trigger(),
                continues_compaction: self.machine.continues_compaction(),
                sent_on: self.machine.hook_continuations(),
            },
            model_call,
            segments: ResponseSegments {
                reports: reports.clone(),
                counter: Arc::clone(&self.segment_counter),
                open: Vec::new(),
                text: String::new(),
                last_text: String::new(),
            },
        };
        let span = self.trace.model_call(&call.request);
        let inside = span.clone();
        let calling = async move {
            let kind = call.run(cancel).await;
            trace::record_end(&span, &kind);
            // If the driver is gone, the response is no longer needed.
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
    response_limit: u64,
    fence: Fence,
    hooks: ModelHooks,
    model_call: ModelCallId,
    segments: ResponseSegments,
}

/// Hooks and gates around a model call.
struct ModelHooks {
    hooks: Option<HookPoint>,
    gates: Arc<[Arc<dyn Gate>]>,
    /// Set if the call writes a summary.
    compaction: Option<CompactionTrigger>,
    /// Whether the hooks ran before an earlier call of the same compaction.
    continues_compaction: bool,
    /// Number of times that hooks made the model continue in this run.
    sent_on: u32,
}

impl ModelHooks {
    async fn before(&self) -> Result<(), Error> {
        match (&self.hooks, self.compaction) {
            (Some(hooks), Some(trigger)) if !self.continues_compaction => {
                hooks.before_compaction(trigger).await
            }
            (_, _) => Ok(()),
        }
    }

    /// Returns the input of the first gate or hook that objects to a response that ends the run.
    async fn after(&self, response: &Response, model_call: ModelCallId) -> Option<InputKind> {
        let ends = self.compaction.is_none()
            && response.tool_calls().next().is_none()
            && matches!(response.finish_reason.reason, Finish::Stop | Finish::Length | Finish::Other);
        if !ends {
            return None;
        }
        for gate in self.gates.iter() {
            match AssertUnwindSafe(gate.stop_at_end()).catch_unwind().await {
                Ok(Some(reason)) => return Some(InputKind::EndStopped { model_call, reason }),
                Ok(None) => {}
                Err(_panic) => tracing::error!(?gate, "a gate panicked"),
            }
        }
        let text = self.hooks.as_ref()?.before_end(&response.text(), self.sent_on).await?;
        Some(InputKind::SentOn { model_call, text })
    }
}

impl ModelCall {
    async fn run(mut self, cancel: CancellationToken) -> InputKind {
        let model_call = self.model_call;
        let result = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Error::new(ErrorKind::Abort, "the model call was cancelled")),
            result = AssertUnwindSafe(self.call()).catch_unwind() => result.unwrap_or_else(|_| Err(panicked())),
        };
        match result {
            Ok(response) => {
                // An adapter may not have ended every segment.
                self.segments.close_all(false).await;
                self.run_hooks(&response, &cancel).await;
                InputKind::ModelReplied { model_call, response: Box::new(response) }
            }
            Err(error) => {
                self.segments.end_attempt().await;
                let partial = self.segments.last_text;
                InputKind::ModelFailed { model_call, error: error.info().clone(), partial }
            }
        }
    }

    async fn call(&mut self) -> Result<Response, Error> {
        self.hooks.before().await?;
        self.attempts().await
    }

    /// Runs gates and hooks for a response that would end the run, and reports their answers. The response
    /// is paid for, so it counts even if the call is cancelled now.
    async fn run_hooks(&self, response: &Response, cancel: &CancellationToken) {
        let after = self.hooks.after(response, self.model_call);
        if let Some(Some(said)) = cancel.run_until_cancelled(after).await {
            self.segments.report(said).await;
        }
    }

    /// Tries until an attempt succeeds or the policy gives up. Retrying is safe, since no tool has started.
    async fn attempts(&mut self) -> Result<Response, Error> {
        let mut attempt = 0;
        loop {
            let error = match self.attempt().await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let Some(delay) = self.policy.delay(attempt, &error, jitter()) else { return Err(error) };
            attempt += 1;
            self.segments.end_attempt().await;
            let recorded = self.report_retry(attempt, delay, &error).await;
            tokio::time::sleep(delay).await;
            if recorded.await.is_err() {
                // The attempt is not recorded: the session ends, and cancels this call.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Reports another attempt. Returns the receiver of the notice that it is recorded.
    async fn report_retry(&self, attempt: u32, delay: Duration, error: &Error) -> oneshot::Receiver<()> {
        let kind = InputKind::ModelRetrying {
            model_call: self.model_call,
            attempt,
            delay,
            error: error.info().clone(),
        };
        let (sender, recorded) = oneshot::channel();
        let report = Report::Intent { kind: Box::new(kind), recorded: sender };
        // If the driver is gone, there is no further attempt.
        let _ = self.segments.reports.send(report).await;
        recorded
    }

    async fn attempt(&mut self) -> Result<Response, Error> {
        self.fence.check().map_err(lost)?;
        let response = if self.streams {
            self.stream().await?
        } else {
            let response = self.client.complete(self.request.clone()).await?;
            ResponseSizeLimit::new(self.response_limit).check(&response)?;
            self.segments.add_response(&response).await;
            response
        };
        match response.finish_reason.reason {
            Finish::Error => Err(generation_failed(&response)),
            Finish::Stop | Finish::Length | Finish::ToolCalls | Finish::ContentFilter | Finish::Other => {
                Ok(response)
            }
        }
    }

    async fn stream(&mut self) -> Result<Response, Error> {
        let mut events = self.client.stream(self.request.clone()).await?;
        let mut limit = ResponseSizeLimit::new(self.response_limit);
        while let Some(event) = events.next().await {
            let event = event?;
            limit.add(&event)?;
            if let StreamEvent::Finish { response, .. } = self.segments.follow(event).await {
                limit.check(&response)?;
                return Ok(*response);
            }
        }
        Err(Error::new(ErrorKind::Stream, "the stream ended without its final event"))
    }
}

/// Error of a call that is not made because this process no longer owns the session.
fn lost(source: std::io::Error) -> Error {
    Error::new(ErrorKind::Configuration, "the session is not owned any more")
        .with_source(source)
        .with_retry(Retry::Never)
}

/// Error of an adapter that panicked. The session stays usable: another response may not trigger the bug.
fn panicked() -> Error {
    tracing::error!("a provider adapter panicked");
    Error::new(ErrorKind::Stream, "the provider adapter panicked").with_retry(Retry::Never)
}

/// Error of a response whose generation failed at the provider, such as a call that Gemini could not parse. A retry may
/// succeed.
fn generation_failed(response: &Response) -> Error {
    let reason = response.finish_reason.raw.as_deref().unwrap_or("no reason given");
    let message = format!("the model stopped in the middle of its response ({reason})");
    Error::new(ErrorKind::Stream, message).with_provider(response.provider.clone())
}

/// Segments of the current attempt: text, reasoning, and arguments of calls.
struct ResponseSegments {
    reports: mpsc::Sender<Report>,
    counter: Arc<AtomicU64>,
    open: Vec<OpenSegment>,
    /// Visible text of the current attempt.
    text: String,
    /// Visible text of the newest failed attempt that had any. The user has already read it.
    last_text: String,
}

struct OpenSegment {
    /// Id in the stream.
    id: String,
    /// `None` until its first text arrives; without any, no event is emitted.
    segment: Option<SegmentId>,
    source: Source,
    /// Text so far; of arguments only what arrived before the name of the tool.
    text: String,
}

/// Source of a segment's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Output(SegmentKind),
    /// Arguments of a call.
    Arguments,
}

impl ResponseSegments {
    /// Reports what an event means for the segments, and returns the event.
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
            StreamEvent::ToolCallStart { tool_call } => self.begin_arguments(&tool_call.id),
            StreamEvent::ToolCallDelta { tool_call, delta } => self.add_arguments(tool_call, delta).await,
            StreamEvent::ToolCallEnd { tool_call } => self.end_arguments(&tool_call.id).await,
            // Everything else is in the response.
            StreamEvent::StreamStart { .. }
            | StreamEvent::Finish { .. }
            | StreamEvent::StepFinish { .. }
            | StreamEvent::ProviderEvent { .. }
            | _ => {}
        }
        event
    }

    /// Reports the segments of a response that was not streamed.
    async fn add_response(&mut self, response: &Response) {
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
        self.push(id, Source::Output(kind));
    }

    fn begin_arguments(&mut self, call_id: &str) {
        self.push(call_id, Source::Arguments);
    }

    fn push(&mut self, id: &str, source: Source) {
        self.open.push(OpenSegment { id: id.to_owned(), segment: None, source, text: String::new() });
    }

    async fn add(&mut self, id: &str, kind: SegmentKind, delta: &str) {
        let Some(index) = self.output(id, kind).filter(|_| !delta.is_empty()) else { return };
        let opened = |segment| InputKind::SegmentOpened { segment, kind };
        let Some(segment) = self.open_segment(index, opened).await else { return };
        if let Some(open) = self.open.get_mut(index) {
            open.text.push_str(delta);
        }
        if kind == SegmentKind::Text {
            self.text.push_str(delta);
        }
        self.report_text(segment, delta.to_owned()).await;
    }

    async fn end(&mut self, id: &str, kind: SegmentKind) {
        if let Some(index) = self.output(id, kind) {
            self.close(index, false).await;
        }
    }

    async fn add_arguments(&mut self, call: &PartialToolCall, delta: &str) {
        let Some(index) = self.arguments(&call.id) else { return };
        let Some(open) = self.open.get_mut(index) else { return };
        open.text.push_str(delta);
        // The segment starts with the name of its tool, which may come later than the first arguments.
        if open.text.is_empty() || call.name.is_empty() {
            return;
        }
        let opened = |segment| {
            let (call_id, tool_name) = (call.id.clone(), call.name.clone());
            InputKind::ArgumentsOpened { segment, call_id, tool_name }
        };
        let Some(segment) = self.open_segment(index, opened).await else { return };
        let text = self.open.get_mut(index).map(|open| std::mem::take(&mut open.text));
        self.report_text(segment, text.unwrap_or_default()).await;
    }

    async fn end_arguments(&mut self, call_id: &str) {
        if let Some(index) = self.arguments(call_id) {
            self.close(index, false).await;
        }
    }

    /// Returns the index of the newest open segment of this id and kind.
    fn output(&self, id: &str, kind: SegmentKind) -> Option<usize> {
        self.open.iter().rposition(|open| open.id == id && open.source == Source::Output(kind))
    }

    /// Returns the index of the newest open segment with arguments of this call.
    fn arguments(&self, call_id: &str) -> Option<usize> {
        self.open.iter().rposition(|open| open.id == call_id && open.source == Source::Arguments)
    }

    /// Returns the id of the segment at `index`. The first call assigns the id and reports the segment.
    async fn open_segment(
        &mut self,
        index: usize,
        opened: impl FnOnce(SegmentId) -> InputKind,
    ) -> Option<SegmentId> {
        let open = self.open.get(index)?;
        if open.segment.is_some() {
            return open.segment;
        }
        let segment = SegmentId(self.counter.fetch_add(1, Ordering::Relaxed));
        // If the call is cancelled while this waits, the segment is open neither here nor at the driver.
        self.report(opened(segment)).await;
        self.open.get_mut(index)?.segment = Some(segment);
        Some(segment)
    }

    /// Ends the attempt, with its open segments interrupted.
    async fn end_attempt(&mut self) {
        self.close_all(true).await;
        let text = std::mem::take(&mut self.text);
        // An attempt without text does not replace the text of an earlier one.
        if !text.trim().is_empty() {
            self.last_text = text;
        }
    }

    async fn close_all(&mut self, interrupted: bool) {
        while let Some(newest) = self.open.len().checked_sub(1) {
            self.close(newest, interrupted).await;
        }
    }

    /// Closes the segment at `index`. It stays open until the report is sent, so that it is closed even if the call is
    /// cancelled while this waits.
    async fn close(&mut self, index: usize, interrupted: bool) {
        let permit = self.reports.reserve().await;
        let OpenSegment { id, segment, source, text } = self.open.remove(index);
        // If the driver is gone, the report is no longer needed.
        let (Ok(permit), Some(segment)) = (permit, segment) else { return };
        permit.send(Report::input(match source {
            Source::Output(kind) => InputKind::SegmentClosed { segment, kind, text, interrupted },
            Source::Arguments => InputKind::ArgumentsClosed { segment, call_id: id, interrupted },
        }));
    }

    /// Reports text of an open segment. The channel is bounded, so that a stream is read no faster than the driver
    /// follows.
    async fn report_text(&self, segment: SegmentId, delta: String) {
        // If the driver is gone, the text is no longer needed.
        let _ = self.reports.send(Report::Text { segment, delta }).await;
    }

    async fn report(&self, kind: InputKind) {
        // If the driver is gone, the report is no longer needed.
        let _ = self.reports.send(Report::input(kind)).await;
    }
}
