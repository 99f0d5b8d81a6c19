//! The streaming parser: its items, when they are yielded, and agreement with the parser of whole texts.

use proptest::prelude::*;

use pintle_patch::{
    HunkLine, MAX_PATCH_BYTES, Operation, ParseError, ParseErrorKind, Patch, PatchStream, StreamItem, parse,
    parse_outline,
};

use crate::scenarios::patches;

/// Items and result of parsing a text.
#[derive(Debug, PartialEq)]
struct Outcome {
    items: Vec<StreamItem>,
    end: Result<Patch, ParseError>,
}

impl Outcome {
    /// Streams a text in these pieces.
    fn of<'t>(pieces: impl IntoIterator<Item = &'t str>) -> Self {
        let mut stream = PatchStream::new();
        let mut items = Vec::new();
        for piece in pieces {
            if let Err(error) = stream.push(piece, &mut items) {
                let seen = items.len();
                assert_eq!(stream.push("\n*** End Patch\n", &mut items), Err(error.clone()));
                assert_eq!(stream.finish(&mut items), Err(error.clone()));
                assert_eq!(items.len(), seen, "nothing is yielded after an error");
                return Self { items, end: Err(error) };
            }
        }
        let end = stream.finish(&mut items);
        Self { items, end }
    }
}

/// Returns the items that a patch consists of.
fn items_of(patch: &Patch) -> Vec<StreamItem> {
    let mut items = Vec::new();
    for operation in &patch.operations {
        match operation.clone() {
            Operation::Add(file) => {
                items.push(StreamItem::AddFile { path: file.path.clone(), line: file.line });
                items.extend(file.lines().map(|line| StreamItem::Line(HunkLine::Add(line.to_owned()))));
            }
            Operation::Delete(file) => {
                items.push(StreamItem::DeleteFile { path: file.path, line: file.line })
            }
            Operation::Update(file) => {
                items.push(StreamItem::UpdateFile { path: file.path, line: file.line });
                items.extend(file.move_to.map(StreamItem::MoveTo));
                for hunk in file.hunks {
                    items.push(StreamItem::Hunk { line: hunk.line });
                    items.extend(hunk.hints.into_iter().map(StreamItem::Hint));
                    items.extend(hunk.lines.into_iter().map(StreamItem::Line));
                    items.extend(hunk.end_of_file.then_some(StreamItem::EndOfFile));
                }
            }
        }
        items.push(StreamItem::FileEnded);
    }
    items
}

/// Splits a text into characters.
fn characters(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(|_| true)
}

/// Streams a text in one piece and checks the outcome against [`parse`].
fn check_whole(text: &str) -> Outcome {
    let whole = Outcome::of([text]);
    assert_eq!(whole.end, parse(text), "{text}");
    if let Ok(patch) = &whole.end {
        assert_eq!(whole.items, items_of(patch), "{text}");
    }
    whole
}

/// Checks that every split into two pieces, and into characters, has the same outcome.
fn check_every_split(text: &str) {
    let whole = check_whole(text);
    assert_eq!(Outcome::of(characters(text)), whole, "one character at a time:\n{text}");
    for (at, _) in text.char_indices() {
        let (before, after) = text.split_at(at);
        assert_eq!(Outcome::of([before, "", after]), whole, "split at byte {at}:\n{text}");
    }
}

#[test]
fn scenarios_parse_the_same_for_every_split() {
    for patch in patches() {
        check_every_split(&patch);
        check_every_split(&patch.replace('\n', "\r\n"));
        check_every_split(patch.trim_end());
    }
}

