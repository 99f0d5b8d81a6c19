#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod canonical;
mod diagnostic;
mod diff;
mod error;
mod excerpt;
mod explain;
mod indent;
mod level;
mod limits;
mod locate;
mod options;
mod parse;
mod pattern;
mod plan;
mod render;
mod search;
mod syntax;
mod text;
mod unified;
mod update;
mod work;

pub use diagnostic::{Diagnostic, DiagnosticKind};
pub use error::{
    Action, ApplyError, ApplyErrorKind, Candidate, Difference, Mistake, ParseError, ParseErrorKind,
    UnusableMatch, WhitespaceDifference, Wrapper,
};
pub use level::MatchLevel;
pub use limits::{MAX_HINTS, MAX_PATCH_BYTES};
pub use options::ApplyOptions;
pub use parse::{PatchStream, StreamItem, named_paths, parse, parse_outline};
pub use plan::{Change, ChangeKind, Plan, plan};
pub use syntax::{AddFile, DeleteFile, Hunk, HunkLine, Operation, Patch, UpdateFile};
pub use unified::{DiffPart, diff_hunks, diff_parts};
