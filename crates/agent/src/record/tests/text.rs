//! Records as they are written and read.

use super::*;

async fn recorded() -> Record {
    let world = World::new(script());
    let session = world.builder().build().unwrap();
    session.submit("one").await.unwrap();
    session.record().unwrap()
}

fn written(record: &Record) -> String {
    let mut text = Vec::new();
    record.write(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn read(text: &str) -> Result<Record, RecordError> {
    Record::read(text.as_bytes())
}

#[tokio::test]
async fn what_is_written_is_read_back_and_replays() {
    let record = recorded().await;
    let text = written(&record);
    assert_eq!(text.lines().count(), 1 + record.entries.len());
    let back = read(&text).unwrap();
    assert_eq!(back, record);
    assert_eq!(back.replay().unwrap(), record.replay().unwrap());

    // In pieces, as it is written to a file that grows.
    let (mut pieces, half) = (Vec::new(), record.entries.len() / 2);
    record.before(half).write(&mut pieces).unwrap();
    record.write_from(half, &mut pieces).unwrap();
    assert_eq!(String::from_utf8(pieces).unwrap(), text);
}

#[tokio::test]
async fn a_last_line_that_was_cut_is_left_out_wherever_it_was_cut() {
    let record = recorded().await;
    let text = written(&record);
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    let shorter = record.before(record.entries.len() - 1);
    for cut in (last..text.len() - 1).filter(|cut| text.is_char_boundary(*cut)) {
        assert_eq!(read(&text[..cut]).unwrap(), shorter, "{cut}");
    }
    assert_eq!(read(text.trim_end()).unwrap(), record, "a line that only lacks its end is whole");
}

#[tokio::test]
async fn what_is_no_record_is_told_with_the_place() {
    let text = written(&recorded().await);
    let (header, rest) = text.split_once('\n').unwrap();
    let rows = [
        (String::new(), "the first line is not that of a record"),
        ("{}\n".to_owned(), "the first line is not that of a record"),
        ("hello\n".to_owned(), "the first line is not that of a record"),
        (text.replacen("\"version\":1", "\"version\":7", 1), "the record has version 7, expected 1"),
        (format!("{header}\nnonsense\n{rest}"), "line 2 is not an input"),
        (format!("{header}\n\n{rest}"), "line 2 is not an input"),
        (format!("{text}{header}\n"), "is not an input"),
    ];
    for (text, expected) in rows {
        let error = read(&text).unwrap_err();
        assert!(error.to_string().ends_with(expected), "{error}");
        let has_source = std::error::Error::source(&error).is_some();
        assert_eq!(has_source, !matches!(error, RecordError::Version { .. }));
    }
}

/// The format is read by other programs and by later versions, so that a change of it is a change of the version.
#[test]
fn the_lines_are_as_documented() {
    let header = RecordHeader::new(SessionId::new("s"), None, Start::default());
    let mut header = serde_json::to_value(header).unwrap();
    header["made_by"] = json!("x");
    let limits = header["start"]["limits"].take();
    assert_eq!(limits["max_turns"], 0);
    assert_eq!(header, json!({"version": 1, "made_by": "x", "session_id": "s", "start": {"limits": null}}));
    let input = Input::new(crate::Timestamp::from_millis(0), InputKind::Steer { text: "hello".into() });
    let entry = RecordEntry { input, request: Some(Fingerprint::of(b"r")) };
    let line = serde_json::to_value(entry).unwrap();
    let expected = json!({
        "at": "1970-01-01T00:00:00.000Z", "input": "steer", "text": "hello", "request": Fingerprint::of(b"r"),
    });
    assert_eq!(line, expected);
}
