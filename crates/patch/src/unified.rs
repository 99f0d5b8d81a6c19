//! Hunks of a unified diff.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, DiffTag, group_diff_ops};

/// Time limit of the search for a minimal diff, since the caller may block other work meanwhile. After that, a longer
/// diff is accepted.
const DEADLINE: Duration = Duration::from_millis(100);

/// Renders the differing lines as hunks of a unified diff, each with up to `context` unchanged lines before and after a
/// change. Empty if no line differs.
///
/// Lines end with a line feed: as in git, a carriage return does not end one. The search for the shortest diff ends
/// after 100 ms, and a longer diff is returned.
///
/// ```
/// let hunks = pintle_patch::diff_hunks("one\ntwo\nthree\n", "one\n2\nthree\n", 1);
/// assert_eq!(hunks, "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
/// ```
#[must_use]
pub fn diff_hunks(old: &str, new: &str, context: usize) -> String {
    let [old, new] = [old, new].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let mut hunks = String::new();
    let deadline = Instant::now() + DEADLINE;
    for operations in group_diff_ops(operations(&old, &new, Some(deadline)), context) {
        write_hunk(&mut hunks, &operations, &old, &new);
    }
    hunks
}

/// Part of a comparison of two sequences: equal items, or items of the old sequence that items of the new one replace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffPart {
    /// The items of the old sequence.
    pub old: Range<usize>,
    /// The items of the new sequence.
    pub new: Range<usize>,
    /// Whether the items are equal.
    pub is_equal: bool,
}

/// Compares two sequences, such as the words of two lines. The parts cover both sequences in their order.
///
/// There is no time limit: in the worst case the search takes quadratic time.
///
/// ```
/// let parts = pintle_patch::diff_parts(&["a", " ", "b"], &["a", " ", "c"]);
/// assert!(parts[0].is_equal && parts[0].old == (0..2));
/// assert!(!parts[1].is_equal && parts[1].old == (2..3) && parts[1].new == (2..3));
/// ```
#[must_use]
pub fn diff_parts(old: &[&str], new: &[&str]) -> Vec<DiffPart> {
    let part = |operation: &DiffOp| DiffPart {
        old: operation.old_range(),
        new: operation.new_range(),
        is_equal: operation.tag() == DiffTag::Equal,
    };
    operations(old, new, None).iter().map(part).collect()
}

/// Returns the operations that turn `old` into `new`. After the deadline a longer list is accepted.
fn operations(old: &[&str], new: &[&str], deadline: Option<Instant>) -> Vec<DiffOp> {
    let mut ids = HashMap::new();
    let (old, new) = (number(&mut ids, old), number(&mut ids, new));
    let (old, new) = (old.as_slice(), new.as_slice());
    // One algorithm by name: a choice at run time would compile all of them, half of the machine code of this crate.
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()) = myers::diff_deadline(&mut hook, old, 0..old.len(), new, 0..new.len(), deadline);
    hook.into_inner().into_inner().into_ops()
}

/// Numbers lines: equal lines have the same number.
fn number<'t>(ids: &mut HashMap<&'t str, usize>, lines: &[&'t str]) -> Vec<usize> {
    let id = |line: &&'t str| {
        let next = ids.len();
        *ids.entry(*line).or_insert(next)
    };
    lines.iter().map(id).collect()
}

/// Writes a hunk, unless it contains no change.
fn write_hunk(out: &mut String, operations: &[DiffOp], old: &[&str], new: &[&str]) {
    let (Some(first), Some(last)) = (operations.first(), operations.last()) else { return };
    if operations.iter().all(|operation| operation.tag() == DiffTag::Equal) {
        return;
    }
    let old_range = first.old_range().start..last.old_range().end;
    let new_range = first.new_range().start..last.new_range().end;
    let _infallible = writeln!(out, "@@ -{} +{} @@", position(&old_range), position(&new_range));
    for operation in operations {
        let (removed, added) = (operation.old_range(), operation.new_range());
        if operation.tag() == DiffTag::Equal {
            write_lines(out, ' ', old.get(removed));
        } else {
            write_lines(out, '-', old.get(removed));
            write_lines(out, '+', new.get(added));
        }
    }
}

/// Formats a range of lines: the first from 1 and the number, or the preceding line for an empty range.
fn position(range: &Range<usize>) -> String {
    match range.len() {
        1 => format!("{}", range.end),
        0 => format!("{},0", range.start),
        lines => format!("{},{lines}", range.start + 1),
    }
}

fn write_lines(out: &mut String, sign: char, lines: Option<&[&str]>) {
    for line in lines.unwrap_or_default() {
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hunks_have_the_form_of_diff() {
        let cases = [
            ("same\n", "same\n", ""),
            ("", "a\n", "@@ -0,0 +1 @@\n+a\n"),
            ("a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"),
            ("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
            ("1\n2\n3\n4\n5\n", "1\nb\n3\n4\ne\n", "@@ -1,5 +1,5 @@\n 1\n-2\n+b\n 3\n 4\n-5\n+e\n"),
            (
                "1\n2\n3\n4\n5\n6\n7\n",
                "a\n2\n3\n4\n5\n6\ng\n",
                "@@ -1,2 +1,2 @@\n-1\n+a\n 2\n@@ -6,2 +6,2 @@\n 6\n-7\n+g\n",
            ),
        ];
        for (old, new, expected) in cases {
            assert_eq!(diff_hunks(old, new, 1), expected, "{old:?} to {new:?}");
        }
    }

    proptest! {
        #[test]
        fn parts_cover_both_sequences(old in "[ab ]{0,12}", new in "[ab ]{0,12}") {
            let [old, new] = [&old, &new].map(|text| text.split_inclusive(' ').collect::<Vec<_>>());
            let parts = diff_parts(&old, &new);
            let (mut old_end, mut new_end) = (0, 0);
            for part in &parts {
                prop_assert_eq!((part.old.start, part.new.start), (old_end, new_end));
                prop_assert_eq!(part.is_equal, old[part.old.clone()] == new[part.new.clone()]);
                (old_end, new_end) = (part.old.end, part.new.end);
            }
            prop_assert_eq!((old_end, new_end), (old.len(), new.len()));
            let whole = similar::capture_diff_slices(similar::Algorithm::Myers, &old, &new);
            let of_library = |operation: &DiffOp| (operation.old_range(), operation.new_range());
            prop_assert_eq!(
                parts.into_iter().map(|part| (part.old, part.new)).collect::<Vec<_>>(),
                whole.iter().map(of_library).collect::<Vec<_>>()
            );
        }

        #[test]
        fn hunks_are_those_of_the_whole_library(old in "([abc]\n){0,12}[abc]?", new in "([abc]\n){0,12}[abc]?") {
            let [old_lines, new_lines] =
                [&old, &new].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
            let whole = similar::TextDiff::configure().newline_terminated(true).diff_slices(&old_lines, &new_lines);
            prop_assert_eq!(diff_hunks(&old, &new, 2), whole.unified_diff().context_radius(2).to_string());
        }
    }
}
