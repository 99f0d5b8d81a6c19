//! One call, in the order of its steps.

use pintle_agent::{Count, Principal};
use pintle_governance::audit::{
    ApprovalHistory, AuditReport, CallExecution, CallHistory, CallJudgement, FileEdit, InputHistory,
    OutputText,
};
use pintle_tools::ChangeKind;

use super::AuditDetail;
use super::document::{AuditBlock, AuditDocument, duration, format_stamp, name_of, origin};
use super::verification;

/// Returns the document about one call.
pub(super) fn document(report: &AuditReport, call: &CallHistory) -> AuditDocument {
    let mut blocks = verification::chain(report);
    blocks.push(AuditBlock::field("session", call.session_id.as_str()));
    blocks.extend(steps(call, AuditDetail::Complete));
    AuditDocument { title: format!("Audit of call {}", title(call)), blocks }
}

/// Returns the item of a call.
pub(super) fn item(call: &CallHistory, detail: AuditDetail) -> AuditBlock {
    AuditBlock::item(title(call), steps(call, detail))
}

fn title(call: &CallHistory) -> String {
    let agent = call.agent.as_ref().map_or_else(String::new, |agent| format!(" of {agent}"));
    format!("{} {}{agent}: {}", call.call_id, call.proposal.tool, call.outcome.as_str())
}

fn steps(call: &CallHistory, detail: AuditDetail) -> Vec<AuditBlock> {
    let is_complete = detail == AuditDetail::Complete;
    let mut blocks = Vec::new();
    if is_complete {
        blocks.extend(call.intent.iter().flat_map(intent));
    }
    blocks.extend(proposal(call, detail));
    blocks.extend(call.judgements.iter().flat_map(|judgement| judgement_blocks(judgement, detail)));
    if call.judgements.is_empty() {
        blocks.push(AuditBlock::field("judged", "no judgement is on record"));
    }
    blocks.extend(call.approvals.iter().flat_map(|approval| approved(approval, detail)));
    for late in &call.late_decisions {
        let decision = if late.approved { "approval" } else { "denial" };
        let value = format!("{} {decision} without effect: {}", format_stamp(late.moment), late.reason);
        blocks.push(AuditBlock::field("late", value));
    }
    for recovery in &call.recoveries {
        let value = format!("{} {}", format_stamp(recovery.moment), name_of(&recovery.action));
        blocks.push(AuditBlock::field("resumed", value));
    }
    match &call.execution {
        Some(execution) => blocks.extend(executed(execution, detail)),
        None => blocks.push(AuditBlock::field("ran", "no")),
    }
    for child in &call.spawned {
        blocks.push(AuditBlock::field("spawned", format!("session {child}")));
    }
    blocks.extend(result(call, detail));
    if is_complete {
        let events = call.events.iter().map(|event| format!("#{} {}", event.moment.seq, event.kind));
        blocks.push(AuditBlock::field("events", events.collect::<Vec<_>>().join(", ")));
    }
    blocks
}

fn intent(input: &InputHistory) -> [AuditBlock; 2] {
    let text = input.text.clone();
    [AuditBlock::field("asked", origin(input)), AuditBlock::Text { name: "input", text }]
}

fn proposal(call: &CallHistory, detail: AuditDetail) -> Vec<AuditBlock> {
    let proposal = &call.proposal;
    let mut blocks = Vec::new();
    if detail == AuditDetail::Complete {
        let at = proposal.moment.map_or_else(|| "not on record".to_owned(), format_stamp);
        let model = proposal.model.as_ref().map_or_else(String::new, |model| format!(" by {model}"));
        let response =
            proposal.response_id.as_ref().map_or_else(String::new, |id| format!(", response {id}"));
        let effect =
            proposal.effect.map_or_else(String::new, |effect| format!(", effect {}", name_of(&effect)));
        blocks.push(AuditBlock::field("proposed", format!("{at}{model}{response}{effect}")));
    }
    blocks.push(AuditBlock::field("arguments", proposal.arguments.to_string()));
    let written =
        proposal.as_written.iter().map(|text| AuditBlock::Text { name: "written as", text: text.clone() });
    blocks.extend(written);
    if let Some(id) = &proposal.renamed_from {
        blocks.push(AuditBlock::field("renamed", format!("the model called it `{id}`")));
    }
    for repair in &proposal.repairs {
        let kind = serde_json::to_string(&repair.kind).unwrap_or_default();
        blocks.push(AuditBlock::field("repaired", format!("{}: {kind}", repair.argument)));
    }
    blocks
}

