//! The binary, a folder, and a scripted server that it talks to.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) const KEY: &str = "sk-very-secret";

/// A `pintle` process that sees no key and no configuration of whoever runs the tests.
pub(crate) fn pintle(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pintle"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    for name in ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// What a process said and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub(crate) fn say(command: &mut Command) -> Said {
    command.output().expect("the binary runs").into()
}

/// Runs it with this on its standard input.
pub(crate) fn say_with_input(command: &mut Command, input: &str) -> Said {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // A process that refuses its arguments may be gone before it has read anything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap().into()
}

/// A server in this process, for a `pintle` in another.
pub(crate) struct Model {
    pub(crate) server: ScriptedServer,
    pub(crate) dialect: Dialect,
    pub(crate) folder: TempDir,
    // Last, so that the server's tasks end before their runtime does.
    _runtime: Runtime,
}

impl Model {
    pub(crate) fn new(dialect: Dialect, turns: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let script = Script::parse(&format!("name = \"command\"\n{turns}")).expect("the script parses");
        let options = ServerOptions::new().with_api_key(KEY);
        let server = runtime.block_on(ScriptedServer::start(script, options)).unwrap();
        Self { server, dialect, folder: tempfile::tempdir().unwrap(), _runtime: runtime }
    }

    /// `pintle SUBCOMMAND` with provider, base URL and key of this model, working in its folder, with the tools of the
    /// specification unless the arguments name a toolset.
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
        if subcommand == "run" {
            command.arg("--dir").arg(self.folder.path());
            // One script for all dialects needs the names that they share.
            if !arguments.contains(&"--toolset") {
                command.args(["--toolset", "spec"]);
            }
        }
        command.args(arguments);
        command
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}
