//! Files, by tools that name them.

use super::*;

const NEW: &str = "../outside/new";

fn writes(path: impl Into<String>) -> Vec<(&'static str, Value)> {
    vec![("write_file", json!({"file_path": path.into(), "content": "x"}))]
}

pub(super) fn reads(path: impl Into<String>) -> Vec<(&'static str, Value)> {
    vec![("read_file", json!({"file_path": path.into()}))]
}

pub(super) fn patches(patch: &str) -> Vec<(&'static str, Value)> {
    vec![("apply_patch", json!({"patch": format!("*** Begin Patch\n{patch}\n*** End Patch")}))]
}

pub(super) fn reads_many(path: &str) -> Vec<(&'static str, Value)> {
    vec![("read_many_files", json!({ "paths": [path] }))]
}

pub(super) fn searches(path: &str) -> Vec<(&'static str, Value)> {
    vec![("grep", json!({"pattern": "SECR.T", "path": path}))]
}

fn has_new(scene: &Scene, _: &str) -> bool {
    scene.exists(NEW)
}

pub(super) fn knows(_: &Scene, results: &str) -> bool {
    results.contains("SECRET")
}

fn config_changed(scene: &Scene, _: &str) -> bool {
    scene.read(".git/config") != "[core]\n"
}

fn source_changed(scene: &Scene, _: &str) -> bool {
    scene.read("src/lib.rs") != "old"
}

