//! Walks of a tree that changes, with and without a report of the kernel.

use std::{
    fs::{File, OpenOptions, Permissions},
    io::Write as _,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use tempfile::TempDir;

use super::*;
use crate::{
    blocking::CancelFlag,
    host_files::{
        files::Files,
        tree::{self, ReadRules},
    },
    walk::WalkLimit,
};

/// A repository in a directory with an ignore file. It is in memory, whose changes are reported on any machine.
struct Repository {
    directory: TempDir,
    root: PathBuf,
    cache: WalkCache,
}

impl Repository {
    fn new() -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let root = directory.path().canonicalize().unwrap().join("outer/repository");
        for name in [".git/info", "below/deep"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let files =
            ["file", "below/deep/file", ".gitignore", ".git/info/exclude", "../.gitignore", "../.git"];
        for name in files {
            fs::write(root.join(name), "").unwrap();
        }
        symlink("file", root.join("link")).unwrap();
        Self { directory, root, cache: WalkCache::default() }
    }

    fn walk_as(&self, request: &WalkRequest) -> WalkOutput {
        let cancelled = CancelFlag::default();
        let walked = Files::Named.walk(request, &self.root, &cancelled, Some(&self.cache)).unwrap();
        // The files are younger than those of a real tree.
        if let Some(walked) = &mut self.cache.0.lock().unwrap().walked {
            walked.is_settled = true;
        }
        walked
    }

    fn walk(&self) -> WalkOutput {
        self.walk_as(&WalkRequest::new(&self.root))
    }

    /// Walks without the cache.
    fn list(&self) -> WalkOutput {
        Files::Named.walk(&WalkRequest::new(&self.root), &self.root, &CancelFlag::default(), None).unwrap()
    }
}

#[test]
fn unchanged_trees_are_not_listed_again() {
    let repository = Repository::new();
    let first = repository.walk();
    assert_eq!(first.entries.len(), 6, "{first:?}");
    // The time of the walk is the time of the first one.
    assert_eq!(repository.walk(), first);
    drop(File::open(repository.root.join("file")).unwrap());
    drop(fs::read_dir(repository.root.join("below")).unwrap());
    fs::write(repository.root.join(".git/index"), "of git").unwrap();
    assert_eq!(repository.walk(), first);
}

#[test]
fn every_change_of_a_tree_is_found() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 15] = [
        ("content", |root| fs::write(root.join("below/deep/file"), "new").unwrap()),
        ("content of a link's target", |root| fs::write(root.join("link"), "new").unwrap()),
        ("mode", |root| fs::set_permissions(root.join("file"), Permissions::from_mode(0o600)).unwrap()),
        ("mode of a directory", |root| {
            fs::set_permissions(root.join("below"), Permissions::from_mode(0o700)).unwrap();
        }),
        ("new file", |root| fs::write(root.join("below/new"), "").unwrap()),
        ("new directory with a file", |root| {
            fs::create_dir_all(root.join("below/deep/new")).unwrap();
            fs::write(root.join("below/deep/new/file"), "").unwrap();
        }),
        ("removed file", |root| fs::remove_file(root.join("below/deep/file")).unwrap()),
        ("renamed directory", |root| fs::rename(root.join("below"), root.join("moved")).unwrap()),
        ("directory moved away", |root| fs::rename(root.join("below"), root.join("../moved")).unwrap()),
        ("other link", |root| {
            fs::remove_file(root.join("link")).unwrap();
            symlink("below", root.join("link")).unwrap();
        }),
        ("ignore file", |root| fs::write(root.join(".gitignore"), "deep").unwrap()),
        ("exclude file", |root| fs::write(root.join(".git/info/exclude"), "deep").unwrap()),
        ("ignore file above", |root| fs::write(root.join("../.ignore"), "deep").unwrap()),
        ("repository above", |root| fs::remove_file(root.join("../.git")).unwrap()),
        ("other root", |root| {
            fs::rename(root, root.with_file_name("was")).unwrap();
            fs::create_dir(root).unwrap();
        }),
    ];
    for (name, change) in changes {
        let repository = Repository::new();
        let before = repository.walk();
        assert_eq!(repository.walk(), before, "{name}");
        change(&repository.root);
        let after = repository.walk();
        let listed = repository.list();
        assert_eq!((&after.entries, &after.ignored), (&listed.entries, &listed.ignored), "{name}");
        assert_ne!(after.started_ns, before.started_ns, "{name}");
    }
}

