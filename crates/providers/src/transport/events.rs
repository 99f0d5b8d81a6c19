//! The events of one streamed answer: read, framed, decoded, accumulated.

use std::collections::VecDeque;

use futures_util::stream;
use pintle_llm::{Error, ErrorKind, EventStream, RateLimitInfo, StreamAccumulator, StreamEvent};

use crate::dialect::{Decoder, SseEvent};
use crate::sse::{MAX_EVENT, SseReader};
use crate::transport::exchange::Exchange;

/// A stream that ends after [`StreamEvent::Finish`] or after its first error.
pub(crate) struct Events<D> {
    exchange: Exchange,
    reader: SseReader,
    decoder: D,
    accumulator: StreamAccumulator,
    provider: String,
    rate_limit: Option<RateLimitInfo>,
    /// The most bytes that are read: what they say is held until the answer is complete.
    limit: usize,
    /// How many bytes have been read.
    length: usize,
    pending: VecDeque<Result<StreamEvent, Error>>,
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
        limit: usize,
    ) -> Self {
        Self {
            exchange,
            reader: SseReader::new(MAX_EVENT),
            decoder,
            accumulator: StreamAccumulator::new(provider, model),
            provider: provider.to_owned(),
            rate_limit,
            limit,
            length: 0,
            pending: VecDeque::new(),
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
            if let Some(item) = self.pending.pop_front() {
                return Some(item);
            }
            if self.done {
                if std::mem::take(&mut self.complete) {
                    self.exchange.finish_reading().await;
                }
                return None;
            }
            match self.exchange.read().await {
                Ok(Some(bytes)) => self.take(&bytes),
                Ok(None) => self.end(),
                Err(error) => self.fail(error),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.length = self.length.saturating_add(bytes.len());
        if self.length > self.limit {
            let message = format!("the stream is larger than {} bytes", self.limit);
            return self.fail(Error::new(ErrorKind::Stream, message));
        }
        let mut framed = Vec::new();
        let framing = self.reader.push(bytes, &mut framed);
        let mut decoded = Vec::new();
        for event in framed {
            let name = if event.event == "message" { "" } else { event.event.as_str() };
            let fed = self.decoder.feed(SseEvent { name, data: &event.data }, &mut decoded);
            self.emit(&mut decoded);
            if let (false, Err(error)) = (self.done, fed) {
                self.fail(error);
            }
            if self.done {
                return;
            }
        }
        if let Err(error) = framing {
            self.fail(Error::new(ErrorKind::Stream, "the answer is no event stream").with_source(error));
        }
    }

    fn end(&mut self) {
        if self.reader.is_inside_event() {
            return self.fail(Error::new(ErrorKind::Stream, "the stream ended inside an event"));
        }
        let mut decoded = Vec::new();
        let ended = self.decoder.end(&mut decoded);
        self.emit(&mut decoded);
        match ended {
            _ if self.done => {}
            Err(error) => self.fail(error),
            Ok(()) => {
                self.fail(Error::new(ErrorKind::Stream, "the stream ended before its answer was complete"))
            }
        }
    }

    fn emit(&mut self, decoded: &mut Vec<StreamEvent>) {
        for mut event in decoded.drain(..) {
            if self.done {
                return;
            }
            self.accumulator.process(&event);
            if let StreamEvent::Finish { response, .. } = &mut event {
                // The decoder may know only now what the beginning did not say, or said otherwise.
                let (id, model) = (std::mem::take(&mut response.id), std::mem::take(&mut response.model));
                **response = self.accumulator.partial();
                if !id.is_empty() {
                    response.id = id;
                }
                if !model.is_empty() {
                    response.model = model;
                }
                response.rate_limit.clone_from(&self.rate_limit);
                self.done = true;
                self.complete = true;
            }
            self.pending.push_back(Ok(event));
        }
    }

    fn fail(&mut self, error: Error) {
        let error = self.exchange.facts().annotate(error);
        let named =
            if error.provider().is_some() { error } else { error.with_provider(self.provider.clone()) };
        self.pending.push_back(Err(named));
        self.done = true;
    }
}
