//! The level *full*.

use std::path::Path;

use super::*;
use crate::{ExecutionEnvironmentExt as _, contract::logging_environment::Logging};

#[tokio::test]
async fn keeps_the_contract_at_level_full() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let environment = ConfinedEnvironment::new(Arc::new(environment), [harness.at("root")]);
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
async fn file_operations_have_the_temporary_files_of_commands() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let temporary = TempDir::new().unwrap();
    // On the machine, but not in the sandbox.
    let machine = TempDir::new_in("/tmp").unwrap();
    fs::write(machine.path().join("file"), "machine").unwrap();
    let environment = environment.with_temporary(temporary.path()).with_outside_commands(true);
    let confined =
        ConfinedEnvironment::new(environment.clone(), [harness.at("root"), temporary.path().to_path_buf()]);
    let wrappers: [Arc<dyn ExecutionEnvironment>; 3] =
        [Arc::new(environment.clone()), Arc::new(confined), Arc::new(Logging::new(environment.clone()))];
    environment.initialize().await.unwrap();
    for environment in &wrappers {
        for directory in ["/tmp", "/var/tmp"] {
            let at = |name: &str| PathBuf::from(directory).join(name);
            assert!(run(environment.as_ref(), &format!("echo command >{directory}/x.txt")).await.success());
            assert_eq!(environment.read(&at("x.txt"), None).await.unwrap(), b"command\n");
            environment.write(&at("deep/y.txt"), b"tool").await.unwrap();
            let shown = run(environment.as_ref(), &format!("cat {directory}/deep/y.txt")).await;
            assert_eq!(shown.stdout.to_text_lossy().unwrap(), "tool");
            let found = environment.glob(&format!("{directory}/*.txt"), Path::new("")).await.unwrap();
            assert_eq!(found, [temporary.path().join("x.txt")]);
            let request = crate::GrepRequest::new("tool").with_path(directory);
            assert_eq!(environment.grep(&request).await.unwrap().files.len(), 1);
            environment.remove(&at("deep/y.txt")).await.unwrap();
            assert!(run(environment.as_ref(), &format!("! test -e {directory}/deep/y.txt")).await.success());
            // A command may work there, too.
            let request = ExecRequest::new("pwd").with_working_dir(at("deep"));
            assert!(environment.exec_command(request).await.unwrap().success());
        }
    }
    assert_eq!(environment.read(&machine.path().join("file"), None).await.unwrap(), b"machine");
    environment.write(&machine.path().join("new"), b"tool").await.unwrap();
    assert!(machine.path().join("new").exists());
    let refused = wrappers[1].read(&machine.path().join("file"), None).await;
    assert!(matches!(refused, Err(EnvError::Refused { .. })), "{refused:?}");
    // A command outside of the sandbox has the files of the machine.
    let outside = environment.outside_sandbox().unwrap();
    assert_eq!(outside.resolve(Path::new("/tmp/x.txt")), Path::new("/tmp/x.txt"));
    let look = format!("test -e {}/file", machine.path().display());
    assert!(run(outside.as_ref(), &look).await.success() && !run(&environment, &look).await.success());
    environment.cleanup().await.unwrap();
}

/// A gate judges a file of commands. Another process then turns the path to one of the machine.
#[tokio::test]
async fn judged_temporary_files_stay_those_of_commands() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let temporary = TempDir::new().unwrap();
    let environment = environment.with_temporary(temporary.path());
    let name = format!("pintle-judged-{}", std::process::id());
    let (named, private) = (Path::new("/tmp").join(&name), temporary.path().join(&name));
    for path in [&named, &private] {
        fs::write(&private, "command").unwrap();
        let held = environment.hold(std::slice::from_ref(path)).await.unwrap();
        let Some(held) = held else { return };
        assert_eq!(held.canonicalize(&named).await.unwrap(), private.canonicalize().unwrap());
        fs::remove_file(&private).unwrap();
        fs::write(&named, "machine").unwrap();
        let read = held.read(&named, None).await;
        let written = held.write(&named, b"changed").await;
        let left = fs::read_to_string(&named);
        fs::remove_file(&named).unwrap();
        let _ = fs::remove_file(&private);
        assert!(read.is_err(), "{read:?}");
        assert_eq!(left.unwrap(), "machine", "{written:?}");
    }
    environment.cleanup().await.unwrap();
}

