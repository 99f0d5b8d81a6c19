//! Partial checkpoints.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::workspace::{InMemory, Workspace, left_alone, steps};
use crate::checkpoint::*;

#[tokio::test]
async fn large_files_are_named_and_left_alone() {
    let mut workspace = Workspace::with(&["large = 123456", "small = 1", "grows = 1", "shrinks = 123456"]);
    workspace.limits = workspace.limits.with_max_file_size(5);
    let manifest = workspace.take(None).await.manifest;
    assert!(manifest.is_partial());
    let gaps: Vec<_> = manifest.gaps().collect();
    assert_eq!(
        gaps,
        [(Path::new("large"), ContentGap::TooLarge), (Path::new("shrinks"), ContentGap::TooLarge)]
    );
    workspace.apply(&["large = 1234567", "small = 2", "grows = 123456", "shrinks = 1", "other = 1234567"]);
    let plan = workspace.restore(&manifest).await;
    assert_eq!(steps(&plan), ["Overwrite small"]);
    assert_eq!(
        left_alone(&plan),
        [
            "grows: not known now",
            "large: not in checkpoint",
            "other: not known now",
            "shrinks: not in checkpoint"
        ]
    );
    for (name, content) in [("large", "1234567"), ("small", "1"), ("grows", "123456"), ("shrinks", "1")] {
        assert_eq!(std::fs::read_to_string(workspace.at(name)).unwrap(), content, "{name}");
    }
}

#[tokio::test]
async fn unlisted_files_are_left_alone() {
    let mut workspace = Workspace::with(&["a = 1", "b/c = 2", "d = 3", "e = 4"]);
    let all = workspace.take(None).await.manifest;
    workspace.limits = workspace.limits.with_max_files(2);
    let some = workspace.take(None).await.manifest;
    assert_eq!((some.unlisted(), some.is_partial()), (Some(ListingLimit::Files), true));
    let paths: Vec<_> = some.entries().keys().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(paths, ["a", "b", "b/c"]);
    workspace.apply(&["a = changed", "- b", "d = changed", "new = 5"]);
    // Only what the checkpoint has is restored.
    workspace.limits = workspace.limits.with_max_files(100);
    let plan = workspace.restore(&some).await;
    assert_eq!(steps(&plan), ["Overwrite a", "Create b", "Create b/c"]);
    assert_eq!(left_alone(&plan), ["d: not in checkpoint", "e: not in checkpoint", "new: not in checkpoint"]);
    // Only what is listed now is changed.
    workspace.apply(&["a = changed", "e = changed"]);
    workspace.limits = workspace.limits.with_max_files(1);
    let plan = workspace.restore(&all).await;
    assert_eq!(steps(&plan), ["Overwrite a"]);
    assert_eq!(std::fs::read_to_string(workspace.at("e")).unwrap(), "changed");
}

#[tokio::test]
async fn time_limit_ends_a_checkpoint_and_the_next_one_continues() {
    let mut workspace = Workspace::with(&["a = 1", "b = 2"]);
    workspace.settle().await;
    workspace.limits = workspace.limits.clone().with_time(Duration::ZERO);
    let none = workspace.take(None).await.manifest;
    assert_eq!((none.unlisted(), none.entries().len()), (Some(ListingLimit::Time), 0));
    // The list is complete, and reading takes longer than the limit.
    *workspace.env.delay.lock().unwrap() = Duration::from_secs(600);
    workspace.limits = workspace.limits.with_time(Duration::from_secs(2));
    let listed = workspace.take(None).await.manifest;
    assert_eq!(listed.unlisted(), None);
    let gaps: Vec<_> = listed.gaps().collect();
    assert_eq!(gaps, [(Path::new("a"), ContentGap::Time), (Path::new("b"), ContentGap::Time)]);
    let plan = workspace.plan_with(&listed, &listed, &listed).await;
    assert_eq!(steps(&plan), [] as [&str; 0]);
    *workspace.env.delay.lock().unwrap() = Duration::ZERO;
    let whole = workspace.take(Some(&listed)).await.manifest;
    assert!(!whole.is_partial());
}

