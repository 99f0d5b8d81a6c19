//! Ways out of the sandbox. Each line exits with 0 if it gets out, and it does without a sandbox.

use std::{
    os::{
        fd::{AsRawFd, OwnedFd},
        linux::net::SocketAddrExt,
        unix::{fs::PermissionsExt, net::SocketAddr},
    },
    process::Stdio,
};

use nix::sys::memfd::{MFdFlags, memfd_create};

use super::*;

/// A line, and the privileges that it needs to succeed without a sandbox.
struct Attack {
    line: &'static str,
    needs_root: bool,
}

const fn attack(line: &'static str) -> Attack {
    Attack { line, needs_root: false }
}

const fn root_attack(line: &'static str) -> Attack {
    Attack { line, needs_root: true }
}

/// Changes, and secrets of processes, against both levels. The working directory is writable, `../outside` is not. `$VICTIM` is a
/// process outside, `$OUT` the absolute path of `../outside`.
const WRITES: [Attack; 22] = [
    attack("echo x >../outside/new"),
    attack("echo x >>../outside/secret"),
    attack(": >../outside/secret; test ! -s ../outside/secret"),
    attack("rm ../outside/secret"),
    attack("mv ../outside/secret stolen"),
    attack("ln -s ../outside link && echo x >link/new"),
    attack("mkdir a && echo x >a/../../outside/new"),
    attack("ln ../outside/secret hard && echo x >>hard"),
    attack("echo x >/proc/self/root$OUT/new"),
    attack("echo x >/proc/$$/cwd/../outside/new"),
    attack("exec 9<../outside; echo x >/proc/self/fd/9/new"),
    attack("(setsid sh -c 'echo x >../outside/new'); sleep 0.1; test -e ../outside/new"),
    attack("kill -CONT $VICTIM"),
    attack("echo 1 >/proc/$VICTIM/oom_score_adj"),
    attack("cat /proc/$VICTIM/environ"),
    attack("cat /proc/$VICTIM/maps"),
    attack("unshare --user true"),
    root_attack("mkdir m && unshare --mount sh -c 'mount --bind ../outside m && echo x >m/new'"),
    root_attack("unshare --user --map-root-user --mount sh -c 'mount -t tmpfs none /mnt'"),
    root_attack("mknod device c 1 3 && : >device"),
    root_attack("cat /proc/sys/vm/swappiness >/proc/sys/vm/swappiness"),
    root_attack("echo x >/proc/$VICTIM/root$OUT/new"),
];

/// Against the level full, with the protected paths `.git/config`, `.git/hooks` and `new/settings`
/// and the hidden ones `../outside/hidden` and `keys`.
const PATHS: [Attack; 26] = [
    attack("echo x >>.git/config"),
    attack("rm .git/config"),
    attack("echo x >other && mv other .git/config"),
    attack("echo x >other && ln -f other .git/config"),
    attack("mv .git git && mkdir .git && echo x >.git/config"),
    attack("mv .git git"),
    attack("rm -rf .git; test ! -e .git/config"),
    attack("echo x >.git/hooks/pre-commit"),
    attack("mv .git/hooks hooks"),
    attack("rmdir .git/hooks"),
    attack("chmod 777 .git/config"),
    attack("mkdir -p new && echo x >new/settings"),
    attack("ln -s /etc new"),
    attack("rmdir new; mkdir -p new/settings"),
    attack("cat ../outside/hidden"),
    attack("cat /proc/self/root$OUT/hidden"),
    attack("cat /proc/$$/root$OUT/hidden"),
    attack("ln -s ../outside/hidden link && cat link"),
    attack("ln ../outside/hidden hard && cat hard"),
    attack("cp ../outside/hidden copy"),
    attack("cat keys/key"),
    attack("mv keys seen && cat seen/key"),
    attack("test -n \"$(ls keys)\""),
    attack("echo x >keys/new"),
    root_attack("cat /proc/$VICTIM/root$OUT/hidden"),
    root_attack("umount ../outside/hidden; umount keys; cat keys/key"),
];

