//! Braces and brackets, within words and around commands.

use super::{Frame, MAX_FRAMES, Scanner};
use crate::gate::command::computed::{EACH, PART, SPLIT};

impl Scanner<'_> {
    pub(super) fn open_brace(&mut self) {
        let is_alone =
            self.current.word.is_none() && self.rest.peek().is_none_or(|next| next.is_whitespace());
        if !is_alone {
            self.is_plain = false;
            if !self.known_braces() {
                self.open_group('{');
            }
            return;
        }
        self.is_plain = false;
        let words = &self.current.words;
        let is_named = matches!(words.first().map(String::as_str), Some("function" | "coproc"));
        if is_named || !self.current.has_program {
            self.is_compound = true;
            self.end_command();
        } else {
            self.push('{');
        }
    }

    pub(super) fn close_brace(&mut self) {
        self.is_plain = false;
        if self.close_group('{') {
            return;
        }
        if self.is_in_parameter() {
            self.close_to(Some('}'));
        } else if self.current.word.is_some() || !self.current.words.is_empty() {
            self.push('}');
        }
    }

    pub(super) fn is_in_parameter(&self) -> bool {
        let innermost = self.frames.iter().rev().find(|frame| !matches!(frame, Frame::Group { .. }));
        matches!(innermost, Some(Frame::Substitution { end: '}', .. }))
    }

    /// Starts braces or brackets within a word.
    pub(super) fn open_group(&mut self, open: char) {
        self.is_plain = false;
        if self.frames.len() >= MAX_FRAMES {
            return self.push(SPLIT);
        }
        let prefix = self.current.word.replace(String::new()).unwrap_or_default();
        self.frames.push(Frame::Group { prefix, open });
    }

    /// Ends braces or brackets within a word. Their contents become one computed part. Returns whether there are any.
    fn close_group(&mut self, open: char) -> bool {
        let mut groups = self.frames.iter().enumerate().rev().map_while(|(index, frame)| match frame {
            Frame::Group { open, .. } => Some((index, *open)),
            Frame::Subshell { .. } | Frame::Substitution { .. } => None,
        });
        let Some((index, _)) = groups.find(|(_, other)| *other == open) else { return false };
        let is_empty =
            index + 1 == self.frames.len() && self.current.word.as_deref().is_none_or(str::is_empty);
        if let Some(Frame::Group { prefix, .. }) = self.frames.drain(index..).next() {
            self.current.word = Some(prefix);
        }
        // `find` and `xargs` replace `{}`.
        self.push(if is_empty { PART } else { EACH });
        true
    }

    pub(super) fn close_bracket(&mut self) {
        self.is_plain = false;
        let is_at_start = matches!(self.current.word.as_deref(), Some("" | "!" | "^"))
            && matches!(self.frames.last(), Some(Frame::Group { open: '[', .. }));
        if is_at_start || !self.close_group('[') {
            self.push(']');
        }
    }

    /// Treats braces and brackets that do not end within the word as literal text.
    pub(super) fn end_groups(&mut self) {
        let other = self.frames.iter().rposition(|frame| !matches!(frame, Frame::Group { .. }));
        let start = other.map_or(0, |index| index + 1);
        if start == self.frames.len() {
            return;
        }
        let mut text = String::new();
        for frame in self.frames.drain(start..) {
            if let Frame::Group { prefix, open } = frame {
                text.push_str(&prefix);
                text.push(open);
            }
        }
        text.push_str(self.current.word.as_deref().unwrap_or_default());
        self.current.word = Some(text);
    }
}
