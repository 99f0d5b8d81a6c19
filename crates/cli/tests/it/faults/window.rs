//! Windows that become too small for anything.

use super::*;

/// Words of which no other contains one.
fn words(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("w{number:03}e")).collect()
}

#[test]
fn a_window_of_one_cell_loses_nothing() {
    let words = words(120);
    let turns = format!("[[turn]]\npause_ms = 20\ntext = \"{}\"\n", words.join(" "));
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = begin(&harness, &["go"]);
    terminal.wait_for_text("w010e");
    terminal.type_keys("half a thought");
    terminal.wait_for_text("› half a thought");
    for _ in 0..3 {
        terminal.resize(1, 1);
        std::thread::sleep(Duration::from_millis(60));
        terminal.resize(80, 24);
        std::thread::sleep(Duration::from_millis(60));
    }
    terminal.type_keys(" and");
    terminal.wait_for_text("› half a thought and");
    terminal.wait_for("the end of the turn", |screen| !screen.contains("Esc interrupts"));
    let is_input =
        |screen: &str| screen.lines().filter(|line| line.starts_with("› half a thought and")).count();
    let screen = terminal.wait_for("the input, once", |screen| is_input(screen) == 1);
    let shown: String = terminal.scrollback().split_whitespace().collect();
    for word in &words {
        assert!(shown.contains(word.as_str()), "{word} is missing: {shown}");
    }
    let last = count(&screen, "w119e");
    assert_eq!(last, 1, "{screen}");
    terminal.type_keys(" more\r");
    terminal.wait_for_text("› half a thought and more");
    terminal.type_keys("\u{3}\u{3}\u{3}");
    assert_eq!(terminal.finish().0, Some(0));
}
