#![expect(clippy::wildcard_enum_match_arm, reason = "tests look at few kinds of events")]

use pintle_env::Output;

use super::*;
use crate::protocol::CallKind;

fn log() -> Arc<EventLog> {
    let identity = Identity { session_id: SessionId::new("s"), depth: 0, parent: None };
    Arc::new(EventLog::new(identity))
}

const NOW: fn() -> Timestamp = || Timestamp::from_millis(0);

fn drain(cursor: &mut Cursor) -> Vec<(u64, Option<u64>, String)> {
    let mut seen = Vec::new();
    while let ReadOutcome::Event(event) = cursor.find() {
        let text = match &event.kind {
            EventKind::AssistantTextDelta { delta } => delta.clone(),
            EventKind::AssistantTextEnd { text, .. } => format!("end:{text}"),
            EventKind::Gap { skipped } => format!("gap:{skipped}"),
            EventKind::AssistantTextStart {} | EventKind::ToolCallStart { .. } => "start".into(),
            EventKind::ToolCallOutputDelta { delta, .. } => delta.clone(),
            EventKind::ToolCallEnd { .. } => "end".into(),
            other => format!("{other:?}"),
        };
        seen.push((event.seq, event.offset, text));
    }
    seen
}

fn end(text: &str) -> EventKind {
    EventKind::AssistantTextEnd { text: text.into(), interrupted: false }
}

#[test]
fn readers_get_all_events_and_complete_deltas() {
    let log = log();
    let mut quick = Cursor::new(Arc::clone(&log), 0);
    let start = log.append(NOW(), EventKind::AssistantTextStart {});
    log.delta(NOW(), start, "ab");
    assert_eq!(drain(&mut quick), [(0, None, "start".into()), (0, Some(0), "ab".into())]);
    log.delta(NOW(), start, "cd");
    let mut late = Cursor::new(Arc::clone(&log), 1);
    assert_eq!(drain(&mut late), [(0, Some(0), "abcd".into())], "a late reader gets the text so far");
    log.append_end(NOW(), start, end("abcd"));
    assert_eq!(drain(&mut quick), [(0, Some(2), "cd".into()), (1, None, "end:abcd".into())]);
    assert_eq!(drain(&mut late), [(1, None, "end:abcd".into())]);
    let mut after = Cursor::new(Arc::clone(&log), 0);
    assert_eq!(
        drain(&mut after),
        [(0, None, "start".into()), (0, Some(0), "abcd".into()), (1, None, "end:abcd".into())]
    );
    assert!(matches!(quick.find(), ReadOutcome::Nothing));
    log.close();
    assert!(matches!(quick.find(), ReadOutcome::End));
}

#[test]
fn lagging_reader_gets_a_gap() {
    let log = log();
    let mut slow = Cursor::new(Arc::clone(&log), 0);
    let start = log.append(NOW(), EventKind::AssistantTextStart {});
    for _ in 0..3 * KEPT / 1024 {
        log.delta(NOW(), start, &"é".repeat(512));
    }
    let seen = drain(&mut slow);
    assert_eq!(seen.len(), 3);
    let skipped: u64 = seen[1].2.strip_prefix("gap:").unwrap().parse().unwrap();
    assert_eq!(skipped + seen[2].2.len() as u64, 3 * KEPT as u64);
    assert_eq!(seen[2].1, Some(skipped));
    assert!(seen[2].2.len() <= 2 * KEPT + 1024);
}

fn tool_start() -> EventKind {
    EventKind::ToolCallStart {
        call_id: "c".into(),
        tool_name: "shell".into(),
        call_kind: CallKind::Command,
        arguments: serde_json::Value::Null.into(),
    }
}

fn tool_end(output: Output) -> EventKind {
    EventKind::ToolCallEnd {
        call_id: "c".into(),
        tool_name: "shell".into(),
        output,
        error: None,
        timeout_ms: None,
        exit_code: None,
        duration_ms: 0,
        changes: Vec::new(),
        images: Vec::new(),
    }
}