#[tokio::test]
async fn unreadable_files_and_directories_are_left_alone() {
    let workspace = Workspace::with(&["a = 1", "b = 2", "shut/c = 3", "open/d = 4"]);
    let all = workspace.take(None).await.manifest;
    workspace.env.unreadable.lock().unwrap().extend(["b".into(), "shut".into()]);
    let some = workspace.take(None).await.manifest;
    assert_eq!(some.gaps().collect::<Vec<_>>(), [(Path::new("b"), ContentGap::Unreadable)]);
    assert_eq!(some.unreadable_directories().collect::<Vec<_>>(), [Path::new("shut")]);
    assert_eq!(some.presence(Path::new("shut/c")), Presence::Unlisted);
    workspace.apply(&["a = changed", "b = changed", "shut/c = changed", "- open/d"]);
    let before = workspace.snapshot();
    let plan = workspace.plan(&all).await;
    assert_eq!(steps(&plan), ["Overwrite a", "Create open/d"]);
    assert_eq!(left_alone(&plan), ["b: not known now", "shut/c: not known now"]);
    assert_eq!(workspace.snapshot(), before);
    workspace.env.unreadable.lock().unwrap().clear();
    let plan = workspace.restore(&some).await;
    assert_eq!(steps(&plan), ["Overwrite a", "Create open/d"]);
    assert_eq!(left_alone(&plan), ["b: not in checkpoint", "shut/c: not in checkpoint"]);
}

#[tokio::test]
async fn special_files_are_left_alone() {
    let workspace = Workspace::with(&["a = 1", "d/x = 1"]);
    let before = workspace.take(None).await.manifest;
    workspace.apply(&["- a"]);
    workspace.run("mkfifo a d/pipe").await;
    let manifest = workspace.take(None).await.manifest;
    assert_eq!(manifest.entries()[Path::new("a")].state, EntryState::Other);
    assert!(!manifest.is_partial());
    let plan = workspace.restore(&before).await;
    assert_eq!(left_alone(&plan), ["a: not known now", "d/pipe: not known now"]);
    workspace.apply(&["e = 1"]);
    workspace.restore(&manifest).await;
    let names: Vec<_> =
        std::fs::read_dir(&workspace.root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[tokio::test]
async fn excluded_files_are_neither_kept_nor_shown_nor_restored() {
    let mut workspace = Workspace::with(&[".ssh/key = secret", "tokens = secret", "a = 1", "b/env = secret"]);
    let old = workspace.take(None).await.manifest;
    let excluded = [".ssh", "tokens", "b/env", "gone/below", ""].map(PathBuf::from);
    workspace.limits = workspace.limits.clone().with_excluded(excluded);
    workspace.blobs = InMemory::default();
    let taken = workspace.take(Some(&old)).await.manifest;
    let paths: Vec<_> = taken.entries().keys().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(paths, ["a", "b"]);
    assert!(!workspace.blobs.0.lock().unwrap().values().any(|bytes| bytes == b"secret"));
    assert_eq!(taken.presence(Path::new(".ssh/key")), Presence::Ignored(Path::new(".ssh")));
    assert_eq!(Manifest::decode(&taken.encode()).unwrap(), taken);

    workspace.apply(&[".ssh/key = changed", "- tokens", "a = 2", "b/env = changed", "gone/below = new"]);
    let before = workspace.snapshot();
    let present = workspace.take(None).await.manifest;
    for earlier in [&old, &taken] {
        let changed = earlier.compare(&present).changes;
        let paths: Vec<_> = changed.iter().map(|change| change.path.to_str().unwrap()).collect();
        assert_eq!(paths, ["a", "gone"]);
        // Also from a checkpoint that has them.
        let plan = workspace.plan(earlier).await;
        assert_eq!(steps(&plan), ["Overwrite a", "Remove gone"]);
    }
    assert_eq!(workspace.snapshot(), before);
}
