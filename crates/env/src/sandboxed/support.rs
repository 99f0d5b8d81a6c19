//! The protections that this machine can enforce.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use tokio::time::Instant;

use super::{SandboxLevel, bubblewrap, landlock};
use crate::{
    blocking::blocking,
    command::{Command, ExecRequest, ExecResult},
    environment::ExecutionEnvironment,
    error::EnvError,
    exec,
    local::LocalEnvironment,
    output::OutputLimits,
};

/// The program that sets up namespaces and mounts.
pub(super) const PROGRAM: &str = "bwrap";

/// Oldest version with all options that are used.
const MINIMUM: (u32, u32) = (0, 5);

/// Landlock version that the level *writes* requires.
const LANDLOCK: u32 = 3;

/// Time-out of each trial.
const TRIAL_LIMIT: Duration = Duration::from_secs(10);

/// Reason why a [`SandboxLevel`] is not available on this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxUnavailable {
    /// The program `bwrap` is in no absolute directory of the `PATH` of commands.
    #[error("bwrap, the program of bubblewrap, was not found on PATH")]
    NoBubblewrap,
    /// The installed bubblewrap lacks options that are needed; 0.5 has them.
    #[error("{found} is too old, bubblewrap 0.5 or newer is needed")]
    BubblewrapTooOld {
        /// Output of `bwrap --version`.
        found: String,
    },
    /// This user may not create user namespaces, by a setting of the kernel or of a security module.
    #[error("user namespaces are not allowed: {message}")]
    NoUserNamespaces {
        /// Message of bubblewrap.
        message: String,
    },
    /// User namespaces work, and another part of the sandbox does not.
    #[error("bubblewrap cannot set up the sandbox: {message}")]
    BubblewrapFailed {
        /// Message of bubblewrap.
        message: String,
    },
    /// The kernel was built or started without Landlock.
    #[error("the kernel has no Landlock")]
    NoLandlock,
    /// The kernel's Landlock cannot keep files from being truncated or moved.
    #[error("Landlock version 3 (Linux 6.2) or newer is needed, the kernel has version {found}")]
    LandlockTooOld {
        /// The version of the kernel.
        found: u32,
    },
}

/// The protections that this machine can enforce, determined by testing.
///
/// ```
/// use pintle_env::{LocalEnvironment, SandboxLevel, SandboxSupport};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// let local = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os())?;
/// let support = SandboxSupport::probe(&local).await?;
/// match support.unavailable(SandboxLevel::Full) {
///     None => println!("all of it"),
///     Some(reason) => println!("no level full: {reason}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SandboxSupport {
    bubblewrap: Option<Bubblewrap>,
    unavailable: BTreeMap<SandboxLevel, SandboxUnavailable>,
    /// Newest Landlock version to use; lower than the kernel's only in tests.
    landlock: u32,
    /// Restored from the record of an earlier probe.
    is_recalled: bool,
}

/// The installed bubblewrap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bubblewrap {
    pub(super) path: PathBuf,
    pub(super) version: String,
}

impl SandboxSupport {
    /// Tests the requirements of a sandbox for commands of `local`: finds bubblewrap on the `PATH`
    /// of commands, sets up namespaces without running anything of the user in them, and asks the
    /// kernel for its version of Landlock.
    ///
    /// Starts up to three short processes in `local`, with a time-out of 10 seconds each. Dropping
    /// the future terminates them.
    ///
    /// # Errors
    ///
    /// [`EnvError::Spawn`] if processes cannot be started at all. A missing feature of the machine
    /// is a result, not an error.
    pub async fn probe(local: &LocalEnvironment) -> Result<Self, EnvError> {
        match probe_bubblewrap(local).await? {
            Ok(bubblewrap) => blocking(|| Self::of_bubblewrap(bubblewrap)).await,
            Err(reason) => blocking(|| Self::of_kernel(None).lacking(SandboxLevel::Full, reason)).await,
        }
    }

    /// Asks the kernel for its version of Landlock; the program works.
    pub(super) fn of_bubblewrap(bubblewrap: Bubblewrap) -> Self {
        Self::of_kernel(Some(bubblewrap))
    }

    fn of_kernel(bubblewrap: Option<Bubblewrap>) -> Self {
        let support =
            Self { bubblewrap, unavailable: BTreeMap::new(), landlock: u32::MAX, is_recalled: false };
        match landlock_unavailable() {
            Some(reason) => support.lacking(SandboxLevel::Writes, reason),
            None => support,
        }
    }

    /// Marks the result as restored from the record of an earlier probe.
    pub(super) fn recalled(mut self) -> Self {
        self.is_recalled = true;
        self
    }