pub(super) const ATTACKS: &[Attack] = &[
    attack(
        "`apply_patch` of a file that the session has not read",
        Guard::Unread,
        |_| patches("*** Update File: src/lib.rs\n@@\n-old\n+new"),
        source_changed,
    ),
    attack("`read_many_files` of keys by a pattern", Guard::Hidden, |_| reads_many("k*/*"), knows),
    attack("`grep` above what a grant excepts", Guard::Exception, |_| searches("."), knows),
    attack("`read_many_files` above what a grant excepts", Guard::Exception, |_| reads_many("k*/*"), knows),
    attack(
        "`glob` above what a grant excepts",
        Guard::Exception,
        |_| vec![("glob", json!({"pattern": "**/*"}))],
        |_, results| results.contains("keys/key"),
    ),
    attack("`grep` above what a rule denies to read", Guard::DenyRead, |_| searches("."), knows),
    attack("`read_many_files` of what a rule denies to read", Guard::DenyRead, |_| reads_many("k*/*"), knows),
    attack(
        "`apply_patch` that deletes a link outside",
        Guard::Grant,
        |_| patches("*** Delete File: ../outside/back"),
        |scene, _| scene.at("../outside/back").symlink_metadata().is_err(),
    ),
    attack(
        "`apply_patch` that moves a link outside",
        Guard::Grant,
        |_| patches("*** Update File: ../outside/back\n*** Move to: src/moved\n@@\n-old\n+new"),
        |scene, _| scene.at("../outside/back").symlink_metadata().is_err(),
    ),
    attack(
        "`apply_patch` that deletes a link against a rule that denies",
        Guard::DenyRule,
        |scene| {
            std::fs::write(scene.at("bin/id"), "x\n").unwrap();
            patches("*** Delete File: src/id")
        },
        |scene, _| scene.at("src/id").symlink_metadata().is_err(),
    ),
    attack("`write_file` by an absolute path", Guard::Grant, |scene| writes(scene.text(NEW)), has_new),
    attack("`write_file` by `..`", Guard::Grant, |_| writes("src/../../outside/new"), has_new),
    attack("`write_file` through a link to a directory", Guard::Grant, |_| writes("out/new"), has_new),
    attack("`write_file` through a link and `..`", Guard::Grant, |_| writes("out/deep/../new"), has_new),
    attack(
        "`write_file` through a link to a file",
        Guard::Grant,
        |_| writes("secret"),
        |scene, _| scene.read("../outside/secret") != "SECRET",
    ),
    attack(
        "`write_file` in the workspace, outside of the granted directory",
        Guard::Grant,
        |_| writes("new"),
        |scene, _| scene.exists("new"),
    ),
    attack(
        "`edit_file` of a file outside",
        Guard::Grant,
        |scene| {
            let path = scene.text("../outside/secret");
            let mut calls = reads(path.clone());
            calls.push(("edit_file", json!({"file_path": path, "old_string": "SECRET", "new_string": "x"})));
            calls
        },
        |scene, _| scene.read("../outside/secret") != "SECRET",
    ),
    attack(
        "`apply_patch` that adds a file outside",
        Guard::Grant,
        |_| patches("*** Add File: out/new\n+x"),
        has_new,
    ),
    attack(
        "`apply_patch` that moves a file outside",
        Guard::Grant,
        |_| patches("*** Update File: src/lib.rs\n*** Move to: out/new\n@@\n-old\n+new"),
        has_new,
    ),
    attack(
        "`apply_patch` that deletes a file outside, beside a harmless change",
        Guard::Grant,
        |_| patches("*** Add File: src/a\n+x\n*** Delete File: out/secret"),
        |scene, _| !scene.exists("../outside/secret"),
    ),
    attack("`read_file` outside by `..`", Guard::Grant, |_| reads("../outside/secret"), knows),
    attack("`read_file` through a link", Guard::Grant, |_| reads("secret"), knows),
    attack(
        "`read_file` through `/proc/self/root`",
        Guard::Grant,
        |scene| {
            let path = scene.text("../outside/secret");
            reads(format!("/proc/self/root{path}"))
        },
        knows,
    ),
    attack(
        "`grep` of a directory outside",
        Guard::Grant,
        |_| vec![("grep", json!({"pattern": "SECR.T", "path": "out"}))],
        knows,
    ),
    attack(
        "`glob` of a directory outside",
        Guard::Grant,
        |scene| vec![("glob", json!({"pattern": "**/sec*", "path": scene.text("../outside")}))],
        |_, results| results.contains("outside/secret"),
    ),
    attack("`read_file` of a key", Guard::Hidden, |_| reads("keys/key"), knows),
    attack("`read_file` of a key through a link", Guard::Hidden, |_| reads("k/key"), knows),
    attack(
        "`grep` of a directory that has keys",
        Guard::Hidden,
        |_| vec![("grep", json!({"pattern": "SECR.T", "path": "."}))],
        knows,
    ),
    attack(
        "`write_file` in the place of a key",
        Guard::Hidden,
        |_| writes("keys/new"),
        |scene, _| scene.exists("keys/new"),
    ),
    attack(
        "`write_file` of `.git/config`: filters, aliases, fsmonitor",
        Guard::Protected,
        |_| {
            let mut calls = reads(".git/config");
            calls.extend(writes(".git/config"));
            calls
        },
        config_changed,
    ),
    attack(
        "`apply_patch` of `.git/config`",
        Guard::Protected,
        |_| patches("*** Update File: .git/config\n@@\n-[core]\n+[alias]"),
        config_changed,
    ),
    attack(
        "`write_file` of a hook of git",
        Guard::Protected,
        |_| writes(".git/hooks/pre-commit"),
        |scene, _| scene.exists(".git/hooks/pre-commit"),
    ),
    attack(
        "`write_file` of a hook of git through a link",
        Guard::Protected,
        |_| writes("hooks/pre-commit"),
        |scene, _| scene.exists(".git/hooks/pre-commit"),
    ),
    attack(
        "`write_file` of attributes of git, which name filters",
        Guard::Protected,
        |_| writes(".git/info/attributes"),
        |scene, _| scene.exists(".git/info/attributes"),
    ),
    attack(
        "`write_file` of the steps of a rebase, which run programs",
        Guard::Protected,
        |_| writes(".git/rebase-merge/git-rebase-todo"),
        |scene, _| scene.exists(".git/rebase-merge/git-rebase-todo"),
    ),
    attack(
        "`write_file` of a `.git` that leads elsewhere",
        Guard::Protected,
        |_| writes("src/.git"),
        |scene, _| scene.exists("src/.git"),
    ),
    attack(
        "`write_file` of `.pintle/rules.toml`: a project that allows itself",
        Guard::Protected,
        |_| writes(".pintle/rules.toml"),
        |scene, _| scene.exists(".pintle/rules.toml"),
    ),
    attack(
        "`write_file` against a rule that denies, by `.` and `..`",
        Guard::DenyRule,
        |_| {
            let mut calls = reads("src/lib.rs");
            calls.extend(writes("./bin/../src/./lib.rs"));
            calls
        },
        source_changed,
    ),
    attack(
        "`apply_patch` against a rule that denies `@write(src/**)`",
        Guard::DenyRule,
        |_| patches("*** Update File: src/lib.rs\n@@\n-old\n+new"),
        source_changed,
    ),
];
