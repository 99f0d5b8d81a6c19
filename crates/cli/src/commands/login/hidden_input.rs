//! Terminal that does not echo input.

use std::io;

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

/// Value of a special character that no key has.
const DISABLED: u8 = 0;

/// Terminal at standard input that does not echo input until it is dropped.
#[derive(Debug)]
pub(super) struct HiddenInput {
    before: Termios,
}

impl HiddenInput {
    /// Turns off echo, and discards pending input. Keys that suspend or quit the command are disabled meanwhile: the
    /// shell would get a terminal without echo.
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
