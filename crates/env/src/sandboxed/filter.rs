//! Refuses system calls by seccomp filters.

use std::{collections::BTreeMap, io};

use nix::libc;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use super::{SandboxLevel, rules::Rules};

/// Mask of the socket type without its flags.
const SOCKET_TYPE: u64 = 0xf;

/// Bit that marks system calls of the x32 mode of an x86-64 kernel.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// System calls that are always refused. io_uring can do what other calls are refused for, the
/// keyrings of a user belong to no namespace, and with the others root could change the kernel or
/// pass by every rule about paths.
const ALWAYS: [libc::c_long; 18] = [
    libc::SYS_io_uring_setup,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_open_by_handle_at,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_clock_settime,
    libc::SYS_settimeofday,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
];

/// System calls for shared memory, semaphores and message queues. Without an IPC namespace these are the host's, and an id does
/// not identify the owner.
const IPC_CALLS: [libc::c_long; 14] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// System calls that change the scheduling or the memory of the process in their first argument, where 0 is the caller.
const PROCESS_CALLS: [libc::c_long; 6] = [
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// Argument that selects all processes of a user: `PRIO_USER` of `setpriority` and `IOPRIO_WHO_USER` of `ioprio_set`.
const USER_WIDE_CALLS: [(libc::c_long, u64); 2] = [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];

/// Requests that type into a terminal: `TIOCSTI` and `TIOCLINUX`, the same on all architectures that
/// have filters here. The type of the constants in `libc` depends on the C library.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// Refused calls and their conditions: any of the rules is enough, and none means always.
type RefusedCalls = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters of a command; all of them apply.
pub(super) type Filters = [BpfProgram; 2];

/// Returns the filters of a command. They are compiled once for the rules.
pub(super) fn filters(rules: &Rules) -> io::Result<&Filters> {
    if let Some(filters) = rules.filters.get() {
        return Ok(filters);
    }
    let compiled = compile_all(rules)?;
    Ok(rules.filters.get_or_init(|| compiled))
}

fn compile_all(rules: &Rules) -> io::Result<Filters> {
    let programs = || -> Result<Filters, BackendError> {
        let mut refused: RefusedCalls = ALWAYS.iter().map(|call| (*call, Vec::new())).collect();
        refuse_namespaces(&mut refused)?;
        refuse_typing(&mut refused)?;
        refuse_sockets(rules, &mut refused)?;
        if rules.level == SandboxLevel::Writes {
            refuse_other_processes(&mut refused)?;
        }
        // The flags of this call are in memory, which no filter sees. Libraries fall back on the
        // older one if the kernel does not know it.
        let unknown = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
        Ok([compile(refused, libc::EACCES)?, compile(unknown, libc::ENOSYS)?])
    };
    programs().map_err(io::Error::other)
}

/// Applies the filters to this thread and the processes that it starts.
pub(super) fn apply(rules: &Rules) -> io::Result<()> {
    for program in filters(rules)? {
        seccompiler::apply_filter(program).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Returns a filter in the form of the kernel's `struct sock_filter`.
pub(super) fn to_bytes(program: &BpfProgram) -> Vec<u8> {
    let bytes = program.iter().flat_map(|one| {
        let [code_low, code_high] = one.code.to_ne_bytes();
        let [first, second, third, fourth] = one.k.to_ne_bytes();
        [code_low, code_high, one.jt, one.jf, first, second, third, fourth]
    });
    bytes.collect()
}

fn compile(mut refused: RefusedCalls, errno: libc::c_int) -> Result<BpfProgram, BackendError> {
    #[cfg(target_arch = "x86_64")]
    for (number, conditions) in refused.clone() {
        refused.insert(number | X32, conditions);
    }
    let errno = SeccompAction::Errno(errno.unsigned_abs());
    // A system call of another architecture kills the process: its numbers have other meanings.
    SeccompFilter::new(refused, SeccompAction::Allow, errno, std::env::consts::ARCH.try_into()?)?.try_into()
}

/// Refuses new user namespaces, in which a process has privileges that it does not have here.
fn refuse_namespaces(refused: &mut RefusedCalls) -> Result<(), BackendError> {
    let user = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        refused.insert(call, vec![rule([argument(0, SeccompCmpOp::MaskedEq(user), user)?])?]);
    }
    Ok(())
}

fn refuse_typing(refused: &mut RefusedCalls) -> Result<(), BackendError> {
    let typing = TYPING.iter().map(|request| rule([argument(1, SeccompCmpOp::Eq, *request)?]));
    refused.insert(libc::SYS_ioctl, typing.collect::<Result<_, _>>()?);
    Ok(())
}

/// Refuses changes of other processes of the same user, which are visible without a PID namespace.
fn refuse_other_processes(refused: &mut RefusedCalls) -> Result<(), BackendError> {
    refused.extend(IPC_CALLS.iter().map(|call| (*call, Vec::new())));
    for call in PROCESS_CALLS {
        refused.insert(call, vec![rule([argument(0, SeccompCmpOp::Ne, 0)?])?]);
    }
    for (call, user) in USER_WIDE_CALLS {
        let other = rule([argument(1, SeccompCmpOp::Ne, 0)?])?;
        refused.insert(call, vec![other, rule([argument(0, SeccompCmpOp::Eq, user)?])?]);
    }
    // Limits of another process may be read.
    let new_limit = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let other = rule([argument(0, SeccompCmpOp::Ne, 0)?, new_limit])?;
    refused.insert(libc::SYS_prlimit64, vec![other]);
    Ok(())
}

fn refuse_sockets(rules: &Rules, refused: &mut RefusedCalls) -> Result<(), BackendError> {
    let Some(families) = allowed_families(rules) else {
        return Ok(());
    };
    if !rules.unix_sockets {
        // One end of a datagram pair can send to any address; a stream is tied to its other end.
        let is_datagram = SeccompCmpOp::MaskedEq(SOCKET_TYPE);
        let pair = rule([argument(1, is_datagram, libc::SOCK_DGRAM.unsigned_abs().into())?])?;
        refused.insert(libc::SYS_socketpair, vec![pair]);
    }
    let others: Vec<_> = families
        .iter()
        .map(|family| argument(0, SeccompCmpOp::Ne, family.unsigned_abs().into()))
        .collect::<Result<_, _>>()?;
    let mut sockets = Vec::new();
    if !others.is_empty() {
        sockets.push(SeccompRule::new(others)?);
    }
    if families.contains(&libc::AF_NETLINK) {
        // Only the protocol that lists interfaces and routes.
        let netlink = argument(0, SeccompCmpOp::Eq, libc::AF_NETLINK.unsigned_abs().into())?;
        let other = argument(2, SeccompCmpOp::Ne, libc::NETLINK_ROUTE.unsigned_abs().into())?;
        sockets.push(rule([netlink, other])?);
    }
    refused.insert(libc::SYS_socket, sockets);
    Ok(())
}

/// Returns the families of sockets that commands may open; `None` for all.
fn allowed_families(rules: &Rules) -> Option<Vec<libc::c_int>> {
    let unix = rules.unix_sockets.then_some(libc::AF_UNIX);
    match rules.level {
        // The host's network, or one that leads nowhere.
        SandboxLevel::Full => {
            let network = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
            Some(network.into_iter().chain(unix).collect())
        }
        SandboxLevel::Writes if rules.network => None,
        SandboxLevel::Writes => Some(unix.into_iter().collect()),
    }
}

fn argument(index: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)
}

fn rule<const N: usize>(conditions: [SeccompCondition; N]) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into())
}
