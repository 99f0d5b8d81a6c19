//! Pastes without measure, and bytes that nobody types.

use pintle_test_conditions::cases;

use super::*;

/// 100 MB: without a limit, more than the memory that a conversation may need.
const LARGE: usize = 100 << 20;

/// Twice the limit.
const TOO_LARGE: usize = 8 << 20;

/// Memory that a conversation may need beyond that of its beginning, in KiB.
const MORE_MEMORY: u64 = 64 << 10;

const ANSWERS: &str = "[[turn]]\ntext = \"First answer.\"\n[[turn]]\ntext = \"Second answer.\"\n";

/// Types so many bytes of text without a line end.
fn type_much(terminal: &mut Terminal, bytes: usize) {
    let piece = "words that go on and on ".repeat(1 << 12);
    for _ in 0..bytes / piece.len() {
        terminal.type_keys(&piece);
    }
    terminal.type_keys(&piece[..bytes % piece.len()]);
}

/// Waits for a text and checks the memory, with an input that is then sent.
fn refused(mut terminal: Terminal, before: u64, text: &str, clear: &str) {
    terminal.wait_for_text(text);
    terminal.type_keys(clear);
    terminal.wait_for_text("say what to do");
    terminal.type_keys("hello\r");
    terminal.wait_for_text("First answer.");
    let more = peak_memory(&terminal) - before;
    assert!(more < MORE_MEMORY, "{more} KiB more");
    leave(terminal);
}

#[test]
fn a_large_paste_is_refused_with_its_size() {
    let harness = Harness::new(Dialect::AnthropicMessages, ANSWERS);
    let mut terminal = begin(&harness, &[]);
    let before = peak_memory(&terminal);
    terminal.type_keys("\u{1b}[200~");
    type_much(&mut terminal, LARGE);
    terminal.type_keys("\u{1b}[201~");
    refused(terminal, before, "not pasted: 104,857,600 bytes, at most 4,194,304; name a file instead", "");
}

/// From a terminal that does not mark pastes, or from a program.
#[test]
fn a_large_paste_that_is_not_marked_fills_the_input_and_no_more() {
    let harness = Harness::new(Dialect::AnthropicMessages, ANSWERS);
    let mut terminal = begin(&harness, &[]);
    let before = peak_memory(&terminal);
    // Each byte is decoded as a key, which takes its time without optimisation.
    type_much(&mut terminal, cases(TOO_LARGE, LARGE / 5));
    refused(terminal, before, "the input is full (4,194,304 bytes)", "\u{3}");
}

/// Its line ends do not send it line by line.
#[test]
fn a_paste_that_is_not_marked_is_one_message() {
    let text: String = (0..60).map(|number| format!("and this is line {number}\r")).collect();
    let turns = "[[turn]]\ntext = \"First answer.\"\n[[turn.expect]]\n\
                 request_contains = \"line 0\\nand this is line 1\\n\"\n[[turn]]\ntext = \"Second answer.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = begin(&harness, &[]);
    terminal.type_keys(&text);
    terminal.wait_for_text("First answer.");
    terminal.wait_for("the end of the turn", |screen| !screen.contains("Esc interrupts"));
    terminal.type_keys("thanks\r");
    terminal.wait_for_text("Second answer.");
    leave(terminal);
}

#[test]
fn a_paste_without_an_end_is_ended_by_the_user() {
    let harness = Harness::new(Dialect::AnthropicMessages, ANSWERS);
    let mut terminal = begin(&harness, &[]);
    terminal.type_keys("\u{1b}[200~some text");
    terminal.wait_for_text("a paste has not ended; Ctrl+C ends it");
    terminal.type_keys("\u{3}");
    terminal.wait_for_text("the paste has ended here");
    terminal.wait_for_text("› some text");
    terminal.type_keys(" and more\r");
    let screen = terminal.wait_for_text("First answer.");
    assert!(screen.contains("› some text and more"), "{screen}");
    let before = peak_memory(&terminal);
    terminal.type_keys("\u{1b}[200~");
    let size = cases(TOO_LARGE, LARGE);
    type_much(&mut terminal, size);
    terminal.wait_for_text("a paste has not ended; Ctrl+C ends it");
    terminal.type_keys("\u{3}");
    let shown = if size == LARGE { "104,857,600" } else { "8,388,608" };
    terminal.wait_for_text(&format!("not pasted: {shown} bytes, at most 4,194,304; name a file instead"));
    terminal.type_keys("hello\r");
    terminal.wait_for_text("Second answer.");
    let more = peak_memory(&terminal) - before;
    assert!(more < MORE_MEMORY, "{more} KiB more");
    leave(terminal);
}

/// Sends invalid and unusual bytes and checks the input line.
fn check_unusual_bytes(table: &[(&[u8], &str, IsComplete)]) {
    let harness = Harness::new(Dialect::AnthropicMessages, ANSWERS);
    let mut terminal = begin(&harness, &[]);
    for &(bytes, shown, is_complete) in table {
        terminal.type_bytes(bytes);
        if is_complete == IsComplete::No {
            // The sequence ends after a moment, which is long on a busy machine.
            std::thread::sleep(Duration::from_secs(1));
        }
        terminal.type_keys("end");
        let name = String::from_utf8_lossy(bytes.get(..20).unwrap_or(bytes)).into_owned();
        // The model of the screen leaves replacement characters out.
        let expected = format!("› {shown}end").replace('\u{fffd}', "");
        terminal.wait_for(&format!("{name:?}"), |screen| screen.lines().any(|line| line == expected));
        assert!(terminal.output().contains(&format!("{shown}end")), "{name:?}");
        terminal.type_keys("\u{5}\u{15}");
        terminal.wait_for_text("say what to do");
    }
    terminal.type_bytes(b"hel\xfflo\r");
    terminal.wait_for_text("First answer.");
    assert!(terminal.output().contains("hel\u{fffd}lo"));
    leave(terminal);
}

/// Whether bytes are complete characters and sequences.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IsComplete {
    Yes,
    No,
}

#[test]
fn bytes_that_nobody_types_do_no_harm() {
    use IsComplete::{No, Yes};

    // The other control bytes have effects, which other tests check.
    let controls = b"\x00\x01\x02\x05\x06\x08\x0b\x0c\x0e\x0f\x10\x11\x13\x16\x17\x18\x1c\x1d\x1e".to_vec();
    let long =
        |start: &str, inner: &str, end: &str| format!("{start}{}{end}", inner.repeat(50_000)).into_bytes();
    let complete: [(&[u8], &str, IsComplete); 8] = [
        (b"x\xffy", "x\u{fffd}y", Yes),
        (b"\xc3(", "\u{fffd}(", Yes),
        (b"\xed\xa0\x80z", "\u{fffd}\u{fffd}\u{fffd}z", Yes),
        (&controls, "", Yes),
        (b"\x9b1A", "\u{fffd}1A", Yes),
        (&long("\u{1b}[", "1;", "A"), "", Yes),
        (&long("\u{1b}]52;c;", "QQ", "\u{7}"), "", Yes),
        (&long("\u{1b}P", "\u{1}", "\u{1b}\\"), "", Yes),
    ];
    let incomplete: [(&[u8], &str, IsComplete); 5] = [
        (b"\xf0\x9f\x91", "", No),
        (b"\x1b[", "", No),
        (b"\x1b[1;", "", No),
        (b"\x1bP1$r", "", No),
        (b"\x1b]52;c;", "", No),
    ];
    std::thread::scope(|scope| {
        for table in [&complete[..], &incomplete[..2], &incomplete[2..]] {
            scope.spawn(move || check_unusual_bytes(table));
        }
    });
}
