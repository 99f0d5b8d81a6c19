#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod anchor;
mod assertions;
mod command_run;
pub mod contract;
mod control_plan;
mod diff;
mod durable;
pub mod evidence;
mod git;
#[cfg(feature = "host")]
mod host_performer;
mod judging;
mod last_lines;
mod local;
mod mutants;
mod names;
mod perform;
mod prompts;
mod ranking;
pub mod report;
pub mod repository;
mod repository_index;
pub mod results;
mod review_patch;
mod secrets;
mod session_runner;
mod shell;
mod source_languages;
mod source_tokens;
mod step_runs;
mod supervisor;
pub mod task;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod work_cost;

pub use command_run::{BlobReference, CommandEnd, CommandRun, RunComparison, TestStability};
pub use control_plan::ControlKind;
pub use diff::{ChangeKind, ChangedFile, Diff};
pub use durable::{DECISION_POLL_INTERVAL, DurableHost, InProcessHost, STEP_SLICE, run_to_end};
#[cfg(feature = "host")]
pub use host_performer::{HostPerformerFactory, LocalDirectory, task_directory};
pub use judging::{JudgingFacts, JudgingList, JudgingPart};
pub use local::{
    IntactTask, KIND, KIND_TASK, LocalTaskHost, Performer, RecordedInput, TaskHostError, TaskLine,
    TaskReader, post_signal, read_inputs, read_intact_task, read_task,
};
pub use perform::{DraftError, RepositoryPerformer};
pub use ranking::{ProvedCandidate, rank_candidates};
pub use session_runner::{
    MAX_LOOPS, OpenWorkspace, SessionAssignment, SessionRunner, SteeringMessage, WorkError, WorkResult,
    Workspace, WorkspaceFactory,
};
pub use step_runs::RunPurpose;
pub use supervisor::{PerformerFactory, StepProgress, TaskEnd, TaskStatus, TaskSupervisor};
