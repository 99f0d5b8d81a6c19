//! The servers started by `cargo xtask services up`, and a proxy in front of them.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::{
    remote::tests::matrix::process_ids,
    ssh::{Connection, SshEnvironment},
};

/// Returns the configuration of the ssh servers, or `None` without them.
pub(super) fn config_file() -> Option<PathBuf> {
    let file = || std::env::var_os("PINTLE_TEST_SSH").unwrap().into();
    pintle_test_conditions::SSH_SERVERS.is_present().then(file)
}

/// An ssh configuration that prepends lines to that of the services; the first setting counts.
pub(super) struct Harness {
    pub(super) directory: TempDir,
}

impl Harness {
    pub(super) fn new(services: &Path, lines: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let config = format!("{lines}\nHost *\nInclude \"{}\"\n", services.display());
        fs::write(directory.path().join("config"), config).unwrap();
        Self { directory }
    }

    /// Returns a connection to `host` with sockets in the test's directory.
    pub(super) fn connection(&self, host: &str) -> Connection {
        let mut connection = Connection::new(host.to_owned());
        connection.config_file = Some(self.directory.path().join("config"));
        connection.socket_directory = self.directory.path().join("sockets");
        fs::create_dir_all(&connection.socket_directory).unwrap();
        connection
    }

    /// Returns an environment on `host` that works in `directory`.
    pub(super) fn environment(&self, host: &str, directory: &Path) -> SshEnvironment {
        environment(self.connection(host), directory)
    }

    /// Counts the remaining socket directories.
    pub(super) fn sockets(&self) -> usize {
        fs::read_dir(self.directory.path().join("sockets")).unwrap().count()
    }

    /// Creates a key pair unknown to all servers.
    pub(super) fn key(&self, name: &str) -> PathBuf {
        let file = self.directory.path().join(name);
        let status = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(&file)
            .stdin(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        file
    }
}

/// Creates an environment from a connection and a working directory.
pub(super) fn environment(connection: Connection, directory: &Path) -> SshEnvironment {
    let mut builder = SshEnvironment::builder("").with_working_directory(directory);
    builder.connection = connection;
    builder.build().unwrap()
}

/// Returns the value of an ssh option for `host`.
pub(super) fn option(config: &Path, host: &str, name: &str) -> String {
    let output = Command::new("ssh").arg("-F").arg(config).args(["-G", host]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("ssh -G does not print {name}: {text}")).to_owned()
}

/// A proxy in front of a server that can stop forwarding or disconnect.
pub(super) struct Proxy {
    address: SocketAddr,
    frozen: Arc<AtomicBool>,
    links: Arc<Mutex<JoinSet<()>>>,
    accepting: Mutex<JoinSet<()>>,
}

impl Proxy {
    pub(super) async fn in_front_of(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (frozen, links) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(JoinSet::new())));
        let mut accepting = JoinSet::new();
        let (freeze, all) = (Arc::clone(&frozen), Arc::clone(&links));
        accepting.spawn(async move {
            loop {
                let (local, _) = listener.accept().await.unwrap();
                let remote = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                all.lock().unwrap().spawn(link(local, remote, Arc::clone(&freeze)));
            }
        });
        Self { address, frozen, links, accepting: Mutex::new(accepting) }
    }

    /// Stops forwarding; both sides stay connected.
    pub(super) fn freeze(&self) {
        self.frozen.store(true, Ordering::SeqCst);
    }

    /// Disconnects both sides and accepts no new connections.
    pub(super) fn cut(&self) {
        self.accepting.lock().unwrap().abort_all();
        self.hang_up();
    }

    /// Disconnects both sides; new connections are accepted.
    pub(super) fn hang_up(&self) {
        self.links.lock().unwrap().abort_all();
    }

    /// Returns configuration lines that route `host` through the proxy, if its server listens on
    /// `port`.
    pub(super) fn host_lines(&self, host: &str, port: u16) -> String {
        format!("Host {host}\n Port {}\n HostKeyAlias [127.0.0.1]:{port}\n", self.address.port())
    }
}

async fn link(local: TcpStream, remote: TcpStream, frozen: Arc<AtomicBool>) {
    let (mut local_read, mut local_write) = local.into_split();
    let (mut remote_read, mut remote_write) = remote.into_split();
    tokio::select! {
        () = forward(&mut local_read, &mut remote_write, &frozen) => {}
        () = forward(&mut remote_read, &mut local_write, &frozen) => {}
    }
}

async fn forward(
    from: &mut (impl AsyncReadExt + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    frozen: &AtomicBool,
) {
    let mut block = vec![0; 32 << 10];
    while let Ok(read @ 1..) = from.read(&mut block).await {
        if frozen.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if to.write_all(&block[..read]).await.is_err() {
            return;
        }
    }
}

/// Starts a server that accepts connections and never sends anything.
pub(super) async fn silent_server() -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = Vec::new();
        loop {
            connections.push(listener.accept().await.unwrap());
        }
    });
    (address, tasks)
}

/// Returns a port without a listener.
pub(super) fn closed_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Finds the local processes with `word` in their command line.
pub(super) fn processes_naming(word: &Path) -> Vec<u32> {
    let word = word.as_os_str().as_encoded_bytes();
    let names = |id: &u32| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.windows(word.len()).any(|part| part == word)
    };
    process_ids().filter(names).collect()
}

/// A world-writable directory on the remote host, which is this machine.
pub(super) struct RemoteDirectory(TempDir);

pub(super) fn remote_directory(host: &str) -> RemoteDirectory {
    let directory =
        tempfile::Builder::new().prefix(&format!("pintle-remote-{host}-")).tempdir_in("/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    RemoteDirectory(directory)
}

impl RemoteDirectory {
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the unique name of the directory.
    pub(super) fn name(&self) -> String {
        self.path().file_name().unwrap().to_str().unwrap().to_owned()
    }
}
