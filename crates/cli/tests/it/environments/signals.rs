//! However `pintle` exits, no remote process survives.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use pintle_test_conditions::is_full;

use super::remote::{Remote, mark, running, wait_until};

/// Starts a run and waits until its command runs, with a child in another process group. Both ignore SIGTERM.
fn start(remote: &Remote, mark: &str) -> Child {
    let child = format!("trap '' TERM; while :; do sleep 1; done # {mark} child");
    let turns = format!(
        "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = {{ command = '''(setsid sh -c \"{child}\" &)\n\
         {child}''', timeout_ms = 600000 }}\n"
    );
    let mut command = remote.run(&turns, &["--toolset", "spec", "Sleep"]);
    let pintle = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the command starts", || {
        running(mark).iter().any(|line| line.starts_with("sh -c trap '' TERM"))
    });
    pintle
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// After one signal, the command waits until everything it started has exited.
fn shuts_down_gracefully(remote: Option<Remote>, name: &str) {
    let Some(remote) = remote else { return };
    let mark = mark();
    let child = start(&remote, &mark);
    signal(&child, name);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(running(&mark), [""; 0], "the command exits before pintle");
    remote.assert_clean();
}

/// Waits until the remote supervisor has cleaned up.
fn wait_for_cleanup(remote: &Remote, mark: &str) {
    wait_until("the command exits", || running(mark).is_empty());
    wait_until("supervisor and clients exit", || remote.leftovers().is_empty());
}

fn exits_at_a_second_signal(remote: Option<Remote>) {
    let Some(remote) = remote else { return };
    let mark = mark();
    let mut child = start(&remote, &mark);
    signal(&child, "INT");
    // The notice shows that the first signal was handled.
    let mut seen = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    while !seen.contains("interrupt again") {
        assert!(errors.read_line(&mut seen).unwrap() > 0, "{seen}");
    }
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_for_cleanup(&remote, &mark);
}

fn exits_at_sigkill(remote: Option<Remote>) {
    let Some(remote) = remote else { return };
    let mark = mark();
    let mut child = start(&remote, &mark);
    signal(&child, "KILL");
    assert_eq!(child.wait().unwrap().code(), None);
    wait_for_cleanup(&remote, &mark);
}

/// By default, the tests of other signals and of ssh cover this.
#[test]
fn docker_after_sigint() {
    if !is_full() {
        return;
    }
    shuts_down_gracefully(Remote::docker(), "INT");
}

#[test]
fn docker_after_sigterm() {
    shuts_down_gracefully(Remote::docker(), "TERM");
}

/// By default, the test over ssh covers this.
#[test]
fn docker_after_a_second_signal() {
    if !is_full() {
        return;
    }
    exits_at_a_second_signal(Remote::docker());
}

#[test]
fn docker_after_sigkill() {
    exits_at_sigkill(Remote::docker());
}

#[test]
fn ssh_after_sigint() {
    shuts_down_gracefully(Remote::ssh(), "INT");
}

#[test]
fn ssh_after_sigterm() {
    shuts_down_gracefully(Remote::ssh(), "TERM");
}

#[test]
fn ssh_after_a_second_signal() {
    exits_at_a_second_signal(Remote::ssh());
}

#[test]
fn ssh_after_sigkill() {
    exits_at_sigkill(Remote::ssh());
}

/// Ctrl-C ends the wait for a host that accepts the connection and stays silent.
#[test]
fn interrupt_cancels_connecting() {
    let Some(mut remote) = Remote::ssh() else { return };
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config");
    fs::write(&config, format!("Host tester\n HostName 127.0.0.1\n Port {port}\n")).unwrap();
    remote.use_configuration(&config);
    let child = remote.pintle(&["prompt"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let _guest = silent.accept().unwrap();
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    wait_until("the client exits", || remote.leftovers().is_empty());
}
