use proptest::prelude::*;

use super::*;

/// Above the size of all events in these tests.
const LIMIT: usize = 16 << 20;

type Events = Vec<(String, String)>;

/// Parses the reads; returns names and data of the events, and the error.
fn read(limit: usize, reads: &[&[u8]]) -> (Events, Option<String>) {
    let mut reader = SseReader::new(limit);
    let mut events = Vec::new();
    for bytes in reads {
        let mut rest = *bytes;
        loop {
            match reader.next(&mut rest) {
                Ok(Some(event)) => events.push((event.name.to_owned(), event.data.to_owned())),
                Ok(None) => break,
                Err(found) => return (events, Some(found.to_string())),
            }
        }
        assert!(rest.is_empty(), "{} bytes remain", rest.len());
    }
    (events, None)
}

/// Parses a stream with the library, one event at a time, with LF line endings.
fn expected_events(bytes: &[u8]) -> (Events, Option<String>) {
    let bytes = bytes.strip_prefix(&BYTE_ORDER_MARK).unwrap_or(bytes);
    let mut events = Vec::new();
    let mut frame = Vec::new();
    let lines = with_line_feeds(bytes);
    for line in lines.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        frame.extend_from_slice(line);
        if line == b"\n" {
            let event = frame::parse(&repair::mark_invalid_bytes(&std::mem::take(&mut frame)));
            events.extend(event.map(|event| {
                (event.event.replacen("message", "", usize::from(event.event == "message")), event.data)
            }));
        }
    }
    (events, None)
}

fn with_line_feeds(bytes: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' if at > 0 && bytes[at - 1] == b'\r' => {}
            b'\r' => lines.push(b'\n'),
            other => lines.push(*other),
        }
    }
    lines
}

fn data(text: &[u8]) -> Vec<String> {
    let (events, error) = read(LIMIT, &[text]);
    assert_eq!(error, None);
    events.into_iter().map(|(_, data)| data).collect()
}

