//! This program in the place of a compiler: it runs the real one and writes down what that took.
//!
//! Cargo starts it as `RUSTC_WRAPPER`, and build scripts as `CC`. It measures processor time, since the wall says more
//! about what else a machine does.

use std::{
    ffi::{OsStr, OsString},
    fs::OpenOptions,
    io::Write as _,
    path::Path,
    process::{Command, ExitCode},
    time::Duration,
};

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::{TimeVal, TimeValLike as _},
};

use crate::failure::Failure;

/// The file that takes a line for each compiler run. Where it is set, this program is such a wrapper.
pub(super) const LOG: &str = "PINTLE_WEIGHT_LOG";
/// The file name of this program where it stands for a C compiler.
pub(super) const CC_NAME: &str = "weight-cc";
/// The C compiler that it stands for.
pub(super) const REAL_CC: &str = "PINTLE_WEIGHT_CC";

/// Runs the real compiler where this process is a wrapper; else `None`.
pub(crate) fn wrapped() -> Option<Result<ExitCode, Failure>> {
    let log = std::env::var_os(LOG)?;
    Some(compile(Path::new(&log)))
}

fn compile(log: &Path) -> Result<ExitCode, Failure> {
    let mut words = std::env::args_os();
    let own = words.next().unwrap_or_default();
    let compiler = if Path::new(&own).file_name() == Some(OsStr::new(CC_NAME)) {
        std::env::var_os(REAL_CC)
    } else {
        words.next()
    };
    let compiler = compiler.ok_or_else(|| Failure::new("no compiler was named to the wrapper"))?;
    let arguments: Vec<OsString> = words.collect();
    let status = Command::new(&compiler).args(&arguments).status().map_err(|cause| {
        Failure::new(format!("{} could not be started", compiler.display())).because(cause)
    })?;
    if let Some(unit) = unit_of(&arguments).or_else(unit_of_build_script) {
        let line = format!("{unit} {}\n", children()?.as_micros());
        // One write to the end of the file: the lines of compilers that run at once do not mix.
        let file = OpenOptions::new().create(true).append(true).open(log);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(|cause| Failure::new("what a compiler took could not be written").because(cause))?;
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The hash that cargo gives what rustc compiles: `-C extra-filename=-HASH`.
fn unit_of(arguments: &[OsString]) -> Option<String> {
    arguments
        .iter()
        .find_map(|argument| argument.to_str()?.strip_prefix("extra-filename=-"))
        .map(ToOwned::to_owned)
}

/// What a build script compiles counts for the run of the script: `target/debug/build/NAME-HASH/out`.
fn unit_of_build_script() -> Option<String> {
    let out = std::env::var_os("OUT_DIR")?;
    super::check::hash_of(Path::new(&out).parent()?)
}

/// The processor time of all that this process has started and waited for.
fn children() -> Result<Duration, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_err(|cause| Failure::new("the time of a compiler is not known").because(cause))?;
    let micros = |time: TimeVal| u64::try_from(time.num_microseconds()).unwrap_or_default();
    Ok(Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time())))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::unit_of;

    #[test]
    fn a_unit_is_known_by_the_name_of_its_files() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
        let line = "--crate-name syn src/lib.rs -C metadata=ff00 -C extra-filename=-0a1b --cap-lints warn";
        assert_eq!(unit_of(&words(line)), Some("0a1b".to_owned()));
        assert_eq!(unit_of(&words("-vV")), None);
    }
}
