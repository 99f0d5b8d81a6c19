#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod contract;
mod durable;
mod git;
#[cfg(feature = "host")]
mod host_performer;
mod last_lines;
mod local;
mod perform;
mod prompts;
pub mod report;
pub mod repository;
mod session_runner;
mod step_runs;
mod supervisor;
pub mod task;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod work_cost;
mod worker;

pub use async_trait::async_trait;
pub use durable::{DECISION_POLL_INTERVAL, DurableHost, InProcessHost, STEP_SLICE, run_to_end};
#[cfg(feature = "host")]
pub use host_performer::{HostPerformerFactory, LocalDirectory, task_directory};
pub use last_lines::read_last_lines;
pub use local::{
    IntactTask, KIND, KIND_TASK, LocalTaskHost, Performer, RecordedInput, TaskHostError, TaskLine,
    TaskReader, post_signal, read_inputs, read_intact_task, read_task,
};
pub use perform::{DraftError, FailedDraft, RepositoryPerformer, RepositoryPerformerBuilder};
pub use pintle_evidence::command_run::{BlobReference, CommandEnd, CommandRun, RunComparison, TestStability};
pub use pintle_evidence::control_plan::ControlKind;
pub use pintle_evidence::diff::{ChangeKind, ChangedFile, Diff};
pub use pintle_evidence::judging::{JudgingFacts, JudgingList, JudgingPart};
pub use pintle_evidence::ranking::{ProvedCandidate, rank_candidates};
pub use pintle_evidence::{anchor, proof as evidence, results};
pub use session_runner::{
    MAX_LOOPS, OpenWorkspace, SessionAssignment, SessionRunner, SteeringMessage, WorkError, WorkResult,
    Workspace, WorkspaceFactory,
};
pub use step_runs::RunPurpose;
pub use supervisor::{PerformerFactory, StepProgress, TaskEnd, TaskStatus, TaskSupervisor};
pub use tokio_util::sync::CancellationToken;
pub use worker::{Worker, WorkerEvent, WorkerProblem};