const BOTH: [SandboxLevel; 2] = [SandboxLevel::Full, SandboxLevel::Writes];

/// A process outside the sandbox, killed on drop.
struct Victim(std::process::Child);

impl Victim {
    fn new() -> Self {
        Self(std::process::Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Returns a directory with everything that the attacks aim at.
fn target() -> Harness {
    let harness = Harness::new();
    for directory in ["root/.git/hooks", "root/keys"] {
        fs::create_dir_all(harness.at("").join(directory)).unwrap();
    }
    for file in ["root/.git/config", "root/keys/key", "outside/hidden"] {
        fs::write(harness.at(file), "secret").unwrap();
    }
    harness
}

fn request(harness: &Harness, line: &str, victim: &Victim) -> ExecRequest {
    let line = format!("umask 0; {line}");
    ExecRequest::new(line)
        .with_env("VICTIM", victim.0.id().to_string())
        .with_env("OUT", harness.at("outside").to_string_lossy())
}

/// Checks that an attack succeeds without a sandbox, and not within.
async fn holds(
    attack: &Attack,
    level: SandboxLevel,
    rules: fn(SandboxedEnvironment) -> SandboxedEnvironment,
) {
    if attack.needs_root && !pintle_test_conditions::ROOT.is_present() {
        return;
    }
    let victim = Victim::new();
    let open = target();
    let result = open.local().exec_command(request(&open, attack.line, &victim)).await.unwrap();
    assert!(result.success(), "without a sandbox: {}: {:?}", attack.line, result.stderr.to_text_lossy());
    let harness = target();
    let Some(environment) = harness.at_level(level).await else { return };
    let environment = rules(environment);
    environment.initialize().await.unwrap();
    let result = environment.exec_command(request(&harness, attack.line, &victim)).await.unwrap();
    assert!(!result.success(), "{level}: {}: {:?}", attack.line, result.output.to_text_lossy());
    environment.cleanup().await.unwrap();
    let outside = harness.at("outside");
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "secret", "{}", attack.line);
    assert_eq!(fs::read_dir(outside).unwrap().count(), 2, "{}", attack.line);
}

#[tokio::test]
async fn nothing_outside_can_be_changed() {
    for level in BOTH {
        for attack in &WRITES {
            holds(attack, level, |sandbox| sandbox).await;
        }
    }
}

#[tokio::test]
async fn hidden_and_protected_paths_hold() {
    for attack in &PATHS {
        holds(attack, SandboxLevel::Full, with_path_rules).await;
    }
}

fn with_path_rules(sandbox: SandboxedEnvironment) -> SandboxedEnvironment {
    sandbox
        .with_protected(".git/config")
        .with_protected(".git/hooks")
        .with_protected("new/settings")
        .with_hidden("../outside/hidden")
        .with_hidden("keys")
}

/// The sandbox was set up, and its shell waited, before the attack was known.
#[tokio::test]
async fn attacks_fail_in_sandboxes_that_were_started_ahead() {
    let victim = Victim::new();
    for attack in WRITES.iter().chain(&PATHS) {
        if attack.needs_root && !pintle_test_conditions::ROOT.is_present() {
            continue;
        }
        let harness = target();
        let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
        let environment = with_path_rules(environment).with_start_ahead(true);
        let first = environment.exec_command(request(&harness, "true", &victim)).await.unwrap();
        assert!(first.success(), "{first:?}");
        let waiting = prepared::waiting(&environment).await.unwrap();
        let command = Command::from(&request(&harness, attack.line, &victim));
        let mut process = environment.spawn(command).await.unwrap();
        assert_eq!(process.id(), Some(waiting), "{}", attack.line);
        assert_ne!(process.wait().await.unwrap().code(), 0, "{}", attack.line);
        process.terminate(std::time::Duration::ZERO).await.unwrap();
        drop(process);
        environment.cleanup().await.unwrap();
        let outside = harness.at("outside");
        assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "secret", "{}", attack.line);
        assert_eq!(fs::read_dir(outside).unwrap().count(), 2, "{}", attack.line);
    }
}

/// Attacks by system calls: `python3 attacks.py NAME` exits with 0 if it gets out.
const SYSTEM_CALLS: &str = r#"
import ctypes, fcntl, os, pty, resource, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(*arguments):
    result = libc.syscall(*[ctypes.c_long(one) if isinstance(one, int) else one for one in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result
def connect(family, kind, address):
    one = socket.socket(family, kind)
    one.settimeout(0.5)
    one.connect(address)
    one.send(b"x")
    if kind == socket.SOCK_DGRAM:
        assert one.recv(1) == b"y"
def typing():
    if os.fork() == 0:
        os.setsid()
        _, end = pty.openpty()
        fcntl.ioctl(end, 0x540E, 0)
        fcntl.ioctl(end, 0x5412, b"x")
        os._exit(0)
    sys.exit(os.wait()[1] != 0)
victim = int(os.environ["VICTIM"])
attacks = {
    "tcp": lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(os.environ["TCP"]))),
    "udp": lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(os.environ["UDP"]))),
    "unix": lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, os.environ["OUT"] + "/socket"),
    "unix-root": lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "socket"),
    "abstract": lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + os.environ["ABSTRACT"]),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4),
    "packet": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
    "vsock": lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM),
    "io_uring": lambda: call(425, 1, ctypes.create_string_buffer(120)),
    "keyring": lambda: call({"x86_64": 250, "aarch64": 219}[os.uname().machine], 0, -3, 1),
    "ptrace": lambda: call({"x86_64": 101, "aarch64": 117}[os.uname().machine], 0x4206, victim, 0, 0),
    "memory": lambda: open("/proc/%d/mem" % victim, "rb"),
    "namespace": lambda: call({"x86_64": 56, "aarch64": 220}[os.uname().machine], 0x10000000 | 17, 0, 0, 0, 0) or os._exit(0),
    "clone3": lambda: call(435, struct.pack("QQQQQQQQ", 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64) or os._exit(0),
    "typing": typing,
    "privileges": lambda: open("/proc/self/status").read().index("NoNewPrivs:\t0"),
    "limit": lambda: resource.prlimit(victim, resource.RLIMIT_NOFILE, (64, 64)),
    "priority": lambda: os.setpriority(os.PRIO_PROCESS, victim, 10),
    "affinity": lambda: os.sched_setaffinity(victim, os.sched_getaffinity(victim)),
    "scheduler": lambda: os.sched_setscheduler(victim, os.SCHED_BATCH, os.sched_param(0)),
    "io-priority": lambda: call({"x86_64": 251, "aarch64": 30}[os.uname().machine], 1, victim, (2 << 13) | 7),
    "shared-memory": lambda: call({"x86_64": 30, "aarch64": 196}[os.uname().machine], int(os.environ["SHM"]), 0, 0o10000),
    "clock": lambda: call({"x86_64": 159, "aarch64": 171}[os.uname().machine], ctypes.create_string_buffer(512)),
    "bpf": lambda: call({"x86_64": 321, "aarch64": 280}[os.uname().machine], 0, struct.pack("IIII", 2, 4, 4, 1) + bytes(112), 128),
}
attacks[sys.argv[1]]()
"#;

