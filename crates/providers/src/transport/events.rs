//! The events of one streamed answer: read, framed, decoded, accumulated.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use pintle_llm::{Error, ErrorKind, EventStream, RateLimitInfo, Retry, StreamAccumulator, StreamEvent};
use tokio::time::Instant;

use crate::dialect::{Decoder, SseEvent};
use crate::repair::{self, Suspicion};
use crate::sse::SseReader;
use crate::transport::MAX_BODY;
use crate::transport::exchange::{Exchange, timed_out};

/// How much of a stream is taken, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamLimits {
    /// The largest event. The last one of an answer may repeat all of it, with escapes: JSON takes two bytes for a line
    /// end or a quotation mark, and six for a character of two or three bytes where a server escapes these as well.
    pub(crate) event: usize,
    /// All events together: what they say is held until the answer is complete. OpenAI says what it says five times:
    /// in deltas, and at the end of a text, of its part, of its item and of the answer.
    pub(crate) stream: usize,
    /// How long the server may go on without content; see [`AdapterTimeout::content`](pintle_llm::AdapterTimeout::content).
    pub(crate) content: Option<Duration>,
}

impl Default for StreamLimits {
    fn default() -> Self {
        let event = 2 * MAX_BODY;
        Self { event, stream: 5 * event, content: None }
    }
}

/// A stream that ends after [`StreamEvent::Finish`] or after its first error.
pub(crate) struct Events<D> {
    exchange: Exchange,
    reader: SseReader,
    decoder: D,
    accumulator: StreamAccumulator,
    provider: String,
    rate_limit: Option<RateLimitInfo>,
    /// The most bytes that are read.
    limit: usize,
    /// How many bytes have been read.
    length: usize,
    /// Whether any event may hold characters that are no Unicode.
    suspicion: Suspicion,
    /// How many characters were no Unicode.
    replaced: u64,
    /// How long content may be waited for.
    content_limit: Option<Duration>,
    /// How long it has been waited for since the last.
    waited: Duration,
    /// What the read at hand has been decoded to.
    decoded: Vec<StreamEvent>,
    /// How many of these have been accumulated.
    accepted: usize,
    /// What is to be given, before the failure.
    pending: VecDeque<StreamEvent>,
    failure: Option<Error>,
    /// Whether nothing more is read.
    done: bool,
    /// Whether it ended well, so that its connection may be of further use.
    complete: bool,
}

impl<D: Decoder> Events<D> {
    pub(crate) fn new(
        exchange: Exchange,
        decoder: D,
        provider: &str,
        model: &str,
        rate_limit: Option<RateLimitInfo>,
        limits: StreamLimits,
    ) -> Self {
        let waited = exchange.opening();
        Self {
            exchange,
            suspicion: Suspicion::default(),
            replaced: 0,
            content_limit: limits.content,
            waited,
            reader: SseReader::new(limits.event),
            decoder,
            accumulator: StreamAccumulator::new(provider, model),
            provider: provider.to_owned(),
            rate_limit,
            limit: limits.stream,
            length: 0,
            decoded: Vec::new(),
            accepted: 0,
            pending: VecDeque::new(),
            failure: None,
            done: false,
            complete: false,
        }
    }

    pub(crate) fn into_stream(self) -> EventStream {
        Box::pin(stream::unfold(Box::new(self), |mut events| async move {
            let item = events.next().await?;
            Some((item, events))
        }))
    }

