#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

// The example of the guide is tested within the crate, which it refers to by name.
#[cfg(test)]
extern crate self as pintle_env;

mod blocking;
mod command;
mod confined;
#[cfg(any(test, feature = "testing"))]
pub mod contract;
mod docker;
mod environment;
mod error;
mod exec;
mod file;
mod local;
mod logging;
#[cfg(any(test, feature = "testing"))]
mod memory;
mod output;
mod path;
mod process;
mod read_only;
mod remote;
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
mod sandboxed;
mod search;
mod secret;
mod ssh;

pub use command::{Command, DEFAULT_TIMEOUT, ExecRequest, ExecResult, OutputSink, Program, Stdin};
pub use confined::Confined;
pub use docker::{ContainerImage, DockerEnvironment, DockerEnvironmentBuilder, Mount};
pub use environment::{ExecutionEnvironment, IntoEnvironment};
pub use error::{BoxError, EnvError};
pub use file::{DirEntry, FileKind, MAX_ENTRIES, MAX_READ, Metadata};
pub use local::{EnvPolicy, LocalEnvironment, LocalEnvironmentBuilder};
pub use logging::Logging;
#[cfg(any(test, feature = "testing"))]
pub use memory::{CommandScript, MemoryEnvironment};
pub use output::{Captured, Output, OutputCapture, OutputChunk, OutputCollector, OutputLimits, OutputStream};
pub use process::{ExitStatus, Process, ProcessOutput, Signal, TERMINATE_GRACE};
pub use read_only::{CommandClassifier, ReadOnly};
#[cfg(all(target_os = "linux", any(test, feature = "sandbox")))]
pub use sandboxed::{Protection, Sandboxed};
pub use search::{
    DEFAULT_MAX_RESULTS, GlobRequest, GrepFile, GrepLine, GrepMode, GrepOutput, GrepRequest, SearchScope,
};
pub use ssh::{SshEnvironment, SshEnvironmentBuilder, SshError, SshErrorKind};
