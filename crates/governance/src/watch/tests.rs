//! Commands that change protected files, in real directories.
#![expect(clippy::disallowed_methods, reason = "the files of a test are local")]

use pintle_agent::{OutcomeStatus, ProviderProfile, Session};
use pintle_env::{LocalEnvironment, MemoryEnvironment, WalkOutput, WalkRequest};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Client, Message, Role, ToolCall};
use serde_json::json;

use super::*;

fn shell(id: &str, line: &str) -> Message {
    let arguments = json!({"command": line}).to_string();
    Message::new(Role::Assistant, vec![ToolCall::from_raw(id, "shell", arguments).into()])
}

/// Makes a directory that looks like a repository.
fn repository() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let git = directory.path().join(".git");
    std::fs::create_dir_all(git.join("hooks")).unwrap();
    std::fs::write(git.join("config"), "[core]\n").unwrap();
    std::fs::write(git.join("hooks/pre-commit.sample"), "exit 1\n").unwrap();
    directory
}

/// Runs commands in a session, and returns why it ended, if it failed, and the number of calls.
async fn run(directory: &Path, lines: &[&str]) -> (Option<String>, u64) {
    let env = LocalEnvironment::with_host_env(directory, std::env::vars_os()).unwrap();
    let env: Arc<dyn ExecutionEnvironment> = Arc::new(env);
    let adapter = lines.iter().enumerate().fold(FakeAdapter::new("anthropic"), |adapter, (index, line)| {
        adapter.message(shell(&format!("c{index}"), line))
    });
    let client = Client::builder().provider(adapter.answer("Done.")).build().unwrap();
    let session = Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), Arc::clone(&env))
        .gate(ProtectedPathWatch::new(env, [".pintle"]))
        .build()
        .unwrap();
    let outcome = session.submit("go").await.or_else(pintle_agent::RunError::into_outcome).unwrap();
    let calls = outcome.tool_calls;
    session.close().await;
    assert_eq!(outcome.status == OutcomeStatus::Completed, outcome.error.is_none());
    (outcome.error.map(|error| error.message), calls)
}

#[tokio::test]
async fn command_that_changes_a_protected_file_ends_the_run_with_a_diff() {
    for (line, file, diff) in [
        ("echo '[alias] x = !sh' >>.git/config", "/.git/config", "+[alias] x = !sh"),
        ("echo sh >.git/hooks/pre-commit", "/.git/hooks/pre-commit", "+sh"),
        (
            "ln -s .git g; echo '* filter=x' >g/info-; mkdir -p g/info; mv g/info- g/info/attributes",
            "/.git/info/attributes",
            "+* filter=x",
        ),
        ("rm .git/config", "/.git/config", "-[core]"),
        ("mkdir -p .pintle && echo x >.pintle/rules.toml", "/.pintle/rules.toml", "+x"),
        ("mv .git away", "/.git with its history", "removed or moved the repository"),
        ("rm -rf .git", "/.git with its history", "move it back or clone it again"),
        ("(sleep 0; echo x >>.git/config) & wait", "/.git/config", "+x"),
        ("chmod +x .git/hooks/large", "/.git/hooks/large", "mode 644, now 755"),
        ("echo x >>.git/hooks/large", "/.git/hooks/large", "too large to show"),
        (
            "printf y | dd of=.git/hooks/large conv=notrunc 2>/dev/null",
            "/.git/hooks/large",
            "too large to show",
        ),
        (
            "mkdir .git/rebase-merge && echo 'exec touch x' >.git/rebase-merge/git-rebase-todo",
            "/.git/rebase-merge/git-rebase-todo",
            "+exec touch x",
        ),
    ] {
        let directory = repository();
        std::fs::write(directory.path().join(".git/hooks/large"), vec![b'x'; 300 << 10]).unwrap();
        let (reason, calls) = run(directory.path(), &[line, "touch later"]).await;
        let reason = reason.unwrap_or_default();
        assert!(reason.contains(file) && reason.contains(diff), "{line}: {reason}");
        assert_eq!((calls, directory.path().join("later").exists()), (1, false), "{line}");
        let steps = directory.path().join(".git/rebase-merge");
        if steps.exists() {
            assert!(
                !steps.join("git-rebase-todo").exists() && steps.join("git-rebase-todo.refused").exists()
            );
        }
    }
}

