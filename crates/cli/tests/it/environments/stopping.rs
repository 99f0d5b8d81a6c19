//! However `pintle` ends, nothing runs on at the other place.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use super::far::{Far, mark, running, until};

/// Starts a run and waits until its command runs, with a child that has left the group; neither goes when it is asked
/// to.
fn started(far: &Far, mark: &str) -> Child {
    let child = format!("trap '' TERM; while :; do sleep 1; done # {mark} child");
    let turns = format!(
        "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = {{ command = '''(setsid sh -c \"{child}\" &)\n\
         {child}''', timeout_ms = 600000 }}\n"
    );
    let mut command = far.run(&turns, &["--toolset", "spec", "Sleep"]);
    let pintle = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("the commands run", || running(mark).iter().any(|line| line.starts_with("sh -c trap '' TERM")));
    pintle
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// One signal, and the command waits until what it started is gone.
fn ends_in_order(far: Option<Far>, name: &str) {
    let Some(far) = far else { return };
    let mark = mark();
    let child = started(&far, &mark);
    signal(&child, name);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(running(&mark), [""; 0], "it is gone before pintle is");
    far.is_left_in_order();
}

/// The supervisor there does the rest.
fn is_left_to_the_other_side(far: &Far, mark: &str) {
    until("nothing of the command runs", || running(mark).is_empty());
    until("supervisor and clients are gone", || far.left().is_empty());
}

fn ends_at_a_second_signal(far: Option<Far>) {
    let Some(far) = far else { return };
    let mark = mark();
    let mut child = started(&far, &mark);
    signal(&child, "INT");
    // The first one has been seen when it is told.
    let mut seen = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    while !seen.contains("once more") {
        assert!(errors.read_line(&mut seen).unwrap() > 0, "{seen}");
    }
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    is_left_to_the_other_side(&far, &mark);
}

fn ends_at_a_kill(far: Option<Far>) {
    let Some(far) = far else { return };
    let mark = mark();
    let mut child = started(&far, &mark);
    signal(&child, "KILL");
    assert_eq!(child.wait().unwrap().code(), None);
    is_left_to_the_other_side(&far, &mark);
}

#[test]
fn docker_after_an_interrupt() {
    ends_in_order(Far::docker(), "INT");
}

#[test]
fn docker_after_a_terminate_signal() {
    ends_in_order(Far::docker(), "TERM");
}

#[test]
fn docker_after_a_second_signal() {
    ends_at_a_second_signal(Far::docker());
}

#[test]
fn docker_after_a_kill() {
    ends_at_a_kill(Far::docker());
}

#[test]
fn ssh_after_an_interrupt() {
    ends_in_order(Far::ssh(), "INT");
}

#[test]
fn ssh_after_a_terminate_signal() {
    ends_in_order(Far::ssh(), "TERM");
}

#[test]
fn ssh_after_a_second_signal() {
    ends_at_a_second_signal(Far::ssh());
}

#[test]
fn ssh_after_a_kill() {
    ends_at_a_kill(Far::ssh());
}

/// A host that takes the connection and says nothing is waited for, and Ctrl-C ends the wait.
#[test]
fn an_interrupt_ends_the_way_there() {
    let Some(mut far) = Far::ssh() else { return };
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    fs::write(&config, format!("Host tester\n HostName 127.0.0.1\n Port {port}\n")).unwrap();
    far.client_reads(&config);
    let child = far.pintle(&["prompt"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let _guest = silent.accept().unwrap();
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    until("the client is gone", || far.left().is_empty());
}
