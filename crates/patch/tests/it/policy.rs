//! One test for each row of the policy table, comparing our policy with the reference's.

use pintle_patch::{
    ApplyErrorKind as E, ApplyOptions, DiagnosticKind as D, MatchLevel, ParseErrorKind, parse,
};

use crate::support::{applied, diagnostics_of, edited, files, ours, planned, reference};

/// Expected result of a patch.
#[derive(Debug, PartialEq)]
enum Expected {
    /// The file has this content.
    Is(&'static str),
    NotFound,
    Ambiguous,
    Refused,
}

fn apply(content: &str, hunks: &str, options: &ApplyOptions) -> Result<String, Expected> {
    edited(content, hunks, options).map_err(|error| {
        if matches!(*error.kind, E::HintNotFound { .. } | E::ContextNotFound { .. }) {
            Expected::NotFound
        } else if matches!(*error.kind, E::Ambiguous { .. } | E::AmbiguousHint { .. }) {
            Expected::Ambiguous
        } else if matches!(*error.kind, E::Refused { .. }) {
            Expected::Refused
        } else {
            panic!("{error}")
        }
    })
}

fn check(cases: &[(&str, &str, Expected, Expected)]) {
    for (content, hunks, ours_expected, reference_expected) in cases {
        for (options, expected) in [(ours(), ours_expected), (reference(), reference_expected)] {
            let found = apply(content, hunks, &options);
            match (expected, &found) {
                (Expected::Is(text), Ok(found)) => assert_eq!(found, text, "{hunks}\n{options:?}"),
                (expected, Err(found)) => assert_eq!(found, expected, "{hunks}\n{options:?}"),
                (expected, Ok(found)) => {
                    panic!("expected {expected:?}, found {found:?}\n{hunks}\n{options:?}")
                }
            }
        }
    }
}

#[test]
fn one_failing_operation_fails_the_patch() {
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
        ("a = 1\nb = 2\n", "@@ a = 1\n-a = 1\n+a = 9", Expected::Is("a = 9\nb = 2\n"), Expected::NotFound),
        // Also with context before it.
        (
            "import x\ndef f():\n  1\n",
            "@@ def f():\n import x\n def f():\n-  1\n+  2",
            Expected::Is("import x\ndef f():\n  2\n"),
            Expected::NotFound,
        ),
        // And with a line in between, as in the specification.
        ("h\na\nb\n", "@@ h\n-b\n+c", Expected::Is("h\na\nc\n"), Expected::Is("h\na\nc\n")),
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
fn a_loose_match_must_be_unique() {
    check(&[
        ("  x\n\tx\n", "@@\n-x\n+y", Expected::Ambiguous, Expected::Is("y\n\tx\n")),
        ("x \nx  \n", "@@\n-x\n+y", Expected::Ambiguous, Expected::Is("y\nx  \n")),
        ("a–b\na—b\n", "@@\n-a-b\n+c", Expected::Ambiguous, Expected::Is("c\na—b\n")),
        // One match is enough, and a stricter match wins.
        ("  x\ny\n", "@@\n-x\n+z", Expected::Is("  z\ny\n"), Expected::Is("z\ny\n")),
        ("  x\nx\n", "@@\n-x\n+z", Expected::Is("  x\nz\n"), Expected::Is("  x\nz\n")),
        // Of several exact matches the next one is taken.
        ("x\nx\n", "@@\n-x\n+z", Expected::Is("z\nx\n"), Expected::Is("z\nx\n")),
        // A loose hint with two matches does not help if the hunk matches below both.
        (
            " def f\n  1\n def f\n  1\n",
            "@@ def f\n-  1\n+  2",
            Expected::Ambiguous,
            Expected::Is(" def f\n  2\n def f\n  1\n"),
        ),
        (
            " def f\n  1\n def f\n  2\n",
            "@@ def f\n-  2\n+  3",
            Expected::Is(" def f\n  1\n def f\n  3\n"),
            Expected::Is(" def f\n  1\n def f\n  3\n"),
        ),
    ]);
}

#[test]
fn a_unique_loose_hint_equals_an_exact_one() {
    check(&[(" f\nx\nx\n", "@@ f\n-x\n+y", Expected::Is(" f\ny\nx\n"), Expected::Is(" f\ny\nx\n"))]);
}

#[test]
fn each_option_can_be_changed_independently() {
    type Choice = fn(&mut ApplyOptions);
    let exact_above = "a\nb\nc\n a\n";
    let hunks = "@@\n-b\n+y\n@@\n-a\n+x";
    let cases: &[(Choice, &str, &str, Expected)] = &[
        // Without the search of the whole file, matches above are not considered.
        (|options| options.out_of_order = false, exact_above, hunks, Expected::Is("a\ny\nc\n x\n")),
        (|options| options.take_first_loose_match = true, exact_above, hunks, Expected::Is("a\ny\nc\n x\n")),
        (|options| options.keep_given_indentation = true, " a\n", "@@\n-a\n+x", Expected::Is("x\n")),
        (|options| options.out_of_order = false, " a\n\ta\n", "@@ a\n+x", Expected::Ambiguous),
        (
            |options| options.take_first_loose_match = true,
            " a\n\ta\n",
            "@@ a\n+x",
            Expected::Is(" a\nx\n\ta\n"),
        ),
        // A removed line that matches loosely is not missing.
        (
            |options| options.allow_missing_last_line = true,
            "x\n \nz\n",
            "@@\n-x\n-\n+y",
            Expected::Is("y\nz\n"),
        ),
        (|options| options.allow_missing_last_line = true, "x\nz\n", "@@\n-x\n-\n+y", Expected::Is("y\nz\n")),
        (
            |options| options.allow_missing_last_line = true,
            "x\nz\nx \n\n",
            "@@\n-x\n-\n+y",
            Expected::Ambiguous,
        ),
    ];
    for (choose, content, hunks, expected) in cases {
        let mut options = ours();
        choose(&mut options);
        let found = apply(content, hunks, &options);
        match expected {
            Expected::Is(text) => assert_eq!(found.as_deref(), Ok(*text), "{hunks}\n{options:?}"),
            Expected::NotFound | Expected::Ambiguous | Expected::Refused => {
                assert_eq!(found.as_ref().err(), Some(expected), "{hunks}\n{options:?}");
            }
        }
    }
}

#[test]
fn an_ambiguous_loose_hint_needs_a_unique_match() {
    let methods = "class A\n  def f\n    a\n    c\nclass B\n  def f\n    c\n    d\n";
    check(&[
        // The second hint matches the start of the lower line only because the search is past the upper one.
        (
            "impl Foo {\n  a\n  b\n}\nimpl FooBar {\n  b\n}\n",
            "@@ impl Foo\n-  a\n+  A\n@@ impl Foo\n-  b\n+  B",
            Expected::Ambiguous,
            Expected::NotFound,
        ),
        (
            methods,
            "@@ def f\n-    a\n+    x\n@@ def f\n-    c\n+    y",
            Expected::Ambiguous,
            Expected::Is("class A\n  def f\n    x\n    c\nclass B\n  def f\n    y\n    d\n"),
        ),
        (
            methods,
            "@@ def f\n-    a\n+    x\n@@ def f\n-    d\n+    y",
            Expected::Is("class A\n  def f\n    x\n    c\nclass B\n  def f\n    c\n    y\n"),
            Expected::Is("class A\n  def f\n    x\n    c\nclass B\n  def f\n    c\n    y\n"),
        ),
        // An earlier hunk has taken the match above.
        (
            methods,
            "@@   def f\n     a\n-    c\n+    x\n@@ def f\n-    c\n+    y",
            Expected::Is("class A\n  def f\n    a\n    x\nclass B\n  def f\n    y\n    d\n"),
            Expected::Is("class A\n  def f\n    a\n    x\nclass B\n  def f\n    y\n    d\n"),
        ),
        (" f\nb\n\tf\n", "@@\n-b\n+y\n@@ f\n+x", Expected::Ambiguous, Expected::Is(" f\ny\n\tf\nx\n")),
        // An exact hint above is preferred to a loose one below.
        (
            "f\nb\n  f\n",
            "@@\n-b\n+y\n@@ f\n+x",
            Expected::Is("f\nx\ny\n  f\n"),
            Expected::Is("f\ny\n  f\nx\n"),
        ),
    ]);
}

#[test]
fn only_the_reference_disambiguates_by_trailing_empty_lines() {
    check(&[
        ("x\nz\nx \n\nw\n", "@@\n-x\n+y\n", Expected::Ambiguous, Expected::Is("x\nz\ny\n\nw\n")),
        ("x\n \nz\n", "@@\n-x\n+y\n", Expected::Is("y\n \nz\n"), Expected::Is("y\n \nz\n")),
        ("f\na\n", "@@\n@@ f\n-a\n+b", Expected::Is("f\nb\n"), Expected::Refused),
        // The reference drops an empty line at the end of the new lines along with that of the old lines.
        ("\nb\n", "@@\n \n-", Expected::NotFound, Expected::Is("b\n")),
        ("a\nb\n", "@@\n-a\n-\n+", Expected::NotFound, Expected::Is("b\n")),
        ("a\nb\n", "@@\n a\n-", Expected::NotFound, Expected::Is("a\nb\n")),
    ]);
}

#[test]
fn lines_taken_by_earlier_hunks_are_not_ambiguous() {
    check(&[(
        "a\na\n a\n",
        "@@\n-a\n+x\n@@\n-a\n+y\n@@\n-a\n+z",
        Expected::Is("x\ny\n z\n"),
        Expected::Is("x\ny\nz\n"),
    )]);
}

#[test]
fn a_prefix_hint_with_too_many_matches_is_ignored() {
    let content = |count: usize| format!("x\n{}z\n", "fn f\n".repeat(count));
    for (count, is_found) in [(64, true), (65, false)] {
        let found = edited(&content(count), "@@ fn\n-z\n+y", &ours());
        assert_eq!(found.is_ok(), is_found, "{count}: {found:?}");
    }
}

#[test]
fn additions_alone_are_inserted_after_their_hint() {
    check(&[
        ("a\nb\nc\n", "@@ a\n+x", Expected::Is("a\nx\nb\nc\n"), Expected::Is("a\nb\nc\nx\n")),
        (
            "a\nb\nc\n",
            "@@ a\n+x\n*** End of File",
            Expected::Is("a\nb\nc\nx\n"),
            Expected::Is("a\nb\nc\nx\n"),
        ),
        ("a\nb\n", "@@\n+x", Expected::Is("a\nb\nx\n"), Expected::Is("a\nb\nx\n")),
        ("", "+x", Expected::Is("x\n"), Expected::Is("x\n")),
        ("a\nb\nc\n", "@@ a\n+x\n@@ b\n+y", Expected::Is("a\nx\nb\ny\nc\n"), Expected::Is("a\nb\nc\nx\ny\n")),
        ("a\nb\n", "@@ a\n+x\n@@ a\n+y", Expected::Is("a\nx\ny\nb\n"), Expected::NotFound),
        (" a\n\ta\n", "@@ a\n+x", Expected::Ambiguous, Expected::Is(" a\n\ta\nx\n")),
        ("a\nb\n", "@@ c\n+x", Expected::NotFound, Expected::NotFound),
    ]);
}

#[test]
fn the_final_newline_is_kept_unless_the_last_line_changes() {
    check(&[
        ("a\nb", "@@\n-a\n+x\n b", Expected::Is("x\nb"), Expected::Is("x\nb\n")),
        ("a\nb", "@@\n a\n+x\n b", Expected::Is("a\nx\nb"), Expected::Is("a\nx\nb\n")),
        ("a\nb", "@@\n-b\n+x", Expected::Is("a\nx\n"), Expected::Is("a\nx\n")),
        ("a\nb", "@@\n b\n+x", Expected::Is("a\nb\nx\n"), Expected::Is("a\nb\nx\n")),
        ("a\nb", "@@\n-b", Expected::Is("a\n"), Expected::Is("a\n")),
        ("a\nb\n", "@@\n-a\n+x", Expected::Is("x\nb\n"), Expected::Is("x\nb\n")),
        ("a", "@@\n-a", Expected::Is(""), Expected::Is("")),
        ("a", "@@\n a\n+x", Expected::Is("a\nx\n"), Expected::Is("a\nx\n")),
        ("a", "@@\n-a\n+x", Expected::Is("x\n"), Expected::Is("x\n")),
    ]);
}

#[test]
fn new_lines_take_the_line_ends_of_their_neighbours() {
    check(&[
        (
            "a\r\nb\r\n",
            "@@\n-a\n+x\n+y\n b",
            Expected::Is("x\r\ny\r\nb\r\n"),
            Expected::Is("x\r\ny\r\nb\r\n"),
        ),
        (
            "a\nb\r\nc\r\n",
            "@@\n b\n+x\n c",
            Expected::Is("a\nb\r\nx\r\nc\r\n"),
            Expected::Is("a\nb\r\nx\nc\r\n"),
        ),
        ("a\nb\r\nc\n", "@@\n-b\n+x", Expected::Is("a\nx\r\nc\n"), Expected::Is("a\nx\nc\n")),
        ("a\rb\rc\r", "@@\n b\n+x", Expected::Is("a\rb\rx\rc\r"), Expected::Is("a\rb\rx\rc\r")),
        ("a\r\nb", "@@\n b\n+x", Expected::Is("a\r\nb\r\nx\r\n"), Expected::Is("a\r\nb\r\nx\r\n")),
        ("b\r\n", "@@\n+x\n b", Expected::Is("x\r\nb\r\n"), Expected::Is("x\r\nb\r\n")),
    ]);
}

#[test]
fn a_byte_order_mark_is_preserved_and_ignored() {
    check(&[
        ("\u{FEFF}a\nb\n", "@@\n-a\n+x\n b", Expected::Is("\u{FEFF}x\nb\n"), Expected::NotFound),
        ("\u{FEFF}a\nb\n", "@@ a\n-b\n+x", Expected::Is("\u{FEFF}a\nx\n"), Expected::NotFound),
        ("\u{FEFF}a\nb\n", "@@\n-b\n+x", Expected::Is("\u{FEFF}a\nx\n"), Expected::Is("\u{FEFF}a\nx\n")),
    ]);
}

#[test]
fn stacked_hints_narrow_step_by_step() {
    let twins = "class A\n  def f\n    1\nclass B\n  def f\n    1\n";
    check(&[
        (
            twins,
            "@@ class B\n@@   def f\n-    1\n+    2",
            Expected::Is("class A\n  def f\n    1\nclass B\n  def f\n    2\n"),
            Expected::Refused,
        ),
        (
            twins,
            "@@ class B\n@@ def f\n-    1\n+    2",
            Expected::Is("class A\n  def f\n    1\nclass B\n  def f\n    2\n"),
            Expected::Refused,
        ),
        (
            twins,
            "@@ class A\n@@ def f\n+    0",
            Expected::Is("class A\n  def f\n    0\n    1\nclass B\n  def f\n    1\n"),
            Expected::Refused,
        ),
        (twins, "@@ class B\n@@ class A\n-    1\n+    2", Expected::NotFound, Expected::Refused),
        // The inner hint is below the outer one, even if they are equal.
        ("f\na\nf\na\n", "@@ f\n@@ f\n-a\n+x", Expected::Is("f\na\nf\nx\n"), Expected::Refused),
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
fn hunks_out_of_file_order_need_unique_matches() {
    check(&[
        ("a\nb\nc\n", "@@\n-c\n+z\n@@\n-a\n+x", Expected::Is("x\nb\nz\n"), Expected::NotFound),
        ("a\nb\nc\n", "@@ c\n+z\n@@ a\n+x", Expected::Is("a\nx\nb\nc\nz\n"), Expected::NotFound),
        // Each hunk must match exactly once.
        ("a\nb\na\nc\n", "@@\n-c\n+z\n@@\n-a\n+x", Expected::NotFound, Expected::NotFound),
        ("a\nb\nb\n", "@@\n-b\n+z\n@@\n-a\n+x", Expected::NotFound, Expected::NotFound),
        ("a\nb\na\nc\n", "@@\n-c\n+z\n@@ a\n+x", Expected::NotFound, Expected::NotFound),
        // Shared context is allowed; changing a line twice is not.
        ("a\nb\nc\n", "@@\n-a\n+x\n b\n@@\n b\n-c\n+z", Expected::Is("x\nb\nz\n"), Expected::NotFound),
        ("a\nb\n", "@@\n-a\n-b\n+x\n@@\n-b\n+y", Expected::NotFound, Expected::NotFound),
        // A loose match below does not win over an exact one above.
        (
            "a\nb\nc\n a\n",
            "@@\n-b\n+y\n@@\n-a\n+x",
            Expected::Is("x\ny\nc\n a\n"),
            Expected::Is("a\ny\nc\nx\n"),
        ),
        // A match above that is just as loose is not better.
        ("  a\nb\n a\n", "@@\n-b\n+y\n@@\n-a\n+x", Expected::Is("  a\ny\n x\n"), Expected::Is("  a\ny\nx\n")),
        // An exact match above does not count if the previous hunk has taken it.
        ("a\nb\n a\n", "@@\n-a\n+x\n@@\n-a\n+y", Expected::Is("x\nb\n y\n"), Expected::Is("x\nb\ny\n")),
    ]);
    assert_eq!(diagnostics_of("a\nb\nc\n", "@@\n-c\n+z\n@@\n-a\n+x"), [D::OutOfOrder { file_line: 1 }]);
}

#[test]
fn a_blank_line_inside_an_addition_is_an_empty_line() {
    let body = "*** Add File: a\n+1\n\n+2\n\n";
    assert_eq!(applied(&files([]), body, &ours()), Ok(files([("a", "1\n\n2\n")])));
    let error = planned(&files([]), body, &reference()).unwrap_err();
    assert!(matches!(*error.kind, E::Refused { .. }), "{error}");
}

#[test]
fn unicode_matches_canonically_but_not_compatibly() {
    check(&[
        ("caf\u{E9}\n", "@@\n-cafe\u{301}\n+x", Expected::Is("x\n"), Expected::NotFound),
        ("cafe\u{301}\n", "@@\n-caf\u{E9}\n+x", Expected::Is("x\n"), Expected::NotFound),
        ("x\u{B2}\n", "@@\n-x2\n+y", Expected::NotFound, Expected::NotFound),
        ("“a” b\n", "@@\n-\"a\" b\n+y", Expected::Is("y\n"), Expected::Is("y\n")),
        // Context keeps the bytes of the file.
        ("caf\u{E9}\na\n", "@@\n cafe\u{301}\n-a\n+b", Expected::Is("caf\u{E9}\nb\n"), Expected::NotFound),
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
fn an_applied_patch_is_reported_as_such() {
    let cases = [
        ("a\nnew_b\nc\n", "@@\n a\n-old_b\n+new_b\n c", 1),
        (
            "DEFAULT_TIMEOUT = 60\n",
            "@@ DEFAULT_TIMEOUT = 30\n-DEFAULT_TIMEOUT = 30\n+DEFAULT_TIMEOUT = 60",
            1,
        ),
        ("x\na\nc\n", "@@\n a\n-b\n c", 2),
        // The old lines are still there, but only within the new ones.
        ("a\nb\n", "@@\n a\n+b\n*** End of File", 1),
    ];
    for (content, hunks, file_line) in cases {
        let error = edited(content, hunks, &ours()).unwrap_err();
        assert_eq!(*error.kind, E::AlreadyApplied { file_line }, "{hunks}");
        assert!(error.to_string().contains("already applied"));
    }
    // No proof: a closing brace, a line that occurs twice, or new lines while the old ones are there.
    let unproven = [
        ("}\n", "@@\n-foo\n+}"),
        ("b\nb\n", "@@\n-a\n+b"),
        ("b\na\nf\n", "@@ f\n-a\n+b"),
        ("a\nb\nf\n", "@@ f\n-a\n+b"),
        // Matched loosely, the old lines extend past the new ones or occur again below.
        ("a\nc\nz\n", "@@\n- a\n-c\n+a\n*** End of File"),
        ("b\n  b\nz\n", "@@\n- b\n+b\n*** End of File"),
    ];
    for (content, hunks) in unproven {
        let error = edited(content, hunks, &ours()).unwrap_err();
        assert!(matches!(*error.kind, E::ContextNotFound { .. }), "{error}");
    }
}

#[test]
fn loose_levels_hints_and_gaps_are_reported() {
    // The differences themselves are covered by the tests of messages.
    let loose = |level, file_line| D::LooseMatch { level, file_line, whitespace: None };
    let without_difference = |mut kind: D| {
        if let D::LooseMatch { whitespace, .. } = &mut kind {
            *whitespace = None;
        }
        kind
    };
    let cases: &[(&str, &str, &[D])] = &[
        ("a\nx\n", "@@\n-x\n+y", &[]),
        ("a\nx \n", "@@\n-x\n+y", &[loose(MatchLevel::TrailingWhitespace, 2)]),
        (
            "a\n x\n",
            "@@\n-x\n+y",
            &[
                loose(MatchLevel::SurroundingWhitespace, 2),
                D::Reindented { file_line: 2, removed: None, added: Some("1 space".to_owned()) },
            ],
        ),
        ("a\n x\n", "@@\n-x", &[loose(MatchLevel::SurroundingWhitespace, 2)]),
        ("a\n‘x’\n", "@@\n-'x'\n+y", &[loose(MatchLevel::Typography, 2)]),
        ("x\nx\n", "@@\n-x\n+y", &[D::MultipleMatches { file_line: 1, other: 2 }]),
        (
            "  f\nx\n",
            "@@ f\n-x\n+y",
            &[D::LooseHint { level: MatchLevel::SurroundingWhitespace, file_line: 1 }],
        ),
        ("fn f(a: u8) {\nx\n", "@@ fn f(\n-x\n+y", &[D::HintPrefix { file_line: 1 }]),
        ("x\nz\n", "@@\n-x\n+y\n\n", &[D::MissingTrailingContext { file_line: 1 }]),
        ("x\n \nz\n", "@@\n-x\n+y\n", &[D::MissingTrailingContext { file_line: 1 }]),
        ("x\n\nz\n", "@@\n-x\n+y\n", &[]),
        ("x\n", "@@\n x", &[D::NoChange]),
    ];
    for (content, hunks, expected) in cases {
        let found: Vec<D> = diagnostics_of(content, hunks).into_iter().map(without_difference).collect();
        assert_eq!(found, *expected, "{hunks}");
    }
}

#[test]
fn end_of_file_anchors_a_hunk() {
    check(&[
        ("x\na\nx\n", "@@\n-x\n+y\n*** End of File", Expected::Is("x\na\ny\n"), Expected::Is("x\na\ny\n")),
        ("x\na\n", "@@\n-x\n+y\n*** End of File", Expected::NotFound, Expected::NotFound),
    ]);
}
