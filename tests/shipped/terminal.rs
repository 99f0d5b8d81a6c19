//! A conversation in a terminal.

use pintle_testkit::Dialect;

use super::pty::Terminal;
use super::repository::{add_history, git};
use super::sessions::listed;
use super::user::{User, assert_once, command_lines_with, wait_until_ended};
use super::worktrees::is_confined;

/// Changes a file, runs a command that waits for the file `go`, and runs one that sleeps.
fn turns(seconds: &str) -> String {
    format!(
        r#"
    [[turn]]
    text = "I change it."
    [[turn.call]]
    tool = "Edit"
    arguments = {{ file_path = "file", old_string = "two", new_string = "three" }}
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = {{ command = "touch ../outside; until test -e go; do sleep 0.05; done; cp file checked" }}
    [[turn]]
    text = "Changed."
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = {{ command = "touch started; sleep {seconds}" }}
    [[turn]]
    text = "Still here."
    "#
    )
}

/// Starts a conversation in the project.
fn start(user: &User, arguments: &[&str]) -> Terminal {
    let mut command = user.command(arguments);
    // The emulated terminal does not reflow.
    command.env("XTERM_VERSION", "XTerm(390)");
    let mut terminal = Terminal::run(&command, 120, 60, |_| {});
    terminal.wait_for_text("say what to do");
    terminal
}

fn is_asking(screen: &str) -> bool {
    screen.contains("y once")
}

/// Waits until a turn has ended with this text.
fn wait_for_end(terminal: &mut Terminal, text: &str) {
    terminal.wait_for("the end of the turn", |screen| {
        screen.contains(text) && !screen.contains("Esc interrupts")
    });
}

/// Ends the conversation, and returns the screen.
fn leave(mut terminal: Terminal) -> String {
    terminal.type_keys("exit\r");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!screen.contains("say what to do"), "{screen}");
    screen
}

#[test]
fn a_conversation_is_approved_steered_interrupted_and_resumed() {
    if !is_confined() {
        return;
    }
    let seconds = format!("1{:07}", std::process::id());
    let user = User::new(&turns(&seconds));
    add_history(&user);
    let read = |name: &str| std::fs::read_to_string(user.project().join(name)).ok();
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let mut terminal = start(&user, &["chat", "--provider", "anthropic", "--base-url", &url]);
    terminal.type_keys("change it\r");
    // The default mode asks about commands and not about edits.
    terminal.wait_for("the question about the command", |screen| {
        screen.contains("cp file checked") && is_asking(screen)
    });
    assert_eq!(read("file").as_deref(), Some("three"));
    terminal.type_keys("y");
    terminal
        .wait_for("the approved command", |screen| !is_asking(screen) && screen.contains("Esc interrupts"));
    terminal.type_keys("mind the spelling");
    terminal.wait_for_text("Enter steers the turn");
    terminal.type_keys("\r");
    terminal.wait_for_text("1 queued");
    std::fs::write(user.project().join("go"), "").unwrap();
    wait_for_end(&mut terminal, "Changed.");
    assert_eq!(read("checked").as_deref(), Some("three"));
    assert!(!user.at("outside").exists(), "the sandbox is off");

    terminal.type_keys("wait a while\r");
    terminal.wait_for("the next question", |screen| screen.contains(&seconds) && is_asking(screen));
    terminal.type_keys("y");
    user.wait_for_file("started");
    assert!(!command_lines_with(&seconds).is_empty());
    terminal.type_keys("\u{1b}");
    wait_for_end(&mut terminal, &format!("✗ Bash touch started; sleep {seconds} cancelled"));
    wait_until_ended(&seconds);
    let messages = ["› change it", "I change it.", "› mind the spelling", "Changed.", "› wait a while"];
    assert_once(&leave(terminal), &messages);
    assert_eq!(git(&user, &["log", "--format=%s"]), "two\none\n");
    assert_eq!(git(&user, &["status", "--porcelain"]), " M file\n?? checked\n?? go\n?? started\n");

    let mut terminal = start(&user, &["--continue"]);
    assert_once(&terminal.wait_for_text("continued after"), &["› wait a while"]);
    // The pager has the whole conversation.
    terminal.type_keys("\u{14}");
    assert_once(&terminal.wait_for_text("q closes"), &messages);
    terminal.type_keys("q");
    terminal.wait_for_text("say what to do");
    terminal.type_keys("are you there?\r");
    wait_for_end(&mut terminal, "Still here.");
    assert_once(&leave(terminal), &["› wait a while", "› are you there?", "Still here."]);
    let request = user.request(user.model.requests().len() - 1);
    assert_once(&request, &["I change it.", "mind the spelling", "wait a while", "are you there?"]);
    assert_eq!(listed(&user, "project").len(), 1);
}

#[test]
fn the_output_of_the_users_own_command_reaches_the_model_without_progress_frames() {
    if !is_confined() {
        return;
    }
    let user = User::new("[[turn]]\ntext = \"Seen.\"");
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let mut terminal = start(&user, &["chat", "--provider", "anthropic", "--base-url", &url]);
    terminal.type_keys("!printf '10%%\\r20%%\\rfinished\\n'\r");
    terminal.wait_for_text(" exit 0");
    terminal.type_keys("look\r");
    wait_for_end(&mut terminal, "Seen.");
    leave(terminal);
    let requests: Vec<String> =
        user.model.requests().iter().map(|request| request.body.to_string()).collect();
    let folded = r"(exit 0):\n\n```\nfinished\n```";
    assert!(requests.iter().any(|request| request.contains(folded)), "{requests:?}");
}
