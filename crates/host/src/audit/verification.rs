//! Results of the verification, the first part of each report.

use pintle_agent::Count;
use pintle_governance::audit::AuditReport;

use super::document::AuditBlock;

/// Returns the results of the verification.
pub(super) fn chain(report: &AuditReport) -> Vec<AuditBlock> {
    let mut blocks = Vec::new();
    if let Some(chain) = &report.chain {
        for problem in &chain.problems {
            let line = problem.line.map_or_else(String::new, |line| format!("line {line}: "));
            blocks.push(AuditBlock::Alarm(format!("DAMAGED: {line}{}", problem.message)));
        }
        if let Some(line) = chain.first_damaged_line() {
            blocks.push(AuditBlock::Alarm(format!(
                "nothing from line {line} on is part of this report, since it may have been changed"
            )));
        }
        let values = Count(chain.values, "large value");
        let checkpoints = Count(chain.checkpoints, "checkpoint");
        blocks.push(AuditBlock::field(
            "chain",
            format!("verified to line {}, head {}; {values}, {checkpoints}", chain.lines, chain.head),
        ));
        if let Some(bytes) = chain.unfinished_bytes {
            let count = Count(bytes, "byte");
            let text = format!("{count} {} never completed", was_or_were(bytes));
            blocks.push(AuditBlock::field("unfinished", text));
        }
        blocks.push(match chain.matches_head {
            Some(true) => AuditBlock::field("head", "the given head is one of the lines"),
            Some(false) => AuditBlock::Alarm(
                "the given head is NOT one of the lines: the journal was cut off or rewritten".to_owned(),
            ),
            None => AuditBlock::field(
                "note",
                "damage to the newest barrier, and lines cut off at the end, show only against a head kept elsewhere (--head)",
            ),
        });
    }
    let unread = report.audit.as_ref().and_then(|audit| audit.unread.as_ref());
    blocks.extend(unread.map(|unread| {
        let count = Count(unread.inputs, "input");
        let were = was_or_were(unread.inputs);
        AuditBlock::Alarm(format!("the last {count} {were} not read: {}", unread.reason))
    }));
    blocks
}

/// Returns the verb after a counted noun.
fn was_or_were(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}
