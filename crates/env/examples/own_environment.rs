//! A complete custom environment: commands run through a launcher, files are local.
//!
//! A launcher is a program that runs another one in a different context: `nice -n 10`, `setpriv
//! --reuid=tester`, `nsenter --target 4711 --mount`, `kubectl exec pod --`. This example is limited
//! to launchers that stay on this machine and see its files; the guide `docs/guide/environment.md`
//! explains what changes otherwise.
#![expect(clippy::disallowed_methods, reason = "an environment owns file operations")]

use std::{
    ffi::OsString,
    io::{self, SeekFrom, Write},
    ops::Range,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use pintle_env::{
    Command, DirEntry, EnvError, ExecRequest, ExecutionEnvironment, FileKind, LocalEnvironment, MAX_ENTRIES,
    MAX_READ, Metadata, Process, Program, shell_arguments,
};
use tokio::{
    fs,
    io::{AsyncReadExt, AsyncSeekExt},
};

/// Runs shell lines.
const SHELL: &str = "/bin/sh";

/// Runs every command through a launcher.
#[derive(Debug)]
pub struct LaunchingEnvironment {
    launcher: Vec<OsString>,
    /// Starts the launcher, and terminates it with all its descendants.
    processes: LocalEnvironment,
    temporary_files: AtomicU64,
}

impl LaunchingEnvironment {
    /// Creates an environment in `directory` with the given variables.
    ///
    /// # Errors
    ///
    /// [`EnvError::InvalidPath`] if the directory is not absolute.
    pub fn new<W: Into<OsString>>(
        launcher: impl IntoIterator<Item = W>,
        directory: &Path,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, EnvError> {
        Ok(Self {
            launcher: launcher.into_iter().map(Into::into).collect(),
            processes: LocalEnvironment::with_host_env(directory, variables)?,
            temporary_files: AtomicU64::new(0),
        })
    }

    /// Returns the command with the launcher in front.
    fn launched(&self, mut command: Command) -> Command {
        let words: Vec<OsString> = match command.program {
            Program::Shell(line) => {
                let arguments = shell_arguments(SHELL, &line);
                std::iter::once(OsString::from(SHELL))
                    .chain(arguments.into_iter().map(OsString::from))
                    .collect()
            }
            Program::Argv { program, arguments } => [program].into_iter().chain(arguments).collect(),
        };
        let mut all = self.launcher.iter().cloned().chain(words);
        let program = all.next().unwrap_or_default();
        command.program = Program::Argv { program, arguments: all.collect() };
        command
    }

    /// Checks that a program exists: a launcher starts successfully even if its program is missing.
    async fn find(&self, program: &OsString, command: &Command) -> Result<(), EnvError> {
        let looking = ["-c", "command -v -- \"$1\" >/dev/null", "sh"].map(OsString::from);
        let mut look = Command::argv(SHELL, looking.into_iter().chain([program.clone()]));
        look.working_dir.clone_from(&command.working_dir);
        look.env.clone_from(&command.env);
        let status = self.processes.spawn(self.launched(look)).await?.wait().await?;
        if status.code() == 0 {
            return Ok(());
        }
        Err(EnvError::Spawn {
            program: program.to_string_lossy().into_owned(),
            source: io::ErrorKind::NotFound.into(),
        })
    }

    /// Returns an unused name beside `path`.
    fn beside(&self, path: &Path) -> PathBuf {
        let number = self.temporary_files.fetch_add(1, Ordering::Relaxed);
        path.with_file_name(format!(".launched-{}-{number}", std::process::id()))
    }
}

#[async_trait]
impl ExecutionEnvironment for LaunchingEnvironment {
    fn working_directory(&self) -> &Path {
        self.processes.working_directory()
    }

    fn platform(&self) -> &str {
        self.processes.platform()
    }

    fn os_version(&self) -> &str {
        self.processes.os_version()
    }

    async fn initialize(&self) -> Result<(), EnvError> {
        self.processes.initialize().await?;
        // Report a broken launcher now instead of with the first command.
        let result = self.exec_command(ExecRequest::new("exit 0")).await?;
        if result.success() {
            return Ok(());
        }
        Err(EnvError::EnvironmentLost { environment: format!("{:?}", self.launcher), source: None })
    }

    async fn cleanup(&self) -> Result<(), EnvError> {
        self.processes.cleanup().await
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        if let Program::Argv { program, .. } = &command.program {
            self.find(program, &command).await?;
        }
        self.processes.spawn(self.launched(command)).await
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        let path = self.resolve(path);
        let failed = |source| EnvError::from_io("read", &path, source);
        // Opening a pipe would wait for a writer.
        let metadata = self.metadata(&path).await?;
        match metadata.kind {
            FileKind::File => {}
            FileKind::Directory => return Err(EnvError::IsADirectory { path }),
            FileKind::Other => return Err(EnvError::NotARegularFile { path }),
        }
        let Range { start, end } = range.unwrap_or(0..u64::MAX);
        // File systems differ in which offsets they refuse.
        if start >= metadata.len {
            return Ok(Vec::new());
        }
        let mut file = fs::File::open(&path).await.map_err(failed)?;
        file.seek(SeekFrom::Start(start)).await.map_err(failed)?;
        let mut bytes = Vec::new();
        let wanted = end.saturating_sub(start).min(MAX_READ + 1);
        file.take(wanted).read_to_end(&mut bytes).await.map_err(failed)?;
        if bytes.len() as u64 > MAX_READ {
            return Err(EnvError::TooLarge { path, limit: MAX_READ });
        }
        Ok(bytes)
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        let path = self.resolve(path);
        let failed = |source| EnvError::from_io("write", &path, source);
        // A link is followed to its target, and an existing file keeps its mode.
        let target = fs::canonicalize(&path).await.unwrap_or_else(|_| path.clone());
        let old = fs::metadata(&target).await.ok();
        match &old {
            Some(old) if old.is_dir() => return Err(EnvError::IsADirectory { path }),
            Some(old) if !old.is_file() => return Err(EnvError::NotARegularFile { path }),
            Some(_) | None => create_parent(&target).await?,
        }
        // Readers see the old or the new content at any time.
        let temporary = self.beside(&target);
        let written = async {
            fs::write(&temporary, bytes).await?;
            if let Some(old) = old {
                fs::set_permissions(&temporary, old.permissions()).await?;
            }
            fs::File::open(&temporary).await?.sync_all().await?;
            fs::rename(&temporary, &target).await
        };
        match written.await {
            Ok(()) => Ok(()),
            Err(error) => {
                let _ = fs::remove_file(&temporary).await;
                Err(failed(error))
            }
        }
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        let path = self.resolve(path);
        let found =
            fs::metadata(&path).await.map_err(|source| EnvError::from_io("look at", &path, source))?;
        let kind = match (found.is_file(), found.is_dir()) {
            (true, _) => FileKind::File,
            (_, true) => FileKind::Directory,
            (false, false) => FileKind::Other,
        };
        let mode = std::os::unix::fs::MetadataExt::mode(&found) & 0o7777;
        Ok(Metadata::new(kind, found.len()).with_modified(found.modified().ok()).with_mode(mode))
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        let path = self.resolve(path);
        let failed = |source| EnvError::from_io("list", &path, source);
        let mut directory = fs::read_dir(&path).await.map_err(failed)?;
        let mut entries = Vec::new();
        while let Some(entry) = directory.next_entry().await.map_err(failed)? {
            if entries.len() == MAX_ENTRIES {
                return Err(EnvError::TooManyEntries { path, limit: MAX_ENTRIES });
            }
            let (name, kind) = (entry.file_name(), entry.file_type().await.map_err(failed)?);
            entries.push(if kind.is_dir() {
                DirEntry::directory(name)
            } else if kind.is_symlink() {
                DirEntry::symlink(name)
            } else if kind.is_file() {
                DirEntry::file(name, entry.metadata().await.map_err(failed)?.len())
            } else {
                DirEntry::other(name)
            });
        }
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(entries)
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        let path = self.resolve(path);
        let failed = |source| EnvError::from_io("remove", &path, source);
        if !fs::symlink_metadata(&path).await.map_err(failed)?.is_dir() {
            return fs::remove_file(&path).await.map_err(failed);
        }
        match fs::remove_dir(&path).await {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                Err(EnvError::IsADirectory { path })
            }
            removed => removed.map_err(failed),
        }
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        let (from, to) = (self.resolve(from), self.resolve(to));
        let failed = |source| EnvError::from_io("rename", &from, source);
        // A missing source must not leave new directories behind.
        fs::symlink_metadata(&from).await.map_err(failed)?;
        if fs::symlink_metadata(&to).await.is_ok_and(|found| found.is_dir()) {
            return Err(EnvError::IsADirectory { path: to });
        }
        create_parent(&to).await?;
        fs::rename(&from, &to).await.map_err(failed)
    }
}

async fn create_parent(path: &Path) -> Result<(), EnvError> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    match fs::create_dir_all(parent).await {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(EnvError::NotADirectory { path: parent.to_path_buf() })
        }
        Err(source) => Err(EnvError::from_io("create", parent, source)),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::temp_dir();
    let environment = LaunchingEnvironment::new(["nice", "-n", "10"], &directory, std::env::vars_os())?;
    environment.initialize().await?;
    let result = environment.exec_command(ExecRequest::new("echo \"nice is $(nice) in $(pwd)\"")).await?;
    io::stdout().write_all(result.stdout.to_text_lossy()?.as_bytes())?;
    environment.cleanup().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keeps_the_contract() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let environment = LaunchingEnvironment::new(["nice", "-n", "5"], &root, std::env::vars_os()).unwrap();
        environment.initialize().await.unwrap();
        pintle_env::contract::all(&environment, &root.join("contract")).await.unwrap();
        environment.cleanup().await.unwrap();
    }
}
