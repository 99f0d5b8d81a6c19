//! Windows that become too small for anything.

use super::*;

/// Words of which no other contains one.
fn words(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("w{number:03}e")).collect()
}

/// Scripts an answer that streams, after a command that waits for a file.
fn waiting_then_saying(file: &str, words: &[String]) -> String {
    format!(
        "[[turn]]\n[[turn.call]]\ntool = \"shell\"\n\
         arguments = {{ command = \"until test -e {file}; do sleep 0.02; done\", timeout_ms = 600000 }}\n\
         [[turn]]\npause_ms = 20\ntext = \"{}\"\n",
        words.join(" ")
    )
}

/// Waits until nothing is drawn: in a window of one cell there is no room for what changes with time.
fn wait_until_silent(terminal: &Terminal) {
    wait_until("silence", || {
        let before = terminal.output().len();
        std::thread::sleep(Duration::from_millis(300));
        terminal.output().len() == before
    });
}

#[test]
fn a_window_of_one_cell_loses_nothing() {
    let words = words(120);
    let (first, second) = words.split_at(60);
    let mut turns = waiting_then_saying("one", first);
    turns += &waiting_then_saying("two", second).replacen("[[turn]]\n[[turn.call]]", "[[turn.call]]", 1);
    let harness = Harness::new(Dialect::AnthropicMessages, &turns);
    let mut terminal = begin(&harness, &["go"]);
    terminal.type_keys("half a thought");
    for (file, words) in [("one", first), ("two", second)] {
        terminal.wait_for_text(&format!("shell until test -e {file}"));
        terminal.wait_for_text("› half a thought");
        // What is printed before the change is known would be for another window.
        terminal.resize(1, 1);
        wait_until_silent(&terminal);
        std::fs::write(harness.path(file), "").unwrap();
        let shown = |terminal: &Terminal| terminal.scrollback().split_whitespace().collect::<String>();
        wait_until("the beginning of the answer", || shown(&terminal).contains(&words[0]));
        terminal.resize(80, 24);
    }
    terminal.type_keys(" and");
    terminal.wait_for("the end of the turn", |screen| !screen.contains("Esc interrupts"));
    let is_input = |line: &&str| line.starts_with("› half a thought and");
    terminal.wait_for("the input, once", |screen| screen.lines().filter(is_input).count() == 1);
    let shown: String = terminal.scrollback().split_whitespace().collect();
    for word in &words {
        assert_eq!(count(&shown, word), 1, "{word}: {shown}");
    }
    terminal.type_keys(" more\r");
    terminal.wait_for_text("› half a thought and more");
    terminal.type_keys("\u{3}\u{3}\u{3}");
    assert_eq!(terminal.finish().0, Some(0));
}
