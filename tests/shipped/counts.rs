//! Counts of the programs, syncs and file system calls of a start and of a command.
//!
//! They depend neither on time nor on load, so they fail when a later change adds one. The limits are the current counts:
//! a change that needs fewer lowers them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::call_log::CallLog;
use super::user::User;

/// Counts of one part of a run, of `pintle` and of the programs that it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Sandboxes, each of which is one run of bubblewrap.
    sandboxes: usize,
    /// All programs, without `pintle` itself.
    programs: usize,
    /// Waits for the disk.
    syncs: usize,
    /// System calls with a path. A path that is resolved link by link counts once, at any depth.
    paths: usize,
}

/// From the start to the first byte of the first request, in a repository where a session was before.
const START: Counts = Counts { sandboxes: 1, programs: 9, syncs: 5, paths: 4_400 };

/// Runs of git until then.
const GIT_AT_START: usize = 2;

/// From one request to the next, with the command `true` in between. The path calls include the calls of bubblewrap. The
/// sandbox of the next command is started when a command has ended, before the next request or after it.
const COMMAND: Counts = Counts { sandboxes: 1, programs: 3, syncs: 2, paths: 1_400 };

/// Commands of a counted run. The first one also creates files of the session, so it is not counted.
const COMMANDS: usize = 3;

/// Directories of a project in which commands change nothing.
const DIRECTORIES: usize = 400;

/// System calls that list a directory: the second one finds its end.
const CALLS_PER_LISTING: usize = 2;

/// Traced system calls: the counted ones, and those that send a request.
const COUNTED_CALLS: &str = "%file,fsync,fdatasync,sendto,writev,write";
const LISTING_CALLS: &str = "execve,getdents64,sendto,writev,write";

const TEXT: &str = "[[turn]]\ntext = \"Done.\"\n";

/// Returns turns with one command each, and a text.
fn turns_with_commands() -> String {
    let call = "[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = { command = \"true\" }\n";
    call.repeat(COMMANDS) + TEXT
}

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self {
            sandboxes: self.sandboxes + other.sandboxes,
            programs: self.programs + other.programs,
            syncs: self.syncs + other.syncs,
            paths: self.paths + other.paths,
        }
    }

    /// Checks that no count is above its limit.
    #[track_caller]
    fn require_at_most(self, limit: Self, part: &str) {
        let Self { sandboxes, programs, syncs, paths } = self;
        for (name, count, most) in [
            ("sandboxes", sandboxes, limit.sandboxes),
            ("programs", programs, limit.programs),
            ("syncs", syncs, limit.syncs),
            ("path calls", paths, limit.paths),
        ] {
            assert!(count <= most, "{part}: {count} {name}, of at most {most} ({self:?})");
        }
    }
}

/// Installs a program that appends its name to the log, before it runs the real one.
fn install_logged(user: &User, name: &str, log: &Path) {
    let search_path = std::env::var_os("PATH").unwrap();
    let mut candidates = std::env::split_paths(&search_path).map(|directory| directory.join(name));
    let real = candidates.find(|path| path.is_file()).unwrap();
    let text = format!("#!/bin/sh\necho {name} >>'{}'\nexec '{}' \"$@\"\n", log.display(), real.display());
    let source = user.at(&format!("{name}.sh"));
    std::fs::write(&source, text).unwrap();
    std::fs::create_dir_all(user.at("bin")).unwrap();
    // Written by another process: one that this process starts meanwhile cannot hold it open.
    let mut install = Command::new("install");
    assert!(install.arg("-m755").arg(&source).arg(user.at("bin").join(name)).status().unwrap().success());
}

/// Returns how often each of the names was started by a run.
fn logged_starts(user: &User, log: &CallLog, names: [&str; 2]) -> [usize; 2] {
    let inherited = std::env::var("PATH").unwrap();
    let search_path = format!("{}:{inherited}", user.at("bin").display());
    let (output, starts) = log.record(|| user.run_command("Go").env("PATH", search_path).output().unwrap());
    assert!(output.status.success(), "{output:?}");
    names.map(|name| starts.iter().filter(|line| *line == name).count())
}

