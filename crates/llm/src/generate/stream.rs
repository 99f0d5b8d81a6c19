//! Streamed generations (client specification, section 4.4).

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::mpsc;

use super::result::GenerateResult;
use super::tool::BoxFuture;
use super::tool_loop::ToolLoop;
use crate::accumulate::StreamAccumulator;
use crate::error::{Error, ErrorInfo, ErrorKind};
use crate::message::Origin;
use crate::response::Response;
use crate::stream::StreamEvent;

/// Events of a generation, followed by its result.
///
/// Each step starts with [`STREAM_START`](StreamEvent::StreamStart). A step that is followed by another ends with
/// [`STEP_FINISH`](StreamEvent::StepFinish), which carries its response and tool results once these are complete; the last
/// step ends with the only [`FINISH`](StreamEvent::Finish). The first events of a step are held back until the first
/// content, since the model call may be retried until then. An error is the last item.
///
/// The generation makes progress only while it is polled. Dropping it closes the connection and drops running handlers.
pub struct StreamResult {
    driver: Option<BoxFuture<Result<GenerateResult, Error>>>,
    events: mpsc::Receiver<StreamEvent>,
    /// Returned after the events before it.
    failure: Option<Error>,
    outcome: Option<Result<GenerateResult, ErrorInfo>>,
    origin: Origin,
    current: CurrentStep,
}

/// Response of the current step.
enum CurrentStep {
    None,
    Running(StreamAccumulator),
    Finished(StreamAccumulator),
}

impl StreamResult {
    pub(super) fn new(work: ToolLoop) -> Self {
        // Events are read one by one: the response is read no faster than its events are consumed.
        let (sender, events) = mpsc::channel(1);
        let origin = work.origin();
        let driver: BoxFuture<_> = Box::pin(drive(work, sender));
        Self {
            driver: Some(driver),
            events,
            failure: None,
            outcome: None,
            origin,
            current: CurrentStep::None,
        }
    }

    /// Returns the next event; `None` after the last one.
    pub async fn next(&mut self) -> Option<Result<StreamEvent, Error>> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Returns the text deltas of all steps.
    pub fn text_stream(&mut self) -> TextStream<'_> {
        TextStream { events: self }
    }

    /// Returns the final step's response, after the last event.
    ///
    /// # Errors
    ///
    /// The error that ended the stream, or one of kind [`ErrorKind::Stream`] before the end.
    pub fn response(&self) -> Result<&Response, Error> {
        self.outcome().map(|result| &*result.response)
    }

    pub(crate) fn outcome(&self) -> Result<&GenerateResult, Error> {
        match &self.outcome {
            Some(Ok(result)) => Ok(result),
            Some(Err(info)) => Err(info.clone().into()),
            None => Err(Error::new(ErrorKind::Stream, "the stream has not ended yet")),
        }
    }

    /// Returns the response of the current step so far; `None` before the first event.
    #[must_use]
    pub fn partial_response(&self) -> Option<Response> {
        match &self.current {
            CurrentStep::None => None,
            CurrentStep::Running(accumulator) | CurrentStep::Finished(accumulator) => {
                Some(accumulator.partial())
            }
        }
    }

    /// Reads to the end and returns the result.
    ///
    /// # Errors
    ///
    /// The error that ended the stream.
    pub async fn result(mut self) -> Result<GenerateResult, Error> {
        while let Some(event) = self.next().await {
            event?;
        }
        match self.outcome {
            Some(outcome) => outcome.map_err(Error::from),
            None => Err(Error::new(ErrorKind::Stream, "the stream ended without a response")),
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<StreamEvent, Error>>> {
        loop {
            match self.events.poll_recv(cx) {
                Poll::Ready(Some(event)) => return Poll::Ready(Some(Ok(self.record(event)))),
                Poll::Ready(None) => return Poll::Ready(self.failure.take().map(Err)),
                Poll::Pending => {}
            }
            // Without a driver, the channel is pending only because of tokio's cooperative budget.
            let Some(driver) = &mut self.driver else { return Poll::Pending };
            match driver.as_mut().poll(cx) {
                Poll::Ready(outcome) => self.end(outcome),
                // It may have sent an event.
                Poll::Pending => {
                    let event = std::task::ready!(self.events.poll_recv(cx));
                    return Poll::Ready(event.map(|event| Ok(self.record(event))));
                }
            }
        }
    }

    fn end(&mut self, outcome: Result<GenerateResult, Error>) {
        self.driver = None;
        self.outcome = Some(match outcome {
            Ok(result) => Ok(result),
            Err(error) => {
                let info = error.info().clone();
                self.failure = Some(error);
                Err(info)
            }
        });
    }

    /// Adds the event to the current response and returns it.
    fn record(&mut self, event: StreamEvent) -> StreamEvent {
        let mut accumulator = match std::mem::replace(&mut self.current, CurrentStep::None) {
            CurrentStep::Running(accumulator) => accumulator,
            CurrentStep::None | CurrentStep::Finished(_) => {
                StreamAccumulator::new(self.origin.provider.clone(), self.origin.model.clone())
            }
        };
        accumulator.process(&event);
        let finished = matches!(event, StreamEvent::StepFinish { .. } | StreamEvent::Finish { .. });
        self.current =
            if finished { CurrentStep::Finished(accumulator) } else { CurrentStep::Running(accumulator) };
        event
    }
}

impl Stream for StreamResult {
    type Item = Result<StreamEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(cx)
    }
}

impl fmt::Debug for StreamResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamResult")
            .field("origin", &self.origin)
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

/// Text deltas of a [`StreamResult`]; see [`StreamResult::text_stream`].
#[derive(Debug)]
pub struct TextStream<'a> {
    events: &'a mut StreamResult,
}

impl TextStream<'_> {
    /// Returns the next delta; `None` after the last one.
    pub async fn next(&mut self) -> Option<Result<String, Error>> {
        poll_fn(|cx| self.poll_text(cx)).await
    }

    fn poll_text(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<String, Error>>> {
        loop {
            match self.events.poll_event(cx) {
                Poll::Ready(Some(Ok(StreamEvent::TextDelta { delta, .. }))) => {
                    return Poll::Ready(Some(Ok(delta)));
                }
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Stream for TextStream<'_> {
    type Item = Result<String, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_text(cx)
    }
}

/// Runs the loop and sends its events. The receiver is dropped only together with this future, so a failed send is
/// ignored.
async fn drive(mut work: ToolLoop, events: mpsc::Sender<StreamEvent>) -> Result<GenerateResult, Error> {
    loop {
        let mut opened = work.open().await?;
        let mut first = std::mem::take(&mut opened.first).into_iter();
        let (finish_reason, usage, response) = loop {
            let event = match first.next() {
                Some(event) => event,
                None => work.next(&mut opened).await?,
            };
            if let StreamEvent::Finish { finish_reason, usage, response } = event {
                break (finish_reason, usage, response);
            }
            drop(events.send(event).await);
        };
        // Release the connection before the tools run.
        drop(opened);
        let again = work.finish_step((*response).clone()).await?;
        if !again {
            drop(events.send(StreamEvent::Finish { finish_reason, usage, response }).await);
            return work.into_result();
        }
        let tool_results = work.last_step().map(|step| step.tool_results.clone()).unwrap_or_default();
        drop(events.send(StreamEvent::StepFinish { response, tool_results }).await);
    }
}
