//! The level *full*: namespaces and mounts by bubblewrap, and our seccomp filters.
use std::{
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use super::{
    filter,
    mounts::{Mounts, View},
    rules::Rules,
    thread::{self, Descriptors, Inheritance, PreparedProgram},
};
use crate::{
    local::{Invocation, LaunchedProcess, Program},
    variables::TAG_VARIABLE,
};

/// Runs in the sandbox and executes the command. The first argument is the descriptor of the
/// report, the second a descriptor to close.
const SCRIPT: &str = include_str!("start.sh");

/// As [`SCRIPT`], for a command that is not known yet: without the program and its arguments.
pub(super) const WAITING_SCRIPT: &str = include_str!("wait.sh");

/// Shell of the script; every Unix has it.
const SHELL: &str = "/bin/sh";

/// Arguments without a value: namespaces, a separate session (out of reach of the terminal), and no
/// capabilities in the user namespace.
const ISOLATION: [&str; 8] = [
    "--unshare-user",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--new-session",
    "--cap-drop",
    "ALL",
];

/// Settings of the kernel. Root can write to its own files without any capability.
const KERNEL: [&str; 5] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/fs", "/proc/acpi", "/proc/scsi"];

/// Starts a command under the rules.
pub(super) fn spawn(
    bubblewrap: &Path,
    rules: &Rules,
    mounts: &Mounts,
    invocation: &Invocation,
) -> io::Result<LaunchedProcess> {
    thread::spawn(invocation, Inheritance::Report, |descriptors| {
        let mut program = Program { name: bubblewrap.into(), ..Program::default() };
        let inherited = configure(&mut program, SCRIPT, rules, mounts, invocation, descriptors)?;
        program.arguments.push(invocation.program.clone());
        program.arguments.extend_from_slice(&invocation.arguments);
        Ok(PreparedProgram { program, inherited })
    })
}

/// Starts a shell under the rules that waits for its command, which it reads from its standard input.
pub(super) fn spawn_waiting(
    bubblewrap: &Path,
    rules: &Rules,
    mounts: &Mounts,
    invocation: &Invocation,
) -> io::Result<LaunchedProcess> {
    thread::spawn(invocation, Inheritance::Report, |descriptors| {
        let mut program = Program { name: bubblewrap.into(), ..Program::default() };
        let inherited = configure(&mut program, WAITING_SCRIPT, rules, mounts, invocation, descriptors)?;
        Ok(PreparedProgram { program, inherited })
    })
}

/// Adds the arguments up to the arguments of the script. Returns the descriptors that they need.
fn configure(
    program: &mut Program,
    script: &str,
    rules: &Rules,
    mounts: &Mounts,
    invocation: &Invocation,
    descriptors: &Descriptors<'_>,
) -> io::Result<Vec<OwnedFd>> {
    // These two come first, while single digits are free.
    let (info, report) = (descriptors.report()?, descriptors.report()?);
    let mut arguments = Arguments::default();
    arguments.add(ISOLATION.map(OsStr::new));
    if !rules.network {
        arguments.add(["--unshare-net".as_ref()]);
    }
    let mut inherited = mount(&mut arguments, rules, mounts, descriptors)?;
    arguments.add(["--chdir".as_ref(), invocation.directory.as_os_str()]);
    // Not for bubblewrap itself, which is not restricted: some of them make a program load code.
    let tag_name = OsStr::new(TAG_VARIABLE);
    for (name, value) in invocation.variables.iter().filter(|(name, _)| *name != tag_name) {
        arguments.add(["--setenv".as_ref(), name.as_os_str(), value.as_os_str()]);
    }
    // Only the first process of the namespace has the tag. When it is killed, all processes of the command end.
    arguments.add(["--unsetenv".as_ref(), tag_name]);
    let tag = invocation.variables.get_key_value(tag_name);
    program.variables.extend(tag.map(|(name, value)| (name.clone(), value.clone())));
    arguments.add_descriptor("--info-fd", &info);
    for filter in filter::filters(rules)? {
        let filter = descriptors.file(&filter::to_bytes(filter))?;
        arguments.add_descriptor("--add-seccomp-fd", &filter);
        inherited.push(filter);
    }
    let arguments = descriptors.file(&arguments.0)?;
    program.arguments.extend(["--args".into(), number(&arguments)]);
    program.arguments.extend(["--", SHELL, "-c", script, "pintle-sandbox"].map(OsString::from));
    program.arguments.extend([number(&report), number(&info)]);
    inherited.extend([info, report, arguments]);
    Ok(inherited)
}

/// Adds the mounts. Returns the descriptors that they need.
fn mount(
    arguments: &mut Arguments,
    rules: &Rules,
    mounts: &Mounts,
    descriptors: &Descriptors<'_>,
) -> io::Result<Vec<OwnedFd>> {
    let is_root = |path: &Path| path.parent().is_none();
    let root = mounts.iter().find(|(path, _)| is_root(path)).map(|(_, view)| view);
    let bind = if root == Some(View::Writable) { "--bind" } else { "--ro-bind" };
    arguments.add([bind, "/", "/", "--dev", "/dev", "--proc", "/proc"].map(OsStr::new));
    for path in KERNEL {
        arguments.add(["--ro-bind-try", path, path].map(OsStr::new));
    }
    let mut inherited = Vec::new();
    let mut sealed = Vec::new();
    for (path, view) in mounts.iter().filter(|(path, _)| !is_root(path)) {
        let path = path.as_os_str();
        match view {
            View::Writable | View::Pinned => arguments.add(["--bind".as_ref(), path, path]),
            View::ReadOnly | View::Protected => arguments.add(["--ro-bind".as_ref(), path, path]),
            View::Temporary => match &rules.temporary {
                Some(private) => arguments.add(["--bind".as_ref(), private.as_os_str(), path]),
                None => arguments.add(["--perms".as_ref(), "1777".as_ref(), "--tmpfs".as_ref(), path]),
            },
            View::Empty | View::HiddenDirectory => {
                arguments.add(["--tmpfs".as_ref(), path]);
                sealed.push(path);
            }
            View::HiddenFile => {
                let empty = descriptors.file(&[])?;
                arguments.add(["--perms", "0000"].map(OsStr::new));
                arguments.add_descriptor("--ro-bind-data", &empty);
                arguments.add([path]);
                inherited.push(empty);
            }
        }
    }
    // Only now, since directories inside may be mount points.
    for path in sealed {
        arguments.add(["--remount-ro".as_ref(), path]);
    }
    Ok(inherited)
}

/// Arguments in the form of a file: each ends with a zero byte.
#[derive(Default)]
struct Arguments(Vec<u8>);

impl Arguments {
    fn add<'a>(&mut self, arguments: impl IntoIterator<Item = &'a OsStr>) {
        for argument in arguments {
            self.0.extend_from_slice(argument.as_bytes());
            self.0.push(0);
        }
    }

    fn add_descriptor(&mut self, option: &str, descriptor: &OwnedFd) {
        self.add([option.as_ref(), number(descriptor).as_os_str()]);
    }
}

fn number(descriptor: &OwnedFd) -> OsString {
    descriptor.as_raw_fd().to_string().into()
}

/// Returns the arguments of a sandbox in which nothing is writable, to try it out.
pub(super) fn trial() -> Vec<&'static str> {
    let binds = ["--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"];
    let kernel = KERNEL.iter().flat_map(|path| ["--ro-bind-try", path, path]);
    ISOLATION
        .into_iter()
        .chain(binds)
        .chain(kernel)
        .chain(["--tmpfs", "/tmp", "--", SHELL, "-c", ":"])
        .collect()
}

/// Returns the arguments of the least sandbox that needs a user namespace.
pub(super) fn namespace_trial() -> Vec<&'static str> {
    vec!["--unshare-user", "--ro-bind", "/", "/", "--", SHELL, "-c", ":"]
}

/// Returns the first program `name` in the absolute directories of a search path.
pub(super) fn find(name: &str, search_path: &OsStr) -> Option<PathBuf> {
    let directories = std::env::split_paths(search_path).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join(name)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
