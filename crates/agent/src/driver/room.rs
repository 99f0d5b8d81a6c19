//! How large an answer may grow: one that never ends must not fill the memory.

use pintle_llm::{Error, ErrorKind, Response, Retry, StreamEvent};

/// The room that one attempt has for its answer.
#[derive(Debug)]
pub(super) struct Room {
    limit: u64,
    taken: u64,
}

impl Room {
    /// For so many bytes.
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, taken: 0 }
    }

    /// Takes what an event adds.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stream`], not to be tried again, when there is no room for it.
    pub(super) fn take(&mut self, event: &StreamEvent) -> Result<(), Error> {
        let added = match event {
            StreamEvent::TextDelta { delta, .. } | StreamEvent::ToolCallDelta { delta, .. } => delta.len(),
            StreamEvent::ReasoningDelta { reasoning_delta, .. } => reasoning_delta.len(),
            // What comes without deltas is counted in the end; until then the transport's limits hold.
            StreamEvent::StreamStart { .. }
            | StreamEvent::TextStart { .. }
            | StreamEvent::TextEnd { .. }
            | StreamEvent::ReasoningStart { .. }
            | StreamEvent::ReasoningEnd { .. }
            | StreamEvent::ToolCallStart { .. }
            | StreamEvent::ToolCallEnd { .. }
            | StreamEvent::Finish { .. }
            | StreamEvent::StepFinish { .. }
            | StreamEvent::ProviderEvent { .. }
            | _ => 0,
        };
        self.taken = self.taken.saturating_add(bytes(added));
        self.is_enough_for(self.taken)
    }

    /// Whether a whole answer fits.
    ///
    /// # Errors
    ///
    /// As for [`Room::take`].
    pub(super) fn fits(&self, response: &Response) -> Result<(), Error> {
        let message = &response.message;
        let calls: usize = message.tool_calls().map(|call| call.arguments_text().len()).sum();
        let reasoning = response.reasoning().map_or(0, |text| text.len());
        self.is_enough_for(bytes(response.text().len() + reasoning + calls))
    }

    fn is_enough_for(&self, size: u64) -> Result<(), Error> {
        if size <= self.limit {
            return Ok(());
        }
        // The next attempt would be as long, and as dear.
        let message = format!("the answer is larger than {} bytes", self.limit);
        Err(Error::new(ErrorKind::Stream, message).with_retry(Retry::Never))
    }
}

fn bytes(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
