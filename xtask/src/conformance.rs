//! `cargo xtask conformance`: both definitions of done, checkbox by checkbox.
//!
//! `xtask/conformance.toml` maps every checkbox and every cell of both parity matrices to tests, or
//! to the later work that brings it. This command runs those tests and judges each line.

mod checklist;
mod report;
mod test_binaries;

use std::collections::{BTreeMap, BTreeSet};

use self::{
    checklist::{Checklist, Proof},
    report::Report,
    test_binaries::{TestBinaries, TestOutcome},
};
use crate::{failure::Failure, metadata::Metadata};

/// Where the data is, from the root.
const DATA: &str = "xtask/conformance.toml";
/// The page that `--write` writes and that a plain run compares.
const PAGE: &str = "docs/conformance.md";

/// What is known of one line after the run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Proved,
    /// One sentence for each thing that is wrong.
    Failed(Vec<String>),
    /// Brought by the later work of this number.
    Pending(u8),
}

/// Runs the named tests and prints line, tests and verdict.
///
/// `--list` prints what is mapped without running anything; `--write` also writes the page.
/// Fails when a line fails, when a named test does not exist, and when the page is out of date.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let (mut list, mut write) = (false, false);
    for argument in arguments {
        match argument.as_str() {
            "--list" => list = true,
            "--write" => write = true,
            other => {
                return Err(Failure::new(format!("conformance takes --list or --write, found `{other}`")));
            }
        }
    }
    let path = metadata.workspace_root.join(DATA);
    let text = std::fs::read_to_string(&path)
        .map_err(|cause| Failure::new(format!("{DATA} could not be read")).because(cause))?;
    let checklist = Checklist::parse(&text)?;
    if list {
        print!("{}", Report::unjudged(&checklist));
        return Ok(());
    }
    let report = Report::new(&checklist, judge(metadata, &checklist)?);
    print!("{report}");
    settle_page(metadata, &report, write)?;
    match report.failed() {
        0 => Ok(()),
        count => Err(Failure::new(format!("{count} lines of the definitions of done fail"))),
    }
}

/// One verdict per line of the checklist, in its order.
fn judge(metadata: &Metadata, checklist: &Checklist) -> Result<Vec<Verdict>, Failure> {
    let named: BTreeSet<&str> = checklist.tests().collect();
    let outcomes =
        if named.is_empty() { BTreeMap::new() } else { TestBinaries::build(metadata)?.run(&named)? };
    Ok(checklist
        .lines
        .iter()
        .map(|line| match &line.proof {
            Proof::Tests(tests) => verdict_of(tests, &outcomes),
            Proof::Pending(issue) if *issue <= checklist.in_hand => Verdict::Failed(vec![format!(
                "is due: issue {issue} brings it, and work up to issue {} is in hand or done",
                checklist.in_hand
            )]),
            Proof::Pending(issue) => Verdict::Pending(*issue),
        })
        .collect())
}

fn verdict_of(tests: &[String], outcomes: &BTreeMap<String, TestOutcome>) -> Verdict {
    let complaints: Vec<String> = tests
        .iter()
        .filter_map(|test| match outcomes.get(test) {
            Some(TestOutcome::Passed) => None,
            Some(TestOutcome::Failed(why)) => Some(format!("{test} failed: {why}")),
            Some(TestOutcome::Missing) | None => Some(format!("{test} does not exist")),
        })
        .collect();
    if complaints.is_empty() { Verdict::Proved } else { Verdict::Failed(complaints) }
}

fn settle_page(metadata: &Metadata, report: &Report<'_>, write: bool) -> Result<(), Failure> {
    let path = metadata.workspace_root.join(PAGE);
    let page = report.page();
    if write {
        return std::fs::write(&path, page)
            .map_err(|cause| Failure::new(format!("{PAGE} could not be written")).because(cause));
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    if found == page || report.failed() > 0 {
        return Ok(());
    }
    Err(Failure::new(format!("{PAGE} is out of date; `cargo xtask conformance --write` writes it")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{TestOutcome, Verdict, verdict_of};

    #[test]
    fn a_line_is_proved_when_every_test_exists_and_passes() {
        let outcomes = BTreeMap::from([
            (String::from("a::good"), TestOutcome::Passed),
            (String::from("a::bad"), TestOutcome::Failed(String::from("exit status 101"))),
        ]);
        let verdict = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            verdict_of(&names, &outcomes)
        };
        assert_eq!(verdict(&["a::good"]), Verdict::Proved);
        assert_eq!(
            verdict(&["a::good", "a::bad", "a::gone"]),
            Verdict::Failed(vec![
                String::from("a::bad failed: exit status 101"),
                String::from("a::gone does not exist"),
            ])
        );
    }
}
