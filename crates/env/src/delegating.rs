//! A trait for wrappers of an environment, whose methods forward by default.

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;

use crate::{
    command::{Command, ExecRequest, ExecResult},
    environment::ExecutionEnvironment,
    error::EnvError,
    file::{DirEntry, Metadata},
    output::OutputLimits,
    process::Process,
    search::{GlobRequest, GrepOutput, GrepRequest},
    walk::{FileContent, ReadLimits, WalkOutput, WalkRequest},
};

/// A wrapper of another environment. It is an [`ExecutionEnvironment`] whose operations call the inner environment,
/// except for the operations that it overrides.
///
/// A wrapper that restricts an operation restricts each operation with the same effect: commands run by `spawn` and
/// `exec_command`; files are read by `read`, `read_file`, `read_many` and `grep`, and changed by `write`, `remove`, `rename`,
/// `create_directory`, `create_symlink` and `set_mode`. `contract::wrapper`, behind the feature `testing`, checks that a wrapper
/// refuses the listed operations and forwards all others.
///
/// Import only one of the two traits where a method is called, since both have it.
///
/// ```
/// use pintle_env::{Command, DelegatingEnvironment, EnvError, ExecRequest, ExecResult, ExecutionEnvironment, Process};
/// use std::sync::Arc;
///
/// /// Runs no commands.
/// #[derive(Clone, Debug)]
/// struct WithoutCommands(Arc<dyn ExecutionEnvironment>);
///
/// fn refused<T>() -> Result<T, EnvError> {
///     let (operation, reason) = ("running the command".to_owned(), "this environment runs none".to_owned());
///     Err(EnvError::Refused { operation, reason })
/// }
///
/// #[async_trait::async_trait]
/// impl DelegatingEnvironment for WithoutCommands {
///     fn inner(&self) -> &Arc<dyn ExecutionEnvironment> {
///         &self.0
///     }
///
///     fn wrap(&self, inner: Arc<dyn ExecutionEnvironment>) -> Arc<dyn ExecutionEnvironment> {
///         Arc::new(Self(inner))
///     }
///
///     async fn spawn(&self, _: Command) -> Result<Box<dyn Process>, EnvError> {
///         refused()
///     }
///
///     async fn exec_command(&self, _: ExecRequest) -> Result<ExecResult, EnvError> {
///         refused()
///     }
/// }
///
/// # fn main() -> Result<(), EnvError> {
/// let local = pintle_env::LocalEnvironment::with_host_env("/", std::env::vars_os())?;
/// let env: Arc<dyn ExecutionEnvironment> = Arc::new(WithoutCommands(Arc::new(local)));
/// assert_eq!(env.working_directory(), std::path::Path::new("/"));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait DelegatingEnvironment: Send + Sync + fmt::Debug {
    /// Returns the wrapped environment.
    fn inner(&self) -> &Arc<dyn ExecutionEnvironment>;

    /// Wraps an environment like the inner one: the inner one with [held](ExecutionEnvironment::hold) paths or outside of its
    /// sandbox.
    fn wrap(&self, inner: Arc<dyn ExecutionEnvironment>) -> Arc<dyn ExecutionEnvironment>;

    /// See [`ExecutionEnvironment::shares_host_files`]. Not forwarded, since a caller then bypasses the wrapper. Default: false.
    fn shares_host_files(&self) -> bool {
        false
    }

    /// See [`ExecutionEnvironment::outside_sandbox`].
    fn outside_sandbox(&self) -> Option<Arc<dyn ExecutionEnvironment>> {
        self.inner().outside_sandbox().map(|inner| self.wrap(inner))
    }

    /// See [`ExecutionEnvironment::hold`].
    async fn hold(&self, paths: &[PathBuf]) -> Result<Option<Arc<dyn ExecutionEnvironment>>, EnvError> {
        Ok(self.inner().hold(paths).await?.map(|inner| self.wrap(inner)))
    }

    /// See [`ExecutionEnvironment::working_directory`].
    fn working_directory(&self) -> &Path {
        self.inner().working_directory()
    }

    /// See [`ExecutionEnvironment::home_directory`].
    fn home_directory(&self) -> Option<&Path> {
        self.inner().home_directory()
    }

    /// See [`ExecutionEnvironment::platform`].
    fn platform(&self) -> &str {
        self.inner().platform()
    }

    /// See [`ExecutionEnvironment::os_version`].
    fn os_version(&self) -> &str {
        self.inner().os_version()
    }

    /// See [`ExecutionEnvironment::output_limits`].
    fn output_limits(&self) -> OutputLimits {
        self.inner().output_limits()
    }

    /// See [`ExecutionEnvironment::command_limits`].
    fn command_limits(&self) -> Option<String> {
        self.inner().command_limits()
    }

    /// See [`ExecutionEnvironment::resolve`].
    fn resolve(&self, path: &Path) -> PathBuf {
        self.inner().resolve(path)
    }

    /// See [`ExecutionEnvironment::initialize`].
    async fn initialize(&self) -> Result<(), EnvError> {
        self.inner().initialize().await
    }

    /// See [`ExecutionEnvironment::cleanup`].
    async fn cleanup(&self) -> Result<(), EnvError> {
        self.inner().cleanup().await
    }

    /// See [`ExecutionEnvironment::spawn`].
    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        self.inner().spawn(command).await
    }

    /// See [`ExecutionEnvironment::read`].
    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        self.inner().read(path, range).await
    }

    /// See [`ExecutionEnvironment::write`].
    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        self.inner().write(path, bytes).await
    }

    /// See [`ExecutionEnvironment::metadata`].
    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        self.inner().metadata(path).await
    }

    /// See [`ExecutionEnvironment::list`].
    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        self.inner().list(path).await
    }

    /// See [`ExecutionEnvironment::remove`].
    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        self.inner().remove(path).await
    }

    /// See [`ExecutionEnvironment::rename`].
    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        self.inner().rename(from, to).await
    }

    /// See [`ExecutionEnvironment::canonicalize`].
    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        self.inner().canonicalize(path).await
    }

    /// See [`ExecutionEnvironment::canonicalize_many`].
    async fn canonicalize_many(&self, paths: &[PathBuf]) -> Result<Vec<Result<PathBuf, EnvError>>, EnvError> {
        self.inner().canonicalize_many(paths).await
    }

    /// See [`ExecutionEnvironment::place`].
    async fn place(&self) -> Result<Option<String>, EnvError> {
        self.inner().place().await
    }

    /// See [`ExecutionEnvironment::exec_command`].
    async fn exec_command(&self, request: ExecRequest) -> Result<ExecResult, EnvError> {
        self.inner().exec_command(request).await
    }

    /// See [`ExecutionEnvironment::read_file`].
    async fn read_file(
        &self,
        path: &Path,
        offset: Option<usize>,
        limit: Option<usize>,
    ) -> Result<String, EnvError> {
        self.inner().read_file(path, offset, limit).await
    }

    /// See [`ExecutionEnvironment::find_files`].
    async fn find_files(&self, request: &GlobRequest) -> Result<Vec<PathBuf>, EnvError> {
        self.inner().find_files(request).await
    }

    /// See [`ExecutionEnvironment::grep`].
    async fn grep(&self, request: &GrepRequest) -> Result<GrepOutput, EnvError> {
        self.inner().grep(request).await
    }

    /// See [`ExecutionEnvironment::create_directory`].
    async fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        self.inner().create_directory(path).await
    }

    /// See [`ExecutionEnvironment::create_symlink`].
    async fn create_symlink(&self, path: &Path, target: &Path) -> Result<(), EnvError> {
        self.inner().create_symlink(path, target).await
    }

    /// See [`ExecutionEnvironment::set_mode`].
    async fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        self.inner().set_mode(path, mode).await
    }

    /// See [`ExecutionEnvironment::walk`].
    async fn walk(&self, request: &WalkRequest) -> Result<WalkOutput, EnvError> {
        self.inner().walk(request).await
    }

    /// See [`ExecutionEnvironment::read_many`].
    async fn read_many(&self, paths: &[PathBuf], limits: ReadLimits) -> Result<Vec<FileContent>, EnvError> {
        self.inner().read_many(paths, limits).await
    }
}

