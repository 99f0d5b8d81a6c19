//! Rendering of retries, plans, images and diffs in the conversation, on a real pseudo-terminal.

use pintle_testkit::Dialect;

use crate::chat::chat;
use crate::harness::Harness;
use crate::terminal::Terminal;

fn leave(mut terminal: Terminal) -> String {
    terminal.type_keys("/quit\r");
    let (code, screen, output) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    output
}

#[test]
fn a_rate_limit_is_counted_down() {
    let turns = "[[turn]]\nfailure = [{ status = 429, retry_after = \"4\" }]\ntext = \"Done.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = Terminal::start(&chat(&harness, &["go"]));
    terminal.wait_for("the countdown", |screen| {
        screen.contains("rate limit reached, retry 1 in 3 s")
            || screen.contains("rate limit reached, retry 1 in 2 s")
    });
    // A busy machine may skip a second.
    terminal.wait_for("the last second, or the end", |screen| {
        screen.contains("rate limit reached, retry 1 in 1 s") || !screen.contains("rate limit reached, retry")
    });
    terminal.wait_for("the end without the countdown", |screen| {
        screen.contains("Done.") && !screen.contains("rate limit reached, retry")
    });
    leave(terminal);
}

fn plan(one: &str, two: &str) -> String {
    format!(
        "[[turn]]\n[[turn.call]]\ntool = \"update_plan\"\narguments = {{ plan = [\
         {{ step = \"Read it\", status = \"{one}\" }}, {{ step = \"Write it\", status = \"{two}\" }}] }}\n"
    )
}

#[test]
fn plans_images_and_changed_words_are_shown() {
    let turns = [
        &plan("in_progress", "pending"),
        "[[turn]]\n[[turn.call]]\ntool = \"shell\"\n\
         arguments = { command = \"until test -e go; do sleep 0.02; done\", timeout_ms = 600000 }\n",
        "[[turn]]\n[[turn.call]]\ntool = \"read_file\"\narguments = { file_path = \"a.png\" }\n",
        "[[turn]]\n[[turn.call]]\ntool = \"edit_file\"\n\
         arguments = { file_path = \"t.txt\", old_string = \"one\", new_string = \"two\" }\n",
        &plan("completed", "completed"),
        "[[turn]]\ntext = \"All done.\"\n",
    ];
    let harness = Harness::new(Dialect::AnthropicMessages, &turns.concat());
    std::fs::write(harness.path("a.png"), b"\x89PNG\r\n\x1a\n0123").unwrap();
    std::fs::write(harness.path("t.txt"), "number one here\n").unwrap();
    let mut terminal = Terminal::run(&chat(&harness, &["go"]), 80, 40, |_| {});
    terminal.wait_for("the plan", |screen| {
        screen.contains("shell until") && screen.contains("  ▸ Read it") && screen.contains("  ○ Write it")
    });
    std::fs::write(harness.path("go"), "").unwrap();
    let screen = terminal
        .wait_for("the end without the plan", |screen| screen.contains("All done.") && !screen.contains("▸"));
    assert!(screen.contains("✓ update_plan 0 of 2 done: Read it"), "{screen}");
    assert!(screen.contains("    [image: image/png, 12 bytes]"), "{screen}");
    assert!(screen.contains("    ✓ Read it\n    ✓ Write it"), "{screen}");
    let output = leave(terminal);
    assert!(output.contains("-number \u{1b}[0m\u{1b}[7;31mone\u{1b}[0m"), "{output:?}");
    assert!(output.contains("+number \u{1b}[0m\u{1b}[7;32mtwo\u{1b}[0m"), "{output:?}");
}

#[test]
fn colours_follow_the_background_that_the_terminal_reports() {
    let ask = "\u{1b}]11;?\u{1b}\\";
    // The mark before the input is cyan, which is faint on white.
    for (answer, colour) in [("ffff/ffff/ffff", "34"), ("0000/0000/0000", "36")] {
        let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Done.\"\n");
        let mut terminal = Terminal::start(chat(&harness, &[]).env_remove("XTERM_VERSION"));
        terminal.wait_for_text("say what to do");
        terminal.type_keys(&format!("\u{1b}]11;rgb:{answer}\u{1b}\\go\r"));
        let screen = terminal.wait_for_text("Done.");
        assert!(screen.contains("› go\n") && !screen.contains("rgb"), "{screen}");
        let output = leave(terminal);
        assert!(output.contains(ask), "{output:?}");
        assert!(output.contains(&format!("\u{1b}[{colour}m› \u{1b}[0m\u{1b}[1mgo")), "{colour}: {output:?}");
    }
    for (flags, variable) in
        [(["--theme", "dark"], "LANG"), (["--theme", "auto"], "NO_COLOR"), (["--theme", "auto"], "TMUX")]
    {
        let harness = Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Done.\"\n");
        let mut terminal = Terminal::start(chat(&harness, &flags).env(variable, "C"));
        terminal.wait_for_text("say what to do");
        assert!(!leave(terminal).contains(ask), "{variable}");
    }
}
