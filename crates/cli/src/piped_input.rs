//! Text that is piped in beside a prompt: context for the model, bounded and named.

use std::collections::VecDeque;
use std::io::{self, Read};

use crate::failure::Failure;

/// The number of bytes that are kept of each end of a text that is longer than both together: 128 KiB, some 32,000
/// tokens.
const END: usize = 128 << 10;

/// The two ends of a text, or all of it.
#[derive(Debug, Default)]
pub(crate) struct PipedInput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// The number of bytes between the two.
    omitted: u64,
}

impl PipedInput {
    /// Reads to the end of `source`.
    ///
    /// # Errors
    ///
    /// A usage failure if it cannot be read, or holds a zero byte, which no text does.
    pub(crate) fn read(mut source: impl Read) -> Result<Self, Failure> {
        let mut input = Self::default();
        let mut buffer = vec![0; END];
        loop {
            match source.read(&mut buffer) {
                Ok(0) => return Ok(input),
                Ok(length) => input.push(buffer.get(..length).unwrap_or_default())?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::usage("cannot read standard input").because(&error)),
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.contains(&0) {
            return Err(Failure::usage("standard input is not text: it has a zero byte")
                .advise("a prompt that needs no input is given `</dev/null`"));
        }
        let (head, tail) = bytes.split_at(bytes.len().min(END - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(tail);
        let excess = self.tail.len().saturating_sub(END);
        self.tail.drain(..excess);
        self.omitted += excess as u64;
        Ok(())
    }

    /// The prompt with the text behind it; the prompt alone if there is no text.
    pub(crate) fn after(mut self, prompt: &str) -> String {
        let head = String::from_utf8_lossy(&self.head);
        let tail = String::from_utf8_lossy(self.tail.make_contiguous());
        if head.trim().is_empty() && tail.trim().is_empty() {
            return prompt.to_owned();
        }
        let gap = match self.omitted {
            // The two ends may part a character, so they are one text.
            0 => {
                self.head.extend(self.tail);
                let whole = String::from_utf8_lossy(&self.head);
                return named(prompt, &whole);
            }
            omitted => format!("\n[... {omitted} bytes of standard input omitted ...]\n"),
        };
        named(prompt, &format!("{head}{gap}{tail}"))
    }
}

fn named(prompt: &str, text: &str) -> String {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{}\n\n<standard_input>\n{text}{end}</standard_input>", prompt.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(input: &[u8]) -> String {
        PipedInput::read(input).unwrap().after("Explain.\n")
    }

    #[test]
    fn the_text_is_named_and_follows_the_prompt() {
        for (input, expected) in [
            (b"".as_slice(), "Explain.\n"),
            (b" \n", "Explain.\n"),
            (b"one\ntwo\n", "Explain.\n\n<standard_input>\none\ntwo\n</standard_input>"),
            (b"one", "Explain.\n\n<standard_input>\none\n</standard_input>"),
            (b"\xFF!", "Explain.\n\n<standard_input>\n\u{FFFD}!\n</standard_input>"),
        ] {
            assert_eq!(after(input), expected);
        }
    }

    #[test]
    fn a_long_text_keeps_both_ends_and_counts_the_rest() {
        let mut input = vec![b'a'; END];
        // A character that both ends share stays whole.
        input.truncate(END - 1);
        input.extend("é".as_bytes());
        input.extend(vec![b'b'; END - 1]);
        let whole = after(&input);
        assert!(whole.contains("aéb") && !whole.contains("omitted"));
        input.splice(END..END, [b'x'; 1_000]);
        let cut = after(&input);
        assert!(cut.contains("\n[... 1000 bytes of standard input omitted ...]\n"), "{}", cut.len());
        assert!(cut.len() < 2 * END + 200);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let failure = PipedInput::read(b"PK\0".as_slice()).unwrap_err();
        assert!(failure.sentence().starts_with("standard input is not text: it has a zero byte"));
    }
}
