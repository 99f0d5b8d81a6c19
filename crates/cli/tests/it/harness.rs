//! Harness for the binary: a working directory and a scripted model server.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use pintle_test_conditions::{BUBBLEWRAP, LANDLOCK};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) const KEY: &str = "sk-very-secret";

/// Returns a `pintle` command with a clean environment: no keys and no configuration of the user who runs the tests.
pub(crate) fn pintle(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pintle"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    for name in ["PATH", "HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    // Sessions of tests are not those of the user.
    command.env("PINTLE_CONFIG_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/no-configuration"));
    command.env("PINTLE_STATE_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    // Each project has separate caches. With network, a copy of cargo's index has tens of megabytes for each test, and one of
    // npm's cache has thousands of links and directories.
    command.env("CARGO_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/no-crates"));
    command.env("npm_config_cache", concat!(env!("CARGO_TARGET_TMPDIR"), "/no-packages"));
    command
}

/// Exit code and output of a process.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub(crate) fn run(command: &mut Command) -> CommandOutput {
    command.output().expect("the binary runs").into()
}

/// Runs the command with `input` on its standard input.
pub(crate) fn run_with_input(command: &mut Command, input: &str) -> CommandOutput {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // A process that rejects its arguments may exit before it reads its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap().into()
}

/// Returns the levels of the sandbox that this machine has, the strictest one first.
pub(crate) fn sandbox_levels() -> Vec<&'static str> {
    let levels = [("full", BUBBLEWRAP), ("writes", LANDLOCK)];
    levels.into_iter().filter(|(_, needed)| needed.is_present()).map(|(level, _)| level).collect()
}

/// Removes the notice of the level writes, which a run prints if the machine does not have the level full.
pub(crate) fn without_level_notice(text: &str) -> String {
    let is_notice = |line: &&str| line.trim_start().starts_with("pintle: the sandbox limits writes only: ");
    text.split_inclusive('\n').filter(|line| !is_notice(line)).collect()
}

/// Scripted server in this process and a working directory, for a `pintle` in another process.
pub(crate) struct Harness {
    pub(crate) server: ScriptedServer,
    pub(crate) dialect: Dialect,
    pub(crate) directory: TempDir,
    // Dropped last: the server's tasks must end before their runtime.
    _runtime: Runtime,
}

impl Harness {
    pub(crate) fn new(dialect: Dialect, turns: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let script = Script::parse(&format!("name = \"command\"\n{turns}")).expect("the script parses");
        let options = ServerOptions::new().with_api_key(KEY);
        let server = runtime.block_on(ScriptedServer::start(script, options)).unwrap();
        Self { server, dialect, directory: tempfile::tempdir().unwrap(), _runtime: runtime }
    }

    /// Returns `pintle SUBCOMMAND` with the provider, base URL and key of the server and its working directory. Uses the
    /// toolset of the specification unless the arguments name one.
    pub(crate) fn command(&self, subcommand: &str, arguments: &[&str]) -> Command {
        let mut command = pintle(&[subcommand, "--provider", self.dialect.name()]);
        command.args(["--base-url", &self.server.base_url(self.dialect)]);
        let key = match self.dialect {
            Dialect::OpenAiResponses | Dialect::ChatCompletions => "OPENAI_API_KEY",
            Dialect::AnthropicMessages => "ANTHROPIC_API_KEY",
            Dialect::Gemini => "GEMINI_API_KEY",
        };
        command.env(key, KEY);
        if self.dialect == Dialect::ChatCompletions {
            command.args(["--model", "local-model"]);
        }
        if matches!(subcommand, "chat" | "run") {
            command.arg("--dir").arg(self.directory.path());
            // The specification's tools have the same names in every dialect.
            if !arguments.contains(&"--toolset") {
                command.args(["--toolset", "spec"]);
            }
        }
        command.args(arguments);
        command
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Waits until a command has made this file.
    pub(crate) fn wait_for_file(&self, name: &str) {
        let end = Instant::now() + Duration::from_secs(60);
        while !self.path(name).exists() {
            assert!(Instant::now() < end, "{name} was not made");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

/// Runs git as somebody who can commit, and returns its output.
pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgSign=false"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
