//! Minimal parsing of server-sent events for the baseline.

use serde_json::Value;

/// Splits a stream that arrives in pieces into the payloads of its `data:` lines.
#[derive(Default)]
pub(crate) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    pub(crate) fn push(&mut self, piece: &[u8], mut take: impl FnMut(&[u8])) {
        let mut pieces = piece.split(|byte| *byte == b'\n');
        let Some(mut line) = pieces.next() else { return };
        for next in pieces {
            if self.rest.is_empty() {
                payload(line).into_iter().for_each(&mut take);
            } else {
                self.rest.extend_from_slice(line);
                payload(&self.rest).into_iter().for_each(&mut take);
                self.rest.clear();
            }
            line = next;
        }
        self.rest.extend_from_slice(line);
    }
}

/// Returns the payloads of a complete stream.
pub(crate) fn payloads(stream: &[u8]) -> Vec<&[u8]> {
    stream.split(|byte| *byte == b'\n').filter_map(payload).collect()
}

/// Parses each payload: the baseline of decoding. Returns their number.
pub(crate) fn parse_payloads(payloads: &[&[u8]]) -> usize {
    payloads.iter().filter(|payload| serde_json::from_slice::<Value>(payload).is_ok()).count()
}

fn payload(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(b"data: ").map(<[u8]>::trim_ascii_end)
}
