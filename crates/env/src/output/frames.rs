//! Progress frames: texts that overwrite each other in one line of a terminal.

use std::io;

use super::escapes::{ESCAPE, EscapeStripper};
use super::{Output, OutputCollector, OutputLimits};

/// The bytes of one read.
const BLOCK: usize = 1 << 20;

/// Maximum number of bytes of a frame in memory. A line with a longer frame is kept unchanged.
const MAX_FRAME: usize = 1 << 20;

/// Implementation of [`Output::plain_text`].
pub(super) fn plain_text(output: &Output, limits: OutputLimits) -> io::Result<Option<Output>> {
    if !has_controls(output)? {
        return Ok(None);
    }
    let (mut stripper, mut folder) = (EscapeStripper::default(), FrameFolder::default());
    // The output was kept before, and the copy is not longer.
    let mut copy = OutputCollector::new(limits.with_total(u64::MAX));
    let mut offset = 0;
    while offset < output.len() {
        let block = output.read_at(offset, BLOCK)?;
        offset += block.len() as u64;
        stripper.push(&block, |byte| folder.push(byte));
        copy.push(&std::mem::take(&mut folder.folded));
    }
    stripper.finish(&mut |byte| folder.push(byte));
    folder.write_last();
    copy.push(&folder.folded);
    let copy = copy.finish();
    let is_changed = folder.has_frames || stripper.has_removed;
    Ok((is_changed && copy.dropped() == 0).then_some(copy))
}

/// Returns true if the output has a carriage return or an escape.
fn has_controls(output: &Output) -> io::Result<bool> {
    let mut offset = 0;
    while offset < output.len() {
        let block = output.read_at(offset, BLOCK)?;
        if block.iter().any(|byte| [b'\r', ESCAPE].contains(byte)) {
            return Ok(true);
        }
        offset += block.len() as u64;
    }
    Ok(false)
}

/// Folds text that arrives in blocks.
#[derive(Debug, Default)]
struct FrameFolder {
    /// The folded text that has not been taken yet.
    folded: Vec<u8>,
    /// The frame that is being read.
    frame: Vec<u8>,
    /// The last frame of the line that is not empty.
    last: Vec<u8>,
    /// Number of frames of the line that were ended by a carriage return and are not empty.
    frames: usize,
    /// Whether a carriage return was read in the line.
    returned: bool,
    /// Whether the line is kept unchanged, because a frame is too long.
    passes: bool,
    /// Whether any line had two frames.
    has_frames: bool,
}

impl FrameFolder {
    fn push(&mut self, byte: u8) {
        match byte {
            b'\n' => self.end_line(),
            b'\r' if !self.passes => self.end_frame(),
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.passes {
            self.folded.push(byte);
            return;
        }
        self.frame.push(byte);
        if self.frame.len() > MAX_FRAME {
            self.has_frames |= self.frames > 0;
            self.frames = 0;
            self.last.clear();
            self.folded.append(&mut self.frame);
            self.passes = true;
        }
    }

    fn end_frame(&mut self) {
        self.returned = true;
        if !self.frame.is_empty() {
            self.frames += 1;
            std::mem::swap(&mut self.last, &mut self.frame);
            self.frame.clear();
        }
    }

    fn end_line(&mut self) {
        // A carriage return before the line feed belongs to the line end.
        let ends_with_return = self.returned && self.frame.is_empty() && self.frames < 2 && !self.passes;
        self.write_last();
        let end: &[u8] = if ends_with_return { b"\r\n" } else { b"\n" };
        self.folded.extend_from_slice(end);
    }

    /// Writes the last frame of the line.
    fn write_last(&mut self) {
        let frames = self.frames + usize::from(!self.frame.is_empty());
        self.has_frames |= frames > 1;
        let last = if self.frame.is_empty() { &mut self.last } else { &mut self.frame };
        self.folded.append(last);
        self.frame.clear();
        self.last.clear();
        (self.frames, self.returned, self.passes) = (0, false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(text: impl Into<Vec<u8>>) -> Option<String> {
        let bytes: Vec<u8> = text.into();
        let folded = plain_text(&Output::from(bytes), OutputLimits::default()).unwrap();
        folded.map(|folded| folded.to_text_lossy().unwrap())
    }

    #[test]
    fn the_last_frame_of_each_line_is_kept() {
        for (text, expected) in [
            ("1%\r2%\r3%\ndone\n", Some("3%\ndone\n")),
            ("\r1%\r2%\n", Some("2%\n")),
            ("1%\r2%\r\nnext", Some("2%\nnext")),
            ("1%\r2%\r", Some("2%")),
            ("a\n1%\r2%", Some("a\n2%")),
            ("1%\r\r\r2%\n", Some("2%\n")),
            ("1%\r2%\na\r\nb\r\n\r\n", Some("2%\na\r\nb\r\n\r\n")),
            // Sequences are removed first: a frame that only erases is empty.
            ("\u{1b}[32m1%\u{1b}[0m\r\u{1b}[K2%\r\u{1b}[K\n", Some("2%\n")),
            ("\u{1b}[32mok\u{1b}[0m\r\nnext\n", Some("ok\r\nnext\n")),
            // Line ends and single frames are not changed.
            ("", None),
            ("a\nb\n", None),
            ("a\r\nb\r\n", None),
            ("\r\n", None),
            ("a\r", None),
        ] {
            assert_eq!(fold(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn long_outputs_are_folded_on_disk() {
        let limits = OutputLimits::default().with_inline(64);
        let mut output = OutputCollector::new(limits.clone());
        for number in 0..100_000 {
            output.push(format!("line {number}\rLINE {number}\n").as_bytes());
        }
        let output = output.finish();
        let folded = plain_text(&output, limits).unwrap().unwrap();
        assert!(output.is_spooled() && folded.is_spooled());
        let text = folded.to_text_lossy().unwrap();
        assert_eq!(text.lines().count(), 100_000);
        assert!(text.lines().all(|line| line.starts_with("LINE ")));
    }

    #[test]
    fn a_line_with_a_frame_that_is_too_long_is_kept() {
        let long = "x".repeat(MAX_FRAME + 1);
        assert_eq!(fold(format!("{long}\rshort\n")), None);
        let folded = fold(format!("{long}\rshort\n1%\r2%\n")).unwrap();
        assert_eq!(folded, format!("{long}\rshort\n2%\n"));
        assert_eq!(fold(format!("1%\r{long}\n")), Some(format!("{long}\n")));
    }
}
