//! The process matrix on this machine: every way in which a command can end or refuse to, and after each that
//! nothing of it is left: no process, no descriptor, no temporary file.
//!
//! A binary of its own, and one test at a time in it, since descriptors and children are counted for the whole
//! process.
#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "all of it is test: it looks at what commands left behind, and says so"
)]

#[path = "matrix/descriptors.rs"]
mod descriptors;
#[path = "matrix/disk.rs"]
mod disk;
#[path = "matrix/host.rs"]
mod host;
#[path = "matrix/world.rs"]
mod world;

use std::{
    future::Future,
    path::Path,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
    time::{Duration, Instant},
};

use pintle_env::{Command, EnvError, ExecRequest, ExecutionEnvironment, OutputStream, Signal, Stdin};

use self::world::{LONG, in_a_world};

#[test]
fn every_exit_is_told() {
    in_a_world(async |world| {
        for (line, code) in [
            ("exit 0", 0),
            ("exit 7", 7),
            ("kill -KILL $$", 137),
            ("kill -TERM $$", 143),
            ("no-such-command-at-all", 127),
            ("touch file; ./file", 126),
            ("cat; exit 3", 3),
        ] {
            let result = world.run(line).await;
            assert_eq!((result.exit_code, result.timed_out, result.ended_jobs), (code, false, 0), "{line}");
        }
    });
}

#[test]
fn a_program_that_cannot_be_started_is_an_error() {
    in_a_world(async |world| {
        std::fs::write(world.at("file"), "").unwrap();
        let none: [&str; 0] = [];
        for program in ["no-such-program-at-all".into(), world.at("file"), world.at("")] {
            let error = world.environment.spawn(Command::argv(program, none)).await.unwrap_err();
            assert!(matches!(error, EnvError::Spawn { .. }), "{error:?}");
        }
        let huge = Command::shell("true").with_env("HUGE", "x".repeat(1 << 20));
        let error = world.environment.spawn(huge).await.unwrap_err();
        assert!(matches!(error, EnvError::Spawn { .. }), "{error:?}");
    });
}

#[test]
fn a_time_out_ends_whoever_is_there() {
    in_a_world(async |world| {
        for (name, line) in [
            ("a child that ignores TERM", "trap '' TERM; while :; do sleep 0.1; done"),
            ("a grandchild", "sh -c 'sh -c \"while :; do sleep 0.1; done\"; true'; true"),
            (
                "a grandchild that ignores TERM",
                "sh -c 'sh -c \"trap : TERM; while :; do sleep 0.1; done\"; true'; true",
            ),
            ("a child in a session of its own", "setsid sh -c 'while :; do sleep 0.1; done' & wait"),
            ("a command that stopped itself", "kill -STOP $$; sleep 100"),
            ("a command that starts others all the time", "while :; do /bin/true & done"),
            ("a writer that nobody stops", "yes"),
        ] {
            let request = ExecRequest::new(line).with_timeout(Duration::from_millis(300));
            let result = world.environment.exec_command(request).await.unwrap();
            assert!(result.timed_out, "{name}");
            assert!(result.exit_code > 128, "{name}: {}", result.exit_code);
            assert!(result.duration < LONG, "{name}: {:?}", result.duration);
            assert_eq!(world.running(), 0, "{name}");
        }
    });
}

#[test]
fn jobs_left_behind_are_ended_and_do_not_hold_the_call() {
    in_a_world(async |world| {
        for (name, line, jobs) in [
            ("a job that holds stdout", "sleep 100 &", 1),
            ("a job behind nohup", "nohup sleep 100 >/dev/null 2>&1 &", 1),
            ("a child in a session of its own", "setsid sleep 100 & sleep 0.1", 1),
            ("a double fork", "(setsid sh -c 'sleep 100 & sleep 0.1' &); sleep 0.2", 1),
            ("sixty writers", "for i in $(seq 60); do yes & done", 60),
            ("a job that ignores TERM", "(trap '' TERM; while :; do sleep 0.1; done) & sleep 0.1", 1),
        ] {
            let result = world.run(line).await;
            assert_eq!(result.exit_code, 0, "{name}");
            assert!(result.ended_jobs >= jobs, "{name}: {}", result.ended_jobs);
            assert!(result.duration < LONG, "{name}: {:?}", result.duration);
            assert_eq!(world.running(), 0, "{name}");
        }
    });
}

