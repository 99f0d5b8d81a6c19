//! Sandboxes that are started before their command is known.

use std::time::{Duration, Instant};

use super::*;
use crate::{ExitStatus, WriteSwitch};

/// Returns a sandbox of the level full that is started ahead.
async fn ahead(harness: &Harness) -> Option<SandboxedEnvironment> {
    Some(harness.at_level(SandboxLevel::Full).await?.with_start_ahead(true))
}

/// Returns the process id of the sandbox that waits for the next command.
pub(super) async fn waiting(environment: &SandboxedEnvironment) -> Option<u32> {
    environment.next.as_ref().unwrap().waiting_id().await
}

/// Runs a command, after which a sandbox waits for the next one.
async fn run_first(environment: &SandboxedEnvironment, request: ExecRequest) -> u32 {
    assert!(environment.exec_command(request).await.unwrap().success());
    waiting(environment).await.unwrap()
}

/// Starts a command in the sandbox that waits, if that can be used.
async fn run_ahead(environment: &SandboxedEnvironment, command: &Command) -> Option<HeldProcess> {
    environment.run_ahead(command, &environment.rules.now()).await.unwrap()
}

/// Returns the output and the status of a command.
async fn output(process: &mut dyn Process) -> (String, ExitStatus) {
    let (mut reader, mut text) = (process.take_output().unwrap(), Vec::new());
    while let Some(chunk) = reader.next_chunk().await.unwrap() {
        text.extend(chunk.bytes);
    }
    let status = process.wait().await.unwrap();
    process.terminate(Duration::ZERO).await.unwrap();
    (String::from_utf8(text).unwrap(), status)
}

