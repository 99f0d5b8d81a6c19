mod deletions;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::tests::harness::Harness;

fn once<'a>(old: &'a str, new: &'a str) -> Edit<'a> {
    Edit { old, new, all: false, expected: None }
}

/// Returns the new content of a file, or the message for the model.
fn edited(file: &[u8], edit: &Edit<'_>) -> Result<Vec<u8>, String> {
    replace("f", file, edit).map(|replaced| replaced.content).map_err(|error| error.for_model().to_owned())
}

#[test]
fn exact_text_is_replaced_and_other_bytes_stay() {
    let cases: [(&[u8], &str, &str, &[u8]); 10] = [
        (b"let a = 1;\n", "1", "2", b"let a = 2;\n"),
        (b"a\nb\nc\n", "b\n", "", b"a\nc\n"),
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\n", "\nb", "\nx", b"a\r\nx\r\n"),
        (b"a\r\nb", "b", "x\ny", b"a\r\nx\r\ny"),
        (b"lf\ncrlf\r\nlf\n", "crlf", "x\ny", b"lf\nx\r\ny\r\nlf\n"),
        (b"lf\ncrlf\r\nlf2\n", "lf2", "x\ny", b"lf\ncrlf\r\nx\ny\n"),
        (b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n"),
        (b"\xEF\xBB\xBFa\n", "a", "b", b"\xEF\xBB\xBFb\n"),
        (b"caf\xE9 = 1 # \xE9\n", " = 1 # ", " = 2 # ", b"caf\xE9 = 2 # \xE9\n"),
    ];
    for (file, old, new, expected) in cases {
        let result = edited(file, &once(old, new)).unwrap();
        assert_eq!(result, expected, "{old:?} in {:?}", String::from_utf8_lossy(file));
    }
}

#[test]
fn the_only_loose_match_is_replaced_and_reported() {
    let cases = [
        ("keep  \nold\n", "keep\nold\n", "keep\nnew\n", "keep  \nnew\n", "trailing"),
        ("say “hi”\n", "say \"hi\"\n", "say \"ho\"\n", "say \"ho\"\n", "typographic"),
    ];
    for (file, old, new, expected, note) in cases {
        let replaced = replace("f", file.as_bytes(), &once(old, new)).unwrap();
        assert_eq!(String::from_utf8(replaced.content).unwrap(), expected, "{old:?}");
        assert_eq!(replaced.lines, [1], "{old:?}");
        assert!(replaced.notes.len() == 1 && replaced.notes[0].contains(note), "{:?}", replaced.notes);
    }
}

#[test]
fn new_lines_are_indented_like_the_file() {
    let cases = [
        ("\told", "    old", "    new", "\tnew", "1 tab in place of 4 spaces"),
        ("\told\r\n\tlast", "    old\n    last", "    new\n    last", "\tnew\r\n\tlast", "1 tab in place of"),
        ("\told", "    old\n", "    new\n", "\tnew\n", "1 tab in place of"),
        (
            "class A:\n    def f(self):\n        return 1\n",
            "def f(self):\n    return 1\n",
            "def f(self):\n    if self:\n        return 2\n",
            "class A:\n    def f(self):\n        if self:\n            return 2\n",
            "4 spaces more",
        ),
        (
            "if x:\n  y()\n",
            "    if x:\n      y()\n",
            "    if x:\n      z()\n",
            "if x:\n  z()\n",
            "4 spaces less",
        ),
    ];
    for (file, old, new, expected, note) in cases {
        let replaced = replace("f", file.as_bytes(), &once(old, new)).unwrap();
        assert_eq!(String::from_utf8(replaced.content).unwrap(), expected, "{old:?}");
        assert!(replaced.notes.len() == 2 && replaced.notes[1].contains(note), "{:?}", replaced.notes);
    }
}

#[test]
fn unclear_indentation_is_refused() {
    let file = b"if x:\n\ty()\n";
    insta::assert_snapshot!(edited(file, &once("if x:\n    y()\n", "if x:\n    z()\n")).unwrap_err(), @"
    old_string occurs in f only with other indentation, at line 1, and the difference is not the same on every line. Give both with the indentation of the file
      line 2: old_string has 4 spaces, the file 1 tab
    ");
    insta::assert_snapshot!(edited(file, &once("    y()\n", "    y()\n  z()\n")).unwrap_err(), @"
    old_string occurs in f only with other indentation, at line 2, and line `  z()` of new_string cannot be indented to fit. Give both with the indentation of the file
      line 2: old_string has 4 spaces, the file 1 tab
    ");
}

#[test]
fn missing_text_is_answered_with_nearest_lines() {
    let file = b"fn one() {\n    call(1);\n    done();\n}\n\nfn two() {\n    call(2);\n    done();\n}\n";
    let error = edited(file, &once("fn two() {\n    call(3);\n    done();\n}", "x")).unwrap_err();
    insta::assert_snapshot!(error, @"
    old_string does not occur in f
    first difference at line 7:
      expected: `    call(3);`
      found:    `    call(2);`
    nearest places:
      line 6: `fn two() {`
      line 1: `fn one() {`
    ");
    let error = edited(b"", &once("a", "b")).unwrap_err();
    insta::assert_snapshot!(error, @"old_string does not occur in f: the file is empty");
}

#[test]
fn duplicates_are_listed() {
    let file = b"x = 1\n\nx = 1\nx  =  1\n";
    insta::assert_snapshot!(edited(file, &once("x = 1", "x = 2")).unwrap_err(), @"old_string occurs 2 times in f, at lines 1, 3. Add neighbouring lines to make it unique, or set replace_all to replace every one");
    insta::assert_snapshot!(edited(b"\tx = 1\n    x = 1\n", &once("\t\tx = 1\n", "\t\tx = 2\n")).unwrap_err(), @"
    old_string does not occur in f exactly, and ignoring leading and trailing blanks it occurs several times
    it matches:
      line 1: `	x = 1`
      line 2: `    x = 1`
    ");
    let many = "x\n".repeat(30);
    insta::assert_snapshot!(edited(many.as_bytes(), &once("x", "y")).unwrap_err(), @"old_string occurs 30 times in f, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, and 20 more. Add neighbouring lines to make it unique, or set replace_all to replace every one");
}

#[test]
fn an_applied_edit_is_recognized() {
    insta::assert_snapshot!(edited(b"a\nnew line\nb\n", &once("a\nold line\nb\n", "a\nnew line\nb\n")).unwrap_err(), @"old_string does not occur in f, but new_string does, at line 1: already applied?");
    insta::assert_snapshot!(edited(b"a \n", &once("a\n", "a \n")).unwrap_err(), @"f already has new_string where old_string fits but for blanks or typography");
}

#[test]
fn the_expected_count_must_match() {
    let every = |expected, all| Edit { old: "x", new: "y", all, expected };
    assert_eq!(edited(b"x x x", &every(None, true)).unwrap(), b"y y y");
    assert_eq!(edited(b"x x x", &every(Some(3), false)).unwrap(), b"y y y");
    assert_eq!(edited(b"x", &every(Some(1), false)).unwrap(), b"y");
    insta::assert_snapshot!(edited(b"x x x", &every(Some(2), false)).unwrap_err(), @"old_string occurs 3 times in f, at line 1; expected_replacements is 2. Add neighbouring lines to name fewer places, or set it to 3 to replace every one");
    insta::assert_snapshot!(edited(b"x", &every(Some(2), false)).unwrap_err(), @"old_string occurs once in f, at line 1; expected_replacements is 2");
    assert_eq!(edited(b"aaaa", &Edit { old: "aa", new: "b", all: true, expected: None }).unwrap(), b"bb");
}

/// Minified files have one long line; searching for its end at every occurrence would take forever.
#[test]
fn many_matches_in_one_line_take_linear_time() {
    let file = "x;".repeat(1_000_000);
    let edit = Edit { old: ";", new: ";\n", all: true, expected: None };
    assert_eq!(edited(file.as_bytes(), &edit).unwrap(), "x;\n".repeat(1_000_000).into_bytes());
}

#[tokio::test]
async fn an_edit_reports_its_lines() {
    let harness = Harness::new();
    harness.write("a.rs", "fn main() {\n    old();\n    old();\n}\n");
    let arguments =
        json!({"file_path": "a.rs", "old_string": "old()", "new_string": "new()", "replace_all": true});
    let execution = harness.execute(EditFile::new(), &arguments.to_string()).await;
    assert_eq!(execution.result.text(), "Replaced 2 occurrences in a.rs (at lines 2, 3)");
    insta::assert_snapshot!(execution.changes[0].diff, @"
    --- a/a.rs
    +++ b/a.rs
    @@ -1,4 +1,4 @@
     fn main() {
    -    old();
    -    old();
    +    new();
    +    new();
     }
    ");
    assert_eq!(harness.text("a.rs"), "fn main() {\n    new();\n    new();\n}\n");

    let arguments =
        json!({"file_path": "a.rs", "old_string": "fn main() { \n", "new_string": "fn test() {\n"});
    insta::assert_snapshot!(harness.call(EditFile::new(), &arguments.to_string()).await, @"
    ok: Replaced 1 occurrence in a.rs (at line 1)
    Note: old_string matched only ignoring trailing blanks (line 1, column 12: old_string has 1 space, the file none); check that the result is as you want it
    ");
}

#[tokio::test]
async fn failed_edits_explain_themselves() {
    let harness = Harness::new();
    harness.write("main.rs", "x\n");
    harness.write("utf16.txt", b"\xFF\xFEx\0\n\0");
    let cases = [
        json!({"file_path": "main.rs", "old_string": "", "new_string": "y"}),
        json!({"file_path": "main.rs", "old_string": "x", "new_string": "x"}),
        json!({"file_path": "main.rs", "old_string": "x\n", "new_string": "x\r\n"}),
        json!({"file_path": "mian.rs", "old_string": "x", "new_string": "y"}),
        json!({"file_path": ".", "old_string": "x", "new_string": "y"}),
        json!({"file_path": "utf16.txt", "old_string": "x\n", "new_string": "y\n"}),
    ];
    let mut answers = Vec::new();
    for arguments in cases {
        answers.push(harness.call(EditFile::new(), &arguments.to_string()).await);
    }
    insta::assert_snapshot!(answers.join("\n"), @"
    error: Tool error (edit_file): old_string is empty, so it does not say what to replace; to create a file or to replace all of one, write the whole file
    error: Tool error (edit_file): old_string and new_string are identical, so there is nothing to change
    error: Tool error (edit_file): old_string and new_string are identical, so there is nothing to change
    error: Tool error (edit_file): DIR/mian.rs does not exist. Did you mean main.rs?
    error: Tool error (edit_file): DIR is a directory, expected a file
    error: Tool error (edit_file): old_string does not occur in utf16.txt: the file is UTF-16; only UTF-8 and ASCII can be patched
    ");
}

#[tokio::test]
async fn the_gemini_variant_checks_the_expected_count() {
    let harness = Harness::new();
    harness.write("a", "x x\n");
    let call = |expected: usize| {
        let arguments = json!({
            "file_path": "a", "instruction": "Rename x.", "old_string": "x", "new_string": "y",
            "expected_replacements": expected,
        });
        let harness = &harness;
        async move { harness.call(EditFile::gemini(), &arguments.to_string()).await }
    };
    assert!(call(3).await.starts_with("error: "));
    assert_eq!(harness.text("a"), "x x\n");
    assert_eq!(call(2).await, "ok: Replaced 2 occurrences in a (at line 1)");
    assert_eq!(harness.text("a"), "y y\n");
}

proptest! {
    /// The result equals a replacement in LF text, converted to the line ends of the file.
    #[test]
    fn line_ends_do_not_affect_an_edit(
        before in "[ab\n]{0,12}",
        old in "[ab\n]{1,4}",
        new in "[xy\n]{0,4}",
        after in "[ab\n]{0,12}",
        crlf: bool,
    ) {
        prop_assume!(old != new);
        let file = format!("{before}{old}{after}");
        let expected = file.replace(&old, &new);
        let ends = |text: &str| if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        prop_assume!(!crlf || file.contains('\n'));
        let edit = Edit { old: &old, new: &new, all: true, expected: None };
        let result = edited(ends(&file).as_bytes(), &edit).unwrap();
        prop_assert_eq!(String::from_utf8(result).unwrap(), ends(&expected));
    }
}
