//! Tests against a shell of the local machine in place of a remote one: everything independent of
//! the transport.
#![expect(
    clippy::disallowed_methods,
    reason = "a local shell plays the remote one, and the tests prepare its files"
)]

pub(crate) mod late_start;
pub(crate) mod matrix;
pub(crate) mod same_results;
pub(crate) mod volume;

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    process,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use pintle_test_conditions::is_full;
use tempfile::TempDir;

use self::matrix::LONG;
use super::*;
use crate::{GrepMode, contract};

/// Runs lines in a local shell.
#[derive(Debug)]
struct LocalShell {
    shell: PathBuf,
    opened: AtomicUsize,
    /// When set, lines are accepted but have no effect.
    hangs: AtomicBool,
}

#[async_trait]
impl Transport for LocalShell {
    async fn open(&self) -> Result<(), EnvError> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn command(&self, line: &str) -> process::Command {
        let line = if self.hangs.load(Ordering::Relaxed) { "cat >/dev/null" } else { line };
        let mut command = process::Command::new(&self.shell);
        command.arg("-c").arg(line).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command
    }

    fn exit_error(&self, status: process::ExitStatus, stderr_tail: &str) -> EnvError {
        lost_error("local-shell", format!("{stderr_tail} {status}"))
    }

    fn concurrency(&self) -> usize {
        4
    }

    fn name(&self) -> &str {
        "local-shell"
    }
}

fn local_shell(shell: impl Into<PathBuf>) -> (TempDir, Remote<LocalShell>) {
    let directory = TempDir::new().unwrap();
    let settings = RemoteSettings {
        working_directory: Some(directory.path().canonicalize().unwrap()),
        ..RemoteSettings::default()
    };
    let transport =
        LocalShell { shell: shell.into(), opened: AtomicUsize::new(0), hangs: AtomicBool::new(false) };
    (directory, Remote::new(transport, settings).unwrap())
}

#[tokio::test]
async fn files_that_cannot_be_replaced_are_written_in_place_or_refused() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    for shell in ["/bin/sh", "/bin/bash"] {
        let (directory, environment) = local_shell(shell);
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "old, and longer").unwrap();
        fs::hard_link(at("file"), at("other")).unwrap();
        fs::set_permissions(at("file"), fs::Permissions::from_mode(0o640)).unwrap();
        for content in ["a", "another content"] {
            environment.write(&at("file"), content.as_bytes()).await.unwrap();
            assert_eq!(fs::read_to_string(at("other")).unwrap(), content, "{shell}");
        }
        assert_eq!(fs::metadata(at("file")).unwrap().mode() & 0o777, 0o640, "{shell}");
        fs::remove_file(at("other")).unwrap();
        let before = fs::metadata(at("file")).unwrap().ino();
        environment.write(&at("file"), b"replaced").await.unwrap();
        assert_ne!(fs::metadata(at("file")).unwrap().ino(), before, "{shell}");
        for mode in [0o444, 0o400, 0o000, 0o466, 0o060] {
            fs::set_permissions(at("file"), fs::Permissions::from_mode(mode)).unwrap();
            let metadata = environment.metadata(&at("file")).await.unwrap();
            assert_eq!(metadata.read_only_mode(), Some(mode), "{shell}: as a dry run finds it");
            let error = environment.write(&at("file"), b"new").await.unwrap_err();
            assert!(
                matches!(error, EnvError::ReadOnlyFile { mode: bits, .. } if bits == mode),
                "{shell} {mode:o}: {error:?}"
            );
        }
        fs::set_permissions(at("file"), fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(fs::read(at("file")).unwrap(), b"replaced", "{shell}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "{shell}: no copy is left");
    }
}

