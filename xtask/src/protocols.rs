//! `cargo xtask protocols`: suites, clients and servers of others, against ours.
//!
//! They are pinned in `tests/mcp`, `tests/acp`, `tests/compat` and `tests/swebench`, and installed below the target directory. Only the
//! installation uses the network.

pub(crate) mod install;

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use self::install::Installed;
use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
    process, test_homes,
};

/// A run of a suite.
struct Suite {
    /// The package that has it.
    package: &'static str,
    /// The version of the protocol; the suite's own choice for each scenario without one.
    version: Option<&'static str>,
    /// The list of scenarios that fail.
    expected: &'static str,
    /// Whether it repeats scenarios of another run.
    is_long: bool,
}

/// Runs of a suite of which one must pass.
const MAX_RUNS: usize = 3;

const NEWEST: &str = "conformance-next";
const SUITES: &[Suite] = &[
    Suite {
        package: "@modelcontextprotocol/conformance",
        version: None,
        expected: "expected-failures-0.1.yml",
        is_long: true,
    },
    Suite { package: NEWEST, version: None, expected: EXPECTED, is_long: false },
    Suite { package: NEWEST, version: Some("2025-06-18"), expected: EXPECTED, is_long: true },
    Suite { package: NEWEST, version: Some("2025-11-25"), expected: EXPECTED, is_long: true },
    Suite { package: NEWEST, version: Some("2026-07-28"), expected: EXPECTED, is_long: true },
];

const EXPECTED: &str = "expected-failures.yml";

/// Builds the examples alone, and runs everything.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    crate::require_no_arguments("protocols", arguments)?;
    let mut build = process::cargo(&metadata.workspace_root);
    build.args(["build", "--quiet", "--examples"]);
    build.args(["pintle-mcp", "pintle-acp", "pintle-compat"].map(|package| format!("--package={package}")));
    process::run(&mut build)?;
    let mut build = process::cargo(&metadata.workspace_root);
    process::run(build.args(["build", "--quiet", "--package", "pintle-cli", "--features", "full"]))?;
    run_with_built_programs(metadata, true)
}

/// Runs the suites with the built programs. Slow ones, and those that repeat scenarios of others, run only if `with_long`.
pub(crate) fn run_with_built_programs(metadata: &Metadata, with_long: bool) -> Result<(), Failure> {
    let installed = Installed::install(metadata)?;
    let suites: Vec<&Suite> = SUITES.iter().filter(|suite| with_long || !suite.is_long).collect();
    let example = |name: &str| metadata.target_directory.join("debug/examples").join(name);
    for suite in &suites {
        suite.run(&installed, "client", &["--command", &text(&example("conformance_client"))?])?;
    }
    let server = Server::start(&example("conformance_server"))?;
    for suite in &suites {
        suite.run(&installed, "server", &["--url", &server.url])?;
    }
    let mut real = Command::new(example("real_servers"));
    real.args([installed.node(), installed.modules().join("@modelcontextprotocol"), installed.python()]);
    process::run(real.arg(installed.sources.join("server.py")))?;
    play_clients(metadata, &installed, with_long)
}

/// Runs third-party clients against the command and, if `with_long`, against the examples.
fn play_clients(metadata: &Metadata, installed: &Installed, with_long: bool) -> Result<(), Failure> {
    let program = |name: &str| metadata.target_directory.join("debug").join(name);
    let command = program("pintle");
    let node = installed.node();
    let homes = test_homes::create(metadata)?;
    let sdks = Clients {
        is_passed: |line| line.starts_with("ok "),
        directory: install::clients(metadata, "compat")?,
        homes: homes.clone(),
    };
    // Runs the command with a scripted model.
    let scripted = sdks.directory.join("pintle.mjs");
    let examples = (program("examples/codex_exec"), program("examples/claude_stream"));
    let subjects = [("the command", &scripted, &scripted), ("the examples", &examples.0, &examples.1)];
    for (subject, codex, claude) in subjects.into_iter().take(if with_long { 2 } else { 1 }) {
        sdks.run(&node, &format!("the vendors' SDKs with {subject}"), |node| {
            node.args(["--test", "--test-reporter=tap"]).env("PINTLE_BINARY", &command);
            node.env("CODEX_BINARY", codex).env("CLAUDE_BINARY", claude);
        })?;
    }
    sdks.run(&node, "the vendors' SDKs with the command in its default settings", |node| {
        node.args(["--test", "--test-reporter=tap", "shipped.mjs"]).env("PINTLE_BINARY", &command);
        node.env("CODEX_BINARY", &scripted).env("CLAUDE_BINARY", &scripted);
    })?;
    let requirements = metadata.workspace_root.join("tests/compat/requirements.txt");
    let python = install::python(&requirements, &sdks.directory)?.join("python");
    // A warning of the command may separate the result from the name of the case.
    let is_passed = |line: &str| line == "ok" || line.ends_with("... ok");
    let of_python = Clients { is_passed, directory: sdks.directory.clone(), homes: homes.clone() };
    of_python.run(&python, "the vendors' SDKs for Python with the command", |python| {
        python.args(["-B", "-m", "unittest", "--verbose", "test_claude", "test_codex", "test_shipped"]);
        python.env("PINTLE_BINARY", &command).env("CODEX_BINARY", &scripted).env("CLAUDE_BINARY", &scripted);
    })?;
    if with_long {
        read_predictions(metadata, &command, &of_python)?;
    }
    let editors = Clients {
        is_passed: |line| line.starts_with("ok   "),
        directory: install::clients(metadata, "acp")?,
        homes,
    };
    if with_long {
        editors.run(&node, "the clients of ACP with the example", |node| {
            node.arg("suite.mjs").arg(program("examples/acp_agent"));
        })?;
    }
    editors.run(&node, "the clients of ACP with the command", |node| {
        node.arg("suite.mjs").arg(&scripted).arg("--pintle").env("PINTLE_BINARY", &command);
    })
}

