#![expect(clippy::disallowed_methods, reason = "the tests inspect the effects of commands")]

mod attacks;
mod builds;
mod full;
mod gateway;
mod limits;
mod prepared;
mod signals;
mod source;
mod starts;
mod switching;

use std::{
    fs,
    net::{TcpListener, UdpSocket},
    os::unix::net::UnixListener,
};

use tempfile::TempDir;

use super::*;
use crate::{ConfinedEnvironment, ExecRequest, ExecResult, contract};

/// A writable directory next to one that is not writable. Not below `/tmp`, which the level *full*
/// replaces.
struct Harness {
    directory: TempDir,
}

impl Harness {
    fn new() -> Self {
        let program = std::env::current_exe().unwrap();
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let bases = program.parent().map(PathBuf::from).into_iter().chain(home);
        let mut bases = bases.filter(|base| !base.starts_with("/tmp") && !base.starts_with("/var/tmp"));
        let directory =
            bases.find_map(|base| TempDir::new_in(base).ok()).expect("a directory outside of /tmp");
        for name in ["root", "outside"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        fs::write(directory.path().join("outside/secret"), "secret").unwrap();
        Self { directory }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn local(&self) -> LocalEnvironment {
        let path = std::env::var_os("PATH").unwrap_or_default();
        LocalEnvironment::builder(self.at("root")).with_variable("PATH", path).build().unwrap()
    }

    /// Returns a sandbox of the level *writes*; `None` if the kernel has none.
    async fn sandboxed(&self) -> Option<SandboxedEnvironment> {
        self.at_level(SandboxLevel::Writes).await
    }

    /// Returns a sandbox; `None` if the machine does not have the level.
    async fn at_level(&self, level: SandboxLevel) -> Option<SandboxedEnvironment> {
        if !has_level(level) {
            return None;
        }
        let environment =
            SandboxedEnvironment::new(self.local()).with_level(level).with_writable(self.at("root"));
        assert_eq!(environment.unenforced().await.unwrap(), BTreeSet::new(), "{level}");
        Some(environment)
    }
}

/// Returns whether the machine has this level of the sandbox.
fn has_level(level: SandboxLevel) -> bool {
    match level {
        SandboxLevel::Full => pintle_test_conditions::BUBBLEWRAP.is_present(),
        SandboxLevel::Writes => pintle_test_conditions::LANDLOCK.is_present(),
    }
}

async fn run(environment: &dyn ExecutionEnvironment, line: &str) -> ExecResult {
    environment.exec_command(ExecRequest::new(line)).await.unwrap()
}

#[tokio::test]
async fn commands_write_only_inside_the_roots() {
    let harness = Harness::new();
    let Some(environment) = harness.sandboxed().await else { return };
    environment.initialize().await.unwrap();
    for line in [
        "echo x >file && mkdir -p a/b && mv file a/b/file && ln a/b/file hard && ln -s a soft && rm -r a",
        "echo x >/dev/null; cat ../outside/secret; echo x >&2",
        "(setsid sh -c 'echo x >apart') && cat apart",
        "trap 'exit 0' TERM; kill $$; exit 1",
        "sleep 100 & kill -KILL $!",
    ] {
        let result = run(&environment, line).await;
        assert!(result.success(), "{line}: {result:?} {:?}", result.stderr.to_text_lossy());
    }
    let parent = std::process::id();
    for line in [
        "echo x >../outside/new",
        "echo x >../outside/secret",
        "echo x >>../outside/secret",
        ": >../outside/secret",
        "rm ../outside/secret",
        "mv ../outside/secret .",
        "mkdir ../outside/new",
        "ln ../outside/secret hard-link && echo x >hard-link",
        "ln -sf ../outside/secret link && echo x >link",
        "(setsid sh -c 'echo x >../outside/apart; test -e ../outside/apart')",
        "sh -c 'cd / && echo x >new-file-at-the-root'",
        &format!("kill -0 {parent}"),
        &format!("echo x >/proc/{parent}/comm"),
    ] {
        let result = run(&environment, line).await;
        assert!(!result.success(), "{line}: {:?}", result.output.to_text_lossy());
    }
    assert_eq!(fs::read_to_string(harness.at("outside/secret")).unwrap(), "secret");
    assert_eq!(fs::read_dir(harness.at("outside")).unwrap().count(), 1);
    environment.cleanup().await.unwrap();
    // The embedding process remains unrestricted.
    fs::write(harness.at("outside/of-the-host"), "x").unwrap();
    UdpSocket::bind("127.0.0.1:0").unwrap();
}

/// A session that may write above could give the name of the root to another directory.
#[tokio::test]
async fn a_root_that_was_replaced_is_refused() {
    for level in [SandboxLevel::Writes, SandboxLevel::Full] {
        if !has_level(level) {
            continue;
        }
        let harness = Harness::new();
        let inner = harness.local();
        let environment =
            SandboxedEnvironment::new(inner).with_level(level).with_writable(harness.at("root"));
        assert!(run(&environment, "echo x >before").await.success(), "{level}");
        fs::rename(harness.at("root"), harness.at("moved")).unwrap();
        for leads_to in ["outside", "moved"] {
            std::os::unix::fs::symlink(harness.at(leads_to), harness.at("root")).unwrap();
            let request = ExecRequest::new("true").with_working_dir("/");
            let result = environment.exec_command(request).await;
            let is_same = leads_to == "moved";
            assert_eq!(result.is_ok(), is_same, "{level}, {leads_to}: {result:?}");
            if let Err(error) = result {
                let text = format!("{error}: {:?}", std::error::Error::source(&error));
                assert!(text.contains("was replaced after the session started"), "{text}");
            }
            fs::remove_file(harness.at("root")).unwrap();
        }
        environment.cleanup().await.unwrap();
    }
}

/// Documented behavior. If a kernel starts to refuse it, update the documentation.
#[tokio::test]
async fn modes_can_change_but_contents_cannot() {
    use std::os::unix::fs::PermissionsExt;
    let harness = Harness::new();
    let Some(environment) = harness.sandboxed().await else { return };
    let secret = harness.at("outside/secret");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o444)).unwrap();
    let result = run(&environment, "chmod 666 ../outside/secret && echo x >../outside/secret").await;
    assert!(!result.success());
    assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o666);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn the_network_is_refused_unless_allowed() {
    let harness = Harness::new();
    let Some(environment) = harness.sandboxed().await else { return };
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let _unix = UnixListener::bind(harness.at("root/socket")).unwrap();
    let (tcp, udp) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    let bash = |line: String| format!("exec bash -c '{line}'");
    let to_tcp = bash(format!("exec 3<>/dev/tcp/127.0.0.1/{tcp}"));
    let to_udp = bash(format!("echo x >/dev/udp/127.0.0.1/{udp}"));
    for line in [&to_tcp, &to_udp] {
        let result = run(&environment, line).await;
        assert!(!result.success(), "{line}");
        let stderr = result.stderr.to_text_lossy().unwrap();
        assert!(stderr.contains("Permission denied"), "{stderr}");
    }
    let environment = environment.with_network(true);
    environment.initialize().await.unwrap();
    for line in [&to_tcp, &to_udp] {
        assert!(run(&environment, line).await.success(), "{line}");
    }
    // Network access does not grant file access.
    assert!(!run(&environment, "echo x >../outside/secret").await.success());
    environment.cleanup().await.unwrap();
}

