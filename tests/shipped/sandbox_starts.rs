//! The sandboxes that a run starts, counted by a program in place of bubblewrap.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Output;

use pintle_testkit::Dialect;

use super::pty::Terminal;
use super::terminal::leave;
use super::user::User;

const ANSWER: &str = "[[turn]]\ntext = \"Done.\"\n";

/// Creates a directory with a program `bwrap` that records the purpose of each start, and starts the real one. With a file
/// `works`, only as many starts work as it contains, besides questions for the version.
fn install_counting_bubblewrap(user: &User) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let mut programs = std::env::split_paths(&path).map(|directory| directory.join("bwrap"));
    let real = programs.find(|program| program.is_file()).unwrap();
    let (directory, log) = (user.at("bin"), user.at("starts"));
    std::fs::create_dir(&directory).unwrap();
    let (real, log, works) = (real.display(), log.display(), user.at("works"));
    let works = works.display();
    let text = format!(
        "#!/bin/sh\nfor last; do :; done\ncase $last in\n:) echo trial >>'{log}' ;;\n--version) echo version >>'{log}' ;;\n\
         *) echo command >>'{log}' ;;\nesac\n\
         if [ \"$last\" != --version ] && [ -e '{works}' ]; then\n\
         read -r most <'{works}'; starts=0\n\
         while read -r kind; do [ $kind = version ] || starts=$((starts + 1)); done <'{log}'\n\
         if [ $starts -gt $most ]; then echo 'bwrap: no permission' >&2; exit 1; fi\nfi\n\
         exec '{real}' \"$@\"\n"
    );
    std::fs::write(directory.join("bwrap"), text).unwrap();
    std::fs::set_permissions(directory.join("bwrap"), std::fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

/// Runs `pintle` with this `bwrap`, and returns its output and the purposes of the starts.
fn run_counted(user: &User, directory: &std::path::Path) -> (Output, String) {
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap());
    let output = user.run_command("Go").env("PATH", &path).output().unwrap();
    let starts = std::fs::read_to_string(user.at("starts")).unwrap_or_default();
    let _ = std::fs::remove_file(user.at("starts"));
    (output, starts)
}

#[test]
fn a_known_machine_is_not_tried() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(&ANSWER.repeat(2));
    let directory = install_counting_bubblewrap(&user);
    let mut starts = Vec::new();
    for _ in ["an unknown machine", "a known one"] {
        let (output, of_run) = run_counted(&user, &directory);
        assert!(output.status.success(), "{output:?}");
        starts.push(of_run);
    }
    // The facts about the repository need one.
    let of_known: Vec<&str> = starts[1].lines().collect();
    assert_eq!(of_known, ["command"], "{starts:?}");
    // The probe of the machine tries a sandbox as well.
    let trials = starts[0].lines().filter(|start| *start == "trial").count();
    assert_eq!(trials, 2, "{starts:?}");
}

const COMMAND: &str =
    "[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = { command = \"echo x >>written\" }\n";

/// The first sandbox of a run is for the facts about the repository, before the first request.
#[test]
fn no_command_runs_on_a_known_machine_that_has_lost_its_sandbox() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    for works in [0, 2] {
        let user = User::new(ANSWER);
        let directory = install_counting_bubblewrap(&user);
        let (output, _) = run_counted(&user, &directory);
        assert!(output.status.success(), "{output:?}");
        let user = user.with_turns(&[COMMAND, COMMAND, COMMAND, ANSWER].concat());
        std::fs::write(user.at("works"), format!("{works}\n")).unwrap();
        let (output, starts) = run_counted(&user, &directory);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("the sandbox cannot be set up any more"), "{stderr}");
        assert!(starts.starts_with("command\n"), "it was known: {starts}");
        let written = std::fs::read_to_string(user.project().join("written")).unwrap_or_default();
        match works {
            0 => assert_eq!(user.model.requests().len(), 0, "no request is sent"),
            _ => assert_eq!(written, "x\n", "{starts}"),
        }
        assert!(written.lines().count() <= 1, "{starts}");
        // The next run probes the machine.
        let user = user.with_turns(ANSWER);
        std::fs::remove_file(user.at("works")).unwrap();
        let (_, starts) = run_counted(&user, &directory);
        assert!(starts.lines().any(|start| start == "version"), "{starts}");
    }
}

/// The mode of the conversation lets commands run without a question, as long as the sandbox holds them.
#[test]
fn a_conversation_that_has_lost_its_sandbox_asks() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(ANSWER);
    let directory = install_counting_bubblewrap(&user);
    assert!(run_counted(&user, &directory).0.status.success());
    let user = user.with_turns(&[COMMAND, COMMAND, ANSWER].concat());
    // For the facts about the repository.
    std::fs::write(user.at("works"), "1\n").unwrap();
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let mut command =
        user.command(&["chat", "--mode", "auto", "--provider", "anthropic", "--base-url", &url]);
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("XTERM_VERSION", "XTerm(390)");
    let mut terminal = Terminal::run(&command, 120, 60, |_| {});
    terminal.wait_for_text("say what to do");
    terminal.type_keys("go\r");
    terminal.wait_for("the question", |screen| screen.contains("y once"));
    assert!(!user.project().join("written").exists(), "the first command has not run");
    terminal.type_keys("n");
    terminal.wait_for("the end of the turn", |screen| {
        screen.contains("Done.") && !screen.contains("Esc interrupts")
    });
    leave(terminal);
    assert!(!user.project().join("written").exists());
}
