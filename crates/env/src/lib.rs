#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(feature = "local", feature = "docker", feature = "ssh")),
    allow(dead_code, reason = "some shared code is used by one environment only")
)]

// The examples of the guide are tested within the crate, which they refer to by name.
#[cfg(test)]
extern crate self as pintle_env;

mod blocking;
mod command;
mod confined;
#[cfg(any(test, feature = "testing"))]
pub mod contract;
mod delegating;
#[cfg(feature = "docker")]
mod docker;
mod environment;
mod error;
mod exec;
mod file;
mod forward;
mod git;
#[cfg(feature = "local")]
mod host_files;
mod lines;
#[cfg(feature = "local")]
mod linked_backup;
mod links;
#[cfg(feature = "local")]
mod local;
#[cfg(any(test, feature = "memory"))]
mod memory;
mod output;
mod path;
mod place;
mod process;
mod read_only;
#[cfg(any(feature = "docker", feature = "ssh"))]
mod remote;
#[cfg(all(target_os = "linux", any(all(test, feature = "local"), feature = "sandbox")))]
mod sandboxed;
mod search;
mod secret;
mod setters;
mod shell;
#[cfg(feature = "ssh")]
mod ssh;
mod variables;
mod walk;
mod write_switch;

pub use async_trait::async_trait;
pub use command::{Command, DEFAULT_TIMEOUT, ExecRequest, ExecResult, OutputSink, Program, Stdin};
pub use confined::ConfinedEnvironment;
pub use delegating::DelegatingEnvironment;
#[cfg(feature = "docker")]
pub use docker::{ContainerImage, DockerEnvironment, DockerEnvironmentBuilder, Mount};
pub use environment::{ExecutionEnvironment, ExecutionEnvironmentExt, IntoEnvironment};
pub use error::{BoxError, EnvError};
pub use file::{
    COPIES_DIRECTORY, COPIES_MODE, DirEntry, FileIdentity, FileKind, MAX_ENTRIES, MAX_READ, Metadata,
    TEMPORARY_PREFIX,
};
pub use git::{Git, shell_word};
pub use lines::{LineSplitter, LineTooLong};
#[cfg(feature = "local")]
pub use linked_backup::{BackupSide, LinkedBackup};
pub use links::leads_outside;
#[cfg(feature = "local")]
pub use local::{LocalEnvironment, LocalEnvironmentBuilder};
#[cfg(any(test, feature = "memory"))]
pub use memory::{CommandScript, MemoryEnvironment};
pub use output::{
    CapturedOutput, Output, OutputCapture, OutputChunk, OutputCollector, OutputLimits, OutputStream,
    Redactions,
};
pub use process::{ExitStatus, Process, ProcessOutput, Signal, TERMINATE_GRACE};
pub use read_only::{CommandClassifier, ReadOnlyEnvironment};
#[cfg(all(target_os = "linux", any(all(test, feature = "local"), feature = "sandbox")))]
pub use sandboxed::{
    ListenerHelper, NetworkGateway, ProjectCaches, ProtectedPathSource, Protection, SandboxGateway,
    SandboxLevel, SandboxSupport, SandboxUnavailable, SandboxedEnvironment, listen_in_sandbox,
};
pub use search::{
    DEFAULT_MAX_RESULTS, GlobRequest, GrepFile, GrepLine, GrepMode, GrepOutput, GrepRequest, SearchScope,
    glob_base,
};
pub use shell::shell_arguments;
#[cfg(feature = "ssh")]
pub use ssh::{SshEnvironment, SshEnvironmentBuilder, SshError, SshErrorKind};
pub use variables::EnvPolicy;
#[cfg(feature = "local")]
pub use variables::without_paths_below;
pub use walk::{EntryKind, FileContent, ReadLimits, WalkEntry, WalkLimit, WalkOutput, WalkRequest};
pub use write_switch::WriteSwitch;
