//! Lines of `codex exec --json`.

use pintle_agent::SessionEvent;
use pintle_compat::Line;
use pintle_compat::codex::Formatter;

use super::{Footer, Header};
use crate::failure::FailureKind;

/// Returns the start of the stream.
pub(super) fn header(formatter: &mut Option<Box<Formatter>>, header: &Header<'_>) -> String {
    let formatter = formatter.insert(Box::new(Formatter::new(header.session_id.clone())));
    text(&formatter.begin())
}

/// Returns the lines of an event.
pub(super) fn event(formatter: &mut Option<Box<Formatter>>, event: &SessionEvent) -> String {
    formatter.as_mut().map(|formatter| text(&formatter.event(event))).unwrap_or_default()
}

/// Returns the end of the stream.
pub(super) fn footer(formatter: &mut Option<Box<Formatter>>, footer: &Footer<'_>) -> String {
    let Some(formatter) = formatter else { return String::new() };
    let answer = footer.answer.map(|answer| formatter.answer(answer)).unwrap_or_default();
    let end = match footer.failure {
        Some(failure) if failure.kind() == FailureKind::UnmatchedAnswer => formatter.fail(&failure.message()),
        Some(_) | None => formatter.end(footer.outcome),
    };
    text(&answer) + &text(&end)
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}
