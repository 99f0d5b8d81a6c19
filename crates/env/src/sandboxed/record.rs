//! The probe result of a machine, stored for the next run of an application.

use std::{
    io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
};

use super::{
    bubblewrap,
    support::{Bubblewrap, PROGRAM, SandboxSupport},
};
use crate::{blocking::blocking, error::EnvError, local::LocalEnvironment};

/// Changes with each start of the kernel.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

impl SandboxSupport {
    /// Returns a line of text with which [`recall`](Self::recall) can skip the trials in a later
    /// run; `None` if the level full is not available, or its program is gone.
    ///
    /// # Errors
    ///
    /// [`EnvError::EnvironmentLost`] if the asynchronous runtime is shut down.
    pub async fn record(&self) -> Result<Option<String>, EnvError> {
        let Some(Bubblewrap { path, version }) = self.bubblewrap().cloned() else { return Ok(None) };
        blocking(move || Some(format!("{} {version}", identity(&path).ok()?))).await
    }

    /// Restores an earlier result of [`probe`](Self::probe), without starting a process. Returns `None` if a new probe
    /// is needed: the record is invalid, the machine has been rebooted since, or bubblewrap is elsewhere or another
    /// file.
    ///
    /// A setting of the kernel that has changed since is not noticed here, nor by
    /// [`initialize`](crate::ExecutionEnvironment::initialize), which tries no sandbox with a restored result. Commands do not
    /// start then, and [`SandboxedEnvironment::failure`](crate::SandboxedEnvironment::failure) has the reason: remove the
    /// record. A forged record has no other effect either.
    ///
    /// # Errors
    ///
    /// [`EnvError::EnvironmentLost`] if the asynchronous runtime is shut down.
    pub async fn recall(local: &LocalEnvironment, record: &str) -> Result<Option<Self>, EnvError> {
        let search_path = local.search_path().cloned().unwrap_or_default();
        let record = record.to_owned();
        blocking(move || {
            let path = bubblewrap::find(PROGRAM, &search_path)?;
            let version = record.strip_prefix(&identity(&path).ok()?)?.strip_prefix(' ')?.to_owned();
            Some(Self::of_bubblewrap(Bubblewrap { path, version }).recalled())
        })
        .await
    }
}

/// Identifies a program in its current state, until the machine is rebooted.
fn identity(path: &Path) -> io::Result<String> {
    #[expect(clippy::disallowed_methods, reason = "a file of the kernel, of no environment")]
    let boot = std::fs::read_to_string(BOOT)?;
    let found = path.metadata()?;
    let changed =
        [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()].map(|n| n.to_string());
    // A path may hold any byte, and the record is one line of text.
    let path: String = path.as_os_str().as_bytes().escape_ascii().to_string();
    let changed = changed.join(".");
    Ok(format!("{} {path} {}:{} {changed} {}", boot.trim(), found.dev(), found.ino(), found.size()))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test installs and removes a program")]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;
    use crate::sandboxed::SandboxLevel;

    /// Installs a program that is not executed.
    fn install(directory: &Path) -> Bubblewrap {
        let path = directory.join(PROGRAM);
        fs::write(&path, "#!/bin/false").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Bubblewrap { path, version: "bubblewrap 0.8.0".to_owned() }
    }

    #[tokio::test]
    async fn what_was_found_out_holds_until_something_changes() {
        let directory = tempfile::tempdir().unwrap();
        let local = LocalEnvironment::builder(directory.path())
            .with_variable("PATH", directory.path())
            .build()
            .unwrap();
        let recall = async |record: &str| SandboxSupport::recall(&local, record).await.unwrap();

        let support = SandboxSupport::of_bubblewrap(install(directory.path()));
        let record = support.record().await.unwrap().unwrap();
        assert!(!record.contains('\n'), "{record}");
        let recalled = recall(&record).await.unwrap();
        assert_eq!(recalled.bubblewrap(), support.bubblewrap());
        assert_eq!(recalled.unavailable(SandboxLevel::Full), None);

        for other in ["", "nonsense", &format!("0{record}"), record.split_once(' ').unwrap().1] {
            assert!(recall(other).await.is_none(), "{other}");
        }
        fs::write(directory.path().join(PROGRAM), "#!/bin/true").unwrap();
        assert!(recall(&record).await.is_none());
        fs::remove_file(directory.path().join(PROGRAM)).unwrap();
        assert!(recall(&record).await.is_none());
    }
}
