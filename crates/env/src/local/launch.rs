//! How the first process of a command is started, and how its exit is awaited.
#![expect(clippy::disallowed_methods, reason = "this module starts processes")]

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    path::PathBuf,
    process::{ExitStatus, Stdio},
};

#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
use std::sync::Arc;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
pub(crate) use super::adopted::{AdoptedChild, StartReport};
use crate::command::Stdin;

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

impl Invocation {
    /// Returns the process as a command of its own group.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
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
            .process_group(0);
        command
    }
}

/// A started process and its pipes.
pub(crate) struct Launched {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
    /// Tells whether the program was started, if another one starts it.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    pub(crate) start: Option<StartReport>,
}

impl From<tokio::process::Child> for Launched {
    fn from(mut child: tokio::process::Child) -> Self {
        Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child: Child::Runtime(child),
            #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
            start: None,
        }
    }
}

/// Function that starts a process.
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
type Launch = dyn Fn(&Invocation) -> io::Result<Launched> + Send + Sync;

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
    pub(super) fn launch(&self, invocation: &Invocation) -> io::Result<Launched> {
        match self {
            Self::Plain => invocation.command().spawn().map(Launched::from),
            #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
            Self::With(launch) => launch(invocation),
        }
    }
}

/// The first process of a command, until its exit status is known.
#[derive(Debug)]
pub(crate) enum Child {
    /// Started by the runtime.
    Runtime(tokio::process::Child),
    /// Started on a thread of its own.
    #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
    Adopted(AdoptedChild),
}

impl Child {
    /// Returns the process id, unless the exit status was already read.
    pub(super) fn id(&self) -> Option<u32> {
        match self {
            Self::Runtime(child) => child.id(),
            #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
            Self::Adopted(child) => Some(child.id()),
        }
    }

    /// Waits for the exit. Cancel safe.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        match self {
            Self::Runtime(child) => child.wait().await,
            #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
            Self::Adopted(child) => child.wait().await,
        }
    }

    /// Returns the exit status if the process has exited.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match self {
            Self::Runtime(child) => child.try_wait(),
            #[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
            Self::Adopted(child) => child.try_wait(),
        }
    }
}