#[test]
fn end_of_a_tool_call_completes_or_replaces_its_deltas() {
    let cases = [
        ("abc", "abc\nExit code: 0", vec!["ab", "c\nExit code: 0"], vec!["abc\nExit code: 0"]),
        ("abc", "Interrupted: the turn was stopped", vec!["ab", "c"], vec!["abc"]),
        ("abc", "ab", vec!["ab", "c"], vec!["abc"]),
        ("abc", "", vec!["ab", "c"], vec!["abc"]),
    ];
    for (streamed, output, quick_reads, late_reads) in cases {
        let log = log();
        let mut quick = Cursor::new(Arc::clone(&log), 0);
        let start = log.append(NOW(), tool_start());
        log.delta(NOW(), start, &streamed[..2]);
        let mut seen = drain(&mut quick);
        log.delta(NOW(), start, &streamed[2..]);
        log.append_end(NOW(), start, tool_end(Output::from(output)));
        seen.extend(drain(&mut quick));
        let late = drain(&mut Cursor::new(Arc::clone(&log), 0));
        for (seen, expected) in [(seen, quick_reads), (late, late_reads)] {
            let texts: Vec<&str> = seen.iter().map(|(_, _, text)| text.as_str()).collect();
            assert_eq!(texts, [vec!["start"], expected, vec!["end"]].concat(), "{output:?}");
        }
    }
}

#[test]
fn dropped_text_of_an_ended_call_is_a_gap() {
    let log = log();
    let mut slow = Cursor::new(Arc::clone(&log), 0);
    let start = log.append(NOW(), tool_start());
    let text = "é".repeat(KEPT_AFTER_END);
    log.delta(NOW(), start, &text);
    let mut spool = pintle_env::OutputCollector::new(pintle_env::OutputLimits::default().with_inline(0));
    spool.push(text.as_bytes());
    log.append_end(NOW(), start, tool_end(spool.finish()));
    let seen = drain(&mut slow);
    assert_eq!(seen[1], (0, Some(0), format!("gap:{KEPT_AFTER_END}")));
    assert_eq!(seen[2].2, "é".repeat(KEPT_AFTER_END / 2));
    assert_eq!((seen.len(), seen[3].2.as_str()), (4, "end"));
}

#[test]
fn delta_has_the_time_of_its_text() {
    let log = log();
    let mut cursor = Cursor::new(Arc::clone(&log), 0);
    let start = log.append(Timestamp::from_millis(1), EventKind::AssistantTextStart {});
    drain(&mut cursor);
    log.delta(Timestamp::from_millis(2), start, "a");
    let ReadOutcome::Event(delta) = cursor.find() else { panic!("there is a delta") };
    assert_eq!(delta.timestamp, Timestamp::from_millis(2));
}

#[tokio::test]
async fn waiting_ends_with_an_event() {
    let log = log();
    let mut cursor = Cursor::new(Arc::clone(&log), 0);
    assert!(matches!(cursor.find(), ReadOutcome::Nothing));
    log.append(NOW(), EventKind::AssistantTextStart {});
    cursor.changed().await;
    assert!(matches!(cursor.find(), ReadOutcome::Event(_)));
}

/// Returns the sequence numbers of the lifecycle events that a new reader gets.
fn kept(log: &Arc<EventLog>) -> Vec<u64> {
    let seen = drain(&mut Cursor::new(Arc::clone(log), 0));
    seen.into_iter().filter(|(_, offset, _)| offset.is_none()).map(|(seq, _, _)| seq).collect()
}

#[test]
fn only_read_events_are_freed() {
    let log = log();
    let mut slow = Cursor::new(Arc::clone(&log), 0);
    for text in ["a", "b"] {
        let start = log.append(NOW(), EventKind::AssistantTextStart {});
        log.append_end(NOW(), start, end(text));
    }
    assert_eq!((log.forget(4).0, kept(&log)), (0, vec![0, 1, 2, 3]), "nobody has read anything");
    assert!(matches!(slow.find(), ReadOutcome::Event(_)));
    assert_eq!((log.forget(4).0, kept(&log)), (1, vec![1, 2, 3]), "one event was read");
    assert_eq!(drain(&mut slow).last().unwrap().2, "end:b", "unread events are kept");
    assert_eq!((log.forget(3).0, kept(&log)), (3, vec![3]), "no more than requested");
    drop(slow);
    assert_eq!((log.forget(u64::MAX).0, kept(&log)), (4, Vec::new()), "a dropped reader keeps no events");
    assert_eq!((log.forget(0).0, log.next_seq()), (4, 4), "numbering continues");
    assert_eq!((log.append(NOW(), EventKind::AssistantTextStart {}), kept(&log)), (4, vec![4]));
}

