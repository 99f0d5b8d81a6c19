//! Lines of `codex exec --json`.

use pintle_agent::SessionEvent;
use pintle_compat::Line;
use pintle_compat::codex::Formatter;
use pintle_host::failure::FailureKind;
use pintle_tui::render::{EventFormat, Footer, Header};

/// Output of `codex exec --json`.
#[derive(Debug, Default)]
pub(crate) struct CodexOutput {
    /// Formatter of the session, which the header names.
    formatter: Option<Formatter>,
}

impl EventFormat for CodexOutput {
    fn header(&mut self, header: &Header<'_>) -> String {
        let formatter = self.formatter.insert(Formatter::new(header.session_id.clone()));
        text(&formatter.begin())
    }

    fn event(&mut self, event: &SessionEvent) -> String {
        self.formatter.as_mut().map(|formatter| text(&formatter.event(event))).unwrap_or_default()
    }

    fn footer(&mut self, footer: &Footer<'_>) -> String {
        let Some(formatter) = &mut self.formatter else { return String::new() };
        let answer = footer.answer.map(|answer| formatter.answer(answer)).unwrap_or_default();
        let end = match footer.failure {
            Some(failure) if failure.kind() == FailureKind::UnmatchedAnswer => {
                formatter.fail(&failure.message())
            }
            Some(_) | None => formatter.end(footer.outcome),
        };
        text(&answer) + &text(&end)
    }
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}
