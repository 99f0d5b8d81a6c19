//! Held paths keep their targets when other processes replace files, links or directories.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::{ConfinedEnvironment, ReadOnlyEnvironment, WriteSwitch, contract::logging_environment::Logging};

/// A project beside a directory that it must not reach.
struct Places {
    directory: TempDir,
}

/// A replacement that happens after a path was judged.
struct Exchange {
    name: &'static str,
    /// The path that was judged, in the project. `secret` is there, and a file of this name is outside.
    path: &'static str,
    exchange: fn(&Places),
}

const EXCHANGES: [Exchange; 5] = [
    Exchange {
        name: "a link to a directory leads elsewhere",
        path: "link/secret",
        exchange: |places| {
            fs::remove_file(places.at("project/link")).unwrap();
            symlink(places.at("outside"), places.at("project/link")).unwrap();
        },
    },
    Exchange {
        name: "a link has the place of a directory",
        path: "inside/secret",
        exchange: |places| {
            fs::rename(places.at("project/inside"), places.at("project/was")).unwrap();
            symlink(places.at("outside"), places.at("project/inside")).unwrap();
        },
    },
    Exchange {
        name: "a link has the place of a file",
        path: "inside/secret",
        exchange: |places| {
            fs::remove_file(places.at("project/inside/secret")).unwrap();
            symlink(places.at("outside/secret"), places.at("project/inside/secret")).unwrap();
        },
    },
    Exchange {
        name: "another directory has the place of a directory",
        path: "inside/secret",
        exchange: |places| {
            fs::rename(places.at("project/inside"), places.at("project/was")).unwrap();
            fs::rename(places.at("outside"), places.at("project/inside")).unwrap();
            symlink(places.at("project/inside"), places.at("outside")).unwrap();
        },
    },
    Exchange {
        name: "another file has the place of a file",
        path: "inside/secret",
        exchange: |places| {
            fs::remove_file(places.at("project/inside/secret")).unwrap();
            fs::hard_link(places.at("outside/secret"), places.at("project/inside/secret")).unwrap();
        },
    },
];

impl Places {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let places = Self { directory };
        for name in ["project/inside", "outside"] {
            fs::create_dir_all(places.at(name)).unwrap();
        }
        fs::write(places.at("project/inside/secret"), "harmless").unwrap();
        fs::write(places.at("outside/secret"), "CANARY").unwrap();
        symlink("inside", places.at("project/link")).unwrap();
        places
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn local(&self) -> Arc<dyn ExecutionEnvironment> {
        Arc::new(LocalEnvironment::builder(self.at("project")).build().unwrap())
    }

    /// The environments whose files are those of this machine.
    fn environments(&self) -> Vec<(&'static str, Arc<dyn ExecutionEnvironment>)> {
        let local = self.local();
        let writes = WriteSwitch::new(true);
        vec![
            ("local", Arc::clone(&local)),
            ("logging", Arc::new(Logging::new(Arc::clone(&local)))),
            ("read only", Arc::new(ReadOnlyEnvironment::new(Arc::clone(&local)).with_write_switch(&writes))),
            ("confined", Arc::new(ConfinedEnvironment::new(Arc::clone(&local), [self.at("project")]))),
            #[cfg(all(target_os = "linux", feature = "sandbox"))]
            (
                "sandboxed",
                Arc::new(crate::SandboxedEnvironment::new(
                    LocalEnvironment::builder(self.at("project")).build().unwrap(),
                )),
            ),
        ]
    }

    /// Returns whether everything outside is as it was.
    fn outside_is_untouched(&self) -> bool {
        let secret = self.at("outside/secret");
        let mode = fs::metadata(&secret).unwrap().permissions().mode() & 0o777;
        fs::read_dir(self.at("outside/")).unwrap().count() == 1
            && fs::read(&secret).unwrap() == b"CANARY"
            && mode == 0o644
    }
}

