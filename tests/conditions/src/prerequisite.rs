//! Programs, services and rights that some tests need.

use std::{
    ffi::OsStr,
    fmt,
    process::{Command, Stdio},
};

/// A program, a service or a right that a group of tests needs.
#[derive(Debug)]
pub struct Prerequisite {
    /// Name used in messages.
    name: &'static str,
    /// The tests that are skipped without it.
    tests: &'static str,
    /// How to get it.
    remedy: &'static str,
    /// Returns the reason if it is missing.
    look: fn() -> Result<(), String>,
}

/// A prerequisite that this machine does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    name: &'static str,
    tests: &'static str,
    remedy: &'static str,
    reason: String,
}

/// The strictest level of the sandbox.
pub const BUBBLEWRAP: Prerequisite = Prerequisite {
    name: "bubblewrap",
    tests: "the sandbox at level full; tasks are tested at level writes",
    remedy: "apt-get install bubblewrap, and allow user namespaces",
    look: || {
        let mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "true"];
        succeeds("bwrap", &[&["--unshare-all", "--cap-drop", "ALL"], &mounts[..]].concat())
    },
};

/// The sandbox at level writes, with all of its restrictions.
pub const LANDLOCK: Prerequisite = Prerequisite {
    name: "Landlock",
    tests: "the sandbox at level writes; without both levels, tasks are tested without a sandbox",
    remedy: "use Linux 6.12 or later with Landlock enabled, outside of containers",
    look: landlock,
};

/// Containers of the engine that `cargo xtask services up` starts.
pub const CONTAINERS: Prerequisite = Prerequisite {
    name: "container engine",
    tests: "environments in containers",
    remedy: "eval \"$(cargo xtask services up docker)\"",
    look: || variables(&["DOCKER_HOST", "PINTLE_TEST_IMAGE"]),
};

/// The database that `cargo xtask services up` starts.
pub const POSTGRESQL: Prerequisite = Prerequisite {
    name: "PostgreSQL",
    tests: "the store on PostgreSQL, and sessions that several hosts share",
    remedy: "eval \"$(cargo xtask services up postgres)\"",
    look: || variables(&["PINTLE_TEST_POSTGRES"]),
};

/// The ssh servers that `cargo xtask services up` starts.
pub const SSH_SERVERS: Prerequisite = Prerequisite {
    name: "ssh servers",
    tests: "environments on remote hosts",
    remedy: "eval \"$(cargo xtask services up ssh)\"",
    look: || variables(&["PINTLE_TEST_SSH"]),
};

/// The engine of durable tasks that `cargo xtask services up` starts.
pub const RESTATE: Prerequisite = Prerequisite {
    name: "Restate",
    tests: "durable tasks on Restate",
    remedy: "eval \"$(cargo xtask services up restate)\"",
    look: || variables(&["PINTLE_TEST_RESTATE"]),
};

/// Searches of remote environments with ripgrep.
pub const RIPGREP: Prerequisite = Prerequisite {
    name: "ripgrep",
    tests: "searches of remote environments with ripgrep; they are tested with grep",
    remedy: "apt-get install ripgrep",
    look: || find("rg", REMOTE_PATH.as_ref(), REMOTE_PATH),
};

/// The conversation in a terminal multiplexer.
pub const TMUX: Prerequisite = Prerequisite {
    name: "tmux",
    tests: "the conversation in a terminal multiplexer",
    remedy: "apt-get install tmux",
    look: || program("tmux"),
};

/// Records of system calls.
pub const STRACE: Prerequisite = Prerequisite {
    name: "strace",
    tests: "counts of the system calls of a start and of a command",
    remedy: "apt-get install strace, and allow ptrace",
    look: || {
        let program = ["-f", "--seccomp-bpf", "-e", "trace=execve", "-o", "/dev/null", "true"];
        succeeds("strace", &program)
    },
};

/// Results of real runs of pytest, and tasks of Python projects.
pub const PYTEST: Prerequisite = Prerequisite {
    name: "pytest",
    tests: "results of real runs of pytest, and a task of a Python project",
    remedy: "apt-get install python3-pytest",
    look: || succeeds("pytest", &["--version"]),
};

/// Builds and tasks of Go projects in the sandbox.
pub const GO: Prerequisite = Prerequisite {
    name: "go",
    tests: "builds and a task of Go projects in the sandbox",
    remedy: "apt-get install golang-go",
    look: || program("go"),
};

/// Builds and tasks of npm projects in the sandbox.
pub const NODE: Prerequisite = Prerequisite {
    name: "node and npm",
    tests: "builds and a task of npm projects in the sandbox",
    remedy: "apt-get install nodejs npm",
    look: || program("node").and_then(|()| program("npm")),
};

