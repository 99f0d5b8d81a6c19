//! New lines where the old ones are indented differently in the file.

use pintle_patch::ApplyErrorKind;

use crate::support::{edited, ours, reference};

/// The content after a patch, or the kind of the refusal.
fn patched(content: &str, hunks: &str) -> Result<String, ApplyErrorKind> {
    edited(content, hunks, &ours()).map_err(|error| *error.kind)
}

#[test]
fn new_lines_move_with_the_old_ones() {
    let cases = [
        // More and less of it, at every depth.
        ("\tx\n", "@@\n-x\n+y\n+\tz", "\ty\n\t\tz\n"),
        ("  x\n    y\n", "@@\n x\n-  y\n+  a\n+    b\n+c", "  x\n    a\n      b\n  c\n"),
        ("x\n  y\n", "@@\n     x\n-      y\n+      a\n+        b", "x\n  a\n    b\n"),
        // One kind of blanks in place of another, where all depths are known.
        ("\tx\n\ty\n", "@@\n     x\n-    y\n+    z", "\tx\n\tz\n"),
        // Blank lines stay as they are, and say nothing of the difference.
        ("  x\n\n  y\n", "@@\n x\n \n-y\n+\n+a\n+ \n+b", "  x\n\n\n  a\n \n  b\n"),
        // The first line's depth is that of the block, not of the file.
        ("  f:\n    x\n", "@@\n f:\n-  x\n+  y", "  f:\n    y\n"),
        // The file mixes blanks itself.
        (" \tx\n", "@@\n-x\n+y", " \ty\n"),
        ("\u{A0}\u{A0}x\n", "@@\n-x\n+y", "\u{A0}\u{A0}y\n"),
        // The level may be looser than the indentation alone asks for.
        ("  say(“x”)\n", "@@\n-say(\"x\")\n+say(\"y\")", "  say(\"y\")\n"),
        // A carriage return inside a line of the patch ends a line of the file.
        ("  a\r  b\r", "@@\n-a\rb\n+c\rd", "  c\r  d\r"),
        // Each hunk has a difference of its own.
        (" a\n  b\n", "@@\n-a\n+x\n@@\n-b\n+y", " x\n  y\n"),
        // Nothing is added.
        ("x\n\ty\nz\n", "@@\n x\n-    y\n z", "x\nz\n"),
    ];
    for (content, hunks, expected) in cases {
        assert_eq!(patched(content, hunks).as_deref(), Ok(expected), "{hunks:?} for {content:?}");
    }
}

#[test]
fn what_cannot_be_indented_without_a_guess_is_refused() {
    let cases = [
        // The difference is not the same on every line.
        ("x\n    y\n", "@@\n x\n-  y\n+  z", None),
        ("\tx\n\t\ty\n", "@@\n     x\n-        y\n+        z", None),
        ("  x\n    y\n", "@@\n x\n-    y\n+    z", None),
        // A new line has less than all of them lose.
        ("x\n", "@@\n-    x\n+    y\n+  z", Some("  z")),
        // Tabs and blanks would be mixed.
        ("\tx\n", "@@\n-    x\n+    y\n+        z", Some("        z")),
        ("\tx:\n", "@@\n-x:\n+x:\n+    y", Some("    y")),
        // The new lines are indented as the file already.
        ("    x\n", "@@\n-x\n+    y", Some("    y")),
    ];
    for (content, hunks, new_line) in cases {
        match patched(content, hunks) {
            Err(ApplyErrorKind::Indentation { differences, new_line: found, .. }) => {
                assert_eq!(found.as_deref(), new_line, "{hunks:?}");
                assert!((1..=3).contains(&differences.len()), "{hunks:?}: {differences:?}");
            }
            other => panic!("{hunks:?} for {content:?}: {other:?}"),
        }
    }
}

#[test]
fn the_reference_writes_new_lines_as_they_are_given() {
    assert_eq!(edited("  x\n", "@@\n-x\n+y", &reference()), Ok("y\n".to_owned()));
    assert_eq!(edited("x\n    y\n", "@@\n x\n-  y\n+  z", &reference()), Ok("x\n  z\n".to_owned()));
}

#[test]
fn a_stricter_match_leaves_new_lines_alone() {
    assert_eq!(patched("\tx  \n", "@@\n-\tx\n+    y").as_deref(), Ok("    y\n"));
}
