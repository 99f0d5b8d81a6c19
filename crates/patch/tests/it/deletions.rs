//! Stale patches: lines were deleted from the file, or were not deleted as the patch assumes.
//!
//! The files are this crate's own sources, so the error messages are checked against real code.

#![expect(clippy::disallowed_methods, reason = "the files are sources of this crate")]

use std::fs;
use std::path::Path;

use pintle_patch::{ApplyErrorKind, Candidate, Hunk, HunkLine, Operation, Patch, UpdateFile, plan};
use pintle_test_conditions::cases;

use crate::support::{files, ours};

/// A run of lines of a source file.
struct Deletion<'a> {
    file: &'a str,
    lines: &'a [&'a str],
    start: usize,
    end: usize,
}

impl<'a> Deletion<'a> {
    /// Returns the file without the run.
    fn after(&self) -> Vec<&'a str> {
        [&self.lines[..self.start], &self.lines[self.end..]].concat()
    }

    /// Returns some lines above and below the run.
    fn around(&self, above: usize, below: usize) -> (&[&'a str], &[&'a str]) {
        let end = self.lines.len().min(self.end + below);
        (&self.lines[self.start.saturating_sub(above)..self.start], &self.lines[self.end..end])
    }

    fn run(&self) -> &[&'a str] {
        &self.lines[self.start..self.end]
    }
}

/// Starts of runs: every eleventh line, and the first ones.
const ALL: Starts = Starts { step: 11, first: 4 };

const SAMPLE: Starts = Starts { step: 88, first: 1 };

#[derive(Clone, Copy)]
struct Starts {
    step: usize,
    first: usize,
}

/// Calls `check` for runs of several lengths throughout the sources.
fn for_each_deletion(starts: Starts, mut check: impl FnMut(&Deletion<'_>)) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths: Vec<_> = fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    paths.sort();
    assert!(paths.len() > 10);
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let file = path.file_name().unwrap().to_str().unwrap();
        let lines = &lines;
        let is_start = |at: &usize| at.is_multiple_of(starts.step) || *at < starts.first;
        for length in [1, 3, 8] {
            for start in (0..lines.len().saturating_sub(length)).filter(is_start) {
                check(&Deletion { file, lines, start, end: start + length });
            }
        }
    }
}

fn context(lines: &[&str]) -> Vec<HunkLine> {
    lines.iter().map(|line| HunkLine::Context((*line).to_owned())).collect()
}

fn removed(lines: &[&str]) -> Vec<HunkLine> {
    lines.iter().map(|line| HunkLine::Remove((*line).to_owned())).collect()
}

/// Applies a hunk and returns the error, if any.
fn apply_error(lines: &[&str], hunk: Vec<HunkLine>) -> Option<ApplyErrorKind> {
    let content: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let update = UpdateFile::new("f", vec![Hunk::new(hunk)]);
    let patch = Patch::new(vec![Operation::Update(update)]);
    plan(&patch, &files([("f", &content)]), &ours()).err().map(|error| *error.kind)
}

fn is_distinctive(line: &str) -> bool {
    line.contains(char::is_alphanumeric)
}

/// Returns the false statement in the error for `old` lines that were not applied, if there is one.
fn false_statement(file: &[&str], old: &[&str], kind: &ApplyErrorKind) -> Option<String> {
    if let ApplyErrorKind::AlreadyApplied { .. } = kind {
        return Some(kind.to_string());
    }
    let ApplyErrorKind::ContextNotFound { nearest, difference, .. } = kind else { return None };
    let matches_loosely =
        |line: &&&str| is_distinctive(line) && file.iter().any(|found| found.trim() == line.trim());
    if nearest.is_empty() && old.iter().any(|line| matches_loosely(&line)) {
        return Some(format!(
            "no position, although the file has {:?}",
            old.iter().find(|line| matches_loosely(line))
        ));
    }
    if difference.is_none() && !nearest.is_empty() {
        return Some("no difference".to_owned());
    }
    let blank = |place: &&Candidate| place.text.trim().is_empty();
    nearest.iter().find(blank).map(|place| format!("line {} is blank", place.file_line))
}

