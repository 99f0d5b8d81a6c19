//! Whole sessions.

use pintle_agent::{Count, ImageSummary, Money};
use pintle_governance::audit::{
    Audit, AuditReport, InputHistory, LimitHistory, ModelSpending, Notice, PolicyHistory, SubagentHistory,
    Summary,
};

use super::document::{AuditBlock, AuditDocument, format_stamp, name_of, origin};
use super::verification::chain;
use super::{AuditDetail, calls};

/// Returns the document about a session with its subagents.
pub(super) fn document(report: &AuditReport, detail: AuditDetail) -> AuditDocument {
    AuditDocument { title: format!("Audit of session {}", report.session_id), blocks: blocks(report, detail) }
}

fn blocks(report: &AuditReport, detail: AuditDetail) -> Vec<AuditBlock> {
    let mut blocks = chain(report);
    let Some(audit) = &report.audit else {
        blocks.extend(report.problem.clone().map(AuditBlock::Alarm));
        return blocks;
    };
    blocks.extend(identity(audit));
    let calls = audit.calls.iter().map(|call| calls::item(call, detail)).collect();
    let inputs = audit.inputs.iter().map(input).collect();
    let sections = [
        ("Summary", summary(&audit.summary)),
        ("Spending", spending(audit)),
        ("Inputs", inputs),
        ("Policy", audit.policy.iter().map(policy).collect()),
        ("Calls", calls),
        ("Subagents", audit.subagents.iter().map(|subagent| self::subagent(subagent, detail)).collect()),
        ("Limits", audit.limits.iter().map(limit).collect()),
        ("Checkpoints", checkpoints(audit)),
        ("Notices", audit.notices.iter().map(notice).collect()),
    ];
    blocks.extend(sections.into_iter().filter_map(|(title, blocks)| AuditBlock::section(title, blocks)));
    blocks
}

fn identity(audit: &Audit) -> Vec<AuditBlock> {
    let session = &audit.session;
    let mut blocks = vec![AuditBlock::field("directory", session.working_directory.as_str())];
    blocks.extend(audit.models.iter().map(|change| {
        AuditBlock::field("model", format!("{} {}, from {}", change.provider, change.model, change.at))
    }));
    if let Some(origin) = &session.spawned_by {
        let value = format!("{}, of session {}", origin.agent_id, origin.parent);
        blocks.push(AuditBlock::field("subagent", value));
    }
    if let Some(origin) = &session.forked_from {
        let value = format!("session {}, after {}", origin.session_id, Count(origin.turns as u64, "entry"));
        blocks.push(AuditBlock::field("fork of", value));
    }
    let created = session.created_at.map_or_else(|| "not on record".to_owned(), |at| at.to_string());
    let version = format!("by version {}, record format {}", session.made_by, session.record_version);
    blocks.push(AuditBlock::field("created", format!("{created} {version}")));
    let last = audit.last.map_or_else(|| "no event".to_owned(), format_stamp);
    blocks.push(AuditBlock::field("state", format!("{}, last event {last}", name_of(&audit.state))));
    blocks
}

fn summary(summary: &Summary) -> Vec<AuditBlock> {
    let calls = summary.calls.iter().map(|count| {
        AuditBlock::field("calls", format!("{} {} {}", count.calls, count.tool, count.outcome.as_str()))
    });
    let refused = summary.refused.iter().map(|call| {
        let rule = call.rule.as_ref().map_or_else(String::new, |rule| format!(", {rule}"));
        let outcome = call.outcome.as_str();
        AuditBlock::field("refused", format!("{} {}: {outcome}{rule}", call.call_id, call.tool))
    });
    let files = summary.files.iter().map(|file| {
        let calls = Count(file.calls, "call");
        AuditBlock::field(
            "file",
            format!("{}, +{} -{} lines in {calls}", file.path, file.added, file.removed),
        )
    });
    let hosts = summary
        .hosts
        .iter()
        .map(|host| AuditBlock::field("host", format!("{}, {}", host.host, Count(host.calls, "call"))));
    calls.chain(refused).chain(files).chain(hosts).collect()
}

fn spending(audit: &Audit) -> Vec<AuditBlock> {
    let mut blocks: Vec<AuditBlock> = audit.spending.models.iter().map(model).collect();
    let total = &audit.spending.total;
    let calls = Count(total.tool_calls, "started call");
    let tokens = format!("{} input and {} output tokens", total.input_tokens, total.output_tokens);
    blocks.push(AuditBlock::field(
        "in total",
        format!("{tokens}, {calls}, {}, with subagents", cost(total.cost)),
    ));
    blocks
}

