//! Pasted text, whether it is marked or not, and pastes without an end.

use std::time::Duration;

use tokio::time::Instant;

use super::Display;
use crate::terminal::keys::{Decoder, Input, Key, join_bursts};

/// How long the rest of a paste may take to arrive. After it, Ctrl+C is a key again, not a part of the paste.
const PASTE_PAUSE: Duration = Duration::from_secs(1);

impl Display {
    /// Decodes the next piece.
    pub(super) fn decode(&mut self, piece: &[u8]) -> Vec<Input> {
        let now = Instant::now();
        let is_paused = self.paste.is_some_and(|(newest, _)| now >= newest + PASTE_PAUSE);
        if is_paused && Decoder::default().push(piece) == [Input::Key(Key::ctrl('c'))] {
            self.paste = None;
            // Replaces the hint that the paste has not ended.
            self.hint("the paste has ended here");
            return self.decoder.end_paste().into_iter().collect();
        }
        let inputs = join_bursts(self.decoder.push(piece));
        self.paste = self.decoder.is_within_paste().then_some((now, false));
        inputs
    }

    /// Returns the time at which to show the hint that a paste has not ended.
    pub(in crate::terminal) fn paste_hint_at(&self) -> Option<Instant> {
        self.paste.filter(|(_, is_told)| !is_told).map(|(newest, _)| newest + PASTE_PAUSE)
    }

    /// Shows how to end a paste. Until then, all keys are a part of it.
    pub(in crate::terminal) fn hint_at_paste(&mut self) {
        if let Some((_, is_told)) = &mut self.paste {
            *is_told = true;
            self.hint("a paste has not ended; Ctrl+C ends it");
            self.draw_soon();
        }
    }
}
