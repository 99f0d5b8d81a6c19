use std::io::ErrorKind;
use std::path::PathBuf;

use super::*;

#[test]
fn environment_errors_name_the_target() {
    let process_env = ProcessEnv::from_variables([]);
    let failure_for = |text: &str, directory: Option<&str>, error: EnvError| {
        let failure = EnvTarget {
            choice: EnvironmentChoice {
                spec: text.parse().unwrap(),
                directory: directory.map(PathBuf::from),
            },
            confinement: Confinement::none(),
            requirements: SandboxRequirements::default(),
            denials: &[],
            hidden: &[],
            hosts: None,
            has_rules: false,
            process_env: &process_env,
        }
        .failure(&error);
        (failure.kind(), failure.message().to_owned())
    };
    let not_found = || EnvError::NotFound { path: "/x".into(), source: ErrorKind::NotFound.into() };
    let unreachable = |source: &str| EnvError::Unreachable {
        environment: "docker:box".to_owned(),
        source: Some(source.to_owned().into()),
    };
    assert_eq!(
        failure_for("docker:box", Some("x"), not_found()),
        (
            FailureKind::Usage,
            "directory x: does not exist on docker:box; expected an existing directory".to_owned()
        )
    );
    assert_eq!(
        failure_for("ssh:me@host:22", Some("/x"), EnvError::NotADirectory { path: "/x".into() }),
        (
            FailureKind::Usage,
            "directory /x: is not a directory on ssh:me@host:22; expected an existing directory".to_owned()
        )
    );
    assert_eq!(
        failure_for("ssh:host", None, EnvError::NotADirectory { path: "/srv/me".into() }),
        (FailureKind::Other, "cannot use ssh:host: /srv/me is not a directory".to_owned())
    );
    assert_eq!(
        failure_for("docker:box", None, unreachable("No such container: box")),
        (FailureKind::Other, "cannot reach docker:box: No such container: box".to_owned())
    );
}

#[test]
fn local_directory_is_checked_up_front() {
    let process_env = ProcessEnv::from_variables([]);
    let mut choice = EnvironmentChoice { spec: EnvSpec::Local, directory: Some("/no/such/place".into()) };
    let confinement = Confinement::none();
    assert!(
        EnvTarget::new(choice.clone(), confinement, &process_env)
            .unwrap_err()
            .message()
            .contains("does not exist")
    );
    choice.spec = EnvSpec::Docker("box".to_owned());
    assert!(
        EnvTarget::new(choice.clone(), confinement, &process_env).is_ok(),
        "only the container knows whether it exists"
    );
    choice.spec = EnvSpec::Image("debian:12".to_owned());
    let refused = EnvTarget::new(choice, confinement, &process_env).unwrap_err();
    assert!(refused.message().contains("only tasks start containers from an image"), "{refused:?}");
}

#[test]
fn a_workspace_in_a_hidden_path_is_refused() {
    let process_env = ProcessEnv::from_variables([]);
    let choice = EnvironmentChoice { spec: "docker:box".parse().unwrap(), directory: None };
    let hidden = [PathBuf::from("keys"), PathBuf::from("/srv/other")];
    let target = EnvTarget::new(choice, Confinement::none(), &process_env).unwrap().with_hidden(&hidden);
    let expected = [PathBuf::from("/w/keys"), PathBuf::from("/srv/other")];
    assert_eq!(target.hidden_paths(Path::new("/w")).unwrap(), expected);
    let failure = target.hidden_paths(Path::new("/srv/other/w")).unwrap_err();
    assert_eq!(failure.message(), "cannot work in /srv/other/w: /srv/other is hidden");
}

/// The watch and checkpoints share a walk while nothing changes.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn local_sessions_keep_the_latest_walk_of_their_workspace() {
    // In memory, where changes are reported on any machine. Without files, the walk is kept for any time.
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let root = directory.path().canonicalize().unwrap();
    let process_env = ProcessEnv::from_variables([]);
    let choice = EnvironmentChoice { spec: EnvSpec::Local, directory: Some(root) };
    let target = EnvTarget::new(choice, Confinement::none(), &process_env).unwrap();
    let connected = target.connect().await.unwrap();
    let request = pintle_env::WalkRequest::new("");
    let first = connected.environment().walk(&request).await.unwrap();
    assert_eq!(connected.environment().walk(&request).await.unwrap(), first);
    assert_ne!(connected.environment().walk(&request.with_fresh(true)).await.unwrap(), first);
    connected.close().await.unwrap();
}
