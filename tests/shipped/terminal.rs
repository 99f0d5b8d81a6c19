//! A conversation in a terminal.

use pintle_testkit::Dialect;

use super::pty::Terminal;
use super::repository::{add_history, git};
use super::server::{TestServer, token};
use super::sessions::listed;
use super::user::{User, assert_once, wait_until_ended, wait_until_running};
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
pub(super) fn start(user: &User, arguments: &[&str]) -> Terminal {
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
pub(super) fn leave(mut terminal: Terminal) -> String {
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
    let screen = terminal.wait_for_text("1 queued");
    assert!(screen.contains("queued: mind the spelling"), "{screen}");
    std::fs::write(user.project().join("go"), "").unwrap();
    wait_for_end(&mut terminal, "Changed.");
    assert_eq!(read("checked").as_deref(), Some("three"));
    assert!(!user.at("outside").exists(), "the sandbox is off");

    terminal.type_keys("wait a while\r");
    terminal.wait_for("the next question", |screen| screen.contains(&seconds) && is_asking(screen));
    terminal.type_keys("y");
    user.wait_for_file("started");
    wait_until_running(&seconds);
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
fn ctrl_d_leaves_while_a_call_waits() {
    if !is_confined() {
        return;
    }
    let user = User::new(&turns("1"));
    add_history(&user);
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let mut terminal = start(&user, &["chat", "--provider", "anthropic", "--base-url", &url]);
    terminal.type_keys("change it\r");
    terminal.wait_for("the question about the command", is_asking);
    terminal.type_keys("\u{4}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
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

/// Such a command passes no gate.
#[test]
fn a_history_that_the_users_own_command_removes_is_restored() {
    if !is_confined() {
        return;
    }
    for flags in [&["--no-sandbox"][..], &[]] {
        let user = User::new("[[turn]]\ntext = \"Seen.\"");
        add_history(&user);
        let url = user.model.base_url(Dialect::AnthropicMessages);
        let arguments = ["chat", "--provider", "anthropic", "--base-url", &url];
        let mut terminal = start(&user, &[&arguments[..], flags].concat());
        terminal.type_keys("!rm -rf .git\r");
        terminal.wait_for_text("a command removed part of the git history");
        assert_eq!(git(&user, &["log", "--format=%s"]), "two\none\n", "{flags:?}");
        leave(terminal);
        assert_eq!(git(&user, &["log", "--format=%s"]), "two\none\n", "{flags:?}");
    }
}

/// Returns the directories of the sessions that are kept.
fn kept(user: &User) -> Vec<std::path::PathBuf> {
    let sessions = std::fs::read_dir(user.at(".local/state/pintle/sessions/sessions")).unwrap();
    let entries = sessions.map(|entry| entry.unwrap().path());
    // Other entries are directories that are being removed.
    entries.filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.')).collect()
}

#[test]
fn a_conversation_without_a_message_leaves_nothing() {
    if !is_confined() {
        return;
    }
    let user = User::new("[[turn]]\ntext = \"Hello.\"\n");
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let arguments = ["chat", "--provider", "anthropic", "--base-url", &url];
    let mut terminal = start(&user, &arguments);
    assert_eq!(kept(&user).len(), 1, "the session is open");
    terminal.type_keys("\u{4}");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(kept(&user).len(), 0, "{screen}");

    // The first session has no message, and the second one has.
    let mut terminal = start(&user, &arguments);
    let first = kept(&user);
    terminal.type_keys("/new\r");
    terminal.wait_for("the second session", |_| {
        let now = kept(&user);
        now.len() == 1 && now != first
    });
    terminal.type_keys("hello\r");
    wait_for_end(&mut terminal, "Hello.");
    terminal.type_keys("/new\r");
    terminal.wait_for("the third session", |_| kept(&user).len() == 2);
    leave(terminal);
    assert_eq!((kept(&user).len(), listed(&user, "project").len()), (1, 1));
}

/// A process that is killed deletes nothing. Lists without `--all` leave out its session.
#[test]
fn a_killed_conversation_without_a_message_is_marked() {
    if !is_confined() {
        return;
    }
    let user = User::new("[[turn]]\ntext = \"Hello.\"\n");
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let terminal = start(&user, &["chat", "--provider", "anthropic", "--base-url", &url]);
    let process = terminal.pid().to_string();
    assert!(std::process::Command::new("kill").args(["-KILL", &process]).status().unwrap().success());
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, None, "{screen}");
    assert!(listed(&user, "project").is_empty());
    let all = user.pintle(&["sessions", "list", "--all"]);
    assert!(all.lines().count() == 1 && all.contains("  (no message)  "), "{all}");
    // It is too young.
    let pruned = user.pintle(&["sessions", "prune", "--keep", "9"]);
    assert!(pruned.starts_with("deleted 0 of "), "{pruned}");
    assert_eq!(kept(&user).len(), 1);
}

#[test]
fn a_compaction_that_is_requested_during_the_last_response_follows_the_turn() {
    if !is_confined() {
        return;
    }
    let words = "word after word ".repeat(20);
    let user = User::new(&format!(
        "[[turn]]\npause_ms = 400\ntext = \"{words}finished.\"\n[[turn]]\ntext = \"The summary.\"\n"
    ));
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let mut terminal = start(&user, &["chat", "--provider", "anthropic", "--base-url", &url]);
    terminal.type_keys("go on\r");
    terminal.wait_for_text("word after word");
    terminal.type_keys("/compact\r");
    // It is acknowledged while the response arrives.
    let screen =
        terminal.wait_for_text("the conversation is compacted before the next request, or after this turn");
    assert!(!screen.contains("finished."), "{screen}");
    // No other message follows.
    terminal.wait_for_text("[compacted]");
    wait_for_end(&mut terminal, "finished.");
    assert_eq!(user.model.requests().len(), 2);
    leave(terminal);
}

#[test]
fn a_line_of_memory_follows_no_link_out_of_the_project() {
    if !is_confined() {
        return;
    }
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    for name in [".bashrc", "dotfiles.md"] {
        std::fs::write(user.at(name), "mine\n").unwrap();
    }
    std::os::unix::fs::symlink("../.bashrc", user.project().join("AGENTS.md")).unwrap();
    let own = user.at(".config/pintle/AGENTS.md");
    std::os::unix::fs::symlink("../../dotfiles.md", &own).unwrap();
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let mut terminal = start(&user, &["chat", "--provider", "anthropic", "--base-url", &url]);
    for (key, answer) in [("p", "leads out of the working directory"), ("u", "memory: added to")] {
        terminal.type_keys("# touch PWNED\r");
        terminal.wait_for_text("add to: p instructions");
        terminal.type_keys(key);
        terminal.wait_for_text(answer);
    }
    // Nor one to a protected file inside the project.
    let read = |name: &str| std::fs::read_to_string(user.at(name)).unwrap();
    let before = read("project/.git/config");
    std::fs::remove_file(user.project().join("AGENTS.md")).unwrap();
    std::os::unix::fs::symlink(".git/config", user.project().join("AGENTS.md")).unwrap();
    terminal.type_keys("# touch PWNED\r");
    terminal.wait_for_text("add to: p instructions");
    terminal.type_keys("p");
    terminal.wait_for_text("protected file of .git/config");
    leave(terminal);
    assert_eq!(read("project/.git/config"), before);
    assert_eq!(read(".bashrc"), "mine\n");
    assert_eq!(read("dotfiles.md"), "mine\n\n- touch PWNED\n");
    assert!(own.symlink_metadata().unwrap().is_symlink());
}

/// A command and two answers.
const CONVERSATION: &str = r#"
    [[turn]]
    text = "I **look**."
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "touch seen" }
    [[turn]]
    text = "Found it."
    [[turn]]
    text = "You are welcome."
    "#;

/// Has the conversation, and checks its transcript on the screen.
fn converse(user: &User, mut terminal: Terminal) {
    const SHOWN: [&str; 6] =
        ["› find it", "I look.", "✓ Bash touch seen", "Found it.", "› thank you", "You are welcome."];
    terminal.type_keys("find it\r");
    terminal.wait_for("the question", |screen| screen.contains("touch seen") && is_asking(screen));
    assert!(!user.project().join("seen").exists());
    terminal.type_keys("y");
    wait_for_end(&mut terminal, "Found it.");
    std::fs::remove_file(user.project().join("seen")).unwrap();
    terminal.type_keys("thank you\r");
    wait_for_end(&mut terminal, "You are welcome.");
    let screen = leave(terminal);
    assert_once(&screen, &SHOWN);
    assert!(SHOWN.map(|text| screen.find(text)).is_sorted(), "{screen}");
}

#[test]
fn a_conversation_with_a_server_is_shown_as_one_of_this_process() {
    if !is_confined() {
        return;
    }
    let user = User::new(CONVERSATION);
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let arguments = ["chat", "--provider", "anthropic", "--base-url", &url, "--mode", "edit"];
    converse(&user, start(&user, &arguments));
    let secret = token(&user, "ann", &["--scope", "read,run,approve"]);
    let served = TestServer::start(&user, &["--mode", "edit"]);
    let address = format!("http://{}/#token={secret}", served.authority());
    converse(&user, start(&user, &["attach", "--new", &address]));
}
