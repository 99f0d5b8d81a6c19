#![expect(clippy::disallowed_methods, reason = "the tests create what is to be mounted")]

use tempfile::TempDir;

use super::*;
use crate::sandboxed::SandboxLevel;

/// A directory of its own that is not private to commands.
fn directory() -> (TempDir, PathBuf) {
    let program = std::env::current_exe().unwrap();
    let directory = TempDir::new_in(program.parent().unwrap()).unwrap();
    let path = directory.path().canonicalize().unwrap();
    (directory, path)
}

fn rules(directory: &Path) -> Rules {
    Rules {
        level: SandboxLevel::Full,
        switched: Vec::new(),
        caches: None,
        identities: BTreeMap::new(),
        writable: vec![directory.to_path_buf()],
        protected: Vec::new(),
        source: None,
        readable: Vec::new(),
        hidden: Vec::new(),
        temporary: None,
        shared: Vec::new(),
        working_directory: directory.to_path_buf(),
        network: false,
        gateway: None,
        unix_sockets: false,
        accepted: std::collections::BTreeSet::new(),
        filters: std::sync::Arc::default(),
    }
}

/// Returns the mounts at and below a directory, by relative path.
fn below(rules: &Rules, directory: &Path, placeholders: &Placeholders) -> Vec<(String, View)> {
    let mounts = Mounts::new(rules, placeholders).unwrap();
    let below = mounts.iter().filter_map(|(path, view)| Some((path.strip_prefix(directory).ok()?, view)));
    below.map(|(path, view)| (path.to_string_lossy().into_owned(), view)).collect()
}

fn named<const N: usize>(expected: [(&str, View); N]) -> Vec<(String, View)> {
    expected.map(|(path, view)| (path.to_owned(), view)).to_vec()
}

#[test]
fn directories_on_the_way_are_pinned() {
    let (_held, directory) = directory();
    std::fs::create_dir_all(directory.join("a/b/hidden")).unwrap();
    std::fs::create_dir_all(directory.join("c/d")).unwrap();
    std::fs::File::create(directory.join("c/d/protected")).unwrap();
    let mut rules = rules(&directory);
    rules.hidden = vec![directory.join("a/b/hidden"), directory.join("missing")];
    rules.protected = vec![directory.join("c/d/protected"), "/etc/passwd".into()];
    let expected = named([
        ("", View::Writable),
        ("a", View::Pinned),
        ("a/b", View::Pinned),
        ("a/b/hidden", View::HiddenDirectory),
        ("c", View::Pinned),
        ("c/d", View::Pinned),
        ("c/d/protected", View::Protected),
    ]);
    assert_eq!(below(&rules, &directory, &Placeholders::default()), expected);
}

#[test]
fn hidden_paths_that_lead_to_nothing_are_not_mounted() {
    let (_held, directory) = directory();
    std::fs::create_dir(directory.join("real")).unwrap();
    std::fs::write(directory.join("file"), "x").unwrap();
    for (link, target) in [("dangling", "missing"), ("link", "real"), ("through", "dangling")] {
        std::os::unix::fs::symlink(target, directory.join(link)).unwrap();
    }
    let names = ["missing", "missing/below", "file/below", "dangling", "through", "dangling/below", "link"];
    for name in names {
        let found = resolve_existing(&directory.join(name)).unwrap();
        assert_eq!(found, (name == "link").then(|| directory.join("real")), "{name}");
    }
    let mut rules = rules(&directory);
    rules.hidden = names.iter().map(|name| directory.join(name)).collect();
    let expected = named([("", View::Writable), ("real", View::HiddenDirectory)]);
    assert_eq!(below(&rules, &directory, &Placeholders::default()), expected);
}

