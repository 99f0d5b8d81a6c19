//! Reading by other ways than reading: by tools that change files, by searches, by listings, by other names.

use super::files::{knows, patches, reads, reads_many, searches};
use super::*;

/// An edit of which a failure shows lines of the file.
fn edits_key() -> Vec<(&'static str, Value)> {
    vec![("edit_file", json!({"file_path": "keys/key", "old_string": "SECRED\nx", "new_string": "y"}))]
}

/// Moves the key to a file that may be read.
fn moves_key() -> Vec<(&'static str, Value)> {
    patches("*** Update File: keys/key\n*** Move to: moved\n@@\n-SECRET\n+SECRET!")
}

fn globs(pattern: &str) -> Vec<(&'static str, Value)> {
    vec![("glob", json!({ "pattern": pattern }))]
}

fn lists(depth: usize) -> Vec<(&'static str, Value)> {
    vec![("list_dir", json!({"path": ".", "depth": depth}))]
}

fn knows_name(_: &Scene, results: &str) -> bool {
    results.contains("keys/key")
}

fn knows_size(_: &Scene, results: &str) -> bool {
    results.contains("key (6 bytes)")
}

fn is_moved(scene: &Scene, _: &str) -> bool {
    scene.read("moved").contains("SECRET")
}

/// Adds a file of which a name with wildcards is the name.
fn with_ignored_brackets(scene: &Scene) {
    std::fs::create_dir_all(scene.at("app/[slug]")).unwrap();
    std::fs::write(scene.at("app/[slug]/key"), "SECRET").unwrap();
    std::fs::write(scene.at(".gitignore"), "key\n").unwrap();
}

pub(super) const ATTACKS: &[Attack] = &[
    attack(
        "`edit_file` that fails, and shows lines of what a grant excepts",
        Guard::Exception,
        |_| edits_key(),
        knows,
    ),
    attack(
        "`edit_file` that fails, and shows lines of what a rule denies to read",
        Guard::DenyRead,
        |_| edits_key(),
        knows,
    ),
    attack("`edit_file` that fails, and shows lines of a key", Guard::Hidden, |_| edits_key(), knows),
    attack(
        "`apply_patch` that moves what a grant excepts to where it may be read",
        Guard::Exception,
        |_| moves_key(),
        is_moved,
    ),
    attack(
        "`apply_patch` that moves what a rule denies to read to where it may be read",
        Guard::DenyRead,
        |_| moves_key(),
        is_moved,
    ),
    attack(
        "`apply_patch` that moves a key to where it may be read",
        Guard::Hidden,
        |_| moves_key(),
        is_moved,
    ),
    attack(
        "`apply_patch` that fails, and shows lines of what a rule denies to read",
        Guard::DenyRead,
        |_| patches("*** Update File: keys/key\n@@\n-SECRED\n+x"),
        knows,
    ),
    attack("`glob` of keys by a pattern with a backslash", Guard::Hidden, |_| globs(r"k\eys/*"), knows_name),
    attack(
        "`glob` of what a grant excepts by a pattern with a backslash",
        Guard::Exception,
        |_| globs(r"k\eys/*"),
        knows_name,
    ),
    attack(
        "`glob` of what a rule denies to read by a pattern with a backslash",
        Guard::DenyRead,
        |_| globs(r"k\eys/*"),
        knows_name,
    ),
    attack(
        "`read_many_files` of keys by a pattern with a backslash",
        Guard::Hidden,
        |_| reads_many(r"k\eys/k*"),
        knows,
    ),
    attack(
        "`read_file` through a link that a rule denies to read",
        Guard::DenyLinked,
        |_| reads("k/key"),
        knows,
    ),
    attack(
        "`read_file` of the target of a link that a rule denies to read",
        Guard::DenyLinked,
        |_| reads("keys/key"),
        knows,
    ),
    attack(
        "`read_file` of the target by another link than the one that a rule denies to read",
        Guard::DenyLinked,
        |scene| {
            std::os::unix::fs::symlink("keys", scene.at("other")).unwrap();
            reads("other/key")
        },
        knows,
    ),
    attack(
        "`grep` above the target of a link that a rule denies to read",
        Guard::DenyLinked,
        |_| searches("."),
        knows,
    ),
    attack(
        "`read_file` through a link that a grant excepts",
        Guard::LinkedException,
        |_| reads("k/key"),
        knows,
    ),
    attack(
        "`read_file` of the target of a link that a grant excepts",
        Guard::LinkedException,
        |_| reads("keys/key"),
        knows,
    ),
    attack(
        "`grep` above the target of a link that a grant excepts",
        Guard::LinkedException,
        |scene| {
            std::fs::rename(scene.at("k"), scene.at("bin/k")).unwrap();
            std::os::unix::fs::symlink("../keys", scene.at("../outside/k")).unwrap();
            std::fs::rename(scene.at("bin/k"), scene.at("k")).unwrap();
            searches(".")
        },
        knows,
    ),
    attack(
        "`read_many_files` of an ignored file whose name has wildcards, against a rule that denies to read it",
        Guard::DenyRead,
        |scene| {
            with_ignored_brackets(scene);
            reads_many("app/[slug]/key")
        },
        knows,
    ),
    attack(
        "`read_many_files` of a link to an ignored file that a rule denies to read",
        Guard::DenyRead,
        |scene| {
            std::fs::write(scene.at(".gitignore"), "keys\n").unwrap();
            std::os::unix::fs::symlink("keys/key", scene.at("notes.link")).unwrap();
            reads_many("notes.l*")
        },
        knows,
    ),
    attack(
        "`grep` through a link to a directory with an ignored file that a rule denies to read",
        Guard::DenyRead,
        |scene| {
            std::fs::write(scene.at(".gitignore"), "/keys/key\n").unwrap();
            searches("k")
        },
        knows,
    ),
    attack("`list_dir` above keys", Guard::Hidden, |_| lists(3), knows_size),
    attack("`list_dir` above what a grant excepts", Guard::Exception, |_| lists(2), knows_size),
    attack("`list_dir` above what a rule denies to read", Guard::DenyRead, |_| lists(3), knows_size),
];
