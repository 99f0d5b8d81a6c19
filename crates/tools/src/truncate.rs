//! Truncation of a tool's output for the model (loop specification, sections 5.1 to 5.3; design, section 7).
//!
//! Output is truncated by characters first and by lines second. Limits count the kept text, without the markers; every
//! count in a marker refers to the original output. A character is a Unicode scalar value. Bytes that are not UTF-8
//! count as the replacement characters that the model sees. Line feeds separate lines, so that a text that ends in a
//! line feed has an empty last line, as in the specification.

mod limits;
mod shortened;
mod text;

use std::io;

use pintle_env::Output;

pub use self::limits::{TruncationLimits, TruncationMarker, TruncationMode, TruncationRule};
pub(crate) use self::shortened::ShortenedText;

/// Returns the text of an output, truncated to the limits in `limits` for the tool `name` or its canonical `kind`, or
/// to the defaults of the kind. See [`truncate_to`].
#[must_use]
pub fn truncate(output: &Output, name: &str, kind: &str, limits: &TruncationLimits) -> String {
    truncate_to(output, limits.rule(name, kind, TruncationRule::of_kind(kind)))
}

/// Returns the text of an output, truncated by a rule.
///
/// Only the kept parts are in memory, regardless of the length of the output. A spooled output is read from disk, which
/// blocks: once for counting and once at its two ends. If it cannot be read, the text is an error message.
#[must_use]
pub fn truncate_to(output: &Output, rule: TruncationRule) -> String {
    cut(output, rule)
        .unwrap_or_else(|error| format!("[ERROR: The output cannot be read back from disk: {error}]"))
}

fn cut(output: &Output, rule: TruncationRule) -> io::Result<String> {
    let extent = text::measure(output)?;
    let Some(removed) = extent.chars.checked_sub(rule.chars as u64).filter(|removed| *removed > 0) else {
        let whole = output.to_text_lossy()?;
        return Ok(match rule.lines {
            Some(limit) if extent.lines > limit as u64 => cut_lines(&whole, extent.lines, limit),
            Some(_) | None => whole,
        });
    };
    let head_chars = match rule.mode {
        TruncationMode::HeadTail => rule.chars / 2,
        TruncationMode::LongTail => rule.chars / 5,
        TruncationMode::Tail => 0,
    };
    let head = text::head(output, head_chars)?;
    let tail = text::tail(output, rule.chars - head_chars)?;
    let removed_bytes = output.len().saturating_sub((head.len() + tail.len()) as u64);
    let kept = KeptParts { head: &head, tail: &tail, removed, removed_bytes, lines: extent.lines };
    Ok(kept.render(rule))
}

/// Truncates by lines only: keeps half of the limit at each end.
fn cut_lines(whole: &str, lines: u64, limit: usize) -> String {
    let head = text::first_lines(whole, limit / 2);
    let tail = text::last_lines(whole, limit - limit / 2);
    format!("{head}\n{}{tail}", lines_marker(lines - limit as u64))
}

/// The parts of an output that the character limit keeps.
struct KeptParts<'a> {
    head: &'a str,
    tail: &'a str,
    /// The number of characters between head and tail.
    removed: u64,
    /// The same in bytes. It is too low if replacement characters are longer than the bytes that they replace.
    removed_bytes: u64,
    /// The number of lines of the original.
    lines: u64,
}

impl KeptParts<'_> {
    /// Applies the line limit at the gap and puts the markers there, so that there is only one gap.
    fn render(&self, rule: TruncationRule) -> String {
        let (mut head, mut tail, mut lines) = (self.head, self.tail, String::new());
        if let Some(limit) = rule.lines.filter(|limit| self.lines > *limit as u64) {
            let (head_lines, tail_lines) = (text::count_lines(head), text::count_lines(tail));
            if head_lines + tail_lines > limit {
                let from_head = head_lines.min(limit - tail_lines.min(limit - limit / 2));
                let from_tail = tail_lines.min(limit - from_head);
                head = text::first_lines(head, from_head);
                tail = text::last_lines(tail, from_tail);
                lines = lines_marker(self.lines - (from_head + from_tail) as u64);
            }
        }
        let marked = self.marked(rule, head);
        match rule.marker {
            TruncationMarker::Warning | TruncationMarker::Tokens => format!("{marked}{lines}{tail}"),
            TruncationMarker::Characters => {
                format!("{marked}{lines}{tail}\n[The full output is available in the event stream.]")
            }
        }
    }

    /// Returns the text before the tail.
    fn marked(&self, rule: TruncationRule, head: &str) -> String {
        let removed = self.removed;
        match rule.marker {
            TruncationMarker::Warning => format!("{head}{}", warning(rule.mode, removed)),
            TruncationMarker::Tokens => {
                // Like codex, do not count an empty line after the last line feed.
                let lines = self.lines - u64::from(self.tail.ends_with('\n'));
                let tokens = self.removed_bytes.div_ceil(4).max(1);
                format!("Total output lines: {lines}\n\n{head}…{tokens} tokens truncated…")
            }
            TruncationMarker::Characters => format!("{head}\n\n... [{removed} characters omitted] ...\n\n"),
        }
    }
}

fn warning(mode: TruncationMode, removed: u64) -> String {
    match mode {
        TruncationMode::HeadTail | TruncationMode::LongTail => {
            format!(
                concat!("\n\n", include_str!("../prompts/notes/truncated_middle.md"), "\n"),
                removed = removed
            )
        }
        TruncationMode::Tail => {
            format!(concat!(include_str!("../prompts/notes/truncated_start.md"), "\n"), removed = removed)
        }
    }
}

fn lines_marker(omitted: u64) -> String {
    format!("[... {omitted} lines omitted ...]\n")
}

#[cfg(test)]
mod tests;
