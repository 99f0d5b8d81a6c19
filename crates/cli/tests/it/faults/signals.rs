//! Stops, continuations and ends by signals, and the end of the terminal.

use std::fs;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::Termios;

use super::*;

const ANSWERS: &str = "[[turn]]\ntext = \"First answer.\"\n[[turn]]\ntext = \"Second answer.\"\n";

/// Starts a shell with job control, in which `"$@"` is the conversation.
fn shell(harness: &Harness) -> Terminal {
    let mut command = chat(harness, &[]);
    command.env("PS1", "shell> ");
    let mut shell = Command::new("setsid");
    // Without its own editor, it leaves the modes of the terminal alone.
    shell.args(["--ctty", "bash", "--norc", "--noprofile", "--noediting", "-i", "-s"]);
    shell.arg(command.get_program());
    // Each stop that cannot be caught adds lines, and the first answer has to stay on the screen.
    let mut terminal = Terminal::run_as(shell, &command, 80, 40, |_| {});
    terminal.wait_for_text("shell> ");
    terminal
}

/// Returns the process of the conversation below another one.
fn conversation_of(ancestor: u32) -> Pid {
    let children = fs::read_to_string(format!("/proc/{ancestor}/task/{ancestor}/children")).unwrap();
    let child: u32 = children.split_whitespace().next().expect("a child").parse().unwrap();
    let name = fs::read_to_string(format!("/proc/{child}/comm")).unwrap();
    if name.trim() == "pintle" {
        Pid::from_raw(child.try_into().unwrap()).unwrap()
    } else {
        conversation_of(child)
    }
}

/// Returns whether the kernel runs nothing of a process until it is continued.
fn is_stopped(pid: &str) -> bool {
    let status = fs::read_to_string(Path::new("/proc").join(pid).join("status")).unwrap();
    status.lines().any(|line| line == "State:\tT (stopped)")
}

/// Returns what distinguishes the modes of a conversation from others.
fn flags(modes: &Termios) -> (String, String, String) {
    let Termios { input_modes, output_modes, local_modes, .. } = modes;
    (format!("{input_modes:?}"), format!("{output_modes:?}"), format!("{local_modes:?}"))
}

fn is_entered(output: &str) -> bool {
    let last = |text| output.rfind(text);
    last("\u{1b}[?2004h") > last("\u{1b}[?2004l")
}

/// How a conversation is stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    Key,
    Signal,
    /// It cannot be caught.
    Kill,
}

