//! Facts for tests, in few words.

use crate::anchor::AnchorFacts;
use crate::command_run::{CommandRun, End, Reference};
use crate::diff::{ChangeKind, ChangedFile, Diff};
use crate::evidence::{Baseline, CandidateFacts};
use crate::results::{TestRun, TestStatus};
use crate::task::{Found, ReviewFacts, StepKind, WorkEnd, WorkFacts};

/// Returns results in which each word is a test with a sign: `+` passed, `-` failed, `!` broken, `?` skipped.
pub(crate) fn results(words: &str) -> TestRun {
    let mut run = TestRun::default();
    for word in words.split_whitespace() {
        let status = match word.get(..1).unwrap() {
            "+" => TestStatus::Passed,
            "-" => TestStatus::Failed,
            "!" => TestStatus::Broken,
            "?" => TestStatus::Skipped,
            _ => panic!("{word}"),
        };
        run.tests.insert(word[1..].to_owned(), status);
    }
    run
}

/// Returns a run that exited with this code and has these results.
pub(crate) fn run(code: i32, words: &str) -> CommandRun {
    CommandRun::new(End::Exited(code)).with_tests(results(words))
}

/// Returns a run without results.
pub(crate) fn plain(code: i32) -> CommandRun {
    CommandRun::new(End::Exited(code))
}

pub(crate) fn added(path: &str, lines: u64) -> ChangedFile {
    ChangedFile { path: path.to_owned(), kind: ChangeKind::Added, added: lines, removed: 0 }
}

pub(crate) fn modified(path: &str, added: u64, removed: u64) -> ChangedFile {
    ChangedFile { path: path.to_owned(), kind: ChangeKind::Modified, added, removed }
}

pub(crate) fn diff(files: impl IntoIterator<Item = ChangedFile>) -> Diff {
    Diff { patch: Reference { hash: "00".to_owned(), bytes: 1 }, files: files.into_iter().collect() }
}

pub(crate) fn baseline() -> Found {
    Found::Baseline(Baseline { checks: [("tests".to_owned(), vec![plain(0)])].into(), remarks: Vec::new() })
}

pub(crate) fn anchor(code: i32) -> Found {
    Found::Anchor(Box::new(AnchorFacts {
        command: "make anchor".to_owned(),
        results: None,
        report: None,
        session: None,
        patch: None,
        control: None,
        files: vec![added("tests/test_new.py", 3)],
        runs: vec![run(code, "-new"), run(code, "-new"), run(code, "-new")],
        failing_before: Default::default(),
    }))
}

pub(crate) fn worked(end: WorkEnd) -> Found {
    Found::Work(WorkFacts { session: "s".to_owned(), end, diff: None, unfit: None })
}

/// Evidence of a diff with so many lines whose check exits with this code.
pub(crate) fn evidence(lines: u64, code: i32) -> Found {
    Found::Evidence(Box::new(CandidateFacts {
        diff: diff([modified("src/sums.py", lines, 0)]),
        not_applied: None,
        protected: vec![],
        secrets: vec![],
        control: None,
        anchor: vec![run(0, "+new")],
        checks: [("tests".to_owned(), vec![plain(code)])].into(),
    }))
}

pub(crate) fn review(findings: &[&str]) -> Found {
    let findings = findings.iter().map(|finding| (*finding).to_owned()).collect();
    Found::Review(ReviewFacts { session: "r".to_owned(), findings, remarks: String::new() })
}

/// Returns what leads to the goal at once.
pub(crate) fn found_right(kind: StepKind) -> Found {
    match kind {
        StepKind::Baseline => baseline(),
        StepKind::Anchor => anchor(1),
        StepKind::Work => worked(WorkEnd::Finished),
        StepKind::Evidence => evidence(3, 0),
        StepKind::Review => review(&[]),
    }
}

/// Returns evidence against an attempt.
pub(crate) fn found_wrong() -> Found {
    evidence(3, 1)
}