/// Another file or a link takes the name of a file with hard links, when one of the copies is synchronised.
#[tokio::test]
async fn a_file_that_takes_the_name_meanwhile_is_not_written() {
    for (copy, link) in
        [("*.pintle-*", "ln -s"), ("*.pintle-*", "ln"), ("*.before*", "ln -s"), ("*.before*", "ln")]
    {
        let (bin, directory) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "old").unwrap();
        fs::hard_link(at("file"), at("other")).unwrap();
        fs::write(at("secret"), "kept").unwrap();
        let swap = format!(
            "cd {} && [ ! -e moved ] && mv file moved && {link} secret file",
            directory.path().display()
        );
        write_executable(
            &bin.path().join("dd"),
            &format!("#!/bin/sh\ncase \"$*\" in {copy}) {swap} ;; esac\ntrue\n"),
        );
        let (_directory, environment) = local_shell(shell_with_programs(bin.path()));
        let error = environment.write(&at("file"), b"new").await.unwrap_err();
        assert!(format!("{error:?}").contains("another file took its place"), "{copy} {link}: {error:?}");
        for (name, content) in [("secret", "kept"), ("other", "old"), ("moved", "old")] {
            assert_eq!(fs::read_to_string(at(name)).unwrap(), content, "{copy} {link}: {name}");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4, "{copy} {link}: no copy is left");
        environment.cleanup().await.unwrap();
    }
}

fn write_executable(path: &Path, script: &str) {
    fs::write(path, script).unwrap();
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// Returns a shell that finds programs in a directory first. It is in that directory.
fn shell_with_programs(bin: &Path) -> PathBuf {
    let shell = bin.join("sh");
    write_executable(&shell, &format!("#!/bin/sh\nPATH={}:$PATH exec /bin/sh \"$@\"\n", bin.display()));
    shell
}

#[tokio::test]
async fn a_failed_write_or_rename_removes_created_directories() {
    for shell in ["/bin/sh", "/bin/bash"] {
        let (directory, environment) = local_shell(shell);
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("old")).unwrap();
        fs::write(at("file"), "").unwrap();
        // No file system accepts this name, which fails only at the rename.
        let too_long = "n".repeat(300);
        for above in ["new/a/b", "old/a", "old"] {
            let target = at(above).join(&too_long);
            environment.write(&target, b"x").await.unwrap_err();
            environment.rename(&at("file"), &target).await.unwrap_err();
            assert!(!at("new").exists() && !at("old/a").exists(), "{above} in {shell}");
        }
        environment.write(&at("new/a/file"), b"x").await.unwrap();
        environment.rename(&at("file"), &at("new/b/file")).await.unwrap();
        assert!(at("new/a/file").exists() && at("new/b/file").exists());
        environment.cleanup().await.unwrap();
    }
}

#[tokio::test]
async fn keeps_the_contract_in_every_shell() {
    // `sh` and `bash` are required. The others are `sh` on other systems, and are tested if they are installed.
    let others =
        ["/bin/dash", "/bin/mksh", "/bin/ksh93"].into_iter().filter(|shell| Path::new(shell).exists());
    let mut shell_by_file = BTreeMap::new();
    for shell in ["/bin/sh", "/bin/bash"].into_iter().chain(others) {
        // A shell with several names is tested once.
        shell_by_file.entry(fs::canonicalize(shell).unwrap()).or_insert(shell);
    }
    let mut checks = tokio::task::JoinSet::new();
    for shell in shell_by_file.into_values() {
        // Commands depend most on the shell. The other parts take seconds.
        let is_complete = shell == "/bin/sh" || is_full();
        checks.spawn(async move {
            let (_directory, environment) = local_shell(shell);
            environment.initialize().await.unwrap();
            assert_eq!(environment.platform(), "linux");
            assert!(environment.os_version().starts_with("Linux "));
            let root = environment.working_directory().join("contract");
            let kept = if is_complete {
                contract::all(&environment, &root).await
            } else {
                contract::commands(&environment, &root).await
            };
            environment.cleanup().await.unwrap();
            kept.unwrap_or_else(|violation| panic!("{shell}: {violation:?}"));
        });
    }
    checks.join_all().await;
}

#[tokio::test]
async fn no_command_starts_after_its_application_died() {
    let test = "remote::tests::no_command_starts_after_its_application_died";
    let build = |client: &Path| {
        let (directory, environment) = local_shell(client);
        // The application is killed, so the test's directory cleans up.
        let _ = directory.keep();
        environment
    };
    late_start::leaves_nothing(test, None, "/bin/sh", build).await;
}

#[tokio::test]
async fn remote_and_local_walks_agree() {
    let (directory, environment) = local_shell("/bin/sh");
    let root = directory.path().canonicalize().unwrap();
    same_results::fill(&root);
    same_results::walks_find_the_same(&environment, &root).await;
}