#[async_trait]
impl<E: DelegatingEnvironment> ExecutionEnvironment for E {
    fn shares_host_files(&self) -> bool {
        DelegatingEnvironment::shares_host_files(self)
    }

    fn outside_sandbox(&self) -> Option<Arc<dyn ExecutionEnvironment>> {
        DelegatingEnvironment::outside_sandbox(self)
    }

    async fn hold(&self, paths: &[PathBuf]) -> Result<Option<Arc<dyn ExecutionEnvironment>>, EnvError> {
        DelegatingEnvironment::hold(self, paths).await
    }

    fn working_directory(&self) -> &Path {
        DelegatingEnvironment::working_directory(self)
    }

    fn home_directory(&self) -> Option<&Path> {
        DelegatingEnvironment::home_directory(self)
    }

    fn platform(&self) -> &str {
        DelegatingEnvironment::platform(self)
    }

    fn os_version(&self) -> &str {
        DelegatingEnvironment::os_version(self)
    }

    fn output_limits(&self) -> OutputLimits {
        DelegatingEnvironment::output_limits(self)
    }

    fn command_limits(&self) -> Option<String> {
        DelegatingEnvironment::command_limits(self)
    }

    fn resolve(&self, path: &Path) -> PathBuf {
        DelegatingEnvironment::resolve(self, path)
    }

