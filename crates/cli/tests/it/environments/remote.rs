//! Remote execution environment of a test: its own container, or a directory on an ssh server.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pintle_test_conditions::{CONTAINERS, Prerequisite, SSH_SERVERS};
use tempfile::TempDir;

use crate::harness::pintle;

/// Deadline for the start of a command, and for remote cleanup after it has exited: the supervisor notices at once, sends
/// SIGTERM, waits two seconds and sends SIGKILL. Generous, since other work may load the machine.
pub(super) const CLEANUP_TIMEOUT: Duration = Duration::from_secs(120);

/// Idles until SIGTERM.
const FIRST_PROCESS: &str = "trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done";

pub(super) struct Remote {
    /// Value of `--env`.
    pub(super) env: String,
    /// Absolute path of the remote working directory.
    pub(super) directory: String,
    /// Local current directory of the command, with its script.
    pub(super) local: TempDir,
    /// Environment variables of the command.
    pub(super) variables: Vec<(&'static str, OsString)>,
    kind: Kind,
}

enum Kind {
    /// Container id.
    Container(String),
    /// ssh configuration with the host `tester`, and the directory of the client wrapper that uses it.
    Host { config: PathBuf, client: TempDir },
}

impl Remote {
    /// Starts a container with only busybox and the working directory `/project`.
    pub(super) fn docker() -> Option<Self> {
        Self::docker_with(&[])
    }

    /// Starts a container with additional options.
    pub(super) fn docker_with(options: &[String]) -> Option<Self> {
        let image = service(&CONTAINERS, "PINTLE_TEST_IMAGE")?;
        let engine = service(&CONTAINERS, "DOCKER_HOST")?;
        let words = ["run", "--detach", "--rm", "--network=none", "--workdir=/project"];
        let container = stdout_of(Command::new("docker").args(words).args(options).arg(image).args([
            "sh",
            "-c",
            FIRST_PROCESS,
        ]));
        let container = container.trim().to_owned();
        Some(Self {
            env: format!("docker:{container}"),
            directory: "/project".to_owned(),
            local: tempfile::tempdir().unwrap(),
            variables: vec![("DOCKER_HOST", engine)],
            kind: Kind::Container(container),
        })
    }

    /// Creates a directory on the ssh server of the services, for the user `tester`.
    pub(super) fn ssh() -> Option<Self> {
        let config = PathBuf::from(service(&SSH_SERVERS, "PINTLE_TEST_SSH")?);
        Some(Self::ssh_with(&config, "ssh:tester"))
    }

    /// Creates a directory on `tester` of this ssh configuration, for a command that uses `env`.
    pub(super) fn ssh_with(config: &Path, env: &str) -> Self {
        let local = tempfile::tempdir().unwrap();
        let directory = over_ssh(config, "mktemp -d").trim().to_owned();
        let (client, path) = client_wrapper(config);
        let variables = vec![("PATH", path)];
        let kind = Kind::Host { config: config.to_path_buf(), client };
        Self { env: env.to_owned(), directory, local, variables, kind }
    }

    /// Runs a shell command in the remote directory without `pintle` and returns its output.
    pub(super) fn sh(&self, line: &str) -> String {
        let line = format!("cd {} && {line}", self.directory);
        match &self.kind {
            Kind::Container(id) => stdout_of(Command::new("docker").args(["exec", id, "sh", "-c", &line])),
            Kind::Host { config, .. } => over_ssh(config, &line),
        }
    }

    /// Returns the login directory.
    pub(super) fn login_directory(&self) -> String {
        match &self.kind {
            Kind::Container(_) => self.directory.clone(),
            Kind::Host { config, .. } => over_ssh(config, "pwd").trim().to_owned(),
        }
    }

