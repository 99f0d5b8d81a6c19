//! Process matrix of a remote environment: no case leaves a process, descriptor or file behind.
//!
//! The remote system is the local machine, so the tests inspect its processes directly instead of
//! asking the environment.
#![expect(clippy::disallowed_methods, reason = "the tests inspect leftovers from outside")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use crate::{
    command::{Command, ExecRequest, ExecResult},
    environment::ExecutionEnvironment,
    error::EnvError,
    process::{ExitStatus, TERMINATE_GRACE},
};

/// Ten times what any step here should take.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Variable that identifies the processes of a case.
const VARIABLE: &str = "PINTLE_MATRIX";

/// Time limit for terminating leftovers: twice the grace period, plus a margin for slow machines.
pub(crate) const END: Duration = Duration::from_secs(2 * TERMINATE_GRACE.as_secs() + 4);

/// Runs every case in `root`, a directory with the same path locally and remotely, in an
/// initialized environment.
pub(crate) async fn matrix(name: &str, env: Arc<dyn ExecutionEnvironment>, root: &Path) {
    let value = root.file_name().unwrap().to_str().unwrap().to_owned();
    let harness = Harness { env, root: root.to_path_buf(), value };
    // Create everything that is created only once, for instance threads, before the first snapshot.
    harness.run("true").await;
    let before = Resources::when_stable(&harness).await;
    let mut cases = 0;
    macro_rules! cases {
        ($($case:ident),* $(,)?) => {$(
            let started = Instant::now();
            harness.$case().await;
            before.check_leftovers(&harness, stringify!($case)).await;
            cases += 1;
            println!("{name:<8} {:<40} pass {:>6.2} s", stringify!($case), started.elapsed().as_secs_f64());
        )*};
    }
    cases!(
        exit_0,
        exit_7,
        killed_by_a_signal,
        command_not_found,
        not_executable,
        time_out_with_a_child_that_ignores_term,
        time_out_with_a_grandchild,
        setsid_child,
        double_fork,
        nohup_in_the_background,
        sixty_background_yes,
        background_job_holding_stdout,
        burst_of_five_hundred_short_forks,
        output_after_exit,
        cancel_before_start,
        cancel_in_the_middle,
        drop_of_the_future,
        two_hundred_commands_at_once,
        reads_stdin,
        ten_thousand_variables,
        deleted_working_directory,
    );
    assert_eq!(cases, 21);
}

/// Environment and directory of the cases.
struct Harness {
    env: Arc<dyn ExecutionEnvironment>,
    root: PathBuf,
    value: String,
}

impl Harness {
    fn request(&self, line: impl Into<String>) -> ExecRequest {
        ExecRequest::new(line).with_env(VARIABLE, self.value.as_str()).with_timeout(LONG)
    }

    async fn exec(&self, request: ExecRequest) -> ExecResult {
        let running = tokio::time::timeout(2 * LONG, self.env.exec_command(request));
        running.await.expect("a command hangs").unwrap()
    }

    async fn run(&self, line: &str) -> ExecResult {
        self.exec(self.request(line)).await
    }

    /// Finds the live processes of the cases on the local machine.
    fn processes(&self) -> BTreeSet<u32> {
        processes_with(&format!("{VARIABLE}={}", self.value))
    }

    async fn code(&self, line: &str, expected: i32) {
        let result = self.run(line).await;
        assert_eq!(result.exit_code, expected, "{line}: {result:?}");
        assert!(!result.timed_out, "{line}");
        assert_eq!(result.ended_jobs, 0, "{line}");
    }

    async fn exit_0(&self) {
        self.code("exit 0", 0).await;
    }

    async fn exit_7(&self) {
        self.code("exit 7", 7).await;
        // The exit code of a failed client.
        self.code("exit 255", 255).await;
    }

    async fn killed_by_a_signal(&self) {
        self.code("kill -KILL $$", 137).await;
        self.code("kill -TERM $$", 143).await;
        let mut process = self.env.spawn(Command::shell("kill -KILL $$")).await.unwrap();
        assert_eq!(process.wait().await.unwrap().code(), ExitStatus::Signaled(9).code());
    }

    async fn command_not_found(&self) {
        self.code("no-such-command-at-all", 127).await;
        let none: [&str; 0] = [];
        let error = self.env.spawn(Command::argv("no-such-program", none)).await.unwrap_err();
        assert!(
            matches!(&error, EnvError::Spawn { program, .. } if program == "no-such-program"),
            "{error:?}"
        );
    }

    async fn not_executable(&self) {
        self.env.write(Path::new("plain"), b"x").await.unwrap();
        self.code("./plain", 126).await;
        self.env.remove(Path::new("plain")).await.unwrap();
    }

