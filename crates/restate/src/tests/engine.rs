//! An engine, and workers that are processes of their own.
#![expect(clippy::disallowed_methods, reason = "tests start an engine and workers, and end them")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::net::TcpListener;

use crate::RestateEngine;

/// Variable with the path of the engine's program.
const PROGRAM: &str = "PINTLE_TEST_RESTATE";

/// Time limit of every wait.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// A process that ends with its test.
pub(super) struct TestProcess(Child);

impl TestProcess {
    pub(super) fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }

    /// Ends it as if by the loss of power.
    pub(super) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Waits until it has ended by itself.
    pub(super) async fn ended(&mut self) {
        until("the process ends", async || self.0.try_wait().unwrap().is_some()).await;
    }

    pub(super) fn terminate(&self) {
        kill(Pid::from_raw(self.0.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An engine with a directory and ports of its own: only one worker can be the newest of an engine.
pub(super) struct TestEngine {
    program: PathBuf,
    directory: tempfile::TempDir,
    ingress: u16,
    admin: u16,
    node: u16,
    /// File with the private key with which it signs its requests.
    identity: Option<PathBuf>,
    process: Option<TestProcess>,
}

impl TestEngine {
    /// Starts an engine. Returns `None` if Restate is missing.
    pub(super) async fn start() -> Option<Self> {
        let mut engine = Self::new().await?;
        engine.go_on().await;
        Some(engine)
    }

    /// Starts one that signs its requests, and returns its public key.
    pub(super) async fn start_with_identity() -> Option<(Self, String)> {
        let mut engine = Self::new().await?;
        let private = engine.directory.path().join("identity.pem");
        let mut openssl = Command::new("openssl");
        let made = openssl.args(["genpkey", "-algorithm", "ed25519", "-out"]).arg(&private).status().unwrap();
        assert!(made.success());
        engine.identity = Some(private);
        engine.go_on().await;
        let log = std::fs::read_to_string(engine.directory.path().join("log")).unwrap();
        let key = log.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let key = key.into_iter().find(|word| word.starts_with("publickeyv1_")).map(str::to_owned);
        Some((engine, key.unwrap_or_else(|| panic!("the engine logs its key: {log}"))))
    }

    async fn new() -> Option<Self> {
        if !pintle_test_conditions::RESTATE.is_present() {
            return None;
        }
        let (ingress, admin, node) = (free_port().await, free_port().await, free_port().await);
        let directory = tempfile::tempdir().unwrap();
        let program = std::env::var_os(PROGRAM).unwrap().into();
        Some(Self { program, directory, ingress, admin, node, identity: None, process: None })
    }

    /// Starts it again, with what it had.
    pub(super) async fn go_on(&mut self) {
        let base = self.directory.path();
        let mut command = Command::new(&self.program);
        command.args(["--no-logo", "--node-name", "one", "--listen-mode", "tcp"]);
        command.args(["--bind-ip", "127.0.0.1", "--advertised-host", "127.0.0.1"]);
        command.arg("--base-dir").arg(base).arg("--bind-port").arg(self.node.to_string());
        for (name, value) in [
            ("RESTATE_INGRESS__BIND_PORT", self.ingress.to_string()),
            ("RESTATE_ADMIN__BIND_PORT", self.admin.to_string()),
            ("RESTATE_DISABLE_TELEMETRY", "true".to_owned()),
            ("RESTATE_DEFAULT_NUM_PARTITIONS", "1".to_owned()),
            ("RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE", "256.0 MiB".to_owned()),
        ] {
            command.env(name, value);
        }
        if let Some(identity) = &self.identity {
            command.env("RESTATE_WORKER__INVOKER__REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE", identity);
        }
        let log = std::fs::File::create(base.join("log")).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.process = Some(TestProcess::start(&mut command));
        let client = self.client();
        let process = self.process.as_mut().unwrap();
        until("the engine is ready", async || {
            let ended = process.0.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "the engine ended: {}",
                std::fs::read_to_string(base.join("log")).unwrap()
            );
            client.check().await.is_ok()
        })
        .await;
    }

    pub(super) fn kill(&mut self) {
        self.process.take().unwrap().kill();
    }

    pub(super) fn ingress(&self) -> String {
        format!("http://127.0.0.1:{}", self.ingress)
    }

    pub(super) fn admin(&self) -> String {
        format!("http://127.0.0.1:{}", self.admin)
    }

    pub(super) fn client(&self) -> RestateEngine {
        RestateEngine::new(&self.ingress()).unwrap()
    }

    /// Tells the engine of a worker, once that listens.
    pub(super) async fn register(&self, port: u16) {
        until("the worker is registered", async || {
            RestateEngine::register(&self.admin(), &format!("http://127.0.0.1:{port}")).await.is_ok()
        })
        .await;
    }
}

/// Returns a command that runs a test of this program, for tests that are processes.
pub(super) fn this_test(name: &str, log: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name]).stdout(Stdio::null()).stderr(std::fs::File::create(log).unwrap());
    command
}

/// Waits until something is so.
pub(super) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(tokio::time::Instant::now() < end, "{what}: not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Returns a port that no other call in this process returns and that is free now.
///
/// It lies below the ports that the system gives to outgoing connections, one of which could otherwise take it before the program
/// that is to listen there.
pub(super) async fn free_port() -> u16 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    loop {
        let offset = std::process::id().wrapping_mul(64).wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(16_384 + offset % 16_384).unwrap();
        if TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.is_ok() {
            return port;
        }
    }
}
