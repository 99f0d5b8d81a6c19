//! JSON report of a patch plan.

use pintle_patch::{Change, ChangeKind, Diagnostic, Plan};
use serde::Serialize;

/// Effect of a patch.
#[derive(Debug, Serialize)]
pub(super) struct PatchReport<'a> {
    files: Vec<FileEntry<'a>>,
    diagnostics: Vec<DiagnosticEntry<'a>>,
    /// All changes as a unified diff.
    diff: String,
}

/// Changed file.
#[derive(Debug, Serialize)]
struct FileEntry<'a> {
    /// `A`, `M`, `D` or `R`.
    status: &'static str,
    path: &'a str,
    /// Old path of a renamed file.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
}

/// Defect of the patch that was tolerated. Lines and hunks count from 1.
#[derive(Debug, Serialize)]
struct DiagnosticEntry<'a> {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hunk: Option<usize>,
    /// Line of the patch.
    line: usize,
    count: usize,
}

impl<'a> PatchReport<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        Self {
            files: plan.changes.iter().map(FileEntry::new).collect(),
            diagnostics: plan.diagnostics.iter().map(DiagnosticEntry::new).collect(),
            diff: plan.unified_diff(),
        }
    }
}

impl<'a> FileEntry<'a> {
    fn new(change: &'a Change) -> Self {
        let (status, from) = match &change.kind {
            ChangeKind::Added => ("A", None),
            ChangeKind::Modified => ("M", None),
            ChangeKind::Deleted => ("D", None),
            ChangeKind::Renamed { from } => ("R", Some(from.as_str())),
        };
        Self { status, path: &change.path, from }
    }
}

impl<'a> DiagnosticEntry<'a> {
    fn new(diagnostic: &'a Diagnostic) -> Self {
        Self {
            message: diagnostic.kind.to_string(),
            path: diagnostic.path.as_deref(),
            hunk: diagnostic.hunk,
            line: diagnostic.line,
            count: diagnostic.count,
        }
    }
}
