//! Approval requests.

use super::*;

/// Calls of different sessions may share an id.
#[test]
fn approvals_with_the_same_call_id_are_distinct() {
    let mut harness = Harness::new(80, 24, PLAIN);
    let (kind, data) = asked("1");
    let first = harness.display(&subagent_event("c1", kind, &data)).unwrap();
    assert_eq!(harness.event((kind, data.clone())), None, "one at a time");
    let (over, over_data) = decided("1");
    assert_eq!(harness.display(&subagent_event("c1", over, &over_data)), Some("1".to_owned()));
    assert_ne!(first, "1");
    assert_eq!(harness.display(&subagent_event("c1", "PROCESSING_END", &json!({"state": "IDLE"}))), None);
    assert_eq!(harness.display(&subagent_event("c1", kind, &data)), None, "the session's own is still open");
    assert_eq!(harness.event((over, over_data)), Some(first));
}

#[test]
fn output_is_deferred_during_a_question() {
    for style in [PLAIN, DUMB] {
        let mut harness = Harness::new(80, 24, style);
        harness.event(started("1", "shell", &json!({"command": "make"})));
        harness.wait(TICK);
        assert_eq!(harness.event(asked("2")).as_deref(), Some("2"));
        assert_eq!(harness.screen().trim_end(), "[approval] write_file needs approval: it writes");
        harness.write("Run it? ");
        let before = harness.written.len();
        harness.wait(Duration::from_secs(2));
        assert_eq!(harness.event(asked("3")), None, "one question at a time");
        assert_eq!(harness.event(ended("1", "shell", "done")), None);
        harness.wait(Duration::from_secs(2));
        assert_eq!(harness.written.len(), before);
        harness.write("y\n");
        assert_eq!(harness.event(decided("2")).as_deref(), Some("3"), "the next one");
        harness.write("Run it? n\n");
        assert_eq!(harness.event(decided("3")), None);
        harness.event(started("2", "write_file", &json!({"file_path": "a"})));
        harness.wait(TICK);
        let shell = if style.moves { "✓ shell make 1.2 s" } else { "[shell] make (ok, 1.2 s)" };
        let running = if style.moves { "\n⠲ write_file a" } else { "" };
        let running = running.replace(
            '⠲',
            super::super::super::activity::SPINNER[harness.now.as_millis() as usize / 100 % 10],
        );
        assert_eq!(
            harness.screen().trim_end(),
            format!(
                "[approval] write_file needs approval: it writes\nRun it? y\n\
                 [approval] write_file needs approval: it writes\n{shell}\n    done\nRun it? n{running}"
            )
        );
    }
}

#[test]
fn unanswered_question_releases_deferred_output() {
    let mut harness = Harness::new(80, 24, PLAIN);
    harness.event(asked("1"));
    harness.event(("WARNING", json!({"message": "slow"})));
    assert!(!harness.screen().contains("slow"));
    harness.event(("PROCESSING_END", json!({"state": "IDLE"})));
    assert!(harness.screen().contains("[warning] slow"));
}
