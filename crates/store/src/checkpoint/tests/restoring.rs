//! Planning and carrying out restores.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use pintle_env::EnvError;

use super::workspace::{Workspace, left_alone, steps};
use crate::checkpoint::*;

#[tokio::test]
async fn every_kind_of_change_is_undone() {
    // The tree, its changes, and the steps of the restore.
    let cases: &[(&[&str], &[&str], &[&str])] = &[
        (&["a = 1"], &[], &[]),
        (&["a = 1"], &["a = 2"], &["Overwrite a"]),
        (&["a = 1"], &["- a"], &["Create a"]),
        (&[], &["a = 1"], &["Remove a"]),
        (&[], &["d/e/f = 1"], &["Remove d", "Remove d/e", "Remove d/e/f"]),
        (&["d/e/"], &["- d"], &["Create d", "Create d/e"]),
        (&["a = 1", "a : 600"], &["- a"], &["Create a"]),
        (&["a = 1", "a : 4755"], &["a = 2", "a : 644"], &["Overwrite a"]),
        (&["a = 1", "a : 444"], &["a : 755"], &["SetMode a"]),
        (&["a = 1", "a : 444"], &["a : 644", "a = 2", "a : 444"], &["Overwrite a"]),
        (&["a = 1", "a : 464"], &["a : 644", "a = 2", "a : 464"], &["Overwrite a"]),
        (&["a = 1", "a : 446"], &["a : 644", "a = 2", "a : 446"], &["Overwrite a"]),
        (&["d/a = 1", "d : 500"], &["d : 777", "d/a = 2"], &["SetMode d", "Overwrite d/a"]),
        (&["d/a = 1", "d : 2770"], &["- d"], &["Create d", "Create d/a"]),
        (&["l -> a"], &["l -> b"], &["Overwrite l"]),
        (&["l -> a"], &["- l"], &["Create l"]),
        (&["a = 1"], &["a -> b"], &["Replace a"]),
        (&["a -> b"], &["a = 1"], &["Replace a"]),
        (&["a = 1"], &["a/b/c = 1", "a/e/"], &["Replace a", "Remove a/b", "Remove a/b/c", "Remove a/e"]),
        (&["a/b/c = 1"], &["a = 1"], &["Replace a", "Create a/b", "Create a/b/c"]),
        (&["a -> x"], &["a/b = 1"], &["Replace a", "Remove a/b"]),
        (&["a/b = 1"], &["a -> x"], &["Replace a", "Create a/b"]),
        (&["a/b = 1", "x/b = 2"], &["a -> x"], &["Replace a", "Create a/b"]),
        (&["a/b/c = 1"], &["a/b = 1"], &["Replace a/b", "Create a/b/c"]),
    ];
    for (tree, changes, expected) in cases {
        let workspace = Workspace::with(tree);
        let before = workspace.snapshot();
        let target = workspace.take(None).await.manifest;
        workspace.apply(changes);
        let changed = workspace.snapshot();
        let present = workspace.take(None).await.manifest;
        let plan = workspace.restore(&target).await;
        assert_eq!(steps(&plan), *expected, "{tree:?} {changes:?}");
        assert_eq!(left_alone(&plan), [] as [&str; 0], "{tree:?} {changes:?}");
        assert_eq!(workspace.snapshot(), before, "{tree:?} {changes:?}");
        // The restore can be undone.
        workspace.restore(&present).await;
        assert_eq!(workspace.snapshot(), changed, "{tree:?} {changes:?}");
    }
}

#[tokio::test]
async fn files_get_fresh_time_stamps() {
    let workspace = Workspace::with(&["a = 1", "b = 1"]);
    let hour = Duration::from_secs(3600);
    let old = SystemTime::UNIX_EPOCH + hour;
    std::fs::File::options().write(true).open(workspace.at("a")).unwrap().set_modified(old).unwrap();
    let target = workspace.take(None).await.manifest;
    workspace.apply(&["a = 2"]);
    workspace.restore(&target).await;
    assert!(std::fs::metadata(workspace.at("a")).unwrap().modified().unwrap() > old + hour);
}

