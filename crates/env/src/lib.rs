#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod blocking;
mod command;
#[cfg(any(test, feature = "testing"))]
pub mod contract;
mod environment;
mod error;
mod exec;
mod file;
mod listing;
mod local;
#[cfg(any(test, feature = "testing"))]
mod memory;
mod output;
mod path;
mod process;
mod search;
mod text;

pub use command::{Command, DEFAULT_TIMEOUT, ExecRequest, ExecResult, OutputSink, Program, Stdin};
pub use environment::{ExecutionEnvironment, MAX_ENTRIES, MAX_READ};
pub use error::{BoxError, EnvError};
pub use file::{DirEntry, FileKind, Metadata};
pub use local::{EnvPolicy, LocalEnvironment, LocalEnvironmentBuilder};
#[cfg(any(test, feature = "testing"))]
pub use memory::{CommandScript, MemoryEnvironment};
pub use output::{Captured, Output, OutputCapture, OutputChunk, OutputCollector, OutputLimits, OutputStream};
pub use process::{ExitStatus, Process, ProcessOutput, Signal, TERMINATE_GRACE};
pub use search::{DEFAULT_MAX_RESULTS, GrepFile, GrepLine, GrepMode, GrepOutput, GrepRequest};
