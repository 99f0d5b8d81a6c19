//! The rules of the loop as tables, without a runtime.
#![expect(clippy::wildcard_enum_match_arm, reason = "tests look at few kinds of events")]

mod budget;
mod changes;
mod children;
mod cycle;
mod harness;
mod limits;
mod properties;
mod repairs;
mod resuming;
mod rounds;
mod starting;
mod steering;
mod stopping;

use std::path::PathBuf;
use std::time::Duration;

use pintle_env::Output;
use pintle_llm::{
    Error, ErrorInfo, ErrorKind, Finish, FinishReason, ImageData, Message, ReasoningEffort, Request,
    Response, Role, ToolCall, ToolResult, Usage,
};
use pintle_tools::pipeline::Execution;
use pintle_tools::{Effect, ToolErrorKind};

use self::harness::{Harness, calls};
use super::*;
use crate::protocol::{
    Budget, BudgetKind, CallKey, CallPlan, Outcome, OutcomeStatus, Preparation, SegmentId, SegmentKind,
    Start, TurnKind,
};