#[test]
fn open_segments_are_not_freed() {
    let log = log();
    let start = log.append(NOW(), EventKind::AssistantTextStart {});
    log.delta(NOW(), start, "ab");
    log.append(NOW(), EventKind::Warning { message: "w".into() });
    assert_eq!(log.forget(u64::MAX).0, 0);
    let mut late = Cursor::new(Arc::clone(&log), 2);
    assert_eq!(drain(&mut late), [(0, Some(0), "ab".into())]);
    log.append_end(NOW(), start, end("abc"));
    assert_eq!(drain(&mut late), [(0, Some(2), "c".into()), (2, None, "end:abc".into())]);
    assert_eq!(log.forget(u64::MAX).0, 3);
}

#[test]
fn late_reader_knows_open_subagents() {
    let log = log();
    let [ended, at_work, new] = ["ended", "at work", "new"].map(SessionId::new);
    let spawned = |child: &SessionId| EventKind::SubagentSpawned {
        agent_id: "agent".into(),
        child: child.clone(),
        task: "Look.".into(),
    };
    log.append(NOW(), spawned(&ended));
    log.append(NOW(), spawned(&at_work));
    let (agent_id, status) = ("agent".into(), crate::protocol::SubagentStatus::Completed);
    let end = EventKind::SubagentEnded { agent_id, child: ended.clone(), status, turns_used: 0 };
    log.append(NOW(), end);
    log.append(NOW(), spawned(&new));
    let cases = [
        (0, Vec::new(), Vec::new()),
        (1, Vec::new(), vec![ended.clone()]),
        (2, Vec::new(), vec![ended.clone(), at_work.clone()]),
        (3, vec![ended], vec![at_work.clone()]),
        (4, Vec::new(), vec![at_work, new]),
    ];
    for (before, over, open) in cases {
        assert_eq!(log.forget(before), (before, over));
        assert_eq!(Cursor::new(Arc::clone(&log), 0).open_subagents(), open);
    }
}

#[test]
fn arguments_are_deltas_and_kept_for_the_newest_calls() {
    let log = log();
    let start = |call_id: &str| {
        let (call_id, tool_name) = (call_id.to_owned(), "write_file".to_owned());
        log.append(NOW(), EventKind::ToolCallArgumentsStart { call_id, tool_name, call_kind: CallKind::Edit })
    };
    let end = |call_id: &str| {
        let call_id = call_id.to_owned();
        EventKind::ToolCallArgumentsEnd { call_id, interrupted: false }
    };
    let text = |event: &SessionEvent| match &event.kind {
        EventKind::ToolCallArgumentsDelta { delta, .. } => delta.clone(),
        EventKind::ToolCallArgumentsStart { .. } => "start".into(),
        EventKind::ToolCallArgumentsEnd { .. } => "end".into(),
        EventKind::Gap { skipped } => format!("gap {skipped}"),
        other => format!("{other:?}"),
    };
    let read = |cursor: &mut Cursor| {
        let mut seen = Vec::new();
        while let ReadOutcome::Event(event) = cursor.find() {
            seen.push(text(&event));
        }
        seen
    };
    let mut prompt = Cursor::new(Arc::clone(&log), 0);
    let first = start("a");
    log.delta(NOW(), first, "{\"path\"");
    assert_eq!(read(&mut prompt), ["start", "{\"path\""]);
    log.delta(NOW(), first, ": \"a");
    log.delta(NOW(), first, ".txt\"}");
    log.append_end(NOW(), first, end("a"));
    assert_eq!(read(&mut prompt), [": \"a.txt\"}", "end"], "deltas coalesce");
    let mut late = Cursor::new(Arc::clone(&log), 0);
    assert_eq!(read(&mut late), ["start", "{\"path\": \"a.txt\"}", "end"]);
    for _ in 0..KEPT_ARGUMENTS {
        let seq = start("b");
        log.delta(NOW(), seq, "{}");
        log.append_end(NOW(), seq, end("b"));
    }
    let mut later = Cursor::new(Arc::clone(&log), 0);
    assert_eq!(read(&mut later)[..6], ["start", "gap 17", "end", "start", "{}", "end"]);
    assert_eq!(log.lock().arguments.len(), KEPT_ARGUMENTS);
    let mut slow = Cursor::new(Arc::clone(&log), log.next_seq());
    let last = start("c");
    assert_eq!(read(&mut slow), ["start"]);
    log.delta(NOW(), last, "{}");
    log.append_end(NOW(), last, end("c"));
    drop((prompt, late, later));
    assert_eq!(log.forget(u64::MAX).0, last + 1);
    assert_eq!(read(&mut slow), ["{}", "end"], "unread arguments are kept");
    log.forget(u64::MAX);
    assert!(log.lock().arguments.is_empty());
}
