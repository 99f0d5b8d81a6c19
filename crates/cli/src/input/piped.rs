//! Input piped in addition to a prompt: bounded context for the model, in a separate tag.

use std::collections::VecDeque;
use std::io::{self, Read};

use pintle_host::failure::Failure;

/// Bytes kept of each end of a long text: 128 KiB, some 32,000 tokens.
const END_BYTES: usize = 128 << 10;

/// Beginning and end of a text, or all of it.
#[derive(Debug, Default)]
pub(crate) struct PipedInput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Number of bytes dropped between head and tail.
    omitted: u64,
}

impl PipedInput {
    /// Reads `source` to the end.
    pub(crate) fn read(mut source: impl Read) -> Result<Self, Failure> {
        let mut input = Self::default();
        let mut buffer = vec![0; END_BYTES];
        loop {
            match source.read(&mut buffer) {
                Ok(0) => return Ok(input),
                Ok(length) => input.push(buffer.get(..length).unwrap_or_default())?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::usage("cannot read standard input").caused_by(&error)),
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.contains(&0) {
            return Err(Failure::usage("standard input is not text: it contains a NUL byte")
                .with_hint("use `</dev/null` if the prompt needs no input"));
        }
        let (head, tail) = bytes.split_at(bytes.len().min(END_BYTES - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(tail);
        let excess = self.tail.len().saturating_sub(END_BYTES);
        self.tail.drain(..excess);
        self.omitted += excess as u64;
        Ok(())
    }

    /// Appends the text to a prompt, unless it is blank.
    pub(crate) fn append_to(mut self, prompt: &str) -> String {
        let head = String::from_utf8_lossy(&self.head);
        let tail = String::from_utf8_lossy(self.tail.make_contiguous());
        if head.trim().is_empty() && tail.trim().is_empty() {
            return prompt.to_owned();
        }
        let gap = match self.omitted {
            // A character may be split between head and tail.
            0 => {
                self.head.extend(self.tail);
                let text = String::from_utf8_lossy(&self.head);
                return with_tag(prompt, &text);
            }
            omitted => format!("\n[... {omitted} bytes of standard input omitted ...]\n"),
        };
        with_tag(prompt, &format!("{head}{gap}{tail}"))
    }
}

fn with_tag(prompt: &str, text: &str) -> String {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{}\n\n<standard_input>\n{text}{end}</standard_input>", prompt.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appended(input: &[u8]) -> String {
        PipedInput::read(input).unwrap().append_to("Explain.\n")
    }

    #[test]
    fn text_is_tagged_and_follows_the_prompt() {
        for (input, expected) in [
            (b"".as_slice(), "Explain.\n"),
            (b" \n", "Explain.\n"),
            (b"one\ntwo\n", "Explain.\n\n<standard_input>\none\ntwo\n</standard_input>"),
            (b"one", "Explain.\n\n<standard_input>\none\n</standard_input>"),
            (b"\xFF!", "Explain.\n\n<standard_input>\n\u{FFFD}!\n</standard_input>"),
        ] {
            assert_eq!(appended(input), expected);
        }
    }

    #[test]
    fn long_text_keeps_both_ends() {
        let mut input = vec![b'a'; END_BYTES];
        // A character split between head and tail stays intact.
        input.truncate(END_BYTES - 1);
        input.extend("é".as_bytes());
        input.extend(vec![b'b'; END_BYTES - 1]);
        let whole = appended(&input);
        assert!(whole.contains("aéb") && !whole.contains("omitted"));
        input.splice(END_BYTES..END_BYTES, [b'x'; 1_000]);
        let cut = appended(&input);
        assert!(cut.contains("\n[... 1000 bytes of standard input omitted ...]\n"), "{}", cut.len());
        assert!(cut.len() < 2 * END_BYTES + 200);
    }

    #[test]
    fn binary_input_is_rejected() {
        let failure = PipedInput::read(b"PK\0".as_slice()).unwrap_err();
        assert!(failure.message().starts_with("standard input is not text: it contains a NUL byte"));
    }
}
