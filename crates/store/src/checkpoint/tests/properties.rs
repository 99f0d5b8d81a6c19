//! Random trees and random changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::workspace::{Found, Workspace, path};
use crate::checkpoint::*;

/// Names of entries; those that end with `.ign` are ignored.
const NAMES: [&[u8]; 7] = [b"a", b"b", b"c", b"n\nl", b"\xff", b"x%", b"d.ign"];

#[derive(Clone, Debug)]
enum Change {
    Write(PathBuf, Vec<u8>, u32),
    Create(PathBuf, u32),
    Link(PathBuf, PathBuf),
    Remove(PathBuf),
}

fn any_path(names: &'static [&'static [u8]]) -> impl Strategy<Value = PathBuf> {
    let name = prop::sample::select(names).prop_map(path);
    prop::collection::vec(name, 1..4).prop_map(|names| names.iter().collect())
}

fn any_change(names: &'static [&'static [u8]]) -> impl Strategy<Value = Change> {
    let content = prop::collection::vec(prop::sample::select(b"\0\nab\xff".as_slice()), 0..4);
    let target = prop_oneof![any_path(&NAMES), Just(PathBuf::from("../../..")), Just(PathBuf::from("/"))];
    let file_mode = prop::sample::select([0o644, 0o755, 0o600, 0o444].as_slice());
    let directory_mode = prop::sample::select([0o755, 0o700, 0o750].as_slice());
    prop_oneof![
        4 => (any_path(names), content, file_mode)
            .prop_map(|(path, content, mode)| Change::Write(path, content, mode)),
        2 => (any_path(names), directory_mode).prop_map(|(path, mode)| Change::Create(path, mode)),
        2 => (any_path(names), target).prop_map(|(path, target)| Change::Link(path, target)),
        3 => any_path(names).prop_map(Change::Remove),
    ]
}

fn apply(workspace: &Workspace, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Write(path, content, mode) => {
                workspace.write(path, content);
                workspace.set_mode(path, *mode);
            }
            Change::Create(path, mode) => {
                workspace.create(path);
                workspace.set_mode(path, *mode);
            }
            Change::Link(path, target) => workspace.link(path, target),
            Change::Remove(path) => {
                // Nothing is removed through a link.
                let parent = workspace.at(path.parent().unwrap_or(Path::new("")));
                if parent.canonicalize().is_ok_and(|real| real == parent) {
                    workspace.remove(path);
                }
            }
        }
    }
}

fn is_ignored(path: &Path) -> bool {
    path.iter().any(|name| name == "d.ign" || name == ".git")
}