#[test]
fn a_burst_of_short_forks_leaves_nothing() {
    in_a_world(async |world| {
        let result = world.run("for i in $(seq 500); do /bin/true & done; wait; echo done").await;
        assert_eq!((world::text(&result), result.ended_jobs), ("done\n".to_owned(), 0));
        let result = world.run("for i in $(seq 500); do (exec sleep 0.0$((i % 10))) & done; echo done").await;
        assert_eq!(result.exit_code, 0);
        assert_eq!(world.running(), 0);
    });
}

#[test]
fn output_after_the_exit_is_kept() {
    in_a_world(async |world| {
        let result = world.run("(sleep 0.05; echo late) & echo early").await;
        assert_eq!((world::text(&result), result.ended_jobs), ("early\nlate\n".to_owned(), 0));
    });
}

#[test]
fn a_command_can_be_cancelled_at_any_time() {
    in_a_world(async |world| {
        let request = || ExecRequest::new("echo started >started; exec sleep 100").with_timeout(LONG);
        // Before the start.
        drop(world.environment.exec_command(request()));
        assert_eq!(world.running(), 0);
        assert!(!world.at("started").exists());
        // While it is being started, after each number of steps.
        for steps in 1..6 {
            let mut starting = Box::pin(world.environment.exec_command(request()));
            for _ in 0..steps {
                let _ = starting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            drop(starting);
        }
        world.environment.cleanup().await.unwrap();
        assert_eq!(world.running(), 0);
        // In the middle.
        let _ = std::fs::remove_file(world.at("started"));
        tokio::select! {
            result = world.environment.exec_command(request()) => panic!("{result:?}"),
            _ = world.written("started") => {}
        }
        world.environment.cleanup().await.unwrap();
        assert_eq!(world.running(), 0);
    });
}

#[test]
fn a_dropped_command_may_say_goodbye() {
    in_a_world(async |world| {
        let line = "trap 'echo bye; echo bye >&2; echo bye >told; exit' TERM; echo $$ >id; while :; do sleep 0.01; done";
        tokio::select! {
            result = world.environment.exec_command(ExecRequest::new(line)) => panic!("{result:?}"),
            _ = world.written("id") => {}
        }
        world.environment.cleanup().await.unwrap();
        assert_eq!(world.written("told").await, "bye");
        // One that talks without end is not held up by its pipe either.
        let line = "trap 'head -c 1000000 /dev/zero; echo bye >more; exit' TERM; echo $$ >other; while :; do sleep 0.01; done";
        let process = world.environment.spawn(Command::shell(line)).await.unwrap();
        world.written("other").await;
        drop(process);
        world.environment.cleanup().await.unwrap();
        assert_eq!(world.written("more").await, "bye");
    });
}

#[test]
fn many_commands_run_at_once() {
    in_a_world(async |world| {
        let environment = Arc::clone(&world.environment);
        let mut commands = tokio::task::JoinSet::new();
        for number in 0..200 {
            let environment = Arc::clone(&environment);
            commands.spawn(async move {
                let request = ExecRequest::new(format!("sleep 0.1; echo {number}")).with_timeout(LONG * 4);
                let result = environment.exec_command(request).await.unwrap();
                assert_eq!(world::text(&result), format!("{number}\n"));
            });
        }
        while let Some(done) = commands.join_next().await {
            done.unwrap();
        }
    });
}

#[test]
fn a_command_reads_its_input() {
    in_a_world(async |world| {
        let input = vec![b'x'; 5 << 20];
        let request = ExecRequest::new("wc -c").with_stdin(input);
        let result = world.environment.exec_command(request).await.unwrap();
        assert_eq!(world::text(&result).trim(), "5242880");
        // One that waits for input that never ends is cancelled all the same.
        let mut process =
            world.environment.spawn(Command::shell("cat").with_stdin(Stdin::Piped)).await.unwrap();
        let stdin = process.take_stdin().unwrap();
        process.signal(Signal::Interrupt).await.unwrap();
        assert_eq!(process.wait().await.unwrap().code(), 130);
        drop(stdin);
    });
}

#[test]
fn ten_thousand_variables_arrive() {
    in_a_world(async |world| {
        let mut request = ExecRequest::new("env | grep -c '^MANY_'");
        for number in 0..10_000 {
            request = request.with_env(format!("MANY_{number}"), format!("value {number}"));
        }
        let result = world.environment.exec_command(request).await.unwrap();
        assert_eq!(world::text(&result), "10000\n");
    });
}

#[test]
fn a_working_directory_may_go_away() {
    in_a_world(async |world| {
        std::fs::create_dir(world.at("place")).unwrap();
        let request = ExecRequest::new("rmdir ../place; echo still here").with_working_dir("place");
        let result = world.environment.exec_command(request.clone()).await.unwrap();
        assert_eq!(world::text(&result), "still here\n");
        let error = world.environment.exec_command(request).await.unwrap_err();
        assert!(matches!(error, EnvError::NotFound { .. }), "{error:?}");
    });
}

#[test]
fn a_gibibyte_is_counted_and_held_in_bounded_memory() {
    in_a_world(async |world| {
        let environment = world.environment_with_total(128 << 20);
        let before = world::memory("VmRSS");
        world::reset_memory_peak();
        let request = ExecRequest::new("head -c 1073741824 /dev/zero; echo end >&2").with_timeout(LONG * 4);
        let result = environment.exec_command(request).await.unwrap();
        let grown = world::memory("VmHWM").saturating_sub(before);
        assert!(result.success());
        assert_eq!(result.stdout.len() + result.stdout.dropped(), 1 << 30);
        assert_eq!(result.stdout.len(), 128 << 20);
        assert_eq!(result.stderr.to_text_lossy().unwrap(), "end\n");
        assert!(grown < 64 << 20, "{grown} bytes more");
        environment.cleanup().await.unwrap();
    });
}

#[test]
fn all_of_a_large_output_is_in_the_spool() {
    in_a_world(async |world| {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&heard);
        let line = "seq 300000; echo in between >&2; seq 300001 600000";
        let request = ExecRequest::new(line).with_timeout(LONG).with_on_output(Arc::new(move |chunk| {
            if chunk.stream == OutputStream::Stdout {
                sink.lock().unwrap().extend(chunk.bytes);
            }
        }));
        let result = world.environment.exec_command(request).await.unwrap();
        let expected: String = (1..=600_000).map(|number| format!("{number}\n")).collect();
        assert!(result.success() && result.stdout.is_spooled());
        assert!(world::text(&result) == expected, "{} bytes", result.stdout.len());
        assert_eq!(result.stderr.to_text_lossy().unwrap(), "in between\n");
        assert_eq!(result.output.len(), result.stdout.len() + result.stderr.len());
        assert_eq!(result.stdout.read_at(expected.len() as u64 - 7, 100).unwrap(), b"600000\n");
        assert_eq!(
            result.stdout.read_at(2_000_000, 1_000).unwrap(),
            expected.as_bytes()[2_000_000..2_001_000]
        );
        assert!(*heard.lock().unwrap() == expected.as_bytes(), "what was heard is what is kept");
    });
}

