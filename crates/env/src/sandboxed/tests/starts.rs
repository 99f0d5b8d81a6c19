//! The work at the start and at the end of a command.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use super::*;

#[tokio::test]
async fn the_trial_leaves_no_process_to_the_reaper() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    environment.initialize().await.unwrap();
    assert!(!environment.inner.has_reaper_thread());
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn a_command_without_jobs_ends_without_a_search() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    environment.initialize().await.unwrap();
    let started = Instant::now();
    // On a busy machine it takes some attempts until a namespace ends in time.
    loop {
        let launcher = environment.launcher(environment.rules.now()).await.unwrap();
        let mut process = environment.inner.spawn_by(Command::shell("true"), launcher).await.unwrap();
        process.wait().await.unwrap();
        assert_eq!(process.jobs().await.unwrap(), 0);
        if process.searches() == 0 {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "each command is followed by a search");
    }
    assert!(!environment.inner.has_reaper_thread());
    environment.cleanup().await.unwrap();
}

/// The first process of the namespace waits for them.
#[tokio::test]
async fn jobs_of_a_namespace_are_found_and_terminated() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    environment.initialize().await.unwrap();
    let line = "sleep 1000 >/dev/null 2>&1 & sleep 1000 >/dev/null 2>&1 & exit 3";
    let launcher = environment.launcher(environment.rules.now()).await.unwrap();
    let mut process = environment.inner.spawn_by(Command::shell(line), launcher).await.unwrap();
    assert_eq!(process.wait().await.unwrap().code(), 3);
    assert_eq!(process.jobs().await.unwrap(), 2);
    assert_eq!(process.terminate(Duration::ZERO).await.unwrap(), 2);
    assert_eq!(process.jobs().await.unwrap(), 0);
    environment.cleanup().await.unwrap();
}

#[test]
fn several_paths_are_added_as_single_ones() {
    let harness = Harness::new();
    let sandbox = || {
        let inner = harness.local();
        SandboxedEnvironment::new(inner).with_level(SandboxLevel::Full).with_temporary("/tmp/private")
    };
    let (hidden, protected) = (["/tmp/secret", "keys"], [".git/config", ".git/hooks"]);
    let together = sandbox().with_paths(hidden.map(PathBuf::from), protected.map(PathBuf::from));
    let single = hidden.iter().fold(sandbox(), SandboxedEnvironment::with_hidden);
    let single = protected.iter().fold(single, SandboxedEnvironment::with_protected);
    let parts = |sandbox: &SandboxedEnvironment| {
        let rules = &sandbox.rules;
        (rules.hidden.clone(), rules.protected.clone(), rules.shared.clone())
    };
    assert_eq!(parts(&together), parts(&single));
    assert_eq!(together.rules.hidden, [PathBuf::from("/tmp/secret"), harness.at("root/keys")]);
    assert_eq!(together.resolve(Path::new("/tmp/secret")), Path::new("/tmp/secret"));
}

#[test]
fn filters_are_compiled_once_for_their_rules() {
    let harness = Harness::new();
    let switch = WriteSwitch::new(true);
    let sandbox = SandboxedEnvironment::new(harness.local()).with_writable_while("below", &switch);
    let without_network = filter::filters(&sandbox.rules.now()).unwrap().clone();
    let first = filter::filters(&sandbox.rules).unwrap();
    assert_eq!(*first, without_network);
    switch.set(false);
    let rules = sandbox.rules.now();
    assert!(std::ptr::eq(first, filter::filters(&rules).unwrap()), "the copies for each command share them");
    for other in [
        sandbox.clone().with_network(true),
        sandbox.clone().with_unix_sockets(true),
        sandbox.clone().with_level(SandboxLevel::Full),
    ] {
        assert_ne!(*filter::filters(&other.rules).unwrap(), without_network);
    }
}
