use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use pintle_env::{
    CommandScript, ExecRequest, ExecutionEnvironmentExt as _, LocalEnvironment, LocalEnvironmentBuilder,
    MemoryEnvironment,
};
use tempfile::TempDir;

use super::*;

const DATE: &str = "2026-11-21";

/// Builds an environment in `directory` whose git reads no configuration of the machine.
fn builder(directory: &Path) -> LocalEnvironmentBuilder {
    let variables = [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "A"),
        ("GIT_AUTHOR_EMAIL", "a@example.invalid"),
        ("GIT_COMMITTER_NAME", "A"),
        ("GIT_COMMITTER_EMAIL", "a@example.invalid"),
    ];
    let builder = LocalEnvironment::builder(directory).with_host_env(std::env::vars_os());
    variables.into_iter().fold(builder, |builder, (name, value)| builder.with_variable(name, value))
}

fn environment(directory: &Path) -> LocalEnvironment {
    builder(directory).build().unwrap()
}

async fn run(env: &LocalEnvironment, line: &str) {
    let result = env.exec_command(ExecRequest::new(line)).await.unwrap();
    assert!(result.success(), "{line}: {}", result.output.to_text_lossy().unwrap());
}

async fn repository(lines: &[&str]) -> (TempDir, LocalEnvironment) {
    let directory = tempfile::tempdir().unwrap();
    let env = environment(directory.path());
    run(&env, "git init -q -b main").await;
    for line in lines {
        run(&env, line).await;
    }
    (directory, env)
}

fn subjects(git: &GitContext) -> Vec<&str> {
    git.recent_commits.iter().map(|commit| commit.split_once(' ').expect("hash and subject").1).collect()
}

#[tokio::test]
async fn a_repository_is_described() {
    let (directory, env) = repository(&[
        "echo 1 > kept; echo 1 > gone; echo 1 > staged; mkdir sub; git add .; git commit -q -m First",
        "for n in 2 3 4 5 6 7 8 9 10 11 12; do git commit -q --allow-empty -m \"Commit $n\"; done",
        "echo 2 > kept; rm gone; echo 2 > staged; git add staged; mkdir new; touch new/a new/b loose",
    ])
    .await;
    let context = EnvironmentContext::gather(&env, DATE.into()).await;
    assert!(context.is_git_repository);
    assert_eq!(context.working_directory, directory.path().to_str().unwrap());
    assert_eq!((context.date.as_str(), context.platform.as_str()), (DATE, env.platform()));
    let git = context.git.unwrap();
    assert_eq!(git.root, directory.path());
    assert_eq!(git.branch.as_deref(), Some("main"));
    assert_eq!((git.modified, git.untracked), (Some(3), Some(2)));
    let newest: Vec<String> = (3..=12).rev().map(|n| format!("Commit {n}")).collect();
    assert_eq!(subjects(&git), newest);
    env.cleanup().await.unwrap();
}

#[tokio::test]
async fn unusual_states_are_described() {
    for (lines, below, branch, status, commits) in [
        (["true", "true"], "", "main", (0, 0), 0),
        (["mkdir -p a/b", "touch a/b/x"], "a/b", "main", (0, 1), 0),
        (["git commit -q --allow-empty -m One", "git checkout -q --detach"], "", "(detached)", (0, 0), 1),
        (["git checkout -q -b 'x</environment>'", "true"], "", "x</environment>", (0, 0), 0),
    ] {
        let (directory, _env) = repository(&lines).await;
        let env = environment(&directory.path().join(below));
        let git = EnvironmentContext::gather(&env, DATE.into()).await.git.unwrap();
        assert_eq!(git.root, directory.path(), "{lines:?}");
        assert_eq!(git.branch.as_deref(), Some(branch), "{lines:?}");
        assert_eq!((git.modified, git.untracked), (Some(status.0), Some(status.1)), "{lines:?}");
        assert_eq!(git.recent_commits.len(), commits, "{lines:?}");
    }
}

#[tokio::test]
async fn a_linked_directory_keeps_its_path() {
    let (directory, _env) = repository(&["mkdir sub"]).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("link");
    std::os::unix::fs::symlink(directory.path(), &link).unwrap();
    let context = EnvironmentContext::gather(&environment(&link.join("sub")), DATE.into()).await;
    assert_eq!(context.git_root(), Some(link.as_path()));
}