#[test]
fn a_host_that_is_slow_to_listen_holds_the_command_up() {
    in_a_world(async |world| {
        let heard = Arc::new(AtomicUsize::new(0));
        let (begun, beginning) = std::sync::mpsc::channel();
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let (sink, gate) = (Arc::clone(&heard), Mutex::new(gate));
        let line = "head -c 10000000 /dev/zero; echo >finished";
        let request = ExecRequest::new(line).with_timeout(LONG).with_on_output(Arc::new(move |chunk| {
            sink.fetch_add(chunk.bytes.len(), Ordering::Relaxed);
            let _ = begun.send(());
            // Waits for the other side to be dropped.
            let _ = gate.lock().unwrap().recv();
        }));
        let environment = Arc::clone(&world.environment);
        let mut running = tokio::task::JoinSet::new();
        running.spawn(async move { environment.exec_command(request).await });
        // Without the runtime, which may itself be held up by the host.
        beginning.recv_timeout(LONG).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert!(heard.load(Ordering::Relaxed) <= 64 << 10, "one piece, which is what a pipe holds");
        assert!(!world.at("finished").exists());
        drop(release);
        let result = running.join_next().await.unwrap().unwrap().unwrap();
        assert!(result.success() && world.at("finished").exists());
        assert_eq!((heard.load(Ordering::Relaxed), result.stdout.len()), (10_000_000, 10_000_000));
    });
}