#[tokio::test]
async fn ignored_files_and_git_data_stay() {
    let ignored = [
        "x.log = 1",
        "build/out = 2",
        "d/y.log = 3",
        "new/z.log = 4",
        ".git/index = git",
        "n/.git/HEAD = git",
    ];
    let workspace = Workspace::with(&[".gitignore = *.log\nbuild/\n", "d/a = 1"]);
    let target = workspace.take(None).await.manifest;
    workspace.apply(&ignored);
    workspace.apply(&["d/a = 2", "new/b = 1"]);
    let plan = workspace.plan(&target).await;
    let restored = workspace.carry_out(&plan).await;
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(restored.kept_directories, ["n", "new"].map(Path::new));
    let expected = Workspace::with(&[".gitignore = *.log\nbuild/\n", "d/a = 1"]);
    expected.apply(&ignored);
    assert_eq!(workspace.snapshot(), expected.snapshot());
}

#[tokio::test]
async fn file_that_is_ignored_now_is_not_overwritten() {
    let workspace = Workspace::with(&["a.log = 1", "out/b = 1", "c = 1"]);
    let target = workspace.take(None).await.manifest;
    workspace.apply(&[".gitignore = *.log\nout/\n", "a.log = mine", "out/b = mine", "c = 2"]);
    let plan = workspace.restore(&target).await;
    assert_eq!(steps(&plan), ["Remove .gitignore", "Overwrite c"]);
    assert_eq!(
        left_alone(&plan),
        ["a.log: ignored by a.log", "out: ignored by out", "out/b: blocked by out"]
    );
    for name in ["a.log", "out/b"] {
        assert_eq!(std::fs::read_to_string(workspace.at(name)).unwrap(), "mine");
    }
}

/// The rules are changed, and changed back by the restore: what they ignored was never part of a checkpoint.
#[tokio::test]
async fn file_that_was_ignored_then_is_not_removed() {
    let workspace = Workspace::with(&[".gitignore = .env\nbuild/\n", ".env = key", "build/out = 1", "a = 1"]);
    let target = workspace.take(None).await.manifest;
    assert_eq!(
        target.ignored().iter().map(PathBuf::as_path).collect::<Vec<_>>(),
        [".env", "build"].map(Path::new)
    );
    let before = workspace.snapshot();
    workspace.apply(&[".gitignore = nothing\n", "a = 2"]);
    let present = workspace.take(None).await.manifest;
    assert!(present.entries().contains_key(Path::new("build/out")));
    assert_eq!(target.compare(&present).unknown, [".env", "build", "build/out"].map(Path::new));
    let plan = workspace.restore(&target).await;
    assert_eq!(steps(&plan), ["Overwrite .gitignore", "Overwrite a"]);
    assert_eq!(
        left_alone(&plan),
        [".env: ignored by .env", "build: ignored by build", "build/out: ignored by build"]
    );
    assert_eq!(workspace.snapshot(), before);
}

#[tokio::test]
async fn directory_with_something_else_is_a_conflict() {
    for (extra, by) in [("a/x.log = mine", "a/x.log"), ("a/b/.git/HEAD = mine", "a/b/.git")] {
        let workspace = Workspace::with(&[".gitignore = *.log\n", "a = 1", "c = 1"]);
        let target = workspace.take(None).await.manifest;
        workspace.apply(&["a/b/in = 2", extra, "c = 2"]);
        let plan = workspace.restore(&target).await;
        assert_eq!(steps(&plan), ["Overwrite c"]);
        let blocked = |path: &str| format!("{path}: blocked by a");
        assert_eq!(left_alone(&plan), [format!("a: occupied by {by}"), blocked("a/b"), blocked("a/b/in")]);
        assert_eq!(plan.conflicts().count(), 3);
        assert_eq!(std::fs::read_to_string(workspace.at("a/b/in")).unwrap(), "2");
        assert!(workspace.at(by).exists());
    }
}

