//! Files that a mount hides or protects while a command runs.
//!
//! A mount is on a file, not on a name: if a process outside renames another file over it, or removes it, the mount is
//! gone and the running command sees the new file. Such a command is terminated at once.
#![expect(clippy::disallowed_methods, reason = "this module compares files of the host")]

use std::{
    collections::BTreeSet,
    fmt, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use tokio::{io::AsyncWrite, task::JoinHandle, time::sleep};

use super::{SandboxGateway, SandboxedEnvironment, mounts, rules::Rules};
use crate::{
    blocking::blocking,
    command::Command,
    error::EnvError,
    local::LocalProcess,
    output::{OutputChunk, OutputStream},
    process::{ExitStatus, Process, ProcessOutput, Signal},
};

/// Interval between checks of the mounted files.
const INTERVAL: Duration = Duration::from_millis(50);

/// Device, inode and time of creation of a file, since inodes are reused; `None` without a file.
type Identity = Option<(u64, u64, Option<SystemTime>)>;

/// Files with their identities, such as the hidden and protected ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HeldMounts(Arc<[(PathBuf, Identity)]>);

/// Hidden and protected paths that were replaced while a command ran.
pub(super) type ReplacedPaths = Arc<Mutex<BTreeSet<PathBuf>>>;

impl HeldMounts {
    /// Records the current files of the rules; blocks briefly.
    pub(super) fn from_rules(rules: &Rules) -> Self {
        let paths = rules.hidden.iter().filter_map(|path| mounts::resolve_existing(path).ok().flatten());
        Self::from_paths(paths.chain(rules.protected.iter().cloned()))
    }

    /// Records the current files of these paths; blocks briefly.
    pub(super) fn from_paths(paths: impl Iterator<Item = PathBuf>) -> Self {
        Self(paths.map(|path| (path.clone(), identity(&path))).collect())
    }

    /// Compares the files when the command has started. Returns them with the placeholders that the start has created, and a path
    /// whose file was replaced meanwhile; blocks briefly.
    pub(super) fn after_start(&self, replaced: &ReplacedPaths) -> (Self, Option<PathBuf>) {
        let mut changed = BTreeSet::new();
        let mut held = Vec::with_capacity(self.0.len());
        for (path, before) in self.0.iter() {
            let now = identity(path);
            if before.is_some() && now != *before {
                changed.insert(path.clone());
            }
            let known = before.or(now);
            if known.is_some() {
                held.push((path.clone(), known));
            }
        }
        let lost = changed.first().cloned();
        record(changed, replaced);
        (Self(held.into()), lost)
    }

    /// Returns the paths whose file was replaced or removed.
    fn replaced(&self) -> BTreeSet<PathBuf> {
        self.0
            .iter()
            .filter(|(path, before)| identity(path) != *before)
            .map(|(path, _)| path.clone())
            .collect()
    }
}

fn identity(path: &Path) -> Identity {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino(), found.created().ok()))
}

/// A command that is ended if a mount of it goes away.
pub(super) struct HeldProcess {
    inner: LocalProcess,
    mounts: HeldMounts,
    replaced: ReplacedPaths,
    /// The path whose mount was lifted first.
    lost: Arc<OnceLock<PathBuf>>,
    watching: JoinHandle<()>,
    /// The command, if the sandbox of the next one is started when this one has ended.
    followed: Option<Box<(SandboxedEnvironment, Command)>>,
    /// The way of the command to some hosts.
    gateway: Option<Arc<dyn SandboxGateway>>,
}

impl HeldProcess {
    /// Watches the mounts of a process, which were these when it started. A process with a lost mount is killed at once.
    pub(super) fn new(
        inner: LocalProcess,
        mounts: HeldMounts,
        replaced: ReplacedPaths,
        lost: Option<PathBuf>,
    ) -> Self {
        let is_lost = lost.is_some();
        let lost: Arc<OnceLock<PathBuf>> = Arc::new(lost.map(OnceLock::from).unwrap_or_default());
        let watching = tokio::spawn({
            let (kill, mounts) = (inner.killer(), mounts.clone());
            let (lost, replaced) = (Arc::clone(&lost), Arc::clone(&replaced));
            async move {
                let kill = Arc::new(kill);
                if !is_lost {
                    sleep(INTERVAL).await;
                }
                loop {
                    let (mounts, replaced) = (mounts.clone(), Arc::clone(&replaced));
                    let (lost, kill) = (Arc::clone(&lost), Arc::clone(&kill));
                    let looked = blocking(move || {
                        if let Some(path) = record_replaced(&mounts, &replaced) {
                            lost.get_or_init(|| path);
                        }
                        if lost.get().is_some() {
                            kill();
                        }
                    });
                    if looked.await.is_err() {
                        // The runtime ends, and the process with it.
                        return;
                    }
                    sleep(INTERVAL).await;
                }
            }
        });
        Self { inner, mounts, replaced, lost, watching, followed: None, gateway: None }
    }

    /// Keeps the gateway of the command. Its notice follows the output.
    pub(super) fn with_gateway(mut self, gateway: Option<Arc<dyn SandboxGateway>>) -> Self {
        self.gateway = gateway;
        self
    }

    /// Starts the sandbox of the next command, which may be like this one, when the process is dropped.
    pub(super) fn followed(mut self, environment: &SandboxedEnvironment, command: &Command) -> Self {
        self.followed = Some(Box::new((environment.clone(), command.clone())));
        self
    }
}

