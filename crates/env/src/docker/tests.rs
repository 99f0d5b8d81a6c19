//! Tests with real containers. `DOCKER_HOST` selects the engine and `PINTLE_TEST_IMAGE` an image
//! with nothing but busybox; `cargo xtask services up` provides both.
#![expect(clippy::disallowed_methods, reason = "the tests query the service and inspect it from outside")]

mod bad_input;
mod host;
mod losses;
mod same_results;

use std::{os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use pintle_test_conditions::cases;

use super::*;
use crate::{
    command::ExecRequest,
    contract,
    environment::ExecutionEnvironment,
    remote::tests::{
        matrix::{in_own_process, matrix, this_test},
        volume,
    },
};

/// Returns the test image, or `None` without a container engine.
fn image() -> Option<ContainerImage> {
    let image = || ContainerImage::new(std::env::var("PINTLE_TEST_IMAGE").unwrap()).with_network("none");
    pintle_test_conditions::CONTAINERS.is_present().then(image)
}

/// Runs a test in a new container, as the superuser or as `user`.
async fn in_a_container(user: Option<&str>, test: impl AsyncFnOnce(&DockerEnvironment)) {
    let Some(image) = image() else {
        return;
    };
    let image = match user {
        Some(user) => image.with_user(user),
        None => image,
    };
    let environment = DockerEnvironment::start(image).with_working_directory("/tmp").build().unwrap();
    environment.initialize().await.unwrap();
    test(&environment).await;
    environment.cleanup().await.unwrap();
}

/// Users that the contract tests run as: by default only an ordinary one, with `--full` also root.
fn users() -> &'static [Option<&'static str>] {
    cases(&[Some("1000:1000")], &[None, Some("1000:1000")])
}

#[tokio::test]
async fn keeps_the_contract_of_files() {
    for user in users() {
        in_a_container(*user, async |environment| {
            contract::files(environment, Path::new("/tmp/contract")).await.unwrap();
        })
        .await;
    }
}

/// By default, the contract in a local shell and over ssh covers searches, and a run of the command in a container makes some.
#[tokio::test]
async fn keeps_the_contract_of_search() {
    if !pintle_test_conditions::is_full() {
        return;
    }
    in_a_container(None, async |environment| {
        contract::search(environment, Path::new("/tmp/contract")).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn keeps_the_contract_of_commands() {
    for user in users() {
        in_a_container(*user, async |environment| {
            contract::commands(environment, Path::new("/tmp/contract")).await.unwrap();
        })
        .await;
    }
}

/// Uses a `podman` that forwards to `docker`, in a `PATH` without `docker`.
#[test]
fn podman_is_used_without_docker() {
    const NAME: &str = "docker::tests::podman_is_used_without_docker";
    const DIRECTORY: &str = "PINTLE_TEST_PODMAN";
    let Some(image) = image() else {
        return;
    };
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let environment = DockerEnvironment::start(image).with_working_directory("/tmp").build().unwrap();
            environment.initialize().await.unwrap();
            let result = environment.exec_command(ExecRequest::new("echo out; exit 3")).await.unwrap();
            assert_eq!((result.exit_code, result.stdout.to_text_lossy().unwrap().as_str()), (3, "out\n"));
            environment.cleanup().await.unwrap();
        });
        let log = std::fs::read_to_string(Path::new(&directory).join("log")).unwrap();
        assert!(log.starts_with("--version\nrun\nexec\n") && log.ends_with("container\n"), "{log}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let docker = find_in_path("docker");
    let script =
        format!("#!/bin/sh\necho \"$1\" >>'{0}/log'\nexec '{docker}' \"$@\"\n", directory.path().display());
    let podman = directory.path().join("podman");
    std::fs::write(&podman, script).unwrap();
    std::fs::set_permissions(&podman, std::fs::Permissions::from_mode(0o755)).unwrap();
    let status =
        this_test(NAME).env(DIRECTORY, directory.path()).env("PATH", directory.path()).status().unwrap();
    assert!(status.success(), "{status}");
}

fn find_in_path(program: &str) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file());
    found.unwrap().into_os_string().into_string().unwrap()
}

#[tokio::test]
async fn floods_block_nothing() {
    in_a_container(None, async |environment| volume::floods_block_nothing(environment).await).await;
}

#[test]
fn a_flood_uses_bounded_memory() {
    in_own_process("docker::tests::a_flood_uses_bounded_memory", async || {
        let Some(image) = image() else {
            return;
        };
        let builder = DockerEnvironment::start(image).with_working_directory("/tmp");
        let environment = builder.with_output_limits(volume::limits()).build().unwrap();
        environment.initialize().await.unwrap();
        // An engine forwards some 50 MB per second: a gibibyte would take too long for a test.
        volume::check_flood(&environment, 256 << 20).await;
        environment.cleanup().await.unwrap();
    });
}

/// By default, the contract of commands and the matrix over ssh cover this.
#[test]
fn the_process_matrix() {
    in_own_process("docker::tests::the_process_matrix", async || {
        for (name, user) in cases(&[][..], &[("root", "0:0"), ("other", "1000:1000")]) {
            process_matrix(name, user).await;
        }
    });
}

/// The directory of the matrix is mounted at its local path, so that both sides see the same files.
async fn process_matrix(name: &str, user: &str) {
    let Some(image) = image() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let image = image.with_user(user).with_mount(Mount::new(directory.path(), directory.path()));
    let environment =
        DockerEnvironment::start(image).with_working_directory(directory.path()).build().unwrap();
    let environment = Arc::new(environment);
    environment.initialize().await.unwrap();
    matrix(name, Arc::clone(&environment) as Arc<dyn ExecutionEnvironment>, directory.path()).await;
    environment.cleanup().await.unwrap();
}
