//! This program as a compiler wrapper: it runs the real compiler and logs the time that takes.
//!
//! Cargo runs it as `RUSTC_WRAPPER`, and build scripts run it as `CC`. It measures CPU time, since wall time depends on
//! the load of the machine.

use std::{
    ffi::{OsStr, OsString},
    fs::OpenOptions,
    io::Write as _,
    path::Path,
    process::{Command, ExitCode},
};

use nix::sys::resource::UsageWho;

use crate::{
    failure::{Context as _, Failure},
    process,
};

/// Variable with the path of the log, which gets a line per compiler run. If it is set, this program is a wrapper.
pub(super) const LOG: &str = "PINTLE_WEIGHT_LOG";
/// File name of this program as a wrapper of the C compiler.
pub(super) const CC_NAME: &str = "weight-cc";
/// Variable with the real C compiler.
pub(super) const REAL_CC: &str = "PINTLE_WEIGHT_CC";

/// Runs the real compiler if this process is a wrapper, else returns `None`.
pub(crate) fn run_as_wrapper() -> Option<Result<ExitCode, Failure>> {
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
    let status = Command::new(&compiler)
        .args(&arguments)
        .status()
        .with_context(|| format!("{} could not be started", compiler.display()))?;
    if let Some(unit) = unit_of(&arguments).or_else(unit_of_build_script) {
        let line = format!("{unit} {}\n", process::cpu_time(UsageWho::RUSAGE_CHILDREN)?.as_micros());
        // A single appending write, so that the lines of concurrent compilers do not mix.
        let file = OpenOptions::new().create(true).append(true).open(log);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .context("the log of the compilers could not be written")?;
    }
    Ok(process::exit_code(status))
}

/// Returns the hash in the arguments that cargo passes to rustc: `-C extra-filename=-HASH`.
fn unit_of(arguments: &[OsString]) -> Option<String> {
    arguments
        .iter()
        .find_map(|argument| argument.to_str()?.strip_prefix("extra-filename=-"))
        .map(ToOwned::to_owned)
}

/// Returns the hash of the build script that runs this compiler: `target/debug/build/NAME-HASH/out`.
fn unit_of_build_script() -> Option<String> {
    let out = std::env::var_os("OUT_DIR")?;
    super::check::hash_of(Path::new(&out).parent()?)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::unit_of;

    #[test]
    fn the_hash_of_a_unit_is_in_the_arguments() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
        let line = "--crate-name syn src/lib.rs -C metadata=ff00 -C extra-filename=-0a1b --cap-lints warn";
        assert_eq!(unit_of(&words(line)), Some("0a1b".to_owned()));
        assert_eq!(unit_of(&words("-vV")), None);
    }
}