fn assert_none_false(what: &str, count: usize, false_statements: &[String]) {
    assert!(count > cases(200, 1000), "{what}: {count}");
    let shown = false_statements.iter().take(8).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(false_statements.is_empty(), "{what}: {} of {count}\n{shown}", false_statements.len());
}

/// Checks the errors for one kind of patch. `make` returns a hunk and the file to apply it to.
fn check_errors(
    what: &str,
    make: impl Fn(&Deletion<'_>, usize, usize) -> Option<(Vec<String>, Vec<HunkLine>)>,
) {
    let (mut count, mut false_statements) = (0, Vec::new());
    for_each_deletion(cases(SAMPLE, ALL), |deletion| {
        for (above, below) in [(0, 0), (0, 1), (1, 0), (1, 1), (3, 3)] {
            let Some((file, hunk)) = make(deletion, above, below) else { continue };
            let file: Vec<&str> = file.iter().map(String::as_str).collect();
            let old: Vec<&str> = hunk
                .iter()
                .filter_map(|line| match line {
                    HunkLine::Context(text) | HunkLine::Remove(text) => Some(text.as_str()),
                    HunkLine::Add(_) => None,
                })
                .collect();
            let Some(kind) = apply_error(&file, hunk.clone()) else { continue };
            count += 1;
            if let Some(statement) = false_statement(&file, &old, &kind) {
                let Deletion { file, start, .. } = deletion;
                false_statements.push(format!("{file}, line {}: {statement}\n{hunk:#?}", start + 1));
            }
        }
    });
    assert_none_false(what, count, &false_statements);
}

fn to_owned_lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn a_change_beside_deleted_lines() {
    check_errors("a change beside deleted lines", |deletion, above, below| {
        let (before, after) = deletion.around(above, below + 1);
        let (changed, rest) = after.split_first()?;
        let mut hunk = context(before);
        hunk.extend(context(deletion.run()));
        hunk.extend(removed(&[changed]));
        hunk.push(HunkLine::Add("entirely new text".to_owned()));
        hunk.extend(context(rest));
        Some((to_owned_lines(&deletion.after()), hunk))
    });
}

#[test]
fn a_deletion_with_one_changed_line() {
    for changed in 0..3 {
        check_errors("a deletion with one changed line", |deletion, above, below| {
            let (before, after) = deletion.around(above, below);
            let mut run = deletion.run().to_vec();
            let line = run.get_mut(changed).filter(|line| is_distinctive(line))?;
            *line = "let this_line_is_older = 1;";
            let hunk = [context(before), removed(&run), context(after)].concat();
            Some((to_owned_lines(deletion.lines), hunk))
        });
    }
}

#[test]
fn a_deletion_of_more_lines_than_were_deleted() {
    check_errors("a deletion of more lines than were deleted", |deletion, above, below| {
        let (before, after) = deletion.around(above + 2, below);
        let split = before.len().min(2);
        let (before, more) = before.split_at(before.len() - split);
        if !more.iter().any(|line| is_distinctive(line)) {
            return None;
        }
        let hunk = [context(before), removed(more), removed(deletion.run()), context(after)].concat();
        Some((to_owned_lines(&deletion.after()), hunk))
    });
}

#[test]
fn an_applied_deletion_is_recognized() {
    let (mut count, mut recognized) = (0, 0);
    for_each_deletion(ALL, |deletion| {
        let (before, after) = deletion.around(2, 2);
        let is_clear = |lines: &[&str]| lines.len() == 2 && lines.iter().all(|line| is_distinctive(line));
        let run_is_distinctive = deletion.run().iter().any(|line| is_distinctive(line));
        if !is_clear(before) || !is_clear(after) || !run_is_distinctive {
            return;
        }
        let hunk = [context(before), removed(deletion.run()), context(after)].concat();
        count += 1;
        match apply_error(&deletion.after(), hunk) {
            Some(ApplyErrorKind::AlreadyApplied { file_line }) => {
                assert_eq!(file_line, deletion.start - 1);
                recognized += 1;
            }
            Some(kind) => eprintln!("{}, line {}: {kind}", deletion.file, deletion.start + 1),
            None => {}
        }
    });
    assert!(count > 100 && recognized * 10 > count * 9, "{recognized} of {count}");
}
