//! `cargo xtask conformance`: the checkboxes of both definitions of done.
//!
//! `xtask/conformance.toml` maps every checkbox and every cell of both parity matrices to tests, or to the issue that
//! will implement it. This command runs those tests and reports the state of each line.

mod checklist;
mod report;
mod test_binaries;

use std::{collections::BTreeMap, path::Path};

pub(crate) use self::test_binaries::{TestBinaries, TestBinary, TestOutcome};
use self::{
    checklist::{Checklist, Proof},
    report::Report,
};
use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
    test_run::TestRun,
};

/// Path of the data, from the root.
const DATA: &str = "xtask/conformance.toml";
/// Page that `--write` generates and that a run without it compares.
const PAGE: &str = "docs/project/conformance.md";

/// State of one line after the run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Proved,
    /// One message per failed or missing test.
    Failed(Vec<String>),
    /// To be implemented by the issue of this number.
    Pending(u8),
}

/// Runs the named tests and prints each line with its tests and state.
///
/// `--list` prints the mapping without running anything; `--write` also generates the page.
/// Fails if a line fails, if a named test does not exist, or if the page is out of date.
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
    let checklist = load(&metadata.workspace_root)?;
    if list {
        print!("{}", Report::mapping(&checklist));
        return Ok(());
    }
    report(metadata, &checklist, &TestBinaries::build(metadata)?, &TestRun::default(), write)
}

/// Reports like [`run`], but runs only the tests that have not passed in `earlier`.
pub(crate) fn compare(
    metadata: &Metadata,
    binaries: &TestBinaries,
    earlier: &TestRun,
) -> Result<(), Failure> {
    report(metadata, &load(&metadata.workspace_root)?, binaries, earlier, false)
}

/// Returns the tests of each line by its identifier. Cells of the parity matrices are left out.
pub(crate) fn tests_by_line(root: &Path) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let lines = load(root)?.lines.into_iter().filter(|line| !line.is_parity());
    Ok(lines.map(|line| (line.id, line.proof.tests().to_vec())).collect())
}

fn load(root: &Path) -> Result<Checklist, Failure> {
    let text =
        std::fs::read_to_string(root.join(DATA)).with_context(|| format!("{DATA} could not be read"))?;
    Checklist::parse(&text)
}

fn report(
    metadata: &Metadata,
    checklist: &Checklist,
    binaries: &TestBinaries,
    earlier: &TestRun,
    write: bool,
) -> Result<(), Failure> {
    let report = Report::new(checklist, run_checklist(checklist, binaries, earlier)?);
    print!("{report}");
    update_page(metadata, &report, write)?;
    match report.failed() {
        0 => Ok(()),
        count => Err(Failure::new(format!("{count} lines of the definitions of done fail"))),
    }
}

/// Returns one verdict per line of the checklist, in order.
fn run_checklist(
    checklist: &Checklist,
    binaries: &TestBinaries,
    earlier: &TestRun,
) -> Result<Vec<Verdict>, Failure> {
    let outcomes = binaries.run(&checklist.tests().collect(), earlier)?;
    Ok(checklist
        .lines
        .iter()
        .map(|line| match &line.proof {
            Proof::Tests(tests) => verdict_of(tests, &outcomes),
            Proof::Pending(issue) if *issue <= checklist.in_hand => Verdict::Failed(vec![format!(
                "is overdue: it is pending for issue {issue}, but issues up to {} are in progress or done",
                checklist.in_hand
            )]),
            Proof::Pending(issue) => Verdict::Pending(*issue),
        })
        .collect())
}

fn verdict_of(tests: &[String], outcomes: &BTreeMap<String, TestOutcome>) -> Verdict {
    let failures: Vec<String> = tests
        .iter()
        .filter_map(|test| match outcomes.get(test) {
            Some(TestOutcome::Passed) => None,
            Some(TestOutcome::Failed(why)) => Some(format!("{test} failed: {why}")),
            Some(TestOutcome::Missing) | None => Some(format!("{test} does not exist")),
        })
        .collect();
    if failures.is_empty() { Verdict::Proved } else { Verdict::Failed(failures) }
}

fn update_page(metadata: &Metadata, report: &Report<'_>, write: bool) -> Result<(), Failure> {
    let path = metadata.workspace_root.join(PAGE);
    let page = report.page();
    if write {
        return std::fs::write(&path, page).with_context(|| format!("{PAGE} could not be written"));
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    if found == page || report.failed() > 0 {
        return Ok(());
    }
    Err(Failure::new(format!("{PAGE} is out of date; `cargo xtask conformance --write` updates it")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{TestOutcome, Verdict, verdict_of};

    #[test]
    fn a_line_is_proved_if_every_test_passes() {
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
