//! A generation as it forms (client specification, section 4.4).

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::mpsc;

use super::result::GenerateResult;
use super::tool::Boxed;
use super::tool_loop::ToolLoop;
use crate::accumulate::StreamAccumulator;
use crate::error::{Error, ErrorInfo, ErrorKind};
use crate::message::Origin;
use crate::response::Response;
use crate::stream::StreamEvent;

/// The events of a generation, and afterwards what it came to.
///
/// The events of each step begin with [`STREAM_START`](StreamEvent::StreamStart). A step that is followed by another ends
/// with [`STEP_FINISH`](StreamEvent::StepFinish), which has its answer and tool results and comes when these are there;
/// the last step ends with the only [`FINISH`](StreamEvent::Finish). The first events of a step come together with the
/// first that shows something, since a model call may be tried again until then. After an error nothing more comes.
///
/// It works only while it is polled. Dropping it closes the connection and drops the handlers that run.
pub struct StreamResult {
    driver: Option<Boxed<Result<GenerateResult, Error>>>,
    events: mpsc::Receiver<StreamEvent>,
    /// To be given once the events before it have been.
    failure: Option<Error>,
    outcome: Option<Result<GenerateResult, ErrorInfo>>,
    origin: Origin,
    answer: Answer,
}

/// The answer of the step that is shown at the moment.
enum Answer {
    None,
    Forming(StreamAccumulator),
    Over(StreamAccumulator),
}

impl StreamResult {
    pub(super) fn new(work: ToolLoop) -> Self {
        // One event at a time: the model is read no faster than the events are taken.
        let (sender, events) = mpsc::channel(1);
        let origin = work.origin();
        let driver: Boxed<_> = Box::pin(drive(work, sender));
        Self { driver: Some(driver), events, failure: None, outcome: None, origin, answer: Answer::None }
    }

    /// The next event; `None` after the last one.
    pub async fn next(&mut self) -> Option<Result<StreamEvent, Error>> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// The text deltas alone, of all steps.
    pub fn text_stream(&mut self) -> TextStream<'_> {
        TextStream { events: self }
    }

    /// The final step's answer, after the last event.
    ///
    /// # Errors
    ///
    /// The failure that ended the stream, or one of kind [`ErrorKind::Stream`] while events are still to come.
    pub fn response(&self) -> Result<&Response, Error> {
        match &self.outcome {
            Some(Ok(result)) => Ok(&result.response),
            Some(Err(info)) => Err(info.clone().into()),
            None => Err(Error::new(ErrorKind::Stream, "the stream has not ended yet")),
        }
    }

    /// What has come of the answer that forms, or that was the last to form; `None` before the first event.
    #[must_use]
    pub fn partial_response(&self) -> Option<Response> {
        match &self.answer {
            Answer::None => None,
            Answer::Forming(accumulator) | Answer::Over(accumulator) => Some(accumulator.partial()),
        }
    }

    /// What the generation came to; takes the events that nobody has asked for.
    ///
    /// # Errors
    ///
    /// The failure that ended the stream.
    pub async fn result(mut self) -> Result<GenerateResult, Error> {
        while let Some(event) = self.next().await {
            event?;
        }
        match self.outcome {
            Some(outcome) => outcome.map_err(Error::from),
            None => Err(Error::new(ErrorKind::Stream, "the stream ended without an answer")),
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<StreamEvent, Error>>> {
        loop {
            match self.events.poll_recv(cx) {
                Poll::Ready(Some(event)) => return Poll::Ready(Some(Ok(self.noted(event)))),
                Poll::Ready(None) => return Poll::Ready(self.failure.take().map(Err)),
                Poll::Pending => {}
            }
            // Without a driver this waits for nothing but the runtime, which wants other tasks to have their turn.
            let Some(driver) = &mut self.driver else { return Poll::Pending };
            match driver.as_mut().poll(cx) {
                Poll::Ready(outcome) => self.end(outcome),
                // It may have sent an event just now.
                Poll::Pending => {
                    let event = std::task::ready!(self.events.poll_recv(cx));
                    return Poll::Ready(event.map(|event| Ok(self.noted(event))));
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

    /// The event, after it has been added to the answer.
    fn noted(&mut self, event: StreamEvent) -> StreamEvent {
        let mut accumulator = match std::mem::replace(&mut self.answer, Answer::None) {
            Answer::Forming(accumulator) => accumulator,
            Answer::None | Answer::Over(_) => {
                StreamAccumulator::new(self.origin.provider.clone(), self.origin.model.clone())
            }
        };
        accumulator.process(&event);
        let over = matches!(event, StreamEvent::StepFinish { .. } | StreamEvent::Finish { .. });
        self.answer = if over { Answer::Over(accumulator) } else { Answer::Forming(accumulator) };
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

/// The text deltas of a [`StreamResult`], made by [`StreamResult::text_stream`].
#[derive(Debug)]
pub struct TextStream<'a> {
    events: &'a mut StreamResult,
}

impl TextStream<'_> {
    /// The next piece of text; `None` after the last one.
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

/// Runs the loop and hands out its events. Nobody listens any more only when this very future has been dropped, so that
/// a failure to send needs no answer.
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
        // The connection is free before the tools run.
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