#[test]
fn a_hundred_thousand_lines_arrive_one_by_one() {
    in_a_world(async |world| {
        let seen = Arc::new(AtomicUsize::new(0));
        let sink = Arc::clone(&seen);
        let line = "i=0; while [ $i -lt 100000 ]; do echo line $i; i=$((i+1)); done";
        let request = ExecRequest::new(line).with_timeout(LONG).with_on_output(Arc::new(move |chunk| {
            sink.fetch_add(chunk.bytes.iter().filter(|byte| **byte == b'\n').count(), Ordering::Relaxed);
        }));
        let result = world.environment.exec_command(request).await.unwrap();
        assert!(result.success());
        assert_eq!(seen.load(Ordering::Relaxed), 100_000);
        let text = world::text(&result);
        assert!(text.lines().enumerate().all(|(number, line)| line == format!("line {number}")));
    });
}

#[test]
fn a_command_may_say_nothing_for_long() {
    in_a_world(async |world| {
        let started = Instant::now();
        let result = world.run("sleep 2; echo end").await;
        assert_eq!(world::text(&result), "end\n");
        assert!(started.elapsed() < LONG);
        // A reader that is slow holds the writer up and loses nothing.
        let command = Command::argv("head", ["-c", "1000000", "/dev/zero"]);
        let mut process = world.environment.spawn(command).await.unwrap();
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
fn a_killed_host_leaves_nothing() {
    host::ends("a_killed_host_leaves_nothing", host::End::Killed);
}

#[test]
fn a_host_that_just_exits_leaves_nothing() {
    host::ends("a_host_that_just_exits_leaves_nothing", host::End::Exits);
}

#[test]
fn a_full_disk_keeps_the_old_content() {
    disk::refuses("a_full_disk_keeps_the_old_content", disk::Disk::Full);
}

#[test]
fn a_read_only_file_system_is_an_error() {
    disk::refuses("a_read_only_file_system_is_an_error", disk::Disk::ReadOnly);
}

#[test]
fn a_lifeline_that_somebody_ends_is_tied_anew() {
    in_a_world(async |world| {
        world.run("true").await;
        let [first] = world::children()[..] else { panic!("{:?}", world::children()) };
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(first), nix::sys::signal::SIGKILL).unwrap();
        world.run("true").await;
        world.run("true").await;
        let [second] = world::children()[..] else { panic!("{:?}", world::children()) };
        assert_ne!(first, second);
        assert!(Path::new(&format!("/proc/{second}")).exists());
    });
}

#[test]
fn commands_wait_for_descriptors_and_all_succeed() {
    descriptors::suffice("commands_wait_for_descriptors_and_all_succeed");
}
