#![expect(clippy::disallowed_methods, reason = "the tests inspect the caches")]

use std::os::unix::fs::{MetadataExt as _, symlink};

use tempfile::TempDir;

use super::*;

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn user() -> TempDir {
    let home = TempDir::new().unwrap();
    for (path, content) in [
        (".cargo/registry/cache/i/a-1.0.crate", "crate"),
        (".cargo/registry/src/i/a-1.0/.cargo-ok", "ok"),
        (".cargo/registry/index/i/.cache/a/a", "entry"),
        (".cargo/git/db/repo/HEAD", "head"),
        (".cargo/git/checkouts/repo/abc/lib.rs", "lib"),
        (".cargo/config.toml", "[build]\njobs = 1\n[registry]\ntoken = \"abc\"\n"),
        (".cargo/credentials.toml", "secret"),
        (".npmrc", "secret"),
        (".npm/_cacache/content-v2/sha512/aa/bb/cc", "package"),
        (".npm/_cacache/index-v5/aa/bb/cc", "entry"),
        ("go/pkg/mod/cache/download/x/@v/list", ""),
    ] {
        write(&home.path().join(path), content);
    }
    home
}

/// Commands without network.
fn offline() -> Seeding {
    Seeding { downloads: false, installs_archives: false, separate: Vec::new(), max_entries: MAX_ENTRIES }
}

/// Commands with network.
fn online() -> Seeding {
    Seeding { downloads: true, ..offline() }
}

fn fill_for(home: &Path, directory: &Path, seeding: &Seeding) -> BTreeMap<OsString, OsString> {
    let user = CacheVariables::new([("HOME", home)]);
    super::fill(directory, &user, seeding, &CancelFlag::default()).unwrap()
}

/// Returns all entries below a directory, without those behind links.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                directories.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}

const LINKED: [&str; 6] = [
    "cargo/registry/cache",
    "cargo/registry/src",
    "cargo/registry/index",
    "cargo/git/db",
    "npm/_cacache/content-v2",
    "npm/_cacache/index-v5",
];

/// A copy or a link for each package would take as much space again for each directory.
#[test]
fn a_hundred_directories_take_no_space_for_packages() {
    let (home, state) = (user(), TempDir::new().unwrap());
    for number in 0..2_500 {
        for part in ["content-v2/sha512", "index-v5"] {
            write(&home.path().join(format!(".npm/_cacache/{part}/ab/{number}/x")), "package");
        }
    }
    for number in 0..100 {
        fill_for(home.path(), &state.path().join(number.to_string()), &offline());
    }
    let found = entries(state.path());
    assert!(found.len() <= 100 * 40, "{}", found.len());
    let blocks = |path: &PathBuf| fs::symlink_metadata(path).unwrap().blocks();
    let size = found.iter().map(blocks).sum::<u64>() * 512;
    assert!(size <= 100 * 128 * 1024, "{size}");
    let files: Vec<_> = found.iter().filter(|path| fs::symlink_metadata(path).unwrap().is_file()).collect();
    assert!(files.iter().all(|path| path.ends_with("cargo/config.toml")), "{files:?}");
}

#[test]
fn directories_are_linked_as_a_whole_without_network() {
    let (home, state) = (user(), TempDir::new().unwrap());
    fill_for(home.path(), state.path(), &offline());
    for name in LINKED {
        let (tool, below) = name.split_once('/').unwrap();
        let of_user = home.path().canonicalize().unwrap().join(format!(".{tool}")).join(below);
        assert_eq!(fs::read_link(state.path().join(name)).unwrap(), of_user, "{name}");
    }
    assert!(!state.path().join("cargo/credentials.toml").exists());
    // With network, commands can write to all of them.
    fill_for(home.path(), state.path(), &online());
    for name in LINKED {
        assert!(fs::symlink_metadata(state.path().join(name)).unwrap().is_dir(), "{name}");
    }
    let crates = state.path().join("cargo/registry/cache/i");
    fs::write(crates.join("of-the-project.crate"), "x").unwrap();
    write(&home.path().join(".cargo/registry/cache/i/b-1.0.crate"), "b");
    // Their additions stay, beside the packages of the user.
    fill_for(home.path(), state.path(), &offline());
    for (name, content) in [("of-the-project.crate", "x"), ("a-1.0.crate", "crate"), ("b-1.0.crate", "b")] {
        assert_eq!(fs::read_to_string(crates.join(name)).unwrap(), content);
    }
}

