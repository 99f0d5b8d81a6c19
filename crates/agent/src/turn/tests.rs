//! The rules of the loop as tables, without a runtime.
#![expect(clippy::wildcard_enum_match_arm, reason = "tests look at few kinds of events")]

mod budget;
mod budget_tree;
mod changes;
mod children;
mod compaction;
mod cycle;
mod final_response;
mod folding;
mod harness;
mod images;
mod limits;
mod overflow;
mod properties;
mod repairs;
mod reserving;
mod resuming;
mod rewinding;
mod rounds;
mod starting;
mod steering;
mod stopping;
mod storing;
mod texts;

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::FutureExt as _;
use pintle_env::{MemoryEnvironment, Output};
use pintle_llm::{
    ContentPart, Error, ErrorInfo, ErrorKind, Finish, FinishReason, ImageData, Message, ReasoningEffort,
    Request, Response, Role, ThinkingData, ToolCall, ToolResult, Usage,
};
use pintle_tools::pipeline::Execution;
use pintle_tools::{DeclaredChange, Effect, Reconciliation, ToolErrorKind};

use self::harness::{Harness, calls};
use super::*;
use crate::protocol::{
    BudgetKind, CallKey, CallPlan, InputConsequences, Limits, Outcome, OutcomeStatus, Preparation, SegmentId,
    SegmentKind, Start, TurnKind,
};
