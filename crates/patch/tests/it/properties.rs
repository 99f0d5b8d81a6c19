//! Properties of planning over generated files.

use proptest::prelude::*;
use similar::{ChangeTag, TextDiff};

use pintle_patch::{Hunk, HunkLine, Operation, Patch, UpdateFile, parse, plan};

use crate::support::{Files, ours, reference};

/// A line and its end.
type Line = (String, &'static str);

/// Edit of one line. Between any two edited lines at least one is kept.
#[derive(Debug, Clone)]
enum Edit {
    Keep,
    Remove,
    Replace(String),
    AddAfter(String),
}

fn any_line() -> impl Strategy<Value = Line> {
    (
        prop_oneof!["[a-c]{1,2}", Just(String::new()), Just("  x–é".to_owned())],
        prop::sample::select(vec!["\n", "\r\n", "\r"]),
    )
}

/// Text after `\r` must not start with `\n`, since the two would form one line end.
fn any_file() -> impl Strategy<Value = Vec<Line>> {
    prop::collection::vec(any_line(), 1..24).prop_map(|mut lines| {
        for at in 1..lines.len() {
            if lines[at - 1].1 == "\r" && lines[at].0.is_empty() && lines[at].1 == "\n" {
                lines[at].0.push('n');
            }
        }
        lines
    })
}

fn any_edits() -> impl Strategy<Value = Vec<Edit>> {
    // New texts are never empty, so that line ends do not merge.
    let change = prop_oneof![
        4 => Just(Edit::Keep),
        1 => Just(Edit::Remove),
        1 => "[a-d]{1,3}".prop_map(Edit::Replace),
        1 => "[a-d]{1,3}".prop_map(Edit::AddAfter),
    ];
    prop::collection::vec(change, 24).prop_map(|mut edits| {
        for at in (1..edits.len()).step_by(2) {
            edits[at] = Edit::Keep;
        }
        // `apply` keeps the last line, and with it a missing final newline.
        edits
    })
}

/// Returns the hunk lines and the new file that the edits stand for, without any search.
fn apply(lines: &[Line], edits: &[Edit]) -> (Vec<HunkLine>, Vec<Line>) {
    let (mut hunk, mut after) = (Vec::new(), Vec::new());
    for (at, (line, edit)) in lines.iter().zip(edits).enumerate() {
        let (text, end) = line.clone();
        let edit = if at + 1 == lines.len() { &Edit::Keep } else { edit };
        match edit {
            Edit::Keep => {
                hunk.push(HunkLine::Context(text.clone()));
                after.push((text, end));
            }
            Edit::Remove => hunk.push(HunkLine::Remove(text)),
            Edit::Replace(new) => {
                hunk.push(HunkLine::Remove(text));
                hunk.push(HunkLine::Add(new.clone()));
                after.push((new.clone(), end));
            }
            Edit::AddAfter(new) => {
                hunk.push(HunkLine::Context(text.clone()));
                hunk.push(HunkLine::Add(new.clone()));
                after.push((text, end));
                after.push((new.clone(), end));
            }
        }
    }
    (hunk, after)
}

fn joined(lines: &[Line], final_newline: bool, mark: bool) -> Vec<u8> {
    let mut bytes = if mark { "\u{FEFF}".as_bytes().to_vec() } else { Vec::new() };
    for (at, (text, end)) in lines.iter().enumerate() {
        bytes.extend_from_slice(text.as_bytes());
        if final_newline || at + 1 < lines.len() {
            bytes.extend_from_slice(end.as_bytes());
        }
    }
    bytes
}

fn file(content: Vec<u8>) -> Files {
    [("f".to_owned(), content)].into()
}

/// Returns a patch between two files, with the whole file as context so that it is unambiguous.
fn diff(old: &str, new: &str) -> Patch {
    let lines = TextDiff::from_lines(old, new);
    let lines = lines.iter_all_changes().map(|change| {
        let text = change.value().trim_end_matches(['\r', '\n']).to_owned();
        match change.tag() {
            ChangeTag::Equal => HunkLine::Context(text),
            ChangeTag::Delete => HunkLine::Remove(text),
            ChangeTag::Insert => HunkLine::Add(text),
        }
    });
    let hunk = Hunk::new(lines.collect());
    Patch::new(vec![Operation::Update(UpdateFile::new("f", vec![hunk]))])
}

proptest! {
    #[test]
    fn an_edit_applies_byte_for_byte(
        lines in any_file(),
        edits in any_edits(),
        final_newline in any::<bool>(),
        mark in any::<bool>(),
    ) {
        let last_is_empty = lines.last().is_some_and(|(text, _)| text.is_empty());
        let final_newline = final_newline || last_is_empty;
        let (hunk, after) = apply(&lines, &edits);
        let before = file(joined(&lines, final_newline, mark));
        let expected = file(joined(&after, final_newline, mark));
        let section = UpdateFile::new("f", vec![Hunk::new(hunk)]);
        let patch = Patch::new(vec![Operation::Update(section)]);
        // The rendered text must be the same patch.
        let read = parse(&patch.to_string()).unwrap();
        let plan = plan(&read, &before, &ours()).unwrap();
        let mut found = before.clone();
        plan.apply_to(&mut found);
        prop_assert_eq!(&found, &expected);
        plan.inverse().apply_to(&mut found);
        prop_assert_eq!(found, before);
    }

    #[test]
    fn a_diff_turns_the_old_file_into_the_new_one(
        old in prop::collection::vec("[a-c]{0,2}", 0..20),
        new in prop::collection::vec("[a-c]{0,2}", 0..20),
        end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        let join = |lines: &[String]| -> String { lines.iter().map(|line| format!("{line}{end}")).collect() };
        let (old, new) = (join(&old), join(&new));
        // An empty file has no line end for new lines to take.
        prop_assume!(!old.is_empty() || end == "\n");
        for options in [ours(), reference()] {
            let before = file(old.clone().into_bytes());
            let plan = plan(&diff(&old, &new), &before, &options).unwrap();
            let mut found = before.clone();
            plan.apply_to(&mut found);
            prop_assert_eq!(&found, &file(new.clone().into_bytes()));
            plan.inverse().apply_to(&mut found);
            prop_assert_eq!(found, before);
        }
    }

    #[test]
    fn small_hunks_in_any_order_equal_one_large_hunk(
        lines in prop::collection::hash_set("[a-z]{4}", 8..40),
        order in any::<u64>(),
    ) {
        let lines: Vec<String> = lines.into_iter().collect();
        let content: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let mut changed: Vec<usize> = (1..lines.len()).step_by(3).collect();
        let expected: String = (0..lines.len())
            .map(|at| if changed.contains(&at) { format!("{}!\n", lines[at]) } else { format!("{}\n", lines[at]) })
            .collect();
        changed.sort_by_key(|at| (*at as u64 + 1).wrapping_mul(order | 1));
        let hunks = changed.iter().map(|at| Hunk::new(vec![
            HunkLine::Context(lines[at - 1].clone()),
            HunkLine::Remove(lines[*at].clone()),
            HunkLine::Add(format!("{}!", lines[*at])),
        ]));
        let patch = Patch::new(vec![Operation::Update(UpdateFile::new("f", hunks.collect()))]);
        let mut found = file(content.into_bytes());
        plan(&patch, &found, &ours()).unwrap().apply_to(&mut found);
        prop_assert_eq!(found, file(expected.into_bytes()));
    }

    #[test]
    fn no_file_and_no_hunk_panics(
        content in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'a'), Just(b' '), any::<u8>()], 0..40),
        lines in prop::collection::vec(("[ +-]", "[a \r]{0,3}"), 1..8),
        hint in "[a ]{0,2}",
        pinned in any::<bool>(),
    ) {
        let lines: String = lines.into_iter().map(|(prefix, text)| format!("{prefix}{text}\n")).collect();
        let pin = if pinned { "*** End of File\n" } else { "" };
        let text = format!("*** Begin Patch\n*** Update File: f\n@@ {hint}\n{lines}{pin}@@\n+b\n*** End Patch\n");
        let before = file(content);
        for options in [ours(), reference()] {
            if let Ok(plan) = plan(&parse(&text).unwrap(), &before, &options) {
                let mut found = before.clone();
                plan.apply_to(&mut found);
                plan.inverse().apply_to(&mut found);
                prop_assert_eq!(&found, &before);
            }
        }
    }
}