#[test]
fn links_lead_nowhere_that_commands_can_write_to() {
    let (home, state) = (user(), TempDir::new().unwrap());
    let registry = home.path().canonicalize().unwrap().join(".cargo/registry");
    for separate in [registry.join("cache"), registry.join("cache/i/a"), home.path().canonicalize().unwrap()]
    {
        let seeding = Seeding { separate: vec![separate.clone()], ..offline() };
        fill_for(home.path(), state.path(), &seeding);
        let own = fs::symlink_metadata(state.path().join("cargo/registry/cache")).unwrap();
        assert!(own.is_dir(), "{}", separate.display());
        fs::remove_dir_all(state.path().join("cargo")).unwrap();
    }
}

/// Both write to their caches without network.
#[test]
fn cargo_unpacks_crates_and_npm_installs_archives_of_the_project() {
    let (home, state) = (user(), TempDir::new().unwrap());
    write(&home.path().join(".cargo/registry/cache/i/b-1.0.crate"), "b");
    fill_for(home.path(), state.path(), &Seeding { installs_archives: true, ..offline() });
    for (name, is_linked) in LINKED.into_iter().zip([true, false, true, true, false, false]) {
        let found = fs::symlink_metadata(state.path().join(name)).unwrap();
        assert_eq!(found.is_symlink(), is_linked, "{name}");
    }
    assert!(state.path().join("cargo/registry/src/i/a-1.0/.cargo-ok").exists());
    assert!(state.path().join("npm/_cacache/content-v2/sha512/aa/bb/cc").exists());
}

#[test]
fn caches_over_the_limit_are_filled_in_part() {
    let (home, state) = (user(), TempDir::new().unwrap());
    let variables = fill_for(home.path(), state.path(), &Seeding { max_entries: 2, ..online() });
    assert!(variables.contains_key(OsStr::new("npm_config_cache")));
    assert!(state.path().join("cargo/registry/cache/i/a-1.0.crate").exists());
    assert!(!state.path().join("cargo/registry/src/i/a-1.0").exists());
}

#[test]
fn caches_are_linked_and_copied_without_credentials() {
    let (home, state) = (user(), TempDir::new().unwrap());
    let caches = state.path().join("caches");
    let variables = fill_for(home.path(), &caches, &online());
    let read = |path: &str| fs::read_to_string(caches.join(path)).unwrap();
    assert_eq!(read("cargo/registry/cache/i/a-1.0.crate"), "crate");
    assert_eq!(read("cargo/registry/src/i/a-1.0/.cargo-ok"), "ok");
    assert_eq!(read("cargo/registry/index/i/.cache/a/a"), "entry");
    assert_eq!(read("cargo/git/db/repo/HEAD"), "head");
    assert_eq!(read("cargo/git/checkouts/repo/abc/lib.rs"), "lib");
    assert_eq!(read("cargo/config.toml"), "[build]\njobs = 1\n[registry]\n");
    assert_eq!(read("npm/_cacache/content-v2/sha512/aa/bb/cc"), "package");
    for copied in ["cargo/registry/index/i/.cache/a/a", "npm/_cacache/index-v5/aa/bb/cc"] {
        assert!(fs::symlink_metadata(caches.join(copied)).unwrap().is_file(), "{copied}");
    }
    assert!(!caches.join("cargo/credentials.toml").exists());
    let proxy = variables[OsStr::new("GOPROXY")].to_string_lossy();
    let modules = home.path().join("go/pkg/mod/cache/download");
    assert_eq!(proxy, format!("file://{},{GO_PROXY}", modules.display()));
    for name in ["CARGO_HOME", "GOCACHE", "GOMODCACHE", "npm_config_cache", "PIP_CACHE_DIR", "UV_CACHE_DIR"] {
        assert!(Path::new(&variables[OsStr::new(name)]).is_dir(), "{name}");
    }
}

#[test]
fn a_later_call_follows_the_user() {
    let (home, state) = (user(), TempDir::new().unwrap());
    fill_for(home.path(), state.path(), &online());
    let links = state.path().join("cargo/registry/cache/i");
    fs::write(links.join("of-the-project.crate"), "x").unwrap();
    write(&home.path().join(".cargo/registry/cache/i/b-1.0.crate"), "b");
    write(&home.path().join(".cargo/registry/index/i/.cache/a/a"), "longer entry");
    fs::remove_file(home.path().join(".cargo/registry/cache/i/a-1.0.crate")).unwrap();
    fill_for(home.path(), state.path(), &online());
    assert!(fs::symlink_metadata(links.join("a-1.0.crate")).is_err());
    assert_eq!(fs::read_to_string(links.join("b-1.0.crate")).unwrap(), "b");
    assert_eq!(fs::read_to_string(links.join("of-the-project.crate")).unwrap(), "x");
    let entry = state.path().join("cargo/registry/index/i/.cache/a/a");
    assert_eq!(fs::read_to_string(entry).unwrap(), "longer entry");
}

