//! Caches of package managers for sandboxed commands.
#![expect(
    clippy::disallowed_methods,
    reason = "this module reads the caches of the user, outside of any environment"
)]

mod config;
mod seed;

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::OnceCell;

use self::seed::Seed;
use crate::{
    blocking::{CancelFlag, blocking},
    error::EnvError,
    write_switch::WriteSwitch,
};

/// Where Go looks for modules without a setting.
const GO_PROXY: &str = "https://proxy.golang.org,direct";

/// The variables of the user that are read.
const USER_VARIABLES: [&str; 7] =
    ["HOME", "CARGO_HOME", "GOPATH", "GOMODCACHE", "GOPROXY", "GOFLAGS", "npm_config_cache"];

/// Caches of cargo, Go, npm, pip and uv for the commands of one project.
///
/// The caches of the user stay read-only. Their contents are linked or copied into a directory of the project, and
/// additions of commands stay there. Builds whose dependencies are in the user's caches work without network.
/// Credentials are never copied: no `credentials.toml`, no `.npmrc`, no `pip.conf`, and of cargo's configuration no
/// line that looks like a secret.
///
/// | tool | variables | from the user |
/// |---|---|---|
/// | cargo | `CARGO_HOME` | links to crates, sources and git checkouts; a copy of the index; the configuration |
/// | Go | `GOCACHE`, `GOMODCACHE`, `GOPROXY`, `GOFLAGS` | modules, read from the user's cache as from a proxy |
/// | npm | `npm_config_cache` | links to packages, a copy of the index |
/// | pip, uv | `PIP_CACHE_DIR`, `UV_CACHE_DIR` | nothing: an index is needed to use them |
///
/// Sources of crates have other paths than in the user's own cache. Cargo therefore compiles
/// dependencies again in a target directory that was filled outside of the sandbox, and the other
/// way round.
///
/// ```
/// use pintle_env::{LocalEnvironment, ProjectCaches, SandboxedEnvironment, WriteSwitch};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (project, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
/// # let user = [("HOME", state.path().as_os_str())];
/// let caches = ProjectCaches::prepare(state.path().join("caches"), user).await?;
/// let local = LocalEnvironment::with_host_env(project.path(), std::env::vars_os())?;
/// let writes = WriteSwitch::new(true);
/// let environment = SandboxedEnvironment::new(local)
///     .with_writable_while(project.path(), &writes)
///     .with_caches(caches, state.path().join("copies"), &writes);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ProjectCaches {
    directory: PathBuf,
    variables: BTreeMap<OsString, OsString>,
    user: Arc<CacheVariables>,
}

impl ProjectCaches {
    /// Prepares caches below `directory`, which must be absolute and is created; nothing else may
    /// be there. `host_env` holds the variables of the user, of which `HOME`, `CARGO_HOME`, `GOPATH`,
    /// `GOMODCACHE`, `GOPROXY`, `GOFLAGS` and `npm_config_cache` are read.
    ///
    /// Call it at the start of each session: it adds packages that the user has fetched since. The first call takes
    /// about a second per hundred thousand files. Sandboxed commands may run meanwhile; they cannot redirect it.
    /// Dropping the future stops it, and the next call completes it.
    ///
    /// # Errors
    ///
    /// [`EnvError::InvalidPath`] if the directory is not absolute; [`EnvError::TooManyEntries`] for
    /// a cache of more than half a million files; otherwise errors of the file system.
    pub async fn prepare<N: Into<OsString>, V: Into<OsString>>(
        directory: impl Into<PathBuf>,
        host_env: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, EnvError> {
        let directory = directory.into();
        if !directory.is_absolute() {
            let source = std::io::Error::other("the directory of the caches must be absolute");
            return Err(EnvError::InvalidPath { path: directory, source });
        }
        Self::prepare_for(Arc::new(CacheVariables::new(host_env)), directory).await
    }

    /// Prepares caches elsewhere, for the same user.
    async fn copy_to(&self, directory: PathBuf) -> Result<Self, EnvError> {
        Self::prepare_for(Arc::clone(&self.user), directory).await
    }

    async fn prepare_for(user: Arc<CacheVariables>, directory: PathBuf) -> Result<Self, EnvError> {
        let cancelled = CancelFlag::default();
        let _guard = cancelled.on_drop();
        blocking(move || {
            let variables = prepare(&directory, &user, &cancelled)?;
            Ok(Self { directory, variables, user })
        })
        .await?
    }

    /// Returns the directory of the caches.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the variables that commands need.
    #[must_use]
    pub fn variables(&self) -> &BTreeMap<OsString, OsString> {
        &self.variables
    }
}

/// User variables with the locations of caches.
#[derive(Debug)]
struct CacheVariables(BTreeMap<OsString, OsString>);

impl CacheVariables {
    fn new<N: Into<OsString>, V: Into<OsString>>(host_env: impl IntoIterator<Item = (N, V)>) -> Self {
        let variables = host_env.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self(variables.filter(|(name, _)| USER_VARIABLES.iter().any(|read| name == *read)).collect())
    }

    fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Returns the directory in a variable, else one below the home directory.
    fn directory(&self, name: &str, below_home: &str) -> Option<PathBuf> {
        let named = self.get(name).map(PathBuf::from);
        let found = named.or_else(|| Some(Path::new(self.get("HOME")?).join(below_home)))?;
        // A relative directory depends on where a command runs. A missing one has nothing to copy.
        found.canonicalize().ok().filter(|path| found.is_absolute() && path.is_dir())
    }

    fn go_modules(&self) -> Option<PathBuf> {
        let first = |paths: &OsStr| std::env::split_paths(paths).next();
        let path = self.get("GOPATH").and_then(first);
        let modules = match (self.get("GOMODCACHE"), path) {
            (Some(modules), _) => PathBuf::from(modules),
            (None, Some(path)) => path.join("pkg/mod"),
            (None, None) => Path::new(self.get("HOME")?).join("go/pkg/mod"),
        };
        modules.is_absolute().then_some(modules)
    }
}

/// Which caches the commands of a sandbox use.
#[derive(Clone, Debug)]
pub(super) struct SwitchedCaches {
    lasting: ProjectCaches,
    switch: WriteSwitch,
    /// Where the caches are prepared that commands use while the switch is off.
    copies: PathBuf,
    copied: Arc<OnceCell<ProjectCaches>>,
}

impl SwitchedCaches {
    pub(super) fn new(lasting: ProjectCaches, copies: PathBuf, switch: WriteSwitch) -> Self {
        Self { lasting, switch, copies, copied: Arc::default() }
    }

    /// Returns the directory that a command that starts now can write to for them. Copies are in another directory.
    pub(super) fn root(&self) -> Option<&Path> {
        self.switch.is_on().then(|| self.lasting.directory())
    }

    /// Returns the variables of a command that starts now.
    pub(super) async fn variables(&self) -> Result<&BTreeMap<OsString, OsString>, EnvError> {
        if self.switch.is_on() {
            return Ok(self.lasting.variables());
        }
        let copied = self.copied.get_or_try_init(|| self.lasting.copy_to(self.copies.clone())).await?;
        Ok(copied.variables())
    }

    /// Returns both directories.
    pub(super) fn directories(&self) -> [&Path; 2] {
        [self.lasting.directory(), &self.copies]
    }
}

fn prepare(
    directory: &Path,
    user: &CacheVariables,
    cancelled: &CancelFlag,
) -> Result<BTreeMap<OsString, OsString>, EnvError> {
    fs::create_dir_all(directory).map_err(|error| EnvError::from_io("create", directory, error))?;
    let seed = Seed::open(directory, cancelled)?;
    let mut variables = BTreeMap::new();
    for (name, cache) in [
        ("CARGO_HOME", "cargo"),
        ("GOCACHE", "go-build"),
        ("GOMODCACHE", "go-mod"),
        ("npm_config_cache", "npm"),
        ("PIP_CACHE_DIR", "pip"),
        ("UV_CACHE_DIR", "uv"),
    ] {
        seed.directory(cache)?;
        variables.insert(name.into(), directory.join(cache).into());
    }
    if let Some(home) = user.directory("CARGO_HOME", ".cargo") {
        seed_cargo(&seed.directory("cargo")?, &home)?;
    }
    if let Some(cache) = user.directory("npm_config_cache", ".npm") {
        let (own, cache) = (seed.directory("npm")?.directory("_cacache")?, cache.join("_cacache"));
        own.directory("content-v2")?.link_files(&cache.join("content-v2"))?;
        own.directory("index-v5")?.copy_files(&cache.join("index-v5"))?;
    }
    let modules = user.go_modules().map(|modules| modules.join("cache/download"));
    if let Some(modules) = modules.filter(|modules| modules.is_dir()) {
        let mut proxy = OsString::from("file://");
        proxy.push(modules);
        proxy.push(",");
        proxy.push(user.get("GOPROXY").unwrap_or(GO_PROXY.as_ref()));
        variables.insert("GOPROXY".into(), proxy);
    }
    // Go makes modules read-only, directories too, which keeps the cache from being removed.
    let mut flags = user.get("GOFLAGS").map(OsStr::to_os_string).unwrap_or_default();
    flags.push(if flags.is_empty() { "-modcacherw" } else { " -modcacherw" });
    variables.insert("GOFLAGS".into(), flags);
    Ok(variables)
}

/// Cargo locks and writes files beside the registry, and adds crates, sources and checkouts.
fn seed_cargo(own: &Seed<'_>, home: &Path) -> Result<(), EnvError> {
    for (own, cache) in [
        (own.directory("registry")?.directory("cache")?, home.join("registry/cache")),
        (own.directory("registry")?.directory("src")?, home.join("registry/src")),
        (own.directory("git")?.directory("checkouts")?, home.join("git/checkouts")),
    ] {
        own.link_entries_below(&cache)?;
    }
    own.directory("git")?.directory("db")?.link_entries(&home.join("git/db"))?;
    own.directory("registry")?.directory("index")?.copy_files(&home.join("registry/index"))?;
    for name in ["config.toml", "config"] {
        let path = home.join(name);
        let Ok(text) = fs::read_to_string(&path) else { continue };
        match config::without_secrets(&text) {
            Some(text) => own.replace(name, text.as_bytes())?,
            None => tracing::warn!(path = %path.display(), "the configuration may hold secrets: not copied"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