impl fmt::Debug for HeldProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeldProcess").field(&self.inner).finish()
    }
}

/// Records the mounted paths that were replaced, and returns one.
fn record_replaced(mounts: &HeldMounts, replaced: &ReplacedPaths) -> Option<PathBuf> {
    let paths = mounts.replaced();
    let first = paths.first().cloned();
    record(paths, replaced);
    first
}

fn record(paths: BTreeSet<PathBuf>, replaced: &ReplacedPaths) {
    replaced.lock().unwrap_or_else(PoisonError::into_inner).extend(paths);
}

#[async_trait]
impl Process for HeldProcess {
    fn id(&self) -> Option<u32> {
        self.inner.id()
    }

    fn take_stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
        self.inner.take_stdin()
    }

    fn take_output(&mut self) -> Option<Box<dyn ProcessOutput>> {
        let output = HeldOutput {
            inner: self.inner.take_output()?,
            lost: Arc::clone(&self.lost),
            is_reported: false,
            gateway: self.gateway.clone(),
        };
        Some(Box::new(output))
    }

    async fn wait(&mut self) -> Result<ExitStatus, EnvError> {
        let status = self.inner.wait().await?;
        // It may have ended before the next look.
        let (mounts, replaced) = (self.mounts.clone(), Arc::clone(&self.replaced));
        blocking(move || record_replaced(&mounts, &replaced)).await?;
        Ok(status)
    }

    async fn signal(&mut self, signal: Signal) -> Result<(), EnvError> {
        self.inner.signal(signal).await
    }

    async fn jobs(&mut self) -> Result<usize, EnvError> {
        self.inner.jobs().await
    }

    async fn terminate(&mut self, grace: Duration) -> Result<usize, EnvError> {
        self.inner.terminate(grace).await
    }
}

impl Drop for HeldProcess {
    fn drop(&mut self) {
        self.watching.abort();
        if let Some(followed) = self.followed.take() {
            let (environment, command) = *followed;
            environment.start_next(command);
        }
    }
}

/// Output of a command. Its last chunks report why the command was killed, and the hosts that it did not reach.
struct HeldOutput {
    inner: Box<dyn ProcessOutput>,
    lost: Arc<OnceLock<PathBuf>>,
    is_reported: bool,
    gateway: Option<Arc<dyn SandboxGateway>>,
}

#[async_trait]
impl ProcessOutput for HeldOutput {
    async fn next_chunk(&mut self) -> Result<Option<OutputChunk>, EnvError> {
        if let Some(chunk) = self.inner.next_chunk().await? {
            return Ok(Some(chunk));
        }
        if let Some(notice) = self.gateway.take().and_then(|gateway| gateway.notice()) {
            let bytes = format!("\n{}\n", notice.trim_end()).into_bytes();
            return Ok(Some(OutputChunk { stream: OutputStream::Stderr, bytes }));
        }
        let Some(path) = self.lost.get().filter(|_| !self.is_reported) else { return Ok(None) };
        self.is_reported = true;
        let text = format!(
            "\nThe command was killed: a process outside the sandbox replaced {}, which removed its sandbox mount. Run the command again.\n",
            path.display()
        );
        Ok(Some(OutputChunk { stream: OutputStream::Stderr, bytes: text.into_bytes() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        environment::ExecutionEnvironment,
        local::{Launcher, LocalEnvironment},
    };

    #[test]
    fn the_start_of_a_command_is_compared_with_the_files_before() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["kept", "replaced", "removed"] {
            fs::write(at(name), name).unwrap();
        }
        let names = ["kept", "missing", "placeholder", "removed", "replaced"];
        let held = HeldMounts(names.map(|name| (at(name), identity(&at(name)))).into());
        fs::write(at("placeholder"), "").unwrap();
        fs::remove_file(at("removed")).unwrap();
        fs::write(at("new"), "").unwrap();
        fs::rename(at("new"), at("replaced")).unwrap();
        let replaced = ReplacedPaths::default();
        let (held, lost) = held.after_start(&replaced);
        assert_eq!(lost, Some(at("removed")));
        let expected = BTreeSet::from([at("removed"), at("replaced")]);
        assert_eq!(*replaced.lock().unwrap(), expected);
        let paths: Vec<&PathBuf> = held.0.iter().map(|(path, _)| path).collect();
        assert_eq!(paths, [&at("kept"), &at("placeholder"), &at("removed"), &at("replaced")]);
        // They stay lost.
        assert_eq!(held.replaced(), expected);
        assert_eq!(held.after_start(&replaced).1, lost);
    }

    #[tokio::test]
    async fn a_command_that_lost_a_mount_at_its_start_is_killed() {
        let directory = tempfile::tempdir().unwrap();
        let local = LocalEnvironment::builder(directory.path())
            .with_variable("PATH", "/usr/bin:/bin")
            .build()
            .unwrap();
        let process = local.spawn_by(Command::shell("exec sleep 1000"), Launcher::Plain).await.unwrap();
        let lost = directory.path().join("lost");
        // The files are as before by now.
        let mut held =
            HeldProcess::new(process, HeldMounts::default(), ReplacedPaths::default(), Some(lost.clone()));
        assert_eq!(held.wait().await.unwrap(), ExitStatus::Signaled(9));
        let mut output = held.take_output().unwrap();
        let chunk = output.next_chunk().await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&chunk.bytes).contains(lost.to_str().unwrap()), "{chunk:?}");
        drop(held);
        local.cleanup().await.unwrap();
    }
}
