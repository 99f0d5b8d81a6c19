#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod anchor;
mod command_run;
pub mod contract;
mod diff;
pub mod evidence;
#[cfg(test)]
mod facts_for_tests;
mod git;
mod local;
mod perform;
mod prompts;
pub mod report;
pub mod repository;
pub mod results;
mod secrets;
mod selection;
pub mod task;
mod worker;

pub use command_run::{CommandRun, End, Observation, Reference, Stability};
pub use diff::{ChangeKind, ChangedFile, Diff};
pub use local::{
    HostError, KIND, KIND_TASK, LocalHost, Performer, RecordedInput, TaskLine, TaskReader, post_signal,
    read_task,
};
pub use perform::RepositoryPerformer;
pub use selection::{Proved, ranked};
pub use worker::{Assignment, OpenPlace, Place, Places, Worked, Worker, WorkerError};
