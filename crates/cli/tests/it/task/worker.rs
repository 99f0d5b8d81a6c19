//! `pintle worker`: tasks that go on without the command that began them.

use std::io::{BufRead as _, BufReader};
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// Time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(120);

/// A contract that waits for a person once there is an anchor.
const GATED: &str =
    "goal = \"Sums are right.\"\ngates = [\"anchor\"]\n[budget]\nusd = 5.0\ntokens = 900_000\nminutes = 30\n";

/// A process that is ended with its test.
struct Ended(Child);

impl Ended {
    fn first_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line
    }

    fn terminate(&mut self) -> Option<i32> {
        kill_process(Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap(), Signal::TERM).unwrap();
        self.0.wait().unwrap().code()
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Project {
    fn gated() -> Self {
        let project = Self::new(&TURNS.replace("WAIT", "true"));
        std::fs::write(project.root().join("contract.toml"), GATED).unwrap();
        project
    }

    fn worker(&self, flags: &[&str]) -> Ended {
        let mut command = pintle(&["worker", "--provider", "anthropic", "--toolset", "spec"]);
        command.args(["--base-url", &self.harness.server.base_url(Dialect::AnthropicMessages)]).args(flags);
        command.env("ANTHROPIC_API_KEY", KEY).env("PINTLE_STATE_DIR", self.state.path());
        Ended(command.current_dir(self.root()).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Waits until there is a task.
    fn begun(&self) {
        let end = Instant::now() + PATIENCE;
        while self.task(&["list"]).stdout == "no tasks\n" {
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the only task is in this state, and runs or not.
    fn wait(&self, state: &str, running: bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let task = self.only();
            if task.get("state") == Some(&state.into()) && task.get("running") == Some(&running.into()) {
                return task.get("id").and_then(Value::as_str).unwrap().to_owned();
            }
            assert!(Instant::now() < end, "{task}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_worker_keeps_tasks_going_that_no_process_has() {
    let project = Project::gated();
    let begun = project.run_command(&["--contract", "contract.toml"]).stdout(Stdio::null()).spawn().unwrap();
    let mut begun = Ended(begun);
    project.begun();
    let id = project.wait("waits for a person", true);
    assert_eq!(begun.terminate(), Some(130));
    let mut worker = project.worker(&[]);
    assert_eq!(worker.first_line(), "keeping the tasks of the store going\n");
    project.wait("waits for a person", false);
    assert_eq!(project.task(&["decide", &id, "approve"]).code, Some(0));
    project.wait("done", false);
    let worktree = project.state.path().join("worktrees").join(format!("task-{id}"));
    // The worker removes the files once the end is on record.
    let end = Instant::now() + PATIENCE;
    while worktree.exists() {
        assert!(Instant::now() < end, "nothing is left");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(worker.terminate(), Some(0));
    for (flags, expected) in [
        (&["x"][..], "takes no prompt"),
        (&["--continue"], "takes no --continue"),
        (&["--env", "ssh:y"], "works only with --env local or --env docker:IMAGE"),
        (&["--max-tasks", "0"], "0"),
        #[cfg(feature = "restate")]
        (&["--listen", "127.0.0.1:0", "--identity-key", "x"], "`x` is no identity key of an engine"),
        #[cfg(feature = "restate")]
        (&["--listen", "0.0.0.0:0", "--no-sandbox"], "--allow-unsandboxed-network"),
    ] {
        let mut command = pintle(&["worker", "--provider", "anthropic"]);
        command.args(flags).env("ANTHROPIC_API_KEY", KEY).env("PINTLE_STATE_DIR", project.state.path());
        let refused = run(command.current_dir(project.root()));
        assert_eq!(refused.code, Some(2), "{flags:?}: {refused:?}");
        assert!(refused.stderr.contains(expected), "{flags:?}: {refused:?}");
    }
}

#[cfg(feature = "restate")]
mod engine {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use pintle_test_conditions::RESTATE;

    use super::*;
    use crate::environments::remote::service;

    /// An engine with a directory and ports of its own.
    struct Engine {
        _process: Ended,
        _directory: tempfile::TempDir,
        ingress: u16,
        admin: u16,
    }

    impl Engine {
        /// Starts an engine. Returns `None` if Restate is missing.
        fn start() -> Option<Self> {
            let program = service(&RESTATE, "PINTLE_TEST_RESTATE")?;
            let port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let (ingress, admin, node) = (port(), port(), port());
            let directory = tempfile::tempdir().unwrap();
            let mut command = Command::new(program);
            command.args(["--no-logo", "--listen-mode", "tcp", "--bind-ip", "127.0.0.1"]);
            command.args(["--advertised-host", "127.0.0.1", "--bind-port", &node.to_string()]);
            command.arg("--base-dir").arg(directory.path()).env("RESTATE_DISABLE_TELEMETRY", "true");
            command.env("RESTATE_INGRESS__BIND_PORT", ingress.to_string());
            command.env("RESTATE_ADMIN__BIND_PORT", admin.to_string());
            command.env("RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE", "256.0 MiB");
            let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            let engine = Self { _process: Ended(process.unwrap()), _directory: directory, ingress, admin };
            let end = Instant::now() + PATIENCE;
            while !(is_healthy(admin, "/health") && is_healthy(ingress, "/restate/health")) {
                assert!(Instant::now() < end);
                std::thread::sleep(Duration::from_millis(50));
            }
            Some(engine)
        }
    }

    fn is_healthy(port: u16, path: &str) -> bool {
        let ask = || {
            let mut stream = TcpStream::connect(("127.0.0.1", port))?;
            write!(stream, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok::<_, std::io::Error>(answer.starts_with("HTTP/1.1 200"))
        };
        ask().unwrap_or(false)
    }

    /// Answers that it takes invocations, and refuses each one.
    fn refusing_engine() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (mut request, mut buffer) = (String::new(), [0; 4096]);
                while !(request.contains("\r\n\r\n")
                    && (request.starts_with("GET") || request.ends_with('}')))
                {
                    let count = stream.read(&mut buffer).unwrap();
                    assert_ne!(count, 0, "{request}");
                    request.push_str(&String::from_utf8_lossy(buffer.get(..count).unwrap()));
                }
                let status =
                    if request.starts_with("GET /restate/health ") { "200 OK" } else { "404 Not Found" };
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                stream.write_all(head.as_bytes()).unwrap();
            }
        });
        address
    }

    #[test]
    fn a_task_without_an_engine_is_not_left_open() {
        let project = Project::gated();
        let begin = |url: &str| project.run(&["x", "--check", "true", "--changes", "--restate", url]);
        let references = || git(project.root(), &["for-each-ref", "refs/pintle"]);
        for (url, code, expected) in [
            ("http://127.0.0.1:9", 1, "cannot reach Restate: the engine at 127.0.0.1:9 cannot be reached"),
            ("engine.example", 2, "`engine.example` is not an address of an engine"),
        ] {
            let refused = begin(url);
            assert_eq!(refused.code, Some(code), "{refused:?}");
            assert!(refused.stderr.contains(expected), "{refused:?}");
            assert_eq!(project.task(&["list"]).stdout, "no tasks\n");
            assert_eq!(references(), "");
        }
        let refused = begin(&refusing_engine());
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(
            refused.stderr.contains("Restate does not take the task: the engine refused with 404"),
            "{refused:?}"
        );
        assert_eq!(project.only()["state"], "cancelled");
        assert_eq!(references(), "");
    }

    /// The command that begins the task ends at once, the engine keeps it going, and no process has it while it waits.
    #[test]
    fn an_engine_keeps_a_task_going() {
        let Some(engine) = Engine::start() else { return };
        let project = Project::gated();
        let admin = format!("http://127.0.0.1:{}", engine.admin);
        let mut worker = project.worker(&["--listen", "127.0.0.1:0", "--admin", &admin]);
        assert!(worker.first_line().starts_with("serving tasks to Restate on http://127.0.0.1:"));
        let ingress = format!("http://127.0.0.1:{}", engine.ingress);
        let begun = project.run(&["--contract", "contract.toml", "--restate", &ingress]);
        assert_eq!(begun.code, Some(0), "{begun:?}");
        assert!(begun.stderr.contains("Restate runs the task"), "{begun:?}");
        let id = project.wait("waits for a person", false);
        let decided = run(project.command(&["decide", &id, "approve"]).env("PINTLE_RESTATE", &ingress));
        assert_eq!(decided.code, Some(0), "{decided:?}");
        project.wait("done", false);
        let report = project.task(&["report", &id]);
        assert!(report.stdout.contains("failed three times before, and passes now"), "{report:?}");
        assert_eq!(worker.terminate(), Some(0));
        let nowhere = project.run(&["x", "--check", "true", "--restate", "http://127.0.0.1:9"]);
        assert_eq!(nowhere.code, Some(1), "{nowhere:?}");
        assert!(nowhere.stderr.contains("cannot reach Restate"), "{nowhere:?}");
        let wrong = project.run(&["x", "--check", "true", "--restate", "engine.example"]);
        assert_eq!(wrong.code, Some(2), "{wrong:?}");
    }
}
