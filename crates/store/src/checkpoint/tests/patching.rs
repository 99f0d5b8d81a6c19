//! Patches for `git apply`, which git itself applies in clones.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use pintle_env::LocalEnvironment;
use tempfile::TempDir;

use super::workspace::{InMemory, Workspace, path};
use crate::checkpoint::*;

/// Runs a line of the shell, which must succeed, and returns its standard output.
fn run(directory: &Path, line: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(directory);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_bytes().starts_with(b"GIT_")) {
        command.env_remove(name);
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the patch from one state to another, with the blobs of the workspace.
async fn patch(workspace: &Workspace, comparison: &Comparison, position: &RepositoryPosition) -> GitPatch {
    patch_with(&workspace.blobs, comparison, position).await
}

async fn patch_with(blobs: &InMemory, comparison: &Comparison, position: &RepositoryPosition) -> GitPatch {
    let directory = TempDir::new().unwrap();
    let scratch = LocalEnvironment::builder(directory.path())
        .with_variable("PATH", "/usr/local/bin:/usr/bin:/bin")
        .build()
        .unwrap();
    git_patch(comparison, blobs, blobs, position, &scratch).await.unwrap()
}

/// Returns the lines of a patch without those that name objects, with U+FFFD for bytes that are not UTF-8.
fn without_index(patch: &GitPatch) -> String {
    let text = String::from_utf8_lossy(&patch.bytes);
    text.split_inclusive('\n').filter(|line| !line.starts_with("index ")).collect()
}

#[tokio::test]
async fn kinds_of_change_have_the_form_of_git() {
    for (before, after, expected) in [
        ("a = 1\n", "a = 2\n", "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"),
        (
            "a = 1\n",
            "a = 1",
            "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+1\n\\ No newline at end of file\n",
        ),
        ("a = 1\n", "a = 1\r\n", "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+1\r\n"),
        ("b/", "a = ", "diff --git a/a b/a\nnew file mode 100644\n"),
        ("a = ", "- a", "diff --git a/a b/a\ndeleted file mode 100644\n"),
        ("a = 1\n", "a : 755", "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n"),
        ("a = 1\n", "a : 600", ""),
        ("a = 1\n", "b/", ""),
        (
            "a -> x",
            "a -> y",
            "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\
             \\ No newline at end of file\n",
        ),
        (
            "a = 1\n",
            "a -> x",
            "diff --git a/a b/a\ndeleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n\
             diff --git a/a b/a\nnew file mode 120000\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n\
             \\ No newline at end of file\n",
        ),
        (
            "a = 1\n",
            "a/b = 1\n",
            "diff --git a/a b/a\ndeleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n\
             diff --git a/a/b b/a/b\nnew file mode 100644\n--- /dev/null\n+++ b/a/b\n@@ -0,0 +1 @@\n+1\n",
        ),
    ] {
        let workspace = Workspace::with(&[before]);
        let older = workspace.take(None).await.manifest;
        workspace.apply(&[after]);
        let comparison = older.compare(&workspace.take(None).await.manifest);
        let patch = patch(&workspace, &comparison, &RepositoryPosition::default()).await;
        assert_eq!(without_index(&patch), expected, "{before:?} to {after:?}");
        assert_eq!(patch.omitted, Vec::<PathBuf>::new(), "{before:?} to {after:?}");
    }
}

#[tokio::test]
async fn names_are_quoted_as_git_quotes_them() {
    for (name, quoted) in [
        (&b"plain"[..], "a/in/plain b/in/plain"),
        (b"two words", "a/in/two words b/in/two words"),
        ("ä".as_bytes(), "a/in/ä b/in/ä"),
        (b"a\"b", r#""a/in/a\"b" "b/in/a\"b""#),
        (b"a\\b", r#""a/in/a\\b" "b/in/a\\b""#),
        (b"a\tb\nc", r#""a/in/a\tb\nc" "b/in/a\tb\nc""#),
        (b"\x01\xff", "\"a/in/\\001\u{fffd}\" \"b/in/\\001\u{fffd}\""),
    ] {
        let workspace = Workspace::new();
        let older = workspace.take(None).await.manifest;
        workspace.write(&path(name), b"");
        let comparison = older.compare(&workspace.take(None).await.manifest);
        let position = RepositoryPosition { prefix: "in".into(), ..RepositoryPosition::default() };
        let patch = patch(&workspace, &comparison, &position).await;
        let expected = format!("diff --git {quoted}\nnew file mode 100644\n");
        assert_eq!(without_index(&patch), expected);
    }
}

/// Changes a workspace in each way that a patch has to represent.
fn change(workspace: &Workspace) {
    workspace.apply(&[
        "text = one\n2\nthree\n",
        "crlf = one\r\n2\r\n",
        "to-crlf = one\r\ntwo\r\n",
        "no-end = one\ntwo",
        "to-no-end = one",
        "tool : 755",
        "- gone",
        "- gone-binary",
        "made/empty = ",
        "made/two words = x\n",
        "made/a\"b\\c = x\n",
        "link -> b",
        "to-link -> x",
        "to-directory/in = 1\n",
    ]);
    workspace.write(Path::new("binary"), b"\0\x01changed\xff\n\0");
    workspace.write(Path::new("made/binary"), &[0, 159, 146, 150]);
    workspace.write(Path::new("latin"), b"caf\xe9\nnew\n");
    workspace.write(&path(b"made/odd \xff\n"), b"x\n");
}

#[tokio::test]
async fn git_applies_a_patch_at_the_top_of_a_clone() {
    for (format, top, prefix) in [("sha1", ".", ""), ("sha1", "..", "root"), ("sha256", "..", "root")] {
        let workspace = Workspace::with(&[
            "text = one\ntwo\nthree\n",
            "crlf = one\r\ntwo\r\n",
            "to-crlf = one\ntwo\n",
            "no-end = one\nzwei",
            "to-no-end = one\n",
            "tool = #!/bin/sh\n",
            "gone = last words",
            "link -> a",
            "to-link = 1\n",
            "to-directory = 1\n",
        ]);
        workspace.write(Path::new("binary"), b"\0\x01\xff\n\0");
        workspace.write(Path::new("gone-binary"), &[0; 300]);
        workspace.write(Path::new("latin"), b"caf\xe9\n");
        let top = workspace.root.join(top).canonicalize().unwrap();
        run(
            &top,
            &format!(
                "git init --quiet --object-format={format} && git add --all && \
                 git -c user.name=a -c user.email=a commit --quiet --message=base"
            ),
        );
        let position = RepositoryPosition::locate(workspace.env.as_ref()).await.unwrap();
        assert_eq!((position.prefix.as_path(), position.has_sha256), (Path::new(prefix), format == "sha256"));
        let before = workspace.take(None).await.manifest;
        change(&workspace);
        let comparison = before.compare(&workspace.take(None).await.manifest);
        let patch = patch(&workspace, &comparison, &position).await;
        assert_eq!(patch.omitted, Vec::<PathBuf>::new(), "{format} {prefix:?}");

        let elsewhere = TempDir::new().unwrap();
        std::fs::write(elsewhere.path().join("patch"), &patch.bytes).unwrap();
        let clone = format!("git clone --quiet '{}' clone", top.display());
        run(elsewhere.path(), &clone);
        let clone = elsewhere.path().join("clone");
        run(&clone, "git apply --check ../patch && git apply ../patch");
        let tree = "git add --all && git write-tree";
        let base = run(&top, "git rev-parse 'HEAD^{tree}'");
        let changed = run(&top, tree);
        assert_ne!(changed, base);
        assert_eq!(run(&clone, tree), changed, "{format} {prefix:?}");
        run(&clone, "git apply --reverse ../patch");
        assert_eq!(run(&clone, tree), base, "{format} {prefix:?}");
    }
}

#[tokio::test]
async fn contents_that_are_not_known_are_omitted() {
    let workspace = Workspace::with(&["b = 1\n", "c -> x"]);
    let before = workspace.take(None).await.manifest;
    workspace.apply(&["b = 2\n", "c -> y"]);
    let mut comparison = before.compare(&workspace.take(None).await.manifest);
    comparison.unknown.push("d".into());
    let position = RepositoryPosition::default();
    let patch = patch_with(&InMemory::default(), &comparison, &position).await;
    assert!(without_index(&patch).starts_with("diff --git a/c b/c\n"), "{patch:?}");
    assert_eq!(patch.omitted, [Path::new("b"), Path::new("d")]);
}

#[tokio::test]
async fn a_workspace_without_a_repository_is_its_own_top() {
    let workspace = Workspace::new();
    let position = RepositoryPosition::locate(workspace.env.as_ref()).await.unwrap();
    assert_eq!(position, RepositoryPosition::default());
    let without_git =
        LocalEnvironment::builder(&workspace.root).with_variable("PATH", "/nonexistent").build().unwrap();
    assert_eq!(RepositoryPosition::locate(&without_git).await.unwrap(), position);
}

#[tokio::test]
async fn a_failure_of_git_has_its_message() {
    let workspace = Workspace::with(&["a = 1\n"]);
    let before = workspace.take(None).await.manifest;
    workspace.apply(&["a = 2\n"]);
    let comparison = before.compare(&workspace.take(None).await.manifest);
    let directory = TempDir::new().unwrap();
    let without_git =
        LocalEnvironment::builder(directory.path()).with_variable("PATH", "/nonexistent").build().unwrap();
    let position = RepositoryPosition::default();
    let failed = git_patch(&comparison, &workspace.blobs, &workspace.blobs, &position, &without_git).await;
    let message = failed.unwrap_err().to_string();
    assert!(message.starts_with("git failed: ") && message.contains("not found"), "{message}");
}