fn model(spent: &ModelSpending) -> AuditBlock {
    let responses = Count(spent.responses, "response");
    let tokens = format!("{} input and {} output tokens", spent.input_tokens, spent.output_tokens);
    let name = format!("{} {}", spent.provider, spent.model);
    AuditBlock::field("model", format!("{name}: {responses}, {tokens}, {}", cost(spent.cost)))
}

fn cost(cost: Option<Money>) -> String {
    cost.map_or_else(|| "cost unknown".to_owned(), |cost| format!("{cost:.4}"))
}

fn input(input: &InputHistory) -> AuditBlock {
    let mut blocks = vec![AuditBlock::Text { name: "text", text: input.text.clone() }];
    blocks.extend(input.images.iter().map(|image| AuditBlock::field("image", image_label(image))));
    blocks.extend(input.run_ended.map(|status| AuditBlock::field("run ended", name_of(&status))));
    AuditBlock::item(origin(input), blocks)
}

/// Returns the type and the size of an image.
fn image_label(image: &ImageSummary) -> String {
    let size = image.bytes.map(|bytes| Count(bytes, "byte").to_string());
    let parts: Vec<String> = image.media_type.clone().into_iter().chain(size).collect();
    if parts.is_empty() { "[image]".to_owned() } else { format!("[image: {}]", parts.join(", ")) }
}

fn policy(policy: &PolicyHistory) -> AuditBlock {
    let change = &policy.change;
    let mut blocks = Vec::new();
    blocks.extend(change.mode.as_ref().map(|mode| AuditBlock::field("mode", mode.as_str())));
    for rule in &change.rules {
        let value = format!("{} {} ({})", rule.permission, rule.rule, rule.source);
        blocks.push(AuditBlock::field("rule", value));
    }
    blocks.extend(change.sandbox.as_ref().map(|sandbox| AuditBlock::field("sandbox", sandbox.as_str())));
    blocks.extend(change.grant.as_ref().map(|grant| AuditBlock::field("grant", grant.to_string())));
    blocks.extend(change.by.as_ref().map(|by| AuditBlock::field("by", by.as_str())));
    AuditBlock::item(format_stamp(policy.moment), blocks)
}

fn subagent(subagent: &SubagentHistory, detail: AuditDetail) -> AuditBlock {
    let mut blocks = vec![
        AuditBlock::field("session", subagent.session_id.as_str()),
        AuditBlock::field("spawned", format_stamp(subagent.spawned)),
        AuditBlock::Text { name: "task", text: subagent.task.clone() },
    ];
    blocks.extend(subagent.call_id.as_ref().map(|call| AuditBlock::field("by call", call.as_str())));
    let closed = subagent.closed.map_or_else(|| "not on record".to_owned(), format_stamp);
    let status = subagent.status.map_or_else(String::new, |status| format!(" {status}"));
    let turns = subagent.turns.map_or_else(String::new, |turns| format!(", {}", Count(turns, "response")));
    blocks.push(AuditBlock::field("closed", format!("{closed}{status}{turns}")));
    match &subagent.report {
        Some(report) => blocks.extend(self::blocks(report, detail)),
        None => blocks.push(AuditBlock::field("record", "the store has no record of it")),
    }
    AuditBlock::item(subagent.agent_id.as_str(), blocks)
}

fn limit(limit: &LimitHistory) -> AuditBlock {
    AuditBlock::field("limit", format!("{} {}", format_stamp(limit.moment), limit.limit))
}

fn checkpoints(audit: &Audit) -> Vec<AuditBlock> {
    let taken = audit.checkpoints.iter().map(|taken| {
        let checkpoint = &taken.checkpoint;
        let partial =
            checkpoint.partial.as_ref().map_or_else(String::new, |lacks| format!(", partial: {lacks}"));
        let entries = format!("entries: {}", checkpoint.entries);
        let (at, reason) = (format_stamp(taken.moment), name_of(&taken.reason));
        AuditBlock::field("taken", format!("{at} {reason}, {}, {entries}{partial}", checkpoint.id))
    });
    let rewound = audit.rewinds.iter().map(|rewind| {
        AuditBlock::field(
            "rewound",
            format!("{} to the first {}", format_stamp(rewind.moment), Count(rewind.turns, "entry")),
        )
    });
    taken.chain(rewound).collect()
}

fn notice(notice: &Notice) -> AuditBlock {
    AuditBlock::field(notice.kind.as_str(), format!("{} {}", format_stamp(notice.moment), notice.message))
}
