//! Decodes terminal input into keys and pastes.
//!
//! The decoder is a pure function over bytes: its result does not depend on how they are split into pieces. A byte sequence
//! that starts with Escape may arrive in parts. [`Decoder::is_within_sequence`] returns whether a sequence is open, and
//! [`Decoder::flush`] ends it once nothing has followed for [`ESCAPE_DELAY`].
//!
//! It supports the sequences of xterm and its relatives, including `modifyOtherKeys`, and of the [kitty keyboard protocol].
//! Unknown input is dropped, as are answers to terminal queries other than the query for the background.
//!
//! [kitty keyboard protocol]: https://sw.kovidgoyal.net/kitty/keyboard-protocol/

mod burst;
mod sequence;

use std::time::Duration;

pub(crate) use self::burst::join_bursts;

/// How long the rest of a sequence may take to arrive. After it, a single Escape is a key.
pub(crate) const ESCAPE_DELAY: Duration = Duration::from_millis(50);

/// Maximum size of a paste that is kept, in bytes.
pub(crate) const MAX_PASTE: usize = 4 << 20;

/// Maximum length of a sequence, in bytes. A longer sequence is dropped.
const MAX_SEQUENCE: usize = 256;

const ESCAPE: u8 = 0x1b;
const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// Input from a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Key(Key),
    /// Pasted text, with `\n` as line end.
    Paste(Paste),
    /// Text that arrived too fast to be typed, but is not marked as a paste.
    Burst(String),
    /// Answer to the query for the background colour.
    Background(Background),
}

/// Brightness of the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Background {
    Dark,
    Light,
}

/// Key with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) code: KeyCode,
    pub(crate) modifiers: Modifiers,
}

/// Key without modifiers. Shift is not a modifier of a character: it selects another character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum KeyCode {
    Char(char),
    Enter,
    Tab,
    Backspace,
    Escape,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    Insert,
    Delete,
    Function(u8),
}

/// Modifiers that are held down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Modifiers {
    pub(crate) shift: bool,
    pub(crate) alt: bool,
    pub(crate) ctrl: bool,
}

/// Pasted text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paste {
    pub(crate) text: String,
    /// Bytes beyond [`MAX_PASTE`], which are not kept.
    pub(crate) dropped: usize,
}

/// Decoder for the bytes of one terminal.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// Bytes that are not decoded yet.
    pending: Vec<u8>,
    paste: Option<RawPaste>,
    /// Sequence that is too long. The rest of it is dropped.
    skipped: Option<SkippedSequence>,
}

/// Kind of a sequence, which determines how it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SkippedSequence {
    String,
    Control,
}

/// Paste that has not ended.
#[derive(Debug, Default)]
struct RawPaste {
    bytes: Vec<u8>,
    dropped: usize,
}

/// Result of decoding the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// More bytes are needed.
    Incomplete,
    /// This many bytes are decoded.
    Decoded(usize, Option<Input>),
    /// This many bytes start a sequence that is too long. It is dropped up to its end.
    TooLong(usize, SkippedSequence),
}

impl Key {
    /// Returns the key without modifiers.
    pub(crate) const fn plain(code: KeyCode) -> Self {
        Self { code, modifiers: Modifiers { shift: false, alt: false, ctrl: false } }
    }

    /// Returns the key of a character with Ctrl.
    pub(crate) const fn ctrl(character: char) -> Self {
        Self::plain(KeyCode::Char(character)).with_ctrl()
    }

    /// Returns the key of a character with Alt.
    pub(crate) const fn alt(character: char) -> Self {
        Self::plain(KeyCode::Char(character)).with_alt()
    }

    /// Adds Ctrl.
    pub(crate) const fn with_ctrl(mut self) -> Self {
        self.modifiers.ctrl = true;
        self
    }

    /// Adds Alt.
    pub(crate) const fn with_alt(mut self) -> Self {
        self.modifiers.alt = true;
        self
    }

    /// Adds Shift.
    pub(crate) const fn with_shift(mut self) -> Self {
        self.modifiers.shift = true;
        self
    }
}

impl Decoder {
    /// Decodes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Input> {
        self.pending.extend_from_slice(bytes);
        let mut inputs = Vec::new();
        let mut decoded = 0;
        while let Some(rest) = self.pending.get(decoded..).filter(|rest| !rest.is_empty()) {
            let step = match (&mut self.paste, self.skipped) {
                (Some(paste), _) => paste.push(rest),
                (None, Some(skipped)) => match sequence::rest(skipped, rest) {
                    Some((length, is_end)) => {
                        self.skipped = Some(skipped).filter(|_| !is_end);
                        Step::Decoded(length, None)
                    }
                    None => Step::Incomplete,
                },
                (None, None) if rest.starts_with(PASTE_START) => {
                    self.paste = Some(RawPaste::default());
                    Step::Decoded(PASTE_START.len(), None)
                }
                (None, None) => decode(rest),
            };
            let (length, input) = match step {
                Step::Incomplete => break,
                Step::Decoded(length, input) => (length, input),
                Step::TooLong(length, skipped) => {
                    self.skipped = Some(skipped);
                    (length, None)
                }
            };
            decoded += length;
            if matches!(input, Some(Input::Paste(_))) {
                self.paste = None;
            }
            inputs.extend(input);
        }
        self.pending.drain(..decoded);
        inputs
    }

    /// Returns whether the bytes so far end within a sequence that starts with Escape.
    pub(crate) fn is_within_sequence(&self) -> bool {
        // An answer has an end, however long it takes, because no user types it.
        let is_answer = self.pending.starts_with(sequence::BACKGROUND);
        self.paste.is_none() && self.pending.first() == Some(&ESCAPE) && !is_answer
    }

    /// Returns whether a paste has not ended.
    pub(crate) fn is_within_paste(&self) -> bool {
        self.paste.is_some()
    }

    /// Ends a paste whose end does not arrive.
    pub(crate) fn end_paste(&mut self) -> Option<Input> {
        let mut paste = self.paste.take()?;
        paste.keep(&std::mem::take(&mut self.pending));
        Some(Input::Paste(paste.take()))
    }

    /// Ends an open sequence, because nothing has followed. A single Escape is a key.
    pub(crate) fn flush(&mut self) -> Vec<Input> {
        if !self.is_within_sequence() {
            return Vec::new();
        }
        let pending = std::mem::take(&mut self.pending);
        self.skipped = None;
        let key = match pending.as_slice() {
            [ESCAPE] => Some(Key::plain(KeyCode::Escape)),
            [ESCAPE, character @ (b'[' | b'O' | b']' | b'P' | b'^' | b'_' | b'X')] => {
                Some(Key::alt((*character).into()))
            }
            _ => None,
        };
        key.map(Input::Key).into_iter().collect()
    }
}