    async fn next(&mut self) -> Option<Result<StreamEvent, Error>> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(Ok(event));
            }
            if let Some(error) = self.failure.take() {
                return Some(Err(error));
            }
            if self.done {
                if std::mem::take(&mut self.complete) {
                    self.exchange.finish_reading().await;
                }
                return None;
            }
            match self.read().await {
                Ok(Some(bytes)) => self.take(&bytes),
                Ok(None) => self.end(),
                Err(error) => self.fail(error),
            }
        }
    }

    /// The next bytes, unless content has been waited for long enough. The time in which nobody asks for bytes does not
    /// count.
    async fn read(&mut self) -> Result<Option<Bytes>, Error> {
        let Some(limit) = self.content_limit else { return self.exchange.read().await };
        let over = || timed_out(format!("the answer stalled: no content for {limit:?}"));
        let left = limit.saturating_sub(self.waited);
        if left.is_zero() {
            return Err(over());
        }
        let started = Instant::now();
        let read = self.exchange.read_within(left, over).await;
        self.waited = self.waited.saturating_add(started.elapsed());
        read
    }

    fn take(&mut self, bytes: &[u8]) {
        self.length = self.length.saturating_add(bytes.len());
        if self.length > self.limit {
            return self.fail(too_large(format!("the stream is larger than {} bytes", self.limit)));
        }
        let is_suspect = self.suspicion.look(bytes);
        let mut rest = bytes;
        while !self.done {
            let fed = match self.reader.next(&mut rest) {
                Ok(Some(event)) if !is_suspect => self.decoder.feed(event, &mut self.decoded),
                Ok(Some(event)) => repair::repair(event).and_then(|repaired| {
                    self.replaced = self.replaced.saturating_add(repaired.replaced);
                    self.decoder.feed(SseEvent { data: &repaired.json, ..event }, &mut self.decoded)
                }),
                Ok(None) => break,
                Err(error) => Err(too_large(error.to_string())),
            };
            self.accept(fed);
        }
        self.hand_over();
    }

    fn end(&mut self) {
        if self.reader.is_inside_event() {
            return self.fail(Error::new(ErrorKind::Stream, "the stream ended inside an event"));
        }
        let unfinished = || Error::new(ErrorKind::Stream, "the stream ended before its answer was complete");
        let ended = self.decoder.end(&mut self.decoded);
        self.accept(ended.and_then(|()| Err(unfinished())));
        self.hand_over();
    }

    /// Accumulates what was decoded since the last time. What went wrong counts unless the answer is complete.
    fn accept(&mut self, fed: Result<(), Error>) {
        while let Some(event) = self.decoded.get_mut(self.accepted)
            && !self.done
        {
            self.accepted += 1;
            self.accumulator.process(event);
            if event.is_content() {
                self.waited = Duration::ZERO;
            }
            if let StreamEvent::Finish { response, .. } = event {
                // The decoder may know only now what the beginning did not say, or said otherwise.
                let (id, model) = (std::mem::take(&mut response.id), std::mem::take(&mut response.model));
                // Nothing follows it, so that what was accumulated is moved out.
                let whole = std::mem::replace(&mut self.accumulator, StreamAccumulator::new("", ""));
                **response = whole.into_partial();
                if !id.is_empty() {
                    response.id = id;
                }
                if !model.is_empty() {
                    response.model = model;
                }
                response.rate_limit.clone_from(&self.rate_limit);
                if self.replaced > 0 {
                    response.warnings.push(repair::warning(self.replaced));
                }
                self.done = true;
                self.complete = true;
            }
        }
        if let (false, Err(error)) = (self.done, fed) {
            self.fail(error);
        }
    }

    /// Makes what was accepted the next events. Both hold their events in the same way, so that nothing moves, and
    /// what is emptied serves again.
    fn hand_over(&mut self) {
        self.decoded.truncate(self.accepted);
        self.accepted = 0;
        let spent = std::mem::take(&mut self.pending);
        self.pending = std::mem::replace(&mut self.decoded, spent.into()).into();
    }

    fn fail(&mut self, error: Error) {
        let error = self.exchange.facts().annotate(error);
        let named =
            if error.provider().is_some() { error } else { error.with_provider(self.provider.clone()) };
        self.failure = Some(named);
        self.done = true;
    }
}

/// The error of a limit on bytes. The next attempt would be as large, and as dear.
fn too_large(message: String) -> Error {
    Error::new(ErrorKind::Stream, message).with_retry(Retry::Never)
}