#[test]
fn items_are_yielded_as_soon_as_certain() {
    let context = |text: &str| StreamItem::Line(HunkLine::Context(text.to_owned()));
    let remove = |text: &str| StreamItem::Line(HunkLine::Remove(text.to_owned()));
    let add = |text: &str| StreamItem::Line(HunkLine::Add(text.to_owned()));
    let hint = |text: &str| StreamItem::Hint(text.to_owned());
    let steps: Vec<(&str, Vec<StreamItem>)> = vec![
        ("Here it is:\n*** Begin Pa", vec![]),
        ("tch\n*** Add File: n", vec![]),
        ("ew.rs\n+one", vec![StreamItem::AddFile { path: "new.rs".to_owned(), line: 3 }]),
        ("\n", vec![add("one")]),
        // A blank line has no meaning if it is the last one.
        ("\n", vec![]),
        ("+three\n", vec![add(""), add("three")]),
        ("*** Delete File: old.rs", vec![]),
        (
            "\n",
            vec![
                StreamItem::FileEnded,
                StreamItem::DeleteFile { path: "old.rs".to_owned(), line: 7 },
                StreamItem::FileEnded,
            ],
        ),
        ("*** Update File: ./a.rs\n", vec![StreamItem::UpdateFile { path: "a.rs".to_owned(), line: 8 }]),
        ("*** Move to: b.rs\n", vec![StreamItem::MoveTo("b.rs".to_owned())]),
        // Before the first hunk a blank line has no meaning.
        ("\n", vec![]),
        ("@@ impl A\n", vec![StreamItem::Hunk { line: 11 }, hint("impl A")]),
        ("@@ fn f\r\n", vec![hint("fn f")]),
        (" kept\n-gone\n", vec![context("kept"), remove("gone")]),
        // After old lines an empty line is one of the file; after additions it may be a gap.
        ("\n+come\n", vec![context(""), add("come")]),
        ("*** End of File\n", vec![StreamItem::EndOfFile]),
        ("@@\n+last\n\n", vec![StreamItem::Hunk { line: 18 }, add("last")]),
        ("@@\n+x\n\n", vec![StreamItem::Hunk { line: 21 }, add("x")]),
        ("-z\n\n", vec![context(""), remove("z"), context("")]),
        // An indented end marker is a context line if the patch continues.
        (" *** End Patch\n", vec![]),
        ("\n", vec![]),
        ("-y\n", vec![context("*** End Patch"), context(""), remove("y")]),
        (" *** End Patch\n\n", vec![]),
    ];
    let mut stream = PatchStream::new();
    for (piece, expected) in &steps {
        let mut items = Vec::new();
        stream.push(piece, &mut items).unwrap();
        assert_eq!(&items, expected, "after {piece:?}");
    }
    let mut items = Vec::new();
    let patch = stream.finish(&mut items).unwrap();
    assert_eq!(items, [StreamItem::FileEnded]);
    let text: String = steps.iter().map(|(piece, _)| *piece).collect();
    assert_eq!(Ok(patch), parse(&text));
    check_every_split(&text);
}

#[test]
fn the_last_line_needs_no_line_feed() {
    let mut stream = PatchStream::new();
    let mut items = Vec::new();
    stream.push("*** Begin Patch\n*** Update File: a\n-x\n+y", &mut items).unwrap();
    assert_eq!(items.len(), 3, "{items:?}");
    stream.finish(&mut items).unwrap();
    assert_eq!(items[3..], [StreamItem::Line(HunkLine::Add("y".to_owned())), StreamItem::FileEnded]);
}

#[test]
fn an_error_follows_the_items_before_its_line() {
    let cases = [
        ("*** Begin Patch\n*** Add File: a\n+1\nfoo\n", ParseErrorKind::NotAnAddedLine, 2),
        ("*** Begin Patch\n*** Update File: a\n-x\nfoo\n", ParseErrorKind::NotAHunkLine, 3),
        ("*** Begin Patch\n*** Delete File: a\n*** Begin Patch\n", ParseErrorKind::SecondBegin, 2),
        ("*** Begin Patch\n*** End Patch\n", ParseErrorKind::NoOperations, 0),
        (
            "*** Begin Patch\n*** Delete File: a\n*** End Patch\n*** Delete File: b\n",
            ParseErrorKind::OperationOutside,
            2,
        ),
        ("*** Begin Patch\n*** Update File: a\n@@ f\n*** End Patch\n", ParseErrorKind::EmptyHunk, 3),
    ];
    for (text, kind, before) in cases {
        let mut stream = PatchStream::new();
        let mut items = Vec::new();
        let unfinished = text.strip_suffix('\n').unwrap();
        assert_eq!(stream.push(unfinished, &mut items), Ok(()), "{text}");
        let error = stream.push("\n", &mut items).unwrap_err();
        assert_eq!((&error.kind, items.len()), (&kind, before), "{text}");
        assert_eq!(parse(text), Err(error), "{text}");
        // The first error decides, regardless of later ones.
        assert_eq!(parse(&format!("{text}*** Begin Patch\n{{}}\n")).unwrap_err().kind, kind, "{text}");
    }
}

#[test]
fn a_text_without_a_patch_fails_at_its_end() {
    for text in ["", "\n \n", "I cannot do that.\n", "{\n\"patch\": 1}\n", "*** Begin Patch\n"] {
        let mut stream = PatchStream::new();
        let mut items = Vec::new();
        assert_eq!(stream.push(text, &mut items), Ok(()), "{text}");
        assert_eq!(stream.finish(&mut items), Err(parse(text).unwrap_err()), "{text}");
        assert_eq!(items, [], "{text}");
    }
}

#[test]
fn an_endless_text_is_refused_at_the_limit() {
    let mut stream = PatchStream::new();
    let mut items = Vec::new();
    stream.push("*** Begin Patch\n*** Add File: a\n+", &mut items).unwrap();
    let piece = "x".repeat(MAX_PATCH_BYTES / 4);
    for _ in 0..3 {
        stream.push(&piece, &mut items).unwrap();
    }
    let error = stream.push(&piece, &mut items).unwrap_err();
    assert!(matches!(error.kind, ParseErrorKind::TooLong { bytes } if bytes > MAX_PATCH_BYTES), "{error}");
    assert_eq!(items.len(), 1, "{items:?}");

    let longest = parse(&"x".repeat(MAX_PATCH_BYTES)).unwrap_err();
    assert_eq!(longest.kind, ParseErrorKind::MissingBegin, "the limit itself is not too long");
}