/// Such files are mount points of sandboxes of other sessions.
#[tokio::test]
async fn empty_files_come_and_go() {
    let directory = repository();
    let placeholder = directory.path().join(".git/config.worktree");
    let env = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os()).unwrap();
    let watch = ProtectedPathWatch::new(Arc::new(env), [".pintle"]);
    std::fs::write(&placeholder, "").unwrap();
    assert_eq!(watch.check_recorded().await.unwrap(), None);
    std::fs::remove_file(&placeholder).unwrap();
    assert_eq!(watch.check_final().await.unwrap(), FinalCheck::Unchanged);
    std::fs::write(&placeholder, "").unwrap();
    assert_eq!(watch.check_final().await.unwrap(), FinalCheck::Unchanged);
    std::fs::write(&placeholder, "[alias] x = !sh\n").unwrap();
    let check = watch.check_final().await.unwrap();
    assert!(matches!(check, FinalCheck::Changed(change) if change.contains("+[alias] x = !sh")));
    std::fs::write(&placeholder, "").unwrap();
    assert!(matches!(watch.check_final().await.unwrap(), FinalCheck::Changed(_)));
}

#[tokio::test]
async fn the_same_steps_are_refused_again() {
    let directory = repository();
    let steps = directory.path().join(".git/rebase-merge/git-rebase-todo");
    let env = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os()).unwrap();
    let watch = ProtectedPathWatch::new(Arc::new(env), [".pintle"]);
    assert_eq!(watch.check_recorded().await.unwrap(), None);
    for _ in 0..2 {
        std::fs::create_dir_all(steps.parent().unwrap()).unwrap();
        std::fs::write(&steps, "exec touch x\n").unwrap();
        let look = watch.check_final().await.unwrap();
        assert!(matches!(look, FinalCheck::Changed(change) if change.contains("+exec touch x")));
        assert!(!steps.exists());
    }
}

#[tokio::test]
async fn other_commands_go_on() {
    let directory = repository();
    let todo = directory.path().join(".git/rebase-merge/git-rebase-todo");
    std::fs::create_dir(todo.parent().unwrap()).unwrap();
    std::fs::write(&todo, "pick a\nexec make\npick b\n").unwrap();
    let lines = [
        "touch a .git/index .git/HEAD",
        "echo x >.git/hooks/pre-push.sample",
        "cat .git/config",
        // The user's rebase continues.
        "printf 'exec make\\npick b\\n# comment\\n' >.git/rebase-merge/git-rebase-todo",
        "rm -r .git/rebase-merge && mkdir .git/rebase-merge",
        "git config -f .git/config branch.main.remote origin && git config -f .git/config --unset branch.main.remote",
        "git config -f .git/config user.name me && git config -f .git/config pull.rebase true",
        "mkdir .git/info && echo target >.git/info/exclude && echo 'abc refs/heads/main' >.git/info/refs",
        "git config -f .git/config core.sparseCheckout true && echo '/*' >.git/info/sparse-checkout && rm -r .git/info",
        "printf '[core]\\n\\tsparseCheckout = true\\n' >.git/config.worktree && git config -f .git/config extensions.worktreeConfig true",
        "printf 'p a\\nreword b\\nbreak\\n' >.git/rebase-merge/git-rebase-todo",
    ];
    assert_eq!(run(directory.path(), &lines).await, (None, lines.len() as u64));
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(run(empty.path(), &["touch a"]).await, (None, 1));
}

