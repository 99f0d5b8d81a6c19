mod plain;
mod properties;
mod rendering;

use std::num::NonZero;

use pintle_llm::ImageData;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::render::Depth;
use crate::terminal::keys::Decoder;
use crate::terminal::painter::{Painter, Screen};

/// Conversation with a keyboard and a screen.
struct Harness {
    conversation: Conversation,
    decoder: Decoder,
    painter: Painter,
    screen: vt100::Parser,
    now: Duration,
    effects: Vec<Effect>,
}

/// Returns the text that is said, with the images of which the driver knows nothing but the name in brackets.
fn said(OutgoingMessage { text, images, .. }: &OutgoingMessage) -> String {
    let names: String = images
        .iter()
        .map(|image| match &image.pasted {
            Some(_) => format!(" {}", image.name),
            None => format!(" [{}]", image.name),
        })
        .collect();
    format!("{text:?}{names}")
}

impl Harness {
    fn new() -> Self {
        Self::of_size(24, 60)
    }

    fn of_size(rows: u16, columns: u16) -> Self {
        let size = TerminalSize { columns: columns.into(), rows: rows.into() };
        let status = StatusLine { model: "m".into(), mode: "auto".into(), ..StatusLine::default() };
        let cells = |count| NonZero::new(count).unwrap();
        Self {
            conversation: Conversation::new(size, History::default(), status),
            decoder: Decoder::default(),
            painter: Painter::new(Screen { size, depth: Depth::Sixteen, reflows: false, moves: true }),
            screen: vt100::Parser::new(cells(rows), cells(columns), 1_000),
            now: Duration::ZERO,
            effects: Vec::new(),
        }
    }

    fn types(&mut self, bytes: &str) -> &mut Self {
        let mut inputs = self.decoder.push(bytes.as_bytes());
        inputs.extend(self.decoder.flush());
        for input in inputs {
            self.effects.extend(self.conversation.input(input, self.now));
        }
        self
    }

    fn event(&mut self, kind: &str, data: &Value) -> &mut Self {
        self.event_of(0, kind, data)
    }

    fn event_of(&mut self, depth: u32, kind: &str, data: &Value) -> &mut Self {
        let session = if depth == 0 { "s" } else { "child" };
        let record = json!({
            "seq": 0, "timestamp": "2026-01-02T03:04:05.000Z", "session_id": session, "depth": depth, "kind": kind,
            "data": data,
        });
        self.conversation.event(&serde_json::from_value(record).unwrap(), self.now);
        self
    }