#[tokio::test]
async fn changes_of_others_are_listed() {
    let workspace = Workspace::with(&["a = 1", "b = 1", "c = 1", "d = 1", "e = 1"]);
    let target = workspace.take(None).await.manifest;
    workspace.apply(&["a = 2", "b = 2", "- d", "known = 1"]);
    let newest = workspace.take(None).await.manifest;
    // Somebody else: `b` again, `c` for the first time, `d` is back as it was, `e` gone, and a new file.
    workspace.apply(&["b = 3", "c = 3", "d = 1", "- e", "new = 1"]);
    let present = workspace.take(None).await.manifest;
    let plan = workspace.plan_with(&target, &newest, &present).await;
    assert_eq!(
        steps(&plan),
        ["Overwrite a", "Overwrite b", "Overwrite c", "Create e", "Remove known", "Remove new"]
    );
    assert_eq!(plan.foreign, ["b", "c", "e", "new"].map(Path::new));
    // The caller may leave them out.
    let mut own = plan.clone();
    own.steps.retain(|step| !plan.foreign.contains(&step.path));
    assert!(workspace.carry_out(&own).await.is_complete());
    let content = |name: &str| std::fs::read_to_string(workspace.at(name)).ok();
    assert_eq!(
        ["a", "b", "c", "e", "new", "known"].map(content),
        [Some("1".to_owned()), Some("3".to_owned()), Some("3".to_owned()), None, Some("1".to_owned()), None]
    );
}

#[tokio::test]
async fn what_changes_after_the_plan_is_left_alone() {
    let workspace = Workspace::with(&["a = 1", "b = 1", "c = 1", "d/x = 1", "f = 1"]);
    let target = workspace.take(None).await.manifest;
    workspace.apply(&["a = 2", "b = 2", "- c", "- d/x", "f : 600", "new = 1"]);
    let plan = workspace.plan(&target).await;
    std::fs::create_dir(workspace.directory.path().join("outside")).unwrap();
    // `b` is touched and has the same content, and the directory of `d/x` now leads out of the root.
    workspace.apply(&["a = mine", "b = 2", "c = mine", "d -> ../outside", "f : 640", "new = mine"]);
    let restored = workspace.carry_out(&plan).await;
    assert_eq!(restored.done, [Path::new("b")]);
    assert_eq!(restored.changed_meanwhile, ["a", "c", "d/x", "f", "new"].map(Path::new));
    assert!(restored.failed.is_empty() && !restored.is_complete());
    assert_eq!(std::fs::read_dir(workspace.directory.path().join("outside")).unwrap().count(), 0);
    assert_eq!(std::fs::read_to_string(workspace.at("a")).unwrap(), "mine");
}

#[tokio::test]
async fn interrupted_restore_continues() {
    let tree =
        ["a = 1", "b/c = 1", "b/d = 1", "e/", "f -> a", "g = 1", "g : 600", "h/i = 1", "h : 500", "k = 1"];
    let changes = ["a = 2", "b = 2", "- e", "f = 2", "- g", "- h", "new/x = 1", "k -> a"];
    for allowed in 0.. {
        let workspace = Workspace::with(&tree);
        let before = workspace.snapshot();
        let target = workspace.take(None).await.manifest;
        workspace.apply(&changes);
        let plan = workspace.plan(&target).await;
        workspace.env.changes_left.store(allowed, Ordering::Relaxed);
        let first = workspace.carry_out(&plan).await;
        workspace.env.changes_left.store(usize::MAX, Ordering::Relaxed);
        let named = first.done.len() + first.failed.len() + first.not_done.len();
        assert_eq!(named, plan.steps.len(), "{allowed}: {first:?}");
        if first.is_complete() {
            assert!(allowed > 10);
            assert_eq!(workspace.snapshot(), before);
            break;
        }
        let by_loss =
            |failure: &RestoreFailure| failure.error.to_string() == "the workspace is not accessible";
        assert!(first.failed.len() == 1 && first.failed.iter().all(by_loss), "{allowed}: {first:?}");
        // The same plan continues, but for a private file that is still empty.
        let second = workspace.carry_out(&plan).await;
        assert!(second.failed.is_empty() && second.not_done.is_empty(), "{allowed}: {second:?}");
        if !second.is_complete() {
            assert_eq!(second.changed_meanwhile, [Path::new("g")], "{allowed}");
            workspace.restore(&target).await;
        }
        assert_eq!(workspace.snapshot(), before, "{allowed}");
    }
}

