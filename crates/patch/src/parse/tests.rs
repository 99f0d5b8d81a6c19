use super::*;
use crate::error::ParseErrorKind;
use crate::limits::MAX_HINTS;
use crate::syntax::{AddFile, DeleteFile, Hunk, HunkLine, Operation, UpdateFile};
use crate::{Diagnostic, DiagnosticKind, Wrapper};
use proptest::prelude::*;

/// Wraps `body` in the markers of a patch.
fn wrap(body: &str) -> String {
    format!("*** Begin Patch\n{body}\n*** End Patch\n")
}

fn parse_ok(text: &str) -> Patch {
    parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn kinds(patch: &Patch) -> Vec<DiagnosticKind> {
    patch.diagnostics.iter().map(|diagnostic| diagnostic.kind.clone()).collect()
}

fn only_update(patch: &Patch) -> &UpdateFile {
    match patch.operations.as_slice() {
        [Operation::Update(update)] => update,
        other => panic!("expected one update, found {other:?}"),
    }
}

#[test]
fn paths_are_named_even_if_the_patch_does_not_parse() {
    let patch = wrap("*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@\n-x\n+y\n*** Delete File: c.rs");
    for (text, expected) in [
        (patch.clone(), &["src/a.rs", "src/b.rs", "c.rs"][..]),
        (patch.replace("-x", "x"), &["src/a.rs", "src/b.rs", "c.rs"]),
        ("*** Begin Patch\n*** Add File: a.rs\nx\n*** Add File: a.rs".to_owned(), &["a.rs"]),
        ("*** Begin Patch".to_owned(), &[]),
        ("ls -l".to_owned(), &[]),
        (String::new(), &[]),
    ] {
        assert_eq!(named_paths(&text), expected, "{text}");
    }
}

#[test]
fn every_operation_of_the_grammar() {
    let text = "*** Begin Patch
*** Add File: new file.txt
+one
+
+ three
*** Add File: empty.txt
*** Delete File: old.txt
*** Update File: a.txt
*** Move to: b.txt
@@ class A
@@     def f
 context
-gone
+come
@@
-last
*** End of File
*** Update File: c.txt
*** Move to: d.txt
*** End Patch
";
    let patch = parse_ok(text);
    let lines = vec!["one".to_owned(), String::new(), " three".to_owned()];
    let first = Hunk {
        hints: vec!["class A".to_owned(), "    def f".to_owned()],
        lines: vec![
            HunkLine::Context("context".to_owned()),
            HunkLine::Remove("gone".to_owned()),
            HunkLine::Add("come".to_owned()),
        ],
        end_of_file: false,
        line: 10,
    };
    let second = Hunk {
        hints: Vec::new(),
        lines: vec![HunkLine::Remove("last".to_owned())],
        end_of_file: true,
        line: 15,
    };
    let expected = [
        Operation::Add(AddFile { line: 2, ..AddFile::new("new file.txt", lines) }),
        Operation::Add(AddFile { line: 6, ..AddFile::new("empty.txt", [""; 0]) }),
        Operation::Delete(DeleteFile { path: "old.txt".to_owned(), line: 7 }),
        Operation::Update(UpdateFile {
            line: 8,
            ..UpdateFile::new("a.txt", vec![first, second]).with_move_to("b.txt")
        }),
        Operation::Update(UpdateFile {
            line: 18,
            ..UpdateFile::new("c.txt", Vec::new()).with_move_to("d.txt")
        }),
    ];
    assert_eq!(patch.operations, expected);
    assert_eq!(patch.diagnostics, []);
    assert_eq!(patch.paths(), ["new file.txt", "empty.txt", "old.txt", "a.txt", "b.txt", "c.txt", "d.txt"]);
    assert_eq!(patch.to_string(), text, "canonical text renders to itself");
}

#[test]
fn accepted_deviations_are_reported_without_effect() {
    use DiagnosticKind as K;
    let canonical = wrap("*** Update File: a.txt\n@@ fn f\n-x\n+y");
    let expected = parse_ok(&canonical).to_string();
    let crlf = canonical.replace('\n', "\r\n");
    let cases: &[(&str, &[K])] = &[
        (
            "Here it is:\n\n*** Begin Patch\n*** Update File: a.txt\n@@ fn f\n-x\n+y\n*** End Patch",
            &[K::TextBeforeBegin],
        ),
        // Markers that start nothing are ordinary text.
        (
            "*** End Patch\n*** Begin Patch\n*** Update File: a.txt\n@@ fn f\n-x\n+y\n*** End Patch\n*** End of File",
            &[K::TextBeforeBegin, K::TextAfterEnd],
        ),
        (
            "*** Begin Patch\n*** Update File: a.txt\n@@ fn f\n-x\n+y\n*** End Patch\nDone.\n",
            &[K::TextAfterEnd],
        ),
        (
            "```\n*** Begin Patch\n*** Update File: a.txt\n@@ fn f\n-x\n+y\n*** End Patch\n```",
            &[K::TextBeforeBegin, K::TextAfterEnd],
        ),
        (
            "<<'EOF'\n*** Begin Patch\n*** Update File: a.txt\n@@ fn f\n-x\n+y\n*** End Patch\nEOF\n",
            &[K::Heredoc],
        ),
        (
            "I fix it:\n\napply_patch <<EOF\n*** Begin Patch\n*** Update File: a.txt\n@@ fn f\n-x\n+y\n*** End Patch\nEOF\nDone.",
            &[K::TextBeforeBegin, K::Heredoc, K::TextAfterEnd],
        ),
        (
            "apply_patch <<\"PATCH\"\n*** Begin Patch\n*** Update File: a.txt\n@@ fn f\n-x\n+y\n*** End Patch\nPATCH",
            &[K::Heredoc],
        ),
        (
            "<<EOF\n*** Begin Patch\n*** Update File: a.txt\n@@ fn f\n-x\n+y\n*** End Patch\nEOF\nEOF\n",
            &[K::Heredoc, K::TextAfterEnd],
        ),
        ("*** Begin Patch\n*** Update File: a.txt\n@@ fn f\n-x\n+y\n", &[K::MissingEnd]),
        (
            "*** Begin Patch\n*** Update File: a.txt\n@@ fn f\n-x\n+y\n  *** End Patch ***\n\n",
            &[K::IndentedMarker, K::TrailingStars],
        ),
        (
            "Hi.\n*** Begin Patch ***\n*** Update File:a.txt\n@@ fn f\n-x\n+y\n",
            &[K::TextBeforeBegin, K::TrailingStars, K::MissingSpaceBeforePath, K::MissingEnd],
        ),
        (
            "*** Begin Patch ***\n*** Update File: a.txt ***\n@@ fn f\n-x\n+y\n*** End Patch ***",
            &[K::TrailingStars],
        ),
        (
            "  *** Begin Patch\n  *** Update File: a.txt\n@@ fn f\n-x\n+y\n  *** End Patch",
            &[K::IndentedMarker],
        ),
        (
            "*** Begin Patch\n*** Environment ID: x\n*** Update File: a.txt\n@@ fn f\n-x\n+y\n*** End Patch",
            &[K::EnvironmentId],
        ),
        (&crlf, &[K::CarriageReturns]),
        ("*** Begin Patch\n*** Update File: ./a.txt\n@@ fn f\n-x\n+y\n*** End Patch", &[K::DotSegments]),
        (
            "*** Begin Patch\n*** Update File: a.txt\n@@ -1,2 +1 @@ fn f\n-x\n+y\n*** End Patch",
            &[K::GitHunkHeader],
        ),
        (
            "*** Begin Patch\n*** Update File: a.txt\n@@ fn f @@\n-x\n+y\n*** End Patch",
            &[K::TrailingHintMarker],
        ),
        (
            "\u{FEFF}*** Begin Patch\n*** Update File: a.txt\n\n@@ fn f\n-x\n+y\n*** End Patch",
            &[K::ByteOrderMark],
        ),
        (
            "*** Begin Patch\n\n \n*** Update File: a.txt\n@@ fn f\n-x\n+y\n*** End Patch",
            &[K::BlankLineBetweenOperations],
        ),
        (
            "*** Begin Patch\n*** Update File:a.txt\n@@ fn f\n-x\n+y\n*** End Patch",
            &[K::MissingSpaceBeforePath],
        ),
        (
            "*** Begin Patch\n*** Update File: a.txt\n@@fn f\n-x\n+y\n*** End Patch",
            &[K::MissingSpaceBeforeHint],
        ),
        (
            "*** Begin Patch\n*** Update File: a.txt\n@@fn f @@\n-x\n+y\n*** End Patch",
            &[K::TrailingHintMarker, K::MissingSpaceBeforeHint],
        ),
        (
            "*** Begin Patch\n*** Update File: a.txt\n@@-1 +1 @@ fn f\n-x\n+y\n*** End Patch",
            &[K::GitHunkHeader],
        ),
        (
            "*** Begin Patch\n*** Update File: a.txt\n@@\n@@ fn f\n\n@@ -3 +3 @@\n-x\n+y\n*** End Patch",
            &[K::RepeatedHunkHeader, K::GitHunkHeader],
        ),
    ];
    for (text, expected_kinds) in cases {
        let patch = parse_ok(text);
        assert_eq!(patch.to_string(), expected, "{text}");
        assert_eq!(kinds(&patch), *expected_kinds, "{text}");
    }
}

#[test]
fn one_diagnostic_counts_repeated_deviations() {
    let patch = parse_ok(&wrap("*** Add File: a\n+1\n\n+2\n \n+3"));
    let [seen] = patch.diagnostics.as_slice() else { panic!("{:?}", patch.diagnostics) };
    assert_eq!((seen.line, seen.count), (4, 2));
    assert_eq!(
        seen.to_string(),
        "patch line 4: a blank line inside an addition was read as an empty line (2 times)"
    );
}

#[test]
fn a_diagnostic_has_the_first_line_and_a_count() {
    let cases = [
        (
            "*** Add File: a\n+1\n\n\n+2",
            "patch line 4: a blank line inside an addition was read as an empty line (2 times)",
        ),
        (
            "*** Add File: a\n+1\n\n \n*** Delete File: b",
            "patch line 4: a blank line after an addition was ignored (2 times)",
        ),
        (
            "*** Update File: a\n@@\n-a\n\n\n+b\n\n",
            "patch line 5: an empty line was read as an empty context line (4 times)",
        ),
        (
            "*** Update File: a\n@@\n@@\n\n@@ f\n-a",
            "patch line 3: a bare `@@` line beside another one was ignored (2 times)",
        ),
        ("*** Update File: a\n@@ f\n@@\n-a", "patch line 4: a bare `@@` line beside another one was ignored"),
    ];
    for (body, expected) in cases {
        let patch = parse_ok(&wrap(body));
        let seen: Vec<String> = patch.diagnostics.iter().map(Diagnostic::to_string).collect();
        assert_eq!(seen, [expected], "{body}");
    }
}

#[test]
fn only_a_here_document_before_the_patch_is_a_command() {
    let patch = wrap("*** Delete File: a");
    let prose =
        ["`1 << n` overflows, so:", "We shift by 1 << n first.", "<<<<<<< HEAD (mine)", "the `<<` operator"];
    for line in prose {
        let patch = parse_ok(&format!("{line}\n{patch}"));
        assert_eq!(kinds(&patch), [DiagnosticKind::TextBeforeBegin], "{line}");
    }
    let commands = [
        "cat <<EOF",
        "cat << 'END OF PATCH' | patch",
        "cd sub && cat <<-\"EOF\" > p; patch",
        "cat <<\\EOF",
        "(cd sub; cat <<EOF)",
        "cd sub; apply_patch <<EOF --verbose",
        "bash -c 'apply_patch <<< \"",
        "apply_patch <<EOF --verbose",
        "apply_patch <<''",
        "apply_patch <<",
    ];
    for line in commands {
        let error = parse(&format!("{line}\n{patch}")).unwrap_err();
        assert_eq!(error.kind, ParseErrorKind::Wrapped(Wrapper::ShellCommand), "{line}");
    }
}

#[test]
fn blank_lines_are_content_only_between_lines() {
    let add = parse_ok(&wrap("*** Add File: a\n+1\n\n+2\n\n*** Delete File: b"));
    assert_eq!(add.to_string(), wrap("*** Add File: a\n+1\n+\n+2\n*** Delete File: b"));

    let cases = [
        // Within a hunk an empty line is empty context.
        ("@@\n-a\n\n+b", "@@\n-a\n \n+b"),
        // At its end it may be, so it is kept and the search decides.
        ("@@\n-a\n+b\n", "@@\n-a\n+b\n "),
        // After additions alone, it must not move them before a blank line.
        ("@@ f\n+b\n\n", "@@ f\n+b"),
        // Before the first hunk it has no meaning.
        ("\n-a", "@@\n-a"),
        ("\n@@\n-a", "@@\n-a"),
        ("@@\n-a\n*** End of File\n\n@@\n-b", "@@\n-a\n*** End of File\n@@\n-b"),
    ];
    for (body, expected) in cases {
        let patch = parse_ok(&wrap(&format!("*** Update File: x\n{body}")));
        assert_eq!(patch.to_string(), wrap(&format!("*** Update File: x\n{expected}")), "{body}");
    }
}

#[test]
fn carriage_returns_at_line_ends_are_dropped() {
    let text = wrap("*** Add File: a\n+1\r\r\n\r\r\n+2\n*** Update File: b\n@@ f\r\r\n-x\r\r\n\r\r\n+y\rz\r");
    let patch = parse_ok(&text);
    let expected = "*** Add File: a\n+1\n+\n+2\n*** Update File: b\n@@ f\n-x\n \n+y\rz";
    assert_eq!(patch.to_string(), wrap(expected));
    let [seen, ..] = patch.diagnostics.as_slice() else { panic!("{:?}", patch.diagnostics) };
    assert_eq!((&seen.kind, seen.line, seen.count), (&DiagnosticKind::CarriageReturns, 3, 6));
}

#[test]
fn an_indented_marker_inside_an_update_is_context() {
    let patch = parse_ok(&wrap(
        "*** Update File: spec.md\n@@\n *** Begin Patch\n- *** End Patch\n *** Delete File: x",
    ));
    assert_eq!(only_update(&patch).hunks[0].lines.len(), 3);
}

#[test]
fn hints_are_read_from_every_kind_of_header() {
    let cases = [
        ("@@", None),
        ("@@ ", None),
        ("@@ @@", None),
        ("@@   indented  ", Some("  indented")),
        ("@@tight", Some("tight")),
        ("@@ -1,2 +3,4 @@", None),
        ("@@ -1 +3 @@ impl Foo", Some("impl Foo")),
        ("@@ -1,2 +3,4", None),
        ("@@ - item", Some("- item")),
        ("@@ -1,x +2 @@", Some("-1,x +2")),
        ("@@ -1, +2 @@", Some("-1, +2")),
        ("@@ -,1 +2 @@", Some("-,1 +2")),
        ("@@ user@@host @@ @@", Some("user@@host")),
        ("@@ a@@", Some("a@@")),
    ];
    for (header, expected) in cases {
        let patch = parse_ok(&wrap(&format!("*** Update File: x\n{header}\n-a")));
        assert_eq!(only_update(&patch).hunks[0].hints.first().map(String::as_str), expected, "{header}");
    }
}

#[test]
fn paths_lose_only_dot_segments() {
    let cases = [
        ("./a//b/./c", "a/b/c"),
        ("/abs/./x", "/abs/x"),
        ("../up", "../up"),
        ("C:\\x", "C:\\x"),
        ("a***", "a***"),
    ];
    for (path, expected) in cases {
        let patch = parse_ok(&wrap(&format!("*** Delete File: {path}")));
        assert_eq!(patch.paths(), [expected]);
    }
}

#[test]
fn sources_are_files_whose_content_is_used() {
    let patch = parse_ok(&wrap(
        "*** Add File: a\n+x\n*** Delete File: b\n*** Update File: c\n*** Move to: d\n@@\n-x\n+y\n*** Update File: ./c\n@@\n-y\n+z",
    ));
    assert_eq!(patch.sources(), ["b", "c"]);
    assert_eq!(patch.paths(), ["a", "b", "c", "d"]);
}

#[test]
fn paths_with_surrounding_whitespace_round_trip() {
    let cases = [
        ("./ a", " a"),
        ("a /.", "a "),
        ("/b/a /.", "/b/a "),
        ("./ ***/.", " ***"),
        ("a ***/.", "a ***"),
        ("***/.", "***"),
    ];
    for (path, expected) in cases {
        let body = format!("*** Add File: {path}\n*** Update File: {path}\n*** Move to: {path}");
        let patch = parse_ok(&wrap(&format!("{body}\n*** Delete File: {path}")));
        assert_eq!(patch.paths(), [expected]);
        assert_eq!(parse_ok(&patch.to_string()).operations, patch.operations, "{patch}");
    }
}

#[test]
fn paths_can_be_resolved_or_rejected() {
    let patch = parse_ok(&wrap("*** Update File: /project/a\n*** Move to: b\n*** Delete File: /etc/c"));
    let resolve = |path: &str| match path
        .strip_prefix("/project/")
        .or_else(|| Some(path).filter(|path| !path.starts_with('/')))
    {
        Some(inside) => Ok(inside.to_owned()),
        None => Err(path.to_owned()),
    };
    assert_eq!(patch.clone().resolve_paths(resolve), Err("/etc/c".to_owned()));
    let resolved = patch.resolve_paths(|path| Ok::<_, ()>(path.replace('/', "_"))).unwrap();
    assert_eq!(resolved.paths(), ["_project_a", "b", "_etc_c"]);
}

#[test]
fn each_mistake_has_its_error_and_its_line() {
    use ParseErrorKind as K;
    let no_hunks = |path: &str, line| K::NoHunks { path: path.to_owned(), line };
    let cases: Vec<(String, usize, K)> = vec![
        (String::new(), 1, K::Empty),
        (" \n\n".to_owned(), 1, K::Empty),
        ("diff --git a/x b/x\n".to_owned(), 1, K::MissingBegin),
        ("{\"patch\": \"*** Begin Patch\\n\"}".to_owned(), 1, K::Wrapped(Wrapper::JsonObject)),
        (
            "{\n\"patch\": \"\n*** Begin Patch\n*** Delete File: a\n*** End Patch\n\"}".to_owned(),
            1,
            K::Wrapped(Wrapper::JsonObject),
        ),
        ("[\"apply_patch\", \"*** Begin Patch\\n\"]".to_owned(), 1, K::Wrapped(Wrapper::CommandArray)),
        ("\"*** Begin Patch\\n*** End Patch\"".to_owned(), 1, K::Wrapped(Wrapper::JsonString)),
        ("apply_patch '*** Begin Patch\n".to_owned(), 1, K::Wrapped(Wrapper::ShellCommand)),
        (
            "cd sub && apply_patch <<EOF\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF".to_owned(),
            1,
            K::Wrapped(Wrapper::ShellCommand),
        ),
        (
            "One.\nTwo.\nThree.\ncd sub; apply_patch <<EOF\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEOF".to_owned(),
            4,
            K::Wrapped(Wrapper::ShellCommand),
        ),
        ("*** Delete File: a\n*** Begin Patch\n*** End Patch".to_owned(), 1, K::OperationOutside),
        (
            "*** Begin Patch\n*** Delete File: a\n*** End Patch\n*** Delete File: b".to_owned(),
            4,
            K::OperationOutside,
        ),
        ("*** Begin Patch\n*** Begin Patch\n*** End Patch".to_owned(), 2, K::SecondBegin),
        (
            "*** Begin Patch\n*** Delete File: a\n*** End Patch\n*** Begin Patch\n".to_owned(),
            4,
            K::SecondBegin,
        ),
        ("*** Begin Patch\n*** End Patch".to_owned(), 2, K::NoOperations),
        (wrap("what"), 2, K::NotAHeader),
        (wrap("@@ f\n-a"), 2, K::NotAHeader),
        (wrap("*** Rename File: a"), 2, K::NotAHeader),
        (wrap("*** Add File: a\n+1\nfoo"), 4, K::NotAnAddedLine),
        (wrap("*** Add File: a\n+1\n*** End of File"), 4, K::NotAnAddedLine),
        (wrap("*** Update File: a\n@@\n-a\nfoo"), 5, K::NotAHunkLine),
        (wrap("*** Update File: a\n@@\n-a\n\tfoo"), 5, K::NotAHunkLine),
        (wrap("*** Update File: a\n@@\n-a\n*** bold ***"), 5, K::UnknownMarker),
        (wrap("*** Update File: a\n@@\n-a\n*** Move to: b"), 5, K::MisplacedMove),
        (wrap("*** Update File: a\n*** Move to: b\n*** Move to: c"), 4, K::MisplacedMove),
        (wrap("*** Delete File: a\n*** Move to: b"), 3, K::MisplacedMove),
        (wrap("*** Update File: a\n-x\n*** End of File\n*** Move to: b"), 5, K::MisplacedMove),
        (wrap("*** Update File: a\n-x\n *** End Patch\n\t\n+y"), 5, K::NotAHunkLine),
        (wrap("\u{FEFF}*** Delete File: a"), 2, K::NotAHeader),
        ("*** Begin Patch\n\n".to_owned(), 3, K::NoOperations),
        ("*** Begin Patch\n*** Update File: a".to_owned(), 3, no_hunks("a", 2)),
        (wrap("*** Delete File: "), 2, K::EmptyPath),
        (wrap("*** Delete File: ."), 2, K::EmptyPath),
        (wrap("*** Delete File: a\0b"), 2, K::ControlCharacterInPath),
        (wrap("*** Update File: a"), 3, no_hunks("a", 2)),
        (wrap("*** Update File: a\n*** Delete File: b"), 3, no_hunks("a", 2)),
        (wrap("*** Update File: a\n@@ f"), 3, K::EmptyHunk),
        (wrap("*** Update File: a\n@@ f\n-a\n@@\n*** Delete File: b"), 5, K::EmptyHunk),
        (wrap("*** Update File: a\n*** End of File"), 3, K::EmptyHunk),
        (wrap("*** Update File: a\n@@\n-a\n*** End of File\n-b"), 6, K::LineAfterEndOfFile),
        (
            wrap(&format!("*** Update File: a\n{}-a", "@@ f\n".repeat(MAX_HINTS + 1))),
            MAX_HINTS + 3,
            K::TooManyHints,
        ),
    ];
    for (text, line, kind) in cases {
        match parse(&text) {
            Err(error) => assert_eq!((error.line, &error.kind), (line, &kind), "{error}\n{text}"),
            Ok(patch) => panic!("accepted as {patch:?}\n{text}"),
        }
    }
}

#[test]
fn an_error_names_line_text_and_expectation() {
    let error = parse(&wrap("*** Add File: a\n+1\nfoo")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "patch line 4: expected `+` before every line of an added file, or the next `*** ` marker; \
         found `foo`"
    );
    let error = parse("[\"apply_patch\", \"*** Begin Patch\"]").unwrap_err();
    assert!(error.to_string().contains("wrapped in a command array"), "{error}");
    let long = parse(&wrap(&"x".repeat(100_000))).unwrap_err();
    assert!(long.to_string().len() < 400);
}

#[test]
fn a_million_hunk_headers_are_refused_at_once() {
    let error = parse(&wrap(&format!("*** Update File: a\n{}", "@@\n".repeat(1_000_000)))).unwrap_err();
    assert_eq!(error.kind, ParseErrorKind::EmptyHunk);
}

#[test]
fn a_hint_with_a_million_closings_is_read_at_once() {
    let header = format!("@@{}x{}", " ".repeat(1 << 20), " @@".repeat(1 << 20));
    let patch = parse_ok(&wrap(&format!("*** Update File: a\n{header}\n-a")));
    assert_eq!(only_update(&patch).hunks[0].hints[0].trim_start(), "x");
}

/// Lines that occur in patches, in well-formed or malformed order.
fn any_line() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "*** Begin Patch",
        "*** End Patch",
        " *** End Patch",
        "*** Add File: a",
        "*** Delete File: b",
        "*** Update File: c",
        "*** Move to: d",
        "*** End of File",
        "*** Environment ID: e",
        "@@",
        "@@ f",
        "@@ -1 +1 @@",
        "@@ f @@",
        "",
        " ",
        "+",
        "-",
        "+x",
        "-x",
        " x",
        "x\r",
        "***",
        "EOF",
        "<<EOF",
        "{\"",
        "*** End Patch ***",
    ]);
    prop_oneof![8 => known.prop_map(str::to_owned), 1 => ".*"]
}

