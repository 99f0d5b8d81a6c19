#![expect(clippy::disallowed_methods, reason = "the tests prepare files outside the roots")]

use std::{
    fs,
    os::unix::fs::symlink,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use tempfile::TempDir;

use super::*;
use crate::{ExecRequest, ExecutionEnvironmentExt as _, LocalEnvironment, MemoryEnvironment, contract};

/// The two implementations of the confinement.
#[derive(Clone, Copy, Debug)]
enum Mode {
    ByDescriptor,
    ByCanonicalPath,
}

const MODES: [Mode; 2] = [Mode::ByDescriptor, Mode::ByCanonicalPath];

/// A root next to directories with secrets.
struct Harness {
    directory: TempDir,
}

impl Harness {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        for name in ["root/inner", "root-evil", "other", "outside"] {
            fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        for name in ["root-evil/secret", "outside/secret", "root/file", "other/file"] {
            fs::write(directory.path().join(name), name).unwrap();
        }
        Self { directory }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn confined(&self, mode: Mode, roots: &[&str]) -> ConfinedEnvironment {
        let local = LocalEnvironment::builder(self.at("root"))
            .with_variable("PATH", "/usr/bin:/bin")
            .build()
            .unwrap();
        let mut confined = ConfinedEnvironment::new(Arc::new(local), roots.iter().map(|root| self.at(root)));
        match mode {
            Mode::ByDescriptor => assert!(confined.beneath.is_some()),
            Mode::ByCanonicalPath => confined.beneath = None,
        }
        confined
    }

    /// Returns true if the directories outside the root are unchanged.
    fn outside_is_untouched(&self) -> bool {
        ["root-evil", "outside"].iter().all(|name| {
            let names = fs::read_dir(self.at(name)).unwrap().count();
            let secret = format!("{name}/secret");
            names == 1 && fs::read_to_string(self.at(&secret)).unwrap() == secret
        })
    }
}

fn is_refused<T: std::fmt::Debug>(result: Result<T, EnvError>) -> bool {
    result.is_err_and(|error| matches!(error, EnvError::Refused { .. }))
}

#[tokio::test]
async fn no_path_leads_outside() {
    for mode in MODES {
        let harness = Harness::new();
        symlink("../outside", harness.at("root/relative")).unwrap();
        symlink(harness.at("outside"), harness.at("root/absolute")).unwrap();
        symlink("relative", harness.at("root/chained")).unwrap();
        symlink("inner/../../outside", harness.at("root/winding")).unwrap();
        symlink("../outside/secret", harness.at("root/to-a-file")).unwrap();
        symlink("../outside/new", harness.at("root/to-nothing")).unwrap();
        symlink("/proc/self/cwd", harness.at("root/magic")).unwrap();
        let environment = harness.confined(mode, &["root"]);
        for name in [
            "../outside/secret",
            "../root-evil/secret",
            "/etc/passwd",
            "relative/secret",
            "absolute/secret",
            "chained/secret",
            "winding/secret",
            "to-a-file",
            "magic/Cargo.toml",
        ] {
            let path = Path::new(name);
            assert!(is_refused(environment.read(path, None).await), "{mode:?} {name}");
            assert!(is_refused(environment.read_file(path, None, None).await), "{mode:?} {name}");
            assert!(is_refused(environment.metadata(path).await), "{mode:?} {name}");
            assert!(is_refused(environment.write(path, b"x").await), "{mode:?} {name}");
        }
        for name in ["relative", "absolute", "chained", "winding", "..", "/", "magic"] {
            let path = Path::new(name);
            assert!(is_refused(environment.list(path).await), "{mode:?} {name}");
            assert!(is_refused(environment.glob("*", path).await), "{mode:?} {name}");
            let grep = GrepRequest::new("secret").with_path(path);
            assert!(is_refused(environment.grep(&grep).await), "{mode:?} {name}");
            let run = ExecRequest::new("pwd").with_working_dir(path);
            assert!(is_refused(environment.exec_command(run).await), "{mode:?} {name}");
        }
        for name in ["relative/new", "absolute/new/below", "to-nothing", "../outside/new", "../root-evil/new"]
        {
            let path = Path::new(name);
            assert!(is_refused(environment.write(path, b"x").await), "{mode:?} {name}");
        }
        for name in ["relative/secret", "absolute/secret", "../outside/secret", "../root-evil"] {
            let path = Path::new(name);
            assert!(is_refused(environment.remove(path).await), "{mode:?} {name}");
            assert!(is_refused(environment.rename(path, Path::new("mine")).await), "{mode:?} {name}");
            assert!(is_refused(environment.rename(Path::new("file"), path).await), "{mode:?} {name}");
        }
        let pattern = harness.at("outside/*");
        assert!(is_refused(environment.glob(pattern.to_str().unwrap(), Path::new("")).await));
        assert!(harness.outside_is_untouched(), "{mode:?}");
        environment.cleanup().await.unwrap();
    }
}

#[tokio::test]
async fn paths_within_the_roots_work() {
    for mode in MODES {
        let harness = Harness::new();
        symlink("inner", harness.at("root/relative")).unwrap();
        symlink(harness.at("root/inner"), harness.at("root/absolute")).unwrap();
        symlink("inner/../file", harness.at("root/winding")).unwrap();
        symlink("inner/made/later", harness.at("root/to-nothing")).unwrap();
        symlink(harness.at("other"), harness.at("root/to-the-other")).unwrap();
        symlink("../other/file", harness.at("root/file-of-the-other")).unwrap();
        symlink("root", harness.at("alias")).unwrap();
        let environment = harness.confined(mode, &["root", "other"]);
        environment.initialize().await.unwrap();
        for (name, real) in [
            ("relative/a", "root/inner/a"),
            ("absolute/b/c", "root/inner/b/c"),
            ("to-nothing", "root/inner/made/later"),
            ("to-the-other/new/d", "other/new/d"),
            ("file-of-the-other", "other/file"),
            ("winding", "root/file"),
        ] {
            environment.write(Path::new(name), name.as_bytes()).await.unwrap();
            assert_eq!(fs::read_to_string(harness.at(real)).unwrap(), name, "{mode:?}");
            assert_eq!(environment.read(Path::new(name), None).await.unwrap(), name.as_bytes());
        }
        assert!(harness.at("root/winding").is_symlink());
        // Removing and renaming affect the link itself, wherever it leads.
        symlink("../outside", harness.at("root/away")).unwrap();
        environment.rename(Path::new("away"), Path::new("moved/away")).await.unwrap();
        environment.remove(Path::new("moved/away")).await.unwrap();
        assert!(!harness.at("root/moved/away").is_symlink());
        let result = environment.exec_command(ExecRequest::new("pwd").with_working_dir("relative")).await;
        let pwd = result.unwrap().stdout.to_text_lossy().unwrap();
        assert_eq!(Path::new(pwd.trim_end()), harness.at("root/inner"));
        // A root may be given through a link and used by its real path, and vice versa.
        for (root, file) in [("alias", "root/file"), ("root", "root/file"), ("alias", "alias/file")] {
            let environment = harness.confined(mode, &[root]);
            assert_eq!(
                environment.read(&harness.at(file), None).await.unwrap(),
                b"winding",
                "{mode:?} {root}"
            );
        }
        environment.cleanup().await.unwrap();
    }
}

#[tokio::test]
async fn roots_cannot_be_removed_or_renamed() {
    for mode in MODES {
        let harness = Harness::new();
        let environment = harness.confined(mode, &["root/inner"]);
        let root = harness.at("root/inner");
        environment.write(&root.join("file"), b"x").await.unwrap();
        assert!(is_refused(environment.remove(&root).await));
        assert!(is_refused(environment.rename(&root, &root.join("below")).await));
        assert!(environment.rename(&root.join("file"), &root).await.is_err());
        assert!(environment.write(&root, b"x").await.is_err());
        assert_eq!(environment.list(&root).await.unwrap().len(), 1);
        // Relative paths start above the root.
        assert!(is_refused(environment.read(Path::new("file"), None).await));
        assert!(is_refused(environment.exec_command(ExecRequest::new("true")).await));
        let nowhere = harness.confined(mode, &[]);
        assert!(is_refused(nowhere.read(&root.join("file"), None).await));
    }
}

/// Exchanges pairs of names until dropped.
struct Exchange {
    is_done: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Exchange {
    fn start(pairs: [[PathBuf; 2]; 2]) -> Self {
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        let thread = std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                for [one, other] in &pairs {
                    renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE).unwrap();
                }
            }
        });
        Self { is_done, thread: Some(thread) }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[tokio::test]
async fn swapped_links_cannot_escape() {
    let harness = Harness::new();
    let environment = harness.confined(Mode::ByDescriptor, &["root"]);
    fs::create_dir(harness.at("root/directory")).unwrap();
    symlink("../outside", harness.at("root/link")).unwrap();
    fs::write(harness.at("root/mine"), "mine").unwrap();
    symlink("../outside/secret", harness.at("root/link-to-a-file")).unwrap();
    let exchange = Exchange::start(
        [["root/directory", "root/link"], ["root/mine", "root/link-to-a-file"]]
            .map(|pair| pair.map(|name| harness.at(name))),
    );
    let (mut passed, mut refused) = (0, 0);
    for round in 0..500 {
        match environment.write(Path::new("directory/new/file"), b"x").await {
            Ok(()) => passed += 1,
            Err(_) => refused += 1,
        }
        for secret in ["directory/secret", "mine"] {
            let read = environment.read(Path::new(secret), None).await;
            assert!(!matches!(read, Ok(bytes) if bytes.starts_with(b"outside")), "{round} {secret}");
        }
        let listed = environment.list(Path::new("directory")).await;
        assert!(
            !matches!(listed, Ok(entries) if entries.iter().any(|entry| entry.name == Path::new("secret")))
        );
        assert!(environment.remove(Path::new("directory/secret")).await.is_err(), "{round}");
    }
    drop(exchange);
    assert!(passed > 0 && refused > 0, "{passed} {refused}");
    assert!(harness.outside_is_untouched());
}

#[tokio::test]
async fn keeps_the_contract() {
    let check = async |mode: Mode| {
        let harness = Harness::new();
        let environment = harness.confined(mode, &["root"]);
        contract::files(&environment, &harness.at("root/files")).await.unwrap();
        contract::search(&environment, &harness.at("root/search")).await.unwrap();
        contract::commands(&environment, &harness.at("root/commands")).await.unwrap();
        environment.cleanup().await.unwrap();
    };
    let [first, second] = MODES;
    tokio::join!(check(first), check(second));
    let memory = ConfinedEnvironment::new(Arc::new(MemoryEnvironment::new("/project")), ["contract"]);
    contract::files(&memory, Path::new("/project/contract/files")).await.unwrap();
    contract::search(&memory, Path::new("/project/contract/search")).await.unwrap();
}

#[tokio::test]
async fn an_environment_without_canonicalize_is_unsupported() {
    let memory = MemoryEnvironment::new("/project").with_file("a", "x");
    let confined = ConfinedEnvironment::new(Arc::new(MinimalEnvironment { inner: memory }), ["/project"]);
    let error = confined.read(Path::new("a"), None).await.unwrap_err();
    assert!(matches!(error, EnvError::Unsupported { .. }), "{error:?}");
}

/// Implements only the required methods.
#[derive(Debug)]
struct MinimalEnvironment {
    inner: MemoryEnvironment,
}

#[async_trait]
impl ExecutionEnvironment for MinimalEnvironment {
    forward! {
        inner: working_directory, platform, os_version, spawn, read, write, metadata, list, remove, rename,
    }
}

#[tokio::test]
async fn a_failed_write_or_rename_removes_created_directories() {
    // No file system accepts this name, which fails only at the rename.
    let too_long = "n".repeat(300);
    for mode in MODES {
        let harness = Harness::new();
        let confined = harness.confined(mode, &["root"]);
        for above in ["new/a/b", "inner/a", "inner"] {
            let target = harness.at("root").join(above).join(&too_long);
            confined.write(&target, b"x").await.unwrap_err();
            confined.rename(&harness.at("root/file"), &target).await.unwrap_err();
        }
        let blocked = harness.at("root").join("new/a").join(&too_long).join("file");
        confined.write(&blocked, b"x").await.unwrap_err();
        assert!(!harness.at("root/new").exists() && !harness.at("root/inner/a").exists(), "{mode:?}");
        confined.write(&harness.at("root/new/a/file"), b"x").await.unwrap();
        confined.rename(&harness.at("root/file"), &harness.at("root/new/b/file")).await.unwrap();
        assert!(harness.at("root/new/a/file").exists() && harness.at("root/new/b/file").exists(), "{mode:?}");
    }
}

#[tokio::test]
async fn trees_are_walked_and_changed_within_the_roots() {
    for mode in MODES {
        let harness = Harness::new();
        symlink("../outside", harness.at("root/out")).unwrap();
        symlink("../outside/secret", harness.at("root/to-a-file")).unwrap();
        symlink("../outside/new", harness.at("root/to-nothing")).unwrap();
        let env = harness.confined(mode, &["root"]);
        let before = fs::metadata(harness.at("outside/secret")).unwrap().permissions();
        for name in ["../outside", "out"] {
            assert!(is_refused(env.walk(&crate::WalkRequest::new(name)).await), "{mode:?} {name}");
        }
        for name in ["../outside/new", "out/new", "to-nothing"] {
            assert!(is_refused(env.create_directory(Path::new(name)).await), "{mode:?} {name}");
        }
        for name in ["../outside/new", "out/new"] {
            let created = env.create_symlink(Path::new(name), Path::new("x")).await;
            assert!(is_refused(created), "{mode:?} {name}");
        }
        for name in ["../outside/secret", "out/secret", "to-a-file", "out"] {
            assert!(is_refused(env.set_mode(Path::new(name), 0o777).await), "{mode:?} {name}");
        }
        let paths = ["../outside/secret", "out/secret", "to-a-file", "file"].map(PathBuf::from);
        let read = env.read_many(&paths, ReadLimits::new(99, 99)).await.unwrap();
        let bytes = FileContent::Bytes(b"root/file".to_vec());
        assert!(
            !read[..3].iter().any(|content| matches!(content, FileContent::Bytes(_))),
            "{mode:?} {read:?}"
        );
        assert_eq!(read[3], bytes, "{mode:?}");
        // Where a link leads is judged when it is followed.
        env.create_symlink(Path::new("made/link"), &harness.at("outside/secret")).await.unwrap();
        assert!(is_refused(env.read(Path::new("made/link"), None).await), "{mode:?}");
        let walked = env.walk(&crate::WalkRequest::new("")).await.unwrap();
        let names: Vec<_> = walked.entries.iter().map(|entry| entry.path.to_str().unwrap()).collect();
        assert_eq!(
            names,
            ["file", "inner", "made", "made/link", "out", "to-a-file", "to-nothing"],
            "{mode:?}"
        );
        assert_eq!(walked.entries[4].target.as_deref(), Some(Path::new("../outside")), "{mode:?}");
        assert!(harness.outside_is_untouched(), "{mode:?}");
        assert_eq!(fs::metadata(harness.at("outside/secret")).unwrap().permissions(), before);
    }
}

/// Counts the calls that resolve links.
#[derive(Debug)]
struct CountingEnvironment {
    inner: MemoryEnvironment,
    resolutions: AtomicUsize,
}

#[async_trait]
impl ExecutionEnvironment for CountingEnvironment {
    forward! {
        inner: working_directory, platform, os_version, spawn, read, write, metadata, list, remove, rename, read_many, resolve
    }

    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        self.resolutions.fetch_add(1, Ordering::Relaxed);
        self.inner.canonicalize(path).await
    }

    async fn canonicalize_many(&self, paths: &[PathBuf]) -> Result<Vec<Result<PathBuf, EnvError>>, EnvError> {
        self.resolutions.fetch_add(1, Ordering::Relaxed);
        self.inner.canonicalize_many(paths).await
    }
}

