//! The level *full*.

use super::*;

#[tokio::test]
async fn keeps_the_contract_at_level_full() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let environment = Confined::new(Arc::new(environment), [harness.at("root")]);
    environment.initialize().await.unwrap();
    contract::files(&environment, &harness.at("root/files")).await.unwrap();
    contract::search(&environment, &harness.at("root/search")).await.unwrap();
    contract::commands(&environment, &harness.at("root/commands")).await.unwrap();
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn exits_and_signals_arrive_from_the_namespace() {
    use crate::ExitStatus;
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    environment.initialize().await.unwrap();
    for (line, status) in [
        ("exit 0", ExitStatus::Exited(0)),
        ("exit 7", ExitStatus::Exited(7)),
        ("exit 255", ExitStatus::Exited(255)),
        ("kill -KILL $$", ExitStatus::Signaled(9)),
        ("kill -TERM $$", ExitStatus::Signaled(15)),
    ] {
        let mut process = environment.spawn(Command::shell(line)).await.unwrap();
        assert_eq!(process.wait().await.unwrap(), status, "{line}");
    }
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn jobs_end_with_their_command() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    environment.initialize().await.unwrap();
    let mark = format!("pintle-{}", std::process::id());
    for (job, count) in [
        (format!("sleep 1000 & exec -a {mark} sleep 1000 >/dev/null 2>&1 & exit 0"), 2),
        (format!("env -i setsid bash -c 'exec -a {mark} sleep 1000' >/dev/null 2>&1 & sleep 0.2"), 1),
        (format!("(env -i setsid bash -c '(exec -a {mark} sleep 1000 &)' >/dev/null 2>&1 &); sleep 0.2"), 1),
        (
            format!(
                "f() {{ exec -a {mark} sleep 1000 & f2; }}; f2() {{ for i in 1 2 3 4 5 6 7 8 9; do exec -a {mark} sleep 1000 & done; }}; f"
            ),
            10,
        ),
        ("true &".to_owned(), 0),
    ] {
        let result = run(&environment, &job).await;
        assert_eq!((result.exit_code, result.ended_jobs), (0, count), "{job}");
        assert_eq!(running(&mark), 0, "{job}");
    }
    environment.cleanup().await.unwrap();
}

/// Returns how many processes have this as their first argument, on the whole machine.
pub(super) fn running(name: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with(name.as_bytes())).count()
}

#[tokio::test]
async fn programs_that_cannot_start_are_errors() {
    use std::os::unix::fs::PermissionsExt;
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    fs::write(harness.at("root").join("plain"), "").unwrap();
    fs::write(harness.at("root").join("script"), "#!/no/interpreter\n").unwrap();
    fs::set_permissions(harness.at("root/script"), fs::Permissions::from_mode(0o755)).unwrap();
    environment.initialize().await.unwrap();
    let none: [&str; 0] = [];
    for (name, kind) in [
        ("no-such-program", io::ErrorKind::NotFound),
        ("./missing", io::ErrorKind::NotFound),
        ("./script", io::ErrorKind::NotFound),
        ("./plain", io::ErrorKind::PermissionDenied),
        ("/", io::ErrorKind::PermissionDenied),
    ] {
        let error = environment.spawn(Command::argv(name, none)).await.unwrap_err();
        let EnvError::Spawn { program, source } = error else { panic!("{error:?}") };
        assert_eq!((program.as_str(), source.kind()), (name, kind));
    }
    let gone = Command::shell("true").with_working_dir("gone");
    let error = environment.spawn(gone).await.unwrap_err();
    assert!(matches!(error, EnvError::NotFound { .. }), "{error:?}");
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn programs_of_one_command_share_a_loopback() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    environment.initialize().await.unwrap();
    let line = "python3 -m http.server --bind 127.0.0.1 8125 >/dev/null 2>&1 & \
                for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; \
                if (exec 3<>/dev/tcp/127.0.0.1/8125) 2>/dev/null; then kill $!; exit 0; fi; done; exit 1";
    if !run(&environment, "command -v python3").await.success() {
        println!("SKIPPED: python3 is not here to serve");
        return;
    }
    for _ in 0..2 {
        assert!(run(&environment, line).await.success());
    }
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn the_temporary_directory_is_private() {
    let harness = Harness::new();
    let temporary = TempDir::new().unwrap();
    let mark = TempDir::new().unwrap();
    let seen = format!("test -e {}", mark.path().display());
    assert!(run(&harness.local(), &seen).await.success());
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    environment.initialize().await.unwrap();
    assert!(!run(&environment, &seen).await.success());
    assert!(run(&environment, "test -z \"$(ls /run)\" && ! touch /run/x").await.success());
    assert!(run(&environment, "echo x >/tmp/file && cat /tmp/file").await.success());
    assert!(!run(&environment, "cat /tmp/file").await.success());
    let environment = environment.with_temporary(temporary.path());
    environment.initialize().await.unwrap();
    assert!(
        run(&environment, "echo x >/tmp/one && echo x >/var/tmp/two && echo x >$TMPDIR/three")
            .await
            .success()
    );
    assert!(run(&environment, "cat $TMPDIR/one /tmp/two /var/tmp/three").await.success());
    for name in ["one", "two", "three"] {
        assert_eq!(fs::read_to_string(temporary.path().join(name)).unwrap(), "x\n", "{name}");
    }
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn the_most_specific_path_decides() {
    let harness = Harness::new();
    for directory in ["hidden/visible", "root/locked/open"] {
        fs::create_dir_all(harness.at("").join(directory)).unwrap();
    }
    fs::write(harness.at("").join("hidden/secret"), "x").unwrap();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let environment = environment
        .with_hidden("../hidden")
        .with_writable("../hidden/visible")
        .with_protected("locked")
        .with_writable("locked/open");
    environment.initialize().await.unwrap();
    let line = "echo x >../hidden/visible/file && echo x >locked/open/file && ! echo x >locked/file \
                && ! cat ../hidden/secret && ! echo x >../hidden/new";
    assert!(run(&environment, line).await.success());
    environment.cleanup().await.unwrap();
}
