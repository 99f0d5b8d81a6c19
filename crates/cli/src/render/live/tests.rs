use std::num::NonZeroU16;

use pintle_agent::{Outcome, OutcomeStatus, SessionId};
use pintle_llm::{PartialToolCall, StreamEvent, ToolCall, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};
use vt100::Parser;

use super::super::waits::TICK;
use super::*;
use crate::exit::Exit;

const COLOURED: Style = Style { terminal: true, colour: true, moves: true };
const PLAIN: Style = Style { terminal: true, colour: false, moves: true };
const DUMB: Style = Style { terminal: true, colour: false, moves: false };

/// A view and the terminal that shows it.
struct Bench {
    view: LiveView,
    drafts: Drafts,
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

/// That of a subagent, which has its session's name.
fn of_agent(session: &str, kind: &str, data: &Value) -> SessionEvent {
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

impl Bench {
    fn new(columns: usize, rows: usize, style: Style) -> Self {
        let (size, drafts) = (TerminalSize { columns, rows }, Drafts::default());
        let view = LiveView::new(style, Detail::Normal, drafts.clone());
        Self { view, drafts, terminal: terminal(size), now: Duration::ZERO, size, written: String::new() }
    }

    fn write(&mut self, text: &str) {
        self.written.push_str(text);
        // As the driver of a terminal does.
        self.terminal.process(text.replace('\n', "\r\n").as_bytes());
    }

    /// Shows an event and gives the call that is asked about.
    fn event(&mut self, (kind, data): (&str, Value)) -> Option<String> {
        self.show(&event(kind, &data))
    }

    fn show(&mut self, event: &SessionEvent) -> Option<String> {
        let frame = Frame { now: self.now, size: self.size };
        let shown = self.view.event(event, frame);
        self.write(&shown.text);
        shown.asks
    }

    fn events(&mut self, events: impl IntoIterator<Item = (&'static str, Value)>) {
        for event in events {
            self.event(event);
        }
    }

    /// Lets time go by, in ticks while something waits.
    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now += TICK;
            if self.view.waits() {
                let shown = self.view.tick(Frame { now: self.now, size: self.size });
                self.write(&shown);
            }
        }
    }

    fn say(&mut self, text: &str) {
        self.events([
            ("ASSISTANT_TEXT_START", json!({})),
            ("ASSISTANT_TEXT_DELTA", json!({"delta": text})),
            ("ASSISTANT_TEXT_END", json!({"text": text})),
        ]);
    }

    /// The model writes a call, all but the last characters of its arguments.
    fn draft(&mut self, call_id: &str, tool_name: &str, arguments: &str) {
        let tool_call = PartialToolCall { id: call_id.to_owned(), name: tool_name.to_owned() };
        self.drafts.event(&StreamEvent::ToolCallStart { tool_call: tool_call.clone() });
        self.drafts.event(&StreamEvent::ToolCallDelta { tool_call, delta: arguments.to_owned() });
    }

    fn resize(&mut self, columns: usize, rows: usize) {
        self.size = TerminalSize { columns, rows };
        self.terminal.screen_mut().set_size(cells(rows), cells(columns));
    }

    fn close(&mut self) {
        let mut outcome = Outcome::new(OutcomeStatus::Completed);
        outcome.usage = Usage::new(12_345, 678);
        (outcome.model_calls, outcome.tool_calls) = (2, 1);
        let closing = Footer {
            session_id: &SessionId::new("s"),
            outcome: &outcome,
            exit: Exit::Done,
            failure: None,
            duration: Duration::from_millis(4_250),
            cost: Some(0.0123),
            below: None,
            demonstration: None,
        };
        let shown = self.view.closing(&closing);
        self.write(&shown);
    }

    fn screen(&self) -> String {
        self.terminal.screen().contents()
    }

    /// What a terminal shows that is sent the transcript alone.
    fn transcript(size: TerminalSize, style: Style, events: &[(&'static str, Value)]) -> String {
        let mut view = TextView::new(style, Detail::Normal);
        view.fit(size);
        let mut terminal = terminal(size);
        for (kind, data) in events {
            terminal.process(view.event(&event(kind, data)).replace('\n', "\r\n").as_bytes());
        }
        terminal.screen().contents()
    }
}

#[test]
fn what_waits_stands_below_the_transcript_and_is_gone_when_it_is_over() {
    let mut bench = Bench::new(80, 24, PLAIN);
    bench.event(("USER_INPUT", json!({"content": "fix it"})));
    bench.event(requested());
    assert_eq!(bench.screen(), "", "the first look is a tick's");
    bench.wait(TICK);
    insta::assert_snapshot!(bench.screen(), @"⠙ waiting for the model");
    bench.wait(Duration::from_secs(3));
    insta::assert_snapshot!(bench.screen(), @"⠙ waiting for the model 3 s");
    bench.event(("REASONING_START", json!({})));
    bench.wait(TICK);
    insta::assert_snapshot!(bench.screen(), @"⠹ thinking 3 s");
    bench.events([("REASONING_END", json!({"text": ""})), ("ASSISTANT_TEXT_START", json!({}))]);
    bench.event(("ASSISTANT_TEXT_DELTA", json!({"delta": "I run the "})));
    assert_eq!(bench.screen(), "I run the", "nothing stands below text that grows");
    bench.wait(Duration::from_secs(1));
    bench.event(("ASSISTANT_TEXT_DELTA", json!({"delta": "tests."})));
    bench.events([("ASSISTANT_TEXT_END", json!({"text": "I run the tests."})), responded()]);
    bench.event(started("1", "shell", &json!({"command": "cargo test"})));
    bench.wait(Duration::from_secs(1));
    insta::assert_snapshot!(bench.screen(), @r"
    I run the tests.
    ⠹ shell cargo test 1 s
    ");
    bench.event(ended("1", "shell", "test result: ok\nExit code: 0"));
    bench.event(("PROCESSING_END", json!({"state": "IDLE"})));
    bench.close();
    insta::assert_snapshot!(bench.screen(), @r"
    I run the tests.

    ✓ shell cargo test 1.2 s
        test result: ok
        Exit code: 0

    [done] 2 model calls, 1 tool call, 12,345 tokens in, 678 out, 4.2 s, $0.0123
    ");
    assert_eq!(bench.terminal.screen().cursor_position(), (7, 0));
}

#[test]
fn calls_that_run_at_the_same_time_have_a_line_each() {
    let mut bench = Bench::new(80, 24, PLAIN);
    bench.event(started("1", "shell", &json!({"command": "make"})));
    bench.event(started("2", "grep", &json!({"pattern": "fn main", "path": "src"})));
    bench.event(started("3", "read_file", &json!({"file_path": "a.rs"})));
    bench.wait(TICK);
    insta::assert_snapshot!(bench.screen(), @r"
    ⠙ shell make
    ⠙ grep fn main src
    ⠙ read_file a.rs
    ");
    let failed = json!({
        "call_id": "2", "tool_name": "grep", "error": "not_found", "duration_ms": 12, "output": "no such directory: src",
    });
    bench.event(("TOOL_CALL_END", failed));
    insta::assert_snapshot!(bench.screen(), @r"
    ✗ grep fn main src not found, 12 ms
        no such directory: src
    ⠙ shell make
    ⠙ read_file a.rs
    ");
    bench.events([ended("3", "read_file", ""), ended("1", "shell", "")]);
    insta::assert_snapshot!(bench.screen(), @r"
    ✗ grep fn main src not found, 12 ms
        no such directory: src
    ✓ read_file a.rs 1.2 s
    ✓ shell make 1.2 s
    ");
}

#[test]
fn the_calls_of_subagents_have_lines_with_their_names() {
    let mut bench = Bench::new(80, 24, PLAIN);
    for (agent, child) in [("agent_1", "c1"), ("agent_2", "c2")] {
        bench.event(("SUBAGENT_SPAWNED", json!({"agent_id": agent, "child": child, "task": "Look."})));
    }
    bench.event(started("1", "wait", &json!({"agent_id": "agent_1"})));
    for child in ["c1", "c2"] {
        let (kind, data) = started("1", "shell", &json!({"command": child}));
        bench.show(&of_agent(child, kind, &data));
    }
    bench.wait(TICK);
    insta::assert_snapshot!(bench.screen(), @r#"
    [agent_1] begins: Look.
    [agent_2] begins: Look.
    ⠙ wait {"agent_id":"agent_1"}
    ⠙ agent_1 shell c1
    ⠙ agent_2 shell c2
    "#);
    let (kind, data) = ended("1", "shell", "one\n");
    bench.show(&of_agent("c1", kind, &data));
    bench.show(&of_agent("c2", "PROCESSING_END", &json!({"state": "IDLE"})));
    bench.wait(TICK);
    insta::assert_snapshot!(bench.screen(), @r#"
    [agent_1] begins: Look.
    [agent_2] begins: Look.
    [agent_1] ✓ shell c1 1.2 s
        one
    ⠹ wait {"agent_id":"agent_1"}
    "#);
}

#[test]
fn what_a_subagent_does_stands_within_no_text() {
    let mut bench = Bench::new(80, 24, PLAIN);
    bench.event(("SUBAGENT_SPAWNED", json!({"agent_id": "agent_1", "child": "c1", "task": "Look."})));
    bench.event(("ASSISTANT_TEXT_START", json!({})));
    bench.event(("ASSISTANT_TEXT_DELTA", json!({"delta": "It looks "})));
    bench.show(&of_agent("c1", "ASSISTANT_TEXT_END", &json!({"text": "I look."})));
    bench.event(("ASSISTANT_TEXT_DELTA", json!({"delta": "around."})));
    bench.event(("ASSISTANT_TEXT_END", json!({"text": "It looks around."})));
    bench.event((
        "SUBAGENT_ENDED",
        json!({"agent_id": "agent_1", "child": "c1", "status": "COMPLETED", "turns_used": 1}),
    ));
    insta::assert_snapshot!(bench.screen(), @r"
    [agent_1] begins: Look.

    It looks around.

    [agent_1] I look.
    [agent_1] completed, 1 answer
    ");
}

/// Calls of different sessions may have the same id, and each is asked about once.
#[test]
fn questions_about_calls_of_one_id_are_told_apart() {
    let mut bench = Bench::new(80, 24, PLAIN);
    let (kind, data) = asked("1");
    let first = bench.show(&of_agent("c1", kind, &data)).unwrap();
    assert_eq!(bench.event((kind, data.clone())), None, "one at a time");
    let (over, over_data) = decided("1");
    assert_eq!(bench.show(&of_agent("c1", over, &over_data)), Some("1".to_owned()));
    assert_ne!(first, "1");
    assert_eq!(bench.show(&of_agent("c1", "PROCESSING_END", &json!({"state": "IDLE"}))), None);
    assert_eq!(bench.show(&of_agent("c1", kind, &data)), None, "the session's own is still open");
    assert_eq!(bench.event((over, over_data)), Some(first));
}

#[test]
fn calls_that_are_over_at_once_have_no_line_that_changes() {
    let mut bench = Bench::new(80, 24, PLAIN);
    bench.event(started("1", "read_file", &json!({"file_path": "a.rs"})));
    bench.event(ended("1", "read_file", ""));
    assert_eq!(bench.written, "✓ read_file a.rs 1.2 s\n");
}

#[test]
fn a_patch_is_seen_while_it_is_written() {
    let mut bench = Bench::new(80, 24, PLAIN);
    bench.event(requested());
    bench.draft(
        "1",
        "apply_patch",
        "{\"patch\": \"*** Begin Patch\\n*** Update File: src/a.rs\\n@@ fn main\\n-old\\n+n",
    );
    bench.wait(TICK);
    insta::assert_snapshot!(bench.screen(), @r"
    ⠙ apply_patch src/a.rs +0 -1
        M src/a.rs
        @@
        @@ fn main
        -old
    ");
    let tool_call = PartialToolCall { id: "1".to_owned(), name: "apply_patch".to_owned() };
    let delta = "ew\\n*** End Patch\\n\"}".to_owned();
    bench.drafts.event(&StreamEvent::ToolCallDelta { tool_call, delta });
    bench.events([responded(), started("1", "apply_patch", &json!({"patch": "…"}))]);
    bench.wait(TICK);
    insta::assert_snapshot!(bench.screen(), @r"
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
    bench.event(("TOOL_CALL_END", done));
    insta::assert_snapshot!(bench.screen(), @r"
    ✓ apply_patch … 2 ms
        --- a/src/a.rs
        +++ b/src/a.rs
        @@ -1 +1 @@
        -old
        +new
    ");
}

#[test]
fn an_edit_is_a_diff_when_it_is_complete_and_leaves_nothing_if_it_fails() {
    let mut bench = Bench::new(80, 24, PLAIN);
    bench.event(requested());
    let arguments = json!({"file_path": "a.rs", "old_string": "one\ntwo\n", "new_string": "one\n2\n"});
    bench.draft("1", "Edit", &arguments.to_string());
    let call = ToolCall::new("1", "Edit", arguments.as_object().unwrap().clone());
    bench.drafts.event(&StreamEvent::ToolCallEnd { tool_call: call });
    bench.wait(TICK);
    insta::assert_snapshot!(bench.screen(), @r"
    ⠙ Edit a.rs +1 -1
         one
        -two
        +2
    ");
    bench.events([responded(), started("1", "Edit", &arguments)]);
    let failed = json!({
        "call_id": "1", "tool_name": "Edit", "error": "edit_conflict", "duration_ms": 0, "output": "not found in a.rs",
    });
    bench.event(("TOOL_CALL_END", failed));
    insta::assert_snapshot!(bench.screen(), @r"
    ✗ Edit a.rs does not apply, 0 ms
        not found in a.rs
    ");
    bench.drafts.begin();
    bench.event(requested());
    bench.wait(TICK);
    assert!(bench.screen().ends_with("⠹ waiting for the model"), "{}", bench.screen());
}

#[test]
fn lines_that_change_fit_into_forty_columns() {
    let mut bench = Bench::new(40, 10, PLAIN);
    bench.event(started(
        "1",
        "shell",
        &json!({"command": "cargo test --workspace --all-targets --all-features"}),
    ));
    bench.event(started(
        "2",
        "grep",
        &json!({"pattern": "全角文字の検索パターンはとても長いです", "path": "src"}),
    ));
    bench.event(started("3", "grep", &json!({"pattern": "e\u{301}e\u{301}\tx\u{1b}[2Jy\u{7}z"})));
    bench.wait(Duration::from_secs(75));
    insta::assert_snapshot!(bench.screen(), @r"
    ⠋ shell cargo test --worksp… 1 min 15 s
    ⠋ grep 全角文字の検索パター… 1 min 15 s
    ⠋ grep éé x [2Jy z 1 min 15 s
    ");
}

#[test]
fn in_a_very_narrow_window_a_line_says_first_what_it_is_about() {
    let rows = [
        (1, ""),
        (2, "⠼"),
        (3, "⠼ "),
        (4, "⠼ …"),
        (9, "⠼ shell "),
        (10, "⠼ shell …"),
        (12, "⠼ shell 日…"),
        (13, "⠼ shell  4 s"),
        (16, "⠼ shell 日… 4 s"),
    ];
    for (columns, expected) in rows {
        let mut bench = Bench::new(columns, 5, PLAIN);
        bench.event(started("1", "shell", &json!({"command": "日本"})));
        bench.wait(Duration::from_millis(4_400));
        let first = bench.terminal.screen().rows(0, columns.try_into().unwrap()).next().unwrap();
        assert_eq!(first, expected, "{columns} columns");
    }
}

#[test]
fn there_are_never_more_lines_that_change_than_rows() {
    for rows in 1..8 {
        let mut bench = Bench::new(40, rows, PLAIN);
        bench.say("Five at once.");
        for call in ["1", "2", "3", "4", "5"] {
            bench.event(started(call, "read_file", &json!({"file_path": call})));
        }
        bench.wait(Duration::from_secs(2));
        let lines =
            bench.screen().lines().filter(|line| line.starts_with('⠋') || line.starts_with('…')).count();
        assert_eq!(lines, (rows - 1).min(5), "{}", bench.screen());
        for call in ["1", "2", "3", "4", "5"] {
            bench.event(ended(call, "read_file", ""));
        }
        bench.resize(40, 20);
        let shown = bench.screen();
        let lines: Vec<&str> = shown.lines().collect();
        let done = |call| format!("✓ read_file {call} 1.2 s");
        let expected: Vec<String> =
            ["Five at once.".to_owned(), String::new()].into_iter().chain((1..6).map(done)).collect();
        assert_eq!(lines, expected, "{rows}");
    }
}

#[test]
fn a_resize_leaves_no_garbage() {
    let long = json!({"command": "cargo test --workspace --all-targets --all-features --no-fail-fast -- --nocapture"});
    for (columns, rows) in [(40, 24), (120, 24), (79, 24), (80, 4), (20, 3), (80, 50)] {
        let mut bench = Bench::new(80, 24, PLAIN);
        bench.event(started("1", "shell", &long));
        bench.event(started("2", "grep", &json!({"pattern": "x"})));
        bench.wait(TICK);
        bench.resize(columns, rows);
        bench.wait(TICK);
        let shown = bench.screen();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 2, "{columns} {rows}: {shown}");
        assert!(lines[0].starts_with("⠹ shell cargo") && lines[1] == "⠹ grep x", "{columns} {rows}: {shown}");
        bench.events([ended("1", "shell", ""), ended("2", "grep", "")]);
        bench.resize(200, 50);
        let shown = bench.screen();
        let lines: Vec<&str> =
            shown.lines().filter(|line| line.contains("⠹") || line.contains("✓")).collect();
        assert!(
            lines.len() == 2 && lines.iter().all(|line| line.starts_with('✓')),
            "{columns} {rows}: {shown}"
        );
    }
}

/// Resizes as terminals do that wrap their lines anew: the cursor stays with the character that it stands on.
fn reflow(bench: &mut Bench, columns: usize) {
    let shown = bench.screen();
    let above = usize::from(bench.terminal.screen().cursor_position().0);
    bench.size.columns = columns;
    bench.terminal = terminal(bench.size);
    let lines: Vec<&str> = shown.lines().collect();
    let (before, live) = lines.split_at(above);
    for line in before {
        bench.terminal.process(format!("{line}\r\n").as_bytes());
    }
    let (row, _) = bench.terminal.screen().cursor_position();
    bench.terminal.process(live.join("\r\n").as_bytes());
    bench.terminal.process(format!("\x1b[{};1H", row + 1).as_bytes());
}

#[test]
fn lines_that_the_terminal_wraps_anew_are_erased_all_the_same() {
    let command = "cargo test --workspace --all-targets --all-features --no-fail-fast -- --nocapture";
    for columns in [13, 40, 60] {
        let mut bench = Bench::new(100, 30, PLAIN);
        bench.say("I run the tests.");
        bench.event(started("1", "shell", &json!({"command": command})));
        bench.event(started("2", "shell", &json!({"command": command})));
        bench.wait(TICK);
        let rows = |bench: &Bench| -> Vec<String> {
            let width = u16::try_from(columns).unwrap();
            bench.terminal.screen().rows(0, width).filter(|row| !row.is_empty()).collect()
        };
        reflow(&mut bench, columns);
        assert!(rows(&bench).len() > 4, "the lines are wrapped: {:?}", rows(&bench));
        bench.wait(TICK);
        let shown = rows(&bench);
        let spinning: Vec<&String> = shown.iter().skip_while(|row| !row.starts_with('⠹')).collect();
        assert!(spinning.len() == 2 && spinning.iter().all(|row| row.starts_with("⠹ shell")), "{shown:?}");
        assert!(!shown.iter().any(|row| row.contains('⠙')), "{shown:?}");
    }
}

#[test]
fn colours_are_used_where_they_are_wanted() {
    let diff = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new\n";
    let done = json!({
        "call_id": "1", "tool_name": "Edit", "output": "", "duration_ms": 2,
        "changes": [{"path": "a", "kind": "modified", "diff": diff}],
    });
    let run = |style| {
        let mut bench = Bench::new(80, 24, style);
        bench.event(requested());
        bench.draft("1", "Edit", "{\"old_string\": \"gone\", \"new_string\": \"come");
        bench.wait(TICK);
        let colours: Vec<vt100::Color> =
            (0..3).map(|row| bench.terminal.screen().cell(row, 4).unwrap().fgcolor()).collect();
        bench.events([
            responded(),
            started("1", "Edit", &json!({"file_path": "a"})),
            ("TOOL_CALL_END", done.clone()),
        ]);
        (colours, bench)
    };
    let (drafted, bench) = run(COLOURED);
    assert_eq!(drafted[1..], [vt100::Color::Idx(1), vt100::Color::Idx(2)]);
    let colour = |row, column| bench.terminal.screen().cell(row, column).unwrap().fgcolor();
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
fn on_a_dumb_terminal_nothing_moves() {
    let mut bench = Bench::new(80, 24, DUMB);
    bench.event(requested());
    bench.wait(Duration::from_secs(1));
    bench.say("Well.");
    bench.event(started("1", "shell", &json!({"command": "make"})));
    bench.wait(Duration::from_secs(1));
    bench.event(ended("1", "shell", "done"));
    bench.close();
    insta::assert_snapshot!(bench.written, @r"
    Well.

    [shell] make (ok, 1.2 s)
        done

    [done] 2 model calls, 1 tool call, 12,345 tokens in, 678 out, 4.2 s, $0.0123
    ");
}

#[test]
fn nothing_is_written_into_a_question() {
    for style in [PLAIN, DUMB] {
        let mut bench = Bench::new(80, 24, style);
        bench.event(started("1", "shell", &json!({"command": "make"})));
        bench.wait(TICK);
        assert_eq!(bench.event(asked("2")).as_deref(), Some("2"));
        assert_eq!(bench.screen().trim_end(), "[approval] write_file waits for a decision: it writes");
        bench.write("Run it? ");
        let before = bench.written.len();
        bench.wait(Duration::from_secs(2));
        assert_eq!(bench.event(asked("3")), None, "one question at a time");
        assert_eq!(bench.event(ended("1", "shell", "done")), None);
        bench.wait(Duration::from_secs(2));
        assert_eq!(bench.written.len(), before);
        bench.write("y\n");
        assert_eq!(bench.event(decided("2")).as_deref(), Some("3"), "the next one");
        bench.write("Run it? n\n");
        assert_eq!(bench.event(decided("3")), None);
        bench.event(started("2", "write_file", &json!({"file_path": "a"})));
        bench.wait(TICK);
        let shell = if style.moves { "✓ shell make 1.2 s" } else { "[shell] make (ok, 1.2 s)" };
        let running = if style.moves { "\n⠲ write_file a" } else { "" };
        let running =
            running.replace('⠲', super::super::waits::SPINNER[bench.now.as_millis() as usize / 100 % 10]);
        assert_eq!(
            bench.screen().trim_end(),
            format!(
                "[approval] write_file waits for a decision: it writes\nRun it? y\n\
                 [approval] write_file waits for a decision: it writes\n{shell}\n    done\nRun it? n{running}"
            )
        );
    }
}

#[test]
fn a_question_that_nobody_answers_holds_nothing_back_in_the_end() {
    let mut bench = Bench::new(80, 24, PLAIN);
    bench.event(asked("1"));
    bench.event(("WARNING", json!({"message": "slow"})));
    assert!(!bench.screen().contains("slow"));
    bench.event(("PROCESSING_END", json!({"state": "IDLE"})));
    assert!(bench.screen().contains("[warning] slow"));
}

#[test]
fn foreign_text_cannot_steer_the_screen() {
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\u{202e}evil\u{8}";
    let mut bench = Bench::new(80, 24, PLAIN);
    bench.event(requested());
    bench.draft(evil, evil, &json!({"file_path": evil, "content": evil}).to_string());
    bench.wait(TICK);
    bench.say(evil);
    bench.event(responded());
    bench.event(started("1", evil, &json!({"command": evil})));
    bench.wait(TICK);
    bench.event(("TOOL_CALL_OUTPUT_DELTA", json!({"call_id": "1", "delta": evil})));
    bench.event(ended("1", evil, evil));
    bench.event(("WARNING", json!({"message": evil})));
    for ours in ["\u{1b}[?7l", "\u{1b}[?7h", "\u{1b}[K", "\u{1b}[J", "\u{1b}[1A"] {
        bench.written = bench.written.replace(ours, "");
    }
    let bad = bench.written.replace("\r", "");
    assert!(!bad.chars().any(super::super::sanitize::is_control), "{bad:?}");
}

/// What may happen to a view.
#[derive(Clone, Debug)]
enum Step {
    Event(usize),
    Wait(u64),
}

/// Events whose order does not matter to a view.
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
    /// Whatever happens, what remains on the screen is the transcript: not a character more, none less, none elsewhere.
    #[test]
    fn what_remains_is_the_transcript(
        steps in proptest::collection::vec(
            prop_oneof![4 => (0..12_usize).prop_map(Step::Event), 1 => (1..9_u64).prop_map(Step::Wait)], 0..60,
        ),
        rows in 2..30_usize,
    ) {
        let mut bench = Bench::new(40, rows, PLAIN);
        let mut happened = Vec::new();
        for step in steps {
            match step {
                Step::Event(index) => {
                    happened.push(events()[index].clone());
                    bench.event(events()[index].clone());
                }
                Step::Wait(ticks) => bench.wait(TICK * u32::try_from(ticks).unwrap()),
            }
        }
        happened.push(("PROCESSING_END", json!({"state": "IDLE"})));
        bench.event(("PROCESSING_END", json!({"state": "IDLE"})));
        // Everything that has scrolled away comes back.
        bench.resize(40, 1_000);
        let expected = Bench::transcript(TerminalSize { columns: 40, rows: 1_000 }, PLAIN, &happened);
        let found = bench.screen();
        prop_assert_eq!(found.trim_end(), expected.trim_end());
    }
}
