//! Error messages for refused patches, as a model reads them.

use pintle_patch::{ApplyErrorKind, UnusableMatch, parse};

use crate::support::{edited, files, ours, planned};

fn message(content: &str, hunks: &str) -> String {
    edited(content, hunks, &ours()).expect_err("the patch is refused").to_string()
}

#[test]
fn the_first_difference_and_the_most_similar_position() {
    let content = "fn main() {\n    let a = 1;\n    let b = 2;\n    print(a);\n}\n";
    assert_eq!(
        message(content, "@@\n     let a = 1;\n     let b = 3;\n-    print(a);\n+    print(b);"),
        "f, hunk 1 (patch line 3): the old lines are not in the file
first difference at line 3:
  expected: `    let b = 3;`
  found:    `    let b = 2;`
nearest places:
  line 2: `    let a = 1;`"
    );
}

#[test]
fn a_missing_line_is_compared_with_similar_ones() {
    let content = "alpha(1);\nbeta(22);\ngamma(3);\n";
    assert_eq!(
        message(content, "@@\n-beta(2);\n+delta();"),
        "f, hunk 1 (patch line 3): the old lines are not in the file
first difference at line 2:
  expected: `beta(2);`
  found:    `beta(22);`
nearest places:
  line 2: `beta(22);`"
    );
}

#[test]
fn old_lines_past_the_end_of_the_file() {
    assert_eq!(
        message("one\ntwo\n", "@@\n one\n two\n-three"),
        "f, hunk 1 (patch line 3): the old lines are not in the file
first difference at line 3:
  expected: `three`
  found:    the end of the file
nearest places:
  line 1: `one`"
    );
}

#[test]
fn a_missing_hint() {
    assert_eq!(
        message("def load():\n    1\n", "@@ def loads():\n-    1\n+    2"),
        "f, hunk 1 (patch line 3): no line of the file matches the hint `def loads():`; the old lines are at line 2: correct or drop the hint
most like it:
  line 1: `def load():`"
    );
}

#[test]
fn the_positions_of_an_ambiguous_match() {
    assert_eq!(
        message("  x\ny\n\tx\n", "@@\n-x\n+z"),
        "f, hunk 1 (patch line 3): the old lines match several places ignoring leading and trailing blanks; add context lines
they match:
  line 1: `  x`
  line 3: `\tx`"
    );
}

#[test]
fn old_lines_at_an_unusable_position() {
    let cases = [
        ("a\nb\na\n", "@@\n-b\n+y\n@@\n-b\n+z", UnusableMatch::BeforePreviousHunk { file_line: 2 }),
        ("a\nh\nb\n", "@@ h\n-a\n+z", UnusableMatch::BeforeHint { file_line: 1 }),
        ("a\nb\n", "@@\n-a\n+z\n*** End of File", UnusableMatch::NotAtEnd { file_line: 1 }),
    ];
    for (content, hunks, expected) in cases {
        let error = edited(content, hunks, &ours()).unwrap_err();
        let ApplyErrorKind::ContextNotFound { unusable_match, .. } = *error.kind else { panic!("{error}") };
        assert_eq!(unusable_match, Some(expected));
    }
}

#[test]
fn positions_are_ranked_by_similarity() {
    let cases: &[(&str, &str, &[usize])] = &[
        // More matching lines rank higher.
        ("a\nx\ny\na\nb\ny\n", " a\n b\n-c", &[4, 1]),
        // A line with a word weighs more than braces, a brace more than a blank line.
        ("f();\nx\ny\nz\n}\n}\n", " f();\n }\n }\n-gone", &[1, 4, 3]),
        ("–\nx\ny\nz\n}\n}\n", " –\n }\n }\n-gone", &[1, 4, 3]),
        ("a\n\n}\nb\n", " }\n-gone", &[3]),
        ("a\n\n\nb\n", " \n-gone", &[]),
        // At most three are listed, in file order if they rank the same.
        ("a\nb\na\nb\na\nb\na\n", " a\n-c", &[1, 3, 5]),
        // A position is named by the line of the hunk's first line, if that is not blank or outside the file.
        ("a\nb\nc\n", " x\n c\n-y", &[2]),
        ("c\n", " x\n c\n-y", &[1]),
        ("b\nc\n", " w\n x\n-v\n }\n c", &[2]),
        ("a\n\nc\n", " \n c\n-y", &[3]),
        ("abXdef\n", " }\n-abcdef", &[1]),
        // An almost equal line ranks above a brace.
        ("}\na\n}\nabXdef\n", " }\n-abcdef", &[3]),
        // If no line is equal, lines that share at least half of their text rank by how much they share.
        ("abXXXX\nabcXXX\nXXXdef\nabXXef\n", "-abcdef", &[4, 2, 3]),
        ("abcXXXX\nabcXdef\n", "-abcdef", &[2]),
        ("aaa\naaaac\n", "-aaaa", &[2, 1]),
        ("abcdefghXXXXXX\nabcdefg\n", "-abcdefgh", &[2, 1]),
        ("  abcd\n", "-abce  ", &[1]),
        ("1\n2\nabcd\n", " }\n }\n-abce", &[1]),
        ("abce\nXbcd\nabXX\nabcX\nabcY\nXXXX\n", "-abcd", &[1, 2, 4]),
        // The first distinctive line is compared.
        ("1\nbeta2\nalpha2\n", " }\n-alpha\n-beta", &[2]),
        ("\na\n", "-\n-", &[]),
    ];
    for (content, lines, expected) in cases {
        let error = edited(content, &format!("@@\n{lines}\n+z"), &ours()).unwrap_err();
        let ApplyErrorKind::ContextNotFound { nearest, .. } = *error.kind else { panic!("{error}") };
        let found: Vec<usize> = nearest.iter().map(|candidate| candidate.file_line).collect();
        assert_eq!(found, *expected, "{lines}\nin\n{content}");
    }
}

