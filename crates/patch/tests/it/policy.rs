//! One test for each row of the policy table, ours beside the reference's.

use pintle_patch::{
    ApplyErrorKind as E, ApplyOptions, DiagnosticKind as D, MatchLevel, ParseErrorKind, parse,
};

use crate::support::{applied, edited, files, ours, planned, reference, tolerated};

/// How a patch ends.
#[derive(Debug, PartialEq)]
enum End {
    /// The file is this.
    Is(&'static str),
    NotFound,
    Ambiguous,
    Refused,
}

fn end(content: &str, hunks: &str, options: &ApplyOptions) -> Result<String, End> {
    edited(content, hunks, options).map_err(|error| {
        if matches!(*error.kind, E::HintNotFound { .. } | E::ContextNotFound { .. }) {
            End::NotFound
        } else if matches!(*error.kind, E::Ambiguous { .. } | E::AmbiguousHint { .. }) {
            End::Ambiguous
        } else if matches!(*error.kind, E::Refused { .. }) {
            End::Refused
        } else {
            panic!("{error}")
        }
    })
}

fn check(cases: &[(&str, &str, End, End)]) {
    for (content, hunks, ours_ends, reference_ends) in cases {
        for (options, expected) in [(ours(), ours_ends), (reference(), reference_ends)] {
            let found = end(content, hunks, &options);
            match (expected, &found) {
                (End::Is(text), Ok(found)) => assert_eq!(found, text, "{hunks}\n{options:?}"),
                (expected, Err(found)) => assert_eq!(found, expected, "{hunks}\n{options:?}"),
                (expected, Ok(found)) => {
                    panic!("expected {expected:?}, found {found:?}\n{hunks}\n{options:?}")
                }
            }
        }
    }
}

#[test]
fn several_operations_of_which_one_fails_change_nothing() {
    let before = files([("a", "1\n"), ("b", "2\n")]);
    for options in [ours(), reference()] {
        let body = "*** Update File: a\n@@\n-1\n+one\n*** Update File: b\n@@\n-3\n+three";
        let error = planned(&before, body, &options).unwrap_err();
        assert_eq!((error.path.as_str(), error.hunk, error.line), ("b", Some(1), 7));
    }
}

#[test]
fn a_hint_may_repeat_a_line_of_the_hunk() {
    check(&[
        ("a = 1\nb = 2\n", "@@ a = 1\n-a = 1\n+a = 9", End::Is("a = 9\nb = 2\n"), End::NotFound),
        // Also when context stands before it.
        (
            "import x\ndef f():\n  1\n",
            "@@ def f():\n import x\n def f():\n-  1\n+  2",
            End::Is("import x\ndef f():\n  2\n"),
            End::NotFound,
        ),
        // And with a line in between, as the specification shows it.
        ("h\na\nb\n", "@@ h\n-b\n+c", End::Is("h\na\nc\n"), End::Is("h\na\nc\n")),
    ]);
}

#[test]
fn the_examples_of_the_specification_apply() {
    let before = files([
        ("src/old_module.py", "x\n"),
        ("src/main.py", "def main():\n    print(\"Hello\")\n    return 0\n"),
        ("old_name.py", "import os\nimport sys\nimport old_dep\n"),
        (
            "src/config.py",
            "DEFAULT_TIMEOUT = 30\n\ndef load_config():\n    config = {}\n    config[\"debug\"] = False\n",
        ),
    ]);
    let body = "*** Add File: src/utils/helpers.py
+def greet(name):
+    return f\"Hello, {name}!\"
*** Delete File: src/old_module.py
*** Update File: src/main.py
@@ def main():
     print(\"Hello\")
-    return 0
+    print(\"World\")
+    return 1
*** Update File: old_name.py
*** Move to: new_name.py
@@ import os
 import sys
-import old_dep
+import new_dep
*** Update File: src/config.py
@@ DEFAULT_TIMEOUT = 30
-DEFAULT_TIMEOUT = 30
+DEFAULT_TIMEOUT = 60
@@ def load_config():
     config = {}
-    config[\"debug\"] = False
+    config[\"debug\"] = True";
    let expected = files([
        ("src/utils/helpers.py", "def greet(name):\n    return f\"Hello, {name}!\"\n"),
        ("src/main.py", "def main():\n    print(\"Hello\")\n    print(\"World\")\n    return 1\n"),
        ("new_name.py", "import os\nimport sys\nimport new_dep\n"),
        (
            "src/config.py",
            "DEFAULT_TIMEOUT = 60\n\ndef load_config():\n    config = {}\n    config[\"debug\"] = True\n",
        ),
    ]);
    assert_eq!(applied(&before, body, &ours()), Ok(expected));
    let plan = planned(&before, body, &ours()).unwrap();
    assert_eq!(
        plan.summary(),
        "A src/utils/helpers.py\nD src/old_module.py\nM src/main.py\nR old_name.py -> new_name.py\nM src/config.py\n"
    );
    assert_eq!(plan.diagnostics, []);
}

#[test]
fn a_loose_match_must_be_the_only_one() {
    check(&[
        ("  x\n\tx\n", "@@\n-x\n+y", End::Ambiguous, End::Is("y\n\tx\n")),
        ("x \nx  \n", "@@\n-x\n+y", End::Ambiguous, End::Is("y\nx  \n")),
        ("a–b\na—b\n", "@@\n-a-b\n+c", End::Ambiguous, End::Is("c\na—b\n")),
        // One place is enough, and a stricter place wins.
        ("  x\ny\n", "@@\n-x\n+z", End::Is("  z\ny\n"), End::Is("z\ny\n")),
        ("  x\nx\n", "@@\n-x\n+z", End::Is("  x\nz\n"), End::Is("  x\nz\n")),
        // Of exact matches the next is meant.
        ("x\nx\n", "@@\n-x\n+z", End::Is("z\nx\n"), End::Is("z\nx\n")),
        // A loose hint with twins says nothing where the hunk fits both.
        (
            " def f\n  1\n def f\n  1\n",
            "@@ def f\n-  1\n+  2",
            End::Ambiguous,
            End::Is(" def f\n  2\n def f\n  1\n"),
        ),
        (
            " def f\n  1\n def f\n  2\n",
            "@@ def f\n-  2\n+  3",
            End::Is(" def f\n  1\n def f\n  3\n"),
            End::Is(" def f\n  1\n def f\n  3\n"),
        ),
    ]);
}

#[test]
fn a_loose_hint_that_names_one_line_is_as_good_as_an_exact_one() {
    check(&[(" f\nx\nx\n", "@@ f\n-x\n+y", End::Is(" f\ny\nx\n"), End::Is(" f\ny\nx\n"))]);
}

#[test]
fn each_choice_of_matching_can_be_made_alone() {
    type Choice = fn(&mut ApplyOptions);
    let exact_above = "a\nb\nc\n a\n";
    let hunks = "@@\n-b\n+y\n@@\n-a\n+x";
    let cases: &[(Choice, &str, &str, End)] = &[
        // Without the search of the whole file nothing above is looked at.
        (|options| options.out_of_order = false, exact_above, hunks, End::Is("a\ny\nc\n x\n")),
        (|options| options.first_loose_match = true, exact_above, hunks, End::Is("a\ny\nc\n x\n")),
        (|options| options.given_indentation = true, " a\n", "@@\n-a\n+x", End::Is("x\n")),
        (|options| options.out_of_order = false, " a\n\ta\n", "@@ a\n+x", End::Ambiguous),
        (|options| options.first_loose_match = true, " a\n\ta\n", "@@ a\n+x", End::Is(" a\nx\n\ta\n")),
        // A removed line that is there loosely is not missing.
        (|options| options.last_line_may_miss = true, "x\n \nz\n", "@@\n-x\n-\n+y", End::Is("y\nz\n")),
        (|options| options.last_line_may_miss = true, "x\nz\n", "@@\n-x\n-\n+y", End::Is("y\nz\n")),
        (|options| options.last_line_may_miss = true, "x\nz\nx \n\n", "@@\n-x\n-\n+y", End::Ambiguous),
    ];
    for (choose, content, hunks, expected) in cases {
        let mut options = ours();
        choose(&mut options);
        let found = end(content, hunks, &options);
        match expected {
            End::Is(text) => assert_eq!(found.as_deref(), Ok(*text), "{hunks}\n{options:?}"),
            End::NotFound | End::Ambiguous | End::Refused => {
                assert_eq!(found.as_ref().err(), Some(expected), "{hunks}\n{options:?}");
            }
        }
    }
}

#[test]
fn a_loose_hint_that_names_a_line_above_too_needs_one_place() {
    let methods = "class A\n  def f\n    a\n    c\nclass B\n  def f\n    c\n    d\n";
    check(&[
        // The second hint is the start of the line below only because the first one has been passed.
        (
            "impl Foo {\n  a\n  b\n}\nimpl FooBar {\n  b\n}\n",
            "@@ impl Foo\n-  a\n+  A\n@@ impl Foo\n-  b\n+  B",
            End::Ambiguous,
            End::NotFound,
        ),
        (
            methods,
            "@@ def f\n-    a\n+    x\n@@ def f\n-    c\n+    y",
            End::Ambiguous,
            End::Is("class A\n  def f\n    x\n    c\nclass B\n  def f\n    y\n    d\n"),
        ),
        (
            methods,
            "@@ def f\n-    a\n+    x\n@@ def f\n-    d\n+    y",
            End::Is("class A\n  def f\n    x\n    c\nclass B\n  def f\n    c\n    y\n"),
            End::Is("class A\n  def f\n    x\n    c\nclass B\n  def f\n    c\n    y\n"),
        ),
        // The twin above is taken.
        (
            methods,
            "@@   def f\n     a\n-    c\n+    x\n@@ def f\n-    c\n+    y",
            End::Is("class A\n  def f\n    a\n    x\nclass B\n  def f\n    y\n    d\n"),
            End::Is("class A\n  def f\n    a\n    x\nclass B\n  def f\n    y\n    d\n"),
        ),
        (" f\nb\n\tf\n", "@@\n-b\n+y\n@@ f\n+x", End::Ambiguous, End::Is(" f\ny\n\tf\nx\n")),
        // An exact hint above is meant before a loose one below.
        ("f\nb\n  f\n", "@@\n-b\n+y\n@@ f\n+x", End::Is("f\nx\ny\n  f\n"), End::Is("f\ny\n  f\nx\n")),
    ]);
}

#[test]
fn empty_lines_at_the_end_decide_between_two_places_only_for_the_reference() {
    check(&[
        ("x\nz\nx \n\nw\n", "@@\n-x\n+y\n", End::Ambiguous, End::Is("x\nz\ny\n\nw\n")),
        ("x\n \nz\n", "@@\n-x\n+y\n", End::Is("y\n \nz\n"), End::Is("y\n \nz\n")),
        ("f\na\n", "@@\n@@ f\n-a\n+b", End::Is("f\nb\n"), End::Refused),
        // For the reference an empty line at the end of the new lines goes with that of the old ones.
        ("\nb\n", "@@\n \n-", End::NotFound, End::Is("b\n")),
        ("a\nb\n", "@@\n-a\n-\n+", End::NotFound, End::Is("b\n")),
        ("a\nb\n", "@@\n a\n-", End::NotFound, End::Is("a\nb\n")),
    ]);
}

#[test]
fn what_earlier_hunks_have_taken_is_no_rival() {
    check(&[(
        "a\na\n a\n",
        "@@\n-a\n+x\n@@\n-a\n+y\n@@\n-a\n+z",
        End::Is("x\ny\n z\n"),
        End::Is("x\ny\nz\n"),
    )]);
}

#[test]
fn a_hint_that_starts_too_many_lines_names_none() {
    let content = |count: usize| format!("x\n{}z\n", "fn f\n".repeat(count));
    for (count, is_found) in [(64, true), (65, false)] {
        let found = edited(&content(count), "@@ fn\n-z\n+y", &ours());
        assert_eq!(found.is_ok(), is_found, "{count}: {found:?}");
    }
}

#[test]
fn additions_alone_go_after_their_hint() {
    check(&[
        ("a\nb\nc\n", "@@ a\n+x", End::Is("a\nx\nb\nc\n"), End::Is("a\nb\nc\nx\n")),
        ("a\nb\nc\n", "@@ a\n+x\n*** End of File", End::Is("a\nb\nc\nx\n"), End::Is("a\nb\nc\nx\n")),
        ("a\nb\n", "@@\n+x", End::Is("a\nb\nx\n"), End::Is("a\nb\nx\n")),
        ("", "+x", End::Is("x\n"), End::Is("x\n")),
        ("a\nb\nc\n", "@@ a\n+x\n@@ b\n+y", End::Is("a\nx\nb\ny\nc\n"), End::Is("a\nb\nc\nx\ny\n")),
        ("a\nb\n", "@@ a\n+x\n@@ a\n+y", End::Is("a\nx\ny\nb\n"), End::NotFound),
        (" a\n\ta\n", "@@ a\n+x", End::Ambiguous, End::Is(" a\n\ta\nx\n")),
        ("a\nb\n", "@@ c\n+x", End::NotFound, End::NotFound),
    ]);
}

#[test]
fn the_final_newline_stays_as_it_was_unless_the_last_line_is_touched() {
    check(&[
        ("a\nb", "@@\n-a\n+x\n b", End::Is("x\nb"), End::Is("x\nb\n")),
        ("a\nb", "@@\n a\n+x\n b", End::Is("a\nx\nb"), End::Is("a\nx\nb\n")),
        ("a\nb", "@@\n-b\n+x", End::Is("a\nx\n"), End::Is("a\nx\n")),
        ("a\nb", "@@\n b\n+x", End::Is("a\nb\nx\n"), End::Is("a\nb\nx\n")),
        ("a\nb", "@@\n-b", End::Is("a\n"), End::Is("a\n")),
        ("a\nb\n", "@@\n-a\n+x", End::Is("x\nb\n"), End::Is("x\nb\n")),
        ("a", "@@\n-a", End::Is(""), End::Is("")),
        ("a", "@@\n a\n+x", End::Is("a\nx\n"), End::Is("a\nx\n")),
        ("a", "@@\n-a\n+x", End::Is("x\n"), End::Is("x\n")),
    ]);
}

#[test]
fn each_line_keeps_its_own_end_and_new_lines_take_their_neighbours() {
    check(&[
        ("a\r\nb\r\n", "@@\n-a\n+x\n+y\n b", End::Is("x\r\ny\r\nb\r\n"), End::Is("x\r\ny\r\nb\r\n")),
        ("a\nb\r\nc\r\n", "@@\n b\n+x\n c", End::Is("a\nb\r\nx\r\nc\r\n"), End::Is("a\nb\r\nx\nc\r\n")),
        ("a\nb\r\nc\n", "@@\n-b\n+x", End::Is("a\nx\r\nc\n"), End::Is("a\nx\nc\n")),
        ("a\rb\rc\r", "@@\n b\n+x", End::Is("a\rb\rx\rc\r"), End::Is("a\rb\rx\rc\r")),
        ("a\r\nb", "@@\n b\n+x", End::Is("a\r\nb\r\nx\r\n"), End::Is("a\r\nb\r\nx\r\n")),
        ("b\r\n", "@@\n+x\n b", End::Is("x\r\nb\r\n"), End::Is("x\r\nb\r\n")),
    ]);
}

#[test]
fn a_byte_order_mark_is_kept_and_ignored() {
    check(&[
        ("\u{FEFF}a\nb\n", "@@\n-a\n+x\n b", End::Is("\u{FEFF}x\nb\n"), End::NotFound),
        ("\u{FEFF}a\nb\n", "@@ a\n-b\n+x", End::Is("\u{FEFF}a\nx\n"), End::NotFound),
        ("\u{FEFF}a\nb\n", "@@\n-b\n+x", End::Is("\u{FEFF}a\nx\n"), End::Is("\u{FEFF}a\nx\n")),
    ]);
}

#[test]
fn stacked_hints_narrow_step_by_step() {
    let twins = "class A\n  def f\n    1\nclass B\n  def f\n    1\n";
    check(&[
        (
            twins,
            "@@ class B\n@@   def f\n-    1\n+    2",
            End::Is("class A\n  def f\n    1\nclass B\n  def f\n    2\n"),
            End::Refused,
        ),
        (
            twins,
            "@@ class B\n@@ def f\n-    1\n+    2",
            End::Is("class A\n  def f\n    1\nclass B\n  def f\n    2\n"),
            End::Refused,
        ),
        (
            twins,
            "@@ class A\n@@ def f\n+    0",
            End::Is("class A\n  def f\n    0\n    1\nclass B\n  def f\n    1\n"),
            End::Refused,
        ),
        (twins, "@@ class B\n@@ class A\n-    1\n+    2", End::NotFound, End::Refused),
        // The inner hint is below the outer one, even where they are the same.
        ("f\na\nf\na\n", "@@ f\n@@ f\n-a\n+x", End::Is("f\na\nf\nx\n"), End::Refused),
    ]);
}

#[test]
fn adding_over_a_file_is_refused() {
    let before = files([("a", "1\n"), ("b", "2\n")]);
    let error = planned(&before, "*** Add File: a\n+new", &ours()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a (patch line 2): cannot add: the file exists; update it, or delete it first in the same patch to replace it"
    );
    let error = planned(&before, "*** Add File: a\n+1", &ours()).unwrap_err();
    assert!(error.to_string().contains("already applied"), "{error}");
    let replaced = applied(&before, "*** Delete File: a\n*** Add File: a\n+new", &ours());
    assert_eq!(replaced, Ok(files([("a", "new\n"), ("b", "2\n")])));
    let overwritten = applied(&before, "*** Add File: a\n+new", &reference());
    assert_eq!(overwritten, Ok(files([("a", "new\n"), ("b", "2\n")])));
}

#[test]
fn moving_onto_a_file_is_refused() {
    let before = files([("a", "1\n"), ("b", "2\n")]);
    let body = "*** Update File: a\n*** Move to: b\n@@\n-1\n+one";
    let error = planned(&before, body, &ours()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "b (patch line 2): cannot move a here: the file exists; delete it first in the same patch to replace it"
    );
    let expected = files([("b", "one\n")]);
    assert_eq!(applied(&before, &format!("*** Delete File: b\n{body}"), &ours()), Ok(expected.clone()));
    assert_eq!(applied(&before, body, &reference()), Ok(expected));
}

#[test]
fn a_move_onto_itself_is_a_plain_update() {
    let before = files([("a", "1\n")]);
    let body = "*** Update File: a\n*** Move to: a\n@@\n-1\n+one";
    assert_eq!(applied(&before, body, &ours()), Ok(files([("a", "one\n")])));
    let plan = planned(&before, body, &ours()).unwrap();
    assert_eq!((plan.summary().as_str(), &plan.diagnostics[0].kind), ("M a\n", &D::MoveOntoItself));
    assert_eq!(applied(&before, body, &reference()), Ok(files([])));
}

#[test]
fn a_move_without_a_hunk_is_a_plain_rename() {
    let before = files([("a", "no newline")]);
    let body = "*** Update File: a\n*** Move to: b";
    assert_eq!(applied(&before, body, &ours()), Ok(files([("b", "no newline")])));
    let error = planned(&before, body, &reference()).unwrap_err();
    assert!(matches!(*error.kind, E::Refused { .. }), "{error}");
}

#[test]
fn hunks_out_of_file_order_apply_where_each_fits_once() {
    check(&[
        ("a\nb\nc\n", "@@\n-c\n+z\n@@\n-a\n+x", End::Is("x\nb\nz\n"), End::NotFound),
        ("a\nb\nc\n", "@@ c\n+z\n@@ a\n+x", End::Is("a\nx\nb\nc\nz\n"), End::NotFound),
        // Twice is too often, for any of the hunks.
        ("a\nb\na\nc\n", "@@\n-c\n+z\n@@\n-a\n+x", End::NotFound, End::NotFound),
        ("a\nb\nb\n", "@@\n-b\n+z\n@@\n-a\n+x", End::NotFound, End::NotFound),
        ("a\nb\na\nc\n", "@@\n-c\n+z\n@@ a\n+x", End::NotFound, End::NotFound),
        // Shared context is fine, a line changed twice is not.
        ("a\nb\nc\n", "@@\n-a\n+x\n b\n@@\n b\n-c\n+z", End::Is("x\nb\nz\n"), End::NotFound),
        ("a\nb\n", "@@\n-a\n-b\n+x\n@@\n-b\n+y", End::NotFound, End::NotFound),
        // A loose place below does not win over an exact one above.
        ("a\nb\nc\n a\n", "@@\n-b\n+y\n@@\n-a\n+x", End::Is("x\ny\nc\n a\n"), End::Is("a\ny\nc\nx\n")),
        // One that is as loose is no better.
        ("  a\nb\n a\n", "@@\n-b\n+y\n@@\n-a\n+x", End::Is("  a\ny\n x\n"), End::Is("  a\ny\nx\n")),
        // Unless the hunk before has taken that one.
        ("a\nb\n a\n", "@@\n-a\n+x\n@@\n-a\n+y", End::Is("x\nb\n y\n"), End::Is("x\nb\ny\n")),
    ]);
    assert_eq!(tolerated("a\nb\nc\n", "@@\n-c\n+z\n@@\n-a\n+x"), [D::OutOfOrder { file_line: 1 }]);
}

#[test]
fn a_blank_line_inside_an_addition_is_an_empty_line() {
    let body = "*** Add File: a\n+1\n\n+2\n\n";
    assert_eq!(applied(&files([]), body, &ours()), Ok(files([("a", "1\n\n2\n")])));
    let error = planned(&files([]), body, &reference()).unwrap_err();
    assert!(matches!(*error.kind, E::Refused { .. }), "{error}");
}

#[test]
fn canonically_equal_unicode_matches_and_compatible_text_does_not() {
    check(&[
        ("caf\u{E9}\n", "@@\n-cafe\u{301}\n+x", End::Is("x\n"), End::NotFound),
        ("cafe\u{301}\n", "@@\n-caf\u{E9}\n+x", End::Is("x\n"), End::NotFound),
        ("x\u{B2}\n", "@@\n-x2\n+y", End::NotFound, End::NotFound),
        ("“a” b\n", "@@\n-\"a\" b\n+y", End::Is("y\n"), End::Is("y\n")),
        // Context keeps the bytes of the file.
        ("caf\u{E9}\na\n", "@@\n cafe\u{301}\n-a\n+b", End::Is("caf\u{E9}\nb\n"), End::NotFound),
    ]);
}

#[test]
fn a_wrapped_patch_is_refused_and_the_wrapper_named() {
    for (text, wrapper) in [
        ("{\"input\": \"*** Begin Patch\\n*** End Patch\"}", "a JSON object"),
        ("[\"apply_patch\", \"*** Begin Patch\\n*** End Patch\"]", "a command array"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(matches!(error.kind, ParseErrorKind::Wrapped(_)), "{error}");
        assert!(error.to_string().contains(wrapper), "{error}");
    }
}

#[test]
fn two_sections_for_one_file_apply_in_order() {
    let before = files([("a", "1\n2\n")]);
    let body = "*** Update File: a\n@@\n-1\n+one\n*** Update File: a\n@@\n one\n-2\n+two";
    for options in [ours(), reference()] {
        assert_eq!(applied(&before, body, &options), Ok(files([("a", "one\ntwo\n")])));
    }
    assert_eq!(planned(&before, body, &ours()).unwrap().summary(), "M a\n");
}

#[test]
fn what_is_already_applied_is_called_so() {
    let cases = [
        ("a\nnew_b\nc\n", "@@\n a\n-old_b\n+new_b\n c", 1),
        (
            "DEFAULT_TIMEOUT = 60\n",
            "@@ DEFAULT_TIMEOUT = 30\n-DEFAULT_TIMEOUT = 30\n+DEFAULT_TIMEOUT = 60",
            1,
        ),
        ("x\na\nc\n", "@@\n a\n-b\n c", 2),
        // The old lines are there still, but only as a part of the new ones.
        ("a\nb\n", "@@\n a\n+b\n*** End of File", 1),
    ];
    for (content, hunks, file_line) in cases {
        let error = edited(content, hunks, &ours()).unwrap_err();
        assert_eq!(*error.kind, E::AlreadyApplied { file_line }, "{hunks}");
        assert!(error.to_string().contains("already applied"));
    }
    // A closing brace proves nothing, nor does a line that is in two places, nor new lines while
    // the old ones are there.
    let unproved = [
        ("}\n", "@@\n-foo\n+}"),
        ("b\nb\n", "@@\n-a\n+b"),
        ("b\na\nf\n", "@@ f\n-a\n+b"),
        ("a\nb\nf\n", "@@ f\n-a\n+b"),
        // Seen loosely, the old lines start where the new ones do and go on, or are below as well.
        ("a\nc\nz\n", "@@\n- a\n-c\n+a\n*** End of File"),
        ("b\n  b\nz\n", "@@\n- b\n+b\n*** End of File"),
    ];
    for (content, hunks) in unproved {
        let error = edited(content, hunks, &ours()).unwrap_err();
        assert!(matches!(*error.kind, E::ContextNotFound { .. }), "{error}");
    }
}

#[test]
fn levels_hints_and_gaps_are_reported() {
    // How they differ is in the messages.
    let loose = |level, file_line| D::LooseMatch { level, file_line, blanks: None };
    let without_blanks = |mut kind: D| {
        if let D::LooseMatch { blanks, .. } = &mut kind {
            *blanks = None;
        }
        kind
    };
    let cases: &[(&str, &str, &[D])] = &[
        ("a\nx\n", "@@\n-x\n+y", &[]),
        ("a\nx \n", "@@\n-x\n+y", &[loose(MatchLevel::TrailingBlanks, 2)]),
        (
            "a\n x\n",
            "@@\n-x\n+y",
            &[
                loose(MatchLevel::SurroundingBlanks, 2),
                D::Reindented { file_line: 2, removed: None, added: Some("1 space".to_owned()) },
            ],
        ),
        ("a\n x\n", "@@\n-x", &[loose(MatchLevel::SurroundingBlanks, 2)]),
        ("a\n‘x’\n", "@@\n-'x'\n+y", &[loose(MatchLevel::Typography, 2)]),
        ("x\nx\n", "@@\n-x\n+y", &[D::SeveralPlaces { file_line: 1, other: 2 }]),
        ("  f\nx\n", "@@ f\n-x\n+y", &[D::LooseHint { level: MatchLevel::SurroundingBlanks, file_line: 1 }]),
        ("fn f(a: u8) {\nx\n", "@@ fn f(\n-x\n+y", &[D::HintPrefix { file_line: 1 }]),
        ("x\nz\n", "@@\n-x\n+y\n\n", &[D::TrailingContext { file_line: 1 }]),
        ("x\n \nz\n", "@@\n-x\n+y\n", &[D::TrailingContext { file_line: 1 }]),
        ("x\n\nz\n", "@@\n-x\n+y\n", &[]),
        ("x\n", "@@\n x", &[D::NoChange]),
    ];
    for (content, hunks, expected) in cases {
        let found: Vec<D> = tolerated(content, hunks).into_iter().map(without_blanks).collect();
        assert_eq!(found, *expected, "{hunks}");
    }
}

#[test]
fn the_end_of_file_pins_a_hunk() {
    check(&[
        ("x\na\nx\n", "@@\n-x\n+y\n*** End of File", End::Is("x\na\ny\n"), End::Is("x\na\ny\n")),
        ("x\na\n", "@@\n-x\n+y\n*** End of File", End::NotFound, End::NotFound),
    ]);
}
