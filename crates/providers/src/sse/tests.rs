use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

/// The data of all events, and whether the stream failed, for these reads.
fn read(limit: usize, reads: &[&[u8]]) -> (Vec<(String, String)>, Option<String>) {
    let mut reader = SseReader::new(limit);
    let mut events = Vec::new();
    let mut error = None;
    for bytes in reads {
        if let Err(found) = reader.push(bytes, &mut events) {
            error = Some(found.to_string());
            break;
        }
    }
    (events.into_iter().map(|event| (event.event, event.data)).collect(), error)
}

fn data(text: &[u8]) -> Vec<String> {
    let (events, error) = read(MAX_EVENT, &[text]);
    assert_eq!(error, None);
    events.into_iter().map(|(_, data)| data).collect()
}

#[test]
fn the_grammar() {
    let rows: &[(&str, &[&str])] = &[
        ("data: a\n\ndata: b\n\n", &["a", "b"]),
        ("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
        ("data: a\r\rdata: b\r\r", &["a", "b"]),
        ("data: a\n\r\ndata: b\r\n\n", &["a", "b"]),
        ("data: a\r\n\ndata: b\n\n", &["a", "b"]),
        ("\u{feff}data: a\n\n", &["a"]),
        ("data: \u{feff}a\n\n", &["\u{feff}a"]),
        // Only at the very beginning is it no part of a line.
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
    for (text, expected) in rows {
        assert_eq!(data(text.as_bytes()), *expected, "{text:?}");
    }
}

#[test]
fn an_event_without_its_blank_line_is_unfinished() {
    let rows: &[(&[u8], bool)] = &[
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
    for (bytes, inside) in rows {
        let mut reader = SseReader::new(MAX_EVENT);
        reader.push(bytes, &mut Vec::new()).unwrap();
        assert_eq!(reader.is_inside_event(), *inside, "{bytes:?}");
    }
}

#[test]
fn names_are_kept() {
    let (events, _) = read(MAX_EVENT, &[b"event: error\ndata: {}\n\n"]);
    assert_eq!(events, [("error".to_owned(), "{}".to_owned())]);
}

#[test]
fn an_event_over_the_limit_fails_with_or_without_its_end() {
    let long = format!("data: {}", "x".repeat(100));
    for text in [long.clone(), format!("{long}\n\n"), "data: x\n".repeat(20)] {
        let (_, error) = read(64, &[b"data: ok\n\n", text.as_bytes()]);
        assert_eq!(error.as_deref(), Some("an event is larger than 64 bytes"), "{text:?}");
    }
    let comments = ": ping\n\n".repeat(100);
    assert_eq!(read(64, &[comments.as_bytes()]), (Vec::new(), None), "comments do not add up");
}

#[test]
fn bad_bytes_fail_at_once_and_events_before_them_are_given() {
    let (events, error) = read(MAX_EVENT, &[b"data: good\n\ndata: \xff\n\ndata: never\n\n"]);
    assert_eq!(events.len(), 1);
    assert_eq!(error.as_deref(), Some("an event is not UTF-8"));
}

#[test]
fn large_and_many_events_take_linear_time() {
    let started = Instant::now();
    let large = format!("data: {}\n\n", "x".repeat(8 * 1024 * 1024));
    let pieces: Vec<&[u8]> = large.as_bytes().chunks(1024).collect();
    assert_eq!(read(MAX_EVENT, &pieces).0.len(), 1);
    let many = "data: {}\n\n".repeat(50_000);
    assert_eq!(data(many.as_bytes()).len(), 50_000);
    let lines = format!("{}\n", "data: x\n".repeat(500_000));
    assert_eq!(data(lines.as_bytes()).len(), 1);
    // Half a second in a debug build on a busy machine; a quadratic reader takes minutes.
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\n"),
        Just("\r"),
        Just("\r\n"),
        Just("data: "),
        Just("data:é"),
        Just(": comment"),
        Just("event: x"),
        Just("\u{feff}"),
        Just("\u{1F600}"),
        Just("a"),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_split_into_reads_gives_the_same_events(text in pieces(), cuts in proptest::collection::vec(0usize..200, 0..12)) {
        let bytes = text.as_bytes();
        let whole = read(MAX_EVENT, &[bytes]);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let mut reads = Vec::new();
        let mut start = 0;
        for cut in cuts {
            reads.push(&bytes[start..cut]);
            start = cut;
        }
        reads.push(&bytes[start..]);
        prop_assert_eq!(&read(MAX_EVENT, &reads), &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&read(MAX_EVENT, &single), &whole);
    }

    #[test]
    fn line_ends_make_no_difference(lines in proptest::collection::vec("[a-z]{0,5}", 0..20)) {
        let text = |end: &str| -> String {
            lines.iter().map(|line| if line.is_empty() { end.to_owned() } else { format!("data: {line}{end}") }).collect()
        };
        let lf = data(text("\n").as_bytes());
        prop_assert_eq!(&data(text("\r\n").as_bytes()), &lf);
        prop_assert_eq!(&data(text("\r").as_bytes()), &lf);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(64, &[&bytes]);
    }
}
