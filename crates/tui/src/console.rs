//! Standard output and standard error.

pub(crate) mod modes;

use std::io::{self, IsTerminal as _, Write as _};
use std::mem;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use pintle_host::failure::{Failure, FailureKind};
use pintle_host::notice::Notices;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::{diff_lines, escape_hidden, sanitize};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp, tcgetwinsize};
use tokio::io::{AsyncWriteExt as _, Stdout};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::render::{Style, TerminalSize};

/// Position of the cursor. Both streams move it, from several tasks.
static CURSOR: Mutex<Cursor> = Mutex::new(Cursor::LineStart);

/// Sender of diverted notices, while a conversation uses the terminal.
static NOTICES: Mutex<Option<UnboundedSender<String>>> = Mutex::new(None);

/// Position of the terminal's cursor after the last write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cursor {
    /// On an empty line.
    LineStart,
    /// After text on a line.
    MidLine,
    /// Before the live region.
    LiveRegion,
}

impl Cursor {
    /// Records that `text` was written.
    fn advance(text: &str) {
        let position = match text.chars().next_back() {
            Some('\n') => Self::LineStart,
            // The live region is drawn and erased with these endings.
            Some('\r') => Self::LiveRegion,
            Some(_) if text.ends_with("\x1b[J") => Self::LiveRegion,
            Some(_) => Self::MidLine,
            None => return,
        };
        *CURSOR.lock().unwrap_or_else(PoisonError::into_inner) = position;
    }

    /// Returns the text that moves the cursor to an empty line, and records it as written.
    fn to_line_start() -> &'static str {
        let mut cursor = CURSOR.lock().unwrap_or_else(PoisonError::into_inner);
        match mem::replace(&mut *cursor, Self::LineStart) {
            Self::LineStart => "",
            Self::MidLine => "\n",
            Self::LiveRegion => "\r\x1b[J",
        }
    }
}

/// Writes text without colours to standard output. Control and invisible characters are escaped: names of files, sessions,
/// models and servers come from outside, and the output may be shown by a terminal. Not for patches and other files.
///
/// Fails as [`Console::write`] does.
pub async fn print(text: &str) -> Result<(), Failure> {
    Console::new().write(&escape_hidden(text)).await
}

/// Writes a patch to standard output. On a terminal, control and invisible characters are escaped. Otherwise the bytes stay
/// unchanged, for programs that apply the patch.
///
/// Fails as [`Console::write`] does.
pub async fn print_patch(patch: &[u8]) -> Result<(), Failure> {
    let mut console = Console::new();
    if console.is_terminal {
        return console.write(&escaped_patch(&String::from_utf8_lossy(patch))).await;
    }
    console.write_bytes(patch).await
}

/// Escapes control and invisible characters in a patch. A carriage return at the end of a line is removed if every line of
/// content has one.
fn escaped_patch(patch: &str) -> String {
    if patch.is_empty() {
        return String::new();
    }
    diff_lines(patch).map(|line| escape_hidden(line).into_owned() + "\n").collect()
}

/// Returns the failure of a write to standard output.
pub fn unwritten(error: &io::Error) -> Failure {
    Failure::failed("cannot write to standard output").caused_by(error)
}

/// Standard output, flushed after every write.
#[derive(Debug)]
pub struct Console {
    output: Output,
    is_terminal: bool,
}

#[derive(Debug)]
enum Output {
    Stdout(Stdout),
    /// Buffer of a test.
    #[cfg(test)]
    Captured(std::sync::Arc<Mutex<Vec<u8>>>),
}

impl Default for Console {
    fn default() -> Self {
        Self::new()
    }
}

impl Console {
    /// Returns a handle to the standard output of this process.
    pub fn new() -> Self {
        Self { output: Output::Stdout(tokio::io::stdout()), is_terminal: io::stdout().is_terminal() }
    }

    /// Returns a console that writes to a buffer.
    #[cfg(test)]
    pub(crate) fn captured(buffer: std::sync::Arc<Mutex<Vec<u8>>>) -> Self {
        Self { output: Output::Captured(buffer), is_terminal: false }
    }

    /// Writes and flushes `text`, if it is not empty. Waits for a slow reader without blocking other tasks.
    ///
    /// The failure is silent if the reader has closed the stream.
    pub async fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.write_bytes(text.as_bytes()).await?;
        if self.is_terminal {
            Cursor::advance(text);
        }
        Ok(())
    }

    async fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Ok(());
        }
        let written = async {
            match &mut self.output {
                Output::Stdout(stdout) => {
                    stdout.write_all(bytes).await?;
                    stdout.flush().await
                }
                #[cfg(test)]
                Output::Captured(buffer) => {
                    buffer.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
                    Ok(())
                }
            }
        };
        written.await.map_err(|error: io::Error| {
            if self.is_closed(&error) { Failure::silent(FailureKind::Interrupted) } else { unwritten(&error) }
        })
    }

    /// Returns whether the error means a closed pipe or terminal.
    fn is_closed(&self, error: &io::Error) -> bool {
        let is_broken_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        is_broken_pipe || self.is_terminal && Errno::from_io_error(error) == Some(Errno::IO)
    }
}

