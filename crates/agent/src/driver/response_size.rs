//! Limit on the size of a model response, so that an endless one cannot exhaust memory.

use pintle_llm::{Error, ErrorKind, Response, Retry, StreamEvent, estimate};

/// Size limit of one response, and the bytes received so far.
#[derive(Debug)]
pub(super) struct ResponseSizeLimit {
    max: u64,
    received: u64,
}

impl ResponseSizeLimit {
    /// Creates a limit of `max` bytes.
    pub(super) fn new(max: u64) -> Self {
        Self { max, received: 0 }
    }

    /// Counts the bytes of a stream event.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`], without retry, if the limit is exceeded.
    pub(super) fn add(&mut self, event: &StreamEvent) -> Result<(), Error> {
        // Content without deltas is counted at the end; until then the limits of the transport apply.
        let added = estimate::event_bytes(event);
        self.received = self.received.saturating_add(as_bytes(added));
        self.check_size(self.received)
    }

    /// Checks the size of a complete response.
    ///
    /// # Errors
    ///
    /// As for [`ResponseSizeLimit::add`].
    pub(super) fn check(&self, response: &Response) -> Result<(), Error> {
        let message = &response.message;
        let calls: usize = message.tool_calls().map(|call| call.arguments_text().len()).sum();
        let reasoning = response.reasoning().map_or(0, |text| text.len());
        self.check_size(as_bytes(response.text().len() + reasoning + calls))
    }

    fn check_size(&self, size: u64) -> Result<(), Error> {
        if size <= self.max {
            return Ok(());
        }
        // A retry would most likely be as long, and as expensive.
        let message = format!("the response is larger than {} bytes", self.max);
        Err(Error::new(ErrorKind::Stream, message).with_retry(Retry::Never))
    }
}

fn as_bytes(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
