//! What becomes of one file, as a unified diff for people, with the headers of git.

use std::fmt::Write as _;
use std::time::Duration;

use similar::TextDiff;

use crate::plan::{Change, ChangeKind};

/// Above this many bytes on either side a file is not compared line by line: nobody reads it.
const MAX_BYTES: usize = 4 << 20;

/// A zero byte among so many at the beginning makes a file binary, as git sees it.
const LOOKED_AT: usize = 8_000;

/// How long the search for a short diff may take, since whoever asks may hold up others meanwhile; after that a longer
/// one is good enough.
const DEADLINE: Duration = Duration::from_millis(100);

/// Unchanged lines around each change.
const CONTEXT_LINES: usize = 3;

impl Change {
    /// A change of one file: `None` stands for no file, before or after.
    #[must_use]
    pub fn new(
        path: impl Into<String>,
        kind: ChangeKind,
        old: Option<Vec<u8>>,
        new: Option<Vec<u8>>,
    ) -> Self {
        Self { path: path.into(), old, new, kind }
    }

    /// This change alone, as in [`Plan::unified_diff`](crate::Plan::unified_diff).
    #[must_use]
    pub fn unified_diff(&self) -> String {
        let names = Names::of(self);
        let lines = self.lines(&names).unwrap_or_else(|| {
            if self.old == self.new {
                String::new()
            } else {
                format!("Binary files {} and {} differ\n", names.from, names.to)
            }
        });
        names.head + &lines
    }

    /// As [`Change::unified_diff`], and `None` where that would not show each line that changes: a side is binary,
    /// with a zero byte among its first 8,000, or has more than 4 MiB.
    #[must_use]
    pub fn text_diff(&self) -> Option<String> {
        let names = Names::of(self);
        let lines = self.lines(&names)?;
        Some(names.head + &lines)
    }

    /// The lines that change below the names of both sides; empty if none does.
    fn lines(&self, names: &Names) -> Option<String> {
        let [old, new] = [&self.old, &self.new].map(|side| side.as_deref().unwrap_or_default());
        if !is_shown(old) || !is_shown(new) {
            return None;
        }
        let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
        // As git does it: a carriage return ends no line, which the differ's own lines would have it do.
        let [old, new] = [&old, &new].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
        let lines = TextDiff::configure().timeout(DEADLINE).newline_terminated(true).diff_slices(&old, &new);
        let mut unified = lines.unified_diff();
        unified.context_radius(CONTEXT_LINES).header(&ended(&names.from), &ended(&names.to));
        Some(unified.to_string())
    }
}

fn is_shown(content: &[u8]) -> bool {
    content.len() <= MAX_BYTES && !content.iter().take(LOOKED_AT).any(|byte| *byte == 0)
}

/// What the two sides of a change are called.
struct Names {
    /// The lines that tell of a rename.
    head: String,
    from: String,
    to: String,
}

impl Names {
    fn of(change: &Change) -> Self {
        let nothing = || "/dev/null".to_owned();
        let [old, new] = ["a/", "b/"].map(|side| quoted(side, below(&change.path)));
        match &change.kind {
            ChangeKind::Added => Self { head: String::new(), from: nothing(), to: new },
            ChangeKind::Modified => Self { head: String::new(), from: old, to: new },
            ChangeKind::Deleted => Self { head: String::new(), from: old, to: nothing() },
            ChangeKind::Renamed { from } => {
                let old = quoted("a/", below(from));
                let head = format!(
                    "diff --git {old} {new}\nrename from {}\nrename to {}\n",
                    quoted("", below(from)),
                    quoted("", below(&change.path))
                );
                Self { head, from: old, to: new }
            }
        }
    }
}

/// The prefixes of a diff stand for the two trees, so an absolute path goes below them.
fn below(path: &str) -> &str {
    path.trim_start_matches('/')
}