#[tokio::test]
async fn gathering_runs_no_hooks_and_changes_nothing() {
    let (directory, env) = repository(&[
        "touch a; git add a; git commit -q -m One",
        "printf '#!/bin/sh\\ntouch ran\\n' > monitor.sh; chmod +x monitor.sh; echo ran >> .git/info/exclude",
        "git config core.fsmonitor ./monitor.sh; git config log.showSignature true; git config color.ui always",
        "touch -d '2001-01-01' a; cp .git/index index.before",
    ])
    .await;
    let git = EnvironmentContext::gather(&env, DATE.into()).await.git.unwrap();
    assert_eq!((git.modified, git.untracked), (Some(0), Some(2)));
    assert_eq!(subjects(&git), ["One"]);
    assert!(
        !env.file_exists(&directory.path().join("ran")).await.unwrap(),
        "the file system monitor was run"
    );
    run(&env, "cmp .git/index index.before").await;
}

#[tokio::test]
async fn variables_of_hooks_and_settings_of_the_user_do_not_change_the_facts() {
    let (directory, env) = repository(&[
        "touch a b; git add .; git commit -q -m One",
        "git mv a c; touch new; git stash -q -u; git stash apply -q --index",
    ])
    .await;
    let expected = EnvironmentContext::gather(&env, DATE.into()).await.git;
    assert_eq!(expected.as_ref().map(|git| (git.modified, git.untracked)), Some((Some(1), Some(1))));
    let settings = tempfile::tempdir().unwrap();
    let file = settings.path().join("settings");
    let text = "[status]\n\trenames = false\n\tshowStash = true\n[core]\n\tabbrev = 20\n[log]\n\tshowSignature = true\n\
        [color]\n\tui = always\n[format]\n\tpretty = oneline\n";
    let writer = environment(settings.path());
    writer.write(&file, text.as_bytes()).await.unwrap();
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", file.as_os_str()),
        ("GIT_DIR", OsStr::new("/nonexistent")),
        ("GIT_WORK_TREE", OsStr::new("/")),
        ("GIT_INDEX_FILE", OsStr::new(".git/other")),
        ("GIT_CONFIG_PARAMETERS", OsStr::new("'status.renames'='false'")),
    ] {
        let env = builder(directory.path()).with_variable(name, value).build().unwrap();
        assert_eq!(EnvironmentContext::gather(&env, DATE.into()).await.git, expected, "{name}");
    }
}

#[tokio::test]
async fn without_git_there_is_no_repository() {
    let (directory, _env) = repository(&[]).await;
    let nothing = tempfile::tempdir().unwrap();
    // Git must not find a repository above the temporary directory.
    let outside =
        builder(nothing.path()).with_variable("GIT_CEILING_DIRECTORIES", nothing.path().parent().unwrap());
    let without_git = LocalEnvironment::builder(directory.path()).with_variable("PATH", "/nonexistent");
    let missing = builder(&nothing.path().join("missing"));
    for env in [outside, without_git, missing].map(|builder| builder.build().unwrap()) {
        let context = EnvironmentContext::gather(&env, DATE.into()).await;
        assert_eq!((context.is_git_repository, context.git.as_ref()), (false, None), "{env:?}");
        assert_eq!(context.date, DATE);
    }
}

/// A work tree whose index has this size, and in which git prints this before it hangs.
fn hanging(index: usize, stderr: &'static str, stdout: &'static str) -> MemoryEnvironment {
    MemoryEnvironment::new("/p")
        .with_file(".git/HEAD", "ref: refs/heads/main\n")
        .with_file(".git/index", vec![0_u8; index])
        .with_commands(move |_| CommandScript::exit(0).stderr(stderr).stdout(stdout).hang())
}

