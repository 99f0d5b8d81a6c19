//! Outdated edits, of files from which lines were or were not deleted.
//!
//! The files are this tool's own sources: a message that is wrong for them is wrong for real code.

use pintle_test_conditions::cases;

use super::{edited, once};

const SOURCES: [&str; 3] =
    [include_str!("../replace.rs"), include_str!("../whitespace.rs"), include_str!("../../edit_file.rs")];

/// Calls `check` with the lines of a source and the bounds of a range of lines.
fn for_each_run(mut check: impl FnMut(&[&str], usize, usize)) {
    for source in SOURCES {
        let lines: Vec<&str> = source.lines().collect();
        for length in [1, 2, 5] {
            for start in (0..lines.len() - length).step_by(cases(15, 3)) {
                check(&lines, start, start + length);
            }
        }
    }
}

fn joined(parts: &[&[&str]]) -> String {
    parts.concat().iter().map(|line| format!("{line}\n")).collect()
}

fn is_distinctive(line: &str) -> bool {
    line.contains(char::is_alphanumeric)
}

/// Returns the message for an edit that neither applies nor was applied, if it is wrong.
fn false_statement(file: &str, old: &str, new: &str) -> Option<String> {
    let message = edited(file.as_bytes(), &once(old, new)).err()?;
    // The other lines quote the sources, which contain these words.
    let claim = message.lines().next().unwrap_or_default();
    let has = |line: &str| is_distinctive(line) && file.lines().any(|found| found == line);
    let has_blank_candidate =
        message.lines().any(|line| line.starts_with("  line ") && line.ends_with(": ``"));
    let is_false = claim.contains("already")
        || claim.contains("right file") && old.lines().any(has)
        || message.contains("\nnearest places") && !message.contains("\nfirst difference")
        || has_blank_candidate;
    is_false.then(|| format!("{message}\n--- old\n{old}--- new\n{new}"))
}

fn assert_none(count: usize, false_statements: &[String]) {
    assert!(count > cases(150, 300), "{count}");
    let shown = false_statements.iter().take(5).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(false_statements.is_empty(), "{} of {count}\n{shown}", false_statements.len());
}

#[test]
fn deleting_a_changed_line_is_not_called_applied() {
    let (mut count, mut false_statements) = (0, Vec::new());
    for_each_run(|lines, start, end| {
        if !is_distinctive(lines[start]) {
            return;
        }
        let run = [&["let this_line_is_older = 1;"], &lines[start + 1..end]].concat();
        for (above, below) in [(1, 0), (0, 1), (1, 1), (3, 3)] {
            let before = &lines[start.saturating_sub(above)..start];
            let after = &lines[end..lines.len().min(end + below)];
            count += 1;
            let (old, new) = (joined(&[before, &run, after]), joined(&[before, after]));
            false_statements.extend(false_statement(&joined(&[lines]), &old, &new));
        }
    });
    assert_none(count, &false_statements);
}

#[test]
fn deleting_more_lines_is_not_called_applied() {
    let (mut count, mut false_statements) = (0, Vec::new());
    for_each_run(|lines, start, end| {
        let more = &lines[start.saturating_sub(2)..start];
        if !more.iter().any(|line| is_distinctive(line)) {
            return;
        }
        for (above, below) in [(1, 0), (0, 1), (1, 1), (3, 3)] {
            let before = &lines[start.saturating_sub(2 + above)..start.saturating_sub(2)];
            let after = &lines[end..lines.len().min(end + below)];
            count += 1;
            let old = joined(&[before, more, &lines[start..end], after]);
            let file = joined(&[&lines[..start], &lines[end..]]);
            false_statements.extend(false_statement(&file, &old, &joined(&[before, after])));
        }
    });
    assert_none(count, &false_statements);
}

#[test]
fn a_change_beside_deleted_lines_shows_the_rest() {
    let (mut count, mut false_statements) = (0, Vec::new());
    for_each_run(|lines, start, end| {
        for above in [0, 2] {
            let kept = [&lines[start.saturating_sub(above)..start], &lines[start..end]].concat();
            count += 1;
            let (old, new) = (joined(&[&kept, &lines[end..=end]]), joined(&[&kept, &["entirely new text"]]));
            let file = joined(&[&lines[..start], &lines[end..]]);
            false_statements.extend(false_statement(&file, &old, &new));
        }
    });
    assert_none(count, &false_statements);
}
