//! What a call changed in a file, for people.

use std::time::Duration;

use similar::TextDiff;

use crate::tool::{ChangeKind, FileChange};

/// Above this many bytes on either side no diff is made: nobody reads it, and it would hold up the call.
const LIMIT: usize = 4 << 20;

/// How long the search for a short diff may take, since other tasks wait meanwhile; after that a longer one is good
/// enough.
const DEADLINE: Duration = Duration::from_millis(100);

/// Unchanged lines around each change.
const CONTEXT: usize = 3;

/// The change from `old`, if there was a file, to `new`, with its unified diff where both are text.
pub(crate) fn file_change(path: &str, old: Option<&[u8]>, new: &[u8]) -> FileChange {
    let kind = if old.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
    FileChange::new(path, kind, unified(path, old, new))
}

fn unified(path: &str, old: Option<&[u8]>, new: &[u8]) -> String {
    let (before, after) = (old.unwrap_or_default(), new);
    let shows = |bytes: &[u8]| bytes.len() <= LIMIT && !bytes.contains(&0);
    if !shows(before) || !shows(after) {
        return String::new();
    }
    // The prefixes stand for the two trees, so an absolute path goes below them.
    let name = path.trim_start_matches('/');
    let from = if old.is_some() { format!("a/{name}") } else { "/dev/null".to_owned() };
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    let mut config = TextDiff::configure();
    config.timeout(DEADLINE);
    let diff = config.diff_lines(&*before, &*after);
    diff.unified_diff().context_radius(CONTEXT).header(&from, &format!("b/{name}")).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_names_both_sides_and_shows_the_lines() {
        insta::assert_snapshot!(file_change("/w/a.txt", Some(b"one\ntwo\n"), b"one\n2\n").diff, @r"
        --- a/w/a.txt
        +++ b/w/a.txt
        @@ -1,2 +1,2 @@
         one
        -two
        +2
        ");
        insta::assert_snapshot!(file_change("a.txt", None, b"one").diff, @r"
        --- /dev/null
        +++ b/a.txt
        @@ -0,0 +1 @@
        +one
        \ No newline at end of file
        ");
    }

    #[test]
    fn what_is_no_text_or_too_long_has_no_diff() {
        let long = vec![b'a'; LIMIT + 1];
        for (old, new) in [(&b"a\0"[..], &b"b"[..]), (b"a", b"b\0"), (&long, b"b"), (b"same", b"same")] {
            let change = file_change("a", Some(old), new);
            assert_eq!((change.kind, change.diff.as_str()), (ChangeKind::Modified, ""));
        }
    }
}
