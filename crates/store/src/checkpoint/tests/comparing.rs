//! Comparing checkpoints and rendering the difference.

use std::path::Path;

use super::workspace::{Workspace, path};
use crate::checkpoint::*;

#[test]
fn kinds_of_change_have_their_names_in_json() {
    let names = ["added", "removed", "modified", "mode_changed", "type_changed", "retargeted"];
    assert_eq!(serde_json::to_value(ChangeKind::ALL).unwrap(), serde_json::json!(names));
}

#[tokio::test]
async fn every_kind_of_change_is_found() {
    let workspace = Workspace::with(&[
        "same = 1",
        "removed = 1",
        "modified = 1",
        "mode = 1",
        "file-to-link = 1",
        "file-to-directory = 1",
        "directory-to-file/in = 1",
        "link -> a",
        "same-link -> a",
    ]);
    let before = workspace.take(None).await.manifest;
    assert_eq!(before.compare(&before), Comparison::default());
    workspace.apply(&[
        "- removed",
        "added/in = 1",
        "modified = 2",
        "mode : 755",
        "file-to-link -> same",
        "file-to-directory/in = 1",
        "directory-to-file = 1",
        "link -> b",
    ]);
    let after = workspace.take(None).await.manifest;
    let comparison = before.compare(&after);
    let changes: Vec<_> = comparison
        .changes
        .iter()
        .map(|change| format!("{:?} {}", change.kind, change.path.display()))
        .collect();
    assert_eq!(
        changes,
        [
            "Added added",
            "Added added/in",
            "TypeChanged directory-to-file",
            "Removed directory-to-file/in",
            "TypeChanged file-to-directory",
            "Added file-to-directory/in",
            "TypeChanged file-to-link",
            "Retargeted link",
            "ModeChanged mode",
            "Modified modified",
            "Removed removed",
        ]
    );
    assert_eq!(after.compare(&before).changes.len(), changes.len());
}

/// Writes hunks as a unified diff has them.
fn hunks_of(diffs: &FileDiffs) -> Vec<String> {
    let mut lines = Vec::new();
    for hunk in diffs.files.iter().flat_map(|file| &file.hunks) {
        let count = |has: fn(&DiffLine) -> bool| hunk.lines.iter().filter(|line| has(line)).count();
        let range = |start: usize, count: usize| match count {
            1 => start.to_string(),
            _ => format!("{start},{count}"),
        };
        let old = range(hunk.old_start, count(|line| !matches!(line, DiffLine::Added(_))));
        let new = range(hunk.new_start, count(|line| !matches!(line, DiffLine::Removed(_))));
        lines.push(format!("@@ -{old} +{new} @@"));
        lines.extend(hunk.lines.iter().map(|line| match line {
            DiffLine::Context(text) => format!(" {text}"),
            DiffLine::Removed(text) => format!("-{text}"),
            DiffLine::Added(text) => format!("+{text}"),
        }));
    }
    lines
}

