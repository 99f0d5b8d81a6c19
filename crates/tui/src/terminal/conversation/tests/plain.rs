//! The conversation in lines.

use super::*;

/// Conversation in lines, with the lines that were printed.
struct Lines {
    harness: Harness,
}

impl Lines {
    fn new() -> Self {
        let mut harness = Harness::new();
        let size = TerminalSize { columns: 40, rows: 12 };
        let status = StatusLine { model: "m".into(), mode: "auto".into(), ..StatusLine::default() };
        harness.conversation = Conversation::in_lines(size, History::default(), status);
        harness.painter = Painter::new(Screen { size, depth: Depth::Sixteen, reflows: false, moves: false });
        Self { harness }
    }

    fn running() -> Self {
        let mut lines = Self::new();
        lines.harness.event("USER_INPUT", &json!({"content": "go"}));
        lines.printed();
        lines
    }

    /// Takes a line of the user, and returns what is to be done.
    fn line(&mut self, line: &str) -> String {
        let effects = self.harness.conversation.line(line, self.harness.now);
        self.harness.effects.extend(effects);
        self.harness.done()
    }

    fn interrupt(&mut self) -> String {
        let effects = self.harness.conversation.interrupt_or_leave(self.harness.now);
        self.harness.effects.extend(effects);
        self.harness.done()
    }

    /// Returns what was printed since the last time.
    fn printed(&mut self) -> String {
        let (lines, region) = self.harness.conversation.frame(self.harness.now);
        assert_eq!(region, Region::default());
        let printed = self.harness.painter.paint(&lines, &region) + &self.harness.painter.erase();
        let is_control = |character: char| character.is_control() && character != '\n';
        assert!(!printed.contains(is_control), "{printed:?}");
        printed
    }
}

#[test]
fn text_is_printed_by_complete_lines() {
    let mut lines = Lines::new();
    lines.harness.conversation.say_ready();
    insta::assert_snapshot!(lines.printed(), @"
    [pintle] m · auto; /help lists commands
    — ready
    ");
    assert_eq!(lines.line("fix it"), r#"Say("fix it")"#);
    lines.harness.event("USER_INPUT", &json!({"content": "fix it"}));
    lines.harness.event("ASSISTANT_TEXT_START", &json!({}));
    lines.harness.event("ASSISTANT_TEXT_DELTA", &json!({"delta": "I **look**\x1b[2J:\n| a | b |\nand"}));
    assert_eq!(lines.printed(), "\nI **look**[2J:\n| a | b |\n", "what the user typed is not repeated");
    lines.harness.event("ASSISTANT_TEXT_END", &json!({"text": "…"}));
    lines.harness.event(
        "TOOL_CALL_START",
        &json!({"call_id": "1", "tool_name": "shell", "arguments": {"command": "cargo test"}}),
    );
    let end = json!({"call_id": "1", "tool_name": "shell", "output": "ok\n", "duration_ms": 1_500});
    lines.harness.event("TOOL_CALL_END", &end);
    lines.harness.event("SUBAGENT_SPAWNED", &json!({"agent_id": "agent_1", "child": "c", "task": "Look."}));
    lines.harness.event("PROCESSING_END", &json!({"state": "IDLE"}));
    insta::assert_snapshot!(lines.printed(), @"
    and

    [shell] cargo test (ok, 1.5 s)
        ok
    [agent_1] started: Look.
    — ready
    ");
}

#[test]
fn long_lines_are_not_broken() {
    let mut lines = Lines::running();
    let long = "word ".repeat(100);
    lines.harness.event("ASSISTANT_TEXT_DELTA", &json!({"delta": format!("{long}\n")}));
    lines.harness.conversation.resize(TerminalSize { columns: 20, rows: 5 });
    assert_eq!(lines.printed().trim(), long.trim());
}

#[test]
fn calls_are_decided_by_words() {
    let cases = [
        ("yes", "decision: Approve, rules: []"),
        ("Y", "decision: Approve, rules: []"),
        ("session", r#"decision: Approve, rules: ["shell(make)"]"#),
        ("session shell(make *)", r#"decision: Approve, rules: ["shell(make *)"]"#),
        ("no", "the user denied the call"),
        ("no, use  ninja ", "the user says: use  ninja"),
        ("n", "the user denied the call"),
    ];
    for (line, expected) in cases {
        let mut lines = Lines::running();
        lines.harness.conversation.set_approvals(vec![request("1", "make")]);
        let question = "\napproval: shell (mode ask)\n    make\n\
                        answer yes, session (shell(make)), no, or no with words\n";
        assert_eq!(lines.printed(), question);
        let done = lines.line(line);
        assert!(done.starts_with("Decide(") && done.contains(expected), "{line}: {done}");
    }
}

#[test]
fn other_lines_do_not_decide() {
    let mut lines = Lines::running();
    lines.harness.conversation.set_approvals(vec![request("1", "make"), request("2", "rm\u{202e} x")]);
    let printed = lines.printed();
    assert!(
        printed.contains("approval: shell (mode ask) [1 of 2]\n") && !printed.contains("rm"),
        "{printed}"
    );
    assert_eq!(lines.line("yes but look first"), r#"Say("yes but look first")"#);
    let printed = lines.printed();
    assert!(printed.contains("[message] yes but look first\n"), "{printed}");
    assert!(printed.contains("approval: shell (mode ask) [1 of 2]\n"), "the question is repeated: {printed}");
    assert_eq!(lines.line("now"), r#"Say("now")"#);
    assert_eq!(lines.line("a better name is load(path)"), r#"Say("a better name is load(path)")"#);
    assert_eq!(lines.line("inside"), "");
    assert!(lines.printed().contains("does not ask to leave the sandbox"));
    assert_eq!(lines.line("  "), "");
    lines.harness.conversation.set_approvals(vec![request("1", "make"), request("2", "rm\u{202e} x")]);
    assert_eq!(lines.printed(), "", "it is asked once");
    lines.harness.conversation.set_approvals(vec![request("2", "rm\u{202e} x")]);
    assert!(lines.printed().contains("    rm\\u{202e} x\n"), "the next one is asked about");
    lines.harness.conversation.set_approvals(Vec::new());
    assert_eq!(lines.line("yes"), r#"Say("yes")"#, "nothing is left to decide");
}

#[test]
fn commands_work_in_lines() {
    let mut lines = Lines::running();
    assert!(lines.line("/help").starts_with("Call(CommandInvocation { command: Help"));
    assert_eq!(lines.line("!make test"), r#"Run("make test")"#);
    assert_eq!(lines.line("/hepl"), "");
    assert!(lines.printed().contains("[pintle] there is no command /hepl: did you mean /help?\n"));
    assert_eq!(lines.line("first\nsecond"), r#"Say("first\nsecond")"#, "nothing is left of the line before");
}

#[test]
fn ctrl_c_interrupts_and_leaves_in_lines() {
    let mut lines = Lines::running();
    assert_eq!(lines.interrupt(), "Interrupt");
    assert!(lines.printed().contains("press Ctrl+C again to leave"));
    lines.harness.waits(HINT_TIME * 2).event("PROCESSING_END", &json!({"state": "IDLE"}));
    assert_eq!(lines.interrupt(), "", "it was too long ago");
    assert_eq!(lines.interrupt(), "Leave");
}

#[test]
fn what_could_not_be_sent_is_forgotten() {
    let mut lines = Lines::new();
    lines.line("go");
    lines.harness.conversation.restore("go");
    lines.harness.event("USER_INPUT", &json!({"content": "go"}));
    assert!(lines.printed().contains("› go"), "somebody else has said it");
}