fn any_name() -> impl Strategy<Value = String> {
    "[a-z][a-z. ]{0,6}[a-z]"
}

fn any_text() -> impl Strategy<Value = String> {
    "[^\\r\\n]{0,12}"
}

fn any_hunk() -> impl Strategy<Value = Hunk> {
    let line = prop_oneof![
        any_text().prop_map(HunkLine::Context),
        any_text().prop_map(HunkLine::Remove),
        any_text().prop_map(HunkLine::Add),
    ];
    let hints = prop::collection::vec(" {0,4}[a-z(){}:]{1,8}", 0..3);
    (hints, prop::collection::vec(line, 1..6), any::<bool>()).prop_map(|(hints, lines, end_of_file)| Hunk {
        hints,
        lines,
        end_of_file,
        line: 0,
    })
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let update = (any_name(), prop::option::of(any_name()), prop::collection::vec(any_hunk(), 1..4))
        .prop_map(|(path, move_to, hunks)| UpdateFile { path, move_to, hunks, line: 0 });
    prop_oneof![
        (any_name(), prop::collection::vec(any_text(), 0..4))
            .prop_map(|(path, lines)| Operation::Add(AddFile::new(path, lines))),
        any_name().prop_map(|path| Operation::Delete(DeleteFile::new(path))),
        update.prop_map(Operation::Update),
    ]
}