#[tokio::test]
async fn repository_of_a_worktree_is_watched_where_it_is() {
    let directory = repository();
    let main = directory.path();
    std::fs::create_dir_all(main.join(".git/worktrees/w")).unwrap();
    std::fs::write(main.join(".git/worktrees/w/commondir"), "../..\n").unwrap();
    let worktree = main.join("w");
    std::fs::create_dir(&worktree).unwrap();
    std::fs::write(worktree.join(".git"), "gitdir: ../.git/worktrees/w\n").unwrap();
    for line in
        ["echo x >>../.git/config", "echo x >../.git/worktrees/w/config.worktree", "echo gitdir: x >.git"]
    {
        let (reason, _) = run(&worktree, &[line]).await;
        assert!(reason.is_some(), "{line}");
    }
}

#[test]
fn what_cannot_be_shown_is_said() {
    let of = |content: Content| Snapshot {
        files: BTreeMap::from([(PathBuf::from("/w/.git/config"), content.into())]),
        ..Snapshot::default()
    };
    let text = |bytes: &[u8]| of(Content::Bytes(bytes.to_vec()));
    assert_eq!(describe(&text(b"a"), &text(b"a"), &[], &BTreeSet::new()), None);
    for after in [text(b"\xff"), of(Content::Counted(1))] {
        assert!(
            describe(&text(b"a"), &after, &[], &BTreeSet::new())
                .unwrap()
                .contains("not text, too large to show")
        );
    }
    let held = [PathBuf::from("/w/.git/config")];
    assert_eq!(describe(&text(b"a"), &text(b"b"), &held, &BTreeSet::new()), None, "a sandbox holds it");
    assert!(
        describe(&text(b"a"), &text(b"b"), &[PathBuf::from("/w/.git/hooks")], &BTreeSet::new()).is_some()
    );
    let long =
        describe(&text(b""), &text("line\n".repeat(10_000).as_bytes()), &[], &BTreeSet::new()).unwrap();
    assert!(long.len() < MAX_DIFF + 100 && long.ends_with("is not shown"), "{}", long.len());
}

#[tokio::test]
async fn many_files_are_counted() {
    let number = MAX_FILES + 88;
    let env = (0..number).fold(MemoryEnvironment::new("/w"), |env, number| {
        env.with_file(format!("/w/.git/hooks/hook-{number:04}"), "x")
    });
    let watch = ProtectedPathWatch::new(Arc::new(env), Vec::<PathBuf>::new());
    let snapshot = watch.look(&Locations::default(), Search::Latest).await.unwrap();
    // `.git` itself, and the number of the others.
    assert!(snapshot.files.len() <= MAX_FILES + 2, "{}", snapshot.files.len());
    let counted = snapshot.files.values().find(|state| matches!(state.content, Content::Counted(_)));
    // Besides the hooks, there are the names of five files and directories that are missing.
    assert_eq!(counted, Some(&Content::Counted(88 + 5).into()), "and the number of the others");
}

/// Runs git in a directory.
fn git(directory: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"];
    let mut command = std::process::Command::new("git");
    let output = command.args(identity).args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Makes a repository with a commit, a submodule `sub`, and another repository `nested` in it.
fn repository_with_others() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (library, main) = (directory.path().join("library"), directory.path().join("main"));
    for path in [&library, &main] {
        std::fs::create_dir(path).unwrap();
        git(path, &["init", "--quiet"]);
        git(path, &["commit", "--quiet", "--allow-empty", "--message=first"]);
    }
    git(&main, &["submodule", "--quiet", "add", "../library", "sub"]);
    git(&main, &["commit", "--quiet", "--message=sub"]);
    git(&main, &["clone", "--quiet", "../library", "nested"]);
    directory
}