fn stop_and_continue(stop: Stop, line: &str) {
    let harness = Harness::new(Dialect::AnthropicMessages, ANSWERS);
    let mut terminal = shell(&harness);
    let before = flags(&terminal.modes());
    terminal.type_keys(&format!("{line}\r"));
    terminal.wait_for_text("say what to do");
    let within = flags(&terminal.modes());
    assert_ne!(before, within);
    terminal.type_keys("hello\r");
    terminal.wait_for_text("First answer.");
    // The status lines of an active run would push the answer off the screen with each stop.
    terminal.wait_for("the end of the run", |screen| !screen.contains("Esc interrupts"));
    terminal.type_keys("half a thought");
    terminal.wait_for_text("› half a thought");
    let pid = conversation_of(terminal.pid());
    for round in 1..=2 {
        match stop {
            Stop::Key => terminal.type_keys("\u{1a}"),
            Stop::Signal => kill_process(pid, Signal::TSTP).unwrap(),
            Stop::Kill => kill_process(pid, Signal::STOP).unwrap(),
        }
        terminal.wait_for("the shell", |screen| count(screen, "Stopped") == round);
        if stop != Stop::Kill {
            assert_eq!(flags(&terminal.modes()), before, "{stop:?}");
            let screen = terminal.wait_for_text("Stopped");
            assert!(!is_entered(&terminal.output()), "{screen}");
            assert!(!screen.contains("› half"), "the region is gone: {screen}");
        }
        terminal.type_keys(&format!("echo here is number $(({round} + 10))\r"));
        terminal.wait_for_text(&format!("here is number 1{round}"));
        let shown = terminal.output().matches("half a thought").count();
        terminal.type_keys("fg\r");
        wait_until("the region again", || terminal.output().matches("half a thought").count() > shown);
        wait_until("the modes again", || {
            flags(&terminal.modes()) == within && is_entered(&terminal.output())
        });
    }
    terminal.type_keys(" and more\r");
    let screen = terminal.wait_for("the second answer", |screen| {
        screen.contains("Second answer.") && !screen.contains("Esc interrupts")
    });
    assert_eq!(count(&screen, "› half a thought and more"), 1, "{screen}");
    assert!(screen.contains("First answer."), "{screen}");
    terminal.type_keys("/quit\r");
    terminal.wait_for("the shell", |screen| screen.trim_end().ends_with("shell>"));
    assert_eq!(flags(&terminal.modes()), before);
    terminal.type_keys("exit\r");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn a_job_of_a_shell_is_stopped_by_key_and_continued() {
    stop_and_continue(Stop::Key, "\"$@\"");
}

#[test]
fn a_job_of_a_shell_is_stopped_by_a_signal_and_continued() {
    stop_and_continue(Stop::Signal, "\"$@\"");
}

#[test]
fn a_job_of_a_shell_goes_on_after_a_stop_that_is_not_caught() {
    stop_and_continue(Stop::Kill, "\"$@\"");
}

/// The shell gets the terminal only if whatever has started the conversation is stopped, too.
#[test]
fn a_script_is_stopped_with_the_conversation_that_it_runs() {
    for stop in [Stop::Key, Stop::Signal] {
        stop_and_continue(stop, "sh -c '\"$@\"; true' sh \"$@\"");
    }
}

/// Nobody would continue it.
#[test]
fn without_a_shell_nothing_is_stopped() {
    let harness = Harness::new(Dialect::AnthropicMessages, ANSWERS);
    let mut terminal = begin(&harness, &[]);
    let within = flags(&terminal.modes());
    let pid = Pid::from_raw(terminal.pid().try_into().unwrap()).unwrap();
    terminal.type_keys("hel\u{1a}");
    terminal.wait_for_text("not stopped: there is no shell");
    kill_process(pid, Signal::TSTP).unwrap();
    terminal.type_keys("lo\r");
    terminal.wait_for_text("First answer.");
    // Continued by whoever has stopped it so.
    kill_process(pid, Signal::STOP).unwrap();
    terminal.type_keys("once more");
    kill_process(pid, Signal::CONT).unwrap();
    terminal.wait_for_text("› once more");
    terminal.type_keys("\r");
    terminal.wait_for_text("Second answer.");
    assert_eq!(flags(&terminal.modes()), within);
    let screen = leave(terminal);
    assert_eq!(count(&screen, "› once more"), 1, "{screen}");
}

/// An editor has the terminal, and stops with the conversation that waits for it.
#[test]
fn an_editor_of_the_user_is_stopped_with_the_conversation() {
    let harness = Harness::new(Dialect::AnthropicMessages, ANSWERS);
    let editor = harness.path("editor");
    let script = format!("echo $$ > {}\necho edits\nread -r line\n", harness.path("pid").display());
    fs::write(&editor, format!("#!/bin/sh\n{script}echo \"$line\" > \"$1\"\n")).unwrap();
    Command::new("chmod").arg("+x").arg(&editor).status().unwrap();
    let mut terminal = shell(&harness);
    let before = flags(&terminal.modes());
    terminal.type_keys(&format!("EDITOR={} \"$@\"\r", editor.display()));
    terminal.wait_for_text("say what to do");
    terminal.type_keys("\u{7}");
    terminal.wait_for_text("edits");
    assert_eq!(flags(&terminal.modes()), before);
    // The terminal sends the signal to the whole job.
    terminal.type_keys("\u{1a}");
    terminal.wait_for_text("Stopped");
    // The shell waits only for the conversation. On a busy machine, the editor could still take what is typed for the shell.
    let editor = harness.read("pid");
    wait_until("the editor to stop", || is_stopped(editor.trim()));
    terminal.type_keys("fg\r");
    terminal.wait_for_text("fg\n");
    terminal.type_keys("said in the editor\r");
    terminal.wait_for_text("› said in the editor");
    terminal.type_keys("\r");
    terminal.wait_for_text("First answer.");
    terminal.type_keys("/quit\r");
    terminal.wait_for("the shell", |screen| screen.trim_end().ends_with("shell>"));
    terminal.type_keys("exit\r");
    assert_eq!(terminal.finish().0, Some(0));
}

#[test]
fn a_terminal_that_is_gone_ends_the_conversation_in_order() {
    // A session leader receives SIGHUP; other processes only get an error when they read or write.
    for (is_leader, is_busy) in [(true, true), (true, false), (false, true), (false, false)] {
        let turns = "[[turn]]\ntext = \"Noted.\"\n".to_owned() + &sleeping() + "[[turn]]\ntext = \"Back.\"\n";
        let harness = Harness::new(Dialect::AnthropicMessages, &turns);
        let command = chat(&harness, &["--no-sandbox", "remember"]);
        let mut terminal =
            if is_leader { Terminal::start(&command) } else { Terminal::start_without_control(&command) };
        terminal.wait_for_text("Noted.");
        if is_busy {
            terminal.type_keys("work\r");
            wait_until("the command", || sleeps(&harness));
        }
        assert_eq!(terminal.hang_up(), Some(130), "leader {is_leader}, busy {is_busy}");
        assert!(!sleeps(&harness), "the command is still running");
        goes_on(&harness, "remember", if is_busy { "Back." } else { "I wait." });
    }
}

#[test]
fn signals_that_end_it_leave_the_session_in_the_store() {
    for (signal, is_busy) in
        [(Signal::HUP, true), (Signal::HUP, false), (Signal::TERM, true), (Signal::TERM, false)]
    {
        let turns = "[[turn]]\ntext = \"Noted.\"\n".to_owned() + &sleeping() + "[[turn]]\ntext = \"Back.\"\n";
        let harness = Harness::new(Dialect::AnthropicMessages, &turns);
        let mut terminal = begin(&harness, &["--no-sandbox"]);
        terminal.type_keys("remember\r");
        terminal.wait_for_text("Noted.");
        if is_busy {
            terminal.type_keys("work\r");
            wait_until("the command", || sleeps(&harness));
        }
        kill_process(Pid::from_raw(terminal.pid().try_into().unwrap()).unwrap(), signal).unwrap();
        let (code, screen, output) = terminal.finish();
        assert_eq!(code, Some(130), "{signal:?}: {screen}");
        assert!(!is_entered(&output) && !screen.contains("say what to do"), "{signal:?}: {screen}");
        assert!(!sleeps(&harness), "the command is still running");
        goes_on(&harness, "remember", if is_busy { "Back." } else { "I wait." });
    }
}

/// As a panic that aborts, or the kernel when memory is short.
#[test]
fn a_conversation_that_is_killed_is_in_the_store() {
    for signal in [Signal::ABORT, Signal::KILL] {
        let turns = "[[turn]]\ntext = \"Noted.\"\n".to_owned() + &sleeping() + "[[turn]]\ntext = \"Back.\"\n";
        let harness = Harness::new(Dialect::AnthropicMessages, &turns);
        let mut terminal = begin(&harness, &["--no-sandbox"]);
        terminal.type_keys("remember\r");
        terminal.wait_for_text("Noted.");
        terminal.type_keys("work\r");
        wait_until("the command", || sleeps(&harness));
        kill_process(Pid::from_raw(terminal.pid().try_into().unwrap()).unwrap(), signal).unwrap();
        let (code, screen, _) = terminal.finish();
        assert_eq!(code, None, "{screen}");
        wait_until("the end of the command", || !sleeps(&harness));
        goes_on(&harness, "remember", "Back.");
    }
}
