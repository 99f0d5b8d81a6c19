//! Patches with several operations on several files.

use pintle_patch::{ApplyErrorKind, ChangeKind};

use crate::support::{applied, files, ours, planned};

#[test]
fn operations_apply_in_order() {
    let before = files([("a", "1\n"), ("b", "2\n")]);
    let cases = [
        // A chain of moves is one rename.
        (
            "*** Update File: a\n*** Move to: c\n*** Update File: c\n*** Move to: d\n@@\n-1\n+one",
            "R a -> d\n",
            files([("b", "2\n"), ("d", "one\n")]),
        ),
        // There and back with a change is an update.
        (
            "*** Update File: a\n*** Move to: c\n@@\n-1\n+one\n*** Update File: c\n*** Move to: a",
            "M a\n",
            files([("a", "one\n"), ("b", "2\n")]),
        ),
        // Two files swap paths.
        (
            "*** Update File: a\n*** Move to: t\n*** Update File: b\n*** Move to: a\n*** Update File: t\n*** Move to: b",
            "M a\nM b\n",
            files([("a", "2\n"), ("b", "1\n")]),
        ),
        // A file added at the old path of a moved one is new.
        (
            "*** Update File: a\n*** Move to: c\n*** Add File: a\n+new",
            "M a\nA c\n",
            files([("a", "new\n"), ("b", "2\n"), ("c", "1\n")]),
        ),
        // A file that is added and deleted leaves no change.
        ("*** Add File: c\n+x\n*** Delete File: c\n*** Delete File: b", "D b\n", files([("a", "1\n")])),
        (
            "*** Add File: c\n+x\n*** Update File: c\n@@\n-x\n+y",
            "A c\n",
            files([("a", "1\n"), ("b", "2\n"), ("c", "y\n")]),
        ),
        ("*** Delete File: b\n*** Update File: a\n*** Move to: b", "M b\nD a\n", files([("b", "1\n")])),
        ("*** Delete File: a\n*** Add File: a\n+1", "", before.clone()),
    ];
    for (body, summary, expected) in cases {
        assert_eq!(applied(&before, body, &ours()), Ok(expected), "{body}");
        let found = planned(&before, body, &ours()).unwrap().summary();
        assert_eq!(found, summary, "{body}");
    }
}

#[test]
fn a_rename_carries_both_contents() {
    let plan =
        planned(&files([("a", "1\n")]), "*** Update File: a\n*** Move to: b\n@@\n-1\n+2", &ours()).unwrap();
    let [change] = plan.changes.as_slice() else { panic!("{plan:?}") };
    assert_eq!(change.kind, ChangeKind::Renamed { from: "a".to_owned() });
    assert_eq!(
        (change.path.as_str(), change.old.as_deref(), change.new.as_deref()),
        ("b", Some(&b"1\n"[..]), Some(&b"2\n"[..]))
    );
    assert_eq!(plan.inverse().summary(), "R b -> a\n");
}

#[test]
fn the_diff_is_unified() {
    let before = files([("a", "1\n2\n3\n4\n5\n6"), ("old", "x\n"), ("gone", "y\n")]);
    let body = "*** Update File: a\n@@\n-1\n+one\n*** Update File: old\n*** Move to: new\n@@\n-x\n+z\n*** Delete File: gone\n*** Add File: here\n+h";
    let plan = planned(&before, body, &ours()).unwrap();
    assert_eq!(
        plan.unified_diff(),
        "--- a/a
+++ b/a
@@ -1,4 +1,4 @@
-1
+one
 2
 3
 4
diff --git a/old b/new
rename from old
rename to new
--- a/old
+++ b/new
@@ -1 +1 @@
-x
+z
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-y
--- /dev/null
+++ b/here
@@ -0,0 +1 @@
+h
"
    );
}

#[test]
fn absolute_paths_follow_the_prefixes_of_a_diff() {
    let plan = planned(&files([("/w/a", "1\n")]), "*** Update File: /w/a\n@@\n-1\n+2", &ours()).unwrap();
    assert!(plan.unified_diff().starts_with("--- a/w/a\n+++ b/w/a\n"), "{}", plan.unified_diff());
}

#[test]
fn a_large_file_with_many_hunks_is_planned() {
    let content: String = (0..100_000).map(|line| format!("    line {line};\n")).collect();
    let hunks: String = (0..1000)
        .map(|hunk| hunk * 100 + 50)
        .map(|line| format!("@@\n     line {};\n-    line {line};\n+    changed {line};\n", line - 1))
        .collect();
    let expected: String = (0..100_000)
        .map(|line| match line % 100 {
            50 => format!("    changed {line};\n"),
            _ => format!("    line {line};\n"),
        })
        .collect();
    let after = applied(&files([("f", &content)]), &format!("*** Update File: f\n{hunks}"), &ours());
    assert_eq!(after, Ok(files([("f", &expected)])));
}

#[test]
fn equal_lines_with_loose_context_are_searched_in_linear_time() {
    // Each comparison fails at its last line, so a naive search would take 10^9 steps.
    let content = "  same\n".repeat(50_000);
    let hunk = format!("@@\n{}-other\n", " same\n".repeat(20_000));
    let body = format!("*** Update File: f\n{hunk}  same\n");
    let error = planned(&files([("f", &format!("{content}other\n"))]), &body, &ours()).unwrap_err();
    assert!(error.to_string().contains("not in the file"), "{error}");
}

#[test]
fn a_file_updated_by_too_many_sections_is_refused() {
    let content = format!("a\n{}\n", "x".repeat(1 << 20));
    let body = "*** Update File: f\n@@\n a\n+y\n".repeat(150);
    let error = planned(&files([("f", &content)]), body.trim_end(), &ours()).unwrap_err();
    assert_eq!(*error.kind, ApplyErrorKind::TooManySections);
    assert!(error.to_string().contains("under one `*** Update File: `"), "{error}");
}
