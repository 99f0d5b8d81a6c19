//! Protected paths that are found before the first change.

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use super::*;

const LEVELS: [SandboxLevel; 2] = [SandboxLevel::Full, SandboxLevel::Writes];

/// Returns these paths, or an error without them, and counts the calls.
#[derive(Debug, Default)]
struct Source {
    paths: Option<Arc<[PathBuf]>>,
    calls: AtomicUsize,
}

impl Source {
    fn new(paths: impl IntoIterator<Item = PathBuf>) -> Arc<Self> {
        Arc::new(Self { paths: Some(paths.into_iter().collect()), calls: AtomicUsize::new(0) })
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl ProtectedPathSource for Source {
    async fn protected_paths(&self) -> Result<Arc<[PathBuf]>, EnvError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.paths.clone().ok_or_else(|| EnvError::NotADirectory { path: "/the/search/failed".into() })
    }
}

#[tokio::test]
async fn paths_of_a_source_are_protected_from_the_first_command_on() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    fs::create_dir_all(harness.at("root/sub/.git")).unwrap();
    fs::write(harness.at("root/sub/.git/config"), "[core]\n").unwrap();
    let source = Source::new([harness.at("root/sub/.git/config"), harness.at("root/sub/.git/hooks")]);
    let environment = environment.with_protected_source(Arc::clone(&source) as _);
    environment.initialize().await.unwrap();
    let limits = environment.command_limits().unwrap();
    assert!(limits.contains("cannot change protected files"), "{limits}");
    environment.read(Path::new("sub/.git/config"), None).await.unwrap();
    assert_eq!(source.calls(), 0, "nothing has changed");
    for line in
        ["echo x >>sub/.git/config", "rm sub/.git/config", "mv sub/.git away", "echo x >sub/.git/hooks"]
    {
        assert!(!run(&environment, line).await.success(), "{line}");
    }
    assert!(run(&environment, "echo x >sub/file && cat sub/.git/config").await.success());
    assert_eq!(source.calls(), 5);
    assert_eq!(fs::read_to_string(harness.at("root/sub/.git/config")).unwrap(), "[core]\n");
    assert_eq!(environment.command_limits().unwrap(), limits, "prompts stay the same");
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn read_only_commands_write_nothing_and_wait_for_nothing() {
    for level in LEVELS {
        let harness = Harness::new();
        let Some(sandbox) = harness.at_level(level).await else { continue };
        let temporary = harness.at("outside/temporary");
        fs::create_dir(&temporary).unwrap();
        let (source, switch) = (Source::new([]), WriteSwitch::new(true));
        let sandbox = sandbox
            .with_temporary(&temporary)
            .with_writable_while(harness.at("outside"), &switch)
            .with_protected_source(Arc::clone(&source) as _);
        sandbox.initialize().await.unwrap();
        fs::write(harness.at("root/seen"), "content").unwrap();
        for (line, succeeds) in [
            ("cat seen ../outside/secret && echo x >$TMPDIR/new", true),
            ("echo x >new", false),
            ("echo x >>seen", false),
            ("mkdir new", false),
            ("rm seen", false),
            ("echo x >../outside/new", false),
        ] {
            let request = ExecRequest::new(line).read_only();
            let result = sandbox.exec_command(request).await.unwrap();
            assert_eq!(result.success(), succeeds, "{level}: {line}: {:?}", result.output.to_text_lossy());
        }
        assert_eq!(fs::read_to_string(harness.at("root/seen")).unwrap(), "content", "{level}");
        assert!(!harness.at("root/new").exists() && !harness.at("outside/new").exists(), "{level}");
        assert_eq!(source.calls(), 0, "{level}");
        assert!(run(&sandbox, "echo x >new").await.success(), "{level}: other commands write");
        assert_eq!(source.calls(), 1, "{level}");
        sandbox.cleanup().await.unwrap();
    }
}

/// A change could keep the search from finding a path, such as a line in an ignore file.
#[tokio::test]
async fn file_operations_that_change_something_wait_for_the_source() {
    let harness = Harness::new();
    let Some(environment) = harness.sandboxed().await else { return };
    let source = Source::new([]);
    let environment = environment.with_protected_source(Arc::clone(&source) as _);
    let at = |name: &str| harness.at("root").join(name);
    environment.write(&at("file"), b"x").await.unwrap();
    assert_eq!(source.calls(), 1, "write");
    environment.rename(&at("file"), &at("renamed")).await.unwrap();
    assert_eq!(source.calls(), 2, "rename");
    environment.set_mode(&at("renamed"), 0o600).await.unwrap();
    assert_eq!(source.calls(), 3, "set_mode");
    environment.create_symlink(&at("link"), Path::new("renamed")).await.unwrap();
    assert_eq!(source.calls(), 4, "create_symlink");
    environment.create_directory(&at("directory")).await.unwrap();
    assert_eq!(source.calls(), 5, "create_directory");
    environment.remove(&at("renamed")).await.unwrap();
    assert_eq!(source.calls(), 6, "remove");
    environment.metadata(&at("directory")).await.unwrap();
    environment.list(&harness.at("root")).await.unwrap();
    assert_eq!(source.calls(), 6, "reading");
}

#[tokio::test]
async fn nothing_changes_if_the_search_fails() {
    for level in LEVELS {
        let harness = Harness::new();
        let Some(sandbox) = harness.at_level(level).await else { continue };
        let sandbox = sandbox.with_protected_source(Arc::new(Source::default()));
        sandbox.initialize().await.unwrap();
        let started = sandbox.exec_command(ExecRequest::new("echo x >new")).await;
        assert!(matches!(started, Err(EnvError::NotADirectory { .. })), "{level}: {started:?}");
        assert!(sandbox.write(&harness.at("root/new"), b"x").await.is_err(), "{level}");
        assert!(!harness.at("root/new").exists(), "{level}");
        sandbox.cleanup().await.unwrap();
    }
}
