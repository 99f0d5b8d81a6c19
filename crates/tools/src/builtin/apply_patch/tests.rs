use pintle_env::ExecutionEnvironmentExt as _;
use serde_json::json;

use super::*;
use crate::tests::harness::Harness;
use crate::tool::ChangeKind;

fn arguments(patch: &str) -> String {
    json!({"patch": format!("*** Begin Patch\n{patch}*** End Patch\n")}).to_string()
}

/// Lists the directory, with hidden files.
#[expect(clippy::disallowed_methods, reason = "the test checks files without the environment")]
fn names(harness: &Harness) -> Vec<String> {
    let entries = std::fs::read_dir(harness.path(".")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn every_operation_is_applied_and_listed() {
    let harness = Harness::new();
    harness.write("src/main.py", "def main():\r\n    print(1)\r\n    return 0\r\n");
    harness.write("old.txt", "old\n");
    harness.write("gone.txt", "gone\n");
    let patch = "\
*** Add File: docs/new.md
+# New
*** Update File: ./src/main.py
@@ def main():
     print(1)
-    return 0
+    return 1
*** Update File: old.txt
*** Move to: kept/new.txt
@@
-old
+new
*** Delete File: gone.txt
";
    let execution = harness.execute(ApplyPatch::new(), &arguments(patch)).await;
    insta::assert_snapshot!(harness.mask(&execution.result.text()), @"
    The patch was applied:
    A docs/new.md
    M src/main.py
    R old.txt -> kept/new.txt
    D gone.txt
    Note: patch line 4: `.` segments of a path were dropped
    ");
    assert_eq!(harness.text("docs/new.md"), "# New\n");
    assert_eq!(harness.text("src/main.py"), "def main():\r\n    print(1)\r\n    return 1\r\n");
    assert_eq!(harness.text("kept/new.txt"), "new\n");
    assert_eq!((harness.read("old.txt"), harness.read("gone.txt")), (None, None));
    let changes: Vec<_> =
        execution.changes.iter().map(|change| (change.path.as_str(), change.kind.clone())).collect();
    assert_eq!(
        changes,
        [
            ("docs/new.md", ChangeKind::Added),
            ("src/main.py", ChangeKind::Modified),
            ("kept/new.txt", ChangeKind::Renamed { from: "old.txt".into() }),
            ("gone.txt", ChangeKind::Deleted),
        ]
    );
    assert!(execution.changes.iter().all(|change| !change.diff.is_empty()));
}

#[tokio::test]
async fn two_spellings_of_a_path_are_one_file() {
    let harness = Harness::new();
    harness.write("a.txt", "1\n2\n");
    let absolute = harness.path("sub/../a.txt");
    let patch = format!(
        "*** Update File: a.txt\n@@\n-1\n+one\n*** Update File: {}\n@@\n-2\n+two\n",
        absolute.display()
    );
    assert_eq!(
        harness.call(ApplyPatch::new(), &arguments(&patch)).await,
        "ok: The patch was applied:\nM a.txt"
    );
    assert_eq!(harness.text("a.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn nothing_is_written_if_an_operation_does_not_apply() {
    let harness = Harness::new();
    harness.write("a.txt", "one\ntwo\nthree\n");
    let patch = "*** Add File: new.txt\n+new\n*** Update File: a.txt\n@@\n one\n-2\n+zwei\n three\n";
    insta::assert_snapshot!(harness.call(ApplyPatch::new(), &arguments(patch)).await, @"
    error: Tool error (apply_patch): a.txt, hunk 1 (patch line 5): the old lines are not in the file
    first difference at line 2:
      expected: `2`
      found:    `two`
    nearest places:
      line 1: `one`
    ");
    assert_eq!((harness.read("new.txt"), harness.text("a.txt")), (None, "one\ntwo\nthree\n".to_owned()));
}

#[tokio::test]
async fn changes_are_undone_when_a_write_fails() {
    let harness = Harness::new();
    harness.write("a.txt", "one\n");
    harness.write("b.txt", "two\n");
    harness.write("c.txt", "three\n");
    harness.write("wall", "x\n");
    // The last path is below a file.
    let patch = "\
*** Update File: a.txt
@@
-one
+1
*** Delete File: b.txt
*** Update File: c.txt
*** Move to: d.txt
@@
-three
+3
*** Add File: new.txt
+new
*** Add File: wall/below
+never
";
    let answer = harness.call(ApplyPatch::new(), &arguments(patch)).await;
    insta::assert_snapshot!(answer, @"error: Tool error (apply_patch): The patch fits, but writing wall/below failed: DIR/wall/below is not a directory; no file is changed");
    let kept = ["a.txt", "b.txt", "c.txt"].map(|name| harness.text(name));
    assert_eq!(kept, ["one\n", "two\n", "three\n"]);
    assert_eq!((harness.read("d.txt"), harness.read("new.txt")), (None, None));
    assert_eq!(names(&harness), ["a.txt", "b.txt", "c.txt", "wall"]);
}

#[tokio::test]
async fn deleted_files_are_restored_with_their_inode() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    let harness = Harness::new();
    harness.write("tool.sh", "run\n");
    harness.write("wall", "x\n");
    std::fs::set_permissions(harness.path("tool.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
    symlink("tool.sh", harness.path("link")).unwrap();
    let inode = |name: &str| harness.path(name).symlink_metadata().unwrap().ino();
    let before = [inode("tool.sh"), inode("link")];
    let patch = "\
*** Delete File: link
*** Delete File: tool.sh
*** Add File: other
+file
*** Add File: wall/below
+never
";
    let answer = harness.call(ApplyPatch::new(), &arguments(patch)).await;
    insta::assert_snapshot!(answer, @"error: Tool error (apply_patch): The patch fits, but writing wall/below failed: DIR/wall/below is not a directory; no file is changed");
    assert_eq!([inode("tool.sh"), inode("link")], before);
    assert_eq!(harness.path("tool.sh").metadata().unwrap().mode() & 0o777, 0o750);
    assert_eq!(names(&harness), ["link", "tool.sh", "wall"]);
}

#[tokio::test]
async fn new_directories_are_removed_on_failure() {
    let harness = Harness::new();
    harness.write("a", "old\n");
    harness.write("there/f", "x\n");
    harness.write("wall", "x\n");
    // A directory replaces a file, which is restored when a later change fails.
    let patch = "\
*** Delete File: a
*** Add File: a/b/c
+below
*** Add File: there/new/f
+below
*** Update File: there/f
*** Move to: else/where/f
*** Add File: other
+file
*** Add File: wall/below
+never
";
    let answer = harness.call(ApplyPatch::new(), &arguments(patch)).await;
    assert!(answer.ends_with("wall/below is not a directory; no file is changed"), "{answer}");
    assert_eq!(
        (names(&harness), harness.text("a")),
        (vec!["a".to_owned(), "there".to_owned(), "wall".to_owned()], "old\n".to_owned())
    );
    let there = harness.env.list_directory(Path::new("there"), 9).await.unwrap();
    assert_eq!(there.iter().map(|entry| entry.name.to_str().unwrap()).collect::<Vec<_>>(), ["f"]);
}

#[tokio::test]
async fn a_file_below_another_new_file_is_refused() {
    let harness = Harness::new();
    harness.write("a", "one\n");
    harness.write("b", "x\n");
    let cases = [
        ("*** Add File: new\n+x\n*** Add File: new/below/f\n+x\n", "new/below/f", "new"),
        ("*** Add File: new/below/f\n+x\n*** Add File: new\n+x\n", "new/below/f", "new"),
        ("*** Update File: a\n@@\n-one\n+1\n*** Add File: a/f\n+x\n", "a/f", "a"),
        ("*** Add File: new/f\n+x\n*** Update File: b\n*** Move to: new\n", "new/f", "new"),
    ];
    for (patch, path, file) in cases {
        let answer = harness.call(ApplyPatch::new(), &arguments(patch)).await;
        let expected = format!(
            "error: Tool error (apply_patch): The patch fits, but writing {path} failed: \
             DIR/{file} is not a directory; no file is changed"
        );
        assert_eq!(answer, expected);
        assert_eq!(
            (names(&harness), harness.text("a")),
            (vec!["a".to_owned(), "b".to_owned()], "one\n".to_owned())
        );
    }
}

#[tokio::test]
async fn an_emptied_directory_stays() {
    let harness = Harness::new();
    harness.write("one/f", "x\n");
    harness.write("two/f", "x\n");
    for patch in ["*** Delete File: one/f\n", "*** Update File: two/f\n*** Move to: f\n"] {
        let answer = harness.call(ApplyPatch::new(), &arguments(patch)).await;
        assert!(answer.starts_with("ok: "), "{answer}");
    }
    assert_eq!(names(&harness), ["f", "one", "two"]);
}

#[tokio::test]
async fn two_paths_to_one_file_are_refused() {
    use std::os::unix::fs::symlink;
    let harness = Harness::new();
    harness.write("a.txt", "1\n2\n");
    harness.write("real/f", "x\n");
    symlink("a.txt", harness.path("b.txt")).unwrap();
    symlink("real", harness.path("linked")).unwrap();
    let cases = [
        ("*** Update File: a.txt\n@@\n-1\n+one\n*** Update File: b.txt\n@@\n-2\n+two\n", "b.txt", "a.txt"),
        ("*** Add File: linked/new\n+1\n*** Add File: real/new\n+2\n", "real/new", "linked/new"),
        ("*** Add File: real/d/new\n+1\n*** Add File: linked/d/new\n+22\n", "linked/d/new", "real/d/new"),
    ];
    for (patch, path, other) in cases {
        let answer = harness.call(ApplyPatch::new(), &arguments(patch)).await;
        assert_eq!(
            answer,
            format!(
                "error: Tool error (apply_patch): {path} cannot be written: it is the same file as {other}; \
                 use one path for it; no file is changed"
            )
        );
        assert_eq!((harness.text("a.txt"), harness.text("real/f")), ("1\n2\n".to_owned(), "x\n".to_owned()));
        assert_eq!(names(&harness), ["a.txt", "b.txt", "linked", "real"]);
        assert_eq!(harness.env.list(Path::new("real")).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_dangling_link_is_not_followed() {
    let harness = Harness::new();
    harness.write("f", "x\n");
    std::os::unix::fs::symlink("nowhere", harness.path("link")).unwrap();
    for patch in ["*** Add File: link\n+x\n", "*** Add File: a\n+x\n*** Update File: f\n*** Move to: link\n"]
    {
        let answer = harness.call(ApplyPatch::new(), &arguments(patch)).await;
        assert_eq!(
            answer,
            "error: Tool error (apply_patch): link cannot be written: a symbolic link to nothing stands there; \
             remove the link or make its target first; no file is changed"
        );
        assert_eq!(names(&harness), ["f", "link"]);
    }
}

#[tokio::test]
async fn a_link_and_its_target_can_both_be_deleted() {
    for order in [["real", "link"], ["link", "real"]] {
        let harness = Harness::new();
        harness.write("real", "x\n");
        std::os::unix::fs::symlink("real", harness.path("link")).unwrap();
        let patch = order.map(|name| format!("*** Delete File: {name}\n")).concat();
        let answer = harness.call(ApplyPatch::new(), &arguments(&patch)).await;
        assert!(answer.starts_with("ok: "), "{answer}");
        assert!(names(&harness).is_empty(), "{:?}", names(&harness));
    }
}

#[tokio::test]
async fn an_invalid_patch_is_refused_in_few_words() {
    let harness = Harness::new();
    let call = async |patch: String| {
        let input = ApplyPatchInput { patch };
        assert!(ApplyPatch::new().writes(&input).is_empty());
        ApplyPatch::new().call(input, &harness.context()).await.unwrap_err()
    };
    let lines = "@@ def f():\n".repeat(1_000_000);
    let cases = [
        ("x".repeat(100 << 20), "patch line 1: the patch has 104857600 bytes; at most 67108864 are read"),
        ("\u{0}\u{1}\u{7f}ELF\u{0}".to_owned(), "patch line 1: expected `*** Begin Patch`"),
        (format!("*** Begin Patch\n*** Update File: f\n{lines}*** End Patch\n"), "patch line 35: "),
        ("*** Begin Patch\n*** Add File: a\0b\n+x\n*** End Patch\n".to_owned(), "patch line 2: "),
        ("*** Begin Patch\n*** Add File: a\nb\n+x\n*** End Patch\n".to_owned(), "patch line 3: "),
    ];
    for (patch, reason) in cases {
        let error = call(patch).await;
        assert_eq!(error.kind(), ToolErrorKind::InvalidArguments);
        let text = error.for_model();
        assert!(text.starts_with(reason) && text.len() < 1_000, "`{reason}` in {text}");
    }
    let long = format!("*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch\n", "d/".repeat(1 << 20));
    let error =
        ApplyPatch::new().call(ApplyPatchInput { patch: long }, &harness.context()).await.unwrap_err();
    let text = error.for_model();
    assert!(text.ends_with("/d/… has 2097151 bytes: a path has at most 4096") && text.len() < 200, "{text}");
    assert!(names(&harness).is_empty());
}

#[tokio::test]
async fn a_file_that_changed_after_reading_is_kept() {
    let harness = Harness::new();
    let cases = [
        ("*** Update File: f\n@@\n-old\n+new\n", Some("old\n"), Some("else\n")),
        ("*** Update File: f\n@@\n-old\n+new\n", Some("old\n"), None),
        ("*** Delete File: f\n", Some("old\n"), Some("else\n")),
        ("*** Update File: f\n*** Move to: g\n", Some("old\n"), Some("else\n")),
        ("*** Add File: f\n+new\n", None, Some("else\n")),
    ];
    for (body, planned, found) in cases {
        let patch = parse(&format!("*** Begin Patch\n{body}*** End Patch\n")).unwrap();
        let files =
            planned.map(|content| ("f".to_owned(), content.as_bytes().to_vec())).into_iter().collect();
        let plan = plan(&patch, &files, &ApplyOptions::default()).unwrap();
        match found {
            Some(content) => harness.write("f", content),
            None => harness.env.remove(Path::new("f")).await.unwrap(),
        }
        let error = apply_plan(harness.env.as_ref(), &plan).await.unwrap_err();
        assert!(matches!(error.cause, ApplyPlanCause::Changed), "{body}: {error:?}");
        assert_eq!(harness.read("f").as_deref(), found.map(str::as_bytes), "{body}");
        assert_eq!(harness.read("g"), None, "{body}");
        harness.write("f", "old\n");
    }
}

#[tokio::test]
async fn a_link_that_is_moved_becomes_a_file() {
    let harness = Harness::new();
    harness.write("real.txt", "one\n");
    std::os::unix::fs::symlink("real.txt", harness.path("link")).unwrap();
    let patch = "*** Update File: link\n*** Move to: sub/moved\n@@\n-one\n+1\n";
    let answer = harness.call(ApplyPatch::new(), &arguments(patch)).await;
    assert_eq!(answer, "ok: The patch was applied:\nR link -> sub/moved");
    assert_eq!((harness.text("real.txt"), harness.text("sub/moved")), ("one\n".to_owned(), "1\n".to_owned()));
    assert!(!harness.path("sub/moved").is_symlink());
    assert_eq!(names(&harness), ["real.txt", "sub"]);
}

#[tokio::test]
async fn a_directory_can_replace_a_deleted_file() {
    let harness = Harness::new();
    harness.write("a", "file\n");
    let patch = "*** Delete File: a\n*** Add File: a/b\n+below\n";
    assert_eq!(
        harness.call(ApplyPatch::new(), &arguments(patch)).await,
        "ok: The patch was applied:\nD a\nA a/b"
    );
    assert_eq!(harness.text("a/b"), "below\n");
}

#[tokio::test]
async fn a_link_is_followed_by_updates_not_deletions() {
    let harness = Harness::new();
    harness.write("real/a.txt", "one\n");
    harness.write("real/b.txt", "two\n");
    for name in ["a.txt", "b.txt"] {
        std::os::unix::fs::symlink(harness.path("real").join(name), harness.path(name)).unwrap();
    }
    let patch = "*** Update File: a.txt\n@@\n-one\n+1\n*** Delete File: b.txt\n";
    assert_eq!(
        harness.call(ApplyPatch::new(), &arguments(patch)).await,
        "ok: The patch was applied:\nM a.txt\nD b.txt"
    );
    assert!(harness.path("a.txt").is_symlink() && !harness.path("b.txt").is_symlink());
    assert_eq!(
        (harness.text("real/a.txt"), harness.text("real/b.txt")),
        ("1\n".to_owned(), "two\n".to_owned())
    );
}

#[tokio::test]
async fn other_bytes_of_a_file_stay_unchanged() {
    let harness = Harness::new();
    let cases: [(&[u8], &[u8]); 4] = [
        (b"\xEF\xBB\xBFold\r\nkeep\r\n", b"\xEF\xBB\xBFnew\r\nkeep\r\n"),
        (b"old\nkeep", b"new\nkeep"),
        // A changed last line gets a line end.
        (b"keep\nold", b"keep\nnew\n"),
        (b"caf\xE9\nold\n\xFF\n", b"caf\xE9\nnew\n\xFF\n"),
    ];
    for (before, after) in cases {
        harness.write("f", before);
        let answer =
            harness.call(ApplyPatch::new(), &arguments("*** Update File: f\n@@\n-old\n+new\n")).await;
        assert_eq!(answer, "ok: The patch was applied:\nM f");
        assert_eq!(harness.read("f").unwrap(), after, "{}", String::from_utf8_lossy(after));
    }
}

#[tokio::test]
async fn failed_patches_explain_themselves() {
    let harness = Harness::new();
    let cases = [
        json!({"patch": "hello"}),
        json!({"patch": "*** Begin Patch\n*** Update File: missing.txt\n@@\n-a\n+b\n*** End Patch"}),
        json!({"patch": "*** Begin Patch\n*** Add File: .\n+b\n*** End Patch"}),
    ];
    let mut answers = Vec::new();
    for arguments in cases {
        answers.push(harness.call(ApplyPatch::new(), &arguments.to_string()).await);
    }
    insta::assert_snapshot!(answers.join("\n"), @"
    error: Tool error (apply_patch): patch line 1: expected `*** Begin Patch` alone on the first line; found `hello`
    error: Tool error (apply_patch): missing.txt (patch line 2): cannot update: the file does not exist
    error: Tool error (apply_patch): patch line 2: expected a path after the colon; found `*** Add File: .`
    ");
}

#[test]
fn a_call_declares_the_files_of_its_patch() {
    let input = |patch: &str| ApplyPatchInput { patch: patch.to_owned() };
    let patch = "*** Begin Patch\n*** Add File: a\n+\n*** Update File: b\n*** Move to: c\n*** End Patch";
    assert_eq!(ApplyPatch::new().writes(&input(patch)), [Path::new("a"), Path::new("b"), Path::new("c")]);
    assert!(ApplyPatch::new().writes(&input("no patch")).is_empty());
}
