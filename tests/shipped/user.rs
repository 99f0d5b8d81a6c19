//! A user of the command, with a home and a project, and a scripted model.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(super) const KEY: &str = "sk-of-a-user";

pub(super) struct User {
    pub(super) model: ScriptedServer,
    home: TempDir,
    // Dropped last: the server's tasks must end before their runtime.
    _runtime: Runtime,
}

impl User {
    /// Creates a user whose model answers with `turns`.
    pub(super) fn new(turns: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let script = Script::parse(&format!("name = \"shipped\"\n{turns}")).unwrap();
        let options = ServerOptions::new().with_api_key(KEY);
        let model = runtime.block_on(ScriptedServer::start(script, options)).unwrap();
        let user = Self {
            model,
            home: tempfile::tempdir_in(outside_temporary_directories()).unwrap(),
            _runtime: runtime,
        };
        std::fs::create_dir(user.project()).unwrap();
        let mut init = Command::new("git");
        // Otherwise the project would be a directory of the repository around it.
        assert!(init.args(["init", "--quiet"]).current_dir(user.project()).status().unwrap().success());
        std::fs::write(user.at(".gitconfig"), "[user]\n\tname = A User\n\temail = user@example.org\n")
            .unwrap();
        user
    }

    /// Gives the user another model.
    pub(super) fn with_turns(self, turns: &str) -> Self {
        let Self { model, home, _runtime } = Self::new(turns);
        drop(home);
        Self { model, _runtime, ..self }
    }

    /// Returns a path in the home.
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(super) fn project(&self) -> PathBuf {
        self.at("project")
    }

    /// Waits for a file in the project that a command creates.
    #[track_caller]
    pub(super) fn wait_for_file(&self, name: &str) {
        let started = Instant::now();
        while !self.project().join(name).exists() {
            assert!(started.elapsed() < Duration::from_secs(120), "{name} is missing");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs `pintle` in the project and returns its standard output. Panics if it fails.
    pub(super) fn pintle(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap_or_else(|cause| panic!("{}: {cause}", program().display()))
    }

    /// Returns `pintle` in the project, with the variables of the user.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.project()).env_clear().stdin(Stdio::null());
        command.env("HOME", self.home.path()).env("ANTHROPIC_API_KEY", KEY);
        for name in ["PATH", "TMPDIR"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command
    }

    /// Returns `pintle run` with the scripted model and otherwise with defaults.
    pub(super) fn run_command(&self, task: &str) -> Command {
        let url = self.model.base_url(Dialect::AnthropicMessages);
        self.command(&["run", "--provider", "anthropic", "--base-url", &url, task])
    }

    /// Runs `pintle run` and returns its standard output. Panics if it fails.
    pub(super) fn run(&self, task: &str) -> String {
        let url = self.model.base_url(Dialect::AnthropicMessages);
        self.pintle(&["run", "--provider", "anthropic", "--base-url", &url, task])
    }

    /// As [`run`](Self::run), but denied calls (exit code 5) are no failure.
    pub(super) fn run_with_denials(&self, task: &str) -> String {
        let output = self.run_command(task).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 5)), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the body of the request with this index, as JSON.
    pub(super) fn request(&self, number: usize) -> String {
        self.model.requests()[number].body.to_string()
    }
}

/// Checks that the text contains each of these parts once.
#[track_caller]
pub(super) fn assert_once(text: &str, parts: &[&str]) {
    for part in parts {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
}

/// Returns the command lines that contain this text, of all processes. Arguments are separated by NUL.
fn command_lines_with(text: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    // A process may end meanwhile.
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    lines.filter(|line| line.contains(text)).collect()
}

/// Waits until a process has this text in its command line, which is empty while a process replaces its program.
#[track_caller]
pub(super) fn wait_until_running(text: &str) {
    let started = Instant::now();
    while command_lines_with(text).is_empty() {
        assert!(started.elapsed() < Duration::from_secs(10), "no process has `{text}`");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until no process has this text in its command line.
#[track_caller]
pub(super) fn wait_until_ended(text: &str) {
    let started = Instant::now();
    loop {
        let running = command_lines_with(text);
        if running.is_empty() {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "still running: {running:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the built command, which is beside the directory of this program.
///
/// `cargo test --workspace --features pintle-cli/full` builds it, for the command's own tests; `cargo test -p pintle-tests` does
/// not.
pub(super) fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let built = own.ancestors().nth(2).unwrap().join("pintle");
    assert!(
        built.is_file(),
        "{} is missing; build it with `cargo build -p pintle-cli --features full`",
        built.display()
    );
    built
}

/// Returns a directory that is not below `/tmp` or `/var/tmp`, which the sandbox replaces.
pub(super) fn outside_temporary_directories() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let mut bases = [PathBuf::from(env!("CARGO_TARGET_TMPDIR"))].into_iter().chain(home);
    let is_outside = |base: &PathBuf| {
        ![Path::new("/tmp"), Path::new("/var/tmp")].iter().any(|temporary| base.starts_with(temporary))
    };
    bases.find(is_outside).expect("a directory that is not temporary")
}
