//! Recorded facts for tests, in few words.

use crate::command_run::{BlobReference, CommandEnd, CommandRun};
use crate::diff::{ChangeKind, ChangedFile, Diff};
use crate::results::{TestRun, TestStatus};

/// Signs of tests in [`results`].
const SIGNS: [(char, TestStatus); 4] = [
    ('+', TestStatus::Passed),
    ('-', TestStatus::Failed),
    ('!', TestStatus::Broken),
    ('?', TestStatus::Skipped),
];

/// Returns results in which each word is a test with a sign: `+` passed, `-` failed, `!` broken, `?` skipped. Words without a
/// sign are problems.
#[must_use]
pub fn results(words: &str) -> TestRun {
    let mut run = TestRun::default();
    for word in words.split_whitespace() {
        let test = SIGNS.iter().find_map(|(sign, status)| Some((word.strip_prefix(*sign)?, *status)));
        match test {
            Some((name, status)) => drop(run.tests.insert(name.to_owned(), status)),
            None => run.problems.push(format!("`{word}` has no sign")),
        }
    }
    run
}

/// Returns a run that exited with this code and has these results.
#[must_use]
pub fn run(code: i32, words: &str) -> CommandRun {
    plain(code).with_tests(results(words))
}

/// Returns a run without results.
#[must_use]
pub fn plain(code: i32) -> CommandRun {
    CommandRun::new(CommandEnd::Exited(code))
}

/// Returns a new file with this number of lines.
#[must_use]
pub fn added(path: &str, lines: u64) -> ChangedFile {
    ChangedFile { path: path.to_owned(), kind: ChangeKind::Added, added: lines, removed: 0 }
}

/// Returns a changed file with these numbers of added and removed lines.
#[must_use]
pub fn modified(path: &str, added: u64, removed: u64) -> ChangedFile {
    ChangedFile { path: path.to_owned(), kind: ChangeKind::Modified, added, removed }
}

/// Returns a diff of these files, whose patch is not stored.
#[must_use]
pub fn diff(files: impl IntoIterator<Item = ChangedFile>) -> Diff {
    Diff {
        patch: BlobReference { hash: "00".to_owned(), bytes: 1 },
        files: files.into_iter().collect(),
        dropped: Vec::new(),
    }
}
