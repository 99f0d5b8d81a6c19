//! Diffs of the files that a call changes.

use pintle_patch::{Change, ChangeKind as PatchKind};

use crate::tool::{ChangeKind, FileChange};

/// Returns the change from `old` to `new`, with a unified diff if both are text. `old` is `None` for a new file.
pub(crate) fn file_change(path: &str, old: Option<Vec<u8>>, new: &[u8]) -> FileChange {
    let kind = if old.is_some() { PatchKind::Modified } else { PatchKind::Added };
    patch_change(&Change::new(path, kind, old, Some(new.to_vec())))
}

/// Returns a change of a patch, with its diff if there is one.
pub(crate) fn patch_change(change: &Change) -> FileChange {
    let kind = match &change.kind {
        PatchKind::Added => ChangeKind::Added,
        PatchKind::Modified => ChangeKind::Modified,
        PatchKind::Deleted => ChangeKind::Deleted,
        PatchKind::Renamed { from } => ChangeKind::Renamed { from: from.clone() },
    };
    FileChange::new(change.path.clone(), kind, change.text_diff().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_has_both_paths_and_the_lines() {
        insta::assert_snapshot!(file_change("/w/a.txt", Some(b"one\ntwo\n".to_vec()), b"one\n2\n").diff, @r"
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
    fn binary_and_huge_files_have_no_diff() {
        let long = vec![b'a'; (4 << 20) + 1];
        for (old, new) in [(&b"a\0"[..], &b"b"[..]), (b"a", b"b\0"), (&long, b"b"), (b"same", b"same")] {
            let change = file_change("a", Some(old.to_vec()), new);
            assert_eq!((change.kind, change.diff.as_str()), (ChangeKind::Modified, ""));
        }
    }
}
