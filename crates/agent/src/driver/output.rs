//! Tool output on its way to subscribers, as text.

use std::sync::{Arc, Mutex, PoisonError};

use pintle_env::{OutputChunk, OutputSink};

use crate::event_log::EventLog;
use crate::timestamp::Clock;

/// A sink that appends what a tool writes to the open segment of its call.
pub(super) fn sink(log: Arc<EventLog>, clock: Arc<dyn Clock>, start: u64) -> OutputSink {
    let text = Mutex::new(TextStream::default());
    Arc::new(move |chunk: OutputChunk| {
        let decoded = text.lock().unwrap_or_else(PoisonError::into_inner).push(&chunk.bytes);
        if !decoded.is_empty() {
            log.delta(clock.now(), start, &decoded);
        }
    })
}

/// Decodes UTF-8 in pieces: a character that a piece cuts waits for the next one, other bytes are replaced.
#[derive(Debug, Default)]
struct TextStream {
    cut: Vec<u8>,
}

impl TextStream {
    fn push(&mut self, bytes: &[u8]) -> String {
        self.cut.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.cut.len());
        let mut chunks = self.cut.utf8_chunks().peekable();
        let mut rest = Vec::new();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            let may_continue = chunks.peek().is_none() && is_start_of_character(invalid);
            if may_continue {
                rest = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.cut = rest;
        text
    }
}

/// Whether these bytes are a character without its end.
fn is_start_of_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_decode_to_what_the_whole_decodes_to(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0xC3), Just(0xA9), Just(b'a')], 0..60),
            size in 1_usize..7,
        ) {
            // An end that is a cut character stays behind, so the whole gets an end that is none.
            let bytes = [bytes, b".".to_vec()].concat();
            let mut stream = TextStream::default();
            let pieces: String = bytes.chunks(size).map(|piece| stream.push(piece)).collect();
            prop_assert_eq!(pieces, String::from_utf8_lossy(&bytes));
        }
    }
}
