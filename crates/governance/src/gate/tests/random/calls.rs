//! Random grants and calls in a real directory with links, and an oracle that judges the calls without a gate.
//!
//! `gate::tests::random` asks the gate about them. The workspace tests include this file and make the calls in sessions that
//! the host opens.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{EffectCeiling, Grant, GrantId, PathScope, Pattern};

/// Directories below the root of each test, deepest last. The last one is no text.
const DIRECTORIES: [&[u8]; 7] = [b"w", b"w/a", b"w/a/b", b"w/A", b"out", b"out/a", b"w/\xFFx"];

/// Links, with what they name: into and out of the workspace, to each other, to nothing, to a name that is no text.
const LINKS: [(&str, &str); 8] = [
    ("w/out", "../out"),
    ("w/a/up", ".."),
    ("w/a/b/far", "../../../out/a"),
    ("out/back", "../w/a"),
    ("w/loop", "loop"),
    ("w/dangling", "../out/nothing"),
    ("w/bytes", "\u{0}"),
    ("w/chain", "a/up/out"),
];

/// Parts of the paths that calls name.
const PARTS: [&str; 16] = [
    "..", ".", "w", "a", "b", "A", "out", "up", "far", "back", "loop", "dangling", "bytes", "chain", "file",
    "",
];

/// Directories that are mounted over others, if the process may mount something.
const MOUNTS: [(&str, &str); 2] = [("out", "w/A"), ("w/a/b", "out/a")];

/// Variable that asks for the mounts.
pub(super) const MOUNTED: &str = "PINTLE_TEST_MOUNTS";

/// Directory with links, and the workspace `w` in it.
pub(super) struct Tree {
    _directory: TempDir,
    pub(super) root: PathBuf,
    is_mounted: bool,
}

impl Drop for Tree {
    fn drop(&mut self) {
        // What is mounted would be removed with the directory.
        for (_, over) in MOUNTS.iter().rev().filter(|_| self.is_mounted) {
            assert!(Command::new("umount").arg(self.root.join(over)).status().unwrap().success());
        }
    }
}

impl Tree {
    pub(super) fn new(directory: TempDir) -> Self {
        let root = directory.path().canonicalize().unwrap();
        for name in DIRECTORIES {
            std::fs::create_dir_all(root.join(OsStr::from_bytes(name))).unwrap();
            std::fs::write(root.join(OsStr::from_bytes(name)).join("file"), "x").unwrap();
        }
        for (link, target) in LINKS {
            let target = if link == "w/bytes" { OsStr::from_bytes(b"\xFFx") } else { OsStr::new(target) };
            symlink(target, root.join(link)).unwrap();
        }
        let is_mounted = std::env::var_os(MOUNTED).is_some();
        for (from, over) in MOUNTS.iter().filter(|_| is_mounted) {
            let mount =
                Command::new("mount").arg("--bind").args([from, over].map(|name| root.join(name))).status();
            assert!(mount.unwrap().success(), "{from} over {over}");
        }
        Self { _directory: directory, root, is_mounted }
    }

    /// Returns where a path leads, resolved part by part as the kernel does; `None` for a loop, or through a file.
    fn real(&self, path: &Path) -> Option<PathBuf> {
        let mut rest: Vec<std::ffi::OsString> =
            path.components().rev().map(|part| part.as_os_str().to_owned()).collect();
        let (mut real, mut links) = (PathBuf::from("/"), 0);
        while let Some(part) = rest.pop() {
            match part.as_bytes() {
                b"/" => real = PathBuf::from("/"),
                b"." => {}
                b".." => {
                    real.pop();
                }
                _ => {
                    let next = real.join(&part);
                    match std::fs::symlink_metadata(&next) {
                        Ok(found) if found.is_symlink() => {
                            links += 1;
                            if links > 40 {
                                return None;
                            }
                            let target = std::fs::read_link(&next).unwrap();
                            rest.extend(target.components().rev().map(|part| part.as_os_str().to_owned()));
                        }
                        Ok(found) if !found.is_dir() && !rest.is_empty() => return None,
                        Ok(_) | Err(_) => real = next,
                    }
                }
            }
        }
        Some(real)
    }
}