    /// Returns a `pintle` command for this environment, with [`Self::local`] as the current directory.
    pub(super) fn pintle(&self, arguments: &[&str]) -> Command {
        let mut command = pintle(arguments);
        command.args(["--env", &self.env]).current_dir(&self.local);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Returns `pintle run` with a scripted model.
    pub(super) fn run(&self, turns: &str, arguments: &[&str]) -> Command {
        let script = self.local.path().join("script.toml");
        fs::write(script, format!("name = \"remote\"\n{turns}")).unwrap();
        let mut command =
            self.pintle(&["run", "--no-sandbox", "--provider", "scripted", "--script", "script.toml"]);
        command.args(arguments);
        command
    }

    /// Makes `pintle` use another ssh configuration.
    pub(super) fn use_configuration(&mut self, configuration: &Path) {
        let (directory, path) = client_wrapper(configuration);
        self.variables = vec![("PATH", path)];
        match &mut self.kind {
            Kind::Host { client, .. } => *client = directory,
            Kind::Container(_) => panic!("{} is not a host", self.env),
        }
    }

    /// Returns the names of the local files.
    pub(super) fn local_files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.local).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Asserts that no command, supervisor or client is running.
    pub(super) fn assert_clean(&self) {
        assert_eq!(self.leftovers(), [""; 0]);
    }

    /// Returns the processes of ours that are still running.
    pub(super) fn leftovers(&self) -> Vec<String> {
        match &self.kind {
            Kind::Container(id) => {
                let top = stdout_of(Command::new("docker").args(["top", id, "-o", "pid,args"]));
                let is_first =
                    |line: &&str| line.contains("trap 'exit 0' TERM") || line.contains("sleep 1000");
                let remote = top.lines().skip(1).filter(|line| !is_first(line)).map(str::to_owned);
                let clients = running(id).into_iter().filter(|line| line.contains("docker exec"));
                remote.chain(clients).collect()
            }
            Kind::Host { client, .. } => running(client.path().to_str().unwrap()),
        }
    }

    /// Returns the container id.
    pub(super) fn container(&self) -> &str {
        match &self.kind {
            Kind::Container(id) => id,
            Kind::Host { .. } => panic!("{} is not a container", self.env),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // The test may already have removed the container.
        let mut command = match &self.kind {
            Kind::Container(id) => {
                let mut command = Command::new("docker");
                command.args(["rm", "--force", id]);
                command
            }
            Kind::Host { config, .. } => client(config, &format!("rm -rf {}", self.directory)),
        };
        let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Returns the variable of a service, or `None` without the service.
pub(crate) fn service(prerequisite: &Prerequisite, variable: &str) -> Option<OsString> {
    prerequisite.is_present().then(|| std::env::var_os(variable).unwrap())
}

/// Returns a word that is unique among all command lines.
pub(super) fn mark() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("mark-{}-{}-end", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Returns the command lines that contain a word. Both services run on this machine, so all processes are visible.
pub(super) fn running(word: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(word)).collect()
}

/// Waits until a condition holds, for at most [`CLEANUP_TIMEOUT`].
pub(super) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + CLEANUP_TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out after {CLEANUP_TIMEOUT:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Runs a command that must succeed and returns its standard output.
pub(crate) fn stdout_of(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn client(config: &Path, line: &str) -> Command {
    let mut command = Command::new("ssh");
    command.arg("-F").arg(config).args(["tester", line]);
    command
}

fn over_ssh(config: &Path, line: &str) -> String {
    stdout_of(&mut client(config, line))
}

/// Creates a directory with an `ssh` wrapper that uses this configuration, and returns it with a `PATH` that starts with it.
/// A configuration given by `pintle` itself comes later on the command line and takes precedence.
fn client_wrapper(config: &Path) -> (TempDir, OsString) {
    let directory = tempfile::Builder::new().prefix("pintle-client-").tempdir().unwrap();
    let path_of = |name: &str| directory.path().join(name);
    fs::copy(config, path_of("config")).unwrap();
    let system = std::env::var_os("PATH").unwrap();
    let ssh = std::env::split_paths(&system).map(|path| path.join("ssh")).find(|ssh| ssh.is_file()).unwrap();
    let script = format!("#!/bin/sh\nexec {} -F {} \"$@\"\n", ssh.display(), path_of("config").display());
    fs::write(path_of("ssh"), script).unwrap();
    fs::set_permissions(path_of("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
    let wrapper = std::iter::once(directory.path().to_path_buf());
    let path = std::env::join_paths(wrapper.chain(std::env::split_paths(&system))).unwrap();
    (directory, path)
}
