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

/// Installs a bubblewrap that fails from its start with this number on, beside the version. Returns its directory.
fn install_failing(harness: &Harness, works: usize) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = std::env::var_os("PATH").unwrap();
    let mut programs = std::env::split_paths(&path).map(|directory| directory.join("bwrap"));
    let real = programs.find(|program| program.is_file()).unwrap();
    let (directory, log) = (harness.at("outside/bin"), harness.at("outside/starts"));
    fs::create_dir(&directory).unwrap();
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exec '{0}' --version\necho start >>'{1}'\n\
         starts=0; while read -r _; do starts=$((starts + 1)); done <'{1}'\n\
         [ $starts -gt {works} ] && {{ echo 'bwrap: no permission' >&2; exit 1; }}\nexec '{0}' \"$@\"\n",
        real.display(),
        log.display()
    );
    fs::write(directory.join("new"), text).unwrap();
    fs::set_permissions(directory.join("new"), fs::Permissions::from_mode(0o755)).unwrap();
    // Written by another process: a process that this one starts meanwhile cannot hold it open for writing.
    let copy = [directory.join("new"), directory.join("bwrap")];
    assert!(std::process::Command::new("cp").arg("-p").args(copy).status().unwrap().success());
    directory
}

fn starts(harness: &Harness) -> usize {
    fs::read_to_string(harness.at("outside/starts")).unwrap_or_default().lines().count()
}

/// Returns a sandbox with the result of an earlier probe, on a machine whose bubblewrap has stopped to work after some starts.
async fn recalled(harness: &Harness, works: usize) -> SandboxedEnvironment {
    let path = std::env::join_paths(
        std::iter::once(install_failing(harness, works + 1))
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let local =
        LocalEnvironment::builder(harness.at("root")).with_variable("PATH", path.unwrap()).build().unwrap();
    // The probe is the first start.
    let record = SandboxSupport::probe(&local).await.unwrap().record().await.unwrap().unwrap();
    let support = SandboxSupport::recall(&local, &record).await.unwrap().unwrap();
    assert_eq!(starts(harness), 1);
    SandboxedEnvironment::new(local)
        .with_level(SandboxLevel::Full)
        .with_support(support)
        .with_writable(harness.at("root"))
        .with_outside_commands(true)
}

#[tokio::test]
async fn a_known_machine_is_not_tried() {
    if !has_level(SandboxLevel::Full) {
        return;
    }
    let harness = Harness::new();
    let environment = recalled(&harness, 1).await;
    environment.initialize().await.unwrap();
    assert_eq!(starts(&harness), 1);
    assert!(run(&environment, "true").await.success());
    assert_eq!(starts(&harness), 2);
    assert_eq!(environment.failure(), None);
    environment.cleanup().await.unwrap();
}

/// The record of an earlier probe may be outdated or forged, and a setting of the kernel may change while a session runs.
#[tokio::test]
async fn no_command_starts_on_a_machine_that_has_lost_its_sandbox() {
    if !has_level(SandboxLevel::Full) {
        return;
    }
    for works in [0, 2] {
        let harness = Harness::new();
        let environment = recalled(&harness, works).await.with_start_ahead(true);
        environment.initialize().await.unwrap();
        let clone = environment.clone().with_network(true);
        let failure = environment.wait_for_failure();
        let mut succeeded = 0;
        let error = loop {
            match environment.exec_command(ExecRequest::new("echo x >>written")).await {
                Ok(result) => succeeded += usize::from(result.success()),
                Err(error) => break error,
            }
        };
        assert!(succeeded <= works, "{succeeded}");
        let written = fs::read_to_string(harness.at("root/written")).unwrap_or_default();
        assert_eq!(written.lines().count(), succeeded, "no command ran without a sandbox");
        assert!(error.to_string().contains("the sandbox cannot be set up any more"), "{error}");
        let reason = failure.await;
        assert!(reason.contains("no permission"), "{reason}");
        assert_eq!(environment.failure(), Some(reason));
        let before = starts(&harness);
        for other in [&environment, &clone] {
            let command = Command::shell("true");
            assert!(matches!(other.spawn(command.clone()).await, Err(EnvError::Refused { .. })));
            assert!(matches!(other.spawn(command.read_only()).await, Err(EnvError::Refused { .. })));
        }
        assert_eq!(starts(&harness), before, "nothing is tried again");
        let outside = environment.outside_sandbox().unwrap();
        assert!(run(outside.as_ref(), "true").await.success());
        environment.cleanup().await.unwrap();
    }
}

/// A command that cannot start says nothing about the machine.
#[tokio::test]
async fn a_command_that_cannot_start_does_not_end_the_others() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    fs::create_dir(harness.at("root/gone")).unwrap();
    let environment = environment.with_writable(harness.at("root/gone"));
    assert!(run(&environment, "true").await.success());
    fs::rename(harness.at("root/gone"), harness.at("gone")).unwrap();
    assert!(environment.exec_command(ExecRequest::new("true")).await.is_err());
    assert_eq!(environment.failure(), None);
    fs::rename(harness.at("gone"), harness.at("root/gone")).unwrap();
    assert!(run(&environment, "true").await.success());
    environment.cleanup().await.unwrap();
}
