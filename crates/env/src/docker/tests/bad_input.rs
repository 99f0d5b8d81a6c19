//! Bad input causes typed errors with the path, and leaves existing files unchanged.

use std::{
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    time::Duration,
};

use super::{image, in_a_container};
use crate::{
    DockerEnvironment, EnvError, EnvPolicy, ExecRequest, ExecResult, ExecutionEnvironment,
    ExecutionEnvironmentExt as _, GrepRequest, MAX_READ, Mount,
};

async fn run(environment: &DockerEnvironment, line: &str) -> ExecResult {
    environment.exec_command(ExecRequest::new(line).with_timeout(Duration::from_secs(60))).await.unwrap()
}

fn text(result: &ExecResult) -> String {
    result.stdout.to_text_lossy().unwrap()
}

#[tokio::test]
async fn bad_paths_have_distinct_errors() {
    in_a_container(Some("1000:1000"), async |environment| {
        run(environment, "ln -s gone broken; ln -s loop loop; mkfifo pipe; mkdir full; >full/x; >closed; chmod 0 closed").await;
        run(environment, "mkdir shut; >shut/x; chmod 0 shut").await;
        let read = async |path: &str| environment.read(Path::new(path), None).await.unwrap_err();
        assert!(matches!(read("broken").await, EnvError::NotFound { path, .. } if path == Path::new("/tmp/broken")));
        assert!(matches!(read("loop").await, EnvError::Io { action: "read", .. }));
        assert!(matches!(read("loop/x").await, EnvError::Io { action: "read", .. }));
        assert!(matches!(read("pipe").await, EnvError::NotARegularFile { .. }));
        assert!(matches!(read("full").await, EnvError::IsADirectory { .. }));
        assert!(matches!(read("closed").await, EnvError::PermissionDenied { .. }));
        assert!(matches!(read("shut/x").await, EnvError::PermissionDenied { .. }));
        assert!(matches!(read("full/x/y").await, EnvError::NotADirectory { .. }));
        assert!(matches!(read(&"x".repeat(300)).await, EnvError::InvalidPath { .. }));
        let write = async |path: &str| environment.write(Path::new(path), b"x").await.unwrap_err();
        assert!(matches!(write("loop").await, EnvError::Io { action: "write", .. }));
        assert!(matches!(write("pipe").await, EnvError::NotARegularFile { .. }));
        assert!(matches!(write("shut/x").await, EnvError::PermissionDenied { .. }));
        assert!(matches!(write("/bin/x").await, EnvError::PermissionDenied { .. }));
        assert!(matches!(write("/bin/x/y").await, EnvError::PermissionDenied { .. }));
        let removed = environment.remove(Path::new("/bin/busybox")).await.unwrap_err();
        assert!(matches!(removed, EnvError::PermissionDenied { .. }), "{removed:?}");
        let listed = environment.list(Path::new("shut")).await.unwrap_err();
        assert!(matches!(listed, EnvError::PermissionDenied { .. }), "{listed:?}");
        let spawned = environment.exec_command(ExecRequest::new("true").with_working_dir("shut")).await;
        assert!(matches!(spawned, Err(EnvError::PermissionDenied { .. })), "{spawned:?}");
        let renamed = environment.rename(Path::new("full/x"), Path::new("/dev/shm/x")).await.unwrap_err();
        assert!(matches!(renamed, EnvError::Io { action: "rename", .. }), "{renamed:?}");
        // A dangling link creates its target.
        environment.write(Path::new("broken"), b"made").await.unwrap();
        assert_eq!(environment.read(Path::new("gone"), None).await.unwrap(), b"made");
    })
    .await;
}

#[tokio::test]
async fn modes_owners_and_links_are_kept() {
    in_a_container(None, async |environment| {
        run(
            environment,
            "echo old >file; chown 12:34 file; chmod 4751 file; mkdir -p a/b; ln -s ../../file a/b/link",
        )
        .await;
        environment.write(Path::new("a/b/link"), b"new").await.unwrap();
        let facts =
            run(environment, "stat -c '%u:%g %a %s' file; readlink a/b/link; ls -A . a/b | grep pintle")
                .await;
        assert_eq!(text(&facts), "12:34 4751 3\n../../file\n");
        let at = environment.canonicalize(Path::new("a/b/link")).await.unwrap();
        assert_eq!(at, Path::new("/tmp/file"));
        let at = environment.canonicalize(Path::new("a/new/one")).await.unwrap();
        assert_eq!(at, Path::new("/tmp/a/new/one"));
    })
    .await;
}