#[tokio::test]
async fn settings_of_other_repositories_are_watched() {
    for (line, file) in [
        ("git config -f .git/modules/sub/config core.fsmonitor ./x", "/.git/modules/sub/config"),
        ("echo x >.git/modules/sub/hooks/post-checkout", "/.git/modules/sub/hooks/post-checkout"),
        ("git -C nested config core.fsmonitor ./x", "/nested/.git/config"),
        ("git -C nested config core.worktree ../sub", "/nested/.git/config"),
        ("git config branch.x.remote 'ext::sh -c x'", "/.git/config"),
        ("printf '[remote \"--upload-pack=./x\"]\\npromisor = true\\n' >>.git/config", "/.git/config"),
        ("printf '[extensions]\\npartialClone = --upload-pack=./x\\n' >>.git/config", "/.git/config"),
        (
            "mkdir -p modules && git init -q modules/a && git -C modules/a config core.worktree ../../sub",
            "/modules/a/.git/config",
        ),
        (
            "git config -f .git/modules/sub/config core.worktree ../../../../library",
            "/.git/modules/sub/config",
        ),
        ("echo '* filter=x' >nested/.git/info/attributes", "/nested/.git/info/attributes"),
        ("cp -r .git evil; echo ../evil >.git/commondir", "/.git/commondir"),
        ("echo gitdir: ../nested/.git >sub/.git", "/sub/.git"),
        ("git init -q new; git -C new config core.fsmonitor ./x", "/new/.git/config"),
        ("git init -q new; echo x >new/.git/hooks/post-checkout", "/new/.git/hooks/post-checkout"),
        ("mkdir new; ln -s ../nested/.git new/.git", "/new/.git"),
        ("mkdir new; cp -r nested/.git evil; echo gitdir: ../evil >new/.git", "/new/.git"),
        ("mv nested/.git nested/git; ln -s git nested/.git", "/nested/.git"),
        (
            "git worktree add -q tree; git config -f .git/worktrees/tree/config.worktree core.fsmonitor x",
            "/.git/worktrees/tree/config.worktree",
        ),
        (
            "mkdir -p a/b/.git; echo nested >.gitignore; git -C nested config core.fsmonitor ./x",
            "/nested/.git/config",
        ),
    ] {
        let directory = repository_with_others();
        let (reason, _) = run(&directory.path().join("main"), &[line]).await;
        let reason = reason.unwrap_or_default();
        assert!(reason.contains(file), "{line}: {reason}");
    }
}

#[tokio::test]
async fn repositories_with_plain_settings_come_and_go() {
    let directory = repository_with_others();
    let lines = [
        "git init -q new",
        "git clone -q ../library copy && rm -rf copy",
        "git clone -q ../library copy",
        "rm -rf nested copy",
        "git worktree add -q tree",
        "git worktree remove tree",
        "rm -rf sub && git -c protocol.file.allow=always submodule update -q",
        "git -c user.name=t -c user.email=t commit -q --allow-empty -m x && touch a && git stash -u -q",
        "mkdir -p crate/.pintle && echo x >crate/.pintle/rules.toml",
        "git init -q mine && git -C mine config user.name me && git -C mine config user.email me@example.org",
        "git -C ../library config uploadpack.allowFilter true && git clone -q --filter=blob:none file://$PWD/../library partial",
        "git clone -q --sparse file://$PWD/../library sparse && git clone -q --no-tags ../library untagged",
        "git gc -q && git -C untagged gc -q",
        "git -C untagged checkout -q -b topic origin/HEAD && git checkout -q -b topic && git branch -q -u main",
        "git maintenance run -q --task=gc && git config maintenance.auto false",
    ];
    git(&directory.path().join("main"), &["branch", "--quiet", "--move", "main"]);
    assert_eq!(run(&directory.path().join("main"), &lines).await, (None, lines.len() as u64));
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(run(empty.path(), &["git init -q && git init -q --bare bare"]).await, (None, 1));
}

