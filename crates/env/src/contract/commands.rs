//! Contract of commands. The environment needs a POSIX shell and nothing more.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};

use super::{CheckResult, Subject, equals, fails, holds, is_not_a_directory, is_not_found, succeeds};
use crate::{
    command::{Command, ExecRequest, ExecResult},
    environment::ExecutionEnvironment,
    error::EnvError,
    output::Output,
};

/// Time after which a step counts as hanging.
const LONG: Duration = Duration::from_secs(30);

/// Ways to leave a job running; each writes a process id to the file `id`.
const JOBS: [(&str, &str); 4] = [
    ("a job that holds the pipe", "sleep 1000 & echo $! >id"),
    ("a job that holds nothing", "sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >id"),
    (
        "a job behind a nohup",
        "if command -v nohup >/dev/null; then nohup sleep 1000 >/dev/null 2>&1 & \
         else (trap '' HUP; exec sleep 1000) >/dev/null 2>&1 & fi; echo $! >id",
    ),
    (
        "a job that was forked twice and left the group",
        "if command -v setsid >/dev/null; then (setsid sh -c 'sleep 1000 & echo $! >id' &); \
         else sleep 1000 & echo $! >id; fi; while [ ! -s id ]; do :; done",
    ),
];

/// Checks commands: exits, streams, input, working directory, time-outs, jobs and cancellation.
///
/// # Errors
///
/// The first violated rule.
pub async fn commands(env: &dyn ExecutionEnvironment, root: &Path) -> Result<(), super::ContractViolation> {
    let subject = Subject { env, root };
    subject.write("present", "").await?;
    exits(subject).await?;
    surroundings(subject).await?;
    home(subject).await?;
    links(subject).await?;
    arguments(subject).await?;
    volume(subject).await?;
    long_lines(subject).await?;
    // These wait most of the time. Each has a directory for its files.
    let roots = ["time-out", "jobs", "cancellation"].map(|name| root.join(name));
    let [timed_out, left, dropped] = roots.each_ref().map(|root| Subject { env, root });
    for subject in [timed_out, left, dropped] {
        subject.write("present", "").await?;
    }
    tokio::try_join!(
        streams(subject),
        polite_time_out(subject),
        stubborn_time_out(timed_out),
        jobs(left),
        cancellation(dropped),
    )?;
    Ok(())
}

async fn exits(subject: Subject<'_>) -> CheckResult {
    for (line, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -KILL $$", 137),
        ("no-such-command-at-all", 127),
        ("./present", 126),
        ("-no-option", 127),
    ] {
        let result = run(subject, ExecRequest::new(line)).await?;
        equals(&format!("the exit code of {line:?} is reported"), result.exit_code, code)?;
        holds("no time-out is reported", !result.timed_out, &result)?;
        equals("no job is reported", result.ended_jobs, 0_usize)?;
    }
    Ok(())
}

async fn streams(subject: Subject<'_>) -> CheckResult {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let request =
        ExecRequest::new("printf out; sleep 1; printf err >&2").with_on_output(Arc::new(move |chunk| {
            let mut seen = sink.lock().unwrap_or_else(PoisonError::into_inner);
            seen.extend_from_slice(&chunk.bytes);
        }));
    let result = run(subject, request).await?;
    equals("standard output is captured separately", text(&result.stdout), "out")?;
    equals("standard error is captured separately", text(&result.stderr), "err")?;
    equals("both are kept in the order of arrival", text(&result.output), "outerr")?;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    equals("output is forwarded", String::from_utf8_lossy(&seen).as_ref(), "outerr")?;
    let empty = run(subject, ExecRequest::new("cat")).await?;
    equals("there is no input unless given", text(&empty.stdout), "")?;
    let fed = run(subject, ExecRequest::new("cat").with_stdin("a\0b\n")).await?;
    equals("the input reaches the command", text(&fed.stdout), "a\0b\n")
}

async fn surroundings(subject: Subject<'_>) -> CheckResult {
    subject.write("a directory/file", "").await?;
    let request = ExecRequest::new("ls; printf '%s' \"$GREETING\"")
        .with_working_dir(subject.path("a directory"))
        .with_env("GREETING", "it's \"$HOME\"\n");
    let result = run(subject, request).await?;
    let expected = "file\nit's \"$HOME\"\n";
    equals("working directory and variables reach the command", text(&result.stdout), expected)?;
    for (name, is_expected) in
        [("gone", is_not_found as fn(&EnvError) -> bool), ("present", is_not_a_directory)]
    {
        let request = ExecRequest::new("true").with_working_dir(subject.path(name));
        let result = subject.env.exec_command(request).await;
        fails("an invalid working directory is refused", result, is_expected)?;
    }
    let missing: [&str; 0] = [];
    let spawned = subject.env.spawn(Command::argv("no-such-program-at-all", missing)).await;
    fails("a missing program is not started", spawned, |error| matches!(error, EnvError::Spawn { .. }))
}

