//! Unified diff of one file for users, with git's headers.

use std::fmt::Write as _;

use crate::plan::{Change, ChangeKind};
use crate::unified::diff_hunks;

/// Size in bytes, of either side, above which a file is not compared line by line: such a diff is not readable.
const MAX_BYTES: usize = 4 << 20;

/// Number of leading bytes in which a zero byte makes a file binary; git uses the same number.
const BINARY_CHECK_BYTES: usize = 8_000;

/// Unchanged lines around each change.
const CONTEXT_LINES: usize = 3;

impl Change {
    /// Creates a change of one file. `None` means that the file does not exist before or after the change.
    #[must_use]
    pub fn new(
        path: impl Into<String>,
        kind: ChangeKind,
        old: Option<Vec<u8>>,
        new: Option<Vec<u8>>,
    ) -> Self {
        Self { path: path.into(), old, new, kind }
    }

    /// Renders this change in the format of [`Plan::unified_diff`](crate::Plan::unified_diff).
    #[must_use]
    pub fn unified_diff(&self) -> String {
        let names = Names::from_change(self);
        let lines = self.lines(&names).unwrap_or_else(|| {
            if self.old == self.new {
                String::new()
            } else {
                format!("Binary files {} and {} differ\n", names.from, names.to)
            }
        });
        names.header + &lines
    }

    /// Renders this change like [`Change::unified_diff`]. Returns `None` if that would not show every changed line: a
    /// side is binary (a zero byte among its first 8,000) or larger than 4 MiB.
    #[must_use]
    pub fn text_diff(&self) -> Option<String> {
        let names = Names::from_change(self);
        let lines = self.lines(&names)?;
        Some(names.header + &lines)
    }

    /// Renders the changed lines below the names of both sides. Empty if no line changes; `None` if a side cannot be
    /// shown.
    fn lines(&self, names: &Names) -> Option<String> {
        let [old, new] = [&self.old, &self.new].map(|side| side.as_deref().unwrap_or_default());
        if !is_shown(old) || !is_shown(new) {
            return None;
        }
        let hunks = diff_hunks(&String::from_utf8_lossy(old), &String::from_utf8_lossy(new), CONTEXT_LINES);
        if hunks.is_empty() {
            return Some(hunks);
        }
        Some(format!("--- {}\n+++ {}\n{hunks}", terminated(&names.from), terminated(&names.to)))
    }
}

fn is_shown(content: &[u8]) -> bool {
    content.len() <= MAX_BYTES && !content.iter().take(BINARY_CHECK_BYTES).any(|byte| *byte == 0)
}

/// Names of the two sides of a change.
struct Names {
    /// Header lines of a rename.
    header: String,
    from: String,
    to: String,
}

impl Names {
    fn from_change(change: &Change) -> Self {
        let nothing = || "/dev/null".to_owned();
        let [old, new] = ["a/", "b/"].map(|side| quoted(side, relative(&change.path)));
        match &change.kind {
            ChangeKind::Added => Self { header: String::new(), from: nothing(), to: new },
            ChangeKind::Modified => Self { header: String::new(), from: old, to: new },
            ChangeKind::Deleted => Self { header: String::new(), from: old, to: nothing() },
            ChangeKind::Renamed { from } => {
                let old = quoted("a/", relative(from));
                let header = format!(
                    "diff --git {old} {new}\nrename from {}\nrename to {}\n",
                    quoted("", relative(from)),
                    quoted("", relative(&change.path))
                );
                Self { header, from: old, to: new }
            }
        }
    }
}

/// Strips leading slashes: the prefixes `a/` and `b/` denote the roots of the two trees.
fn relative(path: &str) -> &str {
    path.trim_start_matches('/')
}

/// Writes a name as git does: quoted, with C escapes, if a character would break the line or end the quotes.
/// Non-ASCII letters are kept (`core.quotePath=false`).
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

/// Appends a tab to a name with spaces after `---` or `+++`, so that its end is unambiguous.
fn terminated(name: &str) -> String {
    let tab = if name.contains(' ') { "\t" } else { "" };
    format!("{name}{tab}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modified(path: &str, old: &[u8], new: &[u8]) -> Change {
        Change::new(path, ChangeKind::Modified, Some(old.to_vec()), Some(new.to_vec()))
    }

    /// The expected headers are those of `git -c core.quotePath=false diff --no-index`.
    #[test]
    fn names_are_quoted_as_git_quotes_them() {
        let cases = [
            ("plain", "--- a/plain\n+++ b/plain\n"),
            (" leading", "--- a/ leading\t\n+++ b/ leading\t\n"),
            ("two words", "--- a/two words\t\n+++ b/two words\t\n"),
            ("é", "--- a/é\n+++ b/é\n"),
            ("a\nb c", "--- \"a/a\\nb c\"\t\n+++ \"b/a\\nb c\"\t\n"),
            ("a\"b", "--- \"a/a\\\"b\"\n+++ \"b/a\\\"b\"\n"),
            ("a\\b", "--- \"a/a\\\\b\"\n+++ \"b/a\\\\b\"\n"),
            ("\t\r\u{1}\u{7f}", "--- \"a/\\t\\r\\001\\177\"\n+++ \"b/\\t\\r\\001\\177\"\n"),
        ];
        for (path, header) in cases {
            let diff = modified(path, b"1\n", b"2\n").unified_diff();
            assert_eq!(diff, format!("{header}@@ -1 +1 @@\n-1\n+2\n"), "{path:?}");
        }
    }

    #[test]
    fn a_name_cannot_forge_header_lines() {
        let from = "x\nrename to y".to_owned();
        let renamed = Change::new("c d", ChangeKind::Renamed { from }, Some(Vec::new()), Some(Vec::new()));
        assert_eq!(
            renamed.unified_diff(),
            "diff --git \"a/x\\nrename to y\" b/c d\nrename from \"x\\nrename to y\"\nrename to c d\n"
        );
    }

    #[test]
    fn binary_and_large_files_get_a_one_line_diff() {
        let long = vec![b'\n'; MAX_BYTES + 1];
        for (old, new) in [(&b"a\0"[..], &b"b"[..]), (b"a", b"b\0"), (&long, b"b"), (b"a", &long)] {
            let change = modified("x y", old, new);
            assert_eq!(change.unified_diff(), "Binary files a/x y and b/x y differ\n");
            assert_eq!(change.text_diff(), None);
        }
        let late = [vec![b'a'; BINARY_CHECK_BYTES], b"\0\n".to_vec()].concat();
        assert!(modified("x", &late, b"b\n").text_diff().is_some(), "git treats this as text");

        let added = Change::new("x", ChangeKind::Added, None, Some(vec![0]));
        assert_eq!(added.unified_diff(), "Binary files /dev/null and b/x differ\n");
        let content = Some(vec![0]);
        let kind = ChangeKind::Renamed { from: "x".to_owned() };
        let renamed = Change::new("y", kind, content.clone(), content);
        assert_eq!(renamed.unified_diff(), "diff --git a/x b/y\nrename from x\nrename to y\n");
    }

    #[test]
    fn a_carriage_return_does_not_end_a_line() {
        let change = modified("x", b"one\rtwo\nthree\r\nfour", b"one\rTWO\nthree\r\nfour");
        assert_eq!(
            change.unified_diff(),
            "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-one\rtwo\n+one\rTWO\n three\r\n four\n\\ No newline at end of file\n"
        );
    }
}
