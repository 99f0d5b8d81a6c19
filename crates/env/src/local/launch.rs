//! How the first process of a command is started, and how its exit is awaited.
#![cfg_attr(
    not(target_os = "linux"),
    expect(clippy::disallowed_methods, reason = "this module starts processes")
)]

#[cfg(not(target_os = "linux"))]
use std::process::Stdio;
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
use std::sync::Arc;
use std::{collections::BTreeMap, ffi::OsString, io, path::PathBuf};

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
use super::start_report::StartReport;
use crate::command::Stdin;

/// The first process of a command, until its exit status is known.
#[cfg(target_os = "linux")]
pub(super) type Child = super::adopted::AdoptedChild;
#[cfg(not(target_os = "linux"))]
pub(super) type Child = tokio::process::Child;

/// A process to start: everything that the environment and the command determine.
#[derive(Clone)]
pub(crate) struct Invocation {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    /// All variables of the process; it inherits none.
    pub(crate) variables: BTreeMap<OsString, OsString>,
    pub(crate) directory: PathBuf,
    pub(crate) stdin: Stdin,
}

#[cfg(not(target_os = "linux"))]
impl Invocation {
    /// Starts the process in a separate process group. It keeps the terminal of the embedding process: the standard library
    /// cannot start a process in a separate session.
    fn spawn(&self) -> io::Result<LaunchedProcess> {
        let mut child = tokio::process::Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .envs(&self.variables)
            .current_dir(&self.directory)
            .stdin(match self.stdin {
                Stdin::Null => Stdio::null(),
                Stdin::Piped => Stdio::piped(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        Ok(LaunchedProcess {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
        })
    }
}

/// A started process and its pipes.
pub(crate) struct LaunchedProcess {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
    /// Reports whether the program was started, if a launcher starts it.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    pub(crate) start: Option<StartReport>,
}

/// Function that starts a process.
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
type Launch = dyn Fn(&Invocation) -> io::Result<LaunchedProcess> + Send + Sync;

/// How a process is started.
#[derive(Clone)]
pub(crate) enum Launcher {
    /// Directly.
    Plain,
    /// By a function.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    With(Arc<Launch>),
}

impl Launcher {
    pub(super) fn launch(&self, invocation: &Invocation) -> io::Result<LaunchedProcess> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Plain => super::start::spawn(invocation),
            #[cfg(not(target_os = "linux"))]
            Self::Plain => invocation.spawn(),
            #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
            Self::With(launch) => launch(invocation),
        }
    }
}
