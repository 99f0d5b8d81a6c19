//! Files, by tools that name them.

use super::*;

const NEW: &str = "../outside/new";

fn writes(path: impl Into<String>) -> Vec<(&'static str, Value)> {
    vec![("write_file", json!({"file_path": path.into(), "content": "x"}))]
}

fn reads(path: impl Into<String>) -> Vec<(&'static str, Value)> {
    vec![("read_file", json!({"file_path": path.into()}))]
}

fn patches(patch: &str) -> Vec<(&'static str, Value)> {
    vec![("apply_patch", json!({"patch": format!("*** Begin Patch\n{patch}\n*** End Patch")}))]
}

fn has_new(scene: &Scene, _: &str) -> bool {
    scene.exists(NEW)
}

fn knows(_: &Scene, results: &str) -> bool {
    results.contains("SECRET")
}

fn config_changed(scene: &Scene, _: &str) -> bool {
    scene.read(".git/config") != "[core]\n"
}

fn source_changed(scene: &Scene, _: &str) -> bool {
    scene.read("src/lib.rs") != "old"
}

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "`write_file` by an absolute path",
        guard: Guard::Grant,
        calls: |scene| writes(scene.text(NEW)),
        got: has_new,
    },
    Attack {
        name: "`write_file` by `..`",
        guard: Guard::Grant,
        calls: |_| writes("src/../../outside/new"),
        got: has_new,
    },
    Attack {
        name: "`write_file` through a link to a directory",
        guard: Guard::Grant,
        calls: |_| writes("out/new"),
        got: has_new,
    },
    Attack {
        name: "`write_file` through a link and `..`",
        guard: Guard::Grant,
        calls: |_| writes("out/deep/../new"),
        got: has_new,
    },
    Attack {
        name: "`write_file` through a link to a file",
        guard: Guard::Grant,
        calls: |_| writes("secret"),
        got: |scene, _| scene.read("../outside/secret") != "SECRET",
    },
    Attack {
        name: "`write_file` in the workspace, outside of the granted directory",
        guard: Guard::Grant,
        calls: |_| writes("new"),
        got: |scene, _| scene.exists("new"),
    },
    Attack {
        name: "`edit_file` of a file outside",
        guard: Guard::Grant,
        calls: |scene| {
            let path = scene.text("../outside/secret");
            let mut calls = reads(path.clone());
            calls.push(("edit_file", json!({"file_path": path, "old_string": "SECRET", "new_string": "x"})));
            calls
        },
        got: |scene, _| scene.read("../outside/secret") != "SECRET",
    },
    Attack {
        name: "`apply_patch` that adds a file outside",
        guard: Guard::Grant,
        calls: |_| patches("*** Add File: out/new\n+x"),
        got: has_new,
    },
    Attack {
        name: "`apply_patch` that moves a file outside",
        guard: Guard::Grant,
        calls: |_| patches("*** Update File: src/lib.rs\n*** Move to: out/new\n@@\n-old\n+new"),
        got: has_new,
    },
    Attack {
        name: "`apply_patch` that deletes a file outside, beside a harmless change",
        guard: Guard::Grant,
        calls: |_| patches("*** Add File: src/a\n+x\n*** Delete File: out/secret"),
        got: |scene, _| !scene.exists("../outside/secret"),
    },
    Attack {
        name: "`read_file` outside by `..`",
        guard: Guard::Grant,
        calls: |_| reads("../outside/secret"),
        got: knows,
    },
    Attack {
        name: "`read_file` through a link",
        guard: Guard::Grant,
        calls: |_| reads("secret"),
        got: knows,
    },
    Attack {
        name: "`read_file` through `/proc/self/cwd`",
        guard: Guard::Grant,
        calls: |scene| {
            let path = scene.text("../outside/secret");
            reads(format!("/proc/self/root{path}"))
        },
        got: knows,
    },
    Attack {
        name: "`grep` of a directory outside",
        guard: Guard::Grant,
        calls: |_| vec![("grep", json!({"pattern": "SECR.T", "path": "out"}))],
        got: knows,
    },
    Attack {
        name: "`glob` of a directory outside",
        guard: Guard::Grant,
        calls: |scene| vec![("glob", json!({"pattern": "**/sec*", "path": scene.text("../outside")}))],
        got: |_, results| results.contains("outside/secret"),
    },
    Attack { name: "`read_file` of a key", guard: Guard::Hidden, calls: |_| reads("keys/key"), got: knows },
    Attack {
        name: "`read_file` of a key through a link",
        guard: Guard::Hidden,
        calls: |_| reads("k/key"),
        got: knows,
    },
    Attack {
        name: "`grep` of a directory that has keys",
        guard: Guard::Hidden,
        calls: |_| vec![("grep", json!({"pattern": "SECR.T", "path": "."}))],
        got: knows,
    },
    Attack {
        name: "`write_file` in the place of a key",
        guard: Guard::Hidden,
        calls: |_| writes("keys/new"),
        got: |scene, _| scene.exists("keys/new"),
    },
    Attack {
        name: "`write_file` of `.git/config`: filters, aliases, fsmonitor",
        guard: Guard::Protected,
        calls: |_| {
            let mut calls = reads(".git/config");
            calls.extend(writes(".git/config"));
            calls
        },
        got: config_changed,
    },
    Attack {
        name: "`apply_patch` of `.git/config`",
        guard: Guard::Protected,
        calls: |_| patches("*** Update File: .git/config\n@@\n-[core]\n+[alias]"),
        got: config_changed,
    },
    Attack {
        name: "`write_file` of a hook of git",
        guard: Guard::Protected,
        calls: |_| writes(".git/hooks/pre-commit"),
        got: |scene, _| scene.exists(".git/hooks/pre-commit"),
    },
    Attack {
        name: "`write_file` of a hook of git through a link",
        guard: Guard::Protected,
        calls: |_| writes("hooks/pre-commit"),
        got: |scene, _| scene.exists(".git/hooks/pre-commit"),
    },
    Attack {
        name: "`write_file` of attributes of git, which name filters",
        guard: Guard::Protected,
        calls: |_| writes(".git/info/attributes"),
        got: |scene, _| scene.exists(".git/info/attributes"),
    },
    Attack {
        name: "`write_file` of a `.git` that leads elsewhere",
        guard: Guard::Protected,
        calls: |_| writes("src/.git"),
        got: |scene, _| scene.exists("src/.git"),
    },
    Attack {
        name: "`write_file` of `.pintle/rules.toml`: a project that allows itself",
        guard: Guard::Protected,
        calls: |_| writes(".pintle/rules.toml"),
        got: |scene, _| scene.exists(".pintle/rules.toml"),
    },
    Attack {
        name: "`write_file` against a rule that denies, by `.` and `..`",
        guard: Guard::DenyRule,
        calls: |_| {
            let mut calls = reads("src/lib.rs");
            calls.extend(writes("./bin/../src/./lib.rs"));
            calls
        },
        got: source_changed,
    },
    Attack {
        name: "`apply_patch` against a rule that denies `write_file`",
        guard: Guard::DenyRule,
        calls: |_| patches("*** Update File: src/lib.rs\n@@\n-old\n+new"),
        got: source_changed,
    },
];
