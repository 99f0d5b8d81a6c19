//! The reference options against a simple model of the reference's matching.

use proptest::prelude::*;

use pintle_patch::{Hunk, HunkLine, Operation, Patch, UpdateFile, plan};

use crate::support::{files, reference};

/// Comparison key of a line at each level of the reference, as far as [`any_text`] needs it.
const KEYS: [fn(&str) -> String; 4] = [
    |line| line.to_owned(),
    |line| line.trim_end().to_owned(),
    |line| line.trim().to_owned(),
    |line| line.trim().replace('–', "-"),
];

/// Returns the first position of `run` at the strictest level at which it occurs.
fn search(lines: &[&str], run: &[&str], from: usize, at_end: bool) -> Option<usize> {
    let last = lines.len().checked_sub(run.len())?;
    let first = if at_end { from.max(last) } else { from };
    KEYS.iter().find_map(|key| {
        (first..=last).find(|start| lines[*start..].iter().zip(run).all(|(line, old)| key(line) == key(old)))
    })
}

/// A line of the result of a hunk: the old line with an index, or a new one.
#[derive(Clone, Copy)]
struct NewLine<'p> {
    old: Option<usize>,
    text: &'p str,
}

/// Returns the content after `hunks`, if the reference can place each of them.
fn model(content: &str, hunks: &[Hunk]) -> Option<String> {
    let lines: Vec<&str> = content.lines().collect();
    let mut cursor = 0;
    let mut replacements: Vec<(usize, usize, Vec<&str>)> = Vec::new();
    for hunk in hunks {
        if let Some(hint) = hunk.hints.first() {
            cursor = search(&lines, &[hint], cursor, false)? + 1;
        }
        let (mut old, mut new) = sides(hunk);
        if old.is_empty() {
            replacements.push((lines.len(), 0, new.iter().map(|line| line.text).collect()));
            continue;
        }
        let mut at = search(&lines, &old, cursor, hunk.end_of_file);
        if at.is_none() && old.len() > 1 && old.last() == Some(&"") {
            old.pop();
            new.pop_if(|line| line.text.is_empty());
            at = search(&lines, &old, cursor, hunk.end_of_file);
        }
        let at = at?;
        let kept_index = |line: &NewLine<'_>| line.old.filter(|index| *index < old.len());
        let texts = new.iter().map(|line| kept_index(line).map_or(line.text, |index| lines[at + index]));
        replacements.push((at, old.len(), texts.collect()));
        cursor = at + old.len();
    }
    replacements.sort_by_key(|(start, ..)| *start);
    let mut after = lines.clone();
    for (start, length, new) in replacements.into_iter().rev() {
        after.splice(start..start + length, new);
    }
    Some(after.iter().map(|line| format!("{line}\n")).collect())
}

fn sides(hunk: &Hunk) -> (Vec<&str>, Vec<NewLine<'_>>) {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for line in &hunk.lines {
        match line {
            HunkLine::Context(text) => {
                new.push(NewLine { old: Some(old.len()), text });
                old.push(text.as_str());
            }
            HunkLine::Remove(text) => old.push(text),
            HunkLine::Add(text) => new.push(NewLine { old: None, text }),
        }
    }
    (old, new)
}

fn any_text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", " a", "a ", "", "c-", "c–", "  b"]).prop_map(str::to_owned)
}

fn any_hunk() -> impl Strategy<Value = Hunk> {
    let line = prop_oneof![
        any_text().prop_map(HunkLine::Context),
        any_text().prop_map(HunkLine::Remove),
        any_text().prop_map(HunkLine::Add),
    ];
    let hint = prop::option::weighted(0.3, prop::sample::select(vec!["a", "b", "c-", " a"]));
    (prop::collection::vec(line, 1..4), hint, prop::bool::weighted(0.2)).prop_map(|(lines, hint, at_end)| {
        let hunk = hint.into_iter().fold(Hunk::new(lines), Hunk::with_hint);
        if at_end { hunk.with_end_of_file() } else { hunk }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn the_reference_options_agree_with_the_model(
        content in prop::collection::vec(any_text(), 0..7),
        hunks in prop::collection::vec(any_hunk(), 1..4),
    ) {
        let content: String = content.iter().map(|line| format!("{line}\n")).collect();
        let mut after = files([("f", &content)]);
        let patch = Patch::new(vec![Operation::Update(UpdateFile::new("f", hunks.clone()))]);
        let edited = plan(&patch, &after, &reference()).ok().map(|plan| {
            plan.apply_to(&mut after);
            String::from_utf8(after["f"].clone()).unwrap()
        });
        prop_assert_eq!(edited, model(&content, &hunks), "{}", patch);
    }
}