    async fn times_out(&self, line: &str) {
        let started = Instant::now();
        let result = self.exec(self.request(line).with_timeout(Duration::from_millis(700))).await;
        assert!(result.timed_out, "{line}: {result:?}");
        assert_eq!(result.stdout.to_text_lossy().unwrap(), "begun\n", "{line}");
        assert!(started.elapsed() < END, "{line} took {:?}", started.elapsed());
    }

    async fn time_out_with_a_child_that_ignores_term(&self) {
        self.times_out("trap '' TERM; echo begun; while :; do sleep 0.1; done").await;
    }

    async fn time_out_with_a_grandchild(&self) {
        self.times_out("sh -c 'echo begun; sh -c \"sleep 1000; :\"; :'; :").await;
    }

    async fn leaves_a_job(&self, line: &str) {
        let started = Instant::now();
        let result = self.run(line).await;
        assert_eq!(result.exit_code, 0, "{line}: {result:?}");
        assert!(result.ended_jobs >= 1, "{line}: {result:?}");
        assert!(started.elapsed() < END, "{line} took {:?}", started.elapsed());
    }

    async fn setsid_child(&self) {
        self.leaves_a_job("setsid sleep 1000 & sleep 0.1").await;
    }

    async fn double_fork(&self) {
        self.leaves_a_job("(setsid sh -c 'sleep 1000 & :' &); sleep 0.1").await;
    }

    async fn nohup_in_the_background(&self) {
        self.leaves_a_job("(trap '' HUP; exec sleep 1000) >/dev/null 2>&1 & if command -v nohup; then nohup sleep 1000 & fi").await;
    }

    async fn sixty_background_yes(&self) {
        // At the lowest priority, they leave the supervisor the time for its heartbeat on a busy machine.
        let line = "i=0; while [ $i -lt 60 ]; do \
                    yes >/dev/null & renice -n 19 -p $! >/dev/null 2>&1; i=$((i+1)); done";
        let result = self.run(line).await;
        assert_eq!((result.exit_code, result.ended_jobs), (0, 60));
    }

    async fn background_job_holding_stdout(&self) {
        self.leaves_a_job("sleep 1000 &").await;
        self.leaves_a_job("yes &").await;
    }

    async fn burst_of_five_hundred_short_forks(&self) {
        let line = "i=0; while [ $i -lt 500 ]; do (:) & i=$((i+1)); done; wait; echo $i";
        let result = self.run(line).await;
        assert_eq!(result.stdout.to_text_lossy().unwrap(), "500\n");
        assert_eq!(result.ended_jobs, 0);
    }

    async fn output_after_exit(&self) {
        let result = self.run("(sleep 0.1; echo late) & echo early").await;
        assert_eq!(result.stdout.to_text_lossy().unwrap(), "early\nlate\n");
        assert_eq!(result.ended_jobs, 0);
    }

    async fn cancel_before_start(&self) {
        let path = self.root.join("started");
        drop(self.env.exec_command(self.request("touch started")));
        {
            let mut running =
                std::pin::pin!(self.env.exec_command(self.request("touch started; sleep 1000")));
            let polled = polled_once(running.as_mut()).await;
            assert!(polled.is_none());
        }
        self.code("true", 0).await;
        // The command may have started; then it is terminated.
        until("a cancelled command is gone", || self.processes().is_empty()).await;
        let _ = fs::remove_file(path);
    }

    /// Runs `cancel` on a command that creates the file `begun`.
    async fn run_and_clean(&self, line: &str, cancel: impl AsyncFnOnce(ExecRequest)) {
        let file = self.root.join("begun");
        let request = self.request(format!("touch begun; {line}"));
        cancel(request).await;
        fs::remove_file(file).unwrap();
    }

    async fn cancel_in_the_middle(&self) {
        for line in
            ["sleep 1000", "sleep 1000 & setsid sleep 1000 & wait", "trap '' TERM; sleep 1000; sleep 1000"]
        {
            self.run_and_clean(line, async |request| {
                tokio::select! {
                    ended = self.env.exec_command(request) => panic!("{line} ended: {ended:?}"),
                    () = until("a command begins", || self.root.join("begun").exists()) => {}
                }
            })
            .await;
            let since = Instant::now();
            until("a cancelled command is gone", || self.processes().is_empty()).await;
            assert!(since.elapsed() < END, "{line} ended after {:?}", since.elapsed());
        }
    }

    async fn drop_of_the_future(&self) {
        let command = Command::shell("touch begun; sleep 1000").with_env(VARIABLE, self.value.as_str());
        let process = self.env.spawn(command).await.unwrap();
        until("a process begins", || self.root.join("begun").exists()).await;
        drop(process);
        until("a dropped process is gone", || self.processes().is_empty()).await;
        fs::remove_file(self.root.join("begun")).unwrap();
    }

