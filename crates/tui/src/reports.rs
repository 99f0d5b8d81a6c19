//! Reports about a session as styled lines.

use pintle_host::reports::ReportLine;

use crate::render::{Face, StyledLine};

/// Returns a line with a label.
pub(crate) fn labelled(label: &str, text: impl Into<String>) -> StyledLine {
    ReportLine::labelled(label, text).into()
}

/// Returns the lines of a report.
pub(crate) fn styled(report: Vec<ReportLine>) -> Vec<StyledLine> {
    report.into_iter().map(StyledLine::from).collect()
}

impl From<ReportLine> for StyledLine {
    fn from(line: ReportLine) -> Self {
        let face = match line {
            ReportLine::Labelled { .. } => Face::PLAIN,
            ReportLine::Entry { .. } => Face::DIM,
        };
        Self::new(line.head(), Face::BOLD).and(line.text(), face)
    }
}