/// Clears the line numbers of operations.
fn without_lines(mut operations: Vec<Operation>) -> Vec<Operation> {
    for operation in &mut operations {
        match operation {
            Operation::Add(AddFile { line, .. }) | Operation::Delete(DeleteFile { line, .. }) => *line = 0,
            Operation::Update(update) => {
                update.line = 0;
                update.hunks.iter_mut().for_each(|hunk| hunk.line = 0);
            }
        }
    }
    operations
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s).{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn a_parsed_patch_renders_to_the_same_patch(lines in prop::collection::vec(any_line(), 0..24)) {
        let text = format!("*** Begin Patch\n{}", lines.join("\n"));
        if let Ok(patch) = parse(&text) {
            let again = parse(&patch.to_string()).unwrap();
            prop_assert_eq!(&again.diagnostics, &[]);
            prop_assert_eq!(without_lines(again.operations), without_lines(patch.operations));
        }
    }

    #[test]
    fn a_rendered_patch_parses_to_itself(operations in prop::collection::vec(any_operation(), 1..5)) {
        let patch = Patch::new(operations);
        let again = parse(&patch.to_string()).unwrap();
        prop_assert_eq!(&again.diagnostics, &[]);
        prop_assert_eq!(without_lines(again.operations), patch.operations);
    }
}

#[test]
fn an_added_file_is_allocated_exactly() {
    let lines = "+a line that is added\n".repeat(1_000);
    let text = format!("*** Begin Patch\n*** Add File: a\n{lines}*** Add File: b\n+one\n*** End Patch\n");
    for (operation, expected) in
        parse_ok(&text).operations.iter().zip([lines.replace('+', ""), "one\n".to_owned()])
    {
        let Operation::Add(file) = operation else { panic!("both are added: {operation:?}") };
        assert_eq!((&file.content, file.content.capacity()), (&expected, expected.len()));
        assert_eq!(file.lines().map(|line| line.len() + 1).sum::<usize>(), expected.len());
    }
}