#[tokio::test]
async fn diff_is_one_that_git_applies() {
    let workspace = Workspace::with(&[
        "a.txt = one\ntwo\nthree\n",
        "binary = x\0y",
        "gone = last words",
        "mode = 1\n",
        "link -> a",
        "file-to-link = 1\n",
    ]);
    let before = workspace.take(None).await.manifest;
    workspace.apply(&[
        "a.txt = one\n2\nthree\n",
        "binary = x\0z",
        "- gone",
        "new/empty = ",
        "new/file = text\n",
        "mode : 755",
        "link -> b",
        "file-to-link -> x",
    ]);
    workspace.write(&path(b"odd \xff\n\""), b"x\n");
    let after = workspace.take(None).await.manifest;
    let comparison = before.compare(&after);
    let limits = DiffLimits::default();
    let diff = unified_diff(&comparison, &workspace.blobs, &workspace.blobs, &limits).await.unwrap();
    assert_eq!(
        diff.text,
        "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n\
         diff --git a/binary b/binary\nBinary files a/binary and b/binary differ\n\
         diff --git a/file-to-link b/file-to-link\ndeleted file mode 100644\n--- a/file-to-link\n+++ /dev/null\n\
         @@ -1 +0,0 @@\n-1\n\
         diff --git a/file-to-link b/file-to-link\nnew file mode 120000\n--- /dev/null\n+++ b/file-to-link\n\
         @@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n\
         diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-last words\n\
         \\ No newline at end of file\n\
         diff --git a/link b/link\n--- a/link\n+++ b/link\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\
         \\ No newline at end of file\n\
         diff --git a/mode b/mode\nold mode 100644\nnew mode 100755\n\
         diff --git a/new/empty b/new/empty\nnew file mode 100644\n\
         diff --git a/new/file b/new/file\nnew file mode 100644\n--- /dev/null\n+++ b/new/file\n@@ -0,0 +1 @@\n+text\n\
         diff --git \"a/odd \\377\\n\\\"\" \"b/odd \\377\\n\\\"\"\nnew file mode 100644\n--- /dev/null\n\
         +++ \"b/odd \\377\\n\\\"\"\n@@ -0,0 +1 @@\n+x\n"
    );
    let by_files = file_diffs(&comparison, &workspace.blobs, &workspace.blobs, &limits).await.unwrap();
    let is_of_hunk = |line: &&str| {
        line.starts_with(['@', ' ', '-', '+']) && !line.starts_with("---") && !line.starts_with("+++")
    };
    assert_eq!(hunks_of(&by_files), diff.text.lines().filter(is_of_hunk).collect::<Vec<_>>());
    let of =
        |path: &str| by_files.files.iter().filter(|file| file.path == Path::new(path)).collect::<Vec<_>>();
    assert_eq!(of("binary")[0].not_shown, Some(DiffOmission::Binary));
    assert_eq!((of("mode")[0].kind, of("mode")[0].hunks.len()), (ChangeKind::ModeChanged, 0));
    let kinds: Vec<_> = of("file-to-link").iter().map(|file| file.kind).collect();
    assert_eq!(kinds, [ChangeKind::Removed, ChangeKind::Added]);
    // Git applies it in reverse to the new state, the binary file aside.
    let without_binary: String =
        diff.text.replace("diff --git a/binary b/binary\nBinary files a/binary and b/binary differ\n", "");
    std::fs::write(workspace.directory.path().join("diff"), without_binary).unwrap();
    workspace.apply(&["binary = x\0y"]);
    workspace.run("git apply -R ../diff").await;
    let restored = workspace.take(None).await.manifest;
    assert_eq!(before.compare(&restored), Comparison::default());
}

#[tokio::test]
async fn diff_is_bounded() {
    let workspace = Workspace::with(&["a = 1\n", "b = 1\n", "c = 1\n"]);
    let before = workspace.take(None).await.manifest;
    workspace.apply(&["a = 12345\n", "b = 2\n", "c = 2\n"]);
    let after = workspace.take(None).await.manifest;
    let comparison = before.compare(&after);
    let limits = DiffLimits::default().with_max_file_size(4).with_max_text(100);
    let diff = unified_diff(&comparison, &workspace.blobs, &workspace.blobs, &limits).await.unwrap();
    assert!(diff.text.contains("Files a/a and b/a differ and are too large to show\n"), "{}", diff.text);
    assert_eq!(diff.left_out, 1);
    let few = DiffLimits::default().with_max_file_size(4).with_max_text(1);
    let by_files = file_diffs(&comparison, &workspace.blobs, &workspace.blobs, &few).await.unwrap();
    let shown: Vec<_> = by_files.files.iter().map(|file| (file.not_shown, file.hunks.len())).collect();
    assert_eq!((shown, by_files.left_out), (vec![(Some(DiffOmission::TooLarge), 0), (None, 1)], 1));
    let none = super::workspace::InMemory::default();
    let diff = unified_diff(&comparison, &workspace.blobs, &none, &DiffLimits::default()).await.unwrap();
    assert!(diff.text.contains("Files a/b and b/b differ and are not available\n"), "{}", diff.text);
}
