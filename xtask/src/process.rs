//! Runs other programs to completion.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io::{self, BufRead as _, BufReader},
    path::Path,
    process::{Command, ExitCode, ExitStatus, Stdio},
    time::Duration,
};

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::{TimeVal, TimeValLike as _},
};

use crate::failure::{Context as _, Failure};

/// Selection of all packages as they are tested: the command with all that is shipped. Another selection would select other
/// features, and recompile tokio and everything that depends on it.
pub(crate) const EVERYTHING: [&str; 3] = ["--workspace", "--features", "pintle-cli/full"];

/// Copies the executable of this process to `copy`, as a whole or not at all.
pub(crate) fn copy_own_program(copy: &Path) -> Result<(), Failure> {
    // On Linux the kernel's link leads to the executable even if a build has replaced the file.
    let link = Path::new("/proc/self/exe");
    let own = if link.exists() {
        link.to_path_buf()
    } else {
        std::env::current_exe().context("the path of this program is unknown")?
    };
    // A running executable cannot be overwritten, and this process may be the copy.
    let new = copy.with_extension("new");
    std::fs::copy(own, &new)
        .and_then(|_| std::fs::rename(&new, copy))
        .context("this program could not be copied")
}

/// Variable with which the long suites run all of their cases. Tests read it with the crate `pintle-test-conditions`.
pub(crate) const FULL: &str = "PINTLE_TEST_FULL";

/// Returns a command for the cargo that started this program, in `directory`.
pub(crate) fn cargo(directory: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(directory);
    command
}

/// Returns the files below `root` that git tracks, and untracked ones that it does not ignore, sorted. A path may name a file
/// that was deleted.
pub(crate) fn source_files(root: &Path) -> Result<BTreeSet<String>, Failure> {
    let mut list = Command::new("git");
    list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let listed = capture(&mut list)?;
    Ok(listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

/// Runs `command` with the output of this process.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let status =
        command.stdin(Stdio::null()).status().map_err(|cause| cannot_start(command).with_source(cause))?;
    require_success(command, status)
}

/// Runs `command` and returns its standard output. Standard error is inherited.
pub(crate) fn capture(command: &mut Command) -> Result<String, Failure> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|cause| cannot_start(command).with_source(cause))?;
    require_success(command, output.status)?;
    String::from_utf8(output.stdout)
        .with_context(|| format!("the output of `{}` is not UTF-8", line(command)))
}

/// Runs `command`, prints its output and passes each line of it to `on_line`. Standard error joins standard output, in
/// the order of writing.
pub(crate) fn run_with_lines(command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<(), Failure> {
    let no_pipe = |cause: io::Error| Failure::new("a pipe could not be made").with_source(cause);
    let (reader, writer) = io::pipe().map_err(no_pipe)?;
    command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(no_pipe)?).stderr(writer);
    let mut child = command.spawn().map_err(|cause| cannot_start(command).with_source(cause))?;
    // The command keeps both ends for another start, and the output would never end.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut reader = BufReader::new(reader);
    let mut bytes = Vec::new();
    while matches!(reader.read_until(b'\n', &mut bytes), Ok(count) if count > 0) {
        let text = String::from_utf8_lossy(&bytes);
        print!("{text}");
        on_line(text.trim_end());
        bytes.clear();
    }
    let status = child.wait().with_context(|| format!("could not wait for `{}`", line(command)))?;
    require_success(command, status)
}

/// Returns the exit code of a program that this process runs in its place.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Returns the CPU time of this process, or of all child processes that were waited for.
pub(crate) fn cpu_time(who: UsageWho) -> Result<Duration, Failure> {
    let usage = getrusage(who).context("the CPU time is not available")?;
    let micros = |time: TimeVal| u64::try_from(time.num_microseconds()).unwrap_or_default();
    Ok(Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time())))
}

fn require_success(command: &Command, status: ExitStatus) -> Result<(), Failure> {
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("`{}` ended with {status}", line(command))))
}

fn cannot_start(command: &Command) -> Failure {
    Failure::new(format!("`{}` could not be started", line(command)))
}

/// Renders the command as typed in a shell, with the bare name of the program.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut text = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
