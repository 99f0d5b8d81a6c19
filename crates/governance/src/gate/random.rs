//! Random grants and calls in a real directory with links, judged by the gate and by an oracle of its own.
#![expect(clippy::disallowed_methods, reason = "fixtures and the oracle read the directory themselves")]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use pintle_env::LocalEnvironment;
use pintle_llm::ToolCall;
use pintle_tools::pipeline::{Preparation, prepare};
use pintle_tools::{ToolRegistry, builtin};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::grant::{EffectCeiling, GrantId};
use crate::pattern::Pattern;

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

struct Tree {
    directory: TempDir,
    root: PathBuf,
}

impl Tree {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in DIRECTORIES {
            std::fs::create_dir_all(root.join(OsStr::from_bytes(name))).unwrap();
            std::fs::write(root.join(OsStr::from_bytes(name)).join("file"), "x").unwrap();
        }
        for (link, target) in LINKS {
            let target = if link == "w/bytes" { OsStr::from_bytes(b"\xFFx") } else { OsStr::new(target) };
            symlink(target, root.join(link)).unwrap();
        }
        Self { directory, root }
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

/// Normalizes a path as [`ExecutionEnvironment::resolve`] does: `..` removes the component before it, even if that is a link.
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

    fn contains(&self, root: &Path, path: &Path) -> bool {
        let is_below = |name: &&str| path.starts_with(root.join(name));
        self.within.iter().any(is_below) && !self.except.iter().any(is_below)
    }

    fn excludes_below(&self, root: &Path, path: &Path) -> bool {
        self.except.iter().any(|name| root.join(name).starts_with(path))
    }
}

fn scope() -> impl Strategy<Value = Scope> {
    let within = subsequence(vec!["", "w", "w/a", "w/a/b", "out", "out/a"], 0..3);
    let except = subsequence(vec!["w/a", "w/a/b", "w/A", "out/a"], 0..2);
    (within, except).prop_map(|(within, except)| Scope { within, except })
}

fn path() -> impl Strategy<Value = String> {
    let parts = proptest::collection::vec(select(PARTS.to_vec()), 1..7);
    (parts, any::<bool>()).prop_map(|(parts, is_absolute)| {
        let path = parts.join("/");
        if is_absolute { format!("ROOT/{path}") } else { path }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// What the gate lets through, the oracle finds within the grant; what it denies is outside, or cannot be resolved.
    #[test]
    fn no_call_gets_round_a_grant(
        reads in scope(),
        writes in scope(),
        effect in select(vec![EffectCeiling::Read, EffectCeiling::Write, EffectCeiling::Execute]),
        tools in subsequence(vec!["read_file", "write_file", "shell", "grep", "*"], 0..3),
        path in path(),
        tool in select(vec!["read_file", "write_file", "shell", "grep"]),
    ) {
        let tree = Tree::new();
        let root = tree.root.to_str().unwrap();
        let path = path.replace("ROOT", root);
        let mut grant = Grant::none(GrantId::new("g"));
        grant.tools = tools.iter().map(|tool| Pattern::new(*tool)).collect();
        (grant.reads, grant.writes) = (reads.of(&tree.root), writes.of(&tree.root));
        grant.effect = effect;
        grant.environments = [Pattern::any()].into();

        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let prepared = runtime.block_on(async {
            let env: Arc<dyn ExecutionEnvironment> =
                Arc::new(LocalEnvironment::with_host_env(tree.root.join("w"), []).unwrap());
            let clock: Arc<dyn Clock> = Arc::new(pintle_agent::SystemClock);
            let session = SessionId::new("s");
            let gate =
                GrantGate::new(Arc::new(grant.clone()), session, Arc::clone(&env), "local", clock, Revocations::new());
            let mut registry = ToolRegistry::new();
            builtin::register_core(&mut registry).unwrap();
            let arguments = match tool {
                "read_file" => json!({ "file_path": path }),
                "grep" => json!({ "pattern": "x", "path": path }),
                "write_file" => json!({ "file_path": path, "content": "x" }),
                _ => json!({ "command": format!("cat {path}") }),
            };
            let call = ToolCall::new("c", tool, arguments.as_object().unwrap().clone());
            prepare(&registry, &[Arc::new(gate) as Arc<dyn Gate>], env.as_ref(), &call).await
        });
        let is_allowed = match prepared {
            Preparation::Ready { .. } => true,
            Preparation::Refused { judgement, .. } if !judgement.is_empty() => false,
            // The tool itself refused the path, such as an empty one.
            Preparation::Refused { .. } => return Ok(()),
            Preparation::Ask { .. } => panic!("a grant does not ask"),
        };

        let plain = without_dots(&tree.root.join("w").join(&path));
        let real = tree.real(&plain);
        // A call that changes a link may change what it leads to, or the link.
        let link = plain.parent().and_then(|parent| tree.real(parent)).zip(plain.file_name());
        let link = link.map_or_else(|| plain.clone(), |(parent, name)| parent.join(name));
        let needed = match tool {
            "read_file" | "grep" => EffectCeiling::Read,
            "write_file" => EffectCeiling::Write,
            _ => EffectCeiling::Execute,
        };
        let is_within = match (tool, &real) {
            ("shell", _) => true,
            (_, None) => false,
            ("write_file", Some(real)) => writes.contains(&tree.root, real) && writes.contains(&tree.root, &link),
            // A directory is read with everything below it.
            (_, Some(real)) => reads.contains(&tree.root, real) && !reads.excludes_below(&tree.root, real),
        };
        let is_granted = tools.iter().any(|granted| *granted == "*" || *granted == tool)
            && effect >= needed
            && is_within;
        prop_assert_eq!(is_allowed, is_granted, "{} {} leads to {:?}", tool, path, real);
        prop_assert!(tree.directory.path().exists());
    }
}