    async fn two_hundred_commands_at_once(&self) {
        let mut commands = JoinSet::new();
        for number in 0..200 {
            let (env, request) =
                (Arc::clone(&self.env), self.request(format!("echo {number}")).with_timeout(2 * LONG));
            commands.spawn(async move {
                let result = env.exec_command(request).await.unwrap();
                assert_eq!(result.exit_code, 0);
                result.stdout.to_text_lossy().unwrap().trim().parse::<u32>().unwrap() - number
            });
        }
        assert_eq!(commands.join_all().await, [0; 200]);
    }

    async fn reads_stdin(&self) {
        let result = self.run("cat; echo end").await;
        assert_eq!(result.stdout.to_text_lossy().unwrap(), "end\n");
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
        let result = self.exec(self.request("cat").with_stdin(bytes.clone())).await;
        assert!(result.stdout.read_at(0, bytes.len() + 1).unwrap() == bytes);
        // A command that does not read its input is not blocked by it.
        let result = self.exec(self.request("exec true").with_stdin(bytes)).await;
        assert!(result.success());
    }

    async fn ten_thousand_variables(&self) {
        let mut request = self.request("env | grep -c '^V[0-9]*=it.s value$'");
        for number in 0..10_000 {
            request = request.with_env(format!("V{number}"), "it's value");
        }
        let result = self.exec(request).await;
        assert_eq!(result.stdout.to_text_lossy().unwrap(), "10000\n", "{result:?}");
    }

    async fn deleted_working_directory(&self) {
        self.env.write(Path::new("gone/file"), b"").await.unwrap();
        let request = self.request("rm -r ../gone; echo still; ls").with_working_dir("gone");
        let result = self.exec(request).await;
        assert_eq!(result.stdout.to_text_lossy().unwrap(), "still\n");
        let error = self.env.exec_command(self.request("true").with_working_dir("gone")).await.unwrap_err();
        assert!(
            matches!(&error, EnvError::NotFound { path, .. } if *path == self.root.join("gone")),
            "{error:?}"
        );
    }
}

/// Snapshot of the resources in use before and after a case.
#[derive(Debug, PartialEq, Eq)]
struct Resources {
    descriptors: usize,
    /// Entries of the test directory.
    files: BTreeSet<PathBuf>,
    children: usize,
}

impl Resources {
    fn of(harness: &Harness) -> Self {
        let names = fs::read_dir(&harness.root).unwrap();
        Self {
            descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
            files: names.map(|entry| entry.unwrap().path()).collect(),
            children: children_of(std::process::id()),
        }
    }

    /// Takes a snapshot once nothing has changed for a second.
    async fn when_stable(harness: &Harness) -> Self {
        let mut last = Self::of(harness);
        let mut since = Instant::now();
        while since.elapsed() < Duration::from_secs(1) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let now = Self::of(harness);
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        last
    }

    async fn check_leftovers(&self, harness: &Harness, case: &str) {
        let started = Instant::now();
        loop {
            let (now, processes) = (Self::of(harness), harness.processes());
            if now == *self && processes.is_empty() {
                return;
            }
            assert!(started.elapsed() < END, "{case} leaves {now:?} and {processes:?}; before it: {self:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Counts the local child processes, zombies included, threads excluded.
fn children_of(parent: u32) -> usize {
    let is_child = |id: &u32| {
        let line = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let mut fields = line.rsplit(") ").next().unwrap_or_default().split(' ');
        fields.nth(1).and_then(|id| id.parse().ok()) == Some(parent)
    };
    process_ids().filter(is_child).count()
}

/// Polls a future once.
async fn polled_once<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    let mut future = Some(future);
    std::future::poll_fn(move |context| {
        use std::task::Poll;
        let Some(future) = future.take() else { return Poll::Ready(None) };
        match future.poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending => Poll::Ready(None),
        }
    })
    .await
}

/// Waits until `holds` returns true.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < LONG, "not within {LONG:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Runs a test in its own process, so that all resources of the process belong to the test.
pub(crate) fn in_own_process<F: Future<Output = ()>>(name: &str, test: impl FnOnce() -> F) {
    const IN_OWN_PROCESS: &str = "PINTLE_TEST_ALONE";
    if std::env::var_os(IN_OWN_PROCESS).is_some() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        return runtime.block_on(test());
    }
    let output = this_test(name).env(IN_OWN_PROCESS, "1").output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    print!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}", output.status);
    assert!(stdout.contains("1 passed"), "{name} is not the name of a test");
}

/// Returns a command that runs a single test of this executable.
pub(crate) fn this_test(name: &str) -> std::process::Command {
    // The file itself may have been replaced by a newer build.
    let mut command = std::process::Command::new("/proc/self/exe");
    command.args([name, "--exact", "--nocapture"]).stdin(Stdio::null());
    command
}

/// Finds the processes with `variable`, as `NAME=value`, in their environment.
pub(crate) fn processes_with(variable: &str) -> BTreeSet<u32> {
    let has = |id: &u32| {
        let variables = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|found| found == variable.as_bytes())
    };
    process_ids().filter(has).collect()
}

/// Lists all local processes.
pub(crate) fn process_ids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
}
