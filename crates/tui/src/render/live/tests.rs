mod approvals;
mod resizing;

use std::num::NonZeroU16;

use pintle_agent::{Money, Outcome, OutcomeStatus, SessionId};
use pintle_llm::Usage;
use proptest::prelude::*;
use serde_json::{Value, json};
use vt100::Parser;

use super::super::activity::TICK;
use super::*;

const COLOURED: Style = Style { terminal: true, colour: true, moves: true };
const PLAIN: Style = Style { terminal: true, colour: false, moves: true };
const DUMB: Style = Style { terminal: true, colour: false, moves: false };

/// View with the terminal that displays it.
struct Harness {
    view: LiveView,
    terminal: Parser,
    now: Duration,
    size: TerminalSize,
    written: String,
}

fn cells(count: usize) -> NonZeroU16 {
    NonZeroU16::new(u16::try_from(count).unwrap()).unwrap()
}

fn terminal(size: TerminalSize) -> Parser {
    Parser::new(cells(size.rows), cells(size.columns), 1_000)
}

fn event(kind: &str, data: &Value) -> SessionEvent {
    let record = json!({
        "seq": 0, "timestamp": "2026-01-02T03:04:05.000Z", "session_id": "s", "kind": kind, "data": data,
    });
    serde_json::from_value(record).unwrap()
}

/// Returns an event of the subagent with this session.
fn subagent_event(session: &str, kind: &str, data: &Value) -> SessionEvent {
    let mut event = event(kind, data);
    (event.depth, event.session_id) = (1, SessionId::new(session));
    event
}

fn started(call_id: &str, tool_name: &str, arguments: &Value) -> (&'static str, Value) {
    ("TOOL_CALL_START", json!({"call_id": call_id, "tool_name": tool_name, "arguments": arguments}))
}

fn ended(call_id: &str, tool_name: &str, output: &str) -> (&'static str, Value) {
    (
        "TOOL_CALL_END",
        json!({"call_id": call_id, "tool_name": tool_name, "output": output, "duration_ms": 1_250}),
    )
}

fn requested() -> (&'static str, Value) {
    ("REQUEST_PREPARED", json!({"fingerprint": "00000000000000ff", "messages": 2}))
}

fn responded() -> (&'static str, Value) {
    let usage = json!({"input_tokens": 12, "output_tokens": 3, "total_tokens": 15});
    let reason = json!({"reason": "tool_calls"});
    ("MODEL_RESPONSE", json!({"response_id": "r", "model": "m", "finish_reason": reason, "usage": usage}))
}

fn arguments_delta(call_id: &str, delta: &str) -> (&'static str, Value) {
    ("TOOL_CALL_ARGUMENTS_DELTA", json!({"call_id": call_id, "delta": delta}))
}

fn arguments_end(call_id: &str, interrupted: bool) -> (&'static str, Value) {
    ("TOOL_CALL_ARGUMENTS_END", json!({"call_id": call_id, "interrupted": interrupted}))
}

fn asked(call_id: &str) -> (&'static str, Value) {
    let reason = "it writes";
    (
        "APPROVAL_REQUESTED",
        json!({"call_id": call_id, "tool_name": "write_file", "arguments": {}, "reason": reason, "fingerprint": "00000000000000ff"}),
    )
}

fn decided(call_id: &str) -> (&'static str, Value) {
    ("APPROVAL_DECIDED", json!({"call_id": call_id, "approved": true}))
}

impl Harness {
    fn new(columns: usize, rows: usize, style: Style) -> Self {
        let size = TerminalSize { columns, rows };
        let view = LiveView::new(style, Detail::Normal);
        Self { view, terminal: terminal(size), now: Duration::ZERO, size, written: String::new() }
    }

    fn write(&mut self, text: &str) {
        self.written.push_str(text);
        // As the terminal driver does.
        self.terminal.process(text.replace('\n', "\r\n").as_bytes());
    }

    /// Displays an event and returns the call to ask about.
    fn event(&mut self, (kind, data): (&str, Value)) -> Option<String> {
        self.display(&event(kind, &data))
    }

