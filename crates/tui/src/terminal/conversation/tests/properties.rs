//! Properties of the rendering as a whole: whatever happens, is typed, and however large the window is.

use super::*;

/// Rows of the terminal that are kept when they scroll away.
const SCROLLBACK: usize = 4_000;

/// Something that happens to a conversation.
#[derive(Clone, Debug)]
struct Step {
    kind: u8,
    text: String,
    /// Call or subagent that it is about.
    number: u8,
}

/// Texts with control sequences, wide characters, joiners, Markdown and diffs.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z ]{1,12}",
        1 => Just("\x1b]0;title\x07\x1b[2J\u{9b}31m\x1b]52;c;QQ==\x1b\\".to_owned()),
        1 => Just("\u{202e}שלום \u{200b}مرحبا".to_owned()),
        1 => Just("日本語 👩\u{200d}👧 ❤\u{fe0f} e\u{301}".to_owned()),
        1 => Just("\n\n# Heading\n- item\n| a | b |\n|---|---|\n| 1 | 2 |\n".to_owned()),
        1 => Just("\n```rust\nfn main() {}\n```\n".to_owned()),
        1 => Just("\r\t\x08\x7f\n".to_owned()),
    ];
    proptest::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

fn step() -> impl Strategy<Value = Step> {
    (0_u8..20, text(), 0_u8..3).prop_map(|(kind, text, number)| Step { kind, text, number })
}

fn arguments(text: &str, number: u8) -> Value {
    match number {
        0 => json!({ "command": text }),
        1 => json!({"plan": [{"step": text, "status": "in_progress"}, {"step": "b", "status": "pending"}]}),
        _ => json!({ "file_path": text }),
    }
}

impl Harness {
    fn happens(&mut self, Step { kind, text, number }: &Step) {
        let (id, tool) = (number.to_string(), ["shell", "update_plan", text.as_str()][usize::from(*number)]);
        let delta = json!({"delta": text});
        match kind {
            0 => self.event("USER_INPUT", &json!({"content": text})),
            1..=3 => self.event("ASSISTANT_TEXT_DELTA", &delta),
            4 => self.event("ASSISTANT_TEXT_END", &json!({"text": text})),
            5 => self.event("PROCESSING_END", &json!({"state": "IDLE"})),
            6 => {
                let call = json!({"call_id": id, "tool_name": tool, "arguments": arguments(text, *number)});
                self.event_of(u32::from(*number == 2), "TOOL_CALL_START", &call)
            }
            7 => {
                let diff = format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old {text}\n+new {text}\n");
                let end = json!({
                    "call_id": id, "tool_name": tool, "output": text, "duration_ms": 7,
                    "changes": [{"path": text, "kind": "modified", "diff": diff}],
                    "images": [{"media_type": text, "bytes": 7}],
                });
                self.event_of(u32::from(*number == 2), "TOOL_CALL_END", &end)
            }
            8 => {
                let spawned = json!({"agent_id": text, "child": "child", "task": text});
                self.event("SUBAGENT_SPAWNED", &spawned)
            }
            9 => self.event_of(1, "PROCESSING_END", &json!({"state": "IDLE"})),
            10 => {
                let error = json!({"kind": "rate_limit", "message": text, "retry": "never"});
                let retry = json!({"attempt": number, "delay_ms": 1_500, "error": error});
                self.event("MODEL_RETRYING", &retry)
            }
            11 => self.event("WARNING", &json!({"message": text})),
            12 => {
                let pending = (0..*number).map(|call| request(&call.to_string(), text)).collect();
                self.conversation.set_approvals(pending);
                self
            }
            13 | 14 => self.waits(Duration::from_millis(700)),
            15 => {
                self.conversation.ran(text, "exit 0", text);
                self
            }
            _ => self.types(&text.replace('\x1b', "")),
        };
    }

    /// Returns all rows, also those that were scrolled away, without the blank ones at the end.
    fn all_rows(&mut self) -> Vec<String> {
        let (_, width) = self.screen.screen().size();
        self.screen.screen_mut().set_scrollback(SCROLLBACK);
        let mut rows = Vec::new();
        for offset in (0..=self.screen.screen().scrollback()).rev() {
            self.screen.screen_mut().set_scrollback(offset);
            let shown = self.screen.screen().rows(0, width.get());
            rows.extend(shown.take(if offset == 0 { usize::MAX } else { 1 }));
        }
        without_blanks(rows)
    }
}