#[test]
fn a_start_and_a_command_run_few_sandboxes_and_git_processes() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(TEXT);
    let log = CallLog::create(user.at("starts"));
    for name in ["bwrap", "git"] {
        install_logged(&user, name, log.path());
    }
    // The first run on a machine also probes its sandbox.
    logged_starts(&user, &log, ["bwrap", "git"]);
    let [sandboxes, git] = logged_starts(&user, &log, ["bwrap", "git"]);
    assert!((1..=START.sandboxes).contains(&sandboxes), "{sandboxes} sandboxes at the start");
    assert!((1..=GIT_AT_START).contains(&git), "{git} git processes at the start");
    let user = user.with_turns(&turns_with_commands());
    let [of_commands, git_of_commands] = logged_starts(&user, &log, ["bwrap", "git"]);
    // The last one is started ahead for a command that does not come.
    let most = START.sandboxes + (COMMANDS + 1) * COMMAND.sandboxes;
    assert!((COMMANDS..=most).contains(&of_commands), "{of_commands} sandboxes for {COMMANDS} commands");
    assert_eq!(git_of_commands, git, "a command runs git");
}

#[test]
fn a_start_and_a_command_make_few_syncs_and_system_calls() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() || !pintle_test_conditions::STRACE.is_present() {
        return;
    }
    let user = User::new(TEXT);
    user.run("Go");
    let user = user.with_turns(&turns_with_commands());
    let trace = traced(&user, user.at("trace"), COUNTED_CALLS);
    let parts = counts_between_requests(&trace);
    let [start, _, commands @ .., _] = parts.as_slice() else { panic!("{parts:?}") };
    assert_eq!(commands.len(), COMMANDS - 1, "{parts:?}");
    assert!(start.sandboxes > 0 && start.syncs > 0, "{start:?}");
    start.require_at_most(START, "start");
    let mut sum = Counts::default();
    for command in commands {
        assert!(command.syncs > 0, "{command:?}");
        sum = sum.plus(*command);
    }
    assert!(sum.sandboxes > 0, "{parts:?}");
    let limit = commands.iter().fold(Counts::default(), |limit, _| limit.plus(COMMAND));
    // Parts may have the start of a sandbox before the first one, or after the last one.
    let ahead = Counts { syncs: 0, ..COMMAND };
    sum.require_at_most(limit.plus(ahead), "commands");
}

/// The watch and two checkpoints of a command walk the project. In an unchanged project, they use an earlier walk.
#[test]
fn commands_that_change_nothing_do_not_list_the_project() {
    let needed = [
        &pintle_test_conditions::BUBBLEWRAP,
        &pintle_test_conditions::STRACE,
        &pintle_test_conditions::REPORTED_CHANGES,
    ];
    if !needed.iter().all(|needed| needed.is_present()) {
        return;
    }
    let user = User::new(TEXT);
    for number in 0..DIRECTORIES {
        std::fs::create_dir(user.project().join(format!("directory-{number}"))).unwrap();
    }
    user.run("Go");
    let user = user.with_turns(&turns_with_commands());
    let trace = traced(&user, user.at("trace"), LISTING_CALLS);
    let parts = counts_between_requests(&trace);
    let [_, first, commands @ .., last] = parts.as_slice() else { panic!("{parts:?}") };
    let walk = DIRECTORIES * CALLS_PER_LISTING;
    assert!(first.paths > walk && last.paths > walk, "{parts:?}");
    // The project is younger than two seconds, so one of them may repeat the walk.
    let listed: usize = commands.iter().map(|command| command.paths).sum();
    assert!(listed < 2 * walk, "{parts:?}");
}

