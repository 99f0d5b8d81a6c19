//! Tests with real processes and files.
#![expect(
    clippy::disallowed_methods,
    reason = "the tests prepare files and look at what the environment left"
)]

mod files;
#[cfg(target_os = "linux")]
mod held;
#[cfg(target_os = "linux")]
mod walks;

use std::{
    fs,
    sync::Mutex,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::*;
use crate::{
    command::{ExecRequest, ExecResult, Stdin},
    environment::IntoEnvironment as _,
    process::{ExitStatus, Signal},
    variables::{EnvPolicy, TAG_VARIABLE},
};

/// Ten times what any step here should take.
const LONG: Duration = Duration::from_secs(30);

fn environment() -> (TempDir, LocalEnvironment) {
    let directory = TempDir::new().unwrap();
    let environment = LocalEnvironment::builder(directory.path().canonicalize().unwrap())
        .with_variable("PATH", "/usr/local/bin:/usr/bin:/bin")
        .build()
        .unwrap();
    (directory, environment)
}

async fn run(environment: &LocalEnvironment, command: &str) -> ExecResult {
    let request = ExecRequest::new(command).with_timeout(LONG);
    environment.exec_command(request).await.unwrap()
}

fn text(output: &crate::Output) -> String {
    output.to_text_lossy().unwrap()
}

/// Returns true for a live process; a zombie that is not yet reaped counts as gone.
fn is_running(id: i32) -> bool {
    procfs::read_table(0).unwrap().iter().any(|row| row.id == id && !row.is_zombie)
}

/// Waits for the process id that a command writes to a file.
async fn wait_for_id(path: &Path) -> i32 {
    wait_for_line(path).await.parse().unwrap()
}

/// Waits for the line that a command writes to a file.
async fn wait_for_line(path: &Path) -> String {
    let started = Instant::now();
    loop {
        let content = fs::read_to_string(path).unwrap_or_default();
        if let Some(line) = content.strip_suffix('\n') {
            return line.to_owned();
        }
        assert!(started.elapsed() < LONG, "{} was not written", path.display());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn exits_are_distinguished() {
    let (_directory, environment) = environment();
    for (command, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
        ("no-such-command-here", 127),
        ("-x", 127),
        ("touch f; ./f", 126),
    ] {
        let result = run(&environment, command).await;
        assert_eq!(result.exit_code, code, "{command}");
        assert!(!result.timed_out);
        assert_eq!(result.ended_jobs, 0, "{command}");
    }
}

#[tokio::test]
async fn streams_are_captured_separately_and_combined() {
    let (directory, environment) = environment();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let line = directory.path().join("line");
    // The command writes a line once the one before has arrived.
    let wait = |line: &str| format!("until [ \"$(cat line 2>/dev/null)\" = {line} ]; do sleep 0.01; done");
    let command = format!("echo out; {}; echo err >&2; {}; echo more", wait("out"), wait("err"));
    let request = ExecRequest::new(command).with_on_output(Arc::new(move |chunk| {
        std::fs::write(&line, &chunk.bytes).unwrap();
        sink.lock().unwrap().extend_from_slice(&chunk.bytes);
    }));
    let result = environment.exec_command(request).await.unwrap();
    assert_eq!(text(&result.stdout), "out\nmore\n");
    assert_eq!(text(&result.stderr), "err\n");
    assert_eq!(text(&result.output), "out\nerr\nmore\n");
    assert_eq!(*seen.lock().unwrap(), b"out\nerr\nmore\n");
}

#[tokio::test]
async fn input_is_empty_unless_given() {
    let (_directory, environment) = environment();
    assert_eq!(text(&run(&environment, "cat; echo end").await.stdout), "end\n");
    let big = vec![b'x'; 3 << 20];
    let request = ExecRequest::new("wc -c; cat").with_stdin(big.clone());
    let result = environment.exec_command(request).await.unwrap();
    assert_eq!(text(&result.stdout).trim(), "3145728");
    // A command that does not read its input is not an error.
    let request = ExecRequest::new("exec true").with_stdin(big);
    assert!(environment.exec_command(request).await.unwrap().success());
}

#[tokio::test]
async fn working_directory_and_variables_reach_the_command() {
    let (directory, environment) = environment();
    fs::create_dir(directory.path().join("sub")).unwrap();
    let request = ExecRequest::new("pwd; echo \"$PWD $X\"; env | grep -c PINTLE_COMMAND_TAG")
        .with_working_dir("sub")
        .with_env("X", "a b");
    let result = environment.exec_command(request).await.unwrap();
    let expected = environment.resolve(Path::new("sub"));
    let expected = expected.display();
    assert_eq!(text(&result.stdout), format!("{expected}\n{expected} a b\n1\n"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_leads_a_session_without_a_terminal() {
    let (_directory, environment) = environment();
    let line =
        "read -r stat </proc/$$/stat; set -- ${stat##*)}; echo $(($3 == $$)) $(($4 == $$)) $5; : </dev/tty";
    let result = run(&environment, line).await;
    // The process group, the session, and the device number of the terminal.
    assert_eq!(text(&result.stdout), "1 1 0\n");
    assert!(!result.success());
    let shared = run(&environment, "kill -TERM 0; sleep 100").await;
    assert_eq!(shared.exit_code, 143, "a signal to the group reaches the command alone");
}

#[tokio::test]
async fn a_missing_directory_or_program_is_a_typed_error() {
    let (directory, environment) = environment();
    fs::write(directory.path().join("file"), "").unwrap();
    let spawn_in = |directory: &str| Command::shell("true").with_working_dir(directory);
    let error = environment.spawn(spawn_in("gone")).await.unwrap_err();
    assert!(matches!(error, EnvError::NotFound { path, .. } if path.ends_with("gone")));
    let error = environment.spawn(spawn_in("file")).await.unwrap_err();
    assert!(matches!(error, EnvError::NotADirectory { .. }));
    let none: [&str; 0] = [];
    let error = environment.spawn(Command::argv("no-such", none)).await.unwrap_err();
    assert!(matches!(error, EnvError::Spawn { program, .. } if program == "no-such"));
}

#[tokio::test]
async fn policies_filter_application_variables() {
    let directory = TempDir::new().unwrap();
    let host = ["PATH", "EDITOR", "A_TOKEN"].map(|name| (name.into(), "/usr/bin:/bin".into()));
    for (policy, expected) in [
        (EnvPolicy::InheritAll, "A_TOKEN EDITOR PATH"),
        (EnvPolicy::InheritFiltered, "EDITOR PATH"),
        (EnvPolicy::InheritCore, "PATH"),
        (EnvPolicy::InheritNone, ""),
    ] {
        let environment = LocalEnvironment::builder(directory.path())
            .with_host_env(host.clone())
            .with_env_policy(policy)
            .build()
            .unwrap();
        assert!(!format!("{environment:?}").contains("/usr/bin"));
        let command = Command::argv("/usr/bin/env", ["-0"]);
        let mut process = environment.spawn(command).await.unwrap();
        let mut output = process.take_output().unwrap();
        let mut listed = Vec::new();
        while let Some(chunk) = output.next_chunk().await.unwrap() {
            listed.extend(chunk.bytes);
        }
        let listed = String::from_utf8(listed).unwrap();
        let mut names: Vec<_> = listed
            .split_terminator('\0')
            .filter_map(|variable| variable.split('=').next())
            .filter(|name| !["PWD", TAG_VARIABLE].contains(name))
            .collect();
        names.sort_unstable();
        assert_eq!(names.join(" "), expected, "{policy:?}");
        assert_eq!(process.wait().await.unwrap(), ExitStatus::Exited(0));
    }
}

#[tokio::test]
async fn a_time_out_terminates_and_keeps_the_output() {
    let (directory, environment) = environment();
    let command = "trap 'echo bye; exit 3' TERM; echo $$ > id; echo so far; while :; do sleep 0.01; done";
    let request = ExecRequest::new(command).with_timeout(Duration::from_millis(300));
    let result = environment.exec_command(request).await.unwrap();
    assert!(result.timed_out);
    assert_eq!(result.exit_code, 3);
    assert_eq!(text(&result.stdout), "so far\nbye\n");
    assert!(result.duration < TERMINATE_LIMIT, "{:?}", result.duration);
    assert!(!is_running(wait_for_id(&directory.path().join("id")).await));
}

/// Upper bound for a command that honors the terminate signal.
const TERMINATE_LIMIT: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_process_that_ignores_terminate_is_killed() {
    let (directory, environment) = environment();
    let command = "trap '' TERM; echo so far; \
        (echo $BASHPID > child; while :; do sleep 0.1; done) & \
        (exec setsid bash -c 'echo $$ > apart; while :; do sleep 0.1; done') & \
        wait";
    let request = ExecRequest::new(command).with_timeout(Duration::from_millis(500));
    let result = environment.exec_command(request).await.unwrap();
    assert!(result.timed_out);
    assert_eq!(result.exit_code, 137);
    assert_eq!(text(&result.stdout), "so far\n");
    assert!(result.duration >= Duration::from_millis(2500), "{:?}", result.duration);
    for name in ["child", "apart"] {
        assert!(!is_running(wait_for_id(&directory.path().join(name)).await), "{name}");
    }
}

/// The terminate signal reaches a child whose parent, the leader of the group, survives it.
#[tokio::test]
async fn a_time_out_terminates_the_whole_group() {
    let (directory, environment) = environment();
    let command = "(trap 'echo terminated > child; exit' TERM; echo > ready; while :; do sleep 0.01; done) & \
        trap 'echo leader' TERM; while :; do wait; sleep 0.01; done";
    let request = ExecRequest::new(command).with_timeout(Duration::from_millis(300));
    let result = environment.exec_command(request).await.unwrap();
    assert!(result.timed_out);
    assert_eq!(result.exit_code, 137, "the leader is killed");
    assert_eq!(text(&result.stdout), "leader\n");
    let child = std::fs::read_to_string(directory.path().join("child")).unwrap();
    assert_eq!(child, "terminated\n");
}

/// What a process does within a second of the terminate signal counts; six seconds later it has been killed.
#[tokio::test]
async fn a_process_has_two_seconds_after_terminate() {
    let (directory, environment) = environment();
    let command =
        "trap 'sleep 1; echo > early; sleep 5; echo > late; exit' TERM; while :; do sleep 0.01; done";
    let request = ExecRequest::new(command).with_timeout(Duration::from_millis(300));
    let result = environment.exec_command(request).await.unwrap();
    assert!(result.timed_out);
    assert_eq!(result.exit_code, 137);
    assert!(directory.path().join("early").exists());
    assert!(!directory.path().join("late").exists());
}

#[tokio::test]
async fn leftover_jobs_are_terminated_and_counted() {
    let wait_for = "while [ ! -s id ]; do sleep 0.01; done";
    let mut checks = tokio::task::JoinSet::new();
    for (name, job) in [
        ("holds the pipe", "(echo $BASHPID > id; exec sleep 100) &"),
        ("has left the group", "setsid sh -c 'echo $$ > id; exec sleep 100' &"),
        ("holds nothing", "setsid sh -c 'echo $$ > id; exec sleep 100' >/dev/null 2>&1 </dev/null &"),
        ("was forked twice", "(setsid sh -c 'sleep 100 & echo $! > id' &);"),
        (
            "belongs to an environment inside",
            "PINTLE_COMMAND_TAG=$PINTLE_COMMAND_TAG/inner.1 setsid sh -c 'echo $$ > id; exec sleep 100' &",
        ),
        ("wiped its variables", "(echo $BASHPID > id; exec env -i /bin/sleep 100) &"),
        ("runs behind nohup", "nohup sh -c 'echo $$ > id; exec sleep 100' >/dev/null 2>&1 &"),
    ] {
        checks.spawn(async move {
            let (directory, environment) = environment();
            let result = run(&environment, &format!("{job} {wait_for}; echo done")).await;
            assert_eq!(result.exit_code, 0, "{name}");
            assert_eq!(text(&result.stdout), "done\n", "{name}");
            assert!(result.ended_jobs >= 1, "{name}");
            assert!(result.duration < Duration::from_secs(60), "{name}: {:?}", result.duration);
            assert!(!is_running(wait_for_id(&directory.path().join("id")).await), "{name}");
        });
    }
    checks.join_all().await;
}

#[tokio::test]
async fn finished_jobs_are_not_counted() {
    let (_directory, environment) = environment();
    let result = run(&environment, "(sleep 0.05; echo late) & echo early").await;
    assert_eq!(text(&result.stdout), "early\nlate\n");
    assert_eq!(result.ended_jobs, 0);
}

#[tokio::test]
async fn background_writers_do_not_block_the_call() {
    let (_directory, environment) = environment();
    let result = run(&environment, "for i in $(seq 20); do yes & done; echo done").await;
    assert_eq!(result.exit_code, 0);
    assert_eq!(result.ended_jobs, 20);
    assert!(result.stdout.len() > 1 << 10);
    assert!(result.duration < Duration::from_secs(10), "{:?}", result.duration);
}

#[tokio::test]
async fn nested_environments_extend_the_tag() {
    let (directory, outer) = environment();
    let outer_tag = outer.next_tag();
    let inner = LocalEnvironment::builder(directory.path())
        .with_host_env([(TAG_VARIABLE.into(), outer_tag.as_str().into())])
        .build()
        .unwrap();
    assert!(inner.next_tag().starts_with(&format!("{outer_tag}/")));
}

#[tokio::test]
async fn dropping_the_future_terminates_the_command() {
    let (directory, environment) = environment();
    let id = directory.path().join("id");
    let apart = directory.path().join("apart");
    let command = "setsid sh -c 'echo $$ > apart; exec sleep 100' & echo $$ > id; wait";
    let request = ExecRequest::new(command).with_timeout(LONG);
    let (id, apart) = tokio::select! {
        result = environment.exec_command(request) => panic!("{result:?}"),
        ids = async { (wait_for_id(&id).await, wait_for_id(&apart).await) } => ids,
    };
    environment.cleanup().await.unwrap();
    assert!(!is_running(id));
    assert!(!is_running(apart));
}

#[tokio::test]
async fn the_lifeline_is_optional() {
    let (directory, _) = environment();
    let build = || LocalEnvironment::builder(directory.path()).with_variable("PATH", "/usr/bin:/bin");
    for has_lifeline in [true, false] {
        let environment = build().with_lifeline(has_lifeline).build().unwrap();
        assert_eq!(count_supervisors(&environment), 0);
        run(&environment, "true").await;
        assert_eq!(count_supervisors(&environment), usize::from(has_lifeline));
        environment.cleanup().await.unwrap();
        assert_eq!(count_supervisors(&environment), 0);
    }
}

#[tokio::test]
async fn dropped_commands_without_a_lifeline_get_no_grace_period() {
    for has_lifeline in [true, false] {
        let (directory, _) = environment();
        let build = LocalEnvironment::builder(directory.path()).with_variable("PATH", "/usr/bin:/bin");
        let environment = build.with_lifeline(has_lifeline).build().unwrap();
        let id = directory.path().join("id");
        let command = "trap 'touch terminated; exit' TERM; sleep 100 & echo $$ > id; wait";
        let request = ExecRequest::new(command).with_timeout(LONG);
        let id = tokio::select! {
            result = environment.exec_command(request) => panic!("{result:?}"),
            id = wait_for_id(&id) => id,
        };
        environment.cleanup().await.unwrap();
        assert!(!is_running(id), "{has_lifeline}");
        assert_eq!(directory.path().join("terminated").exists(), has_lifeline);
    }
}

/// Counts the supervisors of an environment.
fn count_supervisors(environment: &LocalEnvironment) -> usize {
    let tag = format!("{TAG_VARIABLE}={}.", environment.tag);
    let ids = procfs::read_table(0).unwrap().into_iter().filter(|row| !row.is_zombie).map(|row| row.id);
    let watches = |id: &i32| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == tag.as_bytes())
    };
    ids.filter(watches).count()
}

#[tokio::test]
async fn dropped_commands_are_terminated_concurrently() {
    let (_directory, environment) = environment();
    let mut ids = Vec::new();
    for _ in 0..30 {
        let process = environment.spawn(Command::shell("trap '' TERM; sleep 100 & wait; sleep 100"));
        ids.push(process.await.unwrap().id().unwrap());
    }
    let started = Instant::now();
    environment.cleanup().await.unwrap();
    assert!(started.elapsed() < LONG);
    assert!(ids.into_iter().all(|id| !is_running(id.cast_signed())));
}

#[tokio::test]
async fn cleanup_terminates_running_processes() {
    let (_directory, environment) = environment();
    let mut process = environment.spawn(Command::shell("exec sleep 100")).await.unwrap();
    environment.cleanup().await.unwrap();
    assert_eq!(process.wait().await.unwrap(), ExitStatus::Signaled(15));
    // The environment remains usable.
    assert!(run(&environment, "true").await.success());
    drop(process);
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn kill_all_kills_without_grace() {
    let (directory, environment) = environment();
    let stubborn = "trap '' TERM; echo $$ > id; while :; do sleep 0.1; done";
    let held = environment.spawn(Command::shell(stubborn)).await.unwrap();
    let first = wait_for_id(&directory.path().join("id")).await;
    let dropped = environment.spawn(Command::shell(stubborn.replace("id", "other"))).await.unwrap();
    let second = wait_for_id(&directory.path().join("other")).await;
    drop(dropped);
    // A concurrent graceful shutdown must not delay it.
    let environment = Arc::new(environment);
    let graceful = Arc::clone(&environment);
    let waiting = std::thread::spawn(move || graceful.reaper.finish());
    let started = std::time::Instant::now();
    environment.kill_all();
    assert!(!is_running(first) && !is_running(second));
    assert!(started.elapsed() < TERMINATE_LIMIT, "{:?}", started.elapsed());
    waiting.join().unwrap();
    drop(held);
}

/// The caller exits next, and its runtime, which would have reaped the child, is not polled any more.
#[tokio::test]
async fn kill_all_leaves_no_zombie() {
    let (directory, environment) = environment();
    let held = environment.spawn(Command::shell("echo $$ > id; exec sleep 600")).await.unwrap();
    let id = wait_for_id(&directory.path().join("id")).await;
    environment.kill_all();
    assert!(!Path::new("/proc").join(id.to_string()).exists());
    drop(held);
}

/// Runs `shutdown` on another thread while a started process is not registered yet. Returns the process
/// id, the result of the spawn and the thread.
async fn shut_down_during_start(
    environment: &Arc<LocalEnvironment>,
    shutdown: fn(&LocalEnvironment),
) -> (i32, Result<Box<dyn Process>, EnvError>, std::thread::JoinHandle<()>) {
    let (target, threads_done) = (Arc::clone(environment), Arc::new(Mutex::new(Vec::new())));
    let (started, threads) = (Arc::new(AtomicU64::new(0)), Arc::clone(&threads_done));
    let id = Arc::clone(&started);
    let launch = move |invocation: &Invocation| {
        let launched = Launcher::Plain.launch(invocation)?;
        id.store(launched.child.id().unwrap().into(), Ordering::Relaxed);
        let target = Arc::clone(&target);
        let thread = std::thread::spawn(move || shutdown(&target));
        // Long enough for all steps that do not wait for this thread.
        std::thread::sleep(Duration::from_millis(300));
        threads.lock().unwrap().push(thread);
        Ok(launched)
    };
    let command = Command::shell("exec sleep 600");
    let spawned = environment.spawn_by(command, Launcher::With(Arc::new(launch))).await;
    let spawned = spawned.map(|process| Box::new(process) as _);
    let thread = threads_done.lock().unwrap().pop().unwrap();
    (i32::try_from(started.load(Ordering::Relaxed)).unwrap(), spawned, thread)
}

/// A second signal may arrive between the start of a process and its registration.
#[tokio::test]
async fn kill_all_waits_for_starting_processes() {
    let (_directory, environment) = environment();
    let environment = Arc::new(environment);
    let (id, spawned, thread) = shut_down_during_start(&environment, LocalEnvironment::kill_all).await;
    thread.join().unwrap();
    assert!(!is_running(id));
    drop(spawned);
    let refused = environment.spawn(Command::shell("true")).await.unwrap_err();
    assert!(matches!(refused, EnvError::Refused { .. }), "{refused}");
}

/// A cleanup during a start leaves neither the process nor its supervisor behind.
#[tokio::test]
async fn cleanup_waits_for_starting_processes() {
    let (_directory, environment) = environment();
    let environment = Arc::new(environment);
    let (id, spawned, thread) = shut_down_during_start(&environment, |one| one.reaper.finish()).await;
    thread.join().unwrap();
    assert!(!is_running(id));
    drop(spawned);
    assert!(run(&environment, "true").await.success());
}

#[tokio::test]
async fn concurrent_cleanups_both_wait() {
    let (directory, environment) = environment();
    // Without a redirect, writing to the closed pipe would kill it.
    let stubborn =
        "exec 2>/dev/null; trap 'echo yes > terminated' TERM; echo $$ > id; while :; do sleep 0.01; done";
    let process = environment.spawn(Command::shell(stubborn)).await.unwrap();
    let id = wait_for_id(&directory.path().join("id")).await;
    drop(process);
    let environment = Arc::new(environment);
    let first = Arc::clone(&environment);
    let first = std::thread::spawn(move || first.reaper.finish());
    wait_for_line(&directory.path().join("terminated")).await;
    environment.cleanup().await.unwrap();
    assert!(!is_running(id));
    first.join().unwrap();
}

#[test]
fn a_process_may_outlive_its_runtime() {
    let (_directory, environment) = environment();
    let start = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let runtime = start();
    let process = runtime.block_on(environment.spawn(Command::shell("exec sleep 100"))).unwrap();
    let id = process.id().unwrap().cast_signed();
    drop(runtime);
    assert!(is_running(id));
    drop(process);
    start().block_on(environment.cleanup()).unwrap();
    assert!(!is_running(id));
}

#[tokio::test]
async fn a_process_can_be_driven_manually() {
    // The tests may have been started with the signal ignored, which the command would inherit. A handled signal has its default
    // in the command.
    let _handled = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).unwrap();
    let (_directory, environment) = environment();
    let command = Command::argv("cat", ["-"]).with_stdin(Stdin::Piped);
    let mut process = environment.spawn(command).await.unwrap();
    let mut input = process.take_stdin().unwrap();
    let mut output = process.take_output().unwrap();
    assert!(process.take_stdin().is_none() && process.take_output().is_none());
    for line in ["one\n", "two\n"] {
        tokio::io::AsyncWriteExt::write_all(&mut input, line.as_bytes()).await.unwrap();
        let chunk = output.next_chunk().await.unwrap().unwrap();
        assert_eq!(chunk.bytes, line.as_bytes());
    }
    process.signal(Signal::Interrupt).await.unwrap();
    assert_eq!(process.wait().await.unwrap(), ExitStatus::Signaled(2));
    assert_eq!(output.next_chunk().await.unwrap(), None);
    drop(output);
    assert!(process.take_output().is_none());
    assert_eq!(process.jobs().await.unwrap(), 0);
    assert_eq!(process.terminate(Duration::ZERO).await.unwrap(), 0);
}

#[tokio::test]
async fn a_large_output_is_spooled_completely() {
    let (directory, environment) = environment();
    let spool = directory.path().join("spool");
    fs::create_dir(&spool).unwrap();
    let environment =
        LocalEnvironment { output_limits: OutputLimits::default().with_spool_dir(&spool), ..environment };
    let result = run(&environment, "head -c 20000000 /dev/zero; echo error >&2").await;
    assert!(result.stdout.is_spooled());
    assert_eq!(result.stdout.len(), 20_000_000);
    assert_eq!(result.output.len(), 20_000_006);
    assert_eq!(result.output.dropped(), 0);
    assert_eq!(text(&result.stderr), "error\n");
    assert_eq!(fs::read_dir(&spool).unwrap().count(), 0);
}

#[tokio::test]
async fn many_commands_run_at_once() {
    let (_directory, environment) = environment();
    let environment = Arc::new(environment);
    let mut commands = tokio::task::JoinSet::new();
    for number in 0..60 {
        let environment = Arc::clone(&environment);
        commands.spawn(async move {
            let result = run(&environment, &format!("echo {number}")).await;
            assert_eq!(text(&result.stdout), format!("{number}\n"));
        });
    }
    while let Some(done) = commands.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn platform_and_version_are_reported() {
    let (directory, environment) = environment();
    environment.initialize().await.unwrap();
    assert_eq!(environment.platform(), "linux");
    assert!(environment.os_version().starts_with("Linux "));
    drop(directory);
    assert!(matches!(environment.initialize().await, Err(EnvError::NotFound { .. })));
    assert!(matches!(LocalEnvironment::builder("relative").build(), Err(EnvError::InvalidPath { .. })));
}

#[tokio::test]
async fn keeps_the_contract_of_files() {
    let (_directory, environment) = environment();
    let root = environment.resolve(Path::new("contract"));
    crate::contract::files(&environment, &root).await.unwrap();
}

#[tokio::test]
async fn keeps_the_contract_of_search() {
    let (_directory, environment) = environment();
    let root = environment.resolve(Path::new("contract"));
    crate::contract::search(&environment, &root).await.unwrap();
}

#[tokio::test]
async fn keeps_the_contract_of_commands() {
    let (_directory, environment) = environment();
    let root = environment.resolve(Path::new("contract"));
    crate::contract::commands(&environment, &root).await.unwrap();
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn keeps_the_contract_of_commands_with_a_plain_shell() {
    let (_directory, environment) = environment();
    let environment = LocalEnvironment { shell: "/bin/sh".into(), ..environment };
    let root = environment.resolve(Path::new("contract"));
    crate::contract::commands(&environment, &root).await.unwrap();
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn current_environment_has_directory_and_variables_of_the_process() {
    let environment = LocalEnvironment::current().unwrap();
    assert_eq!(environment.working_directory(), std::env::current_dir().unwrap());
    let result = run(&environment, "echo \"$PATH\"; pwd -P").await;
    let directory = std::env::current_dir().unwrap().canonicalize().unwrap();
    let expected = format!("{}\n{}\n", std::env::var("PATH").unwrap(), directory.display());
    assert_eq!(text(&result.stdout), expected);
}

#[tokio::test]
async fn environments_and_arcs_convert_into_shared_environments() {
    let (_directory, environment) = environment();
    let root = environment.working_directory().to_owned();
    let shared = Arc::new(environment);
    let same: Arc<dyn ExecutionEnvironment> = Arc::clone(&shared).into_environment();
    assert_eq!(Arc::as_ptr(&same).cast::<()>(), Arc::as_ptr(&shared).cast::<()>());
    assert_eq!(Arc::as_ptr(&Arc::clone(&same).into_environment()), Arc::as_ptr(&same));
    let owned = LocalEnvironment::builder(&root).build().unwrap().into_environment();
    assert_eq!(owned.working_directory(), root);
}