/// Normalizes a path as `ExecutionEnvironment::resolve` does: `..` removes the component before it, even if that is a link.
/// Gates and tools use the same normalized path.
fn without_dots(path: &Path) -> PathBuf {
    let mut kept: Vec<&OsStr> = Vec::new();
    for part in path.iter() {
        match part.as_bytes() {
            b"." => {}
            b".." if kept.len() > 1 => drop(kept.pop()),
            b".." => {}
            _ => kept.push(part),
        }
    }
    kept.into_iter().collect()
}

/// Scope of paths, relative to the root of the tree.
#[derive(Clone, Debug)]
struct Scope {
    within: Vec<&'static str>,
    except: Vec<&'static str>,
}

impl Scope {
    fn of(&self, root: &Path) -> PathScope {
        let path = |name: &&str| root.join(name).to_str().unwrap().to_owned();
        PathScope::within(self.within.iter().map(path)).except(self.except.iter().map(path))
    }

    /// Returns the exceptions, as named and where they lead.
    fn excepted(&self, tree: &Tree) -> Vec<PathBuf> {
        let named = self.except.iter().map(|name| tree.root.join(name));
        named.flat_map(|path| [tree.real(&path), Some(path)]).flatten().collect()
    }

    fn contains(&self, tree: &Tree, path: &Path) -> bool {
        let is_within = self.within.iter().any(|name| path.starts_with(tree.root.join(name)));
        is_within && !self.excludes(tree, path)
    }

    fn excludes(&self, tree: &Tree, path: &Path) -> bool {
        self.excepted(tree).iter().any(|excepted| path.starts_with(excepted))
    }

    fn excludes_below(&self, tree: &Tree, path: &Path) -> bool {
        self.excepted(tree).iter().any(|excepted| excepted.starts_with(path))
    }

    /// Returns whether a call may read a path, of which it lists the entries or takes everything.
    fn may_be_read(&self, tree: &Tree, path: &Path, is_listed: bool) -> bool {
        let Some(real) = tree.real(path) else { return false };
        let is_whole = !self.excludes_below(tree, &real) && !self.excludes_below(tree, path);
        self.contains(tree, &real) && !self.excludes(tree, path) && (is_listed || is_whole)
    }

    fn may_be_changed(&self, tree: &Tree, path: &Path) -> bool {
        let Some(real) = tree.real(path) else { return false };
        // A call that changes a link may change what it leads to, or the link.
        let link = path.parent().and_then(|parent| tree.real(parent)).zip(path.file_name());
        let link = link.map_or_else(|| path.to_path_buf(), |(parent, name)| parent.join(name));
        self.contains(tree, &real) && self.contains(tree, &link) && !self.excludes(tree, path)
    }
}

/// Call of a tool, with what it touches.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    needs: EffectCeiling,
    reads: Vec<String>,
    writes: Vec<String>,
    is_listing: bool,
}

