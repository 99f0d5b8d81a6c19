//! Containers that disappear or cannot be started.

use std::time::{Duration, Instant};

use super::{image, in_a_container};
use crate::{
    ContainerImage, DockerEnvironment, EnvError, ExecRequest, ExecutionEnvironment,
    remote::tests::matrix::{LONG, until},
};

/// Time limit for detecting a lost container: 20 seconds of silence, checked every 3, plus a
/// margin.
const DETECTION_LIMIT: Duration = Duration::from_secs(30);

/// Runs the engine's client directly.
fn docker(words: &[&str]) -> String {
    let output = std::process::Command::new("docker").args(words).output().unwrap();
    assert!(output.status.success(), "{words:?} {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Runs a long command, harms the container meanwhile, and returns the error.
async fn error_after(environment: &DockerEnvironment, harm: &[&str]) -> EnvError {
    let request = ExecRequest::new("echo begun; sleep 4321").with_timeout(LONG);
    let container = environment.container().unwrap();
    let (harmed, harm) =
        (std::sync::Mutex::new(None), harm.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let harmed = std::sync::Arc::new(harmed);
    let at = std::sync::Arc::clone(&harmed);
    let request = request.with_on_output(std::sync::Arc::new(move |_| {
        let words: Vec<_> = harm.iter().map(String::as_str).chain([container.as_str()]).collect();
        docker(&words);
        *at.lock().unwrap() = Some(Instant::now());
    }));
    let error = environment.exec_command(request).await.unwrap_err();
    let harmed = harmed.lock().unwrap().expect("the command has started");
    assert!(harmed.elapsed() < DETECTION_LIMIT, "detected after {:?}", harmed.elapsed());
    error
}

#[tokio::test]
async fn a_killed_container_is_lost() {
    in_a_container(None, async |environment| {
        let error = error_after(environment, &["kill"]).await;
        assert!(matches!(&error, EnvError::EnvironmentLost { environment, .. } if environment.starts_with("docker:")), "{error:?}");
    })
    .await;
}

/// A replacement would be empty, without the user knowing.
#[tokio::test]
async fn a_lost_container_is_not_replaced() {
    for harm in ["pause", "kill"] {
        in_a_container(None, async |environment| {
            let container = environment.container().unwrap();
            let error = error_after(environment, &[harm]).await;
            assert!(matches!(error, EnvError::EnvironmentLost { .. }), "{harm}: {error:?}");
            let error = environment.exec_command(ExecRequest::new("true")).await.unwrap_err();
            assert!(matches!(error, EnvError::Unreachable { .. }), "{harm}: {error:?}");
            assert_eq!(environment.container().as_ref(), Some(&container), "{harm}");
            // After a cleanup the container is removed, and a new one may be started.
            environment.cleanup().await.unwrap();
            let looked = std::process::Command::new("docker").args(["inspect", &container]).output().unwrap();
            assert!(!looked.status.success(), "{harm}: the container still exists");
            assert!(environment.exec_command(ExecRequest::new("true")).await.unwrap().success());
            assert_ne!(environment.container().unwrap(), container);
        })
        .await;
    }
}

#[tokio::test]
async fn a_paused_container_is_lost_and_can_be_reused() {
    let Some(image) = image() else {
        return;
    };
    let container = docker(&[
        "run",
        "--detach",
        "--rm",
        "--network",
        "none",
        &image.name,
        "sh",
        "-c",
        "while :; do sleep 1000 & wait $!; done",
    ]);
    let environment = DockerEnvironment::attach(container.as_str()).build().unwrap();
    environment.initialize().await.unwrap();
    let error = error_after(&environment, &["pause"]).await;
    assert!(matches!(error, EnvError::EnvironmentLost { .. }), "{error:?}");
    let started = Instant::now();
    let error = environment.exec_command(ExecRequest::new("true")).await.unwrap_err();
    assert!(matches!(error, EnvError::Unreachable { .. }), "{error:?}");
    assert!(started.elapsed() < DETECTION_LIMIT);
    docker(&["unpause", &container]);
    assert!(environment.exec_command(ExecRequest::new("true")).await.unwrap().success());
    // The supervisor that lost its application terminates what ran when the container was paused.
    until("the command is ended", || !docker(&["top", &container]).contains("sleep 4321")).await;
    environment.cleanup().await.unwrap();
    // A container that was attached to keeps running.
    assert_eq!(docker(&["inspect", "--format", "{{.State.Running}}", &container]), "true");
    docker(&["kill", &container]);
}

#[tokio::test]
async fn unreachable_containers_report_a_cause() {
    let Some(image) = image() else {
        return;
    };
    for environment in [
        DockerEnvironment::attach("pintle-no-such-container"),
        DockerEnvironment::start(ContainerImage::new("pintle/no-such-image:0")),
        DockerEnvironment::start(image.with_network("no-such-network")),
        DockerEnvironment::attach("any").with_program("pintle-no-such-program"),
    ] {
        let environment = environment.build().unwrap();
        let started = Instant::now();
        let error = environment.initialize().await.unwrap_err();
        assert!(matches!(error, EnvError::Unreachable { .. }), "{error:?}");
        assert!(std::error::Error::source(&error).is_some());
        assert!(started.elapsed() < LONG);
    }
    for name in ["", "-it"] {
        let error = DockerEnvironment::attach(name).build().unwrap_err();
        assert!(matches!(error, EnvError::Unreachable { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_missing_working_directory_is_an_error() {
    let Some(image) = image() else {
        return;
    };
    let environment = DockerEnvironment::start(image).with_working_directory("/no/such").build().unwrap();
    let error = environment.initialize().await.unwrap_err();
    assert!(matches!(error, EnvError::NotFound { .. }), "{error:?}");
    let container = environment.container().unwrap();
    environment.cleanup().await.unwrap();
    assert_eq!(environment.container(), None);
    let gone = std::process::Command::new("docker").args(["inspect", &container]).output().unwrap();
    assert!(!gone.status.success());
}
