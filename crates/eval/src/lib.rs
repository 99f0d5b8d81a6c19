#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod agent;
mod attempt;
mod case_verdict;
mod export;
mod jobs;
mod judge;
mod machine;
mod report;
mod run;
mod run_files;
mod statistics;
mod suite;
#[cfg(test)]
mod tests;
mod verify;
mod workspace;

pub use agent::{AgentEnd, AgentKind, AgentSetup, Claim};
pub use attempt::AttemptRecord;
pub use case_verdict::CaseVerdict;
pub use export::{junit, predictions};
pub use judge::{Judgement, TestVerdict};
pub use machine::Machine;
pub use report::{AttemptRow, Comparison, RunReport};
pub use run::{EvalRun, RunConfiguration, RunProgress, read_run};
pub use statistics::{Proportion, mcnemar};
pub use suite::{
    CheatCase, CheatClass, GoldChange, HiddenTests, Instance, InstanceSource, ScriptedProposal, Suite,
    TestRunner,
};
pub use verify::{VerifiedInstance, verify};
