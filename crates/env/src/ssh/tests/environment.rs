//! The environment as a whole: the contract, bad input, loss, and death of the application.

use std::{
    error::Error,
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use pintle_test_conditions::cases;
use tokio::task::JoinSet;

use super::service::{Harness, Proxy, config_file, environment, option, processes_naming, remote_directory};
use crate::{
    command::ExecRequest,
    contract,
    environment::{ExecutionEnvironment, ExecutionEnvironmentExt as _},
    error::EnvError,
    remote::tests::{
        late_start,
        matrix::{LONG, in_own_process, processes_with, this_test, until},
        same_results::{fill, searches_find_the_same, walks_find_the_same},
        volume,
    },
    search::GrepRequest,
    ssh::{SshEnvironment, SshError, SshErrorKind},
};

/// Time limit for remote processes after the application died: the heartbeat time-out of the remote
/// supervisor, plus the termination of the commands.
const WATCHDOG: Duration = Duration::from_secs(40);

#[tokio::test]
async fn keeps_the_contract() {
    let Some(services) = config_file() else { return };
    let mut checks = JoinSet::new();
    for host in cases(&["tester"][..], &["limits", "root", "tester"]) {
        let (remote, harness) = (remote_directory(host), Harness::new(&services, ""));
        checks.spawn(async move {
            let env = harness.environment(host, remote.path());
            env.initialize().await.unwrap();
            let kept = contract::all(&env, &remote.path().join("contract")).await;
            kept.unwrap_or_else(|violation| panic!("{host}: {violation:?}"));
            env.cleanup().await.unwrap();
            assert_eq!(harness.sockets(), 0);
        });
    }
    checks.join_all().await;
}

#[tokio::test]
async fn system_information_is_remote() {
    let Some(services) = config_file() else { return };
    let harness = Harness::new(&services, "");
    let config = harness.directory.path().join("config");
    let env = SshEnvironment::builder("tester")
        .with_config_file(config)
        .with_variable("GREETING", "it's\nme")
        .build()
        .unwrap();
    env.initialize().await.unwrap();
    assert_eq!(env.platform(), "linux");
    assert!(env.os_version().starts_with("Linux "), "{}", env.os_version());
    let line = "pwd; echo $HOME; echo \"$GREETING\"; echo ${CARGO_MANIFEST_DIR-unset}";
    let result = env.exec_command(ExecRequest::new(line)).await.unwrap();
    let home = env.working_directory().display();
    assert_eq!(result.stdout.to_text_lossy().unwrap(), format!("{home}\n{home}\nit's\nme\nunset\n"));
    assert!(!format!("{env:?}").contains("it's"), "{env:?}");
    env.cleanup().await.unwrap();
    let relative = SshEnvironment::builder("tester").with_working_directory("here").build();
    assert!(matches!(relative, Err(EnvError::InvalidPath { path, .. }) if path == Path::new("here")));
}

/// bash would read `.bashrc` when it detects that ssh started it.
#[tokio::test]
async fn commands_read_no_startup_file() {
    let Some(services) = config_file() else { return };
    let (remote, harness) = (remote_directory("tester"), Harness::new(&services, ""));
    fs::write(remote.path().join(".bashrc"), "echo noise; echo noise >&2").unwrap();
    let env = harness.environment("tester", remote.path());
    let request = ExecRequest::new("echo done").with_env("HOME", remote.path().to_str().unwrap());
    let result = env.exec_command(request).await.unwrap();
    assert_eq!(result.output.to_text_lossy().unwrap(), "done\n");
    env.cleanup().await.unwrap();
}

/// All kinds of login shells, with start-up files that print on both streams without a final line
/// feed.
#[tokio::test]
async fn any_login_shell_works() {
    let Some(services) = config_file() else { return };
    for host in ["bash", "csh", "fish"] {
        let (remote, harness) = (remote_directory(host), Harness::new(&services, ""));
        let env = harness.environment(host, remote.path());
        env.initialize().await.unwrap();
        assert_eq!(env.platform(), "linux", "{host}");
        for name in HOSTILE {
            let path = remote.path().join(OsStr::from_bytes(name));
            env.write(&path, name).await.unwrap();
            assert_eq!(env.read(&path, None).await.unwrap(), name, "{host}");
        }
        let request = ExecRequest::new("cat; printf out; printf err >&2; exit 7").with_stdin("in ");
        let result = env.exec_command(request).await.unwrap();
        assert_eq!(result.stdout.to_text_lossy().unwrap(), "in out", "{host}");
        assert_eq!(result.stderr.to_text_lossy().unwrap(), "err", "{host}");
        assert_eq!(result.exit_code, 7, "{host}");
        let request = ExecRequest::new("sleep 1000 & sleep 1000").with_timeout(Duration::from_millis(300));
        assert!(env.exec_command(request.with_env("PINTLE_SHELL", remote.name())).await.unwrap().timed_out);
        assert_eq!(processes_with(&format!("PINTLE_SHELL={}", remote.name())).len(), 0, "{host}");
        env.cleanup().await.unwrap();
    }
}

/// The servers run on this machine. Without ripgrep, they search with grep.
#[tokio::test]
async fn local_and_remote_ripgrep_searches_agree() {
    let Some(services) = config_file() else { return };
    let (remote, harness) = (remote_directory("tester"), Harness::new(&services, ""));
    fill(remote.path());
    let env = harness.environment("tester", remote.path());
    let has_ripgrep = env.exec_command(ExecRequest::new("command -v rg")).await.unwrap().success();
    assert_eq!(has_ripgrep, pintle_test_conditions::RIPGREP.is_present());
    searches_find_the_same(&env, remote.path()).await;
    walks_find_the_same(&env, remote.path()).await;
    env.cleanup().await.unwrap();
}

#[tokio::test]
async fn floods_block_nothing() {
    let Some(services) = config_file() else { return };
    let (remote, harness) = (remote_directory("tester"), Harness::new(&services, ""));
    let env = harness.environment("tester", remote.path());
    volume::floods_block_nothing(&env).await;
    env.cleanup().await.unwrap();
}

#[test]
fn a_gibibyte_uses_bounded_memory() {
    in_own_process("ssh::tests::environment::a_gibibyte_uses_bounded_memory", async || {
        let Some(services) = config_file() else { return };
        let (remote, harness) = (remote_directory("tester"), Harness::new(&services, ""));
        let mut builder = SshEnvironment::builder("")
            .with_working_directory(remote.path())
            .with_output_limits(volume::limits());
        builder.connection = harness.connection("tester");
        let env = builder.build().unwrap();
        env.initialize().await.unwrap();
        volume::check_flood(&env, 1 << 30).await;
        env.cleanup().await.unwrap();
    });
}

#[tokio::test]
async fn hostile_names_and_bytes_are_preserved() {
    let Some(services) = config_file() else { return };
    let (remote, harness) = (remote_directory("tester"), Harness::new(&services, ""));
    let env = harness.environment("tester", remote.path());
    for name in HOSTILE {
        let directory = remote.path().join(OsStr::from_bytes(name));
        let path = directory.join(OsStr::from_bytes(name));
        env.write(&path, name).await.unwrap();
        // The remote host is this machine: the file must exist locally.
        assert_eq!(fs::read(&path).unwrap(), name);
        assert_eq!(env.read(&path, None).await.unwrap(), name);
        let result =
            env.exec_command(ExecRequest::new("ls | wc -l").with_working_dir(&directory)).await.unwrap();
        assert_eq!(
            result.stdout.to_text_lossy().unwrap().trim(),
            if name.contains(&b'\n') { "2" } else { "1" }
        );
        let moved = directory.join("moved");
        env.rename(&path, &moved).await.unwrap();
        env.remove(&moved).await.unwrap();
        env.remove(&directory).await.unwrap();
    }
    env.cleanup().await.unwrap();
}

/// Names that a shell, printf, an option parser or a listing might misinterpret.
const HOSTILE: [&[u8]; 14] = [
    b"two words",
    b"it's",
    b"\"quoted\"",
    b"two\nlines",
    b"-rf",
    b"--",
    b"$(id)",
    b"`id`",
    b"*?[a]",
    b"\\n\\0\\",
    b"%s%n",
    b"caf\xe9 \xff\xfe",
    b" trailing \t",
    b"!;&|<>{}~#",
];

#[tokio::test]
async fn bad_input_is_a_typed_error_with_its_path() {
    let Some(services) = config_file() else { return };
    let (remote, harness) = (remote_directory("tester"), Harness::new(&services, ""));
    let env = harness.environment("tester", remote.path());
    let at = |name: &str| remote.path().join(name);
    let text = Path::new("a\0b");
    assert!(matches!(env.read(text, None).await, Err(EnvError::InvalidPath { .. })));
    assert!(
        matches!(env.read(remote.path(), None).await, Err(EnvError::IsADirectory { path }) if path == remote.path())
    );
    let large = fs::File::create(at("large")).unwrap();
    large.set_len(2 << 30).unwrap();
    assert!(
        matches!(env.read(&at("large"), None).await, Err(EnvError::TooLarge { path, .. }) if path == at("large"))
    );
    let end = env.read(&at("large"), Some((2 << 30) - 3..u64::MAX)).await.unwrap();
    assert_eq!(end, [0; 3]);
    fs::write(at("closed"), "secret").unwrap();
    fs::set_permissions(at("closed"), fs::Permissions::from_mode(0o600)).unwrap();
    assert!(
        matches!(env.read(&at("closed"), None).await, Err(EnvError::PermissionDenied { path, .. }) if path == at("closed"))
    );
    fs::create_dir(at("shut")).unwrap();
    fs::set_permissions(at("shut"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(matches!(env.write(&at("shut/new"), b"x").await, Err(EnvError::PermissionDenied { .. })));
    symlink("nowhere", at("broken")).unwrap();
    assert!(
        matches!(env.read(&at("broken"), None).await, Err(EnvError::NotFound { path, .. }) if path == at("broken"))
    );
    symlink("loop", at("loop")).unwrap();
    assert!(
        matches!(env.read(&at("loop"), None).await, Err(EnvError::Io { path, .. }) if path == at("loop"))
    );
    assert!(
        matches!(env.write(&at("loop"), b"x").await, Err(EnvError::Io { path, .. }) if path == at("loop"))
    );
    let invalid = env.grep(&GrepRequest::new("(")).await;
    assert!(matches!(invalid, Err(EnvError::InvalidPattern { pattern, .. }) if pattern == "("));
    assert!(matches!(env.glob("a[", remote.path()).await, Err(EnvError::InvalidPattern { .. })));
    env.cleanup().await.unwrap();
}

#[tokio::test]
async fn a_full_or_read_only_disk_keeps_the_old_content() {
    let Some(services) = config_file() else { return };
    let (remote, harness) = (remote_directory("tester"), Harness::new(&services, ""));
    let (root, env) =
        (harness.environment("root", remote.path()), harness.environment("tester", remote.path()));
    // The servers have their own mount namespace, so mounts disappear with them at the latest.
    let as_root = async |line: &str| {
        let result = root.exec_command(ExecRequest::new(line)).await.unwrap();
        assert!(result.success(), "{line}: {}", result.output.to_text_lossy().unwrap());
    };
    as_root("mkdir disk && mount -t tmpfs -o size=64k,mode=1777 tmpfs disk").await;
    let file = remote.path().join("disk/file");
    env.write(&file, b"old").await.unwrap();
    let error = env.write(&file, &vec![b'x'; 1 << 20]).await.unwrap_err();
    assert!(matches!(&error, EnvError::Io { path, .. } if *path == file), "{error:?}");
    as_root("mount -o remount,ro disk").await;
    let error = env.write(&file, b"new").await.unwrap_err();
    assert!(matches!(&error, EnvError::Io { .. } | EnvError::PermissionDenied { .. }), "{error:?}");
    assert_eq!(env.read(&file, None).await.unwrap(), b"old");
    let listed = env.list(&remote.path().join("disk")).await.unwrap();
    assert_eq!(listed.len(), 1, "a partial file is left: {listed:?}");
    as_root("umount disk").await;
    env.cleanup().await.unwrap();
    root.cleanup().await.unwrap();
}

#[tokio::test]
async fn a_lost_connection_ends_call_and_remote_command() {
    let Some(services) = config_file() else { return };
    let port: u16 = option(&services, "tester", "port").parse().unwrap();
    for freeze in [false, true] {
        let (remote, proxy) = (remote_directory("tester"), Proxy::in_front_of(port).await);
        let harness = Harness::new(&services, &proxy.host_lines("tester", port));
        let mut connection = harness.connection("tester");
        connection.alive_interval = Duration::from_secs(1);
        let env = environment(connection, remote.path());
        let variable = format!("PINTLE_LOST={}", remote.name());
        // One process has cleared its variables: only its group identifies it.
        let wiped = format!("env -i sh -c 'sleep 1000; :' {}", remote.path().display());
        let line = format!("{wiped} & touch begun; sleep 1000");
        let request = ExecRequest::new(line).with_timeout(10 * LONG).with_env("PINTLE_LOST", remote.name());
        let losing = async {
            until("a command begins", || remote.path().join("begun").exists()).await;
            if freeze {
                proxy.freeze()
            } else {
                proxy.cut()
            }
            Instant::now()
        };
        let (lost, since) = tokio::join!(env.exec_command(request), losing);
        let limit = if freeze { 3 + 2 } else { 2 };
        assert!(since.elapsed() < Duration::from_secs(limit), "freeze {freeze}: {:?}", since.elapsed());
        assert!(
            matches!(&lost, Err(EnvError::EnvironmentLost { environment, .. }) if environment == "ssh:tester"),
            "{lost:?}"
        );
        let source = lost.as_ref().unwrap_err().source().unwrap();
        let kind =
            source.downcast_ref::<SshError>().unwrap_or_else(|| panic!("{source:?} is of another type")).kind;
        assert_eq!(kind, SshErrorKind::ConnectionLost);
        // The remote host cannot be reached now, and does not need to be.
        let started = Instant::now();
        while !processes_with(&variable).is_empty() || !processes_naming(remote.path()).is_empty() {
            assert!(started.elapsed() < WATCHDOG, "freeze {freeze}: the remote command still runs");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        println!("freeze {freeze}: the remote command was gone after {:?}", started.elapsed());
        let again = env.exec_command(ExecRequest::new("true")).await;
        let error = again.expect_err("the host is unreachable");
        assert!(
            matches!(&error, EnvError::Unreachable { .. } | EnvError::EnvironmentLost { .. }),
            "no fallback: {error:?}"
        );
        drop(env);
        until("the client exits", || harness.sockets() == 0).await;
    }
}

#[tokio::test]
async fn a_later_call_connects_again() {
    let Some(services) = config_file() else { return };
    let port: u16 = option(&services, "tester", "port").parse().unwrap();
    let (remote, proxy) = (remote_directory("tester"), Proxy::in_front_of(port).await);
    let harness = Harness::new(&services, &proxy.host_lines("tester", port));
    let env = harness.environment("tester", remote.path());
    env.initialize().await.unwrap();
    proxy.hang_up();
    // The call that detects the loss may fail; the next one succeeds.
    let _ = env.exec_command(ExecRequest::new("true")).await;
    let result = env.exec_command(ExecRequest::new("echo again")).await.unwrap();
    assert_eq!(result.stdout.to_text_lossy().unwrap(), "again\n");
    env.cleanup().await.unwrap();
    assert_eq!(harness.sockets(), 0);
}

/// The test plays both roles: it starts itself as the application that gets killed.
#[tokio::test]
async fn a_killed_application_leaves_nothing_on_either_host() {
    const DOOMED: &str = "PINTLE_TEST_DOOMED";
    let Some(services) = config_file() else { return };
    let harness = Harness::new(&services, "");
    if let Some(directory) = std::env::var_os(DOOMED) {
        let directory = PathBuf::from(directory);
        let mut connection = harness.connection("tester");
        connection.socket_directory = directory.join("sockets");
        let env = environment(connection, &directory);
        let name = directory.file_name().unwrap().to_str().unwrap();
        let request =
            ExecRequest::new("setsid sleep 1000 & trap '' TERM; touch begun; sleep 1000; sleep 1000");
        let request = request.with_env("PINTLE_DOOMED", name).with_timeout(10 * LONG);
        panic!("the application was not killed: {:?}", env.exec_command(request).await);
    }
    let remote = remote_directory("tester");
    let sockets = remote.path().join("sockets");
    fs::create_dir(&sockets).unwrap();
    let variable = format!("PINTLE_DOOMED={}", remote.name());
    let name = "ssh::tests::environment::a_killed_application_leaves_nothing_on_either_host";
    let mut application = this_test(name)
        .env(DOOMED, remote.path())
        // Files that it cannot remove are removed with our directory.
        .env("TMPDIR", remote.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the command starts", || remote.path().join("begun").exists()).await;
    assert!(processes_with(&variable).len() >= 2);
    application.kill().unwrap();
    application.wait().unwrap();
    let started = Instant::now();
    while !(processes_with(&variable).is_empty() && processes_naming(&sockets).is_empty()) {
        assert!(started.elapsed() < Duration::from_secs(10), "left: {:?}", processes_with(&variable));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("everything of the killed application was gone after {:?}", started.elapsed());
    assert_eq!(fs::read_dir(&sockets).unwrap().count(), 0);
}

/// The connection normally closes with the application, so that a late client finds none; it must
/// not open a new one.
#[tokio::test]
async fn no_command_starts_after_its_application_died() {
    let Some(services) = config_file() else { return };
    let build = |client: &Path| {
        let harness = Harness::new(&services, "");
        let mut connection = harness.connection("tester");
        connection.program = client.to_path_buf();
        // The application is killed, so the test's directory cleans up.
        let _ = harness.directory.keep();
        environment(connection, Path::new("/"))
    };
    let test = "ssh::tests::environment::no_command_starts_after_its_application_died";
    late_start::leaves_nothing(test, None, "ssh", build).await;
}