#[tokio::test(start_paused = true)]
async fn git_runs_once_with_a_timeout() {
    let log = "* 1a2b3c4 One\n\0";
    let known = GitContext::new("/p").with_branch("main").with_recent_commits(["1a2b3c4 One"]);
    let large = 1 << 20;
    for (index, stderr, stdout, milliseconds, expected) in [
        (0, log, "? new\n", 5_000..8_000, known.clone()),
        (0, log, "# branch.head other\n", 5_000..8_000, known.clone().with_branch("other")),
        // Also in a large work tree, late commits are not left out.
        (large, "* 1a2b3c4 One\n", "? new\n", 5_000..8_000, known.clone()),
    ] {
        let slow = hanging(index, stderr, stdout);
        let started = tokio::time::Instant::now();
        let context = EnvironmentContext::gather(&slow, DATE.into()).await;
        assert_eq!(context.git, Some(expected), "{index} {stdout:?}");
        let elapsed = started.elapsed().as_millis();
        assert!(milliseconds.contains(&elapsed), "{elapsed} ms by the runtime's paused clock");
        assert_eq!((slow.commands().len(), slow.running()), (1, 0));
    }

    let refusing = MemoryEnvironment::new("/p").with_file(".git/HEAD", "ref: refs/heads/main\n");
    assert!(!EnvironmentContext::gather(&refusing, DATE.into()).await.is_git_repository);
}

#[tokio::test(start_paused = true)]
async fn a_status_in_time_is_counted_in_a_large_work_tree() {
    let env = MemoryEnvironment::new("/p")
        .with_file(".git/HEAD", "ref: refs/heads/main\n")
        .with_file(".git/index", vec![0_u8; 1 << 20])
        .with_commands(|_| CommandScript::exit(0).stderr("* 1a2b3c4 One\n\0").stdout("? new\n"));
    let expected =
        GitContext::new("/p").with_branch("main").with_status(0, 1).with_recent_commits(["1a2b3c4 One"]);
    assert_eq!(EnvironmentContext::gather(&env, DATE.into()).await.git, Some(expected));
}

#[tokio::test]
async fn outside_of_a_work_tree_no_process_runs() {
    let env = MemoryEnvironment::new("/p/a").with_commands(|_| CommandScript::exit(0));
    assert!(!EnvironmentContext::gather(&env, DATE.into()).await.is_git_repository);
    assert_eq!(env.commands().len(), 0);
}

/// Where git refuses the expected work tree, or the root may be elsewhere, git reports the root.
#[tokio::test]
async fn git_decides_about_work_trees() {
    for (lines, below, root, commits) in [
        // An index that cannot be read.
        (["git commit -q --allow-empty -m One", "echo damaged > .git/index"], "", Some(""), 1),
        // A bare repository in a work tree.
        (["git commit -q --allow-empty -m One", "git clone -q --bare . bare"], "bare", None, 0),
        // A `.git` that git ignores.
        (["git commit -q --allow-empty -m One", "mkdir -p sub/.git/hooks"], "sub", Some(""), 1),
        // A work tree elsewhere.
        (["git config core.worktree ../sub", "mkdir sub"], "sub", Some("sub"), 0),
        // A linked work tree.
        (["git commit -q --allow-empty -m One", "git worktree add -q linked"], "linked", Some("linked"), 1),
    ] {
        let (directory, _env) = repository(&lines).await;
        let env = environment(&directory.path().join(below));
        let git = EnvironmentContext::gather(&env, DATE.into()).await.git;
        let found = git.as_ref().map(|git| git.root.clone());
        assert_eq!(found, root.map(|root| directory.path().join(root)), "{lines:?}");
        assert_eq!(git.map_or(0, |git| git.recent_commits.len()), commits, "{lines:?}");
    }
}

#[test]
fn a_context_round_trips_through_json() {
    let git = GitContext::new("/p").with_branch("main").with_status(1, 2).with_recent_commits(["a b"]);
    let context = EnvironmentContext::new("/p", "linux", "Linux 6", DATE).with_git(git);
    let json = serde_json::to_string(&context).unwrap();
    assert_eq!(serde_json::from_str::<EnvironmentContext>(&json).unwrap(), context);

    let not_utf8 = Path::new(OsStr::from_bytes(b"/caf\xe9"));
    let context = EnvironmentContext::new("/p", "linux", "Linux 6", DATE).with_git(GitContext::new(not_utf8));
    assert!(serde_json::to_string(&context).unwrap().contains("/caf\u{fffd}"));
}
