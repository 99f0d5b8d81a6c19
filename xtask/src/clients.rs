//! `cargo xtask clients`: the console in Chromium, the TypeScript client, and requests that schemathesis generates from the
//! OpenAPI file, against the command.
//!
//! Packages of npm are pinned by lock files beside them, and installed there; schemathesis is installed below the target
//! directory. Only the installation uses the network.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
    process,
    protocols::install,
    test_homes,
};

/// A package with the scripts that have to pass.
struct Package {
    directory: &'static str,
    scripts: &'static [&'static str],
    /// Scripts that repeat with a double of the server what the others do with the real one, and take minutes.
    long: &'static [&'static str],
}

const PACKAGES: &[Package] = &[
    Package { directory: "clients/typescript", scripts: &["check", "test"], long: &[] },
    Package { directory: "tests/console", scripts: &["check", "test", "real"], long: &["browser"] },
];

/// Builds the command, and runs everything.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    crate::require_no_arguments("clients", arguments)?;
    let mut build = process::cargo(&metadata.workspace_root);
    process::run(build.args(["build", "--quiet", "--package", "pintle-cli", "--features", "full"]))?;
    run_with_built_programs(metadata, true)
}

/// Runs the suites with the built programs. Slow ones, and those that repeat scenarios of others, run only if `with_long`.
pub(crate) fn run_with_built_programs(metadata: &Metadata, with_long: bool) -> Result<(), Failure> {
    let program = metadata.target_directory.join("debug/pintle");
    let homes = test_homes::create(metadata)?;
    for package in PACKAGES {
        let directory = metadata.workspace_root.join(package.directory);
        let mut install = npm(&directory);
        process::run(install.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]))?;
        let long = if with_long { package.long } else { &[] };
        for script in package.scripts.iter().chain(long) {
            let name = format!("{} of {}", script, package.directory);
            let mut command = npm(&directory);
            command.args(["run", "--silent", script]).env("PINTLE_BIN", &program);
            command.env(test_homes::VARIABLE, &homes);
            let output = command.output().with_context(|| format!("{name} could not be started"))?;
            if !output.status.success() {
                print!("{}", String::from_utf8_lossy(&output.stderr));
                print!("{}", String::from_utf8_lossy(&output.stdout));
                return Err(Failure::new(format!("{name} ended with {}", output.status)));
            }
            let printed = String::from_utf8_lossy(&output.stdout);
            // The summary of Node's test runner, whose sign depends on its version.
            let passed = printed.lines().find_map(|line| line.split_once("pass ").map(|(_, count)| count));
            println!("{name}: {} passed", passed.unwrap_or("checks"));
        }
    }
    generate_requests(metadata, &program, if with_long { GENERATE_LONG } else { GENERATE })
}

/// Seconds for requests that are generated.
const GENERATE: &str = "10";
/// Seconds for generated requests with `--full`.
const GENERATE_LONG: &str = "40";

/// Has schemathesis send what the OpenAPI file allows, and what it does not.
fn generate_requests(metadata: &Metadata, program: &Path, seconds: &str) -> Result<(), Failure> {
    let sources = metadata.workspace_root.join("tests/schemathesis");
    let directory = metadata.target_directory.join("clients");
    fs::create_dir_all(&directory).with_context(|| format!("cannot create `{}`", directory.display()))?;
    let programs = install::python(&sources.join("requirements.txt"), &directory)?;
    let served = Served::start(program, &sources.join("script.toml"), &directory.join("served"))?;
    let mut command = Command::new(programs.join("schemathesis"));
    command.arg("--config-file").arg(sources.join("schemathesis.toml")).args(["run", "--url", &served.url]);
    command.args(["--header", &format!("Authorization: Bearer {}", served.token), "--max-time", seconds]);
    command.args(["--generation-deterministic", "--no-color"]);
    command.arg(metadata.workspace_root.join("crates/server/openapi.json")).current_dir(&directory);
    let output = command.output().context("schemathesis could not be started")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        print!("{}{printed}", String::from_utf8_lossy(&output.stderr));
        return Err(Failure::new(format!("schemathesis ended with {}", output.status)));
    }
    let cases = printed.lines().find(|line| line.contains(" generated, ")).unwrap_or_default();
    println!("schemathesis: {}", cases.trim());
    Ok(())
}

/// The command as a server with a scripted model. It is ended when this is dropped.
struct Served {
    child: Child,
    url: String,
    token: String,
}

impl Served {
    fn start(program: &Path, script: &Path, directory: &Path) -> Result<Self, Failure> {
        // Sessions of an earlier run would be in the lists.
        let _ = fs::remove_dir_all(directory);
        let project = directory.join("project");
        fs::create_dir_all(&project).with_context(|| format!("cannot create `{}`", project.display()))?;
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--max-rate", "1000000"]);
        command.args(["--provider", "scripted", "--script"]).arg(script).current_dir(project);
        command.env("PINTLE_STATE_DIR", directory.join("state"));
        command.env("PINTLE_CONFIG_DIR", directory.join("config"));
        let mut child = command.stdout(Stdio::piped()).spawn().context("the server could not be started")?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line).context("the server says nothing")?;
        }
        let address = line.trim().split_once("/#token=");
        let (url, token) = address.ok_or_else(|| Failure::new(format!("the server says `{line}`")))?;
        Ok(Self { url: url.to_owned(), token: token.to_owned(), child })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn npm(directory: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(directory);
    npm
}
