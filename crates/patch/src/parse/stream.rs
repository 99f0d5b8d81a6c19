use crate::DiagnosticKind;
use crate::error::{ParseError, ParseErrorKind};
use crate::parse::envelope::Envelope;
use crate::parse::sections::Sections;
use crate::parse::{MAX_PATCH_BYTES, StreamItem};
use crate::syntax::Patch;

const BYTE_ORDER_MARK: char = '\u{FEFF}';

/// How each marker begins.
const MARKER_START: &str = "***";

/// A parser that is fed a patch while a model writes it.
///
/// It takes the text in pieces, cut anywhere, and yields what is certain, so that a host can show
/// the diff while it grows. Nothing that was yielded is ever taken back. Held back are: a line
/// until its line feed, blank lines that may be only a gap, and an indented `*** End Patch` that
/// may be a line of a file.
///
/// The patch at the end, or the error, is that of [`parse`](crate::parse()) for the whole text,
/// however it was cut; only a text above [`MAX_PATCH_BYTES`] may fail earlier, at a line of it.
/// Until the end the patch may still turn out to be wrong, so nothing may be applied before.
///
/// Time and memory grow with the text, whatever the size of the pieces.
#[derive(Debug)]
pub struct PatchStream {
    envelope: Envelope,
    sections: Sections,
    /// Bytes taken in so far.
    bytes: usize,
    /// Complete lines so far.
    lines: usize,
    /// The start of the next line.
    partial: String,
    failed: Option<ParseError>,
}

impl PatchStream {
    /// A stream before the first piece.
    pub fn new() -> Self {
        let mut stream = Self::unseen();
        stream.sections.draft.untaken = Some(Vec::new());
        stream
    }

    /// A stream that yields no items, only the patch at the end.
    pub(super) fn unseen() -> Self {
        Self {
            envelope: Envelope::default(),
            sections: Sections::default(),
            bytes: 0,
            lines: 0,
            partial: String::new(),
            failed: None,
        }
    }

    /// A stream that yields no items, and at the end a patch without lines.
    pub(super) fn outlined() -> Self {
        let mut stream = Self::unseen();
        stream.sections.draft.is_outline = true;
        stream
    }

    /// Takes in the next piece of the text and appends to `items` what has become certain.
    ///
    /// # Errors
    ///
    /// [`ParseError`] as soon as the text cannot become a patch any more; every further call gives
    /// the same error. What was certain before the error is in `items` all the same.
    pub fn push(&mut self, piece: &str, items: &mut Vec<StreamItem>) -> Result<(), ParseError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let read = self.read(piece);
        self.hand_over(items);
        read.inspect_err(|error| self.failed = Some(error.clone()))
    }

    /// Ends the text: appends to `items` what was held back and gives the whole patch.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if the text is not a patch, the same as [`parse`](crate::parse()) gives.
    pub fn finish(mut self, items: &mut Vec<StreamItem>) -> Result<Patch, ParseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let read = self.read_end();
        self.hand_over(items);
        read.map(|()| self.into_patch())
    }

    /// Reads a text that is there as a whole.
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
                self.sections.draft.room = added_bytes(after);
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
            self.sections.tolerated.note(DiagnosticKind::ByteOrderMark, 1);
        }
        self.envelope.line(self.lines, unmarked.unwrap_or(line), &mut self.sections)
    }

    fn hand_over(&mut self, items: &mut Vec<StreamItem>) {
        if let Some(untaken) = &mut self.sections.draft.untaken {
            items.append(untaken);
        }
    }

    fn into_patch(self) -> Patch {
        let Sections { draft, tolerated, .. } = self.sections;
        Patch { operations: draft.operations, diagnostics: tolerated.diagnostics }
    }
}

/// The bytes of the added lines at the beginning of `text`, without their prefixes.
fn added_bytes(text: &str) -> usize {
    let lines = text.split_inclusive('\n').map_while(|line| line.strip_prefix('+'));
    lines.map(str::len).sum()
}

impl Default for PatchStream {
    fn default() -> Self {
        Self::new()
    }
}
