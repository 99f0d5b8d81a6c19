//! Values that no output may contain.

use std::borrow::Cow;
use std::sync::Arc;
use std::{fmt, io};

use memchr::memmem;

use super::{COPY_BLOCK, Output, OutputCollector, OutputLimits};

/// Secrets that are replaced wherever they occur, such as the keys of the application.
///
/// A value is found verbatim, in text and in raw bytes. An encoded or split value is not found. Cheap to clone; `Debug`
/// shows no value.
///
/// ```
/// use pintle_env::Redactions;
///
/// let redactions = Redactions::new(["sk-0123456789"]);
/// assert_eq!(redactions.text("key=sk-0123456789"), "key=[redacted]");
/// ```
#[derive(Clone, Default)]
pub struct Redactions(Arc<[String]>);

/// Piece of an output.
enum Piece<'a> {
    Bytes(&'a [u8]),
    /// One of the values.
    Value,
}

impl Redactions {
    /// Text in place of a value.
    pub const REPLACEMENT: &str = "[redacted]";

    /// Length in bytes of the shortest value that is replaced. Anything shorter occurs by chance.
    pub const SHORTEST: usize = 8;

    /// Creates redactions of these values. Those shorter than [`SHORTEST`](Self::SHORTEST) are ignored.
    #[must_use]
    pub fn new<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        let mut values: Vec<String> =
            values.into_iter().map(Into::into).filter(|value| value.len() >= Self::SHORTEST).collect();
        // A value that contains another one is replaced as a whole.
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self(values.into())
    }

    /// Returns whether there is nothing to replace.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text with each value replaced.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for value in self.0.iter().map(String::as_str) {
            if text.contains(value) {
                text = Cow::Owned(text.replace(value, Self::REPLACEMENT));
            }
        }
        text
    }

    /// Returns the output with each value replaced; `None` if it contains none. Blocks on the disk for a spooled output, and
    /// keeps the result within `limits`.
    ///
    /// # Errors
    ///
    /// Those of reading the spool file.
    pub fn output(&self, output: &Output, limits: OutputLimits) -> io::Result<Option<Output>> {
        if !self.occurs_in(output)? {
            return Ok(None);
        }
        let mut collector = OutputCollector::new(limits);
        self.pass(output, |piece| {
            collector.push(match piece {
                Piece::Bytes(bytes) => bytes,
                Piece::Value => Self::REPLACEMENT.as_bytes(),
            });
            true
        })?;
        let mut redacted = collector.finish();
        redacted.dropped += output.dropped;
        Ok(Some(redacted))
    }

    fn occurs_in(&self, output: &Output) -> io::Result<bool> {
        let mut occurs = false;
        if !self.is_empty() {
            self.pass(output, |piece| {
                occurs = matches!(piece, Piece::Value);
                !occurs
            })?;
        }
        Ok(occurs)
    }

    /// Passes on an output in pieces, until `take` returns false.
    fn pass(&self, output: &Output, mut take: impl FnMut(Piece<'_>) -> bool) -> io::Result<()> {
        let overlap = self.0.first().map_or(0, |longest| longest.len() - 1);
        let (mut offset, mut buffer) = (0, Vec::new());
        loop {
            let block = output.read_at(offset, COPY_BLOCK)?;
            let is_last = block.is_empty();
            offset += block.len() as u64;
            buffer.extend_from_slice(&block);
            let mut start = 0;
            while let Some((at, len)) = self.first_in(buffer.get(start..).unwrap_or_default()) {
                let before = buffer.get(start..start + at).unwrap_or_default();
                if !take(Piece::Bytes(before)) || !take(Piece::Value) {
                    return Ok(());
                }
                start += at + len;
            }
            // The beginning of a value may be at the end of the block.
            let end = if is_last { buffer.len() } else { buffer.len().saturating_sub(overlap).max(start) };
            let goes_on = take(Piece::Bytes(buffer.get(start..end).unwrap_or_default()));
            if is_last || !goes_on {
                return Ok(());
            }
            buffer.drain(..end);
        }
    }

    /// Returns position and length of the first value in these bytes.
    fn first_in(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let found =
            self.0.iter().filter_map(|value| Some((memmem::find(bytes, value.as_bytes())?, value.len())));
        found.min_by_key(|(at, len)| (*at, std::cmp::Reverse(*len)))
    }
}

impl fmt::Debug for Redactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactions").field("values", &self.0.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactions() -> Redactions {
        Redactions::new(["sk-0123456789", "sk-0123456789-long", "short", "sk-0123456789"])
    }

    #[test]
    fn values_are_replaced_in_text() {
        let cases = [
            ("nothing here", "nothing here"),
            ("sk-0123456789", "[redacted]"),
            ("a sk-0123456789-long b sk-0123456789 c", "a [redacted] b [redacted] c"),
            ("sk-012345678", "sk-012345678"),
            ("short", "short"),
            ("ü=sk-0123456789ü", "ü=[redacted]ü"),
        ];
        for (text, expected) in cases {
            assert_eq!(redactions().text(text), expected);
            let output = Output::from(text);
            let redacted = redactions().output(&output, OutputLimits::default()).unwrap();
            assert_eq!(redacted.is_some(), text != expected);
            assert_eq!(redacted.unwrap_or(output).to_text_lossy().unwrap(), expected);
        }
        assert!(Redactions::new(["short"]).is_empty());
        assert_eq!(Redactions::default().text("sk-0123456789"), "sk-0123456789");
        assert!(!format!("{:?}", redactions()).contains("0123"));
    }

    /// A value may be at the border of two blocks.
    #[test]
    fn values_are_replaced_in_a_spooled_output() {
        let limits = OutputLimits::default().with_inline(1_000);
        for before in [COPY_BLOCK - 20, COPY_BLOCK - 7, COPY_BLOCK, 2 * COPY_BLOCK - 1] {
            let mut collector = OutputCollector::new(limits.clone());
            collector.push(&vec![b'x'; before]);
            collector.push(b"sk-0123456789-long");
            collector.push(&vec![0xff; 5_000]);
            let output = collector.finish();
            let redacted = redactions().output(&output, limits.clone()).unwrap().unwrap();
            assert!(redacted.is_spooled());
            let mut expected = vec![b'x'; before];
            expected.extend_from_slice(b"[redacted]");
            expected.extend_from_slice(&[0xff; 5_000]);
            assert!(redacted.read_at(0, usize::MAX).unwrap() == expected, "{before}");
        }
    }
}