#[tokio::test]
async fn a_huge_file_can_only_be_read_in_ranges() {
    in_a_container(None, async |environment| {
        run(environment, "dd if=/dev/null of=huge bs=1 seek=2147483648; printf end >>huge").await;
        let huge = Path::new("huge");
        let error = environment.read(huge, None).await.unwrap_err();
        assert!(matches!(error, EnvError::TooLarge { limit: MAX_READ, .. }), "{error:?}");
        assert_eq!(environment.metadata(huge).await.unwrap().len, (2 << 30) + 3);
        let end = environment.read(huge, Some((2 << 30) - 2..u64::MAX)).await.unwrap();
        assert_eq!(end, b"\0\0end");
        assert!(environment.read(huge, Some(u64::MAX - 1..u64::MAX)).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn full_and_read_only_disks_keep_the_old_content() {
    let Some(image) = image() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("old"), "old").unwrap();
    let image = image.with_mount(Mount::new(directory.path(), "/fixed").with_read_only(true));
    let environment = DockerEnvironment::start(image).build().unwrap();
    let fixed = Path::new("/fixed/old");
    for error in [
        environment.write(fixed, b"new").await.unwrap_err(),
        environment.write(Path::new("/fixed/fresh/x"), b"new").await.unwrap_err(),
        environment.remove(fixed).await.unwrap_err(),
    ] {
        assert!(matches!(&error, EnvError::Io { path, .. } if path.starts_with("/fixed")), "{error:?}");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("Read-only file system"), "{cause}");
    }
    // The shared memory of a container is a file system of 64 MiB.
    let full = Path::new("/dev/shm/file");
    environment.write(full, b"old").await.unwrap();
    let error = environment.write(full, &vec![b'x'; 80 << 20]).await.unwrap_err();
    assert!(matches!(error, EnvError::Io { action: "write", .. }), "{error:?}");
    assert_eq!(environment.read(full, None).await.unwrap(), b"old");
    assert_eq!(environment.list(Path::new("/dev/shm")).await.unwrap().len(), 1);
    assert_eq!(environment.read(fixed, None).await.unwrap(), b"old");
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn invalid_patterns_are_refused() {
    in_a_container(None, async |environment| {
        let error = environment.glob("a[", Path::new("")).await.unwrap_err();
        assert!(matches!(error, EnvError::InvalidPattern { .. }), "{error:?}");
        let error = environment.grep(&GrepRequest::new("(")).await.unwrap_err();
        assert!(matches!(error, EnvError::InvalidPattern { .. }), "{error:?}");
        let command = crate::Command::argv("echo", ["a\0b"]);
        let error = environment.spawn(command).await.unwrap_err();
        assert!(matches!(error, EnvError::Spawn { .. }), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn a_dropped_write_leaves_the_old_file() {
    in_a_container(None, async |environment| {
        let path = Path::new("file");
        environment.write(path, b"old").await.unwrap();
        let large = vec![b'x'; 64 << 20];
        for delay in [0, 20, 60, 120, 200] {
            let writing = environment.write(path, &large);
            let _ = tokio::time::timeout(Duration::from_millis(delay), writing)
                .await
                .expect_err("it takes longer");
        }
        // Dropped commands are terminated soon, and their temporary files removed.
        for _ in 0..100 {
            if environment.list(Path::new("")).await.unwrap().len() == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(environment.list(Path::new("")).await.unwrap().len(), 1);
        assert_eq!(environment.read(path, None).await.unwrap(), b"old");
    })
    .await;
}

#[tokio::test]
async fn policies_filter_container_variables() {
    let Some(image) = image() else {
        return;
    };
    let run =
        ["run", "--detach", "--rm", "--network", "none", "--env", "A_TOKEN=x", "--env", "EDITOR=two\nlines"];
    let run = [run.as_slice(), &["--env", "DB=postgres://me:hunter2@db/app"]].concat();
    let words = [image.name.as_str(), "sh", "-c", "while :; do sleep 1000 & wait $!; done"];
    let started = std::process::Command::new("docker").args(run).args(words).output().unwrap();
    let container = String::from_utf8(started.stdout).unwrap().trim().to_owned();
    for (policy, expected) in [
        (EnvPolicy::InheritAll, "A_TOKEN DB EDITOR HOME HOSTNAME PATH"),
        (EnvPolicy::InheritFiltered, "EDITOR HOME HOSTNAME PATH"),
        (EnvPolicy::InheritCore, "HOME PATH"),
        // A shell without a PATH sets a default one.
        (EnvPolicy::InheritNone, "PATH"),
    ] {
        let environment = DockerEnvironment::attach(container.as_str())
            .with_env_policy(policy)
            .with_variable("OWN_TOKEN", "secret value")
            .build()
            .unwrap();
        assert!(!format!("{environment:?}").contains("secret value"));
        let request = ExecRequest::new("/bin/cat /proc/$$/environ; :")
            .with_env("odd.name", "a b")
            .with_env("IFS", "x")
            .with_env("PPID", "1")
            .with_env("pintle_n", "'\n");
        let result = environment.exec_command(request).await.unwrap();
        let listed = text(&result).replace('\0', "\n");
        for variable in
            ["OWN_TOKEN=secret value\n", "odd.name=a b\n", "IFS=x\n", "PPID=1\n", "pintle_n='\n\n"]
        {
            assert!(listed.contains(variable), "{variable} {listed} {result:?}");
        }
        let mut names: Vec<_> = listed.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        names.retain(|name| {
            !["OWN_TOKEN", "odd.name", "IFS", "PPID", "pintle_n", "PWD", "PINTLE_COMMAND_TAG", "SHLVL"]
                .contains(name)
        });
        names.sort_unstable();
        assert_eq!(names.join(" "), expected, "{policy:?}");
        environment.cleanup().await.unwrap();
    }
    std::process::Command::new("docker").args(["kill", &container]).output().unwrap();
}

#[tokio::test]
async fn the_superuser_does_not_write_read_only_files() {
    let Some(image) = image() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("file"), "old").unwrap();
    std::fs::set_permissions(at("file"), std::fs::Permissions::from_mode(0o400)).unwrap();
    symlink("file", at("link")).unwrap();
    let environment =
        DockerEnvironment::start(image.with_mount(Mount::new(directory.path(), "/work dir, \"x\"")))
            .build()
            .unwrap();
    let error = environment.write(Path::new("/work dir, \"x\"/link"), b"new").await.unwrap_err();
    assert!(matches!(error, EnvError::ReadOnlyFile { mode: 0o400, .. }), "{error:?}");
    assert_eq!(std::fs::read(at("file")).unwrap(), b"old");
    assert_eq!(std::fs::metadata(at("file")).unwrap().permissions().mode() & 0o777, 0o400);
    environment.cleanup().await.unwrap();
}
