//! Checkpoints in containers and on remote hosts. `cargo xtask services up` starts both.

use std::path::Path;
use std::sync::Arc;

use pintle_env::{ContainerImage, DockerEnvironment, ExecRequest, ExecutionEnvironment, SshEnvironment};
use pintle_test_conditions::cases;

use super::workspace::InMemory;
use crate::checkpoint::*;

/// Prepares a tree with every type of entry, in a shell that may be busybox.
const TREE: &str = r#"
set -e
mkdir -p .git/objects nested/.git d/e empty swap/in build "$(printf 'odd\377')"
printf 'git' >.git/index
printf 'git' >nested/.git/HEAD
printf '*.log\nbuild/\n' >.gitignore
printf 'ignored' >d/x.log
printf 'ignored' >build/out
printf 'one\n' >d/one
printf 'two\n' >d/e/two
printf 'private' >private; chmod 600 private
printf '#!/bin/sh\n' >run; chmod 755 run
printf 'x' >"$(printf 'two\nlines')"
printf 'x' >"$(printf 'odd\377')/file"
printf 'in' >swap/in/file
printf 'nested' >nested/file
ln -s one d/link
ln -s "$(printf 'no\nwhere')" broken
"#;

/// Changes it in every way.
const CHANGES: &str = r#"
set -e
printf 'changed' >d/one
rm d/e/two "$(printf 'two\nlines')"
chmod 644 private run
rm -r swap empty; printf 'file' >swap
rm -r d/e; ln -s .. d/e
rm d/link; mkdir -p d/link/deep; printf 'x' >d/link/deep/file
rm broken; ln -s elsewhere broken
mkdir -p new/dir; printf 'new' >new/dir/file; printf 'ignored' >new/y.log
printf 'changed' >nested/file
"#;

/// Prints everything, git's data and ignored files included.
const SNAPSHOT: &str = r#"
find . ! -name . -exec sh -c '
    for path; do
        if [ -L "$path" ]; then printf "%s -> " "$path"; readlink "$path"
        elif [ -d "$path" ]; then stat -c "%n %a" "$path"
        else stat -c "%n %a" "$path"; od -An -tx1 "$path"; fi
    done' sh {} + | sort
"#;

async fn run(env: &dyn ExecutionEnvironment, root: &Path, line: &str) -> String {
    let result = env.exec_command(ExecRequest::new(line).with_working_dir(root)).await.unwrap();
    assert!(result.success(), "{}", result.stderr.to_text_lossy().unwrap());
    result.stdout.to_text_lossy().unwrap()
}

/// Takes, compares, restores and undoes in a directory that does not exist yet.
async fn checkpoints_work(env: Arc<dyn ExecutionEnvironment>, root: &Path) {
    env.create_directory(root).await.unwrap();
    let (blobs, limits) =
        (InMemory::default(), CheckpointLimits::default().with_time(std::time::Duration::from_secs(600)));
    let now = async |previous: Option<&Manifest>| {
        take(env.as_ref(), root, &blobs, previous, &limits).await.unwrap().manifest
    };
    run(env.as_ref(), root, TREE).await;
    let before = run(env.as_ref(), root, SNAPSHOT).await;
    // Whole seconds settle after two.
    run(env.as_ref(), root, "sleep 3").await;
    let target = now(None).await;
    assert!(!target.is_partial());
    assert!(target.entries().values().any(|entry| entry.identity.is_some()));
    assert_eq!(now(Some(&target)).await, target);
    run(env.as_ref(), root, CHANGES).await;
    let changed = run(env.as_ref(), root, SNAPSHOT).await;
    let present = now(Some(&target)).await;
    assert_eq!(present.compare(&now(None).await), Comparison::default());

    let plan = plan_restore(env.as_ref(), root, &target, &present, &present).await.unwrap();
    assert_eq!((plan.left_alone.as_slice(), plan.foreign.len()), ([].as_slice(), 0));
    let restored = restore(&env, &plan, &blobs).await.unwrap();
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(restored.kept_directories, [Path::new("new")]);
    let with_ignored = run(env.as_ref(), root, SNAPSHOT).await;
    let is_new = |line: &&str| !line.starts_with("./new");
    let ignored = "69 67 6e 6f 72 65 64";
    let count = |text: &str| text.matches(ignored).count();
    assert_eq!(count(&with_ignored), count(&before) + 1);
    run(env.as_ref(), root, "mkdir -p ../aside && mv new ../aside").await;
    assert_eq!(run(env.as_ref(), root, SNAPSHOT).await, before);
    assert!(with_ignored.lines().filter(is_new).count() >= before.lines().count());

    run(env.as_ref(), root, "mv ../aside/new .").await;
    let again = now(None).await;
    let plan = plan_restore(env.as_ref(), root, &present, &again, &again).await.unwrap();
    let restored = restore(&env, &plan, &blobs).await.unwrap();
    assert!(restored.is_complete(), "{restored:?}");
    assert_eq!(run(env.as_ref(), root, SNAPSHOT).await, changed);
}

#[tokio::test]
async fn local_checkpoints_work() {
    let directory = tempfile::tempdir().unwrap();
    let local = pintle_env::LocalEnvironment::builder(directory.path())
        .with_variable("PATH", "/usr/local/bin:/usr/bin:/bin")
        .build()
        .unwrap();
    checkpoints_work(Arc::new(local), &directory.path().join("root")).await;
}

/// By default, the test on a remote host covers the commands of checkpoints.
#[tokio::test]
async fn checkpoints_in_a_container_work() {
    if !pintle_test_conditions::CONTAINERS.is_present() || !pintle_test_conditions::is_full() {
        return;
    }
    let image = std::env::var("PINTLE_TEST_IMAGE").unwrap();
    for user in [None, Some("1000:1000")] {
        let image = ContainerImage::new(image.as_str()).with_network("none");
        let image = match user {
            Some(user) => image.with_user(user),
            None => image,
        };
        let env = DockerEnvironment::start(image).with_working_directory("/tmp").build().unwrap();
        env.initialize().await.unwrap();
        let env: Arc<dyn ExecutionEnvironment> = Arc::new(env);
        checkpoints_work(Arc::clone(&env), Path::new("/tmp/checkpoints")).await;
        env.cleanup().await.unwrap();
    }
}

#[tokio::test]
async fn checkpoints_on_a_remote_host_work() {
    if !pintle_test_conditions::SSH_SERVERS.is_present() {
        return;
    }
    let config = std::env::var_os("PINTLE_TEST_SSH").unwrap();
    for host in cases(&["root"][..], &["root", "tester"]) {
        let env = SshEnvironment::builder(*host)
            .with_config_file(&config)
            .with_working_directory("/tmp")
            .build()
            .unwrap();
        env.initialize().await.unwrap();
        let env: Arc<dyn ExecutionEnvironment> = Arc::new(env);
        let directory = run(env.as_ref(), Path::new("/tmp"), "mktemp -d").await;
        let directory = Path::new(directory.trim());
        checkpoints_work(Arc::clone(&env), &directory.join("root")).await;
        run(env.as_ref(), Path::new("/tmp"), &format!("rm -r '{}'", directory.display())).await;
        env.cleanup().await.unwrap();
    }
}