impl Use {
    /// Creates the call. In the paths, `ROOT` is the root of the tree.
    pub(super) fn new(way: &'static str, paths: &(String, String), tree: &Tree) -> Self {
        let root = tree.root.to_str().unwrap();
        let (path, other) = (paths.0.replace("ROOT", root), paths.1.replace("ROOT", root));
        let pattern = format!("{path}/*");
        // A pattern that begins with `/` is searched from there.
        let base = if path.is_empty() { "/".to_owned() } else { path.clone() };
        let (read, write, execute) = (EffectCeiling::Read, EffectCeiling::Write, EffectCeiling::Execute);
        let patch = |text: String| json!({"patch": format!("*** Begin Patch\n{text}\n*** End Patch")});
        let (tool, arguments, needs, reads, writes) = match way {
            "read_file" => (way, json!({ "file_path": path }), read, vec![path], vec![]),
            "grep" => (way, json!({ "pattern": "x", "path": path }), read, vec![path], vec![]),
            "glob" => (way, json!({ "pattern": pattern }), read, vec![base], vec![]),
            "read_many_files" => (way, json!({ "paths": [pattern] }), read, vec![base, pattern], vec![]),
            "list_dir" => (way, json!({ "path": path }), read, vec![path], vec![]),
            "list below" => ("list_dir", json!({ "path": path, "depth": 2 }), read, vec![path], vec![]),
            "write_file" => (way, json!({ "file_path": path, "content": "x" }), write, vec![], vec![path]),
            "edit_file" => (
                way,
                json!({ "file_path": path, "old_string": "x", "new_string": "y" }),
                write,
                vec![path.clone()],
                vec![path],
            ),
            "delete" => (
                "apply_patch",
                patch(format!("*** Delete File: {path}")),
                write,
                vec![path.clone()],
                vec![path],
            ),
            "move" => (
                "apply_patch",
                patch(format!("*** Update File: {path}\n*** Move to: {other}\n@@\n-x\n+y")),
                write,
                vec![path.clone()],
                vec![path, other],
            ),
            _ => ("shell", json!({ "command": format!("cat {path}") }), execute, vec![], vec![]),
        };
        Self { tool, arguments, needs, reads, writes, is_listing: way == "list_dir" }
    }
}

fn scope() -> impl Strategy<Value = Scope> {
    let within = subsequence(vec!["", "w", "w/a", "w/a/b", "out", "out/a"], 0..3);
    let except = subsequence(vec!["w/a", "w/a/b", "w/A", "out/a", "w/out", "w/chain", "out/back"], 0..2);
    (within, except).prop_map(|(within, except)| Scope { within, except })
}

fn path() -> impl Strategy<Value = String> {
    let parts = proptest::collection::vec(select(PARTS.to_vec()), 1..7);
    (parts, any::<bool>()).prop_map(|(parts, is_absolute)| {
        let path = parts.join("/");
        if is_absolute { format!("ROOT/{path}") } else { path }
    })
}

/// Ways to touch a path, each of a tool.
pub(super) const WAYS: [&str; 11] = [
    "read_file",
    "write_file",
    "shell",
    "grep",
    "glob",
    "read_many_files",
    "list_dir",
    "list below",
    "edit_file",
    "delete",
    "move",
];

/// Grant of one case.
#[derive(Clone, Debug)]
pub(super) struct GrantCase {
    reads: Scope,
    writes: Scope,
    effect: EffectCeiling,
    tools: Vec<&'static str>,
}

impl GrantCase {
    pub(super) fn grant(&self, tree: &Tree) -> Grant {
        let mut grant = Grant::none(GrantId::new("g"));
        grant.tools = self.tools.iter().map(|tool| Pattern::new(*tool)).collect();
        (grant.reads, grant.writes) = (self.reads.of(&tree.root), self.writes.of(&tree.root));
        grant.effect = self.effect;
        grant.environments = [Pattern::any()].into();
        grant
    }

    /// Returns whether the grant allows a call, without asking the gate.
    pub(super) fn allows(&self, tree: &Tree, used: &Use) -> bool {
        let plain = |path: &String| without_dots(&tree.root.join("w").join(path));
        let may_read = |path: &String| self.reads.may_be_read(tree, &plain(path), used.is_listing);
        let may_change = |path: &String| self.writes.may_be_changed(tree, &plain(path));
        self.tools.iter().any(|granted| *granted == "*" || *granted == used.tool)
            && self.effect >= used.needs
            && used.reads.iter().all(may_read)
            && used.writes.iter().all(may_change)
    }
}

pub(super) fn grants() -> impl Strategy<Value = GrantCase> {
    let tools = subsequence(vec!["read_file", "edit_file", "apply_patch", "shell", "grep", "*"], 1..5);
    let effects = select(vec![EffectCeiling::Read, EffectCeiling::Write, EffectCeiling::Execute]);
    (scope(), scope(), effects, tools).prop_map(|(reads, writes, effect, tools)| GrantCase {
        reads,
        writes,
        effect,
        tools,
    })
}

/// Returns the two paths of a call, for [`Use::new`].
pub(super) fn paths() -> impl Strategy<Value = (String, String)> {
    (path(), path())
}
