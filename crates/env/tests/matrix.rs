//! Local process matrix: all ways in which a command can exit or refuse to. After each case no
//! process, descriptor or temporary file may be left.
//!
//! A separate test binary that runs one case at a time, since descriptors and children are counted
//! per process.
#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "test code that inspects and reports what commands leave behind"
)]

#[path = "matrix/descriptors.rs"]
mod descriptors;
#[path = "matrix/disk.rs"]
mod disk;
#[path = "matrix/harness.rs"]
mod harness;
#[path = "matrix/host.rs"]
mod host;

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
    time::{Duration, Instant},
};

use pintle_env::{
    Command, EnvError, ExecRequest, ExecResult, ExecutionEnvironment, OutputStream, Signal, Stdin,
};

use self::harness::{Harness, LONG, run_case};

const SIXTY_WRITERS: &str = "sixty writers";

#[test]
fn every_exit_is_reported() {
    run_case(async |harness| {
        for (line, code) in [
            ("exit 0", 0),
            ("exit 7", 7),
            ("kill -KILL $$", 137),
            ("kill -TERM $$", 143),
            ("no-such-command-at-all", 127),
            ("touch file; ./file", 126),
            ("cat; exit 3", 3),
        ] {
            let result = harness.run(line).await;
            assert_eq!((result.exit_code, result.timed_out, result.ended_jobs), (code, false, 0), "{line}");
        }
    });
}

#[test]
fn a_program_that_cannot_be_started_is_an_error() {
    run_case(async |harness| {
        std::fs::write(harness.at("file"), "").unwrap();
        let none: [&str; 0] = [];
        for program in ["no-such-program-at-all".into(), harness.at("file"), harness.at("")] {
            let error = harness.environment.spawn(Command::argv(program, none)).await.unwrap_err();
            assert!(matches!(error, EnvError::Spawn { .. }), "{error:?}");
        }
        let huge = Command::shell("true").with_env("HUGE", "x".repeat(1 << 20));
        let error = harness.environment.spawn(huge).await.unwrap_err();
        assert!(matches!(error, EnvError::Spawn { .. }), "{error:?}");
    });
}