/// Socket families and system calls that a shell cannot test.
const SOCKETS: &str = r#"
import ctypes, os, socket, sys
def refused(what, make):
    try:
        make()
    except PermissionError:
        return
    sys.exit(what + " is not refused")
for family in ("AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK"):
    if family != "AF_UNIX" or "unix" not in sys.argv:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
            refused(family, lambda: socket.socket(getattr(socket, family), kind))
socket.socketpair()
if "unix" in sys.argv:
    socket.socket(socket.AF_UNIX).connect("socket")
else:
    refused("a pair of datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "")
refused("io_uring", lambda: call(425, 1, ctypes.create_string_buffer(120)))
if os.uname().machine == "x86_64":
    refused("x32", lambda: call(0x40000000 | 41, 2, 1, 0))
"#;

#[tokio::test]
async fn all_kinds_of_sockets_are_refused() {
    let harness = Harness::new();
    let Some(environment) = harness.sandboxed().await else { return };
    fs::write(harness.at("root/sockets.py"), SOCKETS).unwrap();
    let _listener = UnixListener::bind(harness.at("root/socket")).unwrap();
    let result = run(&environment, "python3 sockets.py").await;
    assert!(result.success(), "{:?}", result.stderr.to_text_lossy());
    let environment = environment.with_unix_sockets(true);
    environment.initialize().await.unwrap();
    let result = run(&environment, "python3 sockets.py unix").await;
    assert!(result.success(), "{:?}", result.stderr.to_text_lossy());
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn accepted_restrictions_are_still_enforced() {
    let harness = Harness::new();
    let Some(mut environment) = harness.sandboxed().await else { return };
    for protection in [Protection::Writes, Protection::Devices, Protection::Signals, Protection::Sockets] {
        environment = environment.with_accepted(protection);
    }
    environment.initialize().await.unwrap();
    assert!(run(&environment, "echo x >inside").await.success());
    for line in ["echo x >../outside/secret", "exec bash -c 'echo x >/dev/udp/127.0.0.1/9'"] {
        assert!(!run(&environment, line).await.success(), "{line}");
    }
    environment.cleanup().await.unwrap();
}

#[tokio::test]
async fn no_command_starts_without_a_sandbox() {
    let harness = Harness::new();
    let Some(environment) = harness.sandboxed().await else { return };
    let environment = environment.with_writable("gone");
    let error = environment.initialize().await.unwrap_err();
    assert!(matches!(error, EnvError::NotFound { .. }), "{error:?}");
    let error = environment.exec_command(ExecRequest::new("true")).await.unwrap_err();
    assert!(matches!(error, EnvError::Spawn { .. }), "{error:?}");
}

#[tokio::test]
async fn keeps_the_contract() {
    let harness = Harness::new();
    let Some(environment) = harness.sandboxed().await else { return };
    let roots = [harness.at("root")];
    let environment = ConfinedEnvironment::new(Arc::new(environment), roots);
    environment.initialize().await.unwrap();
    contract::files(&environment, &harness.at("root/files")).await.unwrap();
    contract::search(&environment, &harness.at("root/search")).await.unwrap();
    contract::commands(&environment, &harness.at("root/commands")).await.unwrap();
    environment.cleanup().await.unwrap();
}
