//! Roots that follow a switch, and commands outside of the sandbox.

use std::path::Path;

use super::*;
use crate::{Git, ReadOnlyEnvironment, WriteSwitch, contract::logging_environment::Logging};

const LEVELS: [SandboxLevel; 2] = [SandboxLevel::Full, SandboxLevel::Writes];

async fn succeeds(environment: &dyn ExecutionEnvironment, line: String) -> bool {
    environment.exec_command(ExecRequest::new(line)).await.unwrap().success()
}

#[tokio::test]
async fn commands_write_below_a_root_while_its_switch_is_on() {
    for level in LEVELS {
        let harness = Harness::new();
        let Some(sandbox) = harness.at_level(level).await else { continue };
        let switch = WriteSwitch::new(false);
        let sandbox = sandbox.with_writable_while(harness.at("outside"), &switch);
        sandbox.initialize().await.unwrap();
        let target = harness.at("outside/file");
        let write = || succeeds(&sandbox, format!("echo x >{}", target.display()));
        assert!(!write().await && !target.exists(), "{level}");
        let limits = sandbox.command_limits().unwrap();
        assert!(!limits.contains("outside"), "{limits}");
        switch.set(true);
        assert!(write().await && target.exists(), "{level}");
        let limits = sandbox.command_limits().unwrap();
        assert!(limits.contains("outside"), "{limits}");
        fs::remove_file(&target).unwrap();
        switch.set(false);
        assert!(!write().await && !target.exists(), "{level}");
        sandbox.cleanup().await.unwrap();
    }
}

#[tokio::test]
async fn sandbox_is_left_only_if_that_is_allowed() {
    for level in LEVELS {
        let harness = Harness::new();
        let Some(sandbox) = harness.at_level(level).await else { continue };
        assert!(sandbox.outside_sandbox().is_none());
        let sandbox = sandbox.with_outside_commands(true);
        let target = harness.at("outside/file");
        let write = format!("echo x >{}", target.display());
        assert!(!succeeds(&sandbox, write.clone()).await && !target.exists(), "{level}");
        let outside = sandbox.outside_sandbox().unwrap();
        assert!(outside.command_limits().is_none() && outside.outside_sandbox().is_none());
        assert!(succeeds(outside.as_ref(), write).await && target.exists(), "{level}");
        sandbox.cleanup().await.unwrap();
    }
}