/// Performs each operation on a file and its directory, and returns the read contents.
async fn everything(environment: &dyn ExecutionEnvironment, path: &Path) -> Vec<String> {
    let mut read = Vec::new();
    let parent = path.parent().unwrap();
    read.push(format!("{:?}", environment.read(path, None).await.map(String::from_utf8)));
    read.push(format!("{:?}", environment.read(path, Some(0..3)).await.map(String::from_utf8)));
    read.push(format!("{:?}", environment.read_file(path, None, None).await));
    read.push(format!("{:?}", environment.read_many(&[path.to_path_buf()], ReadLimits::new(99, 99)).await));
    read.push(format!("{:?}", environment.grep(&GrepRequest::new("CANARY").with_path(path)).await));
    read.push(format!("{:?}", environment.grep(&GrepRequest::new("CANARY").with_path(parent)).await));
    // None of them may succeed outside.
    let _ = environment.set_mode(path, 0o600).await;
    let _ = environment.write(path, b"overwritten").await;
    let _ = environment.write(&parent.join("new/file"), b"new").await;
    let _ = environment.rename(path, &parent.join("renamed")).await;
    let _ = environment.write(&parent.join("other"), b"other").await;
    let _ = environment.rename(&parent.join("other"), path).await;
    let _ = environment.create_symlink(&parent.join("linked"), Path::new("secret")).await;
    let _ = environment.create_directory(&parent.join("created")).await;
    let _ = environment.remove(path).await;
    read
}

#[tokio::test]
async fn nothing_that_was_exchanged_is_reached() {
    for exchange in &EXCHANGES {
        for index in 0.. {
            let places = Places::new();
            let mut environments = places.environments();
            if index >= environments.len() {
                break;
            }
            let (name, environment) = environments.swap_remove(index);
            let case = format!("{name}: {}", exchange.name);
            let path = places.at("project").join(exchange.path);
            let held = environment.hold(std::slice::from_ref(&path)).await.unwrap().unwrap();
            let judged = held.canonicalize(&path).await.unwrap();
            assert_eq!(judged, places.at("project/inside/secret"), "{case}");
            (exchange.exchange)(&places);
            assert_eq!(held.canonicalize(&path).await.unwrap(), judged, "{case}");
            if name == "local" {
                let by_name = environment.read(&path, None).await.unwrap();
                assert_eq!(by_name, b"CANARY", "{case}: without holding");
            }
            let read = everything(held.as_ref(), &path).await;
            let is_silent = |text: &String| !text.contains("CAN");
            assert!(read.iter().all(is_silent), "{case}: {read:?}");
            assert!(places.outside_is_untouched(), "{case}");
        }
    }
}

/// Without an exchange, everything is as in the environment itself.
#[tokio::test]
async fn held_paths_can_be_used() {
    for index in 0.. {
        let places = Places::new();
        let mut environments = places.environments();
        if index >= environments.len() {
            break;
        }
        let (name, environment) = environments.swap_remove(index);
        for given in ["link/secret", "inside/secret", "link/../inside/./secret"] {
            let path = places.at("project").join(given);
            let held =
                environment.hold(&[path.clone(), places.at("project/inside/new")]).await.unwrap().unwrap();
            assert_eq!(held.read(&path, None).await.unwrap(), b"harmless", "{name} {given}");
            held.write(&path, b"changed").await.unwrap();
            assert_eq!(held.read(&path, None).await.unwrap(), b"changed", "{name} {given}");
            assert_eq!(held.metadata(&path).await.unwrap().len, 7, "{name} {given}");
            held.rename(&path, &places.at("project/inside/new")).await.unwrap();
            held.rename(&places.at("project/inside/new"), &path).await.unwrap();
            held.write(&path, b"harmless").await.unwrap();
        }
        let root = places.at("project");
        let held = environment.hold(std::slice::from_ref(&root)).await.unwrap().unwrap();
        let found = held.find_files(&GlobRequest::new("**/secret")).await.unwrap();
        assert_eq!(found, environment.find_files(&GlobRequest::new("**/secret")).await.unwrap(), "{name}");
        let found = held.grep(&GrepRequest::new("harm")).await.unwrap();
        assert_eq!(found, environment.grep(&GrepRequest::new("harm")).await.unwrap(), "{name}");
        let listed = held.list(&root).await.unwrap();
        assert_eq!(listed, environment.list(&root).await.unwrap(), "{name}");
        // A link below a held directory is followed only within it.
        symlink("secret", places.at("project/inside/near")).unwrap();
        symlink(places.at("outside/secret"), places.at("project/inside/far")).unwrap();
        assert_eq!(held.read(&root.join("inside/near"), None).await.unwrap(), b"harmless", "{name}");
        let far = held.read(&root.join("inside/far"), None).await.unwrap_err();
        assert!(matches!(far, EnvError::Refused { .. }), "{name}: {far:?}");
    }
}

