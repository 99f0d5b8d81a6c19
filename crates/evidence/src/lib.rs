#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod anchor;
pub mod assertions;
pub mod command_run;
pub mod control_plan;
pub mod diff;
pub mod judging;
pub mod mutants;
pub mod names;
pub mod proof;
pub mod ranking;
pub mod repository_index;
pub mod results;
pub mod review_patch;
pub mod secrets;
mod shell;
mod source_languages;
pub mod source_tokens;
pub mod step_proof;
pub mod task_check;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
