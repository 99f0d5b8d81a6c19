//! Two hosts that share sessions on PostgreSQL: containers without a network, each with its own processes, clock reading and
//! name, and the socket of the database.
//!
//! The first host dies, or is frozen and thawed, at a named point of a call: after its start was committed and before its
//! effect, or before the commit. The second one takes the session over. The effect happens at most once, and exactly once
//! if nobody can have begun it.

#![expect(clippy::print_stdout, reason = "read in the log of a container")]

mod program;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use pintle_agent::SessionId;
use pintle_postgres::{PostgresOptions, PostgresStore};
use pintle_store::{SessionStore as _, read_record};
use tempfile::TempDir;

use self::program::{CONNECTION, CONTROL, LEASE, POINT, ROLE, SCHEMA, STRANDED, WORK};

/// Longest wait for something that happens within seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// Beginning of the result of a call with an unknown effect.
const UNKNOWN: &str = "Interrupted: the program that ran this call ended";

/// Fate of the first host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Dies,
    /// It continues after the other one has done the work.
    IsFrozen,
}

/// Database and directories of one test.
struct Cluster {
    image: String,
    connection: String,
    schema: String,
    directory: TempDir,
}

/// A container, which is removed when the test ends.
struct Host {
    name: String,
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = docker(&["rm", "--force", &self.name]).output();
    }
}

fn docker(arguments: &[&str]) -> Command {
    let mut command = Command::new("docker");
    command.args(arguments);
    command
}

