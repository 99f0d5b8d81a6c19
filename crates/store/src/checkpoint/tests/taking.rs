//! Taking checkpoints.

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pintle_env::{ExecutionEnvironment, MemoryEnvironment};

use super::workspace::{InMemory, Workspace, path};
use crate::checkpoint::take::take_after;
use crate::checkpoint::*;
use crate::hash::Hash;

fn paths(manifest: &Manifest) -> Vec<&str> {
    manifest.entries().keys().map(|path| path.to_str().unwrap()).collect()
}

#[tokio::test]
async fn checkpoint_has_what_is_not_ignored() {
    let workspace = Workspace::with(&[
        ".gitignore = *.log\nbuild/\n",
        "a.txt = content",
        "a.txt : 755",
        "x.log = ignored",
        "build/out = ignored",
        "empty/",
        "link -> a.txt",
        "broken -> nowhere",
        ".git/config = git",
        "nested/.git/HEAD = git",
        "nested/file = nested",
        "nested/x.log = of another repository",
    ]);
    let checkpoint = workspace.take(None).await;
    let manifest = &checkpoint.manifest;
    assert_eq!(
        paths(manifest),
        [".gitignore", "a.txt", "broken", "empty", "link", "nested", "nested/file", "nested/x.log"]
    );
    assert!(!manifest.is_partial());
    let entry = &manifest.entries()[Path::new("a.txt")];
    assert_eq!(entry.state, EntryState::File { hash: Hash::of(b"content"), size: 7 });
    assert_eq!(entry.mode, Some(0o755));
    let link = &manifest.entries()[Path::new("link")];
    assert_eq!(link.state, EntryState::Symlink { target: "a.txt".into() });
    let loaded = Manifest::load(&workspace.blobs, &checkpoint.id).await.unwrap();
    assert_eq!(&loaded, manifest);
    for hash in manifest.blobs() {
        assert!(workspace.blobs.0.lock().unwrap().contains_key(&hash));
    }
}

/// The environment may have the latest walk for a checkpoint around a call. A decision about files needs another one.
#[tokio::test]
async fn workspace_is_listed_again_for_single_checkpoints_and_restores() {
    let workspace = Workspace::with(&["a = 1"]);
    let (env, root) = (workspace.env.as_ref(), workspace.root.as_path());
    for (is_fresh, walks) in [(false, 0), (true, 1)] {
        take_after(env, root, &workspace.blobs, None, &workspace.limits, is_fresh).await.unwrap();
        assert_eq!(env.take_fresh_walks(), walks);
    }
    let target = workspace.take(None).await.manifest;
    assert_eq!(env.take_fresh_walks(), 1);
    observe(env, root, None, &workspace.limits).await.unwrap();
    assert_eq!(env.take_fresh_walks(), 1);
    workspace.apply(&["a = 2"]);
    let plan = workspace.plan(&target).await;
    env.take_fresh_walks();
    workspace.carry_out(&plan).await;
    assert!(env.take_fresh_walks() > 0);
}

#[tokio::test]
async fn unchanged_files_are_not_read_again() {
    let workspace = Workspace::with(&["a = 1", "b/c = 2", "d = 3", "link -> a"]);
    workspace.settle().await;
    let first = workspace.take(None).await;
    assert_eq!(workspace.env.take_files_read(), 3);
    let second = workspace.take(Some(&first.manifest)).await;
    assert_eq!(workspace.env.take_files_read(), 0);
    assert_eq!(second, first);
    // Same size, and a new mode.
    workspace.apply(&["a = 9", "d : 600"]);
    let third = workspace.take(Some(&second.manifest)).await;
    assert_eq!(workspace.env.take_files_read(), 2);
    let kinds: Vec<_> =
        first.manifest.compare(&third.manifest).changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::Modified, ChangeKind::ModeChanged]);
    // A list that is not kept reads the same files.
    let observed =
        observe(workspace.env.as_ref(), &workspace.root, Some(&second.manifest), &workspace.limits);
    assert_eq!(observed.await.unwrap().compare(&third.manifest), Comparison::default());
}

#[tokio::test]
async fn an_unchanged_workspace_has_the_previous_checkpoint() {
    let workspace = Workspace::with(&["a = 1", "b/c = 2", "link -> a"]);
    workspace.settle().await;
    let next = async |previous: Option<&Checkpoint>| {
        let (env, root) = (workspace.env.as_ref(), workspace.root.as_path());
        let taken =
            take_after(env, root, &workspace.blobs, previous, &workspace.limits, false).await.unwrap();
        (matches!(taken, Cow::Borrowed(_)), taken.into_owned())
    };
    let (is_previous, first) = next(None).await;
    assert!(!is_previous);
    // Without its blob, a manifest that is encoded and kept again would be found.
    workspace.blobs.0.lock().unwrap().remove(&first.id);
    assert_eq!(next(Some(&first)).await, (true, first.clone()));
    assert!(!workspace.blobs.0.lock().unwrap().contains_key(&first.id));
    workspace.apply(&["a : 600"]);
    let (is_previous, changed) = next(Some(&first)).await;
    assert!(!is_previous && changed.id != first.id);
    assert!(workspace.blobs.0.lock().unwrap().contains_key(&changed.id));
}