#[tokio::test]
async fn paths_and_roots_are_resolved_in_one_call() {
    let inner =
        MemoryEnvironment::new("/project").with_file("/project/file", "x").with_file("/other/file", "x");
    let counting = Arc::new(CountingEnvironment { inner, resolutions: AtomicUsize::new(0) });
    let confined = ConfinedEnvironment::new(Arc::clone(&counting), ["/project", "/other"]);
    confined.read(Path::new("/other/file"), None).await.unwrap();
    assert_eq!(counting.resolutions.swap(0, Ordering::Relaxed), 1);
    let paths = ["/project/file", "/project/new", "/elsewhere", "/other"].map(PathBuf::from);
    let resolved = confined.canonicalize_many(&paths).await.unwrap();
    assert_eq!(counting.resolutions.swap(0, Ordering::Relaxed), 1);
    for (path, resolved) in paths.iter().zip(resolved) {
        match path.starts_with("/elsewhere") {
            true => assert!(is_refused(resolved), "{path:?}"),
            false => assert_eq!(&resolved.unwrap(), path),
        }
    }
    let read = confined.read_many(&paths[..3], ReadLimits::new(100, 100)).await.unwrap();
    assert!(matches!(read[..], [FileContent::Bytes(_), _, FileContent::Unreadable]), "{read:?}");
    assert_eq!(counting.resolutions.load(Ordering::Relaxed), 1);
}
