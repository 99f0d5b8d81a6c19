//! Re-indentation of new lines when the old lines are indented differently in the file.

use pintle_patch::ApplyErrorKind;

use crate::support::{edited, ours, reference};

/// Applies hunks and returns the new content or the kind of error.
fn patch(content: &str, hunks: &str) -> Result<String, ApplyErrorKind> {
    edited(content, hunks, &ours()).map_err(|error| *error.kind)
}

#[test]
fn new_lines_are_indented_like_the_old_ones() {
    let cases = [
        // More and less indentation, at every depth.
        ("\tx\n", "@@\n-x\n+y\n+\tz", "\ty\n\t\tz\n"),
        ("  x\n    y\n", "@@\n x\n-  y\n+  a\n+    b\n+c", "  x\n    a\n      b\n  c\n"),
        ("x\n  y\n", "@@\n     x\n-      y\n+      a\n+        b", "x\n  a\n    b\n"),
        // Tabs instead of spaces, if all depths are known.
        ("\tx\n\ty\n", "@@\n     x\n-    y\n+    z", "\tx\n\tz\n"),
        // Blank lines are kept and do not affect the difference.
        ("  x\n\n  y\n", "@@\n x\n \n-y\n+\n+a\n+ \n+b", "  x\n\n\n  a\n \n  b\n"),
        // The depth is relative to the first line of the block, not to the file.
        ("  f:\n    x\n", "@@\n f:\n-  x\n+  y", "  f:\n    y\n"),
        // The file mixes spaces and tabs itself.
        (" \tx\n", "@@\n-x\n+y", " \ty\n"),
        ("\u{A0}\u{A0}x\n", "@@\n-x\n+y", "\u{A0}\u{A0}y\n"),
        // The match level may be looser than the indentation alone requires.
        ("  say(“x”)\n", "@@\n-say(\"x\")\n+say(\"y\")", "  say(\"y\")\n"),
        // A carriage return within a line of the patch ends a line of the file.
        ("  a\r  b\r", "@@\n-a\rb\n+c\rd", "  c\r  d\r"),
        // Each hunk has a difference of its own.
        (" a\n  b\n", "@@\n-a\n+x\n@@\n-b\n+y", " x\n  y\n"),
        // Nothing is added.
        ("x\n\ty\nz\n", "@@\n x\n-    y\n z", "x\nz\n"),
    ];
    for (content, hunks, expected) in cases {
        assert_eq!(patch(content, hunks).as_deref(), Ok(expected), "{hunks:?} for {content:?}");
    }
}

#[test]
fn ambiguous_indentation_is_refused() {
    let cases = [
        // The difference is not the same on every line.
        ("x\n    y\n", "@@\n x\n-  y\n+  z", None),
        ("\tx\n\t\ty\n", "@@\n     x\n-        y\n+        z", None),
        ("  x\n    y\n", "@@\n x\n-    y\n+    z", None),
        // A new line has less indentation than is removed from every line.
        ("x\n", "@@\n-    x\n+    y\n+  z", Some("  z")),
        // Tabs and spaces would be mixed.
        ("\tx\n", "@@\n-    x\n+    y\n+        z", Some("        z")),
        ("\tx:\n", "@@\n-x:\n+x:\n+    y", Some("    y")),
        // The new lines are already indented as in the file.
        ("    x\n", "@@\n-x\n+    y", Some("    y")),
    ];
    for (content, hunks, new_line) in cases {
        match patch(content, hunks) {
            Err(ApplyErrorKind::Indentation { differences, new_line: found, .. }) => {
                assert_eq!(found.as_deref(), new_line, "{hunks:?}");
                assert!((1..=3).contains(&differences.len()), "{hunks:?}: {differences:?}");
            }
            other => panic!("{hunks:?} for {content:?}: {other:?}"),
        }
    }
}

#[test]
fn the_reference_keeps_the_given_indentation() {
    assert_eq!(edited("  x\n", "@@\n-x\n+y", &reference()), Ok("y\n".to_owned()));
    assert_eq!(edited("x\n    y\n", "@@\n x\n-  y\n+  z", &reference()), Ok("x\n  z\n".to_owned()));
}

#[test]
fn a_stricter_match_keeps_the_given_indentation() {
    assert_eq!(patch("\tx  \n", "@@\n-\tx\n+    y").as_deref(), Ok("    y\n"));
}