/// Installations with pip in the sandbox.
pub const VENV: Prerequisite = Prerequisite {
    name: "venv of Python",
    tests: "installations with pip in the sandbox",
    remedy: "apt-get install python3-venv",
    look: || succeeds("python3", &["-c", "import venv, ensurepip"]),
};

/// Requests of HTTP/2 over TLS, with a certificate for the test.
pub const HTTP2_CLIENT: Prerequisite = Prerequisite {
    name: "openssl and curl with HTTP/2",
    tests: "HTTP/2 over TLS of the built command's server",
    remedy: "apt-get install openssl curl",
    look: || succeeds("openssl", &["version"]).and_then(|()| succeeds("curl", &["--http2", "--version"])),
};

/// File systems that a test mounts for itself.
pub const MOUNTS: Prerequisite = Prerequisite {
    name: "mount namespaces",
    tests: "full disks, read-only file systems and directories that are mounted twice",
    remedy: "allow user namespaces, or run the tests as root",
    look: || {
        let line = "mount -t tmpfs -o size=64k pintle-test /mnt";
        succeeds("unshare", &["--map-root-user", "--mount", "sh", "-c", line])
    },
};

/// The rights of root.
pub const ROOT: Prerequisite = Prerequisite {
    name: "root",
    tests: "owners of files, and attacks on the sandbox by root",
    remedy: "run the tests as root",
    look: root,
};

/// The identity of directories.
pub const BIRTH_TIMES: Prerequisite = Prerequisite {
    name: "birth times of files",
    tests: "the identity of a directory that is moved or replaced",
    remedy: "set TMPDIR to a directory on ext4, XFS, Btrfs or tmpfs",
    look: || {
        let created = std::fs::metadata(std::env::temp_dir()).and_then(|directory| directory.created());
        created.map(|_| ()).map_err(|error| error.to_string())
    },
};

/// Extended attributes of files.
pub const EXTENDED_ATTRIBUTES: Prerequisite = Prerequisite {
    name: "extended attributes of files",
    tests: "attributes of a file that is written",
    remedy: "use Linux, and set TMPDIR to a directory on ext4, XFS, Btrfs, or the tmpfs of Linux 6.6",
    look: extended_attributes,
};

/// File changes that the kernel reports.
pub const REPORTED_CHANGES: Prerequisite = Prerequisite {
    name: "reports of file changes",
    tests: "walks that an unchanged workspace saves",
    remedy: "use Linux, and set CARGO_TARGET_DIR to a directory on ext4, XFS, Btrfs, F2FS or tmpfs",
    look: reported_changes,
};

/// All prerequisites, in the order in which they are listed.
pub const ALL: &[&Prerequisite] = &[
    &LANDLOCK,
    &BUBBLEWRAP,
    &MOUNTS,
    &ROOT,
    &BIRTH_TIMES,
    &EXTENDED_ATTRIBUTES,
    &REPORTED_CHANGES,
    &CONTAINERS,
    &SSH_SERVERS,
    &POSTGRESQL,
    &RESTATE,
    &RIPGREP,
    &TMUX,
    &STRACE,
    &PYTEST,
    &GO,
    &NODE,
    &VENV,
    &HTTP2_CLIENT,
];

/// Search path of commands in the remote environments of tests.
const REMOTE_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns the prerequisites that are missing on this machine.
#[must_use]
pub fn missing() -> Vec<Missing> {
    ALL.iter().filter_map(|prerequisite| prerequisite.look().err()).collect()
}

impl Prerequisite {
    /// Returns whether the tests that need it can run.
    ///
    /// # Panics
    ///
    /// If it is missing and the variable `CI` is set: continuous integration skips no tests.
    #[must_use]
    #[track_caller]
    pub fn is_present(&self) -> bool {
        match self.look() {
            Ok(()) => true,
            Err(missing) if std::env::var_os("CI").is_some() => panic!("{missing}"),
            Err(_) => false,
        }
    }

    fn look(&self) -> Result<(), Missing> {
        let Self { name, tests, remedy, look } = *self;
        look().map_err(|reason| Missing { name, tests, remedy, reason })
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, tests, remedy, reason } = self;
        write!(formatter, "missing: {name} ({reason})\n  skipped tests: {tests}\n  to get it:     {remedy}")
    }
}

/// Fails if a variable is not set.
fn variables(names: &[&str]) -> Result<(), String> {
    match names.iter().find(|name| std::env::var_os(name).is_none()) {
        Some(name) => Err(format!("{name} is not set")),
        None => Ok(()),
    }
}

/// Fails if no directory of `PATH` contains the program.
fn program(name: &str) -> Result<(), String> {
    find(name, &std::env::var_os("PATH").unwrap_or_default(), "PATH")
}

