//! Text that is pasted, marked as such or not, and pastes whose end does not come.

use std::time::Duration;

use tokio::time::Instant;

use super::Display;
use crate::terminal::keys::{Decoder, Input, Key, join_bursts};

/// How long the rest of a paste may take to arrive before Ctrl+C is a key again, and no part of it.
const PASTE_PAUSE: Duration = Duration::from_secs(1);

impl Display {
    /// Decodes the next piece.
    pub(super) fn decode(&mut self, piece: &[u8]) -> Vec<Input> {
        let now = Instant::now();
        let is_paused = self.paste.is_some_and(|(newest, _)| now >= newest + PASTE_PAUSE);
        if is_paused && Decoder::default().push(piece) == [Input::Key(Key::ctrl('c'))] {
            self.paste = None;
            // In place of the hint that it has not.
            self.hint("the paste has ended here");
            return self.decoder.end_paste().into_iter().collect();
        }
        let inputs = join_bursts(self.decoder.push(piece));
        self.paste = self.decoder.is_within_paste().then_some((now, false));
        inputs
    }

    /// Returns when to say that a paste has no end.
    pub(in crate::terminal) fn paste_hint_at(&self) -> Option<Instant> {
        self.paste.filter(|(_, is_told)| !is_told).map(|(newest, _)| newest + PASTE_PAUSE)
    }

    /// Says how to end a paste: meanwhile all keys are a part of it.
    pub(in crate::terminal) fn hint_at_paste(&mut self) {
        if let Some((_, is_told)) = &mut self.paste {
            *is_told = true;
            self.hint("a paste has not ended; Ctrl+C ends it");
            self.draw_soon();
        }
    }
}
