//! Real containers of a real engine. Where it is says the environment: `DOCKER_HOST` the engine, `PINTLE_TEST_IMAGE`
//! an image with nothing but busybox. `cargo xtask services up` has both.
#![expect(clippy::disallowed_methods, reason = "the tests ask for the service and look at it from outside")]

mod bad_input;
mod host;
mod losses;
mod same_results;

use std::{os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use super::*;
use crate::{
    contract,
    environment::ExecutionEnvironment,
    remote::tests::matrix::{alone, matrix},
};

/// The image to test with; without one the test is skipped, which must not happen in continuous integration.
fn image() -> Option<ContainerImage> {
    let (image, host) = (std::env::var("PINTLE_TEST_IMAGE"), std::env::var("DOCKER_HOST"));
    if let (Ok(image), Ok(_)) = (image, host) {
        return Some(ContainerImage::new(image).with_network("none"));
    }
    assert!(std::env::var("CI").is_err(), "PINTLE_TEST_IMAGE and DOCKER_HOST are not set");
    eprintln!("SKIPPED: PINTLE_TEST_IMAGE and DOCKER_HOST are not set, see `cargo xtask services up`");
    None
}

/// Runs a test in a container of its own, with the superuser or with somebody else.
async fn in_a_container(user: Option<&str>, test: impl AsyncFnOnce(&DockerEnvironment)) {
    let Some(image) = image() else {
        return;
    };
    let image = match user {
        Some(user) => image.with_user(user),
        None => image,
    };
    let environment = DockerEnvironment::start(image).working_directory("/tmp").build().unwrap();
    environment.initialize().await.unwrap();
    test(&environment).await;
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn keeps_the_contract_of_files() {
    for user in [None, Some("1000:1000")] {
        in_a_container(user, async |environment| {
            contract::files(environment, Path::new("/tmp/contract")).await.unwrap();
        })
        .await;
    }
}

#[tokio::test]
async fn keeps_the_contract_of_search() {
    in_a_container(None, async |environment| {
        contract::search(environment, Path::new("/tmp/contract")).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn keeps_the_contract_of_commands() {
    for user in [None, Some("1000:1000")] {
        in_a_container(user, async |environment| {
            contract::commands(environment, Path::new("/tmp/contract")).await.unwrap();
        })
        .await;
    }
}

#[test]
fn the_process_matrix() {
    alone("docker::tests::the_process_matrix", || process_matrix("root", "0:0"));
}

#[test]
fn the_process_matrix_as_another_user() {
    alone("docker::tests::the_process_matrix_as_another_user", || process_matrix("other", "1000:1000"));
}

/// The directory of the matrix is mounted where it is on the host, so that both see the same files.
async fn process_matrix(name: &str, user: &str) {
    let Some(image) = image() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let image = image.with_user(user).with_mount(Mount::new(directory.path(), directory.path()));
    let environment = DockerEnvironment::start(image).working_directory(directory.path()).build().unwrap();
    let environment = Arc::new(environment);
    environment.initialize().await.unwrap();
    matrix(name, Arc::clone(&environment) as Arc<dyn ExecutionEnvironment>, directory.path()).await;
    environment.cleanup().await.unwrap();
}