#[tokio::test]
async fn new_file_is_read_again_until_it_is_settled() {
    let workspace = Workspace::new();
    // The second content may get the identity of the first.
    for round in 0..50 {
        workspace.write(Path::new("a"), b"1");
        let first = workspace.take(None).await;
        let second = format!("{}", round % 10);
        std::fs::write(workspace.at("a"), &second).unwrap();
        let manifest = workspace.take(Some(&first.manifest)).await.manifest;
        let expected = EntryState::File { hash: Hash::of(second.as_bytes()), size: 1 };
        assert_eq!(manifest.entries()[Path::new("a")].state, expected);
    }
}

#[tokio::test]
async fn any_names_are_kept() {
    let workspace = Workspace::new();
    let names = [b"\xff\xfe".as_slice(), b"two\nlines", b"100%", b" ", b"-rf", b"d\xff/in\nside", b"\""];
    for name in names {
        workspace.write(&path(name), name);
    }
    workspace.link(&path(b"li\xffnk"), &path(b"to\n\xff"));
    let before = workspace.snapshot();
    let checkpoint = workspace.take(None).await;
    let manifest = Manifest::load(&workspace.blobs, &checkpoint.id).await.unwrap();
    for name in names {
        workspace.remove(&path(name));
    }
    workspace.remove(&path(b"d\xff"));
    workspace.remove(&path(b"li\xffnk"));
    workspace.restore(&manifest).await;
    assert_eq!(workspace.snapshot(), before);
}

#[tokio::test]
async fn environment_without_identities_and_links_works() {
    let memory = MemoryEnvironment::new("/p").with_file("a", "1").with_file("d/b", "2").with_directory("e");
    let (blobs, limits) = (InMemory::default(), CheckpointLimits::default());
    let root = Path::new("");
    let first = take(&memory, root, &blobs, None, &limits).await.unwrap().manifest;
    assert_eq!(paths(&first), ["a", "d", "d/b", "e"]);
    memory.write(Path::new("a"), b"changed").await.unwrap();
    memory.remove(Path::new("d/b")).await.unwrap();
    memory.remove(Path::new("d")).await.unwrap();
    memory.write(Path::new("e/new/file"), b"3").await.unwrap();
    let second = take(&memory, root, &blobs, Some(&first), &limits).await.unwrap().manifest;
    let plan = plan_restore(&memory, root, &first, &second, &second).await.unwrap();
    assert_eq!(plan.foreign, [] as [&Path; 0]);
    let env: std::sync::Arc<dyn ExecutionEnvironment> = std::sync::Arc::new(memory.clone());
    assert!(restore(&env, &plan, &blobs).await.unwrap().is_complete());
    let third = take(&memory, root, &blobs, None, &limits).await.unwrap().manifest;
    assert_eq!(third, first);
}

#[tokio::test]
async fn contents_are_read_in_batches() {
    let workspace = Workspace::new();
    for number in 0..600 {
        workspace.write(Path::new(&format!("many/{number}")), format!("{}", number / 2).as_bytes());
    }
    for (name, size) in [("large/a", 9 << 20), ("large/b", 7 << 20), ("large/c", 2 << 20), ("z", 1)] {
        workspace.write(Path::new(name), &vec![b'x'; size]);
    }
    let before = workspace.snapshot();
    let manifest = workspace.take(None).await.manifest;
    assert!(!manifest.is_partial());
    assert_eq!(workspace.env.largest_read.load(Ordering::Relaxed), 9 << 20);
    assert!(workspace.env.most_files_read.load(Ordering::Relaxed) <= 256);
    workspace.apply(&["- many", "- large"]);
    workspace.restore(&manifest).await;
    assert_eq!(workspace.snapshot(), before);
}

/// Values of an incomplete checkpoint are kept, so that the next checkpoint continues.
#[tokio::test]
async fn dropped_checkpoint_leaves_the_workspace_alone() {
    let workspace = Workspace::with(&["a = 1", "b = 2"]);
    let before = workspace.snapshot();
    *workspace.env.delay.lock().unwrap() = Duration::from_secs(600);
    let taken = tokio::time::timeout(Duration::from_millis(50), workspace.take(None)).await;
    assert!(taken.is_err());
    *workspace.env.delay.lock().unwrap() = Duration::ZERO;
    assert_eq!(workspace.snapshot(), before);
    assert!(!workspace.take(None).await.manifest.is_partial());
}

#[tokio::test]
async fn missing_directory_is_an_error() {
    let workspace = Workspace::new();
    let taken =
        take(workspace.env.as_ref(), Path::new("gone"), &workspace.blobs, None, &workspace.limits).await;
    assert!(matches!(taken, Err(CheckpointError::Environment(_))));
    let unknown = Manifest::load(&workspace.blobs, &Hash::of(b"unknown")).await;
    assert!(matches!(unknown, Err(CheckpointError::Removed(_))));
}