#[tokio::test]
async fn the_error_of_a_write_comes_before_that_of_the_mode_after_it() {
    let workspace = Workspace::with(&["a = 1", "a : 444"]);
    let target = workspace.take(None).await.manifest;
    workspace.apply(&["a : 644", "a = 2", "a : 444"]);
    let plan = workspace.plan(&target).await;
    workspace.env.fails_at_write.store(true, Ordering::Relaxed);
    let restored = workspace.carry_out(&plan).await;
    let [failure] = restored.failed.as_slice() else { panic!("{restored:?}") };
    let is_of_write = matches!(failure.error, CheckpointError::Environment(EnvError::Refused { .. }));
    assert!(is_of_write, "{failure:?}");
}

#[tokio::test]
async fn removed_content_is_a_failure_that_changes_nothing() {
    let workspace = Workspace::with(&["a = 1", "b = 2", "c = 3"]);
    let target = workspace.take(None).await.manifest;
    workspace.apply(&["a = x", "b/in = x", "c = x"]);
    let plan = workspace.plan(&target).await;
    for content in [b"1", b"2"] {
        workspace.blobs.0.lock().unwrap().remove(&crate::hash::Hash::of(content));
    }
    let restored = workspace.carry_out(&plan).await;
    let failed: Vec<_> = restored.failed.iter().map(|failure| failure.path.to_str().unwrap()).collect();
    assert_eq!(failed, ["a", "b"]);
    assert!(restored.failed.iter().all(|failure| matches!(failure.error, CheckpointError::Removed(_))));
    assert_eq!(std::fs::read_to_string(workspace.at("a")).unwrap(), "x");
    assert_eq!(std::fs::read_to_string(workspace.at("c")).unwrap(), "3");
}

#[tokio::test]
async fn git_repository_keeps_its_index_and_objects() {
    let workspace = Workspace::with(&[".gitignore = *.log\n", "a = 1\n", "d/b = 1\n", "x.log = 1"]);
    workspace.run("git init -q . && git -c user.name=t -c user.email=t@localhost add -A").await;
    workspace.run("git init -q nested && echo 1 >nested/file && git -C nested add -A").await;
    let git = |snapshot: std::collections::BTreeMap<PathBuf, super::workspace::Found>| {
        let mut data = snapshot;
        data.retain(|path, _| path.iter().any(|name| name == ".git") || path == Path::new("x.log"));
        data
    };
    let before = workspace.snapshot();
    let target = workspace.take(None).await.manifest;
    workspace.apply(&["a = 2\n", "- d", "- nested/file", "nested/other = 1", "new/c = 1\n"]);
    workspace.run("git add a && git rm -q --cached d/b").await;
    let changed = git(workspace.snapshot());
    assert_ne!(changed, git(before.clone()));
    workspace.restore(&target).await;
    assert_eq!(git(workspace.snapshot()), changed);
    let others = |mut snapshot: std::collections::BTreeMap<PathBuf, super::workspace::Found>| {
        snapshot.retain(|path, _| !path.iter().any(|name| name == ".git"));
        snapshot
    };
    assert_eq!(others(workspace.snapshot()), others(before));
}

#[tokio::test]
async fn directory_that_is_itself_a_link_is_a_root() {
    let workspace = Workspace::with(&["real/a = 1", "alias -> real"]);
    let alias = workspace.at("alias");
    let take_now = async || {
        take(workspace.env.as_ref(), &alias, &workspace.blobs, None, &workspace.limits)
            .await
            .unwrap()
            .manifest
    };
    let target = take_now().await;
    workspace.apply(&["real/a = 2", "real/b = 2"]);
    let present = take_now().await;
    let plan = plan_restore(workspace.env.as_ref(), &alias, &target, &present, &present).await.unwrap();
    assert!(workspace.carry_out(&plan).await.is_complete());
    assert_eq!(std::fs::read_to_string(workspace.at("real/a")).unwrap(), "1");
    assert!(!workspace.at("real/b").exists());
}