/// Commands share caches while the switch is on. While it is off, what they write goes with their copies, and what runs
/// outside of the sandbox sees none of them.
#[tokio::test]
async fn caches_follow_the_switch_and_stay_inside() {
    for level in LEVELS {
        let harness = Harness::new();
        let home = harness.at("outside/home");
        fs::create_dir_all(home.join(".cargo/registry/cache/index")).unwrap();
        fs::write(home.join(".cargo/registry/cache/index/a.crate"), "crate").unwrap();
        let caches = ProjectCaches::create(harness.at("outside/caches"), [("HOME", &home)]).await.unwrap();
        let planted = caches.directory().join("cargo/bin/cargo-x");
        let local = LocalEnvironment::builder(harness.at("root"))
            .with_variable("PATH", format!("{}:/usr/bin:/bin", harness.at("root/bin").display()))
            .with_variable("CARGO_HOME", "/of/the/user")
            .with_variable("NODE_OPTIONS", format!("--require {}", harness.at("root/hook.js").display()))
            .build()
            .unwrap();
        if !has_level(level) {
            continue;
        }
        let (switch, copies) = (WriteSwitch::new(false), harness.at("root/copies"));
        let sandbox = SandboxedEnvironment::new(local).with_level(level).with_writable(harness.at("root"));
        let sandbox = sandbox.with_caches(caches, &copies, &switch).with_outside_commands(true);
        sandbox.initialize().await.unwrap();
        assert!(!copies.exists(), "{level}: nothing is copied before it is used");
        sandbox.exec_command(Git::new().request(&["--version"])).await.unwrap();
        assert!(!copies.exists(), "{level}: git needs no packages");
        sandbox.fill_caches().await.unwrap();
        assert!(
            copies.join("cargo").exists() && !planted.parent().unwrap().parent().unwrap().exists(),
            "{level}"
        );
        let crates = "cat $CARGO_HOME/registry/cache/index/a.crate && ".to_owned();
        let plant = crates + "mkdir -p $CARGO_HOME/bin && echo x >$CARGO_HOME/bin/cargo-x";
        assert!(succeeds(&sandbox, plant.clone()).await, "{level}");
        assert!(!planted.exists() && copies.join("cargo/bin/cargo-x").exists(), "{level}");
        let write_elsewhere = format!("mkdir -p {0} && echo x >{0}/y", planted.parent().unwrap().display());
        assert!(!succeeds(&sandbox, write_elsewhere).await, "{level}");
        switch.set(true);
        assert!(succeeds(&sandbox, "test ! -e $CARGO_HOME/bin/cargo-x".to_owned()).await, "{level}");
        assert!(succeeds(&sandbox, plant).await && planted.exists(), "{level}");
        let outside = sandbox.outside_sandbox().unwrap();
        let names = "echo $PATH $CARGO_HOME $GOFLAGS $npm_config_cache $NODE_OPTIONS";
        let result = outside.exec_command(ExecRequest::new(names)).await.unwrap();
        assert_eq!(result.stdout.to_text_lossy().unwrap(), "/usr/bin:/bin /of/the/user\n", "{level}");
        sandbox.cleanup().await.unwrap();
    }
}

/// A command outside is a process of the same environment, so that nothing is left of it either.
#[tokio::test]
async fn cleanup_terminates_commands_outside() {
    let harness = Harness::new();
    let Some(sandbox) = harness.sandboxed().await else { return };
    let sandbox = sandbox.with_outside_commands(true);
    let outside = sandbox.outside_sandbox().unwrap();
    let mut process = outside.spawn(Command::shell("sleep 600")).await.unwrap();
    sandbox.cleanup().await.unwrap();
    assert_ne!(process.wait().await.unwrap().code(), 0);
}

#[tokio::test]
async fn wrappers_keep_their_own_limits_outside() {
    let harness = Harness::new();
    let Some(sandbox) = harness.sandboxed().await else { return };
    let sandbox: Arc<dyn ExecutionEnvironment> = Arc::new(sandbox.with_outside_commands(true));
    let wrappers: [Arc<dyn ExecutionEnvironment>; 3] = [
        Arc::new(Logging::new(Arc::clone(&sandbox))),
        Arc::new(ReadOnlyEnvironment::new(Arc::clone(&sandbox)).allow_commands()),
        Arc::new(ConfinedEnvironment::new(Arc::clone(&sandbox), [harness.at("root")])),
    ];
    let target = harness.at("outside/file");
    for wrapper in wrappers {
        let outside = wrapper.outside_sandbox().unwrap();
        assert!(succeeds(outside.as_ref(), format!("echo x >{}", target.display())).await, "{wrapper:?}");
        fs::remove_file(&target).unwrap();
        let inside = Path::new("a");
        let (before, after) = (wrapper.write(&target, b"x").await, outside.write(&target, b"x").await);
        assert_eq!(before.is_ok(), after.is_ok(), "{wrapper:?}");
        let (before, after) = (wrapper.write(inside, b"x").await, outside.write(inside, b"x").await);
        assert_eq!(before.is_ok(), after.is_ok(), "{wrapper:?}");
        let _ = fs::remove_file(&target);
    }
    let none: Arc<dyn ExecutionEnvironment> = Arc::new(Logging::new(Arc::new(harness.local())));
    assert!(none.outside_sandbox().is_none());
    sandbox.cleanup().await.unwrap();
}