#[test]
fn nothing_is_pinned_or_protected_in_what_is_not_visible_or_not_writable() {
    let (_held, directory) = directory();
    std::fs::create_dir_all(directory.join("hidden/a/protected")).unwrap();
    std::fs::create_dir_all(directory.join("protected/a/b/c")).unwrap();
    let mut rules = rules(&directory);
    rules.hidden = vec![directory.join("hidden")];
    rules.protected = vec![
        directory.join("hidden/a/protected"),
        directory.join("protected"),
        directory.join("protected/a/b/c"),
    ];
    rules.writable.push(directory.join("protected/a/b"));
    let expected = named([
        ("", View::Writable),
        ("hidden", View::HiddenDirectory),
        ("protected", View::Protected),
        ("protected/a/b", View::Writable),
        ("protected/a/b/c", View::Protected),
    ]);
    assert_eq!(below(&rules, &directory, &Placeholders::default()), expected);
}

#[test]
fn missing_paths_get_placeholders_that_stay() {
    let (_held, directory) = directory();
    std::fs::create_dir(directory.join("a")).unwrap();
    let mut rules = rules(&directory);
    rules.protected = vec![directory.join("a/file"), directory.join("none/b/c"), directory.join("none/d")];
    let placeholders = Placeholders::default();
    let expected = named([
        ("", View::Writable),
        ("a", View::Pinned),
        ("a/file", View::Protected),
        ("none", View::Protected),
    ]);
    for _ in 0..2 {
        assert_eq!(below(&rules, &directory, &placeholders), expected);
        assert!(directory.join("a/file").is_file() && directory.join("none").is_dir());
    }
    placeholders.remove();
    assert!(!directory.join("a/file").exists() && !directory.join("none").exists());
}

#[test]
fn paths_through_links_above_a_root_are_protected() {
    let (_held, directory) = directory();
    std::fs::create_dir_all(directory.join("real/root")).unwrap();
    std::fs::File::create(directory.join("real/root/file")).unwrap();
    std::os::unix::fs::symlink("real", directory.join("link")).unwrap();
    let mut rules = rules(&directory.join("link/root"));
    rules.protected = vec![directory.join("link/root/file"), directory.join("link/root/new")];
    let expected = named([
        ("real/root", View::Writable),
        ("real/root/file", View::Protected),
        ("real/root/new", View::Protected),
    ]);
    assert_eq!(below(&rules, &directory, &Placeholders::default()), expected);
}

/// The files of another user, as after `su`.
#[test]
fn files_in_a_closed_directory_are_hidden_with_the_directory() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    let (_held, directory) = directory();
    std::fs::create_dir_all(directory.join("home/closed/cargo")).unwrap();
    std::fs::create_dir_all(directory.join("home/open")).unwrap();
    std::fs::write(directory.join("home/closed/cargo/credentials"), "x").unwrap();
    symlink("../closed/cargo/credentials", directory.join("home/open/link")).unwrap();
    symlink("closed/cargo", directory.join("home/directory")).unwrap();
    symlink("loop", directory.join("home/loop")).unwrap();
    let closed = directory.join("home/closed");
    let set_mode = |mode| std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o000);
    let found = [
        "home/closed/cargo/credentials",
        "home/open/link",
        "home/directory/credentials",
        "home/closed/none/x",
    ]
    .map(|name| {
        let mut rules = rules(&directory);
        rules.hidden = vec![directory.join(name)];
        crate::local::on_own_thread(|| {
            // Root reads everything otherwise.
            let mut sets = capabilities(None)?;
            sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
            set_capabilities(None, sets)?;
            Ok(below(&rules, &directory, &Placeholders::default()))
        })
        .unwrap()
    });
    set_mode(0o700);
    let expected =
        named([("", View::Writable), ("home", View::Pinned), ("home/closed", View::HiddenDirectory)]);
    for found in found {
        assert_eq!(found, expected);
    }
    let mut rules = rules(&directory);
    rules.hidden = vec![directory.join("home/loop/x")];
    let error = Mounts::new(&rules, &Placeholders::default()).unwrap_err();
    assert!(
        matches!(&error, EnvError::Refused { operation, .. } if operation.ends_with("home/loop/x")),
        "{error:?}"
    );
}