    fn waits(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    /// Returns what was to be done since the last time.
    fn done(&mut self) -> String {
        let effects = std::mem::take(&mut self.effects);
        let shown = effects.iter().filter(|effect| !matches!(effect, Effect::Remember(_)));
        let written = shown.map(|effect| {
            if let Effect::Say(said) = effect {
                format!("Say({})", self::said(said))
            } else if let Effect::FollowUp(said) = effect {
                format!("FollowUp({})", self::said(said))
            } else {
                format!("{effect:?}")
            }
        });
        written.collect::<Vec<_>>().join(", ")
    }

    /// Draws, and returns the rows of the screen without the blank ones at the end.
    fn shown(&mut self) -> String {
        let (lines, region) = self.conversation.frame(self.now);
        let output = self.painter.paint(&lines, &region);
        self.screen.process(output.as_bytes());
        let (_, columns) = self.screen.screen().size();
        let rows: Vec<String> =
            self.screen.screen().rows(0, columns.get()).map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }

    /// Returns the cursor's row and column on the screen.
    fn cursor(&mut self) -> (u16, u16) {
        self.shown();
        self.screen.screen().cursor_position()
    }

    fn running() -> Self {
        let mut harness = Self::new();
        harness.event("USER_INPUT", &json!({"content": "go"}));
        harness
    }
}

fn request(call_id: &str, command: &str) -> Arc<ApprovalRequest> {
    let arguments = json!({ "command": command });
    let fingerprint = pintle_llm::Fingerprint::from_bytes(call_id.as_bytes());
    let mut request = ApprovalRequest::new(call_id, "shell", fingerprint).with_arguments(arguments);
    request.reason = "mode ask".into();
    request.suggested_rules = vec![format!("shell({command})")];
    Arc::new(request)
}

#[test]
fn images_are_named_by_labels_and_go_with_the_message() {
    let mut harness = Harness::new();
    harness.types("why is\x1b[200~'/mnt/ada/My shots/login.png'\x1b[201~");
    assert_eq!(
        harness.done(),
        r#"TakeDropped { paths: ["/mnt/ada/My shots/login.png"], paste: "'/mnt/ada/My shots/login.png'" }"#
    );
    let path = "/mnt/ada/My shots/login.png";
    harness.conversation.attach(Some(path), ImageData::data(vec![0; 81_400], "image/png"));
    harness.types("cut off?");
    let shown = harness.shown();
    assert!(shown.contains("› why is [image login.png, 82 KB] cut off?"), "{shown}");
    let message = r#"Say("why is @\"/mnt/ada/My shots/login.png\" cut off?" /mnt/ada/My shots/login.png)"#;
    assert_eq!(harness.types("\r").done(), message);
    harness.types("\x1b[A");
    assert_eq!(harness.types("\r").done(), message, "an input of before has its image again");

    assert_eq!(harness.types("\x16").done(), "TakeClipboard");
    harness.conversation.attach(None, ImageData::data(vec![0; 2], "image/png"));
    assert_eq!(harness.types("and @docs/flow.png").done(), "ListFiles");
    assert_eq!(
        harness.types("\r").done(),
        r#"Say("@pasted-1.png and @docs/flow.png" pasted-1.png [docs/flow.png])"#
    );
    harness.conversation.attach(None, ImageData::data(vec![0; 2], "image/png"));
    harness.types("\x7f\x7fno image\r");
    assert_eq!(harness.done(), r#"Say("no image")"#, "it is deleted like a character");
}

#[test]
fn what_is_said_scrolls_up_and_the_editor_stays_below() {
    let mut harness = Harness::new();
    insta::assert_snapshot!(harness.shown(), @"
    › say what to do · /help lists keys and commands
    m · auto
    ");
    assert_eq!(harness.types("fix it\r").done(), r#"Say("fix it")"#);
    harness.event("USER_INPUT", &json!({"content": "fix it"}));
    harness.event("ASSISTANT_TEXT_START", &json!({}));
    harness.event("ASSISTANT_TEXT_DELTA", &json!({"delta": "I **look**:\n\n- one\n- tw"}));
    insta::assert_snapshot!(harness.shown(), @"
    › fix it

    I look:

    • one
    • tw

    › say what to do · /help lists keys and commands
    Esc interrupts
    m · auto
    ");
    harness.event("ASSISTANT_TEXT_DELTA", &json!({"delta": "o\n"}));
    harness.event("ASSISTANT_TEXT_END", &json!({"text": "…"}));
    harness.event(
        "TOOL_CALL_START",
        &json!({"call_id": "1", "tool_name": "shell", "arguments": {"command": "cargo test"}}),
    );
    harness.waits(Duration::from_secs(2));
    insta::assert_snapshot!(harness.shown(), @"
    › fix it

    I look:

    • one
    • two

    ⠋ shell cargo test 2 s

    › say what to do · /help lists keys and commands
    Esc interrupts
    m · auto
    ");
    let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n";
    harness.event(
        "TOOL_CALL_END",
        &json!({
            "call_id": "1", "tool_name": "shell", "output": "ok\n", "duration_ms": 1_500,
            "changes": [{"path": "x", "kind": "modified", "diff": diff}],
        }),
    );
    harness.event("PROCESSING_END", &json!({"state": "IDLE"}));
    insta::assert_snapshot!(harness.shown(), @"
    › fix it

    I look:

    • one
    • two

    ✓ shell cargo test 1.5 s
        ok
        --- a/x
        +++ b/x
        @@ -1 +1 @@
        -old
        +new

    › say what to do · /help lists keys and commands
    m · auto
    ");
}

#[test]
fn enter_steers_a_turn_and_tab_queues() {
    let mut harness = Harness::running();
    assert_eq!(harness.types("not that\r").done(), r#"Say("not that")"#);
    assert_eq!(harness.types("then this\t").done(), r#"FollowUp("then this")"#);
    assert_eq!(harness.types("and this\x1b\r").done(), r#"FollowUp("and this")"#);
    assert!(harness.types("x").shown().contains("Enter steers the turn · Tab queues for its end"));
    assert_eq!(harness.types("\x1b").done(), "Interrupt");
    assert!(harness.shown().contains("› x"), "what was being written stays");
    harness.event("PROCESSING_END", &json!({"state": "IDLE"}));
    assert_eq!(harness.types("\x1b").done(), "", "there is nothing to interrupt");
}

#[test]
fn queued_messages_are_shown_above_the_editor_until_they_are_handled() {
    let mut harness = Harness::of_size(24, 60);
    harness.event("USER_INPUT", &json!({"content": "go"}));
    harness.conversation.set_queued(vec!["then run\x1b[2J the tests\nand more".into(), "commit".into()]);
    harness.types("abc");
    let shown = harness.shown();
    let rows: Vec<&str> = shown.lines().collect();
    let editor = rows.iter().position(|row| row.starts_with("› abc")).unwrap();
    assert!(rows[editor - 2].starts_with("  queued: then run") && rows[editor - 2].ends_with('…'), "{shown}");
    assert_eq!(rows[editor - 1], "  queued: commit", "{shown}");
    assert!(shown.contains("2 queued"), "{shown}");
    assert_eq!(usize::from(harness.cursor().0), editor);
    harness.conversation.set_queued((1..=9).map(|number| format!("message {number}")).collect());
    let shown = harness.shown();
    assert!(shown.contains("  queued: message 1\n") && !shown.contains("message 9"), "{shown}");
    assert!(shown.contains(" more messages\n"), "{shown}");
    harness.conversation.set_queued(Vec::new());
    assert!(!harness.shown().contains("queued"));
}

#[test]
fn ctrl_d_leaves_while_a_call_waits_unless_a_text_is_written() {
    for (keys, leaves) in [("", true), ("w", false), ("wnot that", false), ("e", false), ("\x1baabc", false)]
    {
        let mut harness = Harness::running();
        harness.conversation.set_approvals(vec![request("1", "make")]);
        harness.types(keys).done();
        let expected = if leaves { "Leave" } else { "" };
        assert_eq!(harness.types("\x04").done(), expected, "{keys:?}");
    }
}

#[test]
fn enter_completes_the_only_command_of_the_menu() {
    let mut harness = Harness::new();
    assert_eq!(
        harness.types("/comp\r").done(),
        r#"Call(CommandInvocation { command: Compact, arguments: "" })"#
    );
    assert_eq!(harness.types("/co\r").done(), "", "several commands begin like this");
    assert_eq!(harness.types("py\r").done(), r#"Call(CommandInvocation { command: Copy, arguments: "" })"#);
    assert_eq!(harness.types("/frob\r").done(), "", "no command begins like this");
}

#[test]
fn exit_alone_leaves() {
    for text in ["exit", " quit ", "Exit", "QUIT"] {
        let mut harness = Harness::new();
        assert_eq!(harness.types(&format!("{text}\r")).done(), "Leave", "{text}");
    }
    let mut harness = Harness::new();
    assert_eq!(harness.types("exit the loop\r").done(), r#"Say("exit the loop")"#);
}

#[test]
fn ctrl_c_clears_and_twice_leaves() {
    let mut harness = Harness::new();
    assert_eq!(harness.types("half a line\x03").done(), "");
    assert!(harness.shown().contains("say what to do"));
    harness.types("\x1f");
    assert!(harness.shown().contains("› half a line"), "it can be brought back");
    harness.types("\x03\x03");
    assert!(harness.shown().contains("press Ctrl+C again to leave"));
    harness.waits(HINT_TIME * 2);
    assert_eq!(harness.types("\x03").done(), "", "it was too long ago");
    assert_eq!(harness.types("\x03").done(), "Leave");
    assert_eq!(harness.types("\x04").done(), "Leave", "an empty line ends the input");
    assert_eq!(harness.types("a\x04").done(), "");
}

#[test]
fn inputs_of_before_come_back() {
    let mut harness = Harness::new();
    harness.types("one\rtwo\r").done();
    assert!(harness.types("draft\x1b[A").shown().contains("› two"));
    assert!(harness.types("\x1b[A").shown().contains("› one"));
    assert!(harness.types("\x1b[B\x1b[B").shown().contains("› draft"));
}

#[test]
fn inputs_of_before_are_searched() {
    let mut harness = Harness::new();
    harness.types("cargo test\rls\rcargo build\r").done();
    harness.types("\x12cargo");
    insta::assert_snapshot!(harness.shown(), @"
    search inputs: cargo
      cargo build
    m · auto
    ");
    assert_eq!(harness.cursor(), (0, 20));
    harness.types("\x12");
    assert!(harness.shown().contains("  cargo test"));
    harness.types("\x12");
    assert!(harness.shown().contains("no other input has: cargo\n  cargo test"), "{}", harness.shown());
    assert_eq!(harness.types("\r").done(), "", "it is not sent at once");
    assert!(harness.shown().contains("› cargo test"));
    assert!(harness.types("\x12ls\x1b").shown().contains("› cargo test"), "Esc ends it without a change");
}

#[test]
fn commands_of_the_user_are_run_and_told_with_the_next_message() {
    let mut harness = Harness::of_size(40, 60);
    assert_eq!(harness.types("!make test\r").done(), r#"Run("make test")"#);
    let output: String = (0..30).map(|line| format!("line {line}\x1b[2J\n")).collect();
    harness.conversation.ran("make test", "exit 2", &output);
    let shown = harness.shown();
    assert!(shown.contains("! make test exit 2") && shown.contains("… 10 more lines before"), "{shown}");
    assert!(shown.contains("    line 29[2J") && !shown.contains("line 9["), "{shown}");
    let said = harness.types("why?\r").done();
    assert!(
        said.starts_with(r#"Say("I ran `make test` (exit 2):\n\n```\nline 0"#) && said.ends_with(r#"why?")"#)
    );
    assert_eq!(harness.types("and now?\r").done(), r#"Say("and now?")"#, "once");
    assert_eq!(harness.types("!\r").done(), "");
    assert!(harness.shown().contains("expected a command"));
}

#[test]
fn several_lines_are_written_and_sent_as_one_input() {
    let mut harness = Harness::new();
    harness.types("first\nsecond\x1b[13;2uthird");
    insta::assert_snapshot!(harness.shown(), @"
    › first
      second
      third
    m · auto
    ");
    assert_eq!(harness.cursor(), (2, 7));
    assert_eq!(harness.types("\r").done(), r#"Say("first\nsecond\nthird")"#);
}

#[test]
fn pastes_are_text_and_too_large_ones_are_refused() {
    let mut harness = Harness::new();
    assert_eq!(harness.types("\x1b[200~one\rtwo\x1b[201~").done(), "", "nothing is sent");
    assert!(harness.shown().contains("› one\n  two"));
    let large = "x".repeat(MAX_PASTE + 1);
    harness.types(&format!("\x1b[200~{large}\x1b[201~"));
    assert!(
        harness.shown().contains("not pasted: 4,194,305 bytes, at most 4,194,304"),
        "{}",
        harness.shown()
    );
    assert!(harness.shown().contains("› one\n  two"), "what was written stays");
}

#[test]
fn commands_are_completed_called_and_corrected() {
    let mut harness = Harness::new();
    harness.types("/co");
    insta::assert_snapshot!(harness.shown(), @"
    › /co
      /compact  summarize the older part of the conversation
      /config  show the configuration and its sources
      /context  show how full the context window is
      /copy  copy the last response to the clipboard
      /cost  show tokens and cost
    m · auto
    ");
    harness.types("\x1b[B\x1b[B\t");
    assert!(harness.shown().contains("› /context"), "{}", harness.shown());
    assert!(harness.types("\r").done().starts_with("Call(CommandInvocation { command: Context"));
    harness.types("/hepl\r");
    assert!(harness.shown().contains("did you mean /help?"), "{}", harness.shown());
    assert!(harness.shown().contains("› /hepl"), "it can be mended");
    harness.types("\x03/tmp/x is full\r");
    assert_eq!(harness.done(), r#"Say("/tmp/x is full")"#, "a path is no command");
}

#[test]
fn files_are_completed() {
    let mut harness = Harness::new();
    assert_eq!(harness.types("see @mai").done(), "ListFiles");
    harness.conversation.set_files(["src/lib.rs", "src/main.rs"].map(str::to_owned).to_vec());
    assert!(harness.shown().contains("@src/main.rs"), "{}", harness.shown());
    harness.types("\r");
    assert_eq!(harness.types("and more\r").done(), r#"Say("see @src/main.rs and more")"#);
    assert_eq!(harness.types("@").done(), "ListFiles", "there may be others by now");
}

#[test]
fn calls_are_decided_on_in_place() {
    let mut harness = Harness::running();
    harness.conversation.set_approvals(vec![request("1", "make"), request("2", "rm -r x")]);
    insta::assert_snapshot!(harness.shown(), @"
    › go

    ⠋ waiting for the model

    ? shell (mode ask) [1 of 2]
        make
      y once  n no  w no, with words  s for this session:
      shell(make)  e edit that
    › say what to do · /help lists keys and commands
    m · auto
    ");
    let done = harness.types("y").done();
    assert!(done.contains("call_id: \"1\"") && done.contains("decision: Approve, rules: []"), "{done}");
    harness.conversation.set_approvals(vec![request("2", "rm -r x")]);
    let done = harness.types("wnot that, use trash\r").done();
    assert!(done.contains("the user says: not that, use trash"), "{done}");
    let done = harness.types("s").done();
    assert!(done.contains("decision: Approve, rules: [\"shell(rm -r x)\"]"), "{done}");
    let edited = harness.types("e\x15shell(rm *)\r").done();
    assert!(edited.contains("rules: [\"shell(rm *)\"]"), "{edited}");
    assert_eq!(harness.types("\x1b").done(), "Interrupt", "as without a call that waits");
}

#[test]
fn a_call_that_waits_steals_nothing_that_is_being_written() {
    let mut harness = Harness::running();
    harness.types("yes, but");
    harness.conversation.set_approvals(vec![request("1", "make")]);
    assert_eq!(harness.types("y").done(), "");
    assert!(harness.shown().contains("› yes, buty") && harness.shown().contains("Alt+A decides"));
    assert!(harness.types("\x1ba\x1b[B").shown().contains("y once"));
    assert!(harness.types("n").done().contains("the user denied the call"));
    harness.conversation.set_approvals(Vec::new());
    assert!(harness.types("!").shown().contains("› yes, buty!"), "the keys are back");
}

#[test]
fn keys_of_a_question_are_shown_in_the_smallest_window() {
    for (columns, rows) in [(40, 12), (40, 8), (80, 10)] {
        let mut harness = Harness::running();
        harness.conversation.resize(TerminalSize { columns, rows });
        harness.conversation.set_approvals(vec![request("1", "make\nmake install\nmake clean")]);
        let (printed, region) = harness.conversation.frame(harness.now);
        let text = |lines: &[StyledLine]| lines.iter().map(|line| line.text() + "\n").collect::<String>();
        let (printed, shown) = (text(&printed), text(&region.rows));
        assert!(printed.contains("    make install"), "{columns}x{rows}: {printed}");
        assert!(shown.contains("y once") && shown.contains("n no"), "{columns}x{rows}: {shown}");
        assert!(region.rows.len() <= (rows / 2).max(4), "{columns}x{rows}: {shown}");
    }
}

#[test]
fn long_calls_are_folded_and_hidden_characters_shown() {
    let mut harness = Harness::running();
    let command: String = (0..100).map(|line| format!("echo {line}\u{202e}\n")).collect();
    harness.conversation.set_approvals(vec![request("1", &command)]);
    let (printed, _) = harness.conversation.frame(harness.now);
    let printed: String = printed.iter().map(|line| line.text() + "\n").collect();
    let all = (0..100).all(|line| printed.contains(&format!("    echo {line}\\u{{202e}}\n")));
    assert!(all, "it is printed as a whole: {printed}");
    let shown = harness.shown();
    assert!(shown.contains("more rows, as above"), "{shown}");
    assert!(shown.contains("echo 0\\u{202e}"), "{shown}");
    assert!(shown.lines().count() <= 24);
    harness.conversation.set_approvals(vec![request("1", &command)]);
    let (again, _) = harness.conversation.frame(harness.now);
    assert_eq!(again, [], "once");
}

#[test]
fn the_region_takes_at_most_half_of_the_screen() {
    let mut harness = Harness::of_size(12, 40);
    harness.event("USER_INPUT", &json!({"content": "go"}));
    let rows: String = (0..40).map(|row| format!("| {row} |\n")).collect();
    harness.event("ASSISTANT_TEXT_DELTA", &json!({"delta": rows}));
    harness.types("1\n2\n3\n4\n5\n6\n7\n8\n9");
    let (_, region) = harness.conversation.frame(harness.now);
    assert!(region.rows.len() <= 6, "{:?}", region.rows);
    let shown = harness.shown();
    assert!(shown.contains("  9") && shown.contains("m · auto"), "{shown}");
}

#[test]
fn tiny_windows_show_what_fits() {
    for (rows, columns) in [(1, 1), (2, 8), (3, 9), (4, 40), (40, 4)] {
        let mut harness = Harness::of_size(rows, columns);
        harness.types("some text that is longer").shown();
        harness.event("USER_INPUT", &json!({"content": "go"}));
        harness.conversation.set_approvals(vec![request("1", "make")]);
        harness.shown();
        let (_, region) = harness.conversation.frame(harness.now);
        assert!(region.rows.len() < usize::from(rows).max(1), "{rows} by {columns}: {:?}", region.rows);
    }
}

#[test]
fn nothing_from_outside_controls_the_terminal() {
    let evil = "\x1b]0;title\x07\x1b]52;c;QQ==\x07\x1b[2J\u{9b}31m\u{202e}\x1b]8;;file:///x\x1b\\link";
    let mut harness = Harness::new();
    harness.event("USER_INPUT", &json!({"content": evil}));
    harness
        .event("ASSISTANT_TEXT_DELTA", &json!({"delta": format!("{evil}\n```\n{evil}\n```\n| {evil} |\n")}));
    harness.event("ASSISTANT_TEXT_END", &json!({"text": ""}));
    let call = json!({"call_id": "1", "tool_name": evil, "arguments": {"command": evil}});
    harness.event("TOOL_CALL_START", &call);
    let (_, region) = harness.conversation.frame(harness.now);
    let end = json!({
        "call_id": "1", "tool_name": evil, "output": evil, "duration_ms": 1, "error": "failed",
        "changes": [{"path": evil, "kind": "modified", "diff": format!("+{evil}\n")}],
    });
    harness.event("TOOL_CALL_END", &end);
    harness.event("WARNING", &json!({"message": evil}));
    let spawned = json!({"agent_id": evil, "child": "child", "task": evil});
    harness.event("SUBAGENT_SPAWNED", &spawned);
    harness.event_of(1, "ASSISTANT_TEXT_END", &json!({"text": evil}));
    harness.conversation.set_approvals(vec![request("1", evil)]);
    harness.conversation.note("pintle", evil);
    let (lines, last) = harness.conversation.frame(harness.now);
    for line in lines.iter().chain(&region.rows).chain(&last.rows) {
        let shown = line.to_terminal(Depth::Monochrome);
        let own = shown.replace("\x1b[0m", "");
        let looks = own.split("\x1b[").skip(1).all(|rest| {
            rest.find('m')
                .is_some_and(|end| rest[..end].bytes().all(|byte| byte.is_ascii_digit() || byte == b';'))
        });
        assert!(looks, "{shown:?}");
        let is_control =
            |character: char| character.is_control() && character != '\x1b' || character == '\u{202e}';
        assert!(!shown.contains(is_control), "{shown:?}");
    }
}

fn step() -> impl Strategy<Value = (u8, String)> {
    (0_u8..12, "[ a-zé日|`*#/@\x1b\r\t\n\x03\x7f\u{202e}-]{0,12}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    /// Whatever is typed and whatever happens, rows fit the window, and lines that were printed stay.
    #[test]
    fn any_input_leaves_rows_that_fit(
        steps in proptest::collection::vec(step(), 0..40),
        rows in 1_u16..30,
        columns in 1_u16..80,
    ) {
        let mut harness = Harness::of_size(rows, columns);
        for (kind, text) in steps {
            match kind {
                0 => harness.event("USER_INPUT", &json!({"content": text})),
                1..=3 => harness.event("ASSISTANT_TEXT_DELTA", &json!({"delta": text})),
                4 => harness.event("ASSISTANT_TEXT_END", &json!({"text": text})),
                5 => harness.event("PROCESSING_END", &json!({"state": "IDLE"})),
                6 => {
                    harness.conversation.set_approvals(vec![request("1", &text)]);
                    &mut harness
                }
                7 => harness.waits(Duration::from_secs(1)),
                _ => harness.types(&text),
            };
            let (lines, region) = harness.conversation.frame(harness.now);
            let width = usize::from(columns);
            for line in &region.rows {
                prop_assert!(line.columns() < width, "{:?} in {}", line.text(), columns);
            }
            for line in lines.iter().filter(|_| width > 4) {
                prop_assert!(line.columns() < width, "{:?} in {}", line.text(), columns);
            }
            prop_assert!(region.rows.is_empty() || region.rows.len() < usize::from(rows));
            if let Some((row, column)) = region.cursor {
                prop_assert!(row < region.rows.len() && column < width, "{row} {column}");
            }
        }
    }
}
