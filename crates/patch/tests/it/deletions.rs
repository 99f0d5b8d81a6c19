//! Patches that are out of date because lines were deleted from the file, or were not.
//!
//! The deletions are made in this crate's own sources: a message that is wrong for them is wrong for real work.

#![expect(clippy::disallowed_methods, reason = "the files are sources of this crate")]

use std::fs;
use std::path::Path;

use pintle_patch::{ApplyErrorKind, Candidate, Hunk, HunkLine, Operation, Patch, UpdateFile, plan};

use crate::support::{files, ours};

/// A run of lines of a source file.
struct Deletion<'a> {
    file: &'a str,
    lines: &'a [&'a str],
    start: usize,
    end: usize,
}

impl<'a> Deletion<'a> {
    /// The file without the run.
    fn after(&self) -> Vec<&'a str> {
        [&self.lines[..self.start], &self.lines[self.end..]].concat()
    }

    /// Some lines above and below the run.
    fn around(&self, above: usize, below: usize) -> (&[&'a str], &[&'a str]) {
        let end = self.lines.len().min(self.end + below);
        (&self.lines[self.start.saturating_sub(above)..self.start], &self.lines[self.end..end])
    }

    fn run(&self) -> &[&'a str] {
        &self.lines[self.start..self.end]
    }
}

/// Calls `check` for runs of several lengths all over the sources.
fn for_each_deletion(mut check: impl FnMut(&Deletion<'_>)) {
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
        for length in [1, 3, 8] {
            for start in (0..lines.len().saturating_sub(length)).filter(|at| at % 11 == 0 || *at < 4) {
                check(&Deletion { file, lines, start, end: start + length });
            }
        }
    }
}

fn kept(lines: &[&str]) -> Vec<HunkLine> {
    lines.iter().map(|line| HunkLine::Context((*line).to_owned())).collect()
}

fn removed(lines: &[&str]) -> Vec<HunkLine> {
    lines.iter().map(|line| HunkLine::Remove((*line).to_owned())).collect()
}

/// Why a hunk does not fit, if it does not.
fn refused(lines: &[&str], hunk: Vec<HunkLine>) -> Option<ApplyErrorKind> {
    let content: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let update = UpdateFile::new("f", vec![Hunk::new(hunk)]);
    let patch = Patch::new(vec![Operation::Update(update)]);
    plan(&patch, &files([("f", &content)]), &ours()).err().map(|error| *error.kind)
}

fn is_telling(line: &str) -> bool {
    line.contains(char::is_alphanumeric)
}

/// What is wrong with a refusal of `old` lines that were not applied.
fn falsehood(file: &[&str], old: &[&str], kind: &ApplyErrorKind) -> Option<String> {
    if let ApplyErrorKind::AlreadyApplied { .. } = kind {
        return Some(kind.to_string());
    }
    let ApplyErrorKind::ContextNotFound { nearest, difference, .. } = kind else { return None };
    let is_like = |line: &&&str| is_telling(line) && file.iter().any(|found| found.trim() == line.trim());
    if nearest.is_empty() && old.iter().any(|line| is_like(&line)) {
        return Some(format!("no place, although the file has {:?}", old.iter().find(|line| is_like(line))));
    }
    if difference.is_none() && !nearest.is_empty() {
        return Some("no difference".to_owned());
    }
    let blank = |place: &&Candidate| place.text.trim().is_empty();
    nearest.iter().find(blank).map(|place| format!("line {} is blank", place.file_line))
}

fn report(what: &str, count: usize, falsehoods: &[String]) {
    assert!(count > 1000, "{what}: {count}");
    let shown = falsehoods.iter().take(8).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(falsehoods.is_empty(), "{what}: {} of {count}\n{shown}", falsehoods.len());
}

/// Checks the refusals of one kind of patch, which `make` returns with the file it is for.
fn check(what: &str, make: impl Fn(&Deletion<'_>, usize, usize) -> Option<(Vec<String>, Vec<HunkLine>)>) {
    let (mut count, mut falsehoods) = (0, Vec::new());
    for_each_deletion(|deletion| {
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
            let Some(kind) = refused(&file, hunk.clone()) else { continue };
            count += 1;
            if let Some(falsehood) = falsehood(&file, &old, &kind) {
                let Deletion { file, start, .. } = deletion;
                falsehoods.push(format!("{file}, line {}: {falsehood}\n{hunk:#?}", start + 1));
            }
        }
    });
    report(what, count, &falsehoods);
}

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn a_change_beside_deleted_lines() {
    check("a change beside deleted lines", |deletion, above, below| {
        let (before, after) = deletion.around(above, below + 1);
        let (changed, rest) = after.split_first()?;
        let mut hunk = kept(before);
        hunk.extend(kept(deletion.run()));
        hunk.extend(removed(&[changed]));
        hunk.push(HunkLine::Add("entirely new text".to_owned()));
        hunk.extend(kept(rest));
        Some((owned(&deletion.after()), hunk))
    });
}

#[test]
fn a_deletion_of_lines_of_which_one_has_changed() {
    for changed in 0..3 {
        check("a deletion of lines of which one has changed", |deletion, above, below| {
            let (before, after) = deletion.around(above, below);
            let mut run = deletion.run().to_vec();
            let line = run.get_mut(changed).filter(|line| is_telling(line))?;
            *line = "let this_line_is_older = 1;";
            let hunk = [kept(before), removed(&run), kept(after)].concat();
            Some((owned(deletion.lines), hunk))
        });
    }
}

#[test]
fn a_deletion_of_more_lines_than_were_deleted() {
    check("a deletion of more lines than were deleted", |deletion, above, below| {
        let (before, after) = deletion.around(above + 2, below);
        let split = before.len().min(2);
        let (before, more) = before.split_at(before.len() - split);
        if !more.iter().any(|line| is_telling(line)) {
            return None;
        }
        let hunk = [kept(before), removed(more), removed(deletion.run()), kept(after)].concat();
        Some((owned(&deletion.after()), hunk))
    });
}

#[test]
fn a_deletion_that_was_made_is_recognised() {
    let (mut count, mut recognised) = (0, 0);
    for_each_deletion(|deletion| {
        let (before, after) = deletion.around(2, 2);
        let is_clear = |lines: &[&str]| lines.len() == 2 && lines.iter().all(|line| is_telling(line));
        let run_is_told = deletion.run().iter().any(|line| is_telling(line));
        if !is_clear(before) || !is_clear(after) || !run_is_told {
            return;
        }
        let hunk = [kept(before), removed(deletion.run()), kept(after)].concat();
        count += 1;
        match refused(&deletion.after(), hunk) {
            Some(ApplyErrorKind::AlreadyApplied { file_line }) => {
                assert_eq!(file_line, deletion.start - 1);
                recognised += 1;
            }
            Some(kind) => eprintln!("{}, line {}: {kind}", deletion.file, deletion.start + 1),
            None => {}
        }
    });
    assert!(count > 100 && recognised * 10 > count * 9, "{recognised} of {count}");
}