#[tokio::test]
async fn protected_paths_are_those_that_exist() {
    let directory = repository_with_others();
    let main = directory.path().canonicalize().unwrap().join("main");
    std::fs::create_dir_all(main.join("crate/.pintle")).unwrap();
    git(&main, &["worktree", "add", "--quiet", "tree"]);
    let of = |directory: PathBuf| async {
        let env = LocalEnvironment::with_host_env(directory, std::env::vars_os()).unwrap();
        protected_paths(&env, [".pintle"], &WatchedFiles::default()).await.unwrap().paths
    };
    let paths = of(main.clone()).await;
    for name in [
        ".git/config",
        ".git/config.worktree",
        ".git/hooks",
        ".git/modules/sub/config",
        ".git/modules/sub/hooks",
        ".git/worktrees/tree/commondir",
        "nested/.git/config",
        "nested/.git/hooks",
        ".git/info/attributes",
        "nested/.git/info/attributes",
        "sub/.git",
        "tree/.git",
        "crate/.pintle",
    ] {
        assert!(paths.contains(&main.join(name)), "{name}: {paths:?}");
    }
    for name in
        [".git/commondir", ".git/info", "nested/.git/config.worktree", "nested/.git", ".git", ".pintle"]
    {
        assert!(!paths.contains(&main.join(name)), "{name}: {paths:?}");
    }
    let paths = of(main.join("tree")).await;
    for name in ["tree/.git", ".git/worktrees/tree/commondir", ".git/worktrees/tree/config.worktree"] {
        assert!(paths.contains(&main.join(name)), "{name}: {paths:?}");
    }
    assert!(!paths.contains(&main.join(".git/worktrees/tree/hooks")), "{paths:?}");
}

/// Counts the searches of an environment.
#[derive(Debug)]
struct CountingWalks {
    inner: LocalEnvironment,
    walks: std::sync::atomic::AtomicUsize,
    /// Searches that must not be earlier ones.
    fresh_walks: std::sync::atomic::AtomicUsize,
}

impl CountingWalks {
    fn new(directory: &Path) -> Self {
        let inner = LocalEnvironment::with_host_env(directory, std::env::vars_os()).unwrap();
        Self { inner, walks: Default::default(), fresh_walks: Default::default() }
    }
}

#[async_trait]
impl ExecutionEnvironment for CountingWalks {
    pintle_env::forward! {
        inner: working_directory, platform, os_version, initialize, cleanup, spawn, read, write, metadata, list, remove,
        rename, canonicalize, read_many, resolve,
    }

    async fn walk(&self, request: &WalkRequest) -> Result<WalkOutput, EnvError> {
        self.walks.fetch_add(1, Ordering::Relaxed);
        self.fresh_walks.fetch_add(usize::from(request.is_fresh), Ordering::Relaxed);
        self.inner.walk(request).await
    }
}

/// A start in a large workspace does not wait for a search.
#[tokio::test]
async fn own_protected_paths_are_found_without_a_search() {
    let directory = repository_with_others();
    let main = directory.path().canonicalize().unwrap().join("main");
    for name in [".pintle", "crate/.pintle"] {
        std::fs::create_dir_all(main.join(name)).unwrap();
    }
    git(&main, &["worktree", "add", "--quiet", "tree"]);
    let env = CountingWalks::new(&main);
    let walks = || env.walks.load(Ordering::Relaxed);
    let own = own_protected_paths(&env, [".pintle"], &WatchedFiles::default()).await.unwrap();
    assert_eq!(walks(), 0);
    let all = protected_paths(&env, [".pintle"], &WatchedFiles::default()).await.unwrap();
    assert_eq!(walks(), 1);
    for (name, is_own) in [
        (".git/config", true),
        (".git/hooks", true),
        (".git/modules/sub/config", true),
        (".git/worktrees/tree/commondir", true),
        (".pintle", true),
        ("nested/.git/config", false),
        ("crate/.pintle", false),
        ("sub/.git", false),
    ] {
        assert!(all.paths.contains(&main.join(name)), "{name}: {all:?}");
        assert_eq!(own.paths.contains(&main.join(name)), is_own, "{name}: {own:?}");
    }
    // An earlier session has found the others.
    let own = own_protected_paths(&env, [".pintle"], &all.found).await.unwrap();
    assert!(own.paths.contains(&main.join("nested/.git/config")), "{own:?}");
    assert_eq!(walks(), 1);
}

