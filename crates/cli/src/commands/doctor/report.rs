//! Results of checks, and their forms.

use serde::Serialize;

/// Result of a check, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Ok,
    /// Something does not work, or is not as safe as it could be.
    Warning,
    /// The command does not work at all.
    Problem,
}

impl Status {
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
pub(super) struct Check {
    name: &'static str,
    pub(super) status: Status,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Check {
    pub(super) fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, message: message.into(), remedy: None }
    }

    pub(super) fn warning(name: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let remedy = Some(remedy.into());
        Self { name, status: Status::Warning, message: message.into(), remedy }
    }

    pub(super) fn problem(name: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status: Status::Problem, ..Self::warning(name, message, remedy) }
    }
}

/// All checks.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The worst of all.
    status: Status,
    checks: Vec<Check>,
}

impl Report {
    pub(super) fn new(checks: Vec<Check>) -> Self {
        let status = checks.iter().map(|check| check.status).max().unwrap_or(Status::Ok);
        Self { status, checks }
    }

    /// Returns whether something keeps the command from working at all.
    pub(super) fn has_problem(&self) -> bool {
        self.status == Status::Problem
    }

    /// Formats a line for each check, and a line for its remedy.
    pub(super) fn text(&self) -> String {
        let line = |check: &Check| {
            let Check { name, status, message, remedy } = check;
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
            (vec![Check::ok("a", "x")], Status::Ok),
            (vec![Check::warning("a", "x", "y"), Check::ok("b", "x")], Status::Warning),
            (vec![Check::problem("a", "x", "y"), Check::warning("b", "x", "y")], Status::Problem),
        ];
        for (checks, status) in cases {
            let report = Report::new(checks);
            assert_eq!((report.status, report.has_problem()), (status, status == Status::Problem));
        }
    }

    #[test]
    fn each_check_has_a_line() {
        let report = Report::new(vec![
            Check::ok("git", "git version 2.39"),
            Check::warning("keys", "none", "`pintle login`"),
            Check::problem("configuration", "it is\nwrong", "repair it"),
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