/// Runs cases concurrently: they wait most of the time. Afterwards, no process of any of them may be left.
async fn run_all<const COUNT: usize>(
    harness: &Harness,
    cases: [(&'static str, ExecRequest); COUNT],
    check: fn(&str, &ExecResult),
) {
    let mut running = tokio::task::JoinSet::new();
    for (name, request) in cases {
        let environment = Arc::clone(&harness.environment);
        running.spawn(async move {
            let result = environment.exec_command(request).await.unwrap();
            assert!(result.duration < LONG, "{name}: {:?}", result.duration);
            check(name, &result);
        });
    }
    running.join_all().await;
    assert_eq!(harness.running(), 0);
}

#[test]
fn a_time_out_terminates_every_process() {
    run_case(async |harness| {
        let cases = [
            ("a child that ignores TERM", "trap '' TERM; while :; do sleep 0.1; done"),
            ("a grandchild", "sh -c 'sh -c \"while :; do sleep 0.1; done\"; true'; true"),
            (
                "a grandchild that ignores TERM",
                "sh -c 'sh -c \"trap : TERM; while :; do sleep 0.1; done\"; true'; true",
            ),
            ("a child in a session of its own", "setsid sh -c 'while :; do sleep 0.1; done' & wait"),
            ("a command that stopped itself", "kill -STOP $$; sleep 100"),
            ("a command that starts others all the time", "while :; do /bin/true & done"),
            ("an endless writer", "yes"),
        ];
        let request = |line| ExecRequest::new(line).with_timeout(Duration::from_millis(300));
        run_all(harness, cases.map(|(name, line)| (name, request(line))), |name, result| {
            assert!(result.timed_out, "{name}");
            assert!(result.exit_code > 128, "{name}: {}", result.exit_code);
        })
        .await;
    });
}

#[test]
fn leftover_jobs_are_terminated_without_blocking() {
    run_case(async |harness| {
        let cases = [
            ("a job that holds stdout", "sleep 100 &"),
            ("a job behind nohup", "nohup sleep 100 >/dev/null 2>&1 &"),
            ("a child in a session of its own", "setsid sleep 100 & sleep 0.1"),
            ("a double fork", "(setsid sh -c 'sleep 100 & sleep 0.1' &); sleep 0.2"),
            (SIXTY_WRITERS, "for i in $(seq 60); do yes & done"),
            ("a job that ignores TERM", "(trap '' TERM; while :; do sleep 0.1; done) & sleep 0.1"),
        ];
        let request = |line| ExecRequest::new(line).with_timeout(LONG);
        run_all(harness, cases.map(|(name, line)| (name, request(line))), |name, result| {
            let jobs = if name == SIXTY_WRITERS { 60 } else { 1 };
            assert_eq!(result.exit_code, 0, "{name}");
            assert!(result.ended_jobs >= jobs, "{name}: {}", result.ended_jobs);
        })
        .await;
    });
}

#[test]
fn a_burst_of_short_forks_leaves_nothing() {
    run_case(async |harness| {
        let result = harness.run("for i in $(seq 500); do /bin/true & done; wait; echo done").await;
        assert_eq!((harness::text(&result), result.ended_jobs), ("done\n".to_owned(), 0));
        let result =
            harness.run("for i in $(seq 500); do (exec sleep 0.0$((i % 10))) & done; echo done").await;
        assert_eq!(result.exit_code, 0);
        assert_eq!(harness.running(), 0);
    });
}

#[test]
fn output_after_the_exit_is_kept() {
    run_case(async |harness| {
        let result = harness.run("(sleep 0.05; echo late) & echo early").await;
        assert_eq!((harness::text(&result), result.ended_jobs), ("early\nlate\n".to_owned(), 0));
    });
}

#[test]
fn a_command_can_be_cancelled_at_any_time() {
    run_case(async |harness| {
        let request = || ExecRequest::new("echo started >started; exec sleep 100").with_timeout(LONG);
        // Before the start.
        drop(harness.environment.exec_command(request()));
        assert_eq!(harness.running(), 0);
        assert!(!harness.at("started").exists());
        // During the start, after a varying number of polls.
        for steps in 1..6 {
            let mut starting = Box::pin(harness.environment.exec_command(request()));
            for _ in 0..steps {
                let _ = starting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            drop(starting);
        }
        harness.environment.cleanup().await.unwrap();
        assert_eq!(harness.running(), 0);
        // While it runs.
        let _ = std::fs::remove_file(harness.at("started"));
        tokio::select! {
            result = harness.environment.exec_command(request()) => panic!("{result:?}"),
            _ = harness.wait_for_line("started") => {}
        }
        harness.environment.cleanup().await.unwrap();
        assert_eq!(harness.running(), 0);
    });
}

#[test]
fn a_dropped_command_may_write_final_output() {
    run_case(async |harness| {
        let line = "trap 'echo bye; echo bye >&2; echo bye >written; exit' TERM; echo $$ >id; while :; do sleep 0.01; done";
        tokio::select! {
            result = harness.environment.exec_command(ExecRequest::new(line)) => panic!("{result:?}"),
            _ = harness.wait_for_line("id") => {}
        }
        harness.environment.cleanup().await.unwrap();
        assert_eq!(harness.wait_for_line("written").await, "bye");
        // A process that prints endlessly is not blocked by its pipe.
        let line = "trap 'head -c 1000000 /dev/zero; echo bye >more; exit' TERM; echo $$ >other; while :; do sleep 0.01; done";
        let process = harness.environment.spawn(Command::shell(line)).await.unwrap();
        harness.wait_for_line("other").await;
        drop(process);
        harness.environment.cleanup().await.unwrap();
        assert_eq!(harness.wait_for_line("more").await, "bye");
    });
}

#[test]
fn many_commands_run_at_once() {
    run_case(async |harness| {
        let environment = Arc::clone(&harness.environment);
        let mut commands = tokio::task::JoinSet::new();
        for number in 0..200 {
            let environment = Arc::clone(&environment);
            commands.spawn(async move {
                let request = ExecRequest::new(format!("sleep 0.1; echo {number}")).with_timeout(LONG * 4);
                let result = environment.exec_command(request).await.unwrap();
                assert_eq!(harness::text(&result), format!("{number}\n"));
            });
        }
        while let Some(done) = commands.join_next().await {
            done.unwrap();
        }
    });
}

#[test]
fn a_command_reads_its_input() {
    run_case(async |harness| {
        let input = vec![b'x'; 5 << 20];
        let request = ExecRequest::new("wc -c").with_stdin(input);
        let result = harness.environment.exec_command(request).await.unwrap();
        assert_eq!(harness::text(&result).trim(), "5242880");
        // A process waiting for input that never ends can still be interrupted. The signal is handled here, and thus not ignored
        // there.
        let _handled = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).unwrap();
        let mut process =
            harness.environment.spawn(Command::shell("cat").with_stdin(Stdin::Piped)).await.unwrap();
        let stdin = process.take_stdin().unwrap();
        process.signal(Signal::Interrupt).await.unwrap();
        assert_eq!(process.wait().await.unwrap().code(), 130);
        drop(stdin);
    });
}

#[test]
fn ten_thousand_variables_arrive() {
    run_case(async |harness| {
        let mut request = ExecRequest::new("env | grep -c '^MANY_'");
        for number in 0..10_000 {
            request = request.with_env(format!("MANY_{number}"), format!("value {number}"));
        }
        let result = harness.environment.exec_command(request).await.unwrap();
        assert_eq!(harness::text(&result), "10000\n");
    });
}

#[test]
fn a_working_directory_may_be_deleted() {
    run_case(async |harness| {
        std::fs::create_dir(harness.at("directory")).unwrap();
        let request = ExecRequest::new("rmdir ../directory; echo still here").with_working_dir("directory");
        let result = harness.environment.exec_command(request.clone()).await.unwrap();
        assert_eq!(harness::text(&result), "still here\n");
        let error = harness.environment.exec_command(request).await.unwrap_err();
        assert!(matches!(error, EnvError::NotFound { .. }), "{error:?}");
    });
}

#[test]
fn a_gibibyte_is_captured_in_bounded_memory() {
    run_case(async |harness| {
        let environment = harness.environment_with_total(128 << 20);
        let before = harness::memory("VmRSS");
        harness::reset_memory_peak();
        let request = ExecRequest::new("head -c 1073741824 /dev/zero; echo end >&2").with_timeout(LONG * 4);
        let result = environment.exec_command(request).await.unwrap();
        let grown = harness::memory("VmHWM").saturating_sub(before);
        assert!(result.success());
        assert_eq!(result.stdout.len() + result.stdout.dropped(), 1 << 30);
        assert_eq!(result.stdout.len(), 128 << 20);
        assert_eq!(result.stderr.to_text_lossy().unwrap(), "end\n");
        assert!(grown < 64 << 20, "{grown} bytes more");
        environment.cleanup().await.unwrap();
    });
}

#[test]
fn a_large_output_is_spooled_unchanged() {
    run_case(async |harness| {
        let received = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&received);
        let line = "seq 300000; echo in between >&2; seq 300001 600000";
        let request = ExecRequest::new(line).with_timeout(LONG).with_on_output(Arc::new(move |chunk| {
            if chunk.stream == OutputStream::Stdout {
                sink.lock().unwrap().extend(chunk.bytes);
            }
        }));
        let result = harness.environment.exec_command(request).await.unwrap();
        let expected: String = (1..=600_000).map(|number| format!("{number}\n")).collect();
        assert!(result.success() && result.stdout.is_spooled());
        assert!(harness::text(&result) == expected, "{} bytes", result.stdout.len());
        assert_eq!(result.stderr.to_text_lossy().unwrap(), "in between\n");
        assert_eq!(result.output.len(), result.stdout.len() + result.stderr.len());
        assert_eq!(result.stdout.read_at(expected.len() as u64 - 7, 100).unwrap(), b"600000\n");
        assert_eq!(
            result.stdout.read_at(2_000_000, 1_000).unwrap(),
            expected.as_bytes()[2_000_000..2_001_000]
        );
        assert!(*received.lock().unwrap() == expected.as_bytes(), "the sink received what is kept");
    });
}

#[test]
fn a_slow_sink_blocks_the_command() {
    run_case(async |harness| {
        let received = Arc::new(AtomicUsize::new(0));
        let (begun, beginning) = std::sync::mpsc::channel();
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let (sink, gate) = (Arc::clone(&received), Mutex::new(gate));
        let line = "head -c 10000000 /dev/zero; echo >finished";
        let request = ExecRequest::new(line).with_timeout(LONG).with_on_output(Arc::new(move |chunk| {
            sink.fetch_add(chunk.bytes.len(), Ordering::Relaxed);
            let _ = begun.send(());
            // Waits until the test drops the sender.
            let _ = gate.lock().unwrap().recv();
        }));
        let environment = Arc::clone(&harness.environment);
        let mut running = tokio::task::JoinSet::new();
        running.spawn(async move { environment.exec_command(request).await });
        // Not on the runtime, which may itself be blocked by the sink.
        beginning.recv_timeout(LONG).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert!(received.load(Ordering::Relaxed) <= 64 << 10, "one chunk, the capacity of a pipe");
        assert!(!harness.at("finished").exists());
        drop(release);
        let result = running.join_next().await.unwrap().unwrap().unwrap();
        assert!(result.success() && harness.at("finished").exists());
        assert_eq!((received.load(Ordering::Relaxed), result.stdout.len()), (10_000_000, 10_000_000));
    });
}

#[test]
fn all_lines_reach_the_sink() {
    run_case(async |harness| {
        let seen = Arc::new(AtomicUsize::new(0));
        let sink = Arc::clone(&seen);
        let line = "i=0; while [ $i -lt 100000 ]; do echo line $i; i=$((i+1)); done";
        let request = ExecRequest::new(line).with_timeout(LONG).with_on_output(Arc::new(move |chunk| {
            sink.fetch_add(chunk.bytes.iter().filter(|byte| **byte == b'\n').count(), Ordering::Relaxed);
        }));
        let result = harness.environment.exec_command(request).await.unwrap();
        assert!(result.success());
        assert_eq!(seen.load(Ordering::Relaxed), 100_000);
        let text = harness::text(&result);
        assert!(text.lines().enumerate().all(|(number, line)| line == format!("line {number}")));
    });
}

#[test]
fn silent_commands_and_slow_readers_work() {
    run_case(async |harness| {
        let started = Instant::now();
        let result = harness.run("sleep 0.5; echo end").await;
        assert_eq!(harness::text(&result), "end\n");
        assert!(started.elapsed() < LONG);
        // A slow reader blocks the writer and loses nothing.
        let command = Command::argv("head", ["-c", "1000000", "/dev/zero"]);
        let mut process = harness.environment.spawn(command).await.unwrap();
        let mut output = process.take_output().unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(pin!(process.wait()).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let mut len = 0;
        while let Some(chunk) = output.next_chunk().await.unwrap() {
            len += chunk.bytes.len();
        }
        assert_eq!(len, 1_000_000);
        assert_eq!(process.wait().await.unwrap().code(), 0);
    });
}

#[test]
fn an_application_that_dies_leaves_nothing() {
    host::check("an_application_that_dies_leaves_nothing");
}

#[test]
fn a_full_disk_keeps_the_old_content() {
    disk::check("a_full_disk_keeps_the_old_content", disk::Disk::Full);
}

#[test]
fn a_read_only_file_system_is_an_error() {
    disk::check("a_read_only_file_system_is_an_error", disk::Disk::ReadOnly);
}

#[test]
fn a_killed_supervisor_is_restarted() {
    run_case(async |harness| {
        harness.run("true").await;
        let first = harness::only_child().await;
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(first), nix::sys::signal::SIGKILL).unwrap();
        let started = Instant::now();
        // A command that runs before the supervisor is dead needs no other one.
        let second = loop {
            harness.run("true").await;
            let child = harness::only_child().await;
            if child != first {
                break child;
            }
            assert!(started.elapsed() < LONG, "the supervisor is not restarted");
        };
        assert!(harness::is_running(second));
    });
}

#[test]
fn commands_wait_for_descriptors_and_all_succeed() {
    descriptors::check("commands_wait_for_descriptors_and_all_succeed");
}