    fn display(&mut self, event: &SessionEvent) -> Option<String> {
        let frame = Frame { now: self.now, size: self.size };
        let shown = self.view.event(event, frame);
        self.write(&shown.text);
        shown.approval
    }

    fn events(&mut self, events: impl IntoIterator<Item = (&'static str, Value)>) {
        for event in events {
            self.event(event);
        }
    }

    /// Advances time, with ticks while the view is animated.
    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now += TICK;
            if self.view.is_animated() {
                let shown = self.view.tick(Frame { now: self.now, size: self.size });
                self.write(&shown);
            }
        }
    }

    fn stream_text(&mut self, text: &str) {
        self.events([
            ("ASSISTANT_TEXT_START", json!({})),
            ("ASSISTANT_TEXT_DELTA", json!({"delta": text})),
            ("ASSISTANT_TEXT_END", json!({"text": text})),
        ]);
    }

    /// Streams a call without its end.
    fn draft(&mut self, call_id: &str, tool_name: &str, arguments: &str) {
        let start = json!({"call_id": call_id, "tool_name": tool_name});
        self.event(("TOOL_CALL_ARGUMENTS_START", start));
        self.event(arguments_delta(call_id, arguments));
    }

    fn resize(&mut self, columns: usize, rows: usize) {
        self.size = TerminalSize { columns, rows };
        self.terminal.screen_mut().set_size(cells(rows), cells(columns));
    }

    fn close(&mut self) {
        let mut outcome = Outcome::new(OutcomeStatus::Completed);
        outcome.usage = Usage::new(12_345, 678);
        (outcome.model_calls, outcome.tool_calls) = (2, 1);
        let footer = Footer {
            is_stored: false,
            session_id: &SessionId::new("s"),
            outcome: &outcome,
            answer: None,
            exit_code: 0,
            failure: None,
            error: None,
            duration: Duration::from_millis(4_250),
            cost: Some(Money::from_micros(12_300)),
            subagents: None,
            demo: None,
        };
        let shown = self.view.footer(&footer);
        self.write(&shown);
    }

    fn screen(&self) -> String {
        self.terminal.screen().contents()
    }

    /// Returns the screen of a terminal that receives only the transcript.
    fn transcript(size: TerminalSize, style: Style, events: &[(&'static str, Value)]) -> String {
        let mut view = TextView::new(style, Detail::Normal);
        view.resize(size);
        let mut terminal = terminal(size);
        for (kind, data) in events {
            terminal.process(view.event(&event(kind, data)).replace('\n', "\r\n").as_bytes());
        }
        terminal.screen().contents()
    }
}

/// No event but its own ends a compaction that the user asks for between two runs.
#[test]
fn the_wait_for_a_summary_ends_with_the_compaction() {
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    let gained = json!({"through": 2, "tokens_before": 90, "tokens_after": 20, "usage": usage});
    let failed = json!({"message": "the conversation was not compacted: x"});
    for (is_in_turn, end, is_waiting) in [
        (false, ("COMPACTION_END", gained.clone()), false),
        (false, ("WARNING", failed.clone()), false),
        (true, ("WARNING", failed), true),
    ] {
        let mut harness = Harness::new(80, 24, PLAIN);
        if is_in_turn {
            harness.event(("USER_INPUT", json!({"content": "fix it"})));
        }
        harness.event(("COMPACTION_START", json!({"through": 2})));
        harness.event(requested());
        harness.wait(TICK);
        assert!(harness.screen().contains("waiting for the model"), "{}", harness.screen());
        harness.event(end);
        harness.wait(TICK);
        assert_eq!(harness.screen().contains("waiting for the model"), is_waiting, "{}", harness.screen());
    }
}

#[test]
fn activity_is_shown_below_the_transcript_and_erased() {
    let mut harness = Harness::new(80, 24, PLAIN);
    harness.event(("USER_INPUT", json!({"content": "fix it"})));
    harness.event(requested());
    assert_eq!(harness.screen(), "", "drawn by the first tick");
    harness.wait(TICK);
    insta::assert_snapshot!(harness.screen(), @"⠙ waiting for the model");
    harness.wait(Duration::from_secs(3));
    insta::assert_snapshot!(harness.screen(), @"⠙ waiting for the model 3 s");
    harness.event(("REASONING_START", json!({})));
    harness.wait(TICK);
    insta::assert_snapshot!(harness.screen(), @"⠹ thinking 3 s");
    harness.events([("REASONING_END", json!({"text": ""})), ("ASSISTANT_TEXT_START", json!({}))]);
    harness.event(("ASSISTANT_TEXT_DELTA", json!({"delta": "I run the "})));
    assert_eq!(harness.screen(), "I run the", "no region below incomplete text");
    harness.wait(Duration::from_secs(1));
    harness.event(("ASSISTANT_TEXT_DELTA", json!({"delta": "tests."})));
    harness.events([("ASSISTANT_TEXT_END", json!({"text": "I run the tests."})), responded()]);
    harness.event(started("1", "shell", &json!({"command": "cargo test"})));
    harness.wait(Duration::from_secs(1));
    insta::assert_snapshot!(harness.screen(), @r"
    I run the tests.
    ⠹ shell cargo test 1 s
    ");
    harness.event(ended("1", "shell", "test result: ok\nExit code: 0"));
    harness.event(("PROCESSING_END", json!({"state": "IDLE"})));
    harness.close();
    insta::assert_snapshot!(harness.screen(), @r"
    I run the tests.

    ✓ shell cargo test 1.2 s
        test result: ok
        Exit code: 0

    [done] 2 model calls, 1 tool call, 12,345 tokens in, 678 out, 4.2 s, $0.0123
    ");
    assert_eq!(harness.terminal.screen().cursor_position(), (7, 0));
}

#[test]
fn parallel_calls_have_a_line_each() {
    let mut harness = Harness::new(80, 24, PLAIN);
    harness.event(started("1", "shell", &json!({"command": "make"})));
    harness.event(started("2", "grep", &json!({"pattern": "fn main", "path": "src"})));
    harness.event(started("3", "read_file", &json!({"file_path": "a.rs"})));
    harness.wait(TICK);
    insta::assert_snapshot!(harness.screen(), @r"
    ⠙ shell make
    ⠙ grep fn main src
    ⠙ read_file a.rs
    ");
    let failed = json!({
        "call_id": "2", "tool_name": "grep", "error": "not_found", "duration_ms": 12, "output": "no such directory: src",
    });
    harness.event(("TOOL_CALL_END", failed));
    insta::assert_snapshot!(harness.screen(), @r"
    ✗ grep fn main src not found, 12 ms
        no such directory: src
    ⠙ shell make
    ⠙ read_file a.rs
    ");
    harness.events([ended("3", "read_file", ""), ended("1", "shell", "")]);
    insta::assert_snapshot!(harness.screen(), @r"
    ✗ grep fn main src not found, 12 ms
        no such directory: src
    ✓ read_file a.rs 1.2 s
    ✓ shell make 1.2 s
    ");
}

#[test]
fn subagent_calls_are_labelled() {
    let mut harness = Harness::new(80, 24, PLAIN);
    for (agent, child) in [("agent_1", "c1"), ("agent_2", "c2")] {
        harness.event(("SUBAGENT_SPAWNED", json!({"agent_id": agent, "child": child, "task": "Look."})));
    }
    harness.event(started("1", "wait", &json!({"agent_id": "agent_1"})));
    for child in ["c1", "c2"] {
        let (kind, data) = started("1", "shell", &json!({"command": child}));
        harness.display(&subagent_event(child, kind, &data));
    }
    harness.wait(TICK);
    insta::assert_snapshot!(harness.screen(), @r#"
    [agent_1] started: Look.
    [agent_2] started: Look.
    ⠙ wait {"agent_id":"agent_1"}
    ⠙ agent_1 shell c1
    ⠙ agent_2 shell c2
    "#);
    let (kind, data) = ended("1", "shell", "one\n");
    harness.display(&subagent_event("c1", kind, &data));
    harness.display(&subagent_event("c2", "PROCESSING_END", &json!({"state": "IDLE"})));
    harness.wait(TICK);
    insta::assert_snapshot!(harness.screen(), @r#"
    [agent_1] started: Look.
    [agent_2] started: Look.
    [agent_1] ✓ shell c1 1.2 s
        one
    ⠹ wait {"agent_id":"agent_1"}
    ⠹ agent_1 Look.
    ✓ agent_2 answered Look.
    "#);
}

#[test]
fn subagent_lines_wait_for_the_end_of_text() {
    let mut harness = Harness::new(80, 24, PLAIN);
    harness.event(("SUBAGENT_SPAWNED", json!({"agent_id": "agent_1", "child": "c1", "task": "Look."})));
    harness.event(("ASSISTANT_TEXT_START", json!({})));
    harness.event(("ASSISTANT_TEXT_DELTA", json!({"delta": "It looks "})));
    harness.display(&subagent_event("c1", "ASSISTANT_TEXT_END", &json!({"text": "I look."})));
    harness.event(("ASSISTANT_TEXT_DELTA", json!({"delta": "around."})));
    harness.event(("ASSISTANT_TEXT_END", json!({"text": "It looks around."})));
    harness.event((
        "SUBAGENT_ENDED",
        json!({"agent_id": "agent_1", "child": "c1", "status": "COMPLETED", "turns_used": 1}),
    ));
    insta::assert_snapshot!(harness.screen(), @r"
    [agent_1] started: Look.

    It looks around.

    [agent_1] I look.
    [agent_1] completed, 1 response
    ");
}

#[test]
fn short_calls_do_not_draw_the_live_region() {
    let mut harness = Harness::new(80, 24, PLAIN);
    harness.event(started("1", "read_file", &json!({"file_path": "a.rs"})));
    harness.event(ended("1", "read_file", ""));
    assert_eq!(harness.written, "✓ read_file a.rs 1.2 s\n");
}

#[test]
fn streamed_patch_is_shown_as_a_diff() {
    let mut harness = Harness::new(80, 24, PLAIN);
    harness.event(requested());
    harness.draft(
        "1",
        "apply_patch",
        "{\"patch\": \"*** Begin Patch\\n*** Update File: src/a.rs\\n@@ fn main\\n-old\\n+n",
    );
    harness.wait(TICK);
    insta::assert_snapshot!(harness.screen(), @r"
    ⠙ apply_patch src/a.rs +0 -1
        M src/a.rs
        @@
        @@ fn main
        -old
    ");
    harness.event(arguments_delta("1", "ew\\n*** End Patch\\n\"}"));
    harness.event(arguments_end("1", false));
    harness.events([responded(), started("1", "apply_patch", &json!({"patch": "…"}))]);
    harness.wait(TICK);
    insta::assert_snapshot!(harness.screen(), @r"
    ⠹ apply_patch …
        M src/a.rs
        @@
        @@ fn main
        -old
        +new
    ");
    let diff = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-old\n+new\n";
    let done = json!({
        "call_id": "1", "tool_name": "apply_patch", "output": "", "duration_ms": 2,
        "changes": [{"path": "src/a.rs", "kind": "modified", "diff": diff}],
    });
    harness.event(("TOOL_CALL_END", done));
    insta::assert_snapshot!(harness.screen(), @r"
    ✓ apply_patch … 2 ms
        --- a/src/a.rs
        +++ b/src/a.rs
        @@ -1 +1 @@
        -old
        +new
    ");
}

#[test]
fn failed_edit_leaves_no_diff() {
    let mut harness = Harness::new(80, 24, PLAIN);
    harness.event(requested());
    let arguments = json!({"file_path": "a.rs", "old_string": "one\ntwo\n", "new_string": "one\n2\n"});
    harness.draft("1", "Edit", &arguments.to_string());
    harness.event(arguments_end("1", false));
    harness.wait(TICK);
    insta::assert_snapshot!(harness.screen(), @r"
    ⠙ Edit a.rs +1 -1
         one
        -two
        +2
    ");
    harness.events([responded(), started("1", "Edit", &arguments)]);
    let failed = json!({
        "call_id": "1", "tool_name": "Edit", "error": "edit_conflict", "duration_ms": 0, "output": "not found in a.rs",
    });
    harness.event(("TOOL_CALL_END", failed));
    insta::assert_snapshot!(harness.screen(), @r"
    ✗ Edit a.rs does not apply, 0 ms
        not found in a.rs
    ");
    harness.event(requested());
    harness.wait(TICK);
    assert!(harness.screen().ends_with("⠹ waiting for the model"), "{}", harness.screen());
}

#[test]
fn drafts_of_an_interrupted_response_are_dropped() {
    let mut harness = Harness::new(80, 24, PLAIN);
    harness.event(requested());
    harness.draft("1", "write_file", "{\"file_path\": \"a.rs\", \"content\": \"one\\n\"}");
    harness.event(arguments_end("1", false));
    harness.draft("2", "write_file", "{\"file_path\": \"b.rs\", \"content\": \"tw");
    harness.wait(TICK);
    insta::assert_snapshot!(harness.screen(), @r"
    ⠙ write_file a.rs +1 -0
        +one
    ⠙ write_file b.rs +1 -0
        +tw
    ");
    harness.event(arguments_end("2", true));
    harness.wait(TICK);
    insta::assert_snapshot!(harness.screen(), @"⠹ waiting for the model");
}

/// The arguments of an edit may arrive in one piece, or a slow reader may miss deltas of them.
#[test]
fn call_start_completes_its_draft() {
    let arguments = json!({"file_path": "a.rs", "old_string": "one\ntwo\n", "new_string": "one\n2\n"});
    for missed in [false, true] {
        let mut harness = Harness::new(80, 24, PLAIN);
        harness.event(requested());
        if missed {
            harness.draft("1", "Edit", "{\"file_path\": \"a.rs\", \"old_string\": \"on");
            harness.event(("GAP", json!({"skipped": 20})));
            harness.event(arguments_delta("1", "\"new_string\": \"o"));
            harness.event(arguments_end("1", false));
        }
        harness.events([responded(), started("1", "Edit", &arguments)]);
        harness.wait(TICK);
        let screen = harness.screen();
        assert!(screen.ends_with("⠙ Edit a.rs\n     one\n    -two\n    +2"), "{missed}: {screen}");
    }
}

#[test]
fn drafts_of_subagents_are_not_shown() {
    let mut harness = Harness::new(80, 24, PLAIN);
    harness.event(requested());
    let start = json!({"call_id": "1", "tool_name": "write_file"});
    harness.display(&subagent_event("c1", "TOOL_CALL_ARGUMENTS_START", &start));
    let (kind, data) = arguments_delta("1", "{\"content\": \"one");
    harness.display(&subagent_event("c1", kind, &data));
    harness.wait(TICK);
    insta::assert_snapshot!(harness.screen(), @"⠙ waiting for the model");
}

#[test]
fn no_color_removes_only_colours() {
    let diff = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new\n";
    let done = json!({
        "call_id": "1", "tool_name": "Edit", "output": "", "duration_ms": 2,
        "changes": [{"path": "a", "kind": "modified", "diff": diff}],
    });
    let run = |style| {
        let mut harness = Harness::new(80, 24, style);
        harness.event(requested());
        harness.draft("1", "Edit", "{\"old_string\": \"gone\", \"new_string\": \"come");
        harness.wait(TICK);
        let colours: Vec<vt100::Color> =
            (0..3).map(|row| harness.terminal.screen().cell(row, 4).unwrap().fgcolor()).collect();
        harness.events([
            responded(),
            started("1", "Edit", &json!({"file_path": "a"})),
            ("TOOL_CALL_END", done.clone()),
        ]);
        (colours, harness)
    };
    let (drafted, harness) = run(COLOURED);
    assert_eq!(drafted[1..], [vt100::Color::Idx(1), vt100::Color::Idx(2)]);
    let colour = |row, column| harness.terminal.screen().cell(row, column).unwrap().fgcolor();
    assert_eq!(
        (colour(0, 0), colour(4, 4), colour(5, 4)),
        (vt100::Color::Idx(2), vt100::Color::Idx(1), vt100::Color::Idx(2))
    );
    let (_, coloured) = run(COLOURED);
    let (_, plain) = run(PLAIN);
    assert_eq!(coloured.screen(), plain.screen());
    assert!(!plain.written.contains('m') || !plain.written.contains("\u{1b}[3"), "{:?}", plain.written);
}

#[test]
fn dumb_terminal_has_no_live_region() {
    let mut harness = Harness::new(80, 24, DUMB);
    harness.event(requested());
    harness.wait(Duration::from_secs(1));
    harness.stream_text("Well.");
    harness.event(started("1", "shell", &json!({"command": "make"})));
    harness.wait(Duration::from_secs(1));
    harness.event(ended("1", "shell", "done"));
    harness.close();
    insta::assert_snapshot!(harness.written, @r"
    Well.

    [shell] make (ok, 1.2 s)
        done

    [done] 2 model calls, 1 tool call, 12,345 tokens in, 678 out, 4.2 s, $0.0123
    ");
}

#[test]
fn control_characters_never_reach_the_screen() {
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\u{202e}evil\u{8}";
    let mut harness = Harness::new(80, 24, PLAIN);
    harness.event(requested());
    harness.draft(evil, evil, &json!({"file_path": evil, "content": evil}).to_string());
    harness.wait(TICK);
    harness.stream_text(evil);
    harness.event(responded());
    harness.event(started("1", evil, &json!({"command": evil})));
    harness.wait(TICK);
    harness.event(("TOOL_CALL_OUTPUT_DELTA", json!({"call_id": "1", "delta": evil})));
    harness.event(ended("1", evil, evil));
    harness.event(("WARNING", json!({"message": evil})));
    for ours in ["\u{1b}[?7l", "\u{1b}[?7h", "\u{1b}[K", "\u{1b}[J", "\u{1b}[1A"] {
        harness.written = harness.written.replace(ours, "");
    }
    let bad = harness.written.replace("\r", "");
    assert!(!bad.chars().any(pintle_host::sanitize::is_control), "{bad:?}");
}

/// Step of a generated run.
#[derive(Clone, Debug)]
enum Step {
    Event(usize),
    Wait(u64),
}

/// Events that a view accepts in any order.
fn events() -> Vec<(&'static str, Value)> {
    vec![
        requested(),
        responded(),
        ("ASSISTANT_TEXT_START", json!({})),
        ("ASSISTANT_TEXT_DELTA", json!({"delta": "words "})),
        ("ASSISTANT_TEXT_DELTA", json!({"delta": "全角 line\n"})),
        (
            "ASSISTANT_TEXT_DELTA",
            json!({"delta": "a line that is so long that it must be wrapped at words "}),
        ),
        ("ASSISTANT_TEXT_END", json!({"text": ""})),
        started("1", "shell", &json!({"command": "a command that is longer than the terminal is wide"})),
        ended("1", "shell", "out\nout"),
        started("2", "grep", &json!({"pattern": "x"})),
        ended("2", "grep", ""),
        ("WARNING", json!({"message": "careful"})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if pintle_test_conditions::is_full() { 256 } else { 64 }))]

    /// After any sequence of events, the screen shows exactly the transcript.
    #[test]
    fn final_screen_is_the_transcript(
        steps in proptest::collection::vec(
            prop_oneof![4 => (0..12_usize).prop_map(Step::Event), 1 => (1..9_u64).prop_map(Step::Wait)], 0..60,
        ),
        rows in 2..30_usize,
    ) {
        let mut harness = Harness::new(40, rows, PLAIN);
        let mut happened = Vec::new();
        for step in steps {
            match step {
                Step::Event(index) => {
                    happened.push(events()[index].clone());
                    harness.event(events()[index].clone());
                }
                Step::Wait(ticks) => harness.wait(TICK * u32::try_from(ticks).unwrap()),
            }
        }
        happened.push(("PROCESSING_END", json!({"state": "IDLE"})));
        harness.event(("PROCESSING_END", json!({"state": "IDLE"})));
        // Show everything that has scrolled away.
        harness.resize(40, 1_000);
        let expected = Harness::transcript(TerminalSize { columns: 40, rows: 1_000 }, PLAIN, &happened);
        let found = harness.screen();
        prop_assert_eq!(found.trim_end(), expected.trim_end());
    }
}