fn parts(snapshot: BTreeMap<PathBuf, Found>) -> (BTreeMap<PathBuf, Found>, BTreeMap<PathBuf, Found>) {
    snapshot.into_iter().partition(|(path, _)| is_ignored(path))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// The changes create nothing that is ignored, so that nothing is in the way.
    #[test]
    fn restore_gives_back_the_tree(
        tree in prop::collection::vec(any_change(&NAMES), 0..12),
        changes in prop::collection::vec(any_change(&NAMES[..6]), 0..12),
        is_repository: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let workspace = Workspace::with(&[".gitignore = *.ign\n"]);
            if is_repository {
                workspace.apply(&[".git/index = git", ".git/objects/aa = git"]);
            }
            apply(&workspace, &tree);
            let (_, before) = parts(workspace.snapshot());
            let target = workspace.take(None).await;
            let loaded = Manifest::load(&workspace.blobs, &target.id).await.unwrap();
            assert_eq!(loaded, target.manifest);
            assert!(!loaded.is_partial());
            apply(&workspace, &changes);
            let (ignored, changed) = parts(workspace.snapshot());
            let present = workspace.take(Some(&loaded)).await.manifest;
            assert_eq!(present.compare(&workspace.take(None).await.manifest), Comparison::default());
            assert_eq!(before == changed, loaded.compare(&present) == Comparison::default());

            let plan = workspace.plan_with(&loaded, &present, &present).await;
            assert_eq!(plan.left_alone, []);
            assert_eq!(plan.foreign, [] as [&Path; 0]);
            let restored = workspace.carry_out(&plan).await;
            assert!(restored.is_complete(), "{restored:?}");
            let (ignored_after, mut after) = parts(workspace.snapshot());
            // A directory with ignored files stays.
            for kept in &restored.kept_directories {
                assert!(ignored.keys().any(|path| path.starts_with(kept)));
                after.remove(kept);
            }
            assert_eq!(after, before);
            assert_eq!(ignored_after, ignored);
            assert!(workspace.carry_out(&plan).await.is_complete(), "again");

            // Undone.
            let plan = workspace.plan(&present).await;
            assert!(workspace.carry_out(&plan).await.is_complete());
            let (ignored_after, after) = parts(workspace.snapshot());
            assert_eq!(after, changed);
            assert_eq!(ignored_after, ignored);
        });
    }

    /// Anything may be in the way; whatever is left alone is named, and nothing that is ignored changes.
    #[test]
    fn what_a_restore_does_not_give_back_is_named(
        tree in prop::collection::vec(any_change(&NAMES), 0..12),
        changes in prop::collection::vec(any_change(&NAMES), 0..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let workspace = Workspace::with(&[".gitignore = *.ign\n"]);
            apply(&workspace, &tree);
            let (_, before) = parts(workspace.snapshot());
            let target = workspace.take(None).await.manifest;
            apply(&workspace, &changes);
            let (ignored, _) = parts(workspace.snapshot());
            let plan = workspace.plan(&target).await;
            let restored = workspace.carry_out(&plan).await;
            assert!(restored.is_complete(), "{restored:?}");
            let (ignored_after, after) = parts(workspace.snapshot());
            assert_eq!(ignored_after, ignored);
            let named = |path: &Path| {
                let is_left = plan.left_alone.iter().any(|left| {
                    // A directory that contains what is left alone stays as well.
                    path.starts_with(&left.path) || left.path.starts_with(path)
                });
                is_left || restored.kept_directories.iter().any(|kept| kept == path)
            };
            let paths = before.keys().chain(after.keys());
            for path in paths.filter(|path| before.get(*path) != after.get(*path)) {
                assert!(named(path), "{path:?} differs: {plan:?}");
            }
        });
    }

    /// The rules change as well: what they ignored at either time does not.
    #[test]
    fn what_was_ever_ignored_stays(
        tree in prop::collection::vec(any_change(&NAMES), 0..12),
        changes in prop::collection::vec(any_change(&NAMES), 0..12),
        rules in prop::collection::vec(any_rules(), 2),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let workspace = Workspace::new();
            apply(&workspace, &tree);
            workspace.write(Path::new(".gitignore"), rules[0].as_bytes());
            let target = workspace.take(None).await.manifest;
            apply(&workspace, &changes);
            workspace.write(Path::new(".gitignore"), rules[1].as_bytes());
            let present = workspace.take(None).await.manifest;
            let before = workspace.snapshot();
            let plan = workspace.plan_with(&target, &present, &present).await;
            let restored = workspace.carry_out(&plan).await;
            assert!(restored.is_complete(), "{restored:?}");
            let after = workspace.snapshot();
            let is_ignored = |manifest: &Manifest, path: &Path| {
                matches!(manifest.presence(path), Presence::Ignored(_))
            };
            for (path, found) in &before {
                if is_ignored(&target, path) || is_ignored(&present, path) {
                    assert_eq!(after.get(path), Some(found), "{path:?}: {plan:?}");
                }
            }
        });
    }
}

/// Returns the content of an ignore file.
fn any_rules() -> impl Strategy<Value = String> {
    let rule =
        prop::sample::select(["*.ign", "a", "/b", "c/", "!a", "a/b", "/a/*", "x%", "# none"].as_slice());
    prop::collection::vec(rule, 0..4).prop_map(|rules| rules.join("\n"))
}