/// The environment may have the latest search for a check. When a run ends, the workspace is searched again.
#[tokio::test]
async fn workspace_is_searched_again_when_a_run_ends() {
    let directory = repository();
    let env = Arc::new(CountingWalks::new(directory.path()));
    let fresh_walks = || env.fresh_walks.load(Ordering::Relaxed);
    let watch = ProtectedPathWatch::new(Arc::clone(&env) as _, [".pintle"]);
    assert_eq!(watch.check_recorded().await.unwrap(), None);
    assert_eq!((env.walks.load(Ordering::Relaxed), fresh_walks()), (1, 0));
    assert_eq!(watch.stop_at_end().await, None);
    assert_eq!(fresh_walks(), 1);
    assert_eq!(watch.check_final().await.unwrap(), FinalCheck::Unchanged);
    assert_eq!((env.walks.load(Ordering::Relaxed), fresh_walks()), (3, 1));
}

/// The user can change paths that the sandbox protects from commands. The run continues.
#[tokio::test]
async fn changes_at_found_paths_are_not_of_a_command() {
    for is_found in [true, false] {
        let directory = repository();
        let config = directory.path().canonicalize().unwrap().join(".git/config");
        let env = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os()).unwrap();
        let found = if is_found { vec![config.clone()] } else { Vec::new() };
        let watch =
            ProtectedPathWatch::new(Arc::new(env), [".pintle"]).with_found_paths(move || found.clone());
        watch.check_recorded().await.unwrap();
        std::fs::write(&config, "[core]\n\tfsmonitor = x\n").unwrap();
        let checked = watch.check_final().await.unwrap();
        assert_eq!(matches!(checked, FinalCheck::Changed(_)), !is_found, "{checked:?}");
    }
}

#[tokio::test]
async fn search_for_other_repositories_can_be_left_out() {
    let directory = repository_with_others();
    let main = directory.path().canonicalize().unwrap().join("main");
    let env = LocalEnvironment::with_host_env(&main, std::env::vars_os()).unwrap();
    let watch = ProtectedPathWatch::new(Arc::new(env), [".pintle"]);
    for (watch, is_searched) in [(watch.clone(), true), (watch.without_search(), false)] {
        let found = watch.look(&Locations::default(), Search::Latest).await.unwrap().locations.git;
        assert!(found.contains(&main.join(".git/modules/sub")), "{found:?}");
        assert_eq!(found.contains(&main.join("nested/.git")), is_searched, "{found:?}");
    }
}

/// A change after the last command is found at the end of the run, at the last look, or by the next session.
#[tokio::test]
async fn changes_after_the_last_command_are_found() {
    let kept: Arc<std::sync::Mutex<WatchedFiles>> = Arc::default();
    let directory = repository();
    let watch = || {
        let env = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os()).unwrap();
        let (earlier, kept) = (kept.lock().unwrap().clone(), Arc::clone(&kept));
        let watch = ProtectedPathWatch::new(Arc::new(env), [".pintle"]).with_record(earlier);
        watch.with_observer(move |files| kept.lock().unwrap().clone_from(files))
    };
    let change = |line: &str| {
        let mut shell = std::process::Command::new("sh");
        assert!(shell.args(["-c", line]).current_dir(directory.path()).status().unwrap().success());
    };
    let first = watch();
    assert_eq!(first.stop_at_end().await, None, "no command ran");
    assert_eq!(first.check_recorded().await.unwrap(), None);
    change("echo '[alias] x = !sh' >>.git/config");
    assert!(first.stop_at_end().await.unwrap().contains("+[alias] x = !sh"));
    assert_eq!(first.stop_at_end().await, None, "it was reported");
    change("echo sh >.git/hooks/pre-commit");
    let FinalCheck::Changed(change_of_first) = first.check_final().await.unwrap() else {
        panic!("nothing was found")
    };
    assert!(change_of_first.contains("/.git/hooks/pre-commit"), "{change_of_first}");
    // It is killed before it could look.
    change("mkdir sub; cp -r .git sub/.git; echo sub >.gitignore; chmod +x .git/hooks/pre-commit");
    let second = watch();
    let change_of_second = second.check_recorded().await.unwrap().unwrap();
    assert!(change_of_second.contains("/.git/hooks/pre-commit"), "{change_of_second}");
    assert_eq!(watch().check_recorded().await.unwrap(), None, "it was reported");
    // A session that did look leaves nothing to compare.
    let closed = kept.lock().unwrap().clone().without_states();
    *kept.lock().unwrap() = closed;
    change("rm .git/hooks/pre-commit");
    assert_eq!(watch().check_recorded().await.unwrap(), None);
}

