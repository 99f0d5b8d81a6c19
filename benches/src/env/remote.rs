//! Commands over ssh and in a container compared with the plain clients.
//!
//! Configured by the variables that `cargo xtask services up` prints; without them the rows are
//! skipped.
#![expect(clippy::disallowed_methods, reason = "the plain clients must be started")]

use std::{
    env,
    path::Path,
    process::{Command, Output, Stdio},
    sync::Arc,
};

use pintle_env::{ContainerImage, DockerEnvironment, ExecRequest, ExecutionEnvironment, SshEnvironment};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::measure::{Comparison, Row};

const AIM: f64 = 1.5;

/// The host with the highest session limit in the services' configuration.
const HOST: &str = "root";

const SSH: &str = "exec of true over ssh";
const DOCKER: &str = "exec of true in a container";

pub(super) fn rows(runtime: &Runtime, wanted: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    if SSH.contains(wanted) {
        match env::var("PINTLE_TEST_SSH") {
            Ok(config) => rows.push(ssh(runtime, Path::new(&config))),
            Err(_) => println!("SKIPPED: {SSH}, PINTLE_TEST_SSH is not set, see `cargo xtask services up`"),
        }
    }
    if DOCKER.contains(wanted) {
        match (env::var("DOCKER_HOST"), env::var("PINTLE_TEST_IMAGE")) {
            (Ok(_), Ok(image)) => rows.push(docker(runtime, &image)),
            _ => println!(
                "SKIPPED: {DOCKER}, DOCKER_HOST and PINTLE_TEST_IMAGE are not set, see `cargo xtask services up`"
            ),
        }
    }
    rows
}

/// Both sides use a control master that was started before.
fn ssh(runtime: &Runtime, config: &Path) -> Row {
    let sockets = TempDir::new().expect("there is room for a socket");
    let client = || {
        let mut client = Command::new("ssh");
        client.arg("-F").arg(config).arg("-S").arg(sockets.path().join("master"));
        client
    };
    run(client().args(["-o", "ControlPersist=yes", "-M", "-N", "-f", HOST]));
    let environment = SshEnvironment::builder(HOST)
        .with_config_file(config)
        .with_working_directory("/tmp")
        .build()
        .expect("it is absolute");
    let row =
        measure(runtime, SSH, "ssh -S MASTER HOST true", environment, || run(client().args([HOST, "true"])));
    run(client().args(["-O", "exit", HOST]));
    row
}

fn docker(runtime: &Runtime, image: &str) -> Row {
    let image = ContainerImage::new(image).with_network("none");
    let environment =
        DockerEnvironment::start(image).with_working_directory("/tmp").build().expect("it is absolute");
    runtime.block_on(environment.initialize()).expect("the container starts");
    let container = environment.container().expect("it has started");
    measure(runtime, DOCKER, "docker exec CONTAINER sh -c true", environment, || {
        run(Command::new("docker").args(["exec", &container, "/bin/sh", "-c", "true"]))
    })
}

fn measure(
    runtime: &Runtime,
    what: &'static str,
    baseline: &'static str,
    environment: impl ExecutionEnvironment + 'static,
    plain: impl Fn() -> Output,
) -> Row {
    let environment = Arc::new(environment);
    runtime.block_on(environment.initialize()).expect("the environment is available");
    let row = Comparison::new(what, baseline, AIM).measure(plain, || {
        let environment = Arc::clone(&environment);
        let running = async move { environment.exec_command(ExecRequest::new("true")).await };
        assert!(super::on_a_worker(runtime, running).expect("true runs").success());
    });
    runtime.block_on(environment.cleanup()).expect("nothing is left");
    row
}

/// Waits until all holders of standard output have closed it. Standard error is not captured: a
/// background master keeps it open.
fn run(command: &mut Command) -> Output {
    let output =
        command.stdin(Stdio::null()).stderr(Stdio::null()).output().expect("the client is installed");
    assert!(output.status.success(), "the plain client fails: {command:?}");
    output
}
