//! A place that is not here: a container of the test's own, or the other side of an ssh server.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::lab::pintle;

/// Within what time nothing runs there any more once the command is gone: its supervisor sees that at once, and then
/// come terminate, two seconds, and kill.
pub(super) const GONE: Duration = Duration::from_secs(10);

/// Does nothing, and goes when it is told to.
const FIRST_PROCESS: &str = "trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done";

pub(super) struct Far {
    /// The value of `--env`.
    pub(super) place: String,
    /// Where a test works there: absolute.
    pub(super) directory: String,
    /// Where the command runs here, with its script.
    pub(super) here: TempDir,
    /// Variables of the command.
    pub(super) variables: Vec<(&'static str, OsString)>,
    side: Side,
}

enum Side {
    /// With its id.
    Container(String),
    /// Whoever is `tester` in this configuration, and the directory of the client that reads it.
    Host { config: PathBuf, client: TempDir },
}

impl Far {
    /// A container that works in `/project` and has nothing but busybox.
    pub(super) fn docker() -> Option<Self> {
        Self::docker_with(&[])
    }

    /// The same with more options.
    pub(super) fn docker_with(options: &[String]) -> Option<Self> {
        let image = service("PINTLE_TEST_IMAGE")?;
        let engine = service("DOCKER_HOST")?;
        let words = ["run", "--detach", "--rm", "--network=none", "--workdir=/project"];
        let container = output(Command::new("docker").args(words).args(options).arg(image).args([
            "sh",
            "-c",
            FIRST_PROCESS,
        ]));
        let container = container.trim().to_owned();
        Some(Self {
            place: format!("docker:{container}"),
            directory: "/project".to_owned(),
            here: tempfile::tempdir().unwrap(),
            variables: vec![("DOCKER_HOST", engine)],
            side: Side::Container(container),
        })
    }

    /// The user `tester` of the services' server, with a directory of its own.
    pub(super) fn ssh() -> Option<Self> {
        let config = PathBuf::from(service("PINTLE_TEST_SSH")?);
        Some(Self::ssh_with(&config, "ssh:tester"))
    }

    /// The same with another name for it, and another configuration where it is called `tester`.
    pub(super) fn ssh_with(config: &Path, place: &str) -> Self {
        let here = tempfile::tempdir().unwrap();
        let directory = over_ssh(config, "mktemp -d").trim().to_owned();
        let (client, path) = client_that_reads(config);
        let variables = vec![("PATH", path)];
        let side = Side::Host { config: config.to_path_buf(), client };
        Self { place: place.to_owned(), directory, here, variables, side }
    }

    /// What a shell says in the directory there, past `pintle`.
    pub(super) fn sh(&self, line: &str) -> String {
        let line = format!("cd {} && {line}", self.directory);
        match &self.side {
            Side::Container(id) => output(Command::new("docker").args(["exec", id, "sh", "-c", &line])),
            Side::Host { config, .. } => over_ssh(config, &line),
        }
    }

    /// Where a login begins.
    pub(super) fn login(&self) -> String {
        match &self.side {
            Side::Container(_) => self.directory.clone(),
            Side::Host { config, .. } => over_ssh(config, "pwd").trim().to_owned(),
        }
    }

    /// `pintle` with these words, at this place, with its current directory [here](Self::here).
    pub(super) fn pintle(&self, words: &[&str]) -> Command {
        let mut command = pintle(words);
        command.args(["--env", &self.place]).current_dir(&self.here);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// `pintle run` with a model that follows these turns.
    pub(super) fn run(&self, turns: &str, words: &[&str]) -> Command {
        let script = self.here.path().join("script.toml");
        fs::write(script, format!("name = \"far\"\n{turns}")).unwrap();
        let mut command = self.pintle(&["run", "--provider", "scripted", "--script", "script.toml"]);
        command.args(words);
        command
    }

    /// Has the client of `pintle` read another configuration from now on.
    pub(super) fn client_reads(&mut self, configuration: &Path) {
        let (directory, path) = client_that_reads(configuration);
        self.variables = vec![("PATH", path)];
        match &mut self.side {
            Side::Host { client, .. } => *client = directory,
            Side::Container(_) => panic!("{} is no host", self.place),
        }
    }

    /// The names of the files on this side.
    pub(super) fn files_here(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.here).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Nothing of ours is there: no command, no supervisor, and no client on this side.
    pub(super) fn is_left_in_order(&self) {
        assert_eq!(self.left(), [""; 0]);
    }

    /// What runs that should not.
    pub(super) fn left(&self) -> Vec<String> {
        match &self.side {
            Side::Container(id) => {
                let top = output(Command::new("docker").args(["top", id, "-o", "pid,args"]));
                let is_first =
                    |line: &&str| line.contains("trap 'exit 0' TERM") || line.contains("sleep 1000");
                let there = top.lines().skip(1).filter(|line| !is_first(line)).map(str::to_owned);
                let clients = running(id).into_iter().filter(|line| line.contains("docker exec"));
                there.chain(clients).collect()
            }
            Side::Host { client, .. } => running(client.path().to_str().unwrap()),
        }
    }

    /// The id of the container.
    pub(super) fn container(&self) -> &str {
        match &self.side {
            Side::Container(id) => id,
            Side::Host { .. } => panic!("{} is no container", self.place),
        }
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        // A container may be gone already, as a test wanted it.
        let mut command = match &self.side {
            Side::Container(id) => {
                let mut command = Command::new("docker");
                command.args(["rm", "--force", id]);
                command
            }
            Side::Host { config, .. } => client(config, &format!("rm -rf {}", self.directory)),
        };
        let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// What a service is reached by, or `None` with the reason on standard error. In continuous integration it must be there.
#[expect(clippy::print_stderr, reason = "whoever reads the tests' output learns why nothing was tested")]
pub(super) fn service(variable: &str) -> Option<OsString> {
    let value = std::env::var_os(variable);
    if value.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{variable} is not set: `cargo xtask services up` says it");
        eprintln!("SKIPPED: {variable} is not set, see `cargo xtask services up`");
    }
    value
}

/// A word that stands in no other command line.
pub(super) fn mark() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("mark-{}-{}-end", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// The command lines that hold a word: of all processes, since both far sides run below this machine's first one.
pub(super) fn running(word: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(word)).collect()
}

/// Waits for it, for [`GONE`] at most.
pub(super) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let give_up = Instant::now() + GONE;
    while !is_so() {
        assert!(Instant::now() < give_up, "{what}: not within {GONE:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The words that a command says when it does well.
pub(super) fn output(command: &mut Command) -> String {
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
    output(&mut client(config, line))
}

/// A directory with an `ssh` that reads this configuration instead of the user's, and a search path that begins with it.
/// Where `pintle` names a configuration itself that one counts, since it comes later.
fn client_that_reads(config: &Path) -> (TempDir, OsString) {
    let directory = tempfile::Builder::new().prefix("pintle-client-").tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    fs::copy(config, place("config")).unwrap();
    let system = std::env::var_os("PATH").unwrap();
    let ssh = std::env::split_paths(&system).map(|path| path.join("ssh")).find(|ssh| ssh.is_file()).unwrap();
    let script = format!("#!/bin/sh\nexec {} -F {} \"$@\"\n", ssh.display(), place("config").display());
    fs::write(place("ssh"), script).unwrap();
    fs::set_permissions(place("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
    let own = std::iter::once(directory.path().to_path_buf());
    let path = std::env::join_paths(own.chain(std::env::split_paths(&system))).unwrap();
    (directory, path)
}
