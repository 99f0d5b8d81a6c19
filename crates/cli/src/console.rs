//! The two streams that a person or a script reads.

use std::io::{self, IsTerminal as _, Write as _};
use std::mem;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp, tcgetwinsize};
use tokio::io::{AsyncWriteExt as _, Stdout};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::host::Host;
use crate::render::{Size, Style, harmless};

/// There is one cursor, and two streams that move it, written from several tasks.
static CURSOR: Mutex<Cursor> = Mutex::new(Cursor::AtMargin);

/// Where the cursor of the terminal stands after what was written to it; at the margin if nothing was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cursor {
    /// In an empty line.
    AtMargin,
    /// Behind something in a line.
    InLine,
    /// Where the lines begin that change.
    BeforeLiveLines,
}

impl Cursor {
    /// Where it stands after `text`.
    fn after(text: &str) {
        let place = match text.chars().next_back() {
            Some('\n') => Self::AtMargin,
            // Lines that change are drawn so, and erased so.
            Some('\r') => Self::BeforeLiveLines,
            Some(_) if text.ends_with("\x1b[J") => Self::BeforeLiveLines,
            Some(_) => Self::InLine,
            None => return,
        };
        *CURSOR.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }

    /// What brings it to an empty line, which counts as written.
    fn leave() -> &'static str {
        let mut cursor = CURSOR.lock().unwrap_or_else(PoisonError::into_inner);
        match mem::replace(&mut *cursor, Self::AtMargin) {
            Self::AtMargin => "",
            Self::InLine => "\n",
            Self::BeforeLiveLines => "\r\x1b[J",
        }
    }
}

/// Standard output. Every write is flushed, so that whoever reads along sees it at once.
#[derive(Debug)]
pub(crate) struct Console {
    stdout: Stdout,
    is_terminal: bool,
}

impl Console {
    /// That of the process.
    pub(crate) fn new() -> Self {
        Self { stdout: tokio::io::stdout(), is_terminal: io::stdout().is_terminal() }
    }

    /// Writes and flushes; nothing for an empty text. Waits for a slow reader without holding up other tasks.
    ///
    /// # Errors
    ///
    /// A silent failure if nobody reads any more, else one that says what went wrong.
    pub(crate) async fn write(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        let written = async {
            self.stdout.write_all(text.as_bytes()).await?;
            self.stdout.flush().await
        };
        written.await.map_err(|error: io::Error| {
            if self.is_gone(&error) {
                Failure::silent(Exit::Interrupted)
            } else {
                Failure::failed("cannot write to standard output").because(&error)
            }
        })?;
        if self.is_terminal {
            Cursor::after(text);
        }
        Ok(())
    }

    /// Whether nobody reads any more: a pipe that was closed, or a terminal that was.
    fn is_gone(&self, error: &io::Error) -> bool {
        let is_closed = error.kind() == io::ErrorKind::BrokenPipe;
        is_closed || self.is_terminal && Errno::from_io_error(error) == Some(Errno::IO)
    }
}

/// How text looks there: in colour on a terminal, unless `NO_COLOR` is set or the terminal is a dumb one,
/// whose cursor is not moved either.
pub(crate) fn style(host: &Host) -> Style {
    let terminal = io::stdout().is_terminal();
    let dumb = host.variable("TERM").is_none_or(|term| term == "dumb");
    let moves = terminal && !dumb;
    Style { terminal, colour: moves && host.variable("NO_COLOR").is_none(), moves }
}

/// The size of the terminal at standard output by now; 80 by 24 where nobody knows.
pub(crate) fn size() -> Size {
    size_at(io::stdout())
}

/// The size of the terminal at standard error, where questions are put.
pub(crate) fn question_size() -> Size {
    size_at(io::stderr())
}

fn size_at(stream: impl AsFd) -> Size {
    let known = tcgetwinsize(stream).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    known.map_or(Size { columns: 80, rows: 24 }, |size| Size {
        columns: size.ws_col.into(),
        rows: size.ws_row.into(),
    })
}

/// Whether a person reads standard error.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Writes a question to standard error as it is, at once. It must hold nothing that could steer a terminal but colours.
pub(crate) fn question(text: &str) {
    let mut stderr = io::stderr().lock();
    // If nobody can read it there is nobody who could answer.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    Cursor::after(text);
}

/// The line of a question has ended with an answer: the terminal has shown the line end that was typed.
pub(crate) fn answered() {
    Cursor::after("\n");
}

/// Ends the line of a question that gets no answer.
pub(crate) fn unanswered() {
    question(Cursor::leave());
}

/// Tells a person something on standard error, in a line of its own.
pub(crate) fn notice(sentence: &str) {
    // If nobody can read it there is nobody left to tell.
    let _ =
        io::stderr().write_all(format!("{}pintle: {}\n", before_line(), in_one_line(sentence)).as_bytes());
}

/// A sentence, which may quote a model or a server, in one line that steers nothing.
fn in_one_line(sentence: &str) -> String {
    let line: String = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    harmless(&line).into_owned()
}

/// Writes text to standard error as it is, but for what could steer a terminal.
pub(crate) fn details(text: &str) {
    // If nobody can read it there is nobody left to tell.
    let _ = write!(io::stderr(), "{}", harmless(text));
}

/// Writes an object to standard output where nothing else has been written, before there is a runtime.
pub(crate) fn object(line: &str) {
    // If nobody can read it there is nobody left to tell.
    let _ = io::stdout().write_all(line.as_bytes());
}

/// Leaves the terminal as it should be found: nothing that changes below the last line.
pub(crate) fn leave() {
    // If nobody can read it there is nobody left who could be in its way.
    let _ = io::stderr().write_all(before_line().as_bytes());
}

/// Discards what was typed while the command worked: the shell would take it for commands.
pub(crate) fn discard_typed_ahead() {
    let stdin = io::stdin();
    // A background process is stopped by the kernel when it changes the terminal.
    let is_in_front = tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp());
    if stdin.is_terminal() && is_in_front {
        // A terminal that is gone holds nothing.
        let _ = tcflush(&stdin, QueueSelector::IFlush);
    }
}

/// What ends what stands in the way of a line on standard error.
fn before_line() -> &'static str {
    if stderr_is_terminal() { Cursor::leave() } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_one_line_that_steers_nothing() {
        assert_eq!(in_one_line("no model `a\x1b[2J\u{202e}b`\r\n  here\u{9b}"), "no model `a[2Jb` here");
    }
}
