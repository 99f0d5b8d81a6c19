//! Providers that are not there, say nothing, or break off.

use std::net::TcpListener;

use pintle_test_conditions::is_full;

use super::*;

/// Begins a conversation whose provider is at this address.
fn begin_at(address: std::net::SocketAddr, harness: &Harness) -> Terminal {
    let mut command =
        pintle(&["chat", "--provider", "anthropic", "--base-url", &format!("http://{address}")]);
    command.arg("--dir").arg(harness.path("")).env("ANTHROPIC_API_KEY", "sk-none").env("PINTLE_MODE", "auto");
    command.env("XTERM_VERSION", "XTerm(390)").env("PINTLE_STATE_DIR", harness.path(".state"));
    let mut terminal = Terminal::start(&command);
    terminal.wait_for_text("say what to do");
    terminal
}

/// Returns how often a user tries the same again. Each round waits for seconds.
fn rounds() -> usize {
    if is_full() { 2 } else { 1 }
}

fn unused() -> Harness {
    Harness::new(Dialect::AnthropicMessages, "[[turn]]\ntext = \"Never.\"\n")
}

#[test]
fn a_provider_that_is_not_there_is_tried_again_and_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let harness = unused();
    let mut terminal = begin_at(address, &harness);
    for round in 1..=rounds() {
        terminal.type_keys("hello\r");
        let screen = terminal.wait_for("the failure", |screen| {
            // The rest of a frame may arrive later than its beginning.
            let is_whole = count(screen, "check that a server is listening") == round;
            count(screen, "✗ network failure") == round && is_whole && !screen.contains("Esc interrupts")
        });
        assert_eq!(count(&screen, "retry 1 in "), round, "{screen}");
    }
    leave(terminal);
}

#[test]
fn escape_ends_the_wait_for_another_attempt() {
    let turns = "[[turn]]\nfailure = [{ status = 429, retry_after = \"60\" }]\ntext = \"Done.\"\n";
    let harness = Harness::new(Dialect::AnthropicMessages, turns);
    let mut terminal = begin(&harness, &["hello"]);
    terminal.wait_for("the countdown", |screen| {
        screen.contains("rate limit reached, retry 1 in 5") && !screen.contains("in 59 s")
    });
    terminal.type_keys("half\u{1b}");
    let screen = terminal.wait_for("the end of the turn", |screen| {
        !screen.contains("Esc interrupts") && !screen.contains("reached, retry 1 in 5")
    });
    assert!(screen.contains("› half"), "{screen}");
    assert_eq!(count(&screen, "[interrupted]"), 1, "{screen}");
    terminal.type_keys("\u{15}");
    leave(terminal);
}

#[test]
fn a_provider_that_never_answers_is_waited_for_until_escape() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let accepting = std::thread::spawn(move || {
        listener.set_nonblocking(true).unwrap();
        let mut accepted = Vec::new();
        while stopped
            .recv_timeout(Duration::from_millis(20))
            .is_err_and(|error| error == std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            accepted.extend(listener.accept().ok());
        }
        accepted.len()
    });
    let harness = unused();
    let mut terminal = begin_at(address, &harness);
    for _ in 0..rounds() {
        terminal.type_keys("hello\r");
        // The seconds of the wait go on.
        terminal.wait_for("seconds", |screen| {
            (2..60).any(|seconds| screen.contains(&format!("waiting for the model {seconds} s")))
        });
        terminal.type_keys("half");
        terminal.wait_for_text("› half");
        terminal.type_keys("\u{1b}");
        terminal.wait_for("the end of the turn", |screen| {
            !screen.contains("Esc interrupts") && !screen.contains("waiting for the model")
        });
        terminal.wait_for_text("[interrupted] before the model had answered");
        terminal.type_keys("\u{15}");
        terminal.wait_for_text("say what to do");
    }
    leave(terminal);
    drop(stop);
    assert!(accepting.join().unwrap() >= 1);
}

#[test]
fn a_stream_that_breaks_off_is_said_and_the_conversation_goes_on() {
    let failures =
        ["cut_after_events = 3", "cut_after_events = 0", "error_event = \"overloaded\"", "stall_ms = 10"];
    let check = |failure: &str| {
        let turns = format!(
            "[[turn]]\nfailure = [{{ {failure} }}]\ntext = \"This is the whole answer.\"\n[[turn]]\ntext = \"Second answer.\"\n"
        );
        let harness = Harness::new(Dialect::AnthropicMessages, &turns);
        let mut terminal = begin(&harness, &[]);
        terminal.type_keys("hello\r");
        let screen = terminal.wait_for(failure, |screen| {
            !screen.contains("Esc interrupts") && (screen.contains("whole answer.") || screen.contains("✗ "))
        });
        // A response that has begun is not asked for again: the user decides.
        if screen.contains("✗ ") {
            terminal.type_keys("hello again\r");
            terminal.wait_for_text("This is the whole answer.");
        }
        terminal.type_keys("and more\r");
        let screen = terminal.wait_for_text("Second answer.");
        assert_eq!(count(&screen, "This is the whole answer."), 1, "{screen}");
        leave(terminal);
    };
    // Some of them wait for the next attempt.
    std::thread::scope(|scope| {
        for failure in failures {
            scope.spawn(move || check(failure));
        }
    });
}
