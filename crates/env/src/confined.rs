//! The confining wrapper.

use std::{
    ffi::OsStr,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;

#[cfg(all(target_os = "linux", feature = "local"))]
use crate::{
    blocking::{CancelFlag, blocking},
    file::MAX_ENTRIES,
    host_files::beneath::{self, AllowedRoots},
};
use crate::{
    command::{Command, ExecRequest, ExecResult},
    environment::{ExecutionEnvironment, IntoEnvironment, expect_directory},
    error::EnvError,
    file::{DirEntry, Metadata},
    forward::forward,
    process::Process,
    search::{GlobRequest, GrepOutput, GrepRequest},
    walk::{FileContent, ReadLimits, WalkOutput, WalkRequest},
};

/// Refuses every path outside its roots with [`EnvError::Refused`], also through links.
///
/// Paths are compared component by component, and links are resolved at the last moment. Over an
/// environment with local files (see
/// [`shares_host_files`](ExecutionEnvironment::shares_host_files)) on Linux, with the feature `local`, the resolved file is
/// held open during the operation: the kernel resolves it with `openat2` where it can, so no link
/// can be swapped in. Elsewhere the path is resolved by
/// [`canonicalize`](ExecutionEnvironment::canonicalize) and the operation uses the canonical path;
/// a process that replaces directories by links in between can redirect it.
///
/// A link may lead from one root into another. The roots themselves cannot be removed or renamed,
/// and a root that is a link is replaced by its target. Files above the roots are ignored, for
/// instance a `.gitignore`.
///
/// Commands start within the roots but are not confined. The inner environment, or `SandboxedEnvironment`,
/// decides what commands may do.
///
/// ```
/// use pintle_env::{
///     ConfinedEnvironment, EnvError, ExecutionEnvironment, ExecutionEnvironmentExt, LocalEnvironment,
/// };
/// use std::{path::Path, sync::Arc};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// let local = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os())?;
/// let environment = ConfinedEnvironment::new(Arc::new(local), [directory.path()]);
/// environment.write_file(Path::new("notes/today.txt"), "buy milk\n").await?;
/// let outside = environment.read(Path::new("../../../etc/passwd"), None).await;
/// assert!(matches!(outside, Err(EnvError::Refused { .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ConfinedEnvironment {
    inner: Arc<dyn ExecutionEnvironment>,
    roots: Vec<PathBuf>,
    /// Present if files are local.
    #[cfg(all(target_os = "linux", feature = "local"))]
    beneath: Option<Arc<AllowedRoots>>,
}

/// Whether a link as the last component is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastLink {
    Followed,
    Kept,
}

/// Reason to refuse a path.
const OUTSIDE: &str = "the path is outside the allowed roots";

fn refused(action: &str, path: &Path, reason: &str) -> EnvError {
    EnvError::Refused { operation: format!("{action} {}", path.display()), reason: reason.to_owned() }
}

impl ConfinedEnvironment {
    /// Confines `inner` to `roots`: directories, relative ones to its working directory. Without
    /// roots everything is refused.
    #[must_use]
    pub fn new(inner: impl IntoEnvironment, roots: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let inner = inner.into_environment();
        let roots: Vec<_> = roots.into_iter().map(|root| inner.resolve(&root.into())).collect();
        Self {
            #[cfg(all(target_os = "linux", feature = "local"))]
            beneath: (inner.shares_host_files() && beneath::is_available())
                .then(|| Arc::new(AllowedRoots::new(roots.clone()))),
            inner,
            roots,
        }
    }

    /// Runs `work` on file descriptors if files are local, else returns `None`.
    #[cfg(all(target_os = "linux", feature = "local"))]
    async fn by_descriptor<T: Send + 'static>(
        &self,
        work: impl FnOnce(&AllowedRoots) -> Result<T, EnvError> + Send + 'static,
    ) -> Option<Result<T, EnvError>> {
        let beneath = Arc::clone(self.beneath.as_ref()?);
        Some(blocking(move || work(&beneath)).await.flatten())
    }

    /// Returns the canonical path, or an error if it is outside the roots.
    async fn resolve_within(&self, action: &str, path: &Path, last: LastLink) -> Result<PathBuf, EnvError> {
        let resolved = self.resolve_all_within(action, &[path.to_path_buf()], last).await?;
        // One path has one result.
        resolved.into_iter().next().unwrap_or_else(|| Err(refused(action, path, OUTSIDE)))
    }

    /// Resolves paths and roots in one call of the inner environment. Returns the canonical paths, or errors for those outside
    /// the roots.
    async fn resolve_all_within(
        &self,
        action: &str,
        paths: &[PathBuf],
        last: LastLink,
    ) -> Result<Vec<Result<PathBuf, EnvError>>, EnvError> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| self.resolve(path)).collect();
        let targets = paths.iter().map(|path| match (last, path.parent(), path.file_name()) {
            (LastLink::Kept, Some(parent), Some(name)) => (parent.to_path_buf(), Some(name)),
            (LastLink::Kept | LastLink::Followed, _, _) => (path.clone(), None),
        });
        let (mut targets, names): (Vec<PathBuf>, Vec<Option<&OsStr>>) = targets.unzip();
        targets.extend(self.roots.iter().cloned());
        let mut resolved = self.inner.canonicalize_many(&targets).await?.into_iter();
        let canonical: Vec<_> = resolved.by_ref().take(paths.len()).collect();
        let roots: Vec<_> = resolved.take(self.roots.len()).collect();
        let within = paths.iter().zip(names).zip(canonical).map(|((path, name), canonical)| {
            let canonical = match name {
                Some(name) => canonical?.join(name),
                None => canonical?,
            };
            for root in &roots {
                let root = root.as_ref().map_err(|error| refused(action, path, &error.to_string()))?;
                if canonical.starts_with(root) && (last == LastLink::Followed || canonical != *root) {
                    return Ok(canonical);
                }
            }
            Err(refused(action, path, OUTSIDE))
        });
        Ok(within.collect())
    }
}

