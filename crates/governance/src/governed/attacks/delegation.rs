//! Subagents.

use super::*;

fn delegates() -> Vec<(&'static str, Value)> {
    vec![("spawn_agent", json!({"task": "child"})), ("wait", json!({"agent_id": "agent_1"}))]
}

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "a subagent that changes what its parent may not",
        guard: Guard::Grant,
        calls: |_| delegates(),
        got: |scene, _| scene.exists("../outside/by-child"),
    },
    Attack {
        name: "a subagent that reads what its parent may not",
        guard: Guard::Grant,
        calls: |_| delegates(),
        got: |_, results| results.contains("SECRET"),
    },
    Attack {
        name: "a subagent that starts subagents deeper than granted",
        guard: Guard::OneLevel,
        calls: |_| delegates(),
        got: |scene, _| scene.exists("src/by-grandchild"),
    },
    Attack {
        name: "a subagent, granted none",
        guard: Guard::NoSubagents,
        calls: |_| delegates(),
        got: |scene, _| scene.exists("src/by-child"),
    },
    Attack {
        name: "a subagent that runs a command, granted only changes of files",
        guard: Guard::NoCommands,
        calls: |_| delegates(),
        got: |scene, _| !scene.exists("x"),
    },
];

/// Returns the models of the subagents that an attack starts.
pub(super) fn models(scene: &Scene, attack: &str) -> (FakeAdapter, FakeAdapter) {
    let calls: Vec<(&str, Value)> = match attack {
        "a subagent that changes what its parent may not" => {
            vec![("write_file", json!({"file_path": scene.text("../outside/by-child"), "content": "x"}))]
        }
        "a subagent that reads what its parent may not" => {
            vec![("read_file", json!({"file_path": scene.text("../outside/secret")}))]
        }
        "a subagent that starts subagents deeper than granted" => {
            vec![("spawn_agent", json!({"task": "grandchild"})), ("wait", json!({"agent_id": "agent_1"}))]
        }
        "a subagent, granted none" => {
            vec![("write_file", json!({"file_path": scene.text("src/by-child"), "content": "x"}))]
        }
        "a subagent that runs a command, granted only changes of files" => {
            vec![("shell", json!({"command": "rm x"}))]
        }
        _ => Vec::new(),
    };
    let deeper = json!({"file_path": scene.text("src/by-grandchild"), "content": "x"});
    (model(&calls), model(&[("write_file", deeper)]))
}

fn model(calls: &[(&str, Value)]) -> FakeAdapter {
    let mut model = FakeAdapter::new("anthropic");
    for (number, (tool, arguments)) in calls.iter().enumerate() {
        model = model.message(call(number, tool, arguments));
    }
    model.answer("Done.")
}