    async fn initialize(&self) -> Result<(), EnvError> {
        DelegatingEnvironment::initialize(self).await
    }

    async fn cleanup(&self) -> Result<(), EnvError> {
        DelegatingEnvironment::cleanup(self).await
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        DelegatingEnvironment::spawn(self, command).await
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        DelegatingEnvironment::read(self, path, range).await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        DelegatingEnvironment::write(self, path, bytes).await
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        DelegatingEnvironment::metadata(self, path).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        DelegatingEnvironment::list(self, path).await
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        DelegatingEnvironment::remove(self, path).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        DelegatingEnvironment::rename(self, from, to).await
    }

    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        DelegatingEnvironment::canonicalize(self, path).await
    }

    async fn canonicalize_many(&self, paths: &[PathBuf]) -> Result<Vec<Result<PathBuf, EnvError>>, EnvError> {
        DelegatingEnvironment::canonicalize_many(self, paths).await
    }

    async fn place(&self) -> Result<Option<String>, EnvError> {
        DelegatingEnvironment::place(self).await
    }

    async fn exec_command(&self, request: ExecRequest) -> Result<ExecResult, EnvError> {
        DelegatingEnvironment::exec_command(self, request).await
    }

    async fn read_file(
        &self,
        path: &Path,
        offset: Option<usize>,
        limit: Option<usize>,
    ) -> Result<String, EnvError> {
        DelegatingEnvironment::read_file(self, path, offset, limit).await
    }

    async fn find_files(&self, request: &GlobRequest) -> Result<Vec<PathBuf>, EnvError> {
        DelegatingEnvironment::find_files(self, request).await
    }

    async fn grep(&self, request: &GrepRequest) -> Result<GrepOutput, EnvError> {
        DelegatingEnvironment::grep(self, request).await
    }

    async fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        DelegatingEnvironment::create_directory(self, path).await
    }

    async fn create_symlink(&self, path: &Path, target: &Path) -> Result<(), EnvError> {
        DelegatingEnvironment::create_symlink(self, path, target).await
    }

    async fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        DelegatingEnvironment::set_mode(self, path, mode).await
    }

    async fn walk(&self, request: &WalkRequest) -> Result<WalkOutput, EnvError> {
        DelegatingEnvironment::walk(self, request).await
    }

    async fn read_many(&self, paths: &[PathBuf], limits: ReadLimits) -> Result<Vec<FileContent>, EnvError> {
        DelegatingEnvironment::read_many(self, paths, limits).await
    }
}