/// Those that need privileges or parts of the kernel that may be missing.
const OPTIONAL: [&str; 6] = ["packet", "vsock", "typing", "keyring", "bpf", "io_uring"];

/// Returns the names of the attacks by system calls.
fn system_calls() -> Vec<&'static str> {
    let names = SYSTEM_CALLS.lines().filter_map(|line| line.trim_start().strip_prefix('"'));
    names.filter_map(|line| line.split_once("\":").map(|(name, _)| name)).collect()
}

/// The page on attacks lists these, and no others.
#[test]
fn the_page_on_attacks_has_them_all() {
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/project/attacks.md")).unwrap();
    let shell = |attack: &Attack| format!("| `{}` |", attack.line.replace('|', "\\|"));
    let rows: Vec<String> = WRITES
        .iter()
        .map(|attack| format!("{} both levels |", shell(attack)))
        .chain(PATHS.iter().map(|attack| format!("{} *full* |", shell(attack))))
        .chain(system_calls().iter().map(|name| format!("| `{name}`: ")))
        .collect();
    let tests =
        ["nothing_outside_can_be_changed", "hidden_and_protected_paths_hold", "system_calls_lead_nowhere"];
    let is_ours = |line: &&str| tests.iter().any(|test| line.ends_with(&format!("`{test}` |")));
    let listed: Vec<&str> = page.lines().filter(is_ours).collect();
    let missing: Vec<_> =
        rows.iter().filter(|row| !listed.iter().any(|line| line.starts_with(row.as_str()))).collect();
    assert!(missing.is_empty() && listed.len() == rows.len(), "{}: {missing:#?}", listed.len());
}

