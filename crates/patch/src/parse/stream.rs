use crate::DiagnosticKind;
use crate::error::{ParseError, ParseErrorKind};
use crate::limits::MAX_PATCH_BYTES;
use crate::parse::StreamItem;
use crate::parse::envelope::Envelope;
use crate::parse::sections::Sections;
use crate::syntax::Patch;

const BYTE_ORDER_MARK: char = '\u{FEFF}';

/// Prefix of every marker.
const MARKER_START: &str = "***";

/// Incremental parser, fed with a patch while a model writes it.
///
/// It accepts the text in arbitrary pieces and yields each item once it is certain, so that an application can show the
/// diff as it grows. Items are never revoked. The parser holds back a line until its line feed, blank lines that may be
/// just a gap, and an indented `*** End Patch` that may be a line of a file.
///
/// The final patch or error is the result of [`parse`](crate::parse()) for the whole text, regardless of the split.
/// Only a text longer than [`MAX_PATCH_BYTES`] may fail earlier, at one of its lines. The patch may become invalid at
/// any point, so it must not be applied before the end.
///
/// Time and memory are linear in the length of the text, for pieces of any size.
#[derive(Debug)]
pub struct PatchStream {
    envelope: Envelope,
    sections: Sections,
    /// Bytes read so far.
    bytes: usize,
    /// Complete lines read so far.
    lines: usize,
    /// Start of the next line.
    partial: String,
    failed: Option<ParseError>,
}

impl PatchStream {
    /// Creates a parser that yields items.
    pub fn new() -> Self {
        let mut stream = Self::without_items();
        stream.sections.builder.pending_items = Some(Vec::new());
        stream
    }

    /// Creates a parser that yields no items, only the final patch.
    pub(super) fn without_items() -> Self {
        Self {
            envelope: Envelope::default(),
            sections: Sections::default(),
            bytes: 0,
            lines: 0,
            partial: String::new(),
            failed: None,
        }
    }

    /// Creates a parser that yields no items and a final patch without lines.
    pub(super) fn outline_only() -> Self {
        let mut stream = Self::without_items();
        stream.sections.builder.is_outline = true;
        stream
    }

    /// Reads the next piece of the text and appends the items that became certain to `items`.
    ///
    /// # Errors
    ///
    /// [`ParseError`] as soon as the text can no longer become a patch. Every further call returns the same error.
    /// Items that were certain before the error are still appended.
    pub fn push(&mut self, piece: &str, items: &mut Vec<StreamItem>) -> Result<(), ParseError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let read = self.read(piece);
        self.hand_over(items);
        read.inspect_err(|error| self.failed = Some(error.clone()))
    }

    /// Ends the text, appends the items held back to `items`, and returns the whole patch.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if the text is not a patch: the error that [`parse`](crate::parse()) returns.
    pub fn finish(mut self, items: &mut Vec<StreamItem>) -> Result<Patch, ParseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let read = self.read_end();
        self.hand_over(items);
        read.map(|()| self.into_patch())
    }

    /// Parses a complete text.
    pub(super) fn read_whole(mut self, text: &str) -> Result<Patch, ParseError> {
        self.read(text)?;
        self.read_end()?;
        Ok(self.into_patch())
    }

    fn read(&mut self, piece: &str) -> Result<(), ParseError> {
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes > MAX_PATCH_BYTES {
            return Err(ParseError::new(1, "", ParseErrorKind::TooLong { bytes: self.bytes }));
        }
        let mut rest = piece;
        while let Some((line, after)) = rest.split_once('\n') {
            rest = after;
            if line.trim_start().starts_with(MARKER_START) {
                self.sections.builder.added_bytes_ahead = leading_added_bytes(after);
            }
            if self.partial.is_empty() {
                self.line(line)?;
            } else {
                self.partial.push_str(line);
                let line = std::mem::take(&mut self.partial);
                self.line(&line)?;
            }
        }
        self.partial.push_str(rest);
        Ok(())
    }

    fn read_end(&mut self) -> Result<(), ParseError> {
        let last = std::mem::take(&mut self.partial);
        if !last.is_empty() {
            self.line(&last)?;
        }
        std::mem::take(&mut self.envelope).finish(self.lines, &mut self.sections)
    }

    fn line(&mut self, line: &str) -> Result<(), ParseError> {
        self.lines += 1;
        let unmarked = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| self.lines == 1);
        if unmarked.is_some() {
            self.sections.diagnostics.report(DiagnosticKind::ByteOrderMark, 1);
        }
        self.envelope.line(self.lines, unmarked.unwrap_or(line), &mut self.sections)
    }

    fn hand_over(&mut self, items: &mut Vec<StreamItem>) {
        if let Some(pending_items) = &mut self.sections.builder.pending_items {
            items.append(pending_items);
        }
    }

    fn into_patch(self) -> Patch {
        let Sections { builder, diagnostics, .. } = self.sections;
        Patch { operations: builder.operations, diagnostics: diagnostics.list }
    }
}

/// Returns the size in bytes of the added lines at the start of `text`, without their prefixes.
fn leading_added_bytes(text: &str) -> usize {
    let lines = text.split_inclusive('\n').map_while(|line| line.strip_prefix('+'));
    lines.map(str::len).sum()
}

impl Default for PatchStream {
    fn default() -> Self {
        Self::new()
    }
}
