//! Calls whose process died while they changed files. The files show the outcome.

use std::path::PathBuf;

use pintle_env::Output;
use pintle_llm::ToolResult;
use pintle_tools::{ChangeKind, FileChange, FileIntent, Reconciliation, ToolErrorKind};

use super::round::{HOST_GONE, NotRunReason, Stage};
use super::{Machine, Phase};
use crate::protocol::{Action, CallKey, EventKind};

impl Machine {
    /// Stores the changes that a running call declares. The call has an effect from now on.
    pub(super) fn changes_declared(&mut self, key: CallKey, files: Vec<FileIntent>) {
        let Phase::RunningTools(round) = &mut self.phase else { return };
        let Some(state) = round.get_mut(key) else { return };
        if matches!(state.stage, Stage::Running { since: Some(_), .. }) {
            state.declared.extend(files);
        }
    }

    pub(super) fn reconciled(&mut self, key: CallKey, result: Reconciliation, out: &mut Vec<Action>) {
        if self.take_reconciliation(key, result, out) {
            self.advance_round(out);
        }
    }

    /// Applies the comparison of a call's files. Returns whether it was expected.
    pub(super) fn take_reconciliation(
        &mut self,
        key: CallKey,
        result: Reconciliation,
        out: &mut Vec<Action>,
    ) -> bool {
        let stopping = self.ending.is_some();
        let Phase::RunningTools(round) = &mut self.phase else { return false };
        let Some(state) = round.get_mut(key) else { return false };
        let Stage::Reconciling { ran, .. } = state.stage else { return false };
        let declared = std::mem::take(&mut state.declared);
        match result {
            Reconciliation::Done => {
                let message = done_message(&declared);
                out.push(Action::emit(EventKind::ToolCallEnd {
                    call_id: state.call.id.clone(),
                    tool_name: state.call.name.clone(),
                    output: Output::from(message.clone()),
                    error: None,
                    timeout_ms: None,
                    exit_code: None,
                    duration_ms: u64::try_from(ran.as_millis()).unwrap_or(u64::MAX),
                    changes: declared.iter().filter_map(change).collect(),
                    images: Vec::new(),
                }));
                state.stage = Stage::Done(ToolResult::new(state.call.id.clone(), message, false));
            }
            Reconciliation::Untouched if stopping => {
                state.refuse(ToolErrorKind::Cancelled, NotRunReason::Stopped.for_model(), out);
            }
            Reconciliation::Untouched => {
                // The call counts again when it starts again. The decision that released it still applies.
                self.spent.tool_calls = self.spent.tool_calls.saturating_sub(1);
                state.stage = Stage::Preparing;
                out.push(state.prepare(key));
            }
            Reconciliation::Conflict { done, untouched, changed } => {
                let message = conflict(&done, &untouched, &changed);
                state.fail(&message, ToolErrorKind::EditConflict, ran, out);
            }
            Reconciliation::Unknown { reason } => {
                let message = format!("{HOST_GONE} Its files cannot be looked at: {reason}");
                state.lose(&message, ran, out);
            }
            // A result that only a newer version knows.
            _ => state.lose(HOST_GONE, ran, out),
        }
        true
    }
}

fn done_message(files: &[FileIntent]) -> String {
    let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
    format!(include_str!("../../prompts/calls/had_done_its_work.md"), files = listed(&paths))
        .trim_ascii_end()
        .to_owned()
}

/// Describes a conflict: nothing was overwritten, and the model has to check the files.
fn conflict(done: &[PathBuf], untouched: &[PathBuf], changed: &[PathBuf]) -> String {
    let mut states = String::new();
    for (state, paths) in [
        ("Possibly changed by another process since", changed),
        ("Changed by this call", done),
        ("Not changed", untouched),
    ] {
        if !paths.is_empty() {
            states.push_str(&format!(" {state}: {}.", listed(paths)));
        }
    }
    format!(include_str!("../../prompts/calls/conflict.md"), states = states).trim_ascii_end().to_owned()
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Returns the change that a declaration describes, without a diff: the previous content is gone.
fn change(file: &FileIntent) -> Option<FileChange> {
    let kind = match (file.before, file.after) {
        (None, Some(_)) => ChangeKind::Added,
        (Some(_), Some(_)) => ChangeKind::Modified,
        (Some(_), None) => ChangeKind::Deleted,
        (None, None) => return None,
    };
    Some(FileChange::new(file.path.display().to_string(), kind, String::new()))
}
