//! Terminal that does not show what is typed.

use std::io;

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

/// Value of a special character that no key has.
const DISABLED: u8 = 0;

/// Terminal at standard input that does not show what is typed, until dropped.
#[derive(Debug)]
pub(super) struct HiddenInput {
    before: Termios,
}

impl HiddenInput {
    /// Hides what is typed from now on, and discards what was typed before. Neither can the command be stopped or quit with
    /// a key meanwhile: the shell would get a terminal that shows nothing.
    pub(super) fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes -= LocalModes::ECHO;
        hidden.local_modes |= LocalModes::ICANON | LocalModes::ISIG | LocalModes::ECHONL;
        for key in [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT] {
            hidden.special_codes[key] = DISABLED;
        }
        tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self { before })
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        // Fails only if the terminal is gone.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
