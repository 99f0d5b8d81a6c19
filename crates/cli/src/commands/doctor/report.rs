//! Results of checks, and their forms.

use serde::Serialize;

/// Result of a check, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckStatus {
    Ok,
    /// Something does not work, or is not as safe as it could be.
    Warning,
    /// The command does not work at all.
    Problem,
}

impl CheckStatus {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// A check with its result.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct DoctorCheck {
    name: &'static str,
    pub(super) status: CheckStatus,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl DoctorCheck {
    pub(super) fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, status: CheckStatus::Ok, message: message.into(), remedy: None }
    }

    pub(super) fn warning(name: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let remedy = Some(remedy.into());
        Self { name, status: CheckStatus::Warning, message: message.into(), remedy }
    }

    pub(super) fn problem(name: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status: CheckStatus::Problem, ..Self::warning(name, message, remedy) }
    }
}

/// All checks.
#[derive(Debug, Serialize)]
pub(super) struct DoctorReport {
    /// The worst of all.
    status: CheckStatus,
    checks: Vec<DoctorCheck>,
}

impl DoctorReport {
    pub(super) fn new(checks: Vec<DoctorCheck>) -> Self {
        let status = checks.iter().map(|check| check.status).max().unwrap_or(CheckStatus::Ok);
        Self { status, checks }
    }

    /// Returns whether something keeps the command from working at all.
    pub(super) fn has_problem(&self) -> bool {
        self.status == CheckStatus::Problem
    }

    /// Formats a line for each check, and a line for its remedy.
    pub(super) fn text(&self) -> String {
        let line = |check: &DoctorCheck| {
            let DoctorCheck { name, status, message, remedy } = check;
            let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
            let remedy = remedy.iter().map(|remedy| format!("{:<8} {:<13} help: {remedy}\n", "", ""));
            let first = format!("{:<8} {name:<13} {message}\n", status.name());
            std::iter::once(first).chain(remedy).collect::<String>()
        };
        self.checks.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_is_as_bad_as_its_worst_check() {
        let cases = [
            (vec![DoctorCheck::ok("a", "x")], CheckStatus::Ok),
            (vec![DoctorCheck::warning("a", "x", "y"), DoctorCheck::ok("b", "x")], CheckStatus::Warning),
            (
                vec![DoctorCheck::problem("a", "x", "y"), DoctorCheck::warning("b", "x", "y")],
                CheckStatus::Problem,
            ),
        ];
        for (checks, status) in cases {
            let report = DoctorReport::new(checks);
            assert_eq!((report.status, report.has_problem()), (status, status == CheckStatus::Problem));
        }
    }

    #[test]
    fn each_check_has_a_line() {
        let report = DoctorReport::new(vec![
            DoctorCheck::ok("git", "git version 2.39"),
            DoctorCheck::warning("keys", "none", "`pintle login`"),
            DoctorCheck::problem("configuration", "it is\nwrong", "repair it"),
        ]);
        insta::assert_snapshot!(report.text(), @r"
        ok       git           git version 2.39
        warning  keys          none
                               help: `pintle login`
        problem  configuration it is wrong
                               help: repair it
        ");
    }
}