#[tokio::test]
async fn an_ignored_repository_that_was_known_stays_protected() {
    let directory = repository_with_others();
    let main = directory.path().join("main");
    let kept: Arc<std::sync::Mutex<WatchedFiles>> = Arc::default();
    let env = || Arc::new(LocalEnvironment::with_host_env(&main, std::env::vars_os()).unwrap());
    let observer = Arc::clone(&kept);
    let watch = ProtectedPathWatch::new(env(), [".pintle"])
        .with_observer(move |files| observer.lock().unwrap().clone_from(files));
    watch.check_recorded().await.unwrap();
    std::fs::write(main.join(".gitignore"), "nested\n").unwrap();
    let kept = kept.lock().unwrap().clone().without_states();
    let config = main.join("nested/.git/config");
    let protected = protected_paths(env().as_ref(), [".pintle"], &kept).await.unwrap().paths;
    assert!(protected.contains(&config), "{protected:?}");
    let watch = ProtectedPathWatch::new(env(), [".pintle"]).with_record(kept);
    watch.check_recorded().await.unwrap();
    std::fs::write(&config, "[core]\n\tfsmonitor = x\n").unwrap();
    let FinalCheck::Changed(change) = watch.check_final().await.unwrap() else { panic!("nothing was found") };
    assert!(change.contains("nested/.git/config"), "{change}");
}

/// A setting counts that makes git read settings which name a program.
#[tokio::test]
async fn settings_of_a_worktree_are_switched_on_only_if_they_are_plain() {
    for (content, is_reported) in
        [("[core]\n\tsparseCheckout = true\n", false), ("[core]\n\tfsmonitor = x\n", true)]
    {
        let directory = repository();
        std::fs::write(directory.path().join(".git/config.worktree"), content).unwrap();
        let (reason, _) =
            run(directory.path(), &["git config -f .git/config extensions.worktreeConfig true"]).await;
        assert_eq!(reason.is_some(), is_reported, "{content}: {reason:?}");
    }
}

/// Earlier versions recorded all files beside the attributes.
#[tokio::test]
async fn a_record_of_lists_is_no_change() {
    let directory = repository();
    std::fs::create_dir(directory.path().join(".git/info")).unwrap();
    std::fs::write(directory.path().join(".git/info/exclude"), "target\n").unwrap();
    let root = directory.path().canonicalize().unwrap();
    let record = |name: &str| -> WatchedFiles {
        let (entry, file) = (root.join(".git"), root.join(".git").join(name));
        let hash = blake3::hash(b"[core]\n").to_hex().to_string();
        let files = json!({
            file.to_str().unwrap(): "00 644",
            root.join(".git/config").to_str().unwrap(): format!("{hash} 644"),
            entry.to_str().unwrap(): "other",
        });
        serde_json::from_value(json!({ "repositories": [entry], "files": files })).unwrap()
    };
    for (name, is_reported) in [("info/exclude", false), ("info/attributes", true)] {
        let env = LocalEnvironment::with_host_env(&root, std::env::vars_os()).unwrap();
        let watch = ProtectedPathWatch::new(Arc::new(env), [".pintle"]).with_record(record(name));
        let change = watch.check_recorded().await.unwrap();
        assert_eq!(change.is_some(), is_reported, "{name}: {change:?}");
    }
}