fn judgement_blocks(judgement: &CallJudgement, detail: AuditDetail) -> Vec<AuditBlock> {
    let mut blocks = Vec::new();
    if let Some(changed) = &judgement.changed {
        blocks.push(AuditBlock::field(
            "changed",
            format!("to {}{}", changed.arguments, by_principal(changed.by.as_ref())),
        ));
    }
    let rule = judgement.decisive_step().map_or_else(String::new, |step| {
        let rule = step.rule.as_ref().map_or_else(String::new, |rule| format!(": {rule}"));
        format!(" by {}{rule}", step.gate)
    });
    let at = format_stamp(judgement.moment);
    blocks.push(AuditBlock::field("judged", format!("{at} {}{rule}", judgement.permission)));
    if detail == AuditDetail::Complete {
        for step in judgement.steps.steps() {
            let rule = step.rule.as_ref().map_or_else(String::new, |rule| format!(", {rule}"));
            let reason = if step.reason.is_empty() { "" } else { ": " };
            let default = if step.by_default { ", by default" } else { "" };
            let value = format!("{} {}{rule}{default}{reason}{}", step.gate, step.permission, step.reason);
            blocks.push(AuditBlock::field("  gate", value));
        }
    }
    blocks
}

fn approved(approval: &ApprovalHistory, detail: AuditDetail) -> Vec<AuditBlock> {
    let mut blocks = vec![AuditBlock::field(
        "approval",
        format!("{} requested: {}", format_stamp(approval.requested), approval.reason),
    )];
    if detail == AuditDetail::Complete {
        blocks.push(AuditBlock::field("  ticket", approval.ticket.as_str()));
        blocks.push(AuditBlock::field("  for", approval.arguments.to_string()));
    }
    let value = match &approval.decision {
        Some(decision) => {
            let ending = match decision.ending {
                Some(ending) => name_of(&ending),
                None if decision.approved => "allowed".to_owned(),
                None => "denied".to_owned(),
            };
            let reason = decision.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            format!(
                "{} {ending}{}{reason}",
                format_stamp(decision.moment),
                by_principal(decision.by.as_ref())
            )
        }
        None => "no decision yet".to_owned(),
    };
    blocks.push(AuditBlock::field("decision", value));
    blocks
}

fn by_principal(principal: Option<&Principal>) -> String {
    principal.map_or_else(String::new, |principal| format!(" by {principal}"))
}

fn executed(execution: &CallExecution, detail: AuditDetail) -> Vec<AuditBlock> {
    let starts: Vec<String> = execution.starts.iter().map(ToString::to_string).collect();
    let mut value = starts.join(", again ");
    if let Some(millis) = execution.duration_ms {
        value.push_str(&format!(", {}", duration(millis)));
    } else {
        value.push_str(", no end is on record");
    }
    if let Some(code) = execution.exit_code {
        value.push_str(&format!(", exit code {code}"));
    }
    if let Some(limit) = execution.timeout_ms {
        value.push_str(&format!(", stopped at its limit of {}", duration(limit)));
    }
    if let Some(OutputText { bytes, .. }) = &execution.output {
        value.push_str(&format!(", {} of output", Count(*bytes, "byte")));
    }
    let mut blocks = vec![AuditBlock::field("ran", value)];
    for edit in &execution.changes {
        blocks.push(AuditBlock::field("changed", changed(edit)));
        if !edit.diff.is_empty() {
            blocks.push(AuditBlock::Text { name: "diff", text: edit.diff.clone() });
        }
    }
    if detail == AuditDetail::Complete {
        if !execution.declared.is_empty() {
            blocks.push(AuditBlock::field("declared", execution.declared.join(", ")));
        }
        let output = execution.output.iter().filter(|output| !output.text.is_empty());
        blocks.extend(output.map(|output| AuditBlock::Text { name: "output", text: output.text.clone() }));
    }
    blocks
}

fn changed(edit: &FileEdit) -> String {
    let kind = match &edit.kind {
        ChangeKind::Added => "added".to_owned(),
        ChangeKind::Modified => "modified".to_owned(),
        ChangeKind::Deleted => "deleted".to_owned(),
        ChangeKind::Renamed { from } => format!("renamed from {from}"),
    };
    format!("{} {kind}, +{} -{} lines", edit.path, edit.added, edit.removed)
}

fn result(call: &CallHistory, detail: AuditDetail) -> Vec<AuditBlock> {
    let Some(result) = &call.result else { return Vec::new() };
    let mut blocks = Vec::new();
    if let Some(error) = result.error {
        blocks.push(AuditBlock::field("failed", name_of(&error)));
    }
    let output = call.execution.as_ref().and_then(|execution| execution.output.as_ref());
    let is_output = output.is_some_and(|output| output.text == result.text);
    if detail == AuditDetail::Complete || result.error.is_some() {
        // For most calls this text is their output, which is already included.
        if is_output && detail == AuditDetail::Complete {
            blocks.push(AuditBlock::field("result", "the output, as it is"));
        } else {
            blocks.push(AuditBlock::Text { name: "result", text: result.text.clone() });
        }
    }
    blocks
}