/// Runs a turn while strace records some system calls, and returns the record.
fn traced(user: &User, log: PathBuf, calls: &str) -> String {
    let run = user.run_command("Go");
    let mut strace = Command::new("strace");
    strace.args(["-f", "--seccomp-bpf", "-s", "16", "-e", &format!("trace={calls}")]);
    strace.arg("-o").arg(&log).arg(run.get_program()).args(run.get_args());
    strace.current_dir(user.project()).env_clear();
    strace.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = strace.stdin(std::process::Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&std::fs::read(log).unwrap()).into_owned()
}

/// Returns the counts before the first request, between each two requests, and after the last one.
fn counts_between_requests(trace: &str) -> Vec<Counts> {
    let mut parts = vec![Counts::default()];
    let mut lines = trace.lines();
    // The first line is the start of `pintle`.
    assert!(lines.next().is_some_and(|line| line.contains("execve(")), "{trace}");
    for line in lines {
        if line.contains("\"POST /") {
            parts.push(Counts::default());
        } else if let Some(part) = parts.last_mut() {
            count(line, part);
        }
    }
    parts
}

/// Adds a line of strace: `PID NAME(ARGUMENTS) = RESULT`. A call that another one interrupts is in two lines, the second
/// one with `<... NAME resumed>`.
fn count(line: &str, counts: &mut Counts) {
    let Some((_, call)) = line.split_once(' ') else { return };
    let call = call.trim_start();
    if line.contains("execve") && line.trim_end().ends_with("= 0") {
        counts.programs += 1;
    }
    let Some((name, arguments)) = call.split_once('(') else { return };
    match name {
        "fsync" | "fdatasync" => counts.syncs += 1,
        "readlink" | "readlinkat" => counts.paths += usize::from(is_first_of_path(arguments)),
        "sendto" | "writev" | "write" => {}
        "execve" => {
            counts.paths += 1;
            counts.sandboxes += usize::from(runs_bubblewrap(line, arguments));
        }
        name if name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_') => {
            counts.paths += 1;
        }
        _ => {}
    }
}

/// Returns whether the call starts bubblewrap. A search of the path tries directories that do not have it.
fn runs_bubblewrap(line: &str, arguments: &str) -> bool {
    let program = arguments.trim_start_matches('"').split('"').next().unwrap_or_default();
    program.ends_with("/bwrap") && !line.contains("= -1 ")
}

/// Returns whether the path has one component: resolving a path reads its first component, then the first two, and so on.
fn is_first_of_path(arguments: &str) -> bool {
    let path = arguments.trim_start_matches("AT_FDCWD, ").trim_start_matches('"');
    let path = path.split('"').next().unwrap_or_default();
    path.strip_prefix('/').is_some_and(|rest| !rest.contains('/'))
}

#[test]
fn a_trace_is_counted_by_part() {
    let trace = "\
10    execve(\"/t/pintle\", [\"pintle\", \"run\"], 0x1 /* 4 vars */) = 0
10    access(\"/etc/ld.so.preload\", R_OK) = -1 ENOENT (No such file or directory)
11    readlink(\"/user\", 0x1, 1023)     = -1 EINVAL (Invalid argument)
11    readlink(\"/user/work\", 0x1, 1023) = -1 EINVAL (Invalid argument)
12    execve(\"/bin/bwrap\", [\"bwrap\"], 0x1 /* 4 vars */) = -1 ENOENT (No such file or directory)
12    execve(\"/usr/bin/bwrap\", [\"bwrap\"], 0x1 /* 4 vars */ <unfinished ...>
11    fdatasync(11 <unfinished ...>
12    <... execve resumed>)             = 0
11    <... fdatasync resumed>)          = 0
12    +++ exited with 0 +++
10    writev(16, [{iov_base=\"POST /v1/message\"..., iov_len=235}], 1) = 235
10    fsync(12)                         = 0
10    --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=12} ---
";
    let start = Counts { sandboxes: 1, programs: 1, syncs: 1, paths: 4 };
    let rest = Counts { syncs: 1, ..Counts::default() };
    assert_eq!(counts_between_requests(trace), [start, rest]);
}