/// Fails if no directory of a search path contains the program.
fn find(name: &str, path: &OsStr, path_name: &str) -> Result<(), String> {
    let is_there = std::env::split_paths(path).any(|directory| directory.join(name).is_file());
    if is_there { Ok(()) } else { Err(format!("{name} was not found on {path_name}")) }
}

/// Fails if the program cannot be started or does not succeed.
fn succeeds(name: &str, arguments: &[&str]) -> Result<(), String> {
    program(name)?;
    let output = Command::new(name).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{name} cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(stderr.lines().last().map_or_else(|| format!("{name}: {}", output.status), str::to_owned))
}

/// Fails if the kernel does not enforce all restrictions of the level writes.
#[cfg(target_os = "linux")]
fn landlock() -> Result<(), String> {
    use landlock::{
        ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, Scope,
    };
    use nix::sched::{CloneFlags, unshare};

    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let ruleset = ruleset.handle_access(AccessFs::from_all(ABI::V5));
    let ruleset = ruleset.and_then(|ruleset| ruleset.scope(Scope::from_all(ABI::V6)));
    ruleset.and_then(Ruleset::create).map_err(|error| error.to_string())?;
    // The sandbox starts commands on threads with their own descriptors. Containers may refuse that.
    let thread = std::thread::spawn(|| unshare(CloneFlags::CLONE_FILES | CloneFlags::CLONE_FS));
    let unshared = thread.join().map_err(|_| String::from("the thread panicked"))?;
    unshared.map_err(|errno| format!("a thread cannot have its own descriptors: {errno}"))
}

#[cfg(not(target_os = "linux"))]
fn landlock() -> Result<(), String> {
    Err(String::from("this is not Linux"))
}

/// Fails if files in the directory for temporary files cannot have attributes of the user.
#[cfg(target_os = "linux")]
fn extended_attributes() -> Result<(), String> {
    let mut value = [0_u8; 1];
    match rustix::fs::getxattr(std::env::temp_dir(), "user.pintle-test", value.as_mut_slice()) {
        Ok(_) | Err(rustix::io::Errno::NODATA) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(not(target_os = "linux"))]
fn extended_attributes() -> Result<(), String> {
    Err(String::from("this is not Linux"))
}

#[cfg(target_os = "linux")]
fn reported_changes() -> Result<(), String> {
    const LOCAL_FILE_SYSTEMS: [i128; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let system = rustix::fs::statfs(program).map_err(|error| error.to_string())?;
    match LOCAL_FILE_SYSTEMS.contains(&i128::from(system.f_type)) {
        true => Ok(()),
        false => Err(format!("the file system of the tests has type {:#x}", system.f_type)),
    }
}

#[cfg(not(target_os = "linux"))]
fn reported_changes() -> Result<(), String> {
    Err(String::from("this is not Linux"))
}

#[cfg(target_os = "linux")]
fn root() -> Result<(), String> {
    use std::os::unix::fs::MetadataExt as _;

    match std::fs::metadata("/proc/self") {
        Ok(process) if process.uid() == 0 => Ok(()),
        Ok(process) => Err(format!("the user id is {}", process.uid())),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(not(target_os = "linux"))]
fn root() -> Result<(), String> {
    Err(String::from("this is not Linux"))
}

#[cfg(test)]
mod tests {
    use super::{Prerequisite, missing, program, variables};

    #[test]
    fn a_prerequisite_is_missing_for_tests_and_list_alike() {
        const ABSENT: Prerequisite = Prerequisite {
            name: "a program",
            tests: "its tests",
            remedy: "install it",
            look: || program("pintle-test-no-such-program"),
        };
        assert_eq!(
            ABSENT.look().unwrap_err().to_string(),
            "missing: a program (pintle-test-no-such-program was not found on PATH)\n  \
             skipped tests: its tests\n  to get it:     install it"
        );
        let runs = std::panic::catch_unwind(|| ABSENT.is_present());
        if std::env::var_os("CI").is_some() {
            assert!(runs.is_err(), "continuous integration skips no tests");
        } else {
            assert!(!runs.unwrap());
        }
    }

    #[test]
    fn the_list_has_what_is_not_present() {
        let absent: Vec<String> = missing().iter().map(ToString::to_string).collect();
        for prerequisite in super::ALL {
            let is_listed =
                absent.iter().any(|line| line.starts_with(&format!("missing: {} (", prerequisite.name)));
            assert_eq!(is_listed, prerequisite.look().is_err(), "{}", prerequisite.name);
        }
    }

    #[test]
    fn programs_and_variables_are_looked_for() {
        assert_eq!(program("sh"), Ok(()));
        assert_eq!(variables(&["PATH"]), Ok(()));
        assert_eq!(
            variables(&["PATH", "PINTLE_TEST_NO_SUCH_VARIABLE"]),
            Err("PINTLE_TEST_NO_SUCH_VARIABLE is not set".to_owned())
        );
    }
}
