//! The two streams that a person or a script reads.

use std::io::{self, IsTerminal as _, Write as _};

use tokio::io::{AsyncWriteExt as _, Stdout};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::host::Host;
use crate::render::{Style, harmless};

/// Standard output. Every write is flushed, so that whoever reads along sees it at once.
#[derive(Debug)]
pub(crate) struct Console {
    stdout: Stdout,
}

impl Console {
    /// That of the process.
    pub(crate) fn new() -> Self {
        Self { stdout: tokio::io::stdout() }
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
            if error.kind() == io::ErrorKind::BrokenPipe {
                Failure::silent(Exit::Interrupted)
            } else {
                Failure::failed("cannot write to standard output").because(&error)
            }
        })
    }
}

/// How text looks there: in colour on a terminal, unless `NO_COLOR` is set or the terminal is a dumb one.
pub(crate) fn style(host: &Host) -> Style {
    let terminal = io::stdout().is_terminal();
    let dumb = host.variable("TERM").is_none_or(|term| term == "dumb");
    Style { terminal, colour: terminal && !dumb && host.variable("NO_COLOR").is_none() }
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
}

/// Tells a person something on standard error, in one line.
pub(crate) fn notice(sentence: &str) {
    let line: String = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|character| !character.is_control()).collect();
    // If nobody can read it there is nobody left to tell.
    let _ = writeln!(io::stderr(), "pintle: {line}");
}

/// Writes text to standard error as it is, but for what could steer a terminal.
pub(crate) fn details(text: &str) {
    // If nobody can read it there is nobody left to tell.
    let _ = write!(io::stderr(), "{}", harmless(text));
}