/// A name as git writes it: in quotes, with escapes as C has them, if a character would break the line or end the
/// quotes. Letters beyond ASCII stay as they are (`core.quotePath=false`).
fn quoted(side: &str, name: &str) -> String {
    if !name.contains(|c: char| c.is_ascii_control() || matches!(c, '"' | '\\')) {
        return format!("{side}{name}");
    }
    let mut text = format!("\"{side}");
    for c in name.chars() {
        match c {
            '\u{7}' => text.push_str("\\a"),
            '\u{8}' => text.push_str("\\b"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\u{b}' => text.push_str("\\v"),
            '\u{c}' => text.push_str("\\f"),
            '\r' => text.push_str("\\r"),
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_ascii_control() => {
                let _infallible = write!(text, "\\{:03o}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

/// A name as it stands behind `---` and `+++`: a tab tells where one with blanks in it ends.
fn ended(name: &str) -> String {
    let tab = if name.contains(' ') { "\t" } else { "" };
    format!("{name}{tab}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modified(path: &str, old: &[u8], new: &[u8]) -> Change {
        Change::new(path, ChangeKind::Modified, Some(old.to_vec()), Some(new.to_vec()))
    }

    /// Each row is what `git -c core.quotePath=false diff --no-index` says of such a name.
    #[test]
    fn names_are_quoted_as_git_quotes_them() {
        let rows = [
            ("plain", "--- a/plain\n+++ b/plain\n"),
            (" leading", "--- a/ leading\t\n+++ b/ leading\t\n"),
            ("two words", "--- a/two words\t\n+++ b/two words\t\n"),
            ("é", "--- a/é\n+++ b/é\n"),
            ("a\nb c", "--- \"a/a\\nb c\"\t\n+++ \"b/a\\nb c\"\t\n"),
            ("a\"b", "--- \"a/a\\\"b\"\n+++ \"b/a\\\"b\"\n"),
            ("a\\b", "--- \"a/a\\\\b\"\n+++ \"b/a\\\\b\"\n"),
            ("\t\r\u{1}\u{7f}", "--- \"a/\\t\\r\\001\\177\"\n+++ \"b/\\t\\r\\001\\177\"\n"),
        ];
        for (path, head) in rows {
            let diff = modified(path, b"1\n", b"2\n").unified_diff();
            assert_eq!(diff, format!("{head}@@ -1 +1 @@\n-1\n+2\n"), "{path:?}");
        }
    }

    #[test]
    fn a_name_cannot_speak_of_another_file() {
        let from = "x\nrename to y".to_owned();
        let renamed = Change::new("c d", ChangeKind::Renamed { from }, Some(Vec::new()), Some(Vec::new()));
        assert_eq!(
            renamed.unified_diff(),
            "diff --git \"a/x\\nrename to y\" b/c d\nrename from \"x\\nrename to y\"\nrename to c d\n"
        );
    }

    #[test]
    fn what_is_binary_or_too_long_is_not_shown_line_by_line() {
        let long = vec![b'\n'; MAX_BYTES + 1];
        for (old, new) in [(&b"a\0"[..], &b"b"[..]), (b"a", b"b\0"), (&long, b"b"), (b"a", &long)] {
            let change = modified("x y", old, new);
            assert_eq!(change.unified_diff(), "Binary files a/x y and b/x y differ\n");
            assert_eq!(change.text_diff(), None);
        }
        let late = [vec![b'a'; LOOKED_AT], b"\0\n".to_vec()].concat();
        assert!(modified("x", &late, b"b\n").text_diff().is_some(), "as git sees it, this is text");

        let added = Change::new("x", ChangeKind::Added, None, Some(vec![0]));
        assert_eq!(added.unified_diff(), "Binary files /dev/null and b/x differ\n");
        let content = Some(vec![0]);
        let kind = ChangeKind::Renamed { from: "x".to_owned() };
        let renamed = Change::new("y", kind, content.clone(), content);
        assert_eq!(renamed.unified_diff(), "diff --git a/x b/y\nrename from x\nrename to y\n");
    }

    #[test]
    fn a_carriage_return_ends_no_line() {
        let change = modified("x", b"one\rtwo\nthree\r\nfour", b"one\rTWO\nthree\r\nfour");
        assert_eq!(
            change.unified_diff(),
            "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-one\rtwo\n+one\rTWO\n three\r\n four\n\\ No newline at end of file\n"
        );
    }
}