async fn home(subject: Subject<'_>) -> CheckResult {
    let Some(home) = subject.env.home_directory() else { return Ok(()) };
    let below = subject.env.resolve(Path::new("~/below"));
    equals("a tilde in a path is the home directory", below, home.join("below"))?;
    let result = run(subject, ExecRequest::new("printf %s ~")).await?;
    holds("a tilde in a path is what it is in a command", Path::new(&text(&result.stdout)) == home, &result)
}

async fn links(subject: Subject<'_>) -> CheckResult {
    let made =
        run(subject, ExecRequest::new("ln -s nowhere broken; ln -s loop loop; ln -s present good")).await?;
    holds("links are made", made.success(), &made)?;
    let read = subject.env.read(&subject.path("good"), None).await;
    equals("a link is followed", succeeds("a link is read", read)?.len(), 0_usize)?;
    fails(
        "a dangling link is not found",
        subject.env.read(&subject.path("broken"), None).await,
        is_not_found,
    )?;
    let is_io = |error: &EnvError| matches!(error, EnvError::Io { .. });
    fails("a loop of links is an error", subject.env.read(&subject.path("loop"), None).await, is_io)
}

async fn arguments(subject: Subject<'_>) -> CheckResult {
    let hostile = ["a b", "", "-n", "$(id)", "`id`", "*", "it's", "\"", "two\nlines", "\\"];
    let arguments = ["%s|"].into_iter().chain(hostile);
    let spawned = subject.env.spawn(Command::argv("printf", arguments)).await;
    let mut process = succeeds("a program is started", spawned)?;
    let mut bytes = Vec::new();
    if let Some(mut output) = process.take_output() {
        while let Some(chunk) = succeeds("output is read", output.next_chunk().await)? {
            bytes.extend(chunk.bytes);
        }
    }
    let status = succeeds("an exit is waited for", process.wait().await)?;
    equals("a program exits", status.code(), 0)?;
    let expected = format!("{}|", hostile.join("|"));
    let printed = String::from_utf8_lossy(&bytes).into_owned();
    equals("arguments arrive unchanged", printed, expected)
}

async fn volume(subject: Subject<'_>) -> CheckResult {
    let request = ExecRequest::new("head -c 3000000 /dev/zero").with_timeout(LONG);
    let result = run(subject, request).await?;
    equals("a large output is kept whole", result.stdout.len(), 3_000_000_u64)?;
    let echo = |word: &'static str| run(subject, ExecRequest::new(format!("echo {word}")));
    let (one, two, three) = tokio::join!(echo("one"), echo("two"), echo("three"));
    for (result, expected) in [(one, "one\n"), (two, "two\n"), (three, "three\n")] {
        equals("commands run concurrently", text(&result?.stdout), expected)?;
    }
    Ok(())
}

/// Runs a line that systems do not accept as one argument. The two texts are cut at different characters.
async fn long_lines(subject: Subject<'_>) -> CheckResult {
    let text = "long é€ ".repeat(20_000);
    let line = format!("x='{text}'; y='{text}'; [ \"$x\" = \"$y\" ] && echo $#; cat; exit 7");
    let request = ExecRequest::new(line).with_stdin("input").with_timeout(LONG);
    let result = run(subject, request).await?;
    equals("a long line is run as it is", self::text(&result.stdout), "0\ninput")?;
    equals("a long line has its exit code", result.exit_code, 7)
}

async fn polite_time_out(subject: Subject<'_>) -> CheckResult {
    let polite = "trap 'echo bye; exit 3' TERM; echo hello; while :; do sleep 0.1; done";
    let request = ExecRequest::new(polite).with_timeout(Duration::from_secs(1));
    let result = run(subject, request).await?;
    holds("a time-out is reported", result.timed_out, &result)?;
    equals("a time-out lets the command write final output", text(&result.stdout), "hello\nbye\n")?;
    equals("a time-out keeps the exit code", result.exit_code, 3)
}

async fn stubborn_time_out(subject: Subject<'_>) -> CheckResult {
    let stubborn = "trap '' TERM; echo $$ >id; while :; do sleep 0.1; done";
    let request =
        ExecRequest::new(stubborn).with_working_dir(subject.root).with_timeout(Duration::from_secs(1));
    let result = run(subject, request).await?;
    equals("a command that ignores the terminate signal is killed", result.exit_code, 137)?;
    is_gone(subject, "a command that timed out").await
}