/// A hidden file of the machine is not confused with one that a command makes.
#[tokio::test]
async fn hidden_temporary_files_are_those_of_the_machine() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let temporary = TempDir::new().unwrap();
    let machine = TempDir::new_in("/tmp").unwrap();
    let secret = machine.path().join("secret");
    fs::write(&secret, "machine").unwrap();
    let environment = environment.with_temporary(temporary.path()).with_hidden(&secret);
    let line = format!("mkdir -p {0} && echo command >{0}/secret", machine.path().display());
    assert!(run(&environment, &line).await.success());
    assert_eq!(environment.canonicalize(&secret).await.unwrap(), secret.canonicalize().unwrap());
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

/// Variable with which this test runs itself as the application that is killed: the directory.
const APPLICATION: &str = "PINTLE_TEST_SANDBOXED_APPLICATION";

#[tokio::test]
async fn a_killed_application_leaves_nothing() {
    use std::time::{Duration, Instant};
    if let Some(directory) = std::env::var_os(APPLICATION) {
        return run_until_killed(&PathBuf::from(directory)).await;
    }
    let harness = Harness::new();
    for level in [SandboxLevel::Full, SandboxLevel::Writes] {
        if !has_level(level) {
            continue;
        }
        let name = format!("pintle-killed-{level}-{}", std::process::id());
        fs::write(harness.at("").join("name"), &name).unwrap();
        fs::write(harness.at("").join("level"), level.to_string()).unwrap();
        let mut application = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sandboxed::tests::full::a_killed_application_leaves_nothing"])
            .env(APPLICATION, harness.at(""))
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        let waiting = harness.at("waiting");
        while running(&name) < JOBS.len() || !waiting.exists() {
            assert!(started.elapsed() < Duration::from_secs(60), "{level}: {}", running(&name));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // A sandbox without a command, at the level full.
        let waiting: Option<u32> = fs::read_to_string(&waiting).unwrap().parse().ok();
        assert_eq!(waiting.is_some(), level == SandboxLevel::Full);
        fs::remove_file(harness.at("waiting")).unwrap();
        application.kill().unwrap();
        application.wait().unwrap();
        let killed = Instant::now();
        while running(&name) > 0 || waiting.is_some_and(prepared::is_running) {
            assert!(killed.elapsed() < Duration::from_secs(60), "{level}: {}", running(&name));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Jobs of an application; each leaves one process named `NAME`.
const JOBS: [&str; 4] = [
    "exec -a NAME sleep 1000",
    "trap '' TERM; exec -a NAME sleep 1000",
    "setsid bash -c 'exec -a NAME sleep 1000' & wait",
    "(setsid bash -c 'trap \"\" TERM; (exec -a NAME sleep 1000 &)' &); sleep 1000",
];

async fn run_until_killed(directory: &std::path::Path) {
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    let level = if read("level") == "full" { SandboxLevel::Full } else { SandboxLevel::Writes };
    let path = std::env::var_os("PATH").unwrap();
    let local =
        LocalEnvironment::builder(directory.join("root")).with_variable("PATH", path).build().unwrap();
    let environment = SandboxedEnvironment::new(local).with_level(level).with_start_ahead(true);
    assert!(run(&environment, "true").await.success());
    let waiting = prepared::waiting(&environment).await.map(|id| id.to_string());
    let mut processes = Vec::new();
    for job in JOBS {
        // With an input, so that the sandbox still waits.
        let command = Command::shell(job.replace("NAME", &read("name"))).with_stdin(crate::Stdin::Piped);
        processes.push(environment.spawn(command).await.unwrap());
    }
    fs::write(directory.join("new"), waiting.unwrap_or_default()).unwrap();
    fs::rename(directory.join("new"), directory.join("waiting")).unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn kill_all_reaches_into_the_namespace() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let name = format!("pintle-killed-all-{}", std::process::id());
    let line = format!("trap '' TERM; env -i setsid bash -c 'exec -a {name} sleep 1000' & sleep 1000");
    let process = environment.spawn(Command::shell(line)).await.unwrap();
    while running(&name) == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    environment.kill_all();
    assert_eq!(running(&name), 0);
    drop(process);
}

/// Programs cannot tell by a variable that they are judged.
#[tokio::test]
async fn programs_have_no_variable_of_the_environment() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    for environment in [environment.clone(), environment.with_start_ahead(true)] {
        for _ in 0..2 {
            let result = run(&environment, "env | grep -c PINTLE_COMMAND_TAG").await;
            assert_eq!(result.stdout.to_text_lossy().unwrap(), "0\n");
        }
        environment.cleanup().await.unwrap();
    }
}

#[tokio::test]
async fn the_network_of_the_host_is_shared_if_allowed() {
    use std::os::{linux::net::SocketAddrExt, unix::net::SocketAddr};
    if !has_level(SandboxLevel::Full) {
        return;
    }
    let harness = Harness::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = format!("pintle-shared-{}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let _path = UnixListener::bind(harness.at("outside").join("socket")).unwrap();
    let connect = |family: &str, address: String| {
        format!("python3 -c \"import socket; socket.socket(socket.{family}).connect({address})\"")
    };
    let to_tcp = connect("AF_INET", format!("('127.0.0.1', {})", tcp.local_addr().unwrap().port()));
    let to_abstract = connect("AF_UNIX", format!("'\\0{name}'"));
    let to_path = connect("AF_UNIX", "'../outside/socket'".to_owned());
    for (network, unix_sockets, lines) in [
        (false, false, [false, false, false]),
        (false, true, [false, false, false]),
        (true, false, [true, false, false]),
        // Documented behavior: abstract sockets belong to the network.
        (true, true, [true, true, false]),
    ] {
        let environment = harness.at_level(SandboxLevel::Full).await.unwrap();
        let environment = environment.with_network(network).with_unix_sockets(unix_sockets);
        environment.initialize().await.unwrap();
        for (line, is_reached) in [&to_tcp, &to_abstract, &to_path].into_iter().zip(lines) {
            let result = run(&environment, line).await;
            assert_eq!(result.success(), is_reached, "{network} {unix_sockets} {line}");
        }
        environment.cleanup().await.unwrap();
    }
}

/// Sockets of one command, such as Python's `forkserver` has.
#[tokio::test]
async fn named_sockets_work_in_writable_directories() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let environment = environment.with_unix_sockets(true).with_temporary(harness.at("temporary"));
    fs::create_dir(harness.at("temporary")).unwrap();
    environment.initialize().await.unwrap();
    for path in ["named", "$TMPDIR/named", "/tmp/named"] {
        let line = format!(
            "python3 -c \"import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); \
             socket.socket(socket.AF_UNIX).connect(sys.argv[1])\" {path}; rm {path}"
        );
        let result = run(&environment, &line).await;
        assert!(result.success(), "{path}: {:?}", result.output.to_text_lossy());
    }
    environment.cleanup().await.unwrap();
}

/// Documented behavior: a mount does not keep named pipes from being written to.
#[tokio::test]
async fn named_pipes_outside_can_be_written_unless_hidden() {
    let harness = Harness::new();
    assert!(run(&harness.local(), "mkfifo ../outside/pipe").await.success());
    let line = "echo x 1<>../outside/pipe";
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    assert!(run(&environment, line).await.success());
    let environment = environment.with_hidden("../outside/pipe");
    assert!(!run(&environment, line).await.success());
    environment.cleanup().await.unwrap();
    let Some(environment) = harness.sandboxed().await else { return };
    assert!(!run(&environment, line).await.success());
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn many_namespaces_exist_at_once() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    environment.initialize().await.unwrap();
    let environment = Arc::new(environment);
    let mut running = tokio::task::JoinSet::new();
    for number in 0..40 {
        let environment = Arc::clone(&environment);
        running.spawn(async move {
            let line = format!("echo {number} >{number}; cat {number}; exit {number}");
            let result = run(environment.as_ref(), &line).await;
            (number, result.exit_code, result.stdout.to_text_lossy().unwrap(), result.ended_jobs)
        });
    }
    while let Some(ended) = running.join_next().await {
        let (number, code, output, jobs) = ended.unwrap();
        assert_eq!((code, output, jobs), (number, format!("{number}\n"), 0));
    }
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn a_start_can_be_cancelled_at_any_time() {
    use std::time::Duration;
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    environment.initialize().await.unwrap();
    let name = format!("pintle-cancelled-{}", std::process::id());
    let mut cancelled = 0;
    for step in 0..30 {
        let starting = environment.spawn(Command::shell(format!("exec -a {name} sleep 1000")));
        match tokio::time::timeout(Duration::from_micros(step * 400), starting).await {
            Ok(process) => drop(process.unwrap()),
            Err(_elapsed) => cancelled += 1,
        }
    }
    assert!(cancelled > 0);
    environment.cleanup().await.unwrap();
    assert_eq!(running(&name), 0);
}

/// bubblewrap may have created a file in place of the socket, which is removed after the start.
fn bind_when_free(socket: &std::path::Path) -> UnixListener {
    for _ in 0..4_000 {
        if let Ok(listener) = UnixListener::bind(socket) {
            return listener;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{} is not free", socket.display())
}

/// Replaces or removes a file that is mounted over while commands start, as services and editors do.
#[tokio::test]
async fn a_path_may_be_replaced_while_a_command_starts() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let (protected, socket) = (harness.at("root/protected"), harness.at("root/socket"));
    fs::write(&protected, "").unwrap();
    let environment = environment.with_unix_sockets(true).with_protected(&protected);
    environment.initialize().await.unwrap();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let replacing = std::thread::spawn({
        let (stop, new) = (Arc::clone(&stop), harness.at("root/new"));
        move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let _listener = bind_when_free(&socket);
                fs::write(&new, "").unwrap();
                std::thread::sleep(std::time::Duration::from_millis(5));
                fs::rename(&new, &protected).unwrap();
                fs::remove_file(&socket).unwrap();
            }
        }
    });
    let mut results = Vec::new();
    for _ in 0..100 {
        results.push(environment.exec_command(ExecRequest::new("true")).await);
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    replacing.join().unwrap();
    environment.cleanup().await.unwrap();
    for result in results {
        let result = result.unwrap();
        let said = result.output.to_text_lossy().unwrap();
        assert!(result.success() || said.contains("replaced"), "{result:?}: {said}");
    }
}

/// A rename takes the mount of a file away. The command is ended, and its change can be found.
#[tokio::test]
async fn a_replaced_file_ends_the_commands_that_could_see_it() {
    let harness = Harness::new();
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let (protected, hidden) = (harness.at("root/protected"), harness.at("outside/secret"));
    fs::write(&protected, "").unwrap();
    let environment = environment.with_protected(&protected).with_hidden(&hidden);
    environment.initialize().await.unwrap();
    for (path, line) in [
        (&protected, "touch started; while sleep 5; do echo x >>protected; done"),
        (&hidden, "touch started; while sleep 5; do cat ../outside/secret; done"),
    ] {
        let running = {
            let environment = environment.clone();
            tokio::spawn(async move { environment.exec_command(ExecRequest::new(line)).await.unwrap() })
        };
        while !harness.at("root/started").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        fs::remove_file(harness.at("root/started")).unwrap();
        fs::write(harness.at("new"), "of the user").unwrap();
        fs::rename(harness.at("new"), path).unwrap();
        let result = running.await.unwrap();
        assert_eq!(result.exit_code, 137);
        let said = result.output.to_text_lossy().unwrap();
        assert!(said.contains(&format!("replaced {}", path.display())), "{said}");
        assert!(environment.replaced_paths().contains(path));
    }
    assert_eq!(fs::read_to_string(&protected).unwrap(), "of the user");
    // The next command is held again.
    assert!(!run(&environment, "echo x >>protected || cat ../outside/secret").await.success());
    environment.cleanup().await.unwrap();
}

/// The placeholder of a missing file stays as long as any process protects it.
#[tokio::test]
async fn placeholders_stay_while_another_process_needs_them() {
    let harness = Harness::new();
    let (Some(one), Some(other)) =
        (harness.at_level(SandboxLevel::Full).await, harness.at_level(SandboxLevel::Full).await)
    else {
        return;
    };
    let missing = harness.at("root/missing");
    // Two sandboxes without anything in common, as in two processes.
    let (one, other) = (one.with_protected(&missing), other.with_protected(&missing));
    one.initialize().await.unwrap();
    let mut running = other.spawn(Command::shell("echo; exec sleep 600")).await.unwrap();
    let mut output = running.take_output().unwrap();
    output.next_chunk().await.unwrap();
    one.cleanup().await.unwrap();
    assert!(missing.exists(), "the other one protects it");
    running.terminate(std::time::Duration::ZERO).await.unwrap();
    other.cleanup().await.unwrap();
    assert!(!missing.exists(), "nobody needs it");
}