#[test]
fn tools_do_not_look_for_the_network_without_it_unless_the_user_says_so() {
    let (home, state) = (user(), TempDir::new().unwrap());
    let offline_names = || OFFLINE_VARIABLES.iter().map(|(name, _)| OsStr::new(name));
    let variables = fill_for(home.path(), state.path(), &offline());
    for (name, value) in OFFLINE_VARIABLES {
        assert_eq!(variables[OsStr::new(name)], value, "{name}");
    }
    assert!(variables[OsStr::new("GOPROXY")].to_string_lossy().ends_with(",off"), "{variables:?}");
    let variables = fill_for(home.path(), state.path(), &online());
    assert!(offline_names().all(|name| !variables.contains_key(name)), "{variables:?}");
    // Variables of the user reach commands without the caches.
    let of_user = offline_names().map(|name| (name, OsStr::new("0"))).chain([
        (OsStr::new("HOME"), home.path().as_os_str()),
        (OsStr::new("GOPROXY"), OsStr::new("direct")),
    ]);
    let user = CacheVariables::new(of_user);
    let variables = super::fill(state.path(), &user, &offline(), &CancelFlag::default()).unwrap();
    assert!(offline_names().all(|name| !variables.contains_key(name)), "{variables:?}");
    assert!(variables[OsStr::new("GOPROXY")].to_string_lossy().ends_with(",direct"), "{variables:?}");
}

/// A sandboxed command can write to the caches, and the next call runs outside of the sandbox.
#[test]
fn planted_links_are_not_followed() {
    for seeding in [offline(), online()] {
        let (home, state, elsewhere) = (user(), TempDir::new().unwrap(), TempDir::new().unwrap());
        write(&elsewhere.path().join("config.toml"), "kept");
        for name in ["registry", "config.toml"] {
            fs::create_dir_all(state.path().join("cargo/git")).unwrap();
            symlink(elsewhere.path().join(name), state.path().join("cargo").join(name)).unwrap();
        }
        symlink(elsewhere.path(), state.path().join("npm")).unwrap();
        symlink(elsewhere.path(), state.path().join("cargo/git/db")).unwrap();
        fill_for(home.path(), state.path(), &seeding);
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(elsewhere.path().join("config.toml")).unwrap(), "kept");
        assert!(state.path().join("cargo/registry/index/i/.cache/a/a").is_file());
        assert!(state.path().join("cargo/git/db/repo/HEAD").is_file());
        assert!(home.path().join(".cargo/git/db/repo/HEAD").is_file());
    }
}

#[tokio::test]
async fn a_user_without_caches_has_empty_ones() {
    let (home, state) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let variables = fill_for(home.path(), state.path(), &offline());
    assert_eq!(variables[OsStr::new("GOPROXY")], NO_GO_PROXY);
    assert_eq!(variables[OsStr::new("GOFLAGS")], "-modcacherw");
    let variables = fill_for(home.path(), state.path(), &online());
    assert!(!variables.contains_key(OsStr::new("GOPROXY")));
    let error = ProjectCaches::create("relative", [("HOME", "/")]).await.unwrap_err();
    assert!(matches!(error, EnvError::InvalidPath { .. }), "{error:?}");
}

/// The caches of another user, as after `su`.
#[test]
fn caches_that_cannot_be_read_are_left_out() {
    for seeding in [offline(), online()] {
        fill_without_capabilities(&seeding);
    }
}

fn fill_without_capabilities(seeding: &Seeding) {
    use std::os::unix::fs::PermissionsExt as _;

    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    let (home, state) = (user(), TempDir::new().unwrap());
    let closed = [".cargo/registry/cache", ".cargo/registry/index", ".npm/_cacache/content-v2"];
    let set_modes = |mode| {
        for name in closed {
            fs::set_permissions(home.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    set_modes(0o000);
    let variables = crate::local::on_own_thread(|| {
        // Root reads everything otherwise.
        let mut sets = capabilities(None)?;
        sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
        set_capabilities(None, sets)?;
        let user = CacheVariables::new([("HOME", home.path())]);
        super::fill(state.path(), &user, seeding, &CancelFlag::default()).map_err(std::io::Error::other)
    });
    set_modes(0o700);
    assert!(variables.unwrap().contains_key(OsStr::new("CARGO_HOME")));
    assert!(state.path().join("cargo/registry/src/i/a-1.0").exists());
    assert!(!state.path().join("cargo/registry/cache/i").exists());
}
