//! This program as the linker of a build. It runs the real linker and logs its CPU time.
//!
//! The compiler finds it as `cc` in the first directory of `PATH`, so that no unit of the build differs from one without it.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use nix::sys::resource::UsageWho;

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
    process,
};

/// The name under which compilers look for a linker.
const NAME: &str = "cc";
/// Variable with the path of the log. If it is set and this program is called `cc`, it is the linker.
const LOG: &str = "PINTLE_CI_LINKER_LOG";
/// Variable with `PATH` as it is without this program.
const REAL_PATH: &str = "PINTLE_CI_LINKER_PATH";

/// A directory with this program as `cc`, and the log of its runs.
pub(super) struct LinkerLog {
    directory: PathBuf,
}

impl LinkerLog {
    /// Creates the directory, with an empty log. `program` is this program.
    pub(super) fn create(metadata: &Metadata, program: &Path) -> Result<Self, Failure> {
        let log = Self { directory: metadata.target_directory.join("ci/linker") };
        fs::create_dir_all(&log.directory).context("the directory of the linker could not be created")?;
        fs::write(log.path(), "").context("the log of the linker could not be emptied")?;
        let linker = log.directory.join(NAME);
        if !linker.is_symlink() {
            symlink(program, linker).context("the linker could not be linked")?;
        }
        Ok(log)
    }

    /// Makes the compilers of `build` use this program as their linker.
    pub(super) fn measure<'a>(&self, build: &'a mut Command) -> &'a mut Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let directories = [self.directory.clone()].into_iter().chain(std::env::split_paths(&path));
        if let Ok(with_linker) = std::env::join_paths(directories) {
            build.env("PATH", with_linker).env(REAL_PATH, &path).env(LOG, self.path());
        }
        build
    }

    /// Returns the number of runs and their CPU time.
    pub(super) fn total(&self) -> (usize, Duration) {
        let text = fs::read_to_string(self.path()).unwrap_or_default();
        let micros: Vec<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
        (micros.len(), Duration::from_micros(micros.iter().sum()))
    }

    fn path(&self) -> PathBuf {
        self.directory.join("linker.log")
    }
}

/// Runs the real linker if this process is one, else returns `None`.
pub(crate) fn run_as_linker() -> Option<Result<ExitCode, Failure>> {
    let log = std::env::var_os(LOG)?;
    let mut words = std::env::args_os();
    let own = words.next()?;
    (Path::new(&own).file_name() == Some(OsStr::new(NAME)))
        .then(|| link(Path::new(&log), &words.collect::<Vec<_>>()))
}

fn link(log: &Path, arguments: &[OsString]) -> Result<ExitCode, Failure> {
    let path = std::env::var_os(REAL_PATH).unwrap_or_default();
    let real = std::env::split_paths(&path).map(|directory| directory.join(NAME)).find(|path| path.is_file());
    let real = real.ok_or_else(|| Failure::new("cc was not found on PATH"))?;
    let status = Command::new(&real)
        .args(arguments)
        .env("PATH", &path)
        .status()
        .with_context(|| format!("{} could not be started", real.display()))?;
    // Build scripts compile C with the same program.
    if !arguments.iter().any(|argument| argument == "-c") {
        let line = format!("{}\n", process::cpu_time(UsageWho::RUSAGE_CHILDREN)?.as_micros());
        // A single appending write, so that the lines of concurrent linkers do not mix.
        let file = OpenOptions::new().create(true).append(true).open(log);
        file.and_then(|mut file| file.write_all(line.as_bytes())).context("the log could not be written")?;
    }
    Ok(process::exit_code(status))
}
