#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod anchor;
mod command_run;
pub mod contract;
mod diff;
pub mod evidence;
#[cfg(test)]
mod facts_for_tests;
mod local;
pub mod report;
pub mod results;
mod selection;
pub mod task;

pub use command_run::{CommandRun, End, Observation, Reference, Stability};
pub use diff::{ChangeKind, ChangedFile, Diff};
pub use local::{HostError, KIND, KIND_TASK, LocalHost, Performer, post_signal, read_task};
pub use selection::{Proved, ranked};