#[test]
fn walk_with_a_linked_ignore_file_is_not_kept() {
    let repository = Repository::new();
    let rules = repository.directory.path().join("rules");
    fs::write(&rules, "").unwrap();
    fs::remove_file(repository.root.join(".gitignore")).unwrap();
    symlink(&rules, repository.root.join(".gitignore")).unwrap();
    assert_eq!(repository.walk().ignored, Vec::<PathBuf>::new());
    fs::write(&rules, "deep\n").unwrap();
    assert_eq!(repository.walk().ignored, [Path::new("below/deep")]);
}

#[test]
fn files_that_are_open_for_writing_are_reported_when_they_are_closed() {
    let repository = Repository::new();
    let file = OpenOptions::new().append(true).open(repository.root.join("file")).unwrap();
    let before = repository.walk();
    // It may have been written through a memory map.
    drop(file);
    assert_ne!(repository.walk().started_ns, before.started_ns);
}

#[test]
fn fresh_walk_finds_what_is_not_reported() {
    let repository = Repository::new();
    let outside = repository.directory.path().join("outside");
    let before = repository.walk();
    fs::hard_link(repository.root.join("file"), &outside).unwrap();
    let mut file = OpenOptions::new().append(true).open(&outside).unwrap();
    file.write_all(b"new").unwrap();
    drop(file);
    let fresh = repository.walk_as(&WalkRequest::new(&repository.root).with_fresh(true));
    assert_eq!(fresh.entries, repository.list().entries);
    assert_ne!(fresh.entries, before.entries);
}

#[test]
fn walk_that_finds_hard_links_is_not_kept() {
    let repository = Repository::new();
    // The other name is in a directory that is not watched.
    fs::write(repository.root.join(".gitignore"), "ignored\n").unwrap();
    fs::create_dir(repository.root.join("ignored")).unwrap();
    fs::hard_link(repository.root.join("file"), repository.root.join("ignored/file")).unwrap();
    repository.walk();
    fs::write(repository.root.join("ignored/file"), "new").unwrap();
    assert_eq!(repository.walk().entries, repository.list().entries);
}

#[test]
fn change_during_a_walk_is_found_by_the_next_one() {
    let repository = Repository::new();
    let root = repository.root.as_path();
    fs::create_dir(root.join("ahead")).unwrap();
    fs::write(root.join("below/.gitignore"), "").unwrap();
    // This file is read after the directory `ahead` was listed.
    let read: ReadRules<'_> = &|path: &Path| {
        if path.ends_with("below/.gitignore") {
            fs::write(root.join("ahead/late"), "").unwrap();
        }
        Vec::new()
    };
    {
        let mut cached = repository.cache.start(root).unwrap();
        let request = WalkRequest::new(root);
        let directory = tree::open_root(root).unwrap();
        let cancelled = CancelFlag::default();
        tree::walk(directory, root, &request, None, read, &cancelled, Some(&mut cached)).unwrap();
    }
    assert_eq!(repository.walk().entries, repository.list().entries);
}

#[test]
fn only_walks_that_fit_are_used_again() {
    let repository = Repository::new();
    let few = WalkRequest::new(&repository.root).with_max_entries(1);
    assert_eq!(repository.walk_as(&few).reached, Some(WalkLimit::Entries));
    let all = repository.walk();
    assert!(all.is_complete());
    assert_eq!(repository.walk_as(&few).reached, Some(WalkLimit::Entries));
    assert_eq!(repository.walk().entries, all.entries);
    // A directory below the working directory is listed, and replaces nothing.
    let kept = repository.walk();
    assert_eq!(repository.walk_as(&WalkRequest::new(repository.root.join("below"))).entries.len(), 2);
    assert_eq!(repository.walk(), kept);
}

#[test]
fn walk_of_young_files_is_repeated_once_they_have_settled() {
    let repository = Repository::new();
    let before = repository.walk();
    let later = |is_settled: bool| {
        let mut state = repository.cache.0.lock().unwrap();
        let walked = state.walked.as_mut().unwrap();
        walked.is_settled = is_settled;
        walked.at = walked.at.checked_sub(SETTLING).unwrap();
    };
    later(true);
    assert_eq!(repository.walk(), before);
    later(false);
    assert_ne!(repository.walk().started_ns, before.started_ns);
}

#[test]
fn walks_at_the_same_time_do_not_wait() {
    let repository = Repository::new();
    let running = repository.cache.start(&repository.root).unwrap();
    assert!(repository.cache.start(&repository.root).is_none());
    let cancelled = CancelFlag::default();
    let request = WalkRequest::new(&repository.root);
    let walked = Files::Named.walk(&request, &repository.root, &cancelled, Some(&repository.cache)).unwrap();
    drop(running);
    assert_eq!(walked.entries, repository.list().entries);
}
