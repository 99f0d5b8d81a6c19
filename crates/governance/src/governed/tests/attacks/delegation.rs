//! Subagents.

use super::*;

/// Tasks of subagents. The model of each makes one call, and the model of [`DELEGATE`] starts a subagent with [`WRITE`].
const WRITE: &str = "write in the workspace";
const WRITE_OUTSIDE: &str = "change a file outside";
const READ_OUTSIDE: &str = "read a file outside";
const RUN: &str = "run a command";
const DELEGATE: &str = "delegate";

fn delegates(task: &str) -> Vec<(&'static str, Value)> {
    vec![("spawn_agent", json!({ "task": task })), ("wait", json!({"agent_id": "agent_1"}))]
}

pub(super) const ATTACKS: &[Attack] = &[
    attack(
        "a subagent that changes what its parent may not",
        Guard::Grant,
        |_| delegates(WRITE_OUTSIDE),
        |scene, _| scene.exists("../outside/by-subagent"),
    ),
    attack(
        "a subagent that reads what its parent may not",
        Guard::Grant,
        |_| delegates(READ_OUTSIDE),
        |_, results| results.contains("SECRET"),
    ),
    attack(
        "a subagent that starts subagents deeper than granted",
        Guard::OneLevel,
        |_| delegates(DELEGATE),
        |scene, _| scene.exists("src/by-subagent"),
    ),
    attack(
        "a subagent, granted none",
        Guard::NoSubagents,
        |_| delegates(WRITE),
        |scene, _| scene.exists("src/by-subagent"),
    ),
    attack(
        "a subagent that runs a command, granted only changes of files",
        Guard::NoCommands,
        |_| delegates(RUN),
        |scene, _| !scene.exists("x"),
    ),
];

/// Returns the model of each task.
pub(super) fn models(scene: &Scene, provider: &'static str) -> Vec<(&'static str, FakeAdapter)> {
    let write = |path: &str| vec![("write_file", json!({"file_path": scene.text(path), "content": "x"}))];
    let read = ("read_file", json!({"file_path": scene.text("../outside/secret")}));
    [
        (WRITE, write("src/by-subagent")),
        (WRITE_OUTSIDE, write("../outside/by-subagent")),
        (READ_OUTSIDE, vec![read]),
        (RUN, vec![("shell", json!({"command": "rm x"}))]),
        (DELEGATE, delegates(WRITE)),
    ]
    .map(|(task, calls)| (task, model(provider, &calls)))
    .into()
}
