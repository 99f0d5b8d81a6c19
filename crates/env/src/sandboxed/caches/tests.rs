#![expect(clippy::disallowed_methods, reason = "the tests inspect the caches")]

use std::os::unix::fs::symlink;

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

async fn prepare(home: &Path, directory: &Path) -> ProjectCaches {
    ProjectCaches::prepare(directory, [("HOME", home.as_os_str())]).await.unwrap()
}

#[tokio::test]
async fn caches_are_linked_and_copied_without_credentials() {
    let (home, state) = (user(), TempDir::new().unwrap());
    let caches = prepare(home.path(), &state.path().join("caches")).await;
    let read = |path: &str| fs::read_to_string(caches.directory().join(path)).unwrap();
    assert_eq!(read("cargo/registry/cache/i/a-1.0.crate"), "crate");
    assert_eq!(read("cargo/registry/src/i/a-1.0/.cargo-ok"), "ok");
    assert_eq!(read("cargo/registry/index/i/.cache/a/a"), "entry");
    assert_eq!(read("cargo/git/db/repo/HEAD"), "head");
    assert_eq!(read("cargo/git/checkouts/repo/abc/lib.rs"), "lib");
    assert_eq!(read("cargo/config.toml"), "[build]\njobs = 1\n[registry]\n");
    assert_eq!(read("npm/_cacache/content-v2/sha512/aa/bb/cc"), "package");
    for copied in ["cargo/registry/index/i/.cache/a/a", "npm/_cacache/index-v5/aa/bb/cc"] {
        assert!(fs::symlink_metadata(caches.directory().join(copied)).unwrap().is_file(), "{copied}");
    }
    assert!(!caches.directory().join("cargo/credentials.toml").exists());
    let proxy = caches.variables()[OsStr::new("GOPROXY")].to_string_lossy();
    let modules = home.path().join("go/pkg/mod/cache/download");
    assert_eq!(proxy, format!("file://{},{GO_PROXY}", modules.display()));
    for name in ["CARGO_HOME", "GOCACHE", "GOMODCACHE", "npm_config_cache", "PIP_CACHE_DIR", "UV_CACHE_DIR"] {
        assert!(Path::new(&caches.variables()[OsStr::new(name)]).is_dir(), "{name}");
    }
}

#[tokio::test]
async fn a_later_call_follows_the_user() {
    let (home, state) = (user(), TempDir::new().unwrap());
    let caches = prepare(home.path(), state.path()).await;
    let links = caches.directory().join("cargo/registry/cache/i");
    fs::write(links.join("of-the-project.crate"), "x").unwrap();
    write(&home.path().join(".cargo/registry/cache/i/b-1.0.crate"), "b");
    write(&home.path().join(".cargo/registry/index/i/.cache/a/a"), "longer entry");
    fs::remove_file(home.path().join(".cargo/registry/cache/i/a-1.0.crate")).unwrap();
    let caches = prepare(home.path(), state.path()).await;
    assert!(fs::symlink_metadata(links.join("a-1.0.crate")).is_err());
    assert_eq!(fs::read_to_string(links.join("b-1.0.crate")).unwrap(), "b");
    assert_eq!(fs::read_to_string(links.join("of-the-project.crate")).unwrap(), "x");
    let entry = caches.directory().join("cargo/registry/index/i/.cache/a/a");
    assert_eq!(fs::read_to_string(entry).unwrap(), "longer entry");
}

/// A sandboxed command can write to the caches, and the next call runs outside of the sandbox.
#[tokio::test]
async fn planted_links_are_not_followed() {
    let (home, state, elsewhere) = (user(), TempDir::new().unwrap(), TempDir::new().unwrap());
    write(&elsewhere.path().join("config.toml"), "kept");
    for name in ["registry", "config.toml"] {
        fs::create_dir_all(state.path().join("cargo")).unwrap();
        symlink(elsewhere.path().join(name), state.path().join("cargo").join(name)).unwrap();
    }
    symlink(elsewhere.path(), state.path().join("npm")).unwrap();
    let caches = prepare(home.path(), state.path()).await;
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(elsewhere.path().join("config.toml")).unwrap(), "kept");
    assert!(caches.directory().join("cargo/registry/index/i/.cache/a/a").is_file());
}

#[tokio::test]
async fn a_user_without_caches_has_empty_ones() {
    let (home, state) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let caches = prepare(home.path(), state.path()).await;
    assert!(!caches.variables().contains_key(OsStr::new("GOPROXY")));
    assert_eq!(caches.variables()[OsStr::new("GOFLAGS")], "-modcacherw");
    let error = ProjectCaches::prepare("relative", [("HOME", "/")]).await.unwrap_err();
    assert!(matches!(error, EnvError::InvalidPath { .. }), "{error:?}");
}

/// The caches of another user, as after `su`.
#[test]
fn caches_that_cannot_be_read_are_left_out() {
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
        super::prepare(state.path(), &user, &CancelFlag::default()).map_err(std::io::Error::other)
    });
    set_modes(0o700);
    assert!(variables.unwrap().contains_key(OsStr::new("CARGO_HOME")));
    assert!(state.path().join("cargo/registry/src/i/a-1.0").exists());
    assert!(!state.path().join("cargo/registry/cache/i").exists());
}