fn without_blanks(rows: Vec<String>) -> Vec<String> {
    let mut rows: Vec<String> = rows.into_iter().map(|row| row.trim_end().to_owned()).collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

/// Returns a line as a terminal shows it, which may drop marks that combine with nothing.
fn as_shown(line: &StyledLine, columns: u16) -> String {
    let cells = |count| NonZero::new(count).unwrap();
    let mut parser = vt100::Parser::new(cells(1), cells(columns), 0);
    parser.process(line.to_terminal(Depth::Sixteen).as_bytes());
    parser.screen().rows(0, columns).next().unwrap_or_default()
}

/// Returns what is left of an output without the sequences that the painter writes, and without text.
fn foreign(output: &str) -> String {
    let mut rest = output;
    let mut foreign = String::new();
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        if character == '\x1b' {
            let body = rest.strip_prefix('[').unwrap_or_default();
            let end = body.find(|last: char| !last.is_ascii_digit() && !matches!(last, ';' | '?'));
            let last = end.and_then(|end| body[end..].chars().next());
            match (end, last) {
                (Some(end), Some('m' | 'A' | 'C' | 'L' | 'J' | 'K' | 'h' | 'l')) => rest = &body[end + 1..],
                _ => foreign.push(character),
            }
        } else if character.is_control() && !matches!(character, '\r' | '\n')
            || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            foreign.push(character);
        }
    }
    foreign
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// The terminal has all finished lines once and in order, then the region. A row of the region that stays as it is is
    /// not written again.
    #[test]
    fn finished_lines_stay_and_unchanged_rows_are_not_rewritten(
        steps in proptest::collection::vec(step(), 1..30),
        rows in 6_u16..30,
        columns in 40_u16..90,
    ) {
        let mut harness = Harness::of_size(rows, columns);
        let cells = |count| NonZero::new(count).unwrap();
        harness.screen = vt100::Parser::new(cells(rows), cells(columns), SCROLLBACK);
        let mut printed: Vec<String> = Vec::new();
        let mut before: Vec<String> = Vec::new();
        for step in &steps {
            harness.happens(step);
            let (lines, region) = harness.conversation.frame(harness.now);
            let output = harness.painter.paint(&lines, &region);
            prop_assert_eq!(foreign(&output), "", "{:?}", output);
            harness.screen.process(output.as_bytes());
            printed.extend(lines.iter().map(|line| as_shown(line, columns)));
            let shown = region.rows.iter().map(|line| as_shown(line, columns));
            let expected = without_blanks(printed.iter().cloned().chain(shown).collect());
            prop_assert_eq!(harness.all_rows(), expected, "after {:?}", step);
            let after: Vec<String> =
                region.rows.iter().map(|row| row.to_terminal(Depth::Sixteen)).collect();
            let (same, changed): (Vec<_>, Vec<_>) =
                after.iter().enumerate().partition(|(index, row)| before.get(*index) == Some(*row));
            let written: Vec<String> = lines.iter().map(|line| line.to_terminal(Depth::Sixteen)).collect();
            for (_, row) in same.iter().filter(|(_, row)| row.len() > 2) {
                let wanted: usize =
                    written.iter().chain(changed.iter().map(|(_, row)| *row)).map(|text| text.matches(row.as_str()).count()).sum();
                prop_assert!(output.matches(row.as_str()).count() <= wanted, "{:?} in {:?}", row, output);
            }
            before = after;
        }
    }

    /// No size and no change of it makes anything panic, or lets a control character through.
    #[test]
    fn any_window_shows_only_what_is_ours(
        steps in proptest::collection::vec((step(), 1_u16..40, 1_u16..120, any::<bool>()), 1..30),
        is_plain in any::<bool>(),
    ) {
        let mut harness = Harness::of_size(24, 80);
        if is_plain {
            let size = TerminalSize { columns: 80, rows: 24 };
            let screen = Screen { size, depth: Depth::Sixteen, reflows: false, moves: false };
            harness.conversation = Conversation::in_lines(size, History::default(), StatusLine::default());
            harness.painter = Painter::new(screen);
        }
        for (step, rows, columns, resizes) in &steps {
            if *resizes {
                let size = TerminalSize { columns: (*columns).into(), rows: (*rows).into() };
                let output = harness.painter.resize(size);
                harness.conversation.resize(size);
                prop_assert_eq!(foreign(&output), "", "{:?}", output);
            }
            harness.happens(step);
            let (lines, region) = harness.conversation.frame(harness.now);
            let output = harness.painter.paint(&lines, &region);
            prop_assert_eq!(foreign(&output), "", "{:?}", output);
            prop_assert!(!is_plain || !output.contains(['\x1b', '\r']), "{:?}", output);
        }
    }
}