/// Entries that are missing for an unknown reason must not count as absent.
#[tokio::test]
async fn walk_with_an_unknown_failure_is_an_error() {
    for (failure, is_error) in [
        ("echo 'find: cannot fork: Resource temporarily unavailable' >&2; exit 1", true),
        ("exit 1", true),
        ("kill -9 $$", true),
        ("echo 'find: ./x: Permission denied' >&2; exit 1", false),
        ("exit 0", false),
    ] {
        let bin = TempDir::new().unwrap();
        write_executable(&bin.path().join("find"), &format!("#!/bin/sh\n{failure}\n"));
        let (_directory, environment) = local_shell(shell_with_programs(bin.path()));
        let walked = environment.walk(&WalkRequest::new("")).await;
        assert_eq!(walked.is_err(), is_error, "{failure}: {walked:?}");
        environment.cleanup().await.unwrap();
    }
}

#[tokio::test]
async fn stopped_walk_reports_nothing_that_is_ignored() {
    let (directory, environment) = local_shell("/bin/sh");
    same_results::fill(&directory.path().canonicalize().unwrap());
    let all = environment.walk(&WalkRequest::new("")).await.unwrap();
    for milliseconds in (0..60).step_by(if is_full() { 5 } else { 15 }) {
        let request = WalkRequest::new("").with_time_limit(std::time::Duration::from_millis(milliseconds));
        let some = environment.walk(&request).await.unwrap();
        assert!(some.entries.iter().all(|entry| all.entries.contains(entry)), "{milliseconds}: {some:?}");
    }
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn remote_and_portable_searches_agree() {
    let (directory, environment) = local_shell("/bin/sh");
    for (name, content) in [
        (".gitignore", "*.log\n"),
        ("a.log", "needle\n"),
        ("a.txt", "needle one\nNeedle two\n"),
        ("b/binary", "needle\0"),
        ("b/zero", "nothing\0"),
        ("b/wide", "\u{fffd}"),
        ("c/two\nlines", "needle\n"),
    ] {
        fs::create_dir_all(directory.path().join(name).parent().unwrap()).unwrap();
        fs::write(directory.path().join(name), content).unwrap();
    }
    fs::write(directory.path().join("b/wide"), b"\xff\xfen\0e\0e\0d\0l\0e\0").unwrap();
    // Without ripgrep, the remote search uses grep.
    let has_ripgrep = environment.system_info().await.unwrap().has_ripgrep;
    assert_eq!(has_ripgrep, pintle_test_conditions::RIPGREP.is_present());
    for pattern in ["needle", "n[e]+dle", "nothing", "absent"] {
        for mode in [GrepMode::Content, GrepMode::FilesWithMatches, GrepMode::Count] {
            for ignored in [false, true] {
                // By default, each pattern in one mode, and one pattern in each mode, with case and without.
                let is_sampled = pattern == "needle" || (mode == GrepMode::Content && !ignored);
                if !is_sampled && !is_full() {
                    continue;
                }
                let request = GrepRequest::new(pattern).with_output_mode(mode).with_case_insensitive(ignored);
                let remote = environment.grep(&request).await.unwrap();
                let portable = crate::environment::search::grep(&environment, &request).await.unwrap();
                assert_eq!(remote, portable, "{request:?}");
            }
        }
    }
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn commands_reconnect_after_a_cleanup() {
    let (directory, environment) = local_shell("/bin/sh");
    let request = ExecRequest::new("echo $$ >id; sleep 1000").with_timeout(LONG);
    let cleanup = async {
        matrix::until("the command begins", || directory.path().join("id").exists()).await;
        environment.cleanup().await.unwrap();
        environment.cleanup().await.unwrap();
    };
    let (ended, ()) = tokio::join!(environment.exec_command(request), cleanup);
    // Either its exit was reported, or the exit of the supervisor was seen first.
    assert!(!matches!(&ended, Ok(result) if result.exit_code != 143), "{ended:?}");
    let id = fs::read_to_string(directory.path().join("id")).unwrap();
    assert!(!Path::new("/proc").join(id.trim()).exists());
    assert!(environment.exec_command(ExecRequest::new("true")).await.unwrap().success());
    assert_eq!(environment.transport().opened.load(Ordering::Relaxed), 2);
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn a_silent_client_exit_is_a_loss() {
    let (_directory, environment) = local_shell("/bin/false");
    let error = environment.initialize().await.unwrap_err();
    let EnvError::EnvironmentLost { environment, source: Some(source) } = error else { panic!("{error:?}") };
    assert_eq!(environment, "local-shell");
    assert!(source.to_string().contains(&process::ExitStatus::from_raw(1 << 8).to_string()), "{source}");
}

#[tokio::test]
async fn killing_the_wrapper_is_a_loss_and_leaves_nothing() {
    let (directory, environment) = local_shell("/bin/sh");
    let line = "echo $$ >id; kill -KILL $PPID; sleep 1000";
    let started = Instant::now();
    let error = environment.exec_command(ExecRequest::new(line).with_timeout(LONG)).await.unwrap_err();
    assert!(started.elapsed() < LONG / 2);
    assert!(matches!(error, EnvError::EnvironmentLost { .. }), "{error:?}");
    let id = fs::read_to_string(directory.path().join("id")).unwrap();
    matrix::until("the command is ended", || !Path::new("/proc").join(id.trim()).exists()).await;
    assert!(environment.exec_command(ExecRequest::new("true")).await.unwrap().success());
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn early_output_belongs_to_the_command() {
    let (_directory, environment) = local_shell("/bin/sh");
    for _ in 0..20 {
        let result = environment.exec_command(ExecRequest::new("echo error >&2")).await.unwrap();
        assert_eq!(result.stderr.to_text_lossy().unwrap(), "error\n");
    }
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn waiting_and_reading_do_not_block_each_other() {
    let (_directory, environment) = local_shell("/bin/sh");
    // The job holds both streams open without writing.
    let mut process = environment.spawn(Command::shell("sleep 1000 & exit 3")).await.unwrap();
    let mut output = process.take_output().unwrap();
    let status = tokio::select! {
        biased;
        chunk = output.next_chunk() => panic!("{chunk:?}"),
        status = process.wait() => status.unwrap(),
    };
    assert_eq!(status.code(), 3);
    assert_eq!(process.terminate(std::time::Duration::from_secs(2)).await.unwrap(), 1);
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn endless_processes_leave_slots_for_commands() {
    let (_directory, environment) = local_shell("/bin/sh");
    let spawn = || environment.spawn(Command::shell("sleep 1000"));
    let mut running = Vec::new();
    for _ in 0..3 {
        running.push(spawn().await.unwrap());
    }
    let one_more = tokio::time::timeout(std::time::Duration::from_millis(200), spawn()).await;
    assert!(one_more.is_err(), "it took the last slot");
    assert!(environment.exec_command(ExecRequest::new("true")).await.unwrap().success());
    drop(running.pop());
    drop(spawn().await.unwrap());
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn a_hanging_start_is_a_loss() {
    let (_directory, environment) = local_shell("/bin/sh");
    environment.initialize().await.unwrap();
    environment.transport().hangs.store(true, Ordering::Relaxed);
    // Nothing will happen any more, so let the paused clock skip the time-out.
    tokio::time::pause();
    let error = environment.exec_command(ExecRequest::new("true")).await.unwrap_err();
    tokio::time::resume();
    assert!(matches!(error, EnvError::EnvironmentLost { .. }), "{error:?}");
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn output_before_a_line_is_discarded() {
    let (_directory, environment) = local_shell("/bin/sh");
    let transport = NoisyTransport(environment.transport);
    let environment = Remote::new(transport, environment.settings).unwrap();
    let result = environment.exec_command(ExecRequest::new("echo out; echo err >&2")).await.unwrap();
    assert_eq!(result.stdout.to_text_lossy().unwrap(), "out\n");
    assert_eq!(result.stderr.to_text_lossy().unwrap(), "err\n");
    environment.cleanup().await.unwrap();
}

/// Prints on both streams before it runs a line, without a final line feed.
#[derive(Debug)]
struct NoisyTransport(Arc<LocalShell>);

#[async_trait]
impl Transport for NoisyTransport {
    fn command(&self, line: &str) -> process::Command {
        let noise = "head -c 30000 /dev/zero; head -c 600000 /dev/zero >&2;";
        self.0.command(&format!("{noise} {line}"))
    }

    fn exit_error(&self, status: process::ExitStatus, stderr_tail: &str) -> EnvError {
        self.0.exit_error(status, stderr_tail)
    }

    fn concurrency(&self) -> usize {
        self.0.concurrency()
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}