#[tokio::test]
async fn system_calls_lead_nowhere() {
    let names = system_calls();
    assert_eq!(names.len(), 24);
    let victim = Victim::new();
    let services = Services::new();
    let request = |harness: &Harness, name: &str| {
        let line =
            format!("exec $(command -v /usr/bin/python3 || echo python3) ../outside/attacks.py {name}");
        let services = &services;
        request(harness, &line, &victim)
            .with_env("TCP", services.tcp.to_string())
            .with_env("UDP", services.udp.to_string())
            .with_env("SHM", &services.memory.0)
            .with_env("ABSTRACT", services.name.clone())
    };
    for unix_sockets in [false, true] {
        for level in BOTH {
            let harness = target();
            fs::write(harness.at("outside/attacks.py"), SYSTEM_CALLS).unwrap();
            let _listeners = ["outside/socket", "root/socket"].map(|path| {
                let listener = UnixListener::bind(harness.at("").join(path)).unwrap();
                fs::set_permissions(harness.at(path), fs::Permissions::from_mode(0o777)).unwrap();
                listener
            });
            let local = harness.local();
            let Some(environment) = harness.at_level(level).await else { continue };
            let environment = environment.with_unix_sockets(unix_sockets);
            environment.initialize().await.unwrap();
            for name in &names {
                // At the level writes, a local socket leads to every service that has a path.
                if unix_sockets && level == SandboxLevel::Writes && name.starts_with("unix") {
                    continue;
                }
                let control = local.exec_command(request(&harness, name)).await.unwrap();
                let is_possible = control.success() || OPTIONAL.contains(name);
                assert!(is_possible, "{name}: {:?}", control.stderr.to_text_lossy());
                let result = environment.exec_command(request(&harness, name)).await.unwrap();
                assert!(!result.success(), "{level}: {name}");
            }
            environment.cleanup().await.unwrap();
        }
    }
}

/// Services of the host.
struct Services {
    tcp: u16,
    udp: u16,
    /// Of an abstract local socket.
    name: String,
    memory: SharedMemory,
    _listeners: (TcpListener, UnixListener),
    stop: Arc<std::sync::atomic::AtomicBool>,
    echo: Option<std::thread::JoinHandle<()>>,
}

/// Id of a segment of shared memory.
struct SharedMemory(String);

impl SharedMemory {
    fn new() -> Self {
        let made = std::process::Command::new("ipcmk").args(["--shmem", "4096"]).output().unwrap();
        let said = String::from_utf8(made.stdout).unwrap();
        Self(said.trim().rsplit(' ').next().unwrap().to_owned())
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        let removed = std::process::Command::new("ipcrm").args(["--shmem-id", &self.0]).status();
        assert!(removed.unwrap().success());
    }
}

