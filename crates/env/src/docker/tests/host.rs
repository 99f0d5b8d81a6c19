//! A killed application leaves nothing behind.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use super::image;
use crate::{
    DockerEnvironment, ExecRequest, ExecutionEnvironment,
    remote::tests::{
        late_start,
        matrix::{this_test, until},
    },
};

/// Set in the second process, which plays the application: the container to use.
const APPLICATION_OF: &str = "PINTLE_TEST_APPLICATION_OF";

/// Command of the application, with three processes: one that honors the terminate signal and two
/// that ignore it.
const COMMAND: &str = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 4322 & wait; wait' &); sleep 4323 & echo begun; wait; wait";

fn docker(words: &[&str]) -> std::process::Output {
    Command::new("docker").args(words).output().unwrap()
}

/// Runs this test again as the application in its own process, waits until its command runs, and
/// kills it.
fn kill_application(test: &str, (name, value): (&str, &str)) -> String {
    let mut application = this_test(test).env(name, value).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(application.stdout.take().unwrap()).lines();
    let begun = lines.find_map(|line| line.unwrap().strip_prefix("begun in ").map(str::to_owned));
    application.kill().unwrap();
    application.wait().unwrap();
    begun.expect("the application prints its container")
}

/// Plays the application; never returns.
async fn run_application(environment: DockerEnvironment) {
    environment.initialize().await.unwrap();
    let container = environment.container().unwrap();
    let request = ExecRequest::new(COMMAND).with_timeout(Duration::from_secs(100));
    let request = request.with_on_output(std::sync::Arc::new(move |_| println!("begun in {container}")));
    environment.exec_command(request).await.unwrap();
}

#[tokio::test]
async fn commands_die_with_their_application() {
    let Some(image) = image() else {
        return;
    };
    if let Ok(container) = std::env::var(APPLICATION_OF) {
        return run_application(DockerEnvironment::attach(container).build().unwrap()).await;
    }
    let first = "while :; do sleep 1000 & wait $!; done";
    let started = docker(&["run", "--detach", "--rm", "--network", "none", &image.name, "sh", "-c", first]);
    let container = String::from_utf8(started.stdout).unwrap().trim().to_owned();
    kill_application(
        "docker::tests::host::commands_die_with_their_application",
        (APPLICATION_OF, &container),
    );
    let running = || String::from_utf8(docker(&["top", &container]).stdout).unwrap();
    until("commands are ended", || !running().contains("sleep 432") && running().lines().count() <= 3).await;
    docker(&["kill", &container]);
}

#[tokio::test]
async fn no_command_starts_after_its_application_died() {
    let Some(image) = image() else {
        return;
    };
    let container = match std::env::var(APPLICATION_OF) {
        Ok(container) => container,
        Err(_unset) => {
            let first = "while :; do sleep 1000 & wait $!; done";
            let words = ["run", "--detach", "--rm", "--network", "none", &image.name, "sh", "-c", first];
            String::from_utf8(docker(&words).stdout).unwrap().trim().to_owned()
        }
    };
    let test = "docker::tests::host::no_command_starts_after_its_application_died";
    let build = |client: &Path| DockerEnvironment::attach(&container).with_program(client).build().unwrap();
    late_start::leaves_nothing(test, Some((APPLICATION_OF, &container)), "docker", build).await;
    docker(&["kill", &container]);
}

/// In many containers the first process does not reap orphans.
#[tokio::test]
async fn no_zombie_is_left_to_the_first_process() {
    let Some(image) = image() else {
        return;
    };
    let words = ["run", "--detach", "--rm", "--network", "none", &image.name, "sleep", "4325"];
    let container = String::from_utf8(docker(&words).stdout).unwrap().trim().to_owned();
    let environment = DockerEnvironment::attach(&container).build().unwrap();
    environment.initialize().await.unwrap();
    for command in ["echo one", "exit 3", "sleep 0.1 | cat"] {
        environment.exec_command(ExecRequest::new(command)).await.unwrap();
    }
    environment.cleanup().await.unwrap();
    // The engine does not list zombies; the kernel does.
    let first =
        String::from_utf8(docker(&["inspect", "--format", "{{.State.Pid}}", &container]).stdout).unwrap();
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", first.trim())).unwrap();
    docker(&["kill", &container]);
    assert_eq!(children, "");
}

/// Creates a client that can start containers but runs nothing in them.
fn start_only_client(directory: &Path, name: &str) -> PathBuf {
    let client = directory.join(name);
    let script = "#!/bin/sh\n[ \"$1\" = exec ] || exec docker \"$@\"\nexec sleep 60\n";
    fs::write(&client, script).unwrap();
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).unwrap();
    client
}

#[tokio::test]
async fn a_container_dies_with_its_application_before_the_supervisor_starts() {
    const CLIENT: &str = "PINTLE_TEST_CLIENT";
    let Some(image) = image() else {
        return;
    };
    if let Some(client) = std::env::var_os(CLIENT) {
        let environment = DockerEnvironment::start(image).with_program(client).build().unwrap();
        let starting = environment.initialize();
        tokio::select! {
            result = starting => panic!("the supervisor started: {result:?}"),
            () = until("the container runs", || environment.container().is_some()) => {}
        }
        println!("begun in {}", environment.container().unwrap());
        std::future::pending::<()>().await;
    }
    let directory = tempfile::tempdir().unwrap();
    let client = start_only_client(directory.path(), "client");
    let test = "docker::tests::host::a_container_dies_with_its_application_before_the_supervisor_starts";
    let container = kill_application(test, (CLIENT, client.to_str().unwrap()));
    until("the container is gone", || !docker(&["inspect", &container]).status.success()).await;
}

#[tokio::test]
async fn dropping_the_environment_removes_the_container() {
    let Some(image) = image() else {
        return;
    };
    let environment = DockerEnvironment::start(image).build().unwrap();
    environment.initialize().await.unwrap();
    let container = environment.container().unwrap();
    drop(environment);
    until("the container is gone", || !docker(&["inspect", &container]).status.success()).await;
}

#[tokio::test]
async fn a_container_dies_with_its_application() {
    let Some(image) = image() else {
        return;
    };
    if std::env::var(APPLICATION_OF).is_ok() {
        return run_application(DockerEnvironment::start(image).build().unwrap()).await;
    }
    let test = "docker::tests::host::a_container_dies_with_its_application";
    let container = kill_application(test, (APPLICATION_OF, ""));
    until("the container is gone", || !docker(&["inspect", &container]).status.success()).await;
}