async fn jobs(subject: Subject<'_>) -> CheckResult {
    for (what, line) in JOBS {
        forget_id(subject).await?;
        let request = ExecRequest::new(format!("{line}; echo done")).with_working_dir(subject.root);
        let started = Instant::now();
        let result = run(subject, request).await?;
        holds(&format!("{what} does not block the call"), started.elapsed() < LONG, &result)?;
        equals(&format!("{what} does not change the exit"), result.exit_code, 0)?;
        equals(&format!("{what} does not change the output"), text(&result.stdout), "done\n")?;
        holds(&format!("{what} is counted"), result.ended_jobs >= 1, &result)?;
        is_gone(subject, what).await?;
    }
    Ok(())
}

async fn cancellation(subject: Subject<'_>) -> CheckResult {
    forget_id(subject).await?;
    let request =
        ExecRequest::new("sleep 1000 & echo $! >id; wait").with_working_dir(subject.root).with_timeout(LONG);
    let running = subject.env.exec_command(request);
    tokio::select! {
        ended = running => holds("a command runs until it is dropped", false, ended)?,
        written = wait_for_id(subject) => { written?; }
    }
    is_gone(subject, "a job of a dropped command").await?;
    forget_id(subject).await?;
    let polite = "trap 'echo bye >bye; exit' TERM; echo $$ >id; while :; do sleep 0.1; done";
    let running = subject.env.exec_command(ExecRequest::new(polite).with_working_dir(subject.root));
    tokio::select! {
        ended = running => holds("a command runs until it is dropped", false, ended)?,
        written = wait_for_id(subject) => { written?; }
    }
    is_gone(subject, "a dropped command").await?;
    // Its output is discarded, but it may still clean up. In another PID namespace, `is_gone` may return
    // before that.
    equals("a dropped command may clean up", wait_for_line(subject, "bye").await?.as_str(), "bye")
}

async fn run(subject: Subject<'_>, mut request: ExecRequest) -> CheckResult<ExecResult> {
    request.working_dir.get_or_insert_with(|| subject.root.to_path_buf());
    let running = timeout(LONG, subject.env.exec_command(request));
    match running.await {
        Ok(result) => succeeds("a command runs", result),
        Err(elapsed) => {
            holds("a command does not hang", false, elapsed)?;
            Ok(ExecResult::new(0))
        }
    }
}

async fn forget_id(subject: Subject<'_>) -> CheckResult {
    match subject.env.remove(&subject.path("id")).await {
        Err(EnvError::NotFound { .. }) => Ok(()),
        removed => succeeds("a file is removed", removed),
    }
}

/// Waits for the process id in the file `id`.
async fn wait_for_id(subject: Subject<'_>) -> CheckResult<String> {
    wait_for_line(subject, "id").await
}

/// Waits until a command has written a whole line to the file, and returns it.
async fn wait_for_line(subject: Subject<'_>, name: &str) -> CheckResult<String> {
    let deadline = Instant::now() + LONG;
    loop {
        let content = subject.env.read_file(&subject.path(name), None, None).await;
        let content = content.unwrap_or_default();
        if content.ends_with('\n') {
            return Ok(content.trim().to_owned());
        }
        holds("a command writes its file", Instant::now() < deadline, content)?;
        sleep(Duration::from_millis(10)).await;
    }
}

/// Checks that the process in the file `id` exits. A zombie counts as gone.
async fn is_gone(subject: Subject<'_>, what: &str) -> CheckResult {
    let id = wait_for_id(subject).await?;
    // A sandbox may deny the signal although the process is alive. If the id belongs to the
    // checking shell, it was reused or comes from another PID namespace.
    let look = format!(
        "[ $$ != {id} ] || exit 0; kill -0 {id} 2>/dev/null || [ -d /proc/{id} ] || exit 0; \
         case \"$(cat /proc/{id}/stat 2>/dev/null)\" in *') Z '*) exit 0;; esac; exit 1"
    );
    let deadline = Instant::now() + LONG;
    loop {
        if run(subject, ExecRequest::new(look.as_str())).await?.exit_code == 0 {
            return Ok(());
        }
        holds(&format!("{what} is terminated"), Instant::now() < deadline, &id)?;
        sleep(Duration::from_millis(50)).await;
    }
}

fn text(output: &Output) -> String {
    output.to_text_lossy().unwrap_or_default()
}