    /// Returns whether the result was restored from the record of an earlier probe.
    pub(super) fn is_recalled(&self) -> bool {
        self.is_recalled
    }

    fn lacking(mut self, level: SandboxLevel, reason: SandboxUnavailable) -> Self {
        self.unavailable.insert(level, reason);
        self
    }

    /// Returns the available levels, the strictest one first.
    #[must_use]
    pub fn levels(&self) -> Vec<SandboxLevel> {
        let levels = [SandboxLevel::Full, SandboxLevel::Writes];
        levels.into_iter().filter(|level| self.unavailable(*level).is_none()).collect()
    }

    /// Returns why a level is not available; `None` if it is.
    #[must_use]
    pub fn unavailable(&self, level: SandboxLevel) -> Option<&SandboxUnavailable> {
        self.unavailable.get(&level)
    }

    /// Returns the version of the installed bubblewrap as it reports it, if the level full is
    /// available.
    #[must_use]
    pub fn bubblewrap_version(&self) -> Option<&str> {
        self.bubblewrap.as_ref().map(|bubblewrap| bubblewrap.version.as_str())
    }

    /// Pretends that a level is not available, for tests of applications.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn without(self, level: SandboxLevel, reason: SandboxUnavailable) -> Self {
        self.lacking(level, reason)
    }

    /// Pretends that the kernel has at most this version of Landlock; 0 means no Landlock. For tests of the resulting
    /// refusals.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn with_landlock(mut self, version: u32) -> Self {
        self.landlock = version;
        match landlock_too_old(version) {
            Some(reason) => self.without(SandboxLevel::Writes, reason),
            None => self,
        }
    }

    pub(super) fn landlock(&self) -> u32 {
        self.landlock
    }

    pub(super) fn bubblewrap(&self) -> Option<&Bubblewrap> {
        self.bubblewrap.as_ref()
    }
}

/// Returns why the level *writes* is not available.
pub(super) fn landlock_unavailable() -> Option<SandboxUnavailable> {
    landlock_too_old(landlock::version())
}

fn landlock_too_old(version: u32) -> Option<SandboxUnavailable> {
    match version {
        0 => Some(SandboxUnavailable::NoLandlock),
        found if found < LANDLOCK => Some(SandboxUnavailable::LandlockTooOld { found }),
        _ => None,
    }
}

async fn probe_bubblewrap(
    local: &LocalEnvironment,
) -> Result<Result<Bubblewrap, SandboxUnavailable>, EnvError> {
    let search_path = local.search_path().cloned().unwrap_or_default();
    let Some(path) = blocking(move || bubblewrap::find(PROGRAM, &search_path)).await? else {
        return Ok(Err(SandboxUnavailable::NoBubblewrap));
    };
    let trial = bubblewrap::trial();
    // No prompt is shown before this.
    let (version, whole) = tokio::try_join!(run(local, &path, &["--version"]), run(local, &path, &trial))?;
    if !version.success() {
        return Ok(Err(SandboxUnavailable::BubblewrapFailed { message: message(&version) }));
    }
    let version = version.stdout.to_text_lossy().unwrap_or_default().trim().to_owned();
    if parse_version(&version).is_none_or(|found| found < MINIMUM) {
        return Ok(Err(SandboxUnavailable::BubblewrapTooOld { found: version }));
    }
    if !whole.success() {
        let least = run(local, &path, &bubblewrap::namespace_trial()).await?;
        return Ok(Err(match least.success() {
            false => SandboxUnavailable::NoUserNamespaces { message: message(&least) },
            true => SandboxUnavailable::BubblewrapFailed { message: message(&whole) },
        }));
    }
    Ok(Ok(Bubblewrap { path, version }))
}

async fn run(local: &LocalEnvironment, path: &PathBuf, arguments: &[&str]) -> Result<ExecResult, EnvError> {
    let started = Instant::now();
    let command = Command::argv(path, arguments).with_working_dir("/");
    let process = local.spawn(command).await?;
    let request = ExecRequest::new("").with_timeout(TRIAL_LIMIT);
    exec::run(process, request, OutputLimits::default(), started).await
}

fn message(result: &ExecResult) -> String {
    let stderr = result.stderr.to_text_lossy().unwrap_or_default();
    stderr.trim().trim_start_matches("bwrap: ").to_owned()
}

/// Parses `bubblewrap 0.8.0`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("bubblewrap ")?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (text, is_enough) in [
            ("bubblewrap 0.8.0", true),
            ("bubblewrap 0.11", true),
            ("bubblewrap 1.0.1", true),
            ("bubblewrap 0.4.1", false),
            ("0.8.0", false),
            ("", false),
        ] {
            assert_eq!(parse_version(text).is_some_and(|found| found >= MINIMUM), is_enough, "{text}");
        }
    }
}
