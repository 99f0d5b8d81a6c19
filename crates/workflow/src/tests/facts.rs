//! Facts for tests, in few words.

use crate::command_run::{BlobReference, CommandEnd, CommandRun};
use crate::diff::{ChangeKind, ChangedFile, Diff};
use crate::results::{TestRun, TestStatus};
pub(crate) use crate::testing::{
    anchor, baseline, evidence, failing_output, review, successful_output, worked,
};

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
    CommandRun::new(CommandEnd::Exited(code)).with_tests(results(words))
}

/// Returns a run without results.
pub(crate) fn plain(code: i32) -> CommandRun {
    CommandRun::new(CommandEnd::Exited(code))
}

pub(crate) fn added(path: &str, lines: u64) -> ChangedFile {
    ChangedFile { path: path.to_owned(), kind: ChangeKind::Added, added: lines, removed: 0 }
}

pub(crate) fn modified(path: &str, added: u64, removed: u64) -> ChangedFile {
    ChangedFile { path: path.to_owned(), kind: ChangeKind::Modified, added, removed }
}

pub(crate) fn diff(files: impl IntoIterator<Item = ChangedFile>) -> Diff {
    Diff {
        patch: BlobReference { hash: "00".to_owned(), bytes: 1 },
        files: files.into_iter().collect(),
        dropped: Vec::new(),
    }
}