#[test]
fn event_stream_grammar_is_parsed() {
    let cases: &[(&str, &[&str])] = &[
        ("data: a\n\ndata: b\n\n", &["a", "b"]),
        ("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
        ("data: a\r\rdata: b\r\r", &["a", "b"]),
        ("data: a\n\r\ndata: b\r\n\n", &["a", "b"]),
        ("data: a\r\n\ndata: b\n\n", &["a", "b"]),
        ("\u{feff}data: a\n\n", &["a"]),
        ("data: \u{feff}a\n\n", &["\u{feff}a"]),
        // A byte-order mark is skipped only at the very start.
        ("\u{feff}\u{feff}data: a\n\ndata: b\n\n", &["b"]),
        ("data: a\n\n\u{feff}data: b\ndata: c\n\n", &["a", "c"]),
        ("data:a\ndata:  b\n\n", &["a\n b"]),
        (": ping\n\n: ping\n\ndata: a\n\n", &["a"]),
        ("data: a\n: in between\ndata: b\n\n", &["a\nb"]),
        ("\n\n\ndata: a\n\n\n\n", &["a"]),
        ("id: 1\nretry: 10\ndata: a\n\n", &["a"]),
        ("no field\ndata: a\n\n", &["a"]),
        ("data: {\"x\": \"é\u{1F600}\"}\n\n", &["{\"x\": \"é\u{1F600}\"}"]),
        ("data: complete\n\ndata: cut", &["complete"]),
        ("data: complete\n\ndata: cut\n", &["complete"]),
        ("", &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(data(text.as_bytes()), *expected, "{text:?}");
    }
}

#[test]
fn events_without_blank_line_are_incomplete() {
    let cases: &[(&[u8], bool)] = &[
        (b"", false),
        (b"data: a\n\n", false),
        (b"data: a\r\n\r", false),
        (b"data: a\n\n: bye", false),
        (b"data: a\n\n: bye\r\n: bye", false),
        (b"data: a\n\ndata: [DONE]", false),
        (b"event: done\ndata:[DONE]\r\n", false),
        (b"data: [DONE", true),
        (b"data: a", true),
        (b"data: a\n", true),
        (b"data: a\r\n", true),
        (b"data: a\n: bye\n", true),
        (b"event: x", true),
        (b"d", true),
        (b"\xff", true),
    ];
    for (bytes, inside) in cases {
        let mut reader = SseReader::new(LIMIT);
        let mut rest = *bytes;
        while reader.next(&mut rest).unwrap().is_some() {}
        assert_eq!(reader.is_inside_event(), *inside, "{bytes:?}");
    }
}

#[test]
fn event_names_are_kept() {
    let (events, _) = read(LIMIT, &[b"event: error\ndata: {}\n\n"]);
    assert_eq!(events, [("error".to_owned(), "{}".to_owned())]);
}

#[test]
fn oversized_events_fail_even_if_incomplete() {
    let long = format!("data: {}", "x".repeat(100));
    for text in [long.clone(), format!("{long}\n\n"), "data: x\n".repeat(20)] {
        let (_, error) = read(64, &[b"data: ok\n\n", text.as_bytes()]);
        assert_eq!(error.as_deref(), Some("an event is larger than 64 bytes"), "{text:?}");
    }
    let comments = ": ping\n\n".repeat(100);
    assert_eq!(read(64, &[comments.as_bytes()]), (Vec::new(), None), "comments do not accumulate");
}

#[test]
fn invalid_utf8_is_marked_at_any_position() {
    let stream =
        b"data: good\n\n: \xff\n\ndata: a\xffb\r\n\r\nevent: \xc3\ndata: \xf0\x9f\ndata: z\n\ndata: last\n\n";
    let reads: Vec<&[u8]> = stream.chunks(1).collect();
    for reads in [vec![&stream[..]], reads] {
        let (events, error) = read(LIMIT, &reads);
        let expected = [("", "good"), ("", r"a\udfffb"), (r"\udfff", "\\udfff\nz"), ("", "last")];
        let expected = expected.map(|(name, data)| (name.to_owned(), data.to_owned()));
        assert_eq!((events.as_slice(), error), (expected.as_slice(), None));
    }
}

/// A quadratic reader needs minutes for these, a linear one a second.
#[test]
fn parsing_is_linear() {
    let large = format!("data: {}\n\n", "x".repeat(4 * 1024 * 1024));
    let pieces: Vec<&[u8]> = large.as_bytes().chunks(1024).collect();
    assert_eq!(read(LIMIT, &pieces).0.len(), 1);
    let many = "data: {}\n\n".repeat(50_000);
    assert_eq!(data(many.as_bytes()).len(), 50_000);
    let lines = format!("{}\n", "data: x\n".repeat(200_000));
    assert_eq!(data(lines.as_bytes()).len(), 1);
}

/// Compares frames that are read in place and frames that are not with the parser.
#[test]
fn simple_frames_match_the_parser() {
    let simple = [
        "\n",
        "data: a\n\n",
        "data:a\n\n",
        "data:  a\n\n",
        "data:\n\n",
        "data: \n\n",
        "data: a:b: c\n\n",
        "event: x\ndata: a\n\n",
        "data: a\nevent: x\n\n",
        "event:x\ndata:a\n\n",
        "event: x\n\n",
        "event:\ndata: a\n\n",
        "event: message\ndata: a\n\n",
        "event:  message\ndata: a\n\n",
        ":\n\n",
        ": ping\ndata: a\n: data: b\n\n",
        "data: \0a\0\n\n",
        "event: \0\ndata: a\n\n",
        "data: é\u{1F600}\u{feff}\n\n",
        "data: a\t\u{85}\u{2028}b\n\n",
    ];
    let complex = [
        "data: a\ndata: b\n\n",
        "event: x\nevent: y\ndata: a\n\n",
        "event: x\nevent:\ndata: a\n\n",
        "data\n\n",
        "event\ndata: a\n\n",
        "id: 1\ndata: a\n\n",
        "id: \0\ndata: a\n\n",
        "id\ndata: a\n\n",
        "retry: 10\ndata: a\n\n",
        "retry: x\ndata: a\n\n",
        "other: x\ndata: a\n\n",
        "other\ndata: a\n\n",
        " data: b\ndata: a\n\n",
        "Data: b\n\n",
        "data : b\n\n",
        "\u{feff}data: b\ndata: a\n\n",
        "\0\ndata: a\n\n",
        "data-x: b\ndata: a\n\n",
    ];
    for (frame, is_simple) in
        simple.map(|frame| (frame, true)).into_iter().chain(complex.map(|frame| (frame, false)))
    {
        assert_eq!(SimpleFrame::find(frame.as_bytes()).is_some(), is_simple, "{frame:?}");
        assert_eq!(read(LIMIT, &[frame.as_bytes()]), expected_events(frame.as_bytes()), "{frame:?}");
        let crlf = frame.replace('\n', "\r\n");
        assert_eq!(SimpleFrame::find(crlf.as_bytes()).is_some(), is_simple, "{crlf:?}");
        assert_eq!(read(LIMIT, &[crlf.as_bytes()]), expected_events(frame.as_bytes()), "{crlf:?}");
    }
}

#[test]
fn complete_events_are_borrowed() {
    let read = b"event: x\ndata: a\n\ndata: b\r\n\r\ndata: c";
    let is_borrowed = |part: &str| read.as_ptr_range().contains(&part.as_ptr());
    let mut reader = SseReader::new(LIMIT);
    let mut rest = &read[..];
    for expected in ["a", "b"] {
        let event = reader.next(&mut rest).unwrap().unwrap();
        assert_eq!(event.data, expected);
        assert!(is_borrowed(event.data) && (event.name.is_empty() || is_borrowed(event.name)));
    }
    assert_eq!(reader.next(&mut rest).unwrap(), None);
    assert!(reader.is_inside_event());
    let mut rest = &b"\n\n"[..];
    assert_eq!(reader.next(&mut rest).unwrap().unwrap().data, "c");
    assert!(!reader.is_inside_event(), "the returned event is complete");
}

/// Generates streams of legal and illegal lines.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let ends = || prop_oneof![6 => Just("\n"), 2 => Just("\r\n"), 1 => Just("\r")];
    let values = prop_oneof![
        Just(""),
        Just(" "),
        Just("a"),
        Just(" {\"a\": \"b\"}"),
        Just("  x"),
        Just(" é\u{1F600}"),
        Just(" message"),
        Just("\0"),
        Just(" 10"),
        Just(": "),
        Just("\u{feff}"),
        Just(" [DONE]"),
    ];
    let fields = prop_oneof![
        8 => Just("data:"), 4 => Just("event:"), 2 => Just(":"), 1 => Just("data"), 1 => Just("event"),
        1 => Just("id:"), 1 => Just("retry:"), 1 => Just("other:"), 1 => Just(" data:"), 1 => Just("\u{feff}data:"),
        1 => Just("\0"),
    ];
    let line =
        (fields, values, ends()).prop_map(|(field, value, end)| [field, value, end].concat().into_bytes());
    let blank = ends().prop_map(|end| end.as_bytes().to_vec());
    let bad = prop_oneof![Just(b"\xff".to_vec()), Just(b"\xef\xbb".to_vec()), Just(b"\xef\xbb\xbf".to_vec())];
    let piece = prop_oneof![20 => line, 12 => blank, 1 => bad];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn events_do_not_depend_on_read_boundaries(bytes in streams(), cuts in proptest::collection::vec(0usize..400, 0..12)) {
        let expected = expected_events(&bytes);
        prop_assert_eq!(&read(LIMIT, &[&bytes]), &expected);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let mut reads = Vec::new();
        let mut start = 0;
        for cut in cuts {
            reads.push(&bytes[start..cut]);
            start = cut;
        }
        reads.push(&bytes[start..]);
        prop_assert_eq!(&read(LIMIT, &reads), &expected);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&read(LIMIT, &single), &expected);
    }

    #[test]
    fn size_limit_does_not_depend_on_read_boundaries(bytes in streams(), limit in 0usize..40) {
        let single_read = read(limit, &[&bytes]);
        let single_bytes: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&read(limit, &single_bytes), &single_read);
    }

    #[test]
    fn line_endings_are_equivalent(lines in proptest::collection::vec("[a-z]{0,5}", 0..20)) {
        let text = |end: &str| -> String {
            lines.iter().map(|line| if line.is_empty() { end.to_owned() } else { format!("data: {line}{end}") }).collect()
        };
        let lf = data(text("\n").as_bytes());
        prop_assert_eq!(&data(text("\r\n").as_bytes()), &lf);
        prop_assert_eq!(&data(text("\r").as_bytes()), &lf);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(64, &[&bytes]);
    }
}