pub(super) fn is_running(id: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

/// Returns the children of a process.
fn children(id: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    children.split_whitespace().map(|id| id.parse().unwrap()).collect()
}

async fn wait_until_gone(id: u32) {
    let started = Instant::now();
    while is_running(id) {
        assert!(started.elapsed() < Duration::from_secs(10), "{id} still runs");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn the_next_command_runs_in_the_sandbox_that_waits() {
    let harness = Harness::new();
    let Some(environment) = ahead(&harness).await else { return };
    let request = |line: &str| ExecRequest::new(line).with_env("A", "it's $A");
    let id = run_first(&environment, request("true")).await;
    let line = "printf '%s|' \"$A\" \"$PWD\" $#; cat; set -- /proc/self/fd/*; echo $#; kill -TERM $$";
    let mut process = run_ahead(&environment, &Command::from(&request(line))).await.unwrap();
    assert_eq!(process.id(), Some(id));
    let (text, status) = output(&mut process).await;
    // A glob opens the directory with the fourth.
    assert!(text.starts_with(&format!("it's $A|{}|0|", harness.at("root").display())), "{text}");
    assert!(["3\n", "4\n"].iter().any(|count| text.ends_with(&format!("|{count}"))), "{text}");
    assert_eq!(status, ExitStatus::Signaled(15));
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn each_sandbox_runs_one_command() {
    let harness = Harness::new();
    let Some(environment) = ahead(&harness).await else { return };
    let mut waiting_id = run_first(&environment, ExecRequest::new("true")).await;
    let mut seen = BTreeSet::new();
    for _ in 0..3 {
        assert!(seen.insert(waiting_id), "{waiting_id}");
        // Each command has an empty directory, and the lowest process ids.
        let line = "ls -A /tmp; echo x >/tmp/left; test $$ -lt 10; echo $?";
        let mut process = environment.spawn(Command::shell(line)).await.unwrap();
        assert_eq!(process.id(), Some(waiting_id));
        assert_eq!(output(process.as_mut()).await, ("0\n".to_owned(), ExitStatus::Exited(0)));
        drop(process);
        waiting_id = waiting(&environment).await.unwrap();
    }
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn programs_that_cannot_start_in_a_waiting_sandbox_are_errors() {
    let harness = Harness::new();
    let Some(environment) = ahead(&harness).await else { return };
    run_first(&environment, ExecRequest::new("true")).await;
    let none: [&str; 0] = [];
    let error = environment.spawn(Command::argv("no-such-program", none)).await.unwrap_err();
    let EnvError::Spawn { program, source } = error else { panic!("{error:?}") };
    assert_eq!((program.as_str(), source.kind()), ("no-such-program", io::ErrorKind::NotFound));
    let error = environment.spawn(Command::argv("echo", ["a\0b"])).await.unwrap_err();
    assert!(matches!(error, EnvError::Spawn { .. }), "{error:?}");
    assert!(run(&environment, "true").await.success());
    environment.cleanup().await.unwrap();
}

/// A change of the files, by a process outside, while a sandbox waits.
struct Change {
    what: &'static str,
    make: fn(&Harness),
}

const CHANGES: [Change; 7] = [
    Change { what: "nothing", make: |_| {} },
    Change { what: "a protected file is replaced", make: |harness| replace(harness, "root/protected") },
    Change {
        what: "a protected file is created",
        make: |harness| {
            fs::remove_file(harness.at("root/missing")).unwrap();
            replace(harness, "root/missing");
        },
    },
    Change { what: "a hidden file is replaced", make: |harness| replace(harness, "outside/secret") },
    Change { what: "a hidden file is created", make: |harness| replace(harness, "outside/absent") },
    Change {
        what: "a directory above a protected file is replaced",
        make: |harness| {
            fs::rename(harness.at("root/above"), harness.at("above")).unwrap();
            fs::create_dir(harness.at("root/above")).unwrap();
            fs::rename(harness.at("above/file"), harness.at("root/above/file")).unwrap();
        },
    },
    Change {
        what: "a link leads to another hidden file",
        make: |harness| {
            fs::remove_file(harness.at("outside/link")).unwrap();
            std::os::unix::fs::symlink(harness.at("outside/key"), harness.at("outside/link")).unwrap();
        },
    },
];

/// Renames another file over one.
fn replace(harness: &Harness, path: &str) {
    fs::write(harness.at("new"), "secret").unwrap();
    fs::rename(harness.at("new"), harness.at(path)).unwrap();
}

#[tokio::test]
async fn a_sandbox_does_not_run_a_command_after_its_files_have_changed() {
    for Change { what, make } in CHANGES {
        let harness = Harness::new();
        fs::create_dir(harness.at("root/above")).unwrap();
        for file in ["root/protected", "root/above/file", "outside/key", "outside/other"] {
            fs::write(harness.at(file), "secret").unwrap();
        }
        std::os::unix::fs::symlink(harness.at("outside/other"), harness.at("outside/link")).unwrap();
        let Some(environment) = ahead(&harness).await else { return };
        let environment = environment.with_paths(
            ["../outside/secret", "../outside/absent", "../outside/link"].map(PathBuf::from),
            ["protected", "missing", "above/file"].map(PathBuf::from),
        );
        let id = run_first(&environment, ExecRequest::new("true")).await;
        make(&harness);
        let command = Command::shell("true");
        let process = run_ahead(&environment, &command).await;
        assert_eq!(process.is_some(), what == "nothing", "{what}");
        if let Some(mut process) = process {
            output(&mut process).await;
        }
        wait_until_gone(id).await;
        for line in [
            "echo x >>protected",
            "echo x >>missing",
            "echo x >>above/file",
            "grep secret ../outside/secret",
            "grep secret ../outside/absent",
            "grep secret ../outside/link",
        ] {
            assert!(!run(&environment, line).await.success(), "{what}: {line}");
        }
        environment.cleanup().await.unwrap();
    }
}

#[tokio::test]
async fn a_sandbox_does_not_run_a_command_under_other_rules() {
    let harness = Harness::new();
    let Some(environment) = ahead(&harness).await else { return };
    let switch = WriteSwitch::new(true);
    let environment = environment.with_writable_while(harness.at("outside"), &switch);
    run_first(&environment, ExecRequest::new("echo x >../outside/new")).await;
    switch.set(false);
    assert!(run_ahead(&environment, &Command::shell("true")).await.is_none());
    assert!(!run(&environment, "echo x >>../outside/new").await.success());
    waiting(&environment).await.unwrap();
    switch.set(true);
    assert!(run_ahead(&environment, &Command::shell("true")).await.is_none());
    // Other variables, an input, another directory, and a command that writes nothing.
    run_first(&environment, ExecRequest::new("true")).await;
    for command in [
        Command::shell("true").with_stdin(crate::Stdin::Piped),
        Command::shell("true").with_working_dir("/"),
        Command::shell("true").read_only(),
    ] {
        assert!(run_ahead(&environment, &command).await.is_none(), "{command:?}");
        assert!(waiting(&environment).await.is_some(), "{command:?}");
    }
    assert!(run_ahead(&environment, &Command::shell("true").with_env("A", "B")).await.is_none());
    environment.cleanup().await.unwrap();
}

/// Servers of tools and narrowed environments are clones with other settings.
#[tokio::test]
async fn an_environment_with_other_settings_does_not_get_the_sandbox() {
    let harness = Harness::new();
    let Some(environment) = ahead(&harness).await else { return };
    let id = run_first(&environment, ExecRequest::new("true")).await;
    let command = Command::shell("true");
    for other in [
        environment.clone().with_outside_commands(true),
        environment.clone().with_network(true),
        environment.clone().with_hidden(harness.at("outside/secret")),
        environment.clone().with_start_ahead(false),
    ] {
        assert!(other.run_ahead(&command, &other.rules.now()).await.unwrap().is_none(), "{other:?}");
    }
    assert_eq!(waiting(&environment).await, Some(id));
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn commands_do_not_reach_the_sandbox_that_waits() {
    let harness = Harness::new();
    let Some(environment) = ahead(&harness).await else { return };
    let id = run_first(&environment, ExecRequest::new("true")).await;
    let first_process = children(id);
    assert_eq!(first_process.len(), 1, "bubblewrap waits for the namespace");
    for target in first_process.into_iter().chain([id]) {
        for line in [
            "kill -CONT TARGET",
            "test -e /proc/TARGET/status && grep -q bwrap /proc/TARGET/cmdline",
            "echo true >/proc/TARGET/fd/0",
            "exec 3</proc/TARGET/fd/0",
            "cat /proc/TARGET/environ | grep -q PATH",
        ] {
            // Commands with an input do not take it.
            let request = ExecRequest::new(line.replace("TARGET", &target.to_string())).with_stdin("");
            let result = environment.exec_command(request).await.unwrap();
            assert!(!result.success(), "{line}: {:?}", result.output.to_text_lossy());
        }
    }
    let request = ExecRequest::new("kill -KILL -1; true").with_stdin("");
    let _ = environment.exec_command(request).await.unwrap();
    assert_eq!(waiting(&environment).await, Some(id));
    assert!(run(&environment, "true").await.success());
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn a_sandbox_that_was_killed_is_replaced() {
    let harness = Harness::new();
    let Some(environment) = ahead(&harness).await else { return };
    let id = run_first(&environment, ExecRequest::new("true")).await;
    for first_process in children(id) {
        let process = nix::unistd::Pid::from_raw(first_process.cast_signed());
        nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL).unwrap();
    }
    wait_until_gone(id).await;
    let result = run(&environment, "echo x").await;
    assert_eq!((result.exit_code, result.stdout.to_text_lossy().unwrap().as_str()), (0, "x\n"));
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn cleanup_ends_the_sandbox_that_waits() {
    let harness = Harness::new();
    let Some(environment) = ahead(&harness).await else { return };
    let id = run_first(&environment, ExecRequest::new("true")).await;
    environment.cleanup().await.unwrap();
    assert!(!is_running(id));
    // It is the last one.
    assert!(run(&environment, "true").await.success());
    assert_eq!(waiting(&environment).await, None);
    let dropped = environment.clone().with_start_ahead(true);
    let id = run_first(&dropped, ExecRequest::new("true")).await;
    drop(dropped);
    wait_until_gone(id).await;
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn kill_all_ends_the_sandbox_that_waits() {
    let harness = Harness::new();
    let Some(environment) = ahead(&harness).await else { return };
    let id = run_first(&environment, ExecRequest::new("true")).await;
    let processes = children(id);
    environment.kill_all();
    for id in processes.into_iter().chain([id]) {
        wait_until_gone(id).await;
    }
}

#[tokio::test]
async fn a_sandbox_waits_for_two_minutes() {
    let harness = Harness::new();
    let Some(environment) = ahead(&harness).await else { return };
    let id = run_first(&environment, ExecRequest::new("true")).await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    assert!(is_running(id));
    tokio::time::advance(Duration::from_secs(121)).await;
    tokio::time::resume();
    wait_until_gone(id).await;
    environment.cleanup().await.unwrap();
}