/// Runs the published harness of SWE-bench on predictions that the command exports.
fn read_predictions(metadata: &Metadata, command: &Path, clients: &Clients) -> Result<(), Failure> {
    let directory = metadata.workspace_root.join("tests/swebench");
    let installed = metadata.target_directory.join("protocols/swebench");
    let python = install::python(&directory.join("requirements.txt"), &installed)?.join("python");
    let harness = Clients { directory, homes: clients.homes.clone(), ..*clients };
    harness.run(&python, "the harness of SWE-bench with predictions of the command", |python| {
        python.args(["-B", "-m", "unittest", "--verbose", "test_predictions"]);
        python.env("PINTLE_BINARY", command);
    })
}

/// Clients of others that drive programs of ours.
struct Clients {
    /// Where they are installed.
    directory: PathBuf,
    /// Directory for the homes of users that they create.
    homes: PathBuf,
    /// Returns whether a line reports a case that has passed.
    is_passed: fn(&str) -> bool,
}

impl Clients {
    /// Runs the cases, and prints their output only if one fails.
    fn run(
        &self,
        interpreter: &Path,
        name: &str,
        arguments: impl FnOnce(&mut Command),
    ) -> Result<(), Failure> {
        let mut command = Command::new(interpreter);
        command.current_dir(&self.directory).stdin(Stdio::null()).env(test_homes::VARIABLE, &self.homes);
        arguments(&mut command);
        let output = command.output().with_context(|| format!("{name} could not be started"))?;
        // Test runners of Python write to standard error.
        let printed = [&output.stderr, &output.stdout]
            .map(|output| String::from_utf8_lossy(output).into_owned())
            .concat();
        let count = printed.lines().filter(|line| (self.is_passed)(line)).count();
        if !output.status.success() || count == 0 {
            print!("{printed}");
            return Err(Failure::new(format!("{name} ended with {}", output.status)));
        }
        println!("{name}: {count} cases passed");
        Ok(())
    }
}

impl Suite {
    /// Runs the suite, and prints its output only if it fails.
    fn run(&self, installed: &Installed, side: &str, arguments: &[&str]) -> Result<(), Failure> {
        let name = format!("{side} of {} {}", self.package, self.version.unwrap_or("(all versions)"));
        let mut output = self.output(installed, side, arguments)?;
        for _again in 1..MAX_RUNS {
            if output.status.success() {
                break;
            }
            println!("{name}: run once more, since some scenarios count milliseconds");
            output = self.output(installed, side, arguments)?;
        }
        let printed = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            print!("{}{printed}", String::from_utf8_lossy(&output.stderr));
            return Err(Failure::new(format!("{name} ended with {}", output.status)));
        }
        let total = printed.lines().rfind(|line| line.starts_with("Total: "));
        let total = total.ok_or_else(|| Failure::new(format!("{name} has no total: did it run?")))?;
        println!("{name}: {}", total.trim_start_matches("Total: "));
        Ok(())
    }

    fn output(&self, installed: &Installed, side: &str, arguments: &[&str]) -> Result<Output, Failure> {
        let mut command = Command::new(installed.node());
        command.arg("--require").arg(installed.sources.join("loopback.cjs"));
        command.arg(installed.modules().join(self.package).join("dist/index.js"));
        command.args([side, "--suite", "all"]).args(arguments);
        command.arg("--expected-failures").arg(installed.sources.join(self.expected));
        if let Some(version) = self.version {
            command.args(["--spec-version", version]);
        }
        // Some versions write their results into the current directory.
        command.current_dir(&installed.directory).stdin(Stdio::null());
        command.output().with_context(|| format!("the suite of {} could not be started", self.package))
    }
}

/// The server under test. It ends with its standard input.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(program: &Path) -> Result<Self, Failure> {
        let mut command = Command::new(program);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the server under test could not be started")?;
        let mut url = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut url).context("the server under test has no URL")?;
        }
        Ok(Self { child, url: url.trim().to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It ends now, or has ended before.
        let _ = self.child.wait();
    }
}

fn text(path: &Path) -> Result<String, Failure> {
    let path: Result<String, _> = PathBuf::from(path).into_os_string().into_string();
    path.map_err(|path| Failure::new(format!("{} is not UTF-8", path.display())))
}
