//! Execution environment of a subagent that works in a subdirectory.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::{
    Command, DirEntry, EnvError, ExecRequest, ExecResult, ExecutionEnvironment, FileContent, GlobRequest,
    GrepOutput, GrepRequest, Metadata, Process, ReadLimits, WalkOutput, WalkRequest, forward,
};

/// The parent's environment with another working directory, from which relative paths are resolved. Files and processes
/// are the same; nothing is confined to the directory.
#[derive(Clone, Debug)]
pub(super) struct Subdirectory {
    inner: Arc<dyn ExecutionEnvironment>,
    directory: PathBuf,
}

impl Subdirectory {
    /// Wraps `inner` with `directory` as its working directory. With links resolved, it must be inside the working
    /// directory of `inner`.
    ///
    /// # Errors
    ///
    /// [`EnvError::Refused`] for a directory outside, [`EnvError::NotADirectory`] for a file, and any error of the
    /// lookup.
    pub(super) async fn enter(
        inner: Arc<dyn ExecutionEnvironment>,
        directory: &str,
    ) -> Result<Arc<dyn ExecutionEnvironment>, EnvError> {
        let parent = canonical(inner.as_ref(), inner.working_directory()).await?;
        let path = inner.resolve(Path::new(directory));
        let directory = canonical(inner.as_ref(), &path).await?;
        if !directory.starts_with(&parent) {
            return Err(EnvError::Refused {
                operation: format!("working in {}", path.display()),
                reason: format!("it is not below {}", inner.working_directory().display()),
            });
        }
        if !inner.metadata(&directory).await?.is_dir() {
            return Err(EnvError::NotADirectory { path });
        }
        Ok(Arc::new(Self { inner, directory }))
    }
}

/// Resolves links. In an environment without link resolution, the path counts as free of links.
async fn canonical(env: &dyn ExecutionEnvironment, path: &Path) -> Result<PathBuf, EnvError> {
    match env.canonicalize(path).await {
        Err(EnvError::Unsupported { .. }) => Ok(env.resolve(path)),
        found => found,
    }
}

#[async_trait]
impl ExecutionEnvironment for Subdirectory {
    forward! { inner: home_directory, platform, os_version, initialize, cleanup, output_limits, command_limits }

    fn working_directory(&self) -> &Path {
        &self.directory
    }

    fn resolve(&self, path: &Path) -> PathBuf {
        // The parent's environment knows the home directory and the directory of temporary files.
        match path.starts_with("~") && self.home_directory().is_some() {
            true => self.inner.resolve(path),
            false => self.inner.resolve(&self.directory.join(path)),
        }
    }

    fn outside_sandbox(&self) -> Option<Arc<dyn ExecutionEnvironment>> {
        let inner = self.inner.outside_sandbox()?;
        Some(Arc::new(Self { inner, directory: self.directory.clone() }))
    }

    async fn hold(&self, paths: &[PathBuf]) -> Result<Option<Arc<dyn ExecutionEnvironment>>, EnvError> {
        let paths: Vec<_> = paths.iter().map(|path| self.resolve(path)).collect();
        let held = self.inner.hold(&paths).await?;
        Ok(held.map(|inner| Arc::new(Self { inner, directory: self.directory.clone() }) as _))
    }

    async fn spawn(&self, mut command: Command) -> Result<Box<dyn Process>, EnvError> {
        command.working_dir = Some(self.resolve_or_default(command.working_dir));
        self.inner.spawn(command).await
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        self.inner.read(&self.resolve(path), range).await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        self.inner.write(&self.resolve(path), bytes).await
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        self.inner.metadata(&self.resolve(path)).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        self.inner.list(&self.resolve(path)).await
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        self.inner.remove(&self.resolve(path)).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        self.inner.rename(&self.resolve(from), &self.resolve(to)).await
    }

    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        self.inner.canonicalize(&self.resolve(path)).await
    }

    async fn canonicalize_many(&self, paths: &[PathBuf]) -> Result<Vec<Result<PathBuf, EnvError>>, EnvError> {
        let paths: Vec<_> = paths.iter().map(|path| self.resolve(path)).collect();
        self.inner.canonicalize_many(&paths).await
    }

    async fn exec_command(&self, mut request: ExecRequest) -> Result<ExecResult, EnvError> {
        request.working_dir = Some(self.resolve_or_default(request.working_dir));
        self.inner.exec_command(request).await
    }

    async fn read_file(
        &self,
        path: &Path,
        offset: Option<usize>,
        limit: Option<usize>,
    ) -> Result<String, EnvError> {
        self.inner.read_file(&self.resolve(path), offset, limit).await
    }

    async fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        self.inner.create_directory(&self.resolve(path)).await
    }

    async fn create_symlink(&self, path: &Path, target: &Path) -> Result<(), EnvError> {
        self.inner.create_symlink(&self.resolve(path), target).await
    }

    async fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        self.inner.set_mode(&self.resolve(path), mode).await
    }

    async fn walk(&self, request: &WalkRequest) -> Result<WalkOutput, EnvError> {
        let root = self.resolve(&request.root);
        self.inner.walk(&request.clone().with_root(root)).await
    }

    async fn read_many(&self, paths: &[PathBuf], limits: ReadLimits) -> Result<Vec<FileContent>, EnvError> {
        let paths: Vec<_> = paths.iter().map(|path| self.resolve(path)).collect();
        self.inner.read_many(&paths, limits).await
    }

    async fn find_files(&self, request: &GlobRequest) -> Result<Vec<PathBuf>, EnvError> {
        let path = self.resolve_or_default(request.path.clone());
        self.inner.find_files(&request.clone().with_path(path)).await
    }

    async fn grep(&self, request: &GrepRequest) -> Result<GrepOutput, EnvError> {
        let path = self.resolve_or_default(request.path.clone());
        self.inner.grep(&request.clone().with_path(path)).await
    }
}

impl Subdirectory {
    /// Resolves a path that defaults to the working directory.
    fn resolve_or_default(&self, path: Option<PathBuf>) -> PathBuf {
        path.map_or_else(|| self.directory.clone(), |path| self.resolve(&path))
    }
}