#[tokio::test]
async fn directories_can_be_removed_and_renamed() {
    let places = Places::new();
    let at = |name: &str| places.at(&format!("project/{name}"));
    fs::create_dir(at("empty")).unwrap();
    let paths = ["empty", "inside", "renamed"].map(at);
    let held = places.local().hold(&paths).await.unwrap().unwrap();
    held.remove(&at("empty")).await.unwrap();
    held.rename(&at("inside"), &at("renamed")).await.unwrap();
    assert!(!at("empty").exists() && !at("inside").exists() && at("renamed/secret").exists());
    held.create_directory(&at("empty")).await.unwrap();
    assert!(at("empty").is_dir());
    held.write(&at("empty/new"), b"new").await.unwrap();
    assert_eq!(fs::read(at("empty/new")).unwrap(), b"new");
}

/// A path that was unresolvable when it was judged stays refused.
#[tokio::test]
async fn a_path_that_led_nowhere_leads_nowhere() {
    let places = Places::new();
    let path = places.at("project/inside/secret/below");
    let held = places.local().hold(std::slice::from_ref(&path)).await.unwrap().unwrap();
    let error = held.read(&path, None).await.unwrap_err();
    assert!(matches!(error, EnvError::NotADirectory { .. }), "{error:?}");
    fs::write(places.at("outside/below"), "CANARY").unwrap();
    fs::remove_file(places.at("project/inside/secret")).unwrap();
    symlink(places.at("outside"), places.at("project/inside/secret")).unwrap();
    let error = held.read(&path, None).await.unwrap_err();
    assert!(matches!(error, EnvError::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn environments_that_know_names_alone_hold_nothing() {
    let memory = crate::MemoryEnvironment::new("/project");
    assert!(memory.hold(&["/project/file".into()]).await.unwrap().is_none());
}

#[tokio::test]
async fn keeps_the_contract() {
    let places = Places::new();
    let root = places.at("project");
    let held = places.local().hold(std::slice::from_ref(&root)).await.unwrap().unwrap();
    crate::contract::files(held.as_ref(), &root.join("files")).await.unwrap();
    crate::contract::search(held.as_ref(), &root.join("search")).await.unwrap();
    held.cleanup().await.unwrap();
}

/// A directory is swapped with a link while its path is resolved. Only the judged file is removed or renamed.
#[tokio::test]
async fn exchanges_while_a_path_is_resolved_lead_nowhere() {
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    let places = Places::new();
    let names = ["project/inside", "project/other"].map(|name| places.at(name));
    symlink(places.at("outside"), &names[1]).unwrap();
    let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let exchanging = std::thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            renameat2(AT_FDCWD, &names[0], AT_FDCWD, &names[1], RenameFlags::RENAME_EXCHANGE).unwrap();
        }
    });
    let (environment, path) = (places.local(), places.at("project/inside/secret"));
    let mut judged_inside = 0;
    for _ in 0..1_000 {
        let Ok(Some(held)) = environment.hold(std::slice::from_ref(&path)).await else { continue };
        // A path that changed while it was resolved stays unresolved, and nothing can be done with it.
        let Ok(target) = held.canonicalize(&path).await else { continue };
        let directory = held.canonicalize(path.parent().unwrap()).await.unwrap();
        assert_eq!(target, directory.join("secret"), "both are resolved at once");
        // A gate refuses the others.
        if target == path {
            judged_inside += 1;
            let aside = path.with_file_name("aside");
            let _ = held.write(&path.with_file_name("new"), b"new").await;
            let _ = held.rename(&path, &aside).await;
            let _ = held.rename(&aside, &path).await;
            let _ = held.remove(&path).await;
            let _ = held.write(&path, b"harmless").await;
        }
    }
    is_over.store(true, Ordering::Relaxed);
    exchanging.join().unwrap();
    assert!(judged_inside > 0);
    assert!(places.outside_is_untouched());
}