#[async_trait]
impl ExecutionEnvironment for ConfinedEnvironment {
    forward! { inner: working_directory, home_directory, platform, os_version, cleanup, output_limits, command_limits, place, resolve }

    fn outside_sandbox(&self) -> Option<Arc<dyn ExecutionEnvironment>> {
        let inner = self.inner.outside_sandbox()?;
        Some(Arc::new(Self { inner, ..self.clone() }))
    }

    async fn hold(&self, paths: &[PathBuf]) -> Result<Option<Arc<dyn ExecutionEnvironment>>, EnvError> {
        let paths = paths.iter().map(|path| self.resolve(path));
        // Held roots keep other paths below them from leaving, even if a link is swapped in after the check.
        let paths: Vec<_> = paths.chain(self.roots.iter().cloned()).collect();
        let held = self.inner.hold(&paths).await?;
        Ok(held.map(|inner| {
            Arc::new(Self {
                #[cfg(all(target_os = "linux", feature = "local"))]
                beneath: None,
                inner,
                roots: self.roots.clone(),
            }) as _
        }))
    }

    async fn initialize(&self) -> Result<(), EnvError> {
        self.inner.initialize().await?;
        for root in &self.roots {
            expect_directory(self, root).await?;
        }
        Ok(())
    }

    async fn spawn(&self, mut command: Command) -> Result<Box<dyn Process>, EnvError> {
        let directory = command.working_dir.as_deref().unwrap_or(Path::new(""));
        command.working_dir =
            Some(self.resolve_within("running a command in", directory, LastLink::Followed).await?);
        self.inner.spawn(command).await
    }

    async fn exec_command(&self, mut request: ExecRequest) -> Result<ExecResult, EnvError> {
        let directory = request.working_dir.as_deref().unwrap_or(Path::new(""));
        request.working_dir =
            Some(self.resolve_within("running a command in", directory, LastLink::Followed).await?);
        self.inner.exec_command(request).await
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        #[cfg(all(target_os = "linux", feature = "local"))]
        {
            let (path, range) = (self.resolve(path), range.clone());
            if let Some(read) = self.by_descriptor(move |beneath| beneath.read(&path, range)).await {
                return read;
            }
        }
        let path = self.resolve_within("reading", path, LastLink::Followed).await?;
        self.inner.read(&path, range).await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        #[cfg(all(target_os = "linux", feature = "local"))]
        if self.beneath.is_some() {
            let (path, bytes) = (self.resolve(path), bytes.to_vec());
            let cancelled = CancelFlag::default();
            let _guard = cancelled.on_drop();
            let work = move |beneath: &AllowedRoots| beneath.write(&path, &bytes, &cancelled);
            if let Some(written) = self.by_descriptor(work).await {
                return written;
            }
        }
        let path = self.resolve_within("writing", path, LastLink::Followed).await?;
        self.inner.write(&path, bytes).await
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        #[cfg(all(target_os = "linux", feature = "local"))]
        {
            let path = self.resolve(path);
            if let Some(found) = self.by_descriptor(move |beneath| beneath.metadata(&path)).await {
                return found;
            }
        }
        let path = self.resolve_within("looking at", path, LastLink::Followed).await?;
        self.inner.metadata(&path).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        #[cfg(all(target_os = "linux", feature = "local"))]
        {
            let path = self.resolve(path);
            let work = move |beneath: &AllowedRoots| beneath.list(&path, MAX_ENTRIES);
            if let Some(listed) = self.by_descriptor(work).await {
                return listed;
            }
        }
        let path = self.resolve_within("listing", path, LastLink::Followed).await?;
        self.inner.list(&path).await
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        #[cfg(all(target_os = "linux", feature = "local"))]
        {
            let path = self.resolve(path);
            if let Some(removed) = self.by_descriptor(move |beneath| beneath.remove(&path)).await {
                return removed;
            }
        }
        let path = self.resolve_within("removing", path, LastLink::Kept).await?;
        self.inner.remove(&path).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        #[cfg(all(target_os = "linux", feature = "local"))]
        {
            let (from, to) = (self.resolve(from), self.resolve(to));
            if let Some(renamed) = self.by_descriptor(move |beneath| beneath.rename(&from, &to)).await {
                return renamed;
            }
        }
        let from = self.resolve_within("renaming", from, LastLink::Kept).await?;
        let to = self.resolve_within("renaming to", to, LastLink::Kept).await?;
        self.inner.rename(&from, &to).await
    }