/// Returns the capabilities of standard output.
///
/// Colour requires a terminal that is not dumb, and `NO_COLOR` to be unset. The cursor of a dumb terminal is not moved.
pub fn style(process_env: &ProcessEnv) -> Style {
    let terminal = io::stdout().is_terminal();
    let dumb = process_env.variable("TERM").is_none_or(|term| term == "dumb");
    let moves = terminal && !dumb;
    Style { terminal, colour: moves && process_env.variable("NO_COLOR").is_none(), moves }
}

/// Returns the current size of the terminal at standard output, or 80 by 24 if unknown.
pub fn size() -> TerminalSize {
    size_of(io::stdout())
}

/// Returns the current size of the terminal at standard error, where prompts are shown.
pub(crate) fn prompt_size() -> TerminalSize {
    size_of(io::stderr())
}

fn size_of(stream: impl AsFd) -> TerminalSize {
    let known = tcgetwinsize(stream).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    known.map_or(TerminalSize { columns: 80, rows: 24 }, |size| TerminalSize {
        columns: size.ws_col.into(),
        rows: size.ws_row.into(),
    })
}

/// Returns whether standard output or standard error was a terminal that has hung up. `is_terminal` returns `false` for it.
pub fn is_terminal_gone() -> bool {
    // A terminal that was hung up answers every request with an error.
    let is_hung_up = |stream: io::Result<_>| {
        stream.err().and_then(|error| Errno::from_io_error(&error)) == Some(Errno::IO)
    };
    is_hung_up(tcgetwinsize(io::stdout()).map(drop).map_err(io::Error::from))
        || is_hung_up(tcgetwinsize(io::stderr()).map(drop).map_err(io::Error::from))
}

/// Returns whether standard output is a terminal.
pub fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns whether standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Writes a prompt to standard error and flushes it. It must contain no control characters other than colours.
pub fn prompt(text: &str) {
    let mut stderr = io::stderr().lock();
    // If the write fails, so does the read of the answer.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    Cursor::advance(text);
}

/// Records that a prompt was answered: the terminal has echoed the line end.
pub fn prompt_answered() {
    Cursor::advance("\n");
}

/// Ends the line of a prompt that was not answered.
pub(crate) fn prompt_abandoned() {
    prompt(Cursor::to_line_start());
}

/// Writes a failure to standard error: its message on one line, then its details.
pub fn report(failure: &Failure) {
    let message = failure.message();
    if !message.is_empty() {
        notice(&message);
    }
    // A closed standard error cannot be reported anywhere.
    let _ = write!(io::stderr(), "{}", sanitize(&failure.details()));
}

/// Diverts notices to the returned receiver until it is dropped. Diverted notices are not written to standard error.
pub fn divert_notices() -> UnboundedReceiver<String> {
    let (sender, notices) = unbounded_channel();
    *NOTICES.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
    notices
}

/// Returns notices that are written with [`notice`] when they are reported.
pub fn notices() -> Notices {
    Notices::with_sink(|reported| notice(reported.text()))
}

/// Writes a message to standard error, on a separate line.
pub fn notice(message: &str) {
    let taker = NOTICES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if taker.is_some_and(|taker| taker.send(single_line(message)).is_ok()) {
        return;
    }
    let start = match line_start() {
        // The terminal echoes the interrupt key, even on an empty line.
        "" if stderr_is_terminal() => "\r",
        start => start,
    };
    // As in `report`.
    let _ = io::stderr().write_all(format!("{start}pintle: {}\n", single_line(message)).as_bytes());
}

/// Joins the lines of a message, which may quote a model or a server, and removes control characters.
fn single_line(message: &str) -> String {
    let line: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    sanitize(&line).into_owned()
}

/// Writes a JSON line or help text to standard output synchronously, before a runtime exists.
pub fn write_object(line: &str) {
    // If the reader is gone, the exit code still reports the failure.
    let _ = io::stdout().write_all(line.as_bytes());
}

/// Erases the live region, so that the shell's prompt starts on a clean line.
pub(crate) fn clear_live_region() {
    // As in `report`.
    let _ = io::stderr().write_all(line_start().as_bytes());
}

/// Discards input typed while the command ran. Otherwise the shell would execute it.
pub fn discard_typeahead() {
    let stdin = io::stdin();
    // The kernel stops a background process that changes its terminal.
    let is_foreground = tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp());
    if stdin.is_terminal() && is_foreground {
        // Fails only if the terminal is gone.
        let _ = tcflush(&stdin, QueueSelector::IFlush);
    }
}

/// Returns the text that moves standard error to an empty line.
fn line_start() -> &'static str {
    if stderr_is_terminal() { Cursor::to_line_start() } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_are_escaped_with_their_carriage_returns() {
        let cases = [
            ("", ""),
            ("-a\n+a\r\n", "-a\n+a\\r\n"),
            ("-a\rb\r\n+a\r\n", "-a\\rb\n+a\n"),
            ("+\u{1b}[1m\u{feff}\u{fffd}\n", "+\\u{1b}[1m\\u{feff}\u{fffd}\n"),
            ("+a\n\\ No newline at end of file\n", "+a\n\\ No newline at end of file\n"),
        ];
        for (patch, expected) in cases {
            assert_eq!(escaped_patch(patch), expected, "{patch:?}");
        }
    }

    #[test]
    fn notices_are_one_line_without_control_characters() {
        assert_eq!(single_line("no model `a\x1b[2J\u{202e}b`\r\n  here\u{9b}"), "no model `a[2Jb` here");
    }
}
