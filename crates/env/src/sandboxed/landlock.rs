//! The level *writes*: Landlock rules and seccomp filters on the thread that starts a command.
use std::{collections::BTreeSet, io, net::UdpSocket, os::unix::net::UnixDatagram};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use nix::sys::stat::fstat;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::{
    Protection, filter,
    rules::{REPLACED, Rules},
    thread::{self, Inheritance, PreparedProgram},
};
use crate::local::{Invocation, LaunchedProcess, Program, on_own_thread};

/// Devices that every program may write to, if they exist.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Landlock version that covers all write accesses; truncation was the last one added.
pub(super) const WRITES: ABI = ABI::V3;

/// Landlock version that restricts ioctl on devices.
const DEVICE_IOCTL: u32 = 5;

/// Landlock version that restricts signals and abstract sockets.
const SCOPES: u32 = 6;

/// Starts a command under the rules.
pub(super) fn spawn(rules: &Rules, invocation: &Invocation) -> io::Result<LaunchedProcess> {
    let inheritance = match rules.accepted.contains(&Protection::Descriptors) {
        true => Inheritance::IfUnavoidable,
        false => Inheritance::Nothing,
    };
    thread::spawn(invocation, inheritance, |_| {
        restrict(rules)?;
        Ok(PreparedProgram { program: Program::from_invocation(invocation), inherited: Vec::new() })
    })
}

/// Applies the rules on a thread that then exits, to check that they can be applied.
pub(super) fn dry_run(rules: &Rules) -> io::Result<()> {
    on_own_thread(|| restrict(rules))
}

/// Returns the Landlock version of this kernel up to [`WRITES`]; 0 without Landlock.
pub(super) fn version() -> u32 {
    let versions = [(3, ABI::V3), (2, ABI::V2), (1, ABI::V1)];
    let found = versions.into_iter().find(|(_, version)| handles(AccessFs::from_all(*version)));
    found.map_or(0, |(number, _)| number)
}

/// Returns the restrictions that the kernel does not enforce when Landlock is used up to version `newest`.
pub(super) fn unenforced(rules: &Rules, newest: u32) -> io::Result<BTreeSet<Protection>> {
    let scopes = || {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(scope());
        ruleset.and_then(Ruleset::create).is_ok()
    };
    let filters = || {
        let is_refused = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        on_own_thread(|| {
            let is_filtered = filter::apply(rules).is_ok();
            let network = rules.network || UdpSocket::bind("127.0.0.1:0").is_err_and(is_refused);
            let local = rules.network || rules.unix_sockets || UnixDatagram::unbound().is_err_and(is_refused);
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
    check(newest >= DEVICE_IOCTL && handles(AccessFs::IoctlDev.into()), Protection::Devices);
    check(newest >= SCOPES && scopes(), Protection::Signals);
    check(filters()?, Protection::Sockets);
    check(thread::has_own_descriptors()?, Protection::Descriptors);
    check(!rules.protects_within_roots(), Protection::ProtectedPaths);
    Ok(unenforced)
}

fn handles(access: BitFlags<AccessFs>) -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(access);
    ruleset.and_then(Ruleset::create).is_ok()
}

/// Permanently restricts the calling thread and the processes it starts.
fn restrict(rules: &Rules) -> io::Result<()> {
    let status = ruleset(rules)?.restrict_self().map_err(io::Error::other)?;
    let landlock = [Protection::Devices, Protection::Signals];
    let is_whole = status.ruleset == RulesetStatus::FullyEnforced && status.no_new_privs;
    if !is_whole && !landlock.iter().any(|protection| rules.accepted.contains(protection)) {
        return Err(io::Error::other(format!("the kernel enforces the sandbox only partially: {status:?}")));
    }
    drop_capabilities()?;
    match filter::apply(rules) {
        Err(_) if rules.accepted.contains(&Protection::Sockets) => Ok(()),
        filtered => filtered,
    }
}

/// Drops the capabilities with which root reads the memory maps and the environment of other processes: Linux grants that to
/// `CAP_PERFMON` without asking Landlock.
///
/// With `no_new_privs` set, exec does not restore them.
fn drop_capabilities() -> io::Result<()> {
    const READING: CapabilitySet =
        CapabilitySet::SYS_ADMIN.union(CapabilitySet::SYS_PTRACE).union(CapabilitySet::PERFMON);
    let mut sets = capabilities(None)?;
    for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
        set.remove(READING);
    }
    set_capabilities(None, sets)?;
    Ok(())
}

fn ruleset(rules: &Rules) -> io::Result<RulesetCreated> {
    let level = |protection| match rules.accepted.contains(&protection) {
        true => CompatLevel::BestEffort,
        false => CompatLevel::HardRequirement,
    };
    let writes = AccessFs::from_write(WRITES);
    let create = || -> Result<RulesetCreated, RulesetError> {
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(writes)?
            .set_compatibility(level(Protection::Devices))
            .handle_access(AccessFs::IoctlDev)?
            .set_compatibility(level(Protection::Signals))
            .scope(scope())?
            .create()
    };
    let mut ruleset = create().map_err(io::Error::other)?.set_compatibility(CompatLevel::BestEffort);
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock;
    for root in rules.roots() {
        let directory = PathFd::new(root).map_err(io::Error::other)?;
        let found = fstat(&directory)?;
        if rules.is_replaced(root, (found.st_dev, found.st_ino)) {
            return Err(io::Error::other(format!("cannot write below {}: {REPLACED}", root.display())));
        }
        // Root could create a device that gives access to a disk, past every other rule.
        let rule = PathBeneath::new(directory, (writes | AccessFs::IoctlDev) & !devices);
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
