//! Events that are shown as a labelled line, such as `[warning] …`.

use pintle_agent::EventKind;
use pintle_host::reports;

use super::summary;

/// Returns the label and the text of an event that is shown as a labelled line.
pub(super) fn note(kind: &EventKind) -> Option<(&'static str, String)> {
    Some(match kind {
        EventKind::ApprovalRequested { tool_name, reason, .. } => {
            ("approval", format!("{tool_name} needs approval: {reason}"))
        }
        EventKind::SteeringInjected { content, .. } => ("steering", content.clone()),
        EventKind::CompactionStart { .. } => ("compacting", "summarizing the conversation so far".to_owned()),
        EventKind::CompactionEnd { through, from, tokens_before, tokens_after, .. } => {
            let summarized = through.saturating_sub(*from);
            ("compacted", reports::compaction(summarized, *tokens_before, *tokens_after))
        }
        EventKind::LoopDetection { message } => ("loop", message.clone()),
        EventKind::HistoryRepaired { message } => ("repaired", message.clone()),
        EventKind::Warning { message } => ("warning", message.clone()),
        EventKind::BudgetReached { budget, limit, spent, needed, scope } => {
            ("limit", summary::budget(*scope, *budget, *limit, *spent, *needed))
        }
        EventKind::ContextFull { least_tokens, context_window } => {
            let [least, window] = [least_tokens, context_window].map(|tokens| summary::count(*tokens));
            ("limit", format!("the next request has at least {least} tokens, the context window {window}"))
        }
        EventKind::Gap { skipped } => ("gap", format!("{} omitted", summary::plural(*skipped, "byte"))),
        // Shown in another way, not at all, or unknown to this version.
        EventKind::SessionStart { .. } | _ => return None,
    })
}
