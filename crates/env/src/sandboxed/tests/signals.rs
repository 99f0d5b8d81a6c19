//! Signals and the thread that starts a command.

use std::collections::BTreeMap;

use nix::sys::signal::{SigSet, Signal};

use super::{
    thread::{self, Inheritance, PreparedProgram},
    *,
};
use crate::{
    command::Stdin,
    local::{Invocation, Program},
};

/// A handler writes to a descriptor by its number, which may belong to another file on this thread:
/// the runtime's byte went to the pipe by which a failed `exec` is reported.
#[tokio::test]
async fn no_handler_runs_while_descriptors_are_private() {
    let harness = Harness::new();
    let Some(_) = harness.sandboxed().await else { return };
    let invocation = Invocation {
        program: "/bin/true".into(),
        arguments: Vec::new(),
        variables: BTreeMap::new(),
        directory: harness.at("root"),
        stdin: Stdin::Null,
    };
    let before = SigSet::thread_get_mask().unwrap();
    let mut during = SigSet::empty();
    let mut launched = thread::spawn(&invocation, Inheritance::Nothing, |_| {
        during = SigSet::thread_get_mask()?;
        let program = Program { name: invocation.program.clone(), ..Program::default() };
        Ok(PreparedProgram { program, inherited: Vec::new() })
    })
    .unwrap();
    for signal in [Signal::SIGCHLD, Signal::SIGINT, Signal::SIGTERM, Signal::SIGWINCH] {
        assert!(during.contains(signal) && !before.contains(signal), "{signal}");
    }
    assert!(launched.child.wait().await.unwrap().success());
}

/// The mask of the thread that starts a command is not that of the command, and this process ignores
/// broken pipes.
#[tokio::test]
async fn commands_block_nothing_and_end_at_broken_pipes() {
    let harness = Harness::new();
    for level in [SandboxLevel::Writes, SandboxLevel::Full] {
        let Some(environment) = harness.at_level(level).await else { continue };
        environment.initialize().await.unwrap();
        let result = run(&environment, "grep -E 'Sig(Blk|Ign)' /proc/self/status").await;
        let status = result.stdout.to_text_lossy().unwrap();
        let set = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        assert_eq!(set("SigBlk:"), 0, "{level}: {status}");
        let broken_pipe = 1 << (Signal::SIGPIPE as u64 - 1);
        assert_eq!(set("SigIgn:") & broken_pipe, 0, "{level}: {status}");
        environment.cleanup().await.unwrap();
    }
}