impl RawPaste {
    /// Appends the next bytes of the paste, up to its end.
    fn push(&mut self, bytes: &[u8]) -> Step {
        match find(bytes, PASTE_END) {
            Some(end) => {
                self.keep(bytes.get(..end).unwrap_or_default());
                Step::Decoded(end + PASTE_END.len(), Some(Input::Paste(self.take())))
            }
            None => {
                // The last bytes may be the start of the end marker.
                let is_beginning = |length: &usize| {
                    bytes.len().checked_sub(*length).and_then(|from| bytes.get(from..))
                        == PASTE_END.get(..*length)
                };
                let held = (1..PASTE_END.len()).rev().find(is_beginning).unwrap_or(0);
                let length = bytes.len() - held;
                self.keep(bytes.get(..length).unwrap_or_default());
                if length == 0 { Step::Incomplete } else { Step::Decoded(length, None) }
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MAX_PASTE.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(bytes.get(..room).unwrap_or_default());
        self.dropped += bytes.len() - room;
    }

    fn take(&mut self) -> Paste {
        let text = String::from_utf8_lossy(&self.bytes);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        Paste { text, dropped: self.dropped }
    }
}

/// Decodes the first key or sequence of some bytes, which are not empty.
fn decode(bytes: &[u8]) -> Step {
    match bytes {
        [ESCAPE, rest @ ..] => decode_escape(bytes, rest),
        [byte, ..] if *byte < 0x80 => Step::Decoded(1, control_or_ascii(*byte).map(Input::Key)),
        _ => decode_utf8(bytes),
    }
}

/// Decodes a sequence that starts with Escape, given the bytes with and without it.
fn decode_escape(bytes: &[u8], rest: &[u8]) -> Step {
    match rest {
        [] => Step::Incomplete,
        // The first Escape is a separate key.
        [ESCAPE, ..] => Step::Decoded(1, Some(Input::Key(Key::plain(KeyCode::Escape)))),
        [b'[', ..] => sequence::control_sequence(bytes),
        [b'O', ..] => sequence::single_shift(bytes),
        [b']' | b'P' | b'^' | b'_' | b'X', ..] => sequence::string(bytes),
        _ => match decode(rest) {
            step @ (Step::Incomplete | Step::TooLong(..)) => step,
            Step::Decoded(length, input) => {
                let input = input.map(|input| match input {
                    Input::Key(key) => Input::Key(key.with_alt()),
                    other @ (Input::Paste(_) | Input::Burst(_) | Input::Background(_)) => other,
                });
                Step::Decoded(1 + length, input)
            }
        },
    }
}

/// Returns the key of an ASCII byte.
fn control_or_ascii(byte: u8) -> Option<Key> {
    Some(match byte {
        b'\r' => Key::plain(KeyCode::Enter),
        b'\t' => Key::plain(KeyCode::Tab),
        0x08 => Key::plain(KeyCode::Backspace).with_ctrl(),
        0x7f => Key::plain(KeyCode::Backspace),
        0x00 => Key::ctrl(' '),
        0x01..=0x1a => Key::ctrl((byte - 1 + b'a').into()),
        0x1c..=0x1f => Key::ctrl((byte + b'@').into()),
        ESCAPE => return None,
        _ => Key::plain(KeyCode::Char(byte.into())),
    })
}

/// Decodes a character beyond ASCII. Invalid UTF-8 becomes the replacement character.
fn decode_utf8(bytes: &[u8]) -> Step {
    let typed = |character| Some(Input::Key(Key::plain(KeyCode::Char(character))));
    let head = bytes.get(..bytes.len().min(4)).unwrap_or_default();
    let (valid, error) = match std::str::from_utf8(head) {
        Ok(text) => (text, None),
        Err(error) => {
            let valid = head.get(..error.valid_up_to()).unwrap_or_default();
            (std::str::from_utf8(valid).unwrap_or_default(), Some(error))
        }
    };
    if let Some(character) = valid.chars().next() {
        // C1 control characters are not text.
        let input = if character.is_control() { None } else { typed(character) };
        return Step::Decoded(character.len_utf8(), input);
    }
    match error.and_then(|error| error.error_len()) {
        Some(length) => Step::Decoded(length.max(1), typed(char::REPLACEMENT_CHARACTER)),
        None => Step::Incomplete,
    }
}

/// Returns the start of `needle`.
fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests;
