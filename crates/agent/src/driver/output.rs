//! Decoding of tool output for subscribers.

use std::sync::{Arc, Mutex, PoisonError};

use pintle_env::{OutputChunk, OutputSink};

use super::segments::SegmentWriter;

/// Returns a sink that appends a tool's output to the segment of its call.
pub(super) fn sink(writer: SegmentWriter) -> OutputSink {
    let decoder = Mutex::new(Utf8Decoder::default());
    Arc::new(move |chunk: OutputChunk| {
        let text = decoder.lock().unwrap_or_else(PoisonError::into_inner).push(&chunk.bytes);
        writer.write(&text);
    })
}

/// Incremental UTF-8 decoder. A character that is split between two chunks is completed by the second; invalid bytes are
/// replaced.
#[derive(Debug, Default)]
struct Utf8Decoder {
    incomplete: Vec<u8>,
}

impl Utf8Decoder {
    fn push(&mut self, bytes: &[u8]) -> String {
        self.incomplete.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.incomplete.len());
        let mut chunks = self.incomplete.utf8_chunks().peekable();
        let mut rest = Vec::new();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            let may_continue = chunks.peek().is_none() && is_character_prefix(invalid);
            if may_continue {
                rest = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.incomplete = rest;
        text
    }
}

/// Returns whether these bytes are the beginning of a character.
fn is_character_prefix(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chunks_decode_like_the_whole(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0xC3), Just(0xA9), Just(b'a')], 0..60),
            size in 1_usize..7,
        ) {
            // A split character at the end would be held back, so the input ends with a complete one.
            let bytes = [bytes, b".".to_vec()].concat();
            let mut decoder = Utf8Decoder::default();
            let text: String = bytes.chunks(size).map(|chunk| decoder.push(chunk)).collect();
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }
    }
}