impl Services {
    fn new() -> Self {
        let name = format!("pintle-{}-{}", std::process::id(), line!());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listeners =
            (TcpListener::bind("127.0.0.1:0").unwrap(), UnixListener::bind_addr(&address).unwrap());
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (port, stopped) = (udp.local_addr().unwrap().port(), Arc::clone(&stop));
        let echo = std::thread::spawn(move || {
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                if let Ok((_, from)) = udp.recv_from(&mut [0]) {
                    udp.send_to(b"y", from).unwrap();
                }
            }
        });
        let tcp = listeners.0.local_addr().unwrap().port();
        let memory = SharedMemory::new();
        Self { tcp, udp: port, name, memory, _listeners: listeners, stop, echo: Some(echo) }
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        self.echo.take().unwrap().join().unwrap();
    }
}

#[tokio::test]
async fn no_descriptor_is_inherited() {
    // Without its close-on-exec flag, as this process would have inherited it itself.
    let leak: OwnedFd = memfd_create("pintle-leak", MFdFlags::empty()).unwrap();
    let line = format!("test -e /proc/self/fd/{}", leak.as_raw_fd());
    let harness = Harness::new();
    assert!(run(&harness.local(), &line).await.success());
    for level in BOTH {
        let Some(environment) = harness.at_level(level).await else { continue };
        environment.initialize().await.unwrap();
        assert!(!run(&environment, &line).await.success());
        let open = run(&environment, "set -- /proc/$$/fd/*; echo ${@##*/}").await;
        // The shell reads the directory with the fourth.
        let open = open.stdout.to_text_lossy().unwrap();
        assert!(["0 1 2\n", "0 1 2 3\n"].contains(&open.as_str()), "{level}: {open}");
        let fed = ExecRequest::new("cat; set -- /proc/$$/fd/*; echo ${@##*/}").with_stdin("fed ");
        let fed = environment.exec_command(fed).await.unwrap().stdout.to_text_lossy().unwrap();
        assert!(["fed 0 1 2\n", "fed 0 1 2 3\n"].contains(&fed.as_str()), "{level}: {fed}");
        environment.cleanup().await.unwrap();
    }
}

#[tokio::test]
async fn many_processes_leave_nothing() {
    let name = format!("pintle-many-{}", std::process::id());
    let tree =
        "f() { if [ $1 = 0 ]; then exec -a NAME sleep 1000; fi; f $(($1-1)) & f $(($1-1)) & wait; }; f 6";
    let tree = tree.replace("NAME", &name);
    let harness = Harness::new();
    for level in BOTH {
        let Some(environment) = harness.at_level(level).await else { continue };
        environment.initialize().await.unwrap();
        let request = ExecRequest::new(&tree).with_timeout(std::time::Duration::from_secs(1));
        let (result, seen) = tokio::join!(environment.exec_command(request), async {
            tokio::time::sleep(std::time::Duration::from_millis(800)).await;
            full::running(&name)
        });
        assert!(result.unwrap().timed_out && seen > 1, "{level}: {seen}");
        assert_eq!(full::running(&name), 0, "{level}");
        environment.cleanup().await.unwrap();
    }
}

/// The launcher of the level full is not restricted itself.
#[tokio::test]
async fn variables_do_not_reach_the_launcher() {
    let harness = Harness::new();
    let request = |harness: &Harness| {
        // The loader of a program writes there before the program runs.
        ExecRequest::new("true")
            .with_env("LD_DEBUG", "files")
            .with_env("LD_DEBUG_OUTPUT", harness.at("outside").join("loaded").to_string_lossy())
    };
    let count = |harness: &Harness| fs::read_dir(harness.at("outside")).unwrap().count();
    assert!(harness.local().exec_command(request(&harness)).await.unwrap().success());
    assert!(count(&harness) > 1, "the loader of the GNU C library has such variables");
    for level in BOTH {
        let harness = Harness::new();
        let Some(environment) = harness.at_level(level).await else { continue };
        environment.initialize().await.unwrap();
        environment.exec_command(request(&harness)).await.unwrap();
        assert_eq!(count(&harness), 1, "{level}");
        environment.cleanup().await.unwrap();
    }
}
