//! A plan for programs.

use pintle_patch::{Change, ChangeKind, Diagnostic, Plan};
use serde::Serialize;

/// What a patch does to the files.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    files: Vec<File<'a>>,
    diagnostics: Vec<Tolerated<'a>>,
    /// All changes as a unified diff.
    diff: String,
}

/// One file that differs.
#[derive(Debug, Serialize)]
struct File<'a> {
    /// `A`, `M`, `D` or `R`.
    status: &'static str,
    path: &'a str,
    /// Where it was, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
}

/// Something that is not quite right in the patch. Lines and hunks count from 1.
#[derive(Debug, Serialize)]
struct Tolerated<'a> {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hunk: Option<usize>,
    /// The line of the patch.
    line: usize,
    count: usize,
}

impl<'a> Report<'a> {
    pub(super) fn of(plan: &'a Plan) -> Self {
        Self {
            files: plan.changes.iter().map(File::of).collect(),
            diagnostics: plan.diagnostics.iter().map(Tolerated::of).collect(),
            diff: plan.unified_diff(),
        }
    }
}

impl<'a> File<'a> {
    fn of(change: &'a Change) -> Self {
        let (status, from) = match &change.kind {
            ChangeKind::Added => ("A", None),
            ChangeKind::Modified => ("M", None),
            ChangeKind::Deleted => ("D", None),
            ChangeKind::Renamed { from } => ("R", Some(from.as_str())),
        };
        Self { status, path: &change.path, from }
    }
}

impl<'a> Tolerated<'a> {
    fn of(diagnostic: &'a Diagnostic) -> Self {
        Self {
            message: diagnostic.kind.to_string(),
            path: diagnostic.path.as_deref(),
            hunk: diagnostic.hunk,
            line: diagnostic.line,
            count: diagnostic.count,
        }
    }
}
