//! Text format of records.

use pintle_llm::ImageData;

use super::*;
use crate::protocol::UserMessage;

async fn recorded() -> Record {
    let harness = Harness::new(script());
    let session = harness.builder().build().unwrap();
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
async fn records_round_trip_and_replay() {
    let record = recorded().await;
    let text = written(&record);
    assert_eq!(text.lines().count(), 1 + record.entries.len());
    let back = read(&text).unwrap();
    assert_eq!(back, record);
    assert_eq!(back.replay().unwrap(), record.replay().unwrap());

    // In pieces, like a file that grows.
    let (mut pieces, half) = (Vec::new(), record.entries.len() / 2);
    record.before(half).write(&mut pieces).unwrap();
    record.write_from(half, &mut pieces).unwrap();
    assert_eq!(String::from_utf8(pieces).unwrap(), text);
}

#[tokio::test]
async fn incomplete_last_line_is_ignored() {
    let record = recorded().await;
    let text = written(&record);
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    let shorter = record.before(record.entries.len() - 1);
    for cut in (last..text.len() - 1).filter(|cut| text.is_char_boundary(*cut)) {
        assert_eq!(read(&text[..cut]).unwrap(), shorter, "{cut}");
    }
    assert_eq!(read(text.trim_end()).unwrap(), record, "only the line end is missing");
}

#[tokio::test]
async fn malformed_records_are_rejected_with_the_line() {
    let text = written(&recorded().await);
    let (header, rest) = text.split_once('\n').unwrap();
    let cases = [
        (String::new(), "the first line is not the header of a record"),
        ("{}\n".to_owned(), "the first line is not the header of a record"),
        ("hello\n".to_owned(), "the first line is not the header of a record"),
        (text.replacen("\"version\":6", "\"version\":7", 1), "the record has version 7, expected 6"),
        (text.replacen("\"version\":6", "\"version\":0", 1), "the record has version 0, expected 6"),
        (format!("{header}\nnonsense\n{rest}"), "line 2 is not an input"),
        (format!("{header}\n\n{rest}"), "line 2 is not an input"),
        (format!("{text}{header}\n"), "is not an input"),
    ];
    for (text, expected) in cases {
        let error = read(&text).unwrap_err();
        assert!(error.to_string().ends_with(expected), "{error}");
        let has_source = std::error::Error::source(&error).is_some();
        assert_eq!(has_source, !matches!(error, RecordError::Version { .. }));
    }
}

/// Other programs and later versions read the format, so a change needs a new version.
#[test]
fn lines_are_as_documented() {
    let header = RecordHeader::new(SessionId::new("s"), None, Start::default());
    let mut header = serde_json::to_value(header).unwrap();
    header["made_by"] = json!("x");
    let limits = header["start"]["limits"].take();
    assert_eq!(limits["max_turns"], 0);
    assert_eq!(header, json!({"version": 6, "made_by": "x", "session_id": "s", "start": {"limits": null}}));
    let input = Input::new(crate::Timestamp::from_millis(0), InputKind::Steer { message: "hello".into() });
    let mut entry = RecordEntry::alone(input);
    entry.request = Some(Fingerprint::from_bytes(b"r"));
    let line = serde_json::to_value(entry).unwrap();
    let expected = json!({
        "at": "1970-01-01T00:00:00.000Z", "input": "steer", "text": "hello", "request": Fingerprint::from_bytes(b"r"),
    });
    assert_eq!(line, expected);
}

/// Earlier versions used each summary with text, and did not record it.
#[test]
fn entries_of_earlier_versions_use_their_summaries() {
    let input = Input::new(crate::Timestamp::from_millis(0), InputKind::Compact);
    let entry = RecordEntry::alone(input);
    for (version, summarized) in [(1, true), (4, true), (5, true), (6, false)] {
        assert_eq!(entry.followed(version).summarized, summarized, "version {version}");
    }
}

#[test]
fn images_of_messages_are_read_back() {
    let message = UserMessage::from("look").with_image(ImageData::data(vec![1, 2, 3], "image/png"));
    let images = json!([{"data": "AQID", "media_type": "image/png"}]);
    let cases = [
        (InputKind::Submit { run: RunId(3), message: message.clone() }, json!({"input": "submit", "run": 3})),
        (InputKind::Steer { message: message.clone() }, json!({"input": "steer"})),
        (InputKind::FollowUp { message }, json!({"input": "follow_up"})),
    ];
    for (kind, mut expected) in cases {
        let entry = RecordEntry::alone(Input::new(crate::Timestamp::from_millis(0), kind));
        let line = serde_json::to_value(&entry).unwrap();
        expected["at"] = json!("1970-01-01T00:00:00.000Z");
        expected["text"] = json!("look");
        expected["images"] = images.clone();
        assert_eq!(line, expected);
        assert_eq!(serde_json::from_value::<RecordEntry>(line).unwrap(), entry);
    }
}
