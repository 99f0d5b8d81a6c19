//! The local client program that runs a remote line.

use std::{collections::VecDeque, io, process::Stdio};

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::transport::Transport;
use crate::error::EnvError;

/// Start of every line: reads the actual script from standard input, as one line. The script thus
/// never appears in a process list, is not parsed by another shell on the way, and is not limited
/// in length.
///
/// Contains no single quotes, line feeds or exclamation marks, so that it can be quoted for any
/// login shell.
pub(super) const BOOTSTRAP: &str = r#"pintle_n=$(printf "\nx"); pintle_n=${pintle_n%x}; exec 9>&2; IFS= LC_ALL=C read -r pintle_s && eval "$pintle_s""#;

/// Bytes of the client's output kept for errors.
const TAIL: usize = 4 << 10;

/// A started client program and its streams.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) child: Child,
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

impl Client {
    /// Starts a client that waits for its script.
    pub(super) fn start<T: Transport + ?Sized>(transport: &T) -> Result<Self, EnvError> {
        let mut command = tokio::process::Command::from(transport.command(BOOTSTRAP));
        // A separate process group, so that Ctrl-C in the terminal does not cut the connection.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        let failed = |source| EnvError::Spawn { program: program.clone(), source };
        let mut child = command.kill_on_drop(true).spawn().map_err(failed)?;
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok(Self { child, stdin, stdout, stderr }),
            _ => Err(failed(io::Error::other("the client has no streams"))),
        }
    }
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub(crate) struct Tail(VecDeque<u8>);

impl Tail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        self.0.drain(..self.0.len().saturating_sub(TAIL));
    }

    pub(crate) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.0.make_contiguous()).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_bounded() {
        let mut tail = Tail::default();
        tail.push(&vec![b'a'; TAIL]);
        tail.push(b"the end\n");
        let text = tail.text();
        assert_eq!(text.len(), TAIL - 1);
        assert!(text.ends_with("athe end"));
    }

    #[test]
    fn the_bootstrap_line_suits_any_login_shell() {
        assert!(!BOOTSTRAP.contains(['\'', '\n', '!']));
    }
}