#[test]
fn lines_changed_by_an_earlier_section() {
    let cases = [
        ("a\nx\n", "a", true),
        // The byte-order mark is not part of line 1, before or after the change.
        ("\u{FEFF}a\nx\n", "a", true),
        ("a\nx\n", "never", false),
    ];
    for (content, old, expected) in cases {
        let body = format!("*** Update File: f\n@@\n-a\n+b\n*** Update File: f\n@@\n-{old}\n+c");
        let error = planned(&files([("f", content)]), &body, &ours()).unwrap_err();
        assert_eq!(error.line, 7);
        let blames_earlier_part =
            error.to_string().contains("an earlier part of this patch changed or moved them");
        assert_eq!(blames_earlier_part, expected, "{error}");
    }
}

#[test]
fn missing_files() {
    let before = files([("a", "1\n")]);
    let cases = [
        ("*** Delete File: b", "b (patch line 2): cannot delete: the file does not exist"),
        ("*** Update File: b\n@@\n-1", "b (patch line 2): cannot update: the file does not exist"),
        (
            "*** Update File: a\n*** Move to: b\n*** Update File: a\n@@\n-1",
            "a (patch line 4): cannot update: the file does not exist; patch line 2 deletes or moves it",
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(planned(&before, body, &ours()).unwrap_err().to_string(), expected);
    }
}

#[test]
fn long_lines_are_shown_around_the_difference() {
    let line = |end: &str| format!("{}{end}{}", "x".repeat(50_000), "y".repeat(50_000));
    let text = message(&line("é1"), &format!("@@\n-{}\n+z", line("é2")));
    assert!(text.contains("é1y") && text.contains("é2y"), "{text}");
    assert!(text.chars().count() < 800, "{text}");
}

#[test]
fn a_message_is_bounded_for_a_long_path() {
    let path = format!("{}/name.rs", "d".repeat(1 << 20));
    let before = files([("a", "1\n"), (&path, "x \n")]);
    let refused = [
        format!("*** Delete File: {path}s"),
        format!("*** Update File: {path}\n*** Move to: a"),
        format!("*** Update File: {path}\n@@\n-y\n+z"),
    ];
    for body in refused {
        let text = planned(&before, &body, &ours()).unwrap_err().to_string();
        assert!(text.contains("/name.rs") && text.len() < 1500, "{} bytes", text.len());
    }
    let unparsed = parse(&format!("*** Begin Patch\n*** Update File: {path}\n*** End Patch\n")).unwrap_err();
    assert!(unparsed.to_string().len() < 1500, "{} bytes", unparsed.to_string().len());
    let loose = planned(&before, &format!("*** Update File: {path}\n@@\n-x\n+z"), &ours()).unwrap();
    assert!(loose.diagnostics[0].to_string().len() < 1500, "{:?}", loose.diagnostics[0].kind);
}

#[test]
fn a_message_is_bounded_for_a_large_hunk() {
    let content: String = (0..2000).map(|line| format!("line {line}\n")).collect();
    let hunk: String = (0..2000).map(|line| format!("-line {}\n", line * 2)).collect();
    assert!(message(&content, &format!("@@\n{hunk}")).len() < 1000);
}