    async fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        #[cfg(all(target_os = "linux", feature = "local"))]
        {
            let path = self.resolve(path);
            let work = move |beneath: &AllowedRoots| beneath.create_directory(&path);
            if let Some(created) = self.by_descriptor(work).await {
                return created;
            }
        }
        let path = self.resolve_within("creating", path, LastLink::Followed).await?;
        self.inner.create_directory(&path).await
    }

    async fn create_symlink(&self, path: &Path, target: &Path) -> Result<(), EnvError> {
        #[cfg(all(target_os = "linux", feature = "local"))]
        {
            let (path, target) = (self.resolve(path), target.to_path_buf());
            let work = move |beneath: &AllowedRoots| beneath.create_symlink(&path, &target);
            if let Some(created) = self.by_descriptor(work).await {
                return created;
            }
        }
        let path = self.resolve_within("creating", path, LastLink::Kept).await?;
        self.inner.create_symlink(&path, target).await
    }

    async fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        #[cfg(all(target_os = "linux", feature = "local"))]
        {
            let path = self.resolve(path);
            if let Some(set) = self.by_descriptor(move |beneath| beneath.set_mode(&path, mode)).await {
                return set;
            }
        }
        let path = self.resolve_within("changing the mode of", path, LastLink::Followed).await?;
        self.inner.set_mode(&path, mode).await
    }

    async fn walk(&self, request: &WalkRequest) -> Result<WalkOutput, EnvError> {
        #[cfg(all(target_os = "linux", feature = "local"))]
        if self.beneath.is_some() {
            let request = request.clone().with_root(self.resolve(&request.root));
            // Read by the primitives above, so that nothing outside the roots has rules.
            let above = crate::environment::search::walk::rules_above(self, &request.root).await?;
            let cancelled = CancelFlag::default();
            let _guard = cancelled.on_drop();
            let work = move |beneath: &AllowedRoots| beneath.walk(&request, above.as_ref(), &cancelled);
            if let Some(walked) = self.by_descriptor(work).await {
                return walked;
            }
        }
        let root = self.resolve_within("walking", &request.root, LastLink::Followed).await?;
        self.inner.walk(&request.clone().with_root(root)).await
    }

    /// Reads the files within the roots; any other path is unreadable.
    async fn read_many(&self, paths: &[PathBuf], limits: ReadLimits) -> Result<Vec<FileContent>, EnvError> {
        #[cfg(all(target_os = "linux", feature = "local"))]
        if self.beneath.is_some() {
            // Uses the primitives above: the inner environment would resolve names.
            return crate::environment::walk::read_many(self, paths, limits).await;
        }
        let within = self.resolve_all_within("reading", paths, LastLink::Kept).await?;
        let allowed: Vec<_> = within.iter().flatten().cloned().collect();
        let mut contents = self.inner.read_many(&allowed, limits).await?.into_iter();
        let in_order = within.iter().map(|path| match path {
            Ok(_) => contents.next().unwrap_or(FileContent::Unreadable),
            Err(_refused) => FileContent::Unreadable,
        });
        Ok(in_order.collect())
    }

    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        self.resolve_within("looking at", path, LastLink::Followed).await
    }

    async fn canonicalize_many(&self, paths: &[PathBuf]) -> Result<Vec<Result<PathBuf, EnvError>>, EnvError> {
        self.resolve_all_within("looking at", paths, LastLink::Followed).await
    }

    async fn find_files(&self, request: &GlobRequest) -> Result<Vec<PathBuf>, EnvError> {
        #[cfg(all(target_os = "linux", feature = "local"))]
        if self.beneath.is_some() {
            // Uses the primitives above: a separate walker would resolve names.
            return crate::environment::search::find_files(self, request).await;
        }
        let root = self.resolve(request.directory());
        let base = request.base(&root, self.home_directory());
        self.resolve_within("searching", request.directory(), LastLink::Followed).await?;
        self.resolve_within("searching", &base, LastLink::Followed).await?;
        self.inner.find_files(request).await
    }

    async fn grep(&self, request: &GrepRequest) -> Result<GrepOutput, EnvError> {
        #[cfg(all(target_os = "linux", feature = "local"))]
        if self.beneath.is_some() {
            return crate::environment::search::grep(self, request).await;
        }
        let path = request.path.as_deref().unwrap_or(Path::new(""));
        self.resolve_within("searching", path, LastLink::Followed).await?;
        self.inner.grep(request).await
    }
}

#[cfg(test)]
#[cfg(feature = "local")]
mod tests;