#[test]
fn single_byte_pieces_take_linear_time() {
    // Scanning the text held back again with every piece would take minutes.
    let long = format!("*** Begin Patch\n*** Add File: a\n+{}\n", "x".repeat(1 << 20));
    let blank = format!("*** Begin Patch\n*** Update File: a\n-x\n *** End Patch{}", "\n".repeat(1 << 20));
    for text in [long, blank] {
        assert_eq!(Outcome::of(characters(&text)).end, parse(&text));
    }
}

fn any_patch() -> impl Strategy<Value = String> {
    let before = prop::sample::select(vec![
        "*** Begin Patch\n",
        "  *** Begin Patch ***\n\n*** Environment ID: e\n",
        "Here:\n\n```\n*** Begin Patch\n",
        "\u{FEFF}apply_patch <<'EOF'\n*** Begin Patch\n",
    ]);
    let section = prop::sample::select(vec![
        "*** Add File: ä/b\n+é\n\n \n+–\n\n",
        "*** Add File: empty\n",
        "  *** Delete File: ./d ***\n",
        "*** Update File: e\n*** Move to:f\n",
        "*** Update File: g\n\n-x\n\n+y\n\n",
        "*** Update File: h\n@@\n@@ i\n\n@@ -1 +1 @@ j @@\n x\n *** End Patch\n\n-y\n*** End of File\n\n",
        "*** Update File: k\n@@ l\n+m\n\n@@n\n-o\np\n",
        "*** Update File: q\n+r\n \n *** End Patch\n\n",
    ]);
    let after = prop::sample::select(vec![
        "*** End Patch\n",
        "*** End Patch ***\nEOF\n",
        "*** End Patch\n```\nDone.",
        "  *** End Patch\n\n",
        "",
        "*** End Patch\n*** Delete File: z\n",
    ]);
    let sections = prop::collection::vec(section, 0..5);
    (before, sections, after, any::<bool>()).prop_map(|(before, sections, after, crlf)| {
        let text = format!("{before}{}{after}", sections.concat());
        if crlf { text.replace('\n', "\r\n") } else { text }
    })
}

fn any_lines() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "*** Begin Patch",
        "*** End Patch",
        " *** End Patch",
        "*** Add File: a",
        "*** Delete File: b",
        "*** Update File: c",
        "*** Move to: d",
        "*** End of File",
        "@@",
        "@@ f",
        "",
        " ",
        "+x",
        "-x",
        " x",
        "x\r",
        "EOF",
        "<<EOF",
        "{\"",
    ]);
    let line = prop_oneof![8 => known.prop_map(str::to_owned), 1 => ".*"];
    prop::collection::vec(line, 0..16).prop_map(|lines| lines.join("\n"))
}

/// Splits `text` into pieces of these numbers of characters, repeated cyclically.
fn pieces<'t>(mut text: &'t str, sizes: &[usize]) -> Vec<&'t str> {
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        let end = text.char_indices().nth(*size).map_or(text.len(), |(at, _)| at);
        let (piece, rest) = text.split_at(end);
        pieces.push(piece);
        text = rest;
        if text.is_empty() {
            break;
        }
    }
    pieces
}

proptest! {
    #[test]
    fn a_patch_parses_the_same_in_any_pieces(
        text in any_patch(),
        sizes in prop::collection::vec(1..40_usize, 1..8),
    ) {
        let whole = check_whole(&text);
        prop_assert_eq!(&Outcome::of(pieces(&text, &sizes)), &whole);
        prop_assert_eq!(&Outcome::of(characters(&text)), &whole);
    }

    #[test]
    fn any_lines_parse_the_same_in_any_pieces(
        lines in any_lines(),
        begun in any::<bool>(),
        sizes in prop::collection::vec(1..40_usize, 1..8),
    ) {
        let text = if begun { format!("*** Begin Patch\n{lines}") } else { lines };
        let whole = check_whole(&text);
        prop_assert_eq!(&Outcome::of(pieces(&text, &sizes)), &whole);
        prop_assert_eq!(&Outcome::of(characters(&text)), &whole);
    }
}

#[test]
fn an_outline_is_the_patch_without_its_lines() {
    for text in patches() {
        let whole = parse(&text).map(|mut patch| {
            for operation in &mut patch.operations {
                match operation {
                    Operation::Add(add) => add.content.clear(),
                    Operation::Update(update) => update.hunks.iter_mut().for_each(|hunk| hunk.lines.clear()),
                    Operation::Delete(_) => {}
                }
            }
            patch
        });
        assert_eq!(parse_outline(&text), whole, "{text}");
    }
}
