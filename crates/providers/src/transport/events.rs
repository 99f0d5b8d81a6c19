//! Events of one streamed response: read, framed, decoded, accumulated.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use pintle_llm::{Error, ErrorKind, EventStream, RateLimitInfo, Retry, StreamAccumulator, StreamEvent};
use tokio::time::Instant;

use crate::dialect::{Decoder, SseEvent};
use crate::repair::{self, RepairDetector};
use crate::sse::SseReader;
use crate::transport::MAX_BODY;
use crate::transport::exchange::{Exchange, timed_out};

/// Size limits of a stream, in bytes, and its content timeout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamLimits {
    /// Maximum size of an event. The last event may repeat the complete response with escapes: JSON needs two bytes for a
    /// line feed or a quotation mark, and six for a two- or three-byte character if the server escapes those.
    pub(crate) event: usize,
    /// Maximum total size, because the content is held until the response is complete. OpenAI sends content five times:
    /// in deltas, and at the end of the text, of its part, of its item and of the response.
    pub(crate) stream: usize,
    /// Maximum time without content; see [`AdapterTimeout::content`](pintle_llm::AdapterTimeout::content).
    pub(crate) content: Option<Duration>,
}

impl Default for StreamLimits {
    fn default() -> Self {
        let event = 2 * MAX_BODY;
        Self { event, stream: 5 * event, content: None }
    }
}

/// Stream that ends after [`StreamEvent::Finish`] or after its first error.
pub(crate) struct Events<D> {
    exchange: Exchange,
    reader: SseReader,
    decoder: D,
    accumulator: StreamAccumulator,
    provider: String,
    rate_limit: Option<RateLimitInfo>,
    /// Maximum number of bytes.
    limit: usize,
    /// Bytes read so far.
    length: usize,
    /// Detects whether any event may need a repair.
    detector: RepairDetector,
    /// Number of replaced characters.
    replaced: u64,
    /// Maximum time without content.
    content_limit: Option<Duration>,
    /// Time waited since the last content, emitted or held by the decoder.
    waited: Duration,
    /// Events decoded from the current read.
    decoded: Vec<StreamEvent>,
    /// Number of `decoded` events that have been accumulated.
    accepted: usize,
    /// Events to yield, before the failure.
    pending: VecDeque<StreamEvent>,
    failure: Option<Error>,
    /// Whether reading has ended.
    done: bool,
    /// Whether the stream ended successfully, so that its connection may be reused.
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
            detector: RepairDetector::default(),
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
                    self.exchange.drain().await;
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

    /// Reads the next bytes, within the content timeout. Time in which the consumer does not poll is not counted.
    async fn read(&mut self) -> Result<Option<Bytes>, Error> {
        let Some(limit) = self.content_limit else { return self.exchange.read().await };
        let timeout = || timed_out(format!("the response stalled: no content for {limit:?}"));
        let left = limit.saturating_sub(self.waited);
        if left.is_zero() {
            return Err(timeout());
        }
        let started = Instant::now();
        let read = self.exchange.read_within(left, timeout).await;
        self.waited = self.waited.saturating_add(started.elapsed());
        read
    }

    fn take(&mut self, bytes: &[u8]) {
        self.length = self.length.saturating_add(bytes.len());
        if self.length > self.limit {
            return self.fail(too_large(format!("the stream is larger than {} bytes", self.limit)));
        }
        let may_need_repair = self.detector.scan(bytes);
        let mut rest = bytes;
        while !self.done {
            let fed = match self.reader.next(&mut rest) {
                Ok(Some(event)) if !may_need_repair => self.decoder.feed(event, &mut self.decoded),
                Ok(Some(event)) => repair::repair(event).and_then(|repaired| {
                    self.replaced = self.replaced.saturating_add(repaired.replaced);
                    self.decoder.feed(SseEvent { data: &repaired.json, ..event }, &mut self.decoded)
                }),
                Ok(None) => break,
                Err(error) => Err(too_large(error.to_string())),
            };
            self.accept(fed);
        }
        self.publish();
    }

    fn end(&mut self) {
        if self.reader.is_inside_event() {
            return self.fail(Error::new(ErrorKind::Stream, "the stream ended inside an event"));
        }
        let unfinished =
            || Error::new(ErrorKind::Stream, "the stream ended before the response was complete");
        let ended = self.decoder.end(&mut self.decoded);
        self.accept(ended.and_then(|()| Err(unfinished())));
        self.publish();
    }

    /// Accumulates the newly decoded events. A failure is ignored once the response is complete.
    fn accept(&mut self, fed: Result<(), Error>) {
        if self.decoder.take_progress() {
            self.waited = Duration::ZERO;
        }
        while let Some(event) = self.decoded.get_mut(self.accepted)
            && !self.done
        {
            self.accepted += 1;
            self.accumulator.process(event);
            if event.is_content() {
                self.waited = Duration::ZERO;
            }
            if let StreamEvent::Finish { response, .. } = event {
                // Id and model of the finish event override the values of the start.
                let (id, model) = (std::mem::take(&mut response.id), std::mem::take(&mut response.model));
                // Nothing follows, so the accumulator is moved out.
                let accumulator = std::mem::replace(&mut self.accumulator, StreamAccumulator::new("", ""));
                **response = accumulator.into_partial();
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

    /// Moves the accepted events to `pending`. The two buffers are swapped, so no event is copied and both allocations are
    /// reused.
    fn publish(&mut self) {
        self.decoded.truncate(self.accepted);
        self.accepted = 0;
        let spent = std::mem::take(&mut self.pending);
        self.pending = std::mem::replace(&mut self.decoded, spent.into()).into();
    }

    fn fail(&mut self, error: Error) {
        let error = self.exchange.context().annotate(error);
        let named =
            if error.provider().is_some() { error } else { error.with_provider(self.provider.clone()) };
        self.failure = Some(named);
        self.done = true;
    }
}

/// Returns the error for a size limit. It is not retryable: a retry would be as large and as expensive.
fn too_large(message: String) -> Error {
    Error::new(ErrorKind::Stream, message).with_retry(Retry::Never)
}