fn done(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

impl Cluster {
    /// Returns a new cluster, or `None` without the services.
    fn new() -> Option<Self> {
        if !pintle_test_conditions::CONTAINERS.is_present()
            || !pintle_test_conditions::POSTGRESQL.is_present()
        {
            return None;
        }
        let [image, connection] = ["PINTLE_TEST_IMAGE", CONNECTION].map(|name| std::env::var(name).unwrap());
        let id = SessionId::generate().to_string().replace('-', "");
        let directory = tempfile::tempdir().unwrap();
        Some(Self { image, connection, schema: format!("hosts_{}", &id[24..]), directory })
    }

    /// Returns a directory of this test, which is created.
    fn path(&self, name: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// Returns the command that starts a host with this role, whose workspace is a directory of this test.
    fn start(&self, mode: &str, role: &str, point: &str, workspace: &str) -> (Host, Command) {
        let name = format!("{}_{role}", self.schema);
        let socket = self.connection.split_whitespace().find_map(|pair| pair.strip_prefix("host=")).unwrap();
        let executable = std::env::current_exe().unwrap();
        let mut command = docker(&["run", mode, "--network", "none", "--name", &name, "--hostname", role]);
        let volume = |command: &mut Command, from: &Path, to: &str, mode: &str| {
            command.arg("--volume").arg(format!("{}:{to}:{mode}", from.display()));
        };
        volume(&mut command, &executable, "/program", "ro");
        volume(&mut command, Path::new(socket), socket, "rw");
        volume(&mut command, &self.path(workspace), WORK, "rw");
        volume(&mut command, &self.path("control"), CONTROL, "rw");
        // The image has no C library.
        for directory in
            ["/lib", "/lib64", "/usr/lib"].map(Path::new).into_iter().filter(|path| path.exists())
        {
            volume(&mut command, directory, directory.to_str().unwrap(), "ro");
        }
        for (variable, value) in
            [(CONNECTION, &*self.connection), (SCHEMA, &self.schema), (ROLE, role), (POINT, point)]
        {
            // Its value is taken from here, so that no list of processes has the password.
            command.env(variable, value).args(["--env", variable]);
        }
        (Host { name }, command)
    }

    /// Starts the first host, and waits until it has reached the point.
    fn begin(&self, point: &str) -> Host {
        let (host, mut command) = self.start("--detach", "begin", point, "first");
        done(command.arg(&self.image).args(program::arguments()));
        let reached = self.path("control").join("reached");
        let deadline = Instant::now() + PATIENCE;
        while !reached.exists() {
            assert!(
                Instant::now() < deadline,
                "{point} was not reached: {:?}",
                docker(&["logs", &host.name]).output()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        host
    }

    /// Runs the second host to its end.
    fn go_on(&self, workspace: &str) -> Output {
        let (_host, mut command) = self.start("--attach=stdout", "go_on", "", workspace);
        command.arg(&self.image).args(program::arguments()).output().unwrap()
    }

    /// Returns the lines that the command of the session has left.
    fn effects(&self) -> usize {
        let effects = std::fs::read_to_string(self.path("first").join("effects"));
        effects.map_or(0, |text| text.lines().count())
    }

    /// Returns the conversation as text, after the session was verified.
    async fn history(&self) -> String {
        let options = PostgresOptions::new().with_schema(self.schema.clone()).with_lease(LEASE);
        let store = PostgresStore::connect(&self.connection, options).await.unwrap();
        let verified = store.verify(&program::id(), None).await.unwrap();
        assert!(verified.is_intact(), "{verified:?}");
        let history = read_record(&store, &program::id()).await.unwrap().replay().unwrap().history;
        serde_json::to_string(&history).unwrap()
    }
}

/// Runs a session whose first host has this fate at this point, and returns the number of effects and the conversation.
async fn work_goes_on(fate: Fate, point: &str) -> Option<(usize, String)> {
    let cluster = Cluster::new()?;
    let first = cluster.begin(point);
    done(&mut docker(&[if fate == Fate::Dies { "kill" } else { "pause" }, &first.name]));
    let second = cluster.go_on("first");
    assert!(second.status.success(), "{second:?}");
    let (effects, history) = (cluster.effects(), cluster.history().await);
    assert!(history.contains("All done."), "{history}");
    assert_eq!(std::fs::read_to_string(cluster.path("first").join("notes.txt")).unwrap(), "begun\n");
    if fate == Fate::IsFrozen {
        std::fs::write(cluster.path("control").join("go"), "").unwrap();
        done(&mut docker(&["unpause", &first.name]));
        let ended = done(&mut docker(&["wait", &first.name]));
        assert_ne!(String::from_utf8_lossy(&ended.stdout).trim(), "0", "it cannot have done the work");
        assert_eq!(cluster.effects(), effects, "the first host had an effect after it had lost the session");
        assert_eq!(cluster.history().await, history);
    }
    Some((effects, history))
}

#[tokio::test]
async fn host_that_dies_before_an_effect_leaves_it_unknown() {
    let Some((effects, history)) = work_goes_on(Fate::Dies, program::AFTER_COMMIT).await else { return };
    assert_eq!(effects, 0);
    assert!(history.contains(UNKNOWN), "{history}");
}

#[tokio::test]
async fn host_that_dies_before_a_commit_leaves_the_call_to_the_next() {
    let Some((effects, history)) = work_goes_on(Fate::Dies, program::BEFORE_COMMIT).await else { return };
    assert_eq!(effects, 1);
    assert!(!history.contains(UNKNOWN), "{history}");
}

#[tokio::test]
async fn frozen_host_has_no_effect_when_it_continues() {
    let Some((effects, history)) = work_goes_on(Fate::IsFrozen, program::AFTER_COMMIT).await else { return };
    assert_eq!(effects, 0);
    assert!(history.contains(UNKNOWN), "{history}");
}

#[tokio::test]
async fn frozen_host_commits_nothing_when_it_continues() {
    let Some((effects, history)) = work_goes_on(Fate::IsFrozen, program::BEFORE_COMMIT).await else { return };
    assert_eq!(effects, 1);
    assert!(!history.contains(UNKNOWN), "{history}");
}

/// A host that does not reach the files of the first one leaves the session as it is.
#[tokio::test]
async fn session_is_stranded_without_its_volume() {
    let Some(cluster) = Cluster::new() else { return };
    let first = cluster.begin(program::AFTER_COMMIT);
    done(&mut docker(&["kill", &first.name]));
    let before = cluster.history().await;
    let second = cluster.go_on("second");
    assert_eq!(second.status.code(), Some(STRANDED), "{second:?}");
    assert_eq!(cluster.history().await, before, "it can be read");
    assert_eq!(std::fs::read_dir(cluster.path("second")).unwrap().count(), 0);
    // Where its files are, it goes on.
    assert!(cluster.go_on("first").status.success());
    assert!(cluster.history().await.contains("All done."));
}
