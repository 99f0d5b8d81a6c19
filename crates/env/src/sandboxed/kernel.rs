//! Applies the restrictions on a thread that exits after starting one command.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::UdpSocket,
    os::unix::net::UnixDatagram,
    path::PathBuf,
    thread,
};

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use nix::libc;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use tokio::{
    process::{Child, Command},
    runtime::Handle,
};

use super::Protection;

/// Devices that every program may write to, if they exist.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Landlock version that covers all write accesses; truncation was the last one added.
const WRITES: ABI = ABI::V3;

/// Mask of the socket type without its flags.
const SOCKET_TYPE: u64 = 0xf;

/// Bit that marks system calls of the x32 mode of an x86-64 kernel.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Permissions of sandboxed commands.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    pub(super) writable: Vec<PathBuf>,
    pub(super) network: bool,
    pub(super) unix_sockets: bool,
    /// Restrictions that need not be enforced.
    pub(super) accepted: BTreeSet<Protection>,
}

/// Starts a command under the rules.
pub(super) fn spawn(rules: &Rules, mut command: Command) -> io::Result<Child> {
    let runtime = Handle::try_current().map_err(io::Error::other)?;
    on_own_thread(|| {
        let _guard = runtime.enter();
        restrict(rules)?;
        command.spawn()
    })
}

/// Applies the rules on a thread that then exits, to check that they can be applied.
pub(super) fn dry_run(rules: &Rules) -> io::Result<()> {
    on_own_thread(|| restrict(rules))
}

/// Returns the restrictions that the kernel does not enforce.
pub(super) fn unenforced(rules: &Rules) -> io::Result<BTreeSet<Protection>> {
    let handles = |access: BitFlags<AccessFs>| {
        let ruleset =
            Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(access);
        ruleset.and_then(Ruleset::create).is_ok()
    };
    let scopes = || {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(scope());
        ruleset.and_then(Ruleset::create).is_ok()
    };
    let filters = || {
        let is_refused = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        on_own_thread(|| {
            let is_filtered = filter_sockets(rules).is_ok();
            let network = UdpSocket::bind("127.0.0.1:0").is_err_and(is_refused);
            let local = rules.unix_sockets || UnixDatagram::unbound().is_err_and(is_refused);
            Ok(is_filtered && network && local)
        })
    };
    let mut unenforced = BTreeSet::new();
    let mut check = |is_enforced: bool, protection| {
        if !is_enforced {
            unenforced.insert(protection);
        }
    };
    check(handles(AccessFs::from_write(WRITES)), Protection::Writes);
    check(handles(AccessFs::IoctlDev.into()), Protection::Devices);
    check(scopes(), Protection::Signals);
    check(rules.network || filters()?, Protection::Sockets);
    Ok(unenforced)
}

/// Runs `work` on its own thread, so that all restrictions end with it.
fn on_own_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("pintle-sandbox".to_owned()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the sandbox thread panicked")))
    })
}

/// Permanently restricts the calling thread and the processes it starts.
fn restrict(rules: &Rules) -> io::Result<()> {
    let status = ruleset(rules)?.restrict_self().map_err(io::Error::other)?;
    let landlock = [Protection::Writes, Protection::Devices, Protection::Signals];
    let is_whole = status.ruleset == RulesetStatus::FullyEnforced && status.no_new_privs;
    if !is_whole && !landlock.iter().any(|protection| rules.accepted.contains(protection)) {
        return Err(io::Error::other(format!("the kernel enforces the sandbox only partially: {status:?}")));
    }
    if rules.network {
        return Ok(());
    }
    match filter_sockets(rules) {
        Err(error) if rules.accepted.contains(&Protection::Sockets) => {
            tracing::debug!(%error, "cannot refuse sockets");
            Ok(())
        }
        filtered => filtered,
    }
}

fn ruleset(rules: &Rules) -> io::Result<RulesetCreated> {
    let level = |protection| match rules.accepted.contains(&protection) {
        true => CompatLevel::BestEffort,
        false => CompatLevel::HardRequirement,
    };
    let writes = AccessFs::from_write(WRITES);
    let create = || -> Result<RulesetCreated, RulesetError> {
        Ruleset::default()
            .set_compatibility(level(Protection::Writes))
            .handle_access(writes)?
            .set_compatibility(level(Protection::Devices))
            .handle_access(AccessFs::IoctlDev)?
            .set_compatibility(level(Protection::Signals))
            .scope(scope())?
            .create()
    };
    let mut ruleset = create().map_err(io::Error::other)?.set_compatibility(CompatLevel::BestEffort);
    for root in &rules.writable {
        let root = PathFd::new(root).map_err(io::Error::other)?;
        let rule = PathBeneath::new(root, writes | AccessFs::IoctlDev);
        ruleset = ruleset.add_rule(rule).map_err(io::Error::other)?;
    }
    let to_files = (writes & AccessFs::from_file(WRITES)) | AccessFs::IoctlDev;
    for device in DEVICES.iter().filter_map(|device| PathFd::new(device).ok()) {
        ruleset = ruleset.add_rule(PathBeneath::new(device, to_files)).map_err(io::Error::other)?;
    }
    Ok(ruleset)
}

fn scope() -> BitFlags<Scope> {
    Scope::Signal | Scope::AbstractUnixSocket
}

fn filter_sockets(rules: &Rules) -> io::Result<()> {
    let program = socket_filter(rules).map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}

/// Creates a filter that refuses the system calls that create sockets, and nothing else.
fn socket_filter(rules: &Rules) -> Result<BpfProgram, BackendError> {
    let mut refused = BTreeMap::from([(libc::SYS_io_uring_setup, Vec::new())]);
    if rules.unix_sockets {
        let other_family = argument(0, SeccompCmpOp::Ne, libc::AF_UNIX.unsigned_abs().into())?;
        refused.insert(libc::SYS_socket, vec![other_family]);
    } else {
        refused.insert(libc::SYS_socket, Vec::new());
        // One end of a datagram pair can send to any address; a stream is tied to its other end.
        let is_datagram = SeccompCmpOp::MaskedEq(SOCKET_TYPE);
        let pair = argument(1, is_datagram, libc::SOCK_DGRAM.unsigned_abs().into())?;
        refused.insert(libc::SYS_socketpair, vec![pair]);
    }
    #[cfg(target_arch = "x86_64")]
    for (number, conditions) in refused.clone() {
        refused.insert(number | X32, conditions);
    }
    let errno = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    // A system call of another architecture kills the process: its numbers have other meanings.
    SeccompFilter::new(refused, SeccompAction::Allow, errno, std::env::consts::ARCH.try_into()?)?.try_into()
}

fn argument(index: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    let condition = SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)?;
    SeccompRule::new(vec![condition])
}
