//! Caches of package managers for sandboxed commands.
#![expect(
    clippy::disallowed_methods,
    reason = "this module reads the caches of the user, outside of any environment"
)]

mod config;
mod seed;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::{Mutex, OnceCell};

use self::seed::Seed;
pub(super) use self::seed::{MAX_ENTRIES, Seeding};
use super::rules::Rules;
use crate::{
    blocking::{CancelFlag, blocking},
    error::EnvError,
    write_switch::WriteSwitch,
};

/// Where Go looks for modules without a setting.
const GO_PROXY: &str = "https://proxy.golang.org,direct";

/// Where Go looks for modules without network.
const NO_GO_PROXY: &str = "off";

/// Variables for commands without network, so that tools fail at once instead of repeating requests. Pip has no such mode
/// that keeps local indexes.
const OFFLINE_VARIABLES: [(&str, &str); 4] = [
    ("CARGO_NET_OFFLINE", "true"),
    ("npm_config_offline", "true"),
    ("PIP_RETRIES", "0"),
    ("UV_OFFLINE", "1"),
];

/// The variables of the user that are read, besides the [offline ones](OFFLINE_VARIABLES).
const USER_VARIABLES: [&str; 7] =
    ["HOME", "CARGO_HOME", "GOPATH", "GOMODCACHE", "GOPROXY", "GOFLAGS", "npm_config_cache"];

/// Caches of cargo, Go, npm, pip and uv for the commands of one project.
///
/// The caches of the user stay read-only, and are available to commands in a directory of the project. Additions of commands
/// stay there. Builds whose dependencies are in the user's caches work without network.
/// Credentials are never copied: no `credentials.toml`, no `.npmrc`, no `pip.conf`, and of cargo's configuration no
/// line that looks like a secret.
///
/// | tool | variables | without network | with network |
/// |---|---|---|---|
/// | cargo | `CARGO_HOME` | links to the registry and to git repositories; the configuration | links to crates, sources and git checkouts; a copy of the index; the configuration |
/// | Go | `GOCACHE`, `GOMODCACHE`, `GOPROXY`, `GOFLAGS` | modules, read from the user's cache as from a proxy | the same |
/// | npm | `npm_config_cache` | links to packages and the index | links to packages, a copy of the index |
/// | pip, uv | `PIP_CACHE_DIR`, `UV_CACHE_DIR` | nothing: an index is needed to use them | nothing |
///
/// Without network, tools use only packages that they have, and do not repeat requests: `CARGO_NET_OFFLINE`,
/// `npm_config_offline`, `PIP_RETRIES`, `UV_OFFLINE` and `GOPROXY` are set, unless the user has set them.
///
/// Without network, commands add no packages, so that whole directories of the user are linked. This takes about a
/// millisecond, and no space. These directories have links to single packages instead, as with network:
///
/// * a directory of the project with additions of an earlier command;
/// * a directory that commands can write to, or see otherwise than the user, as below `/tmp` at the level *full*;
/// * sources of crates, if cargo still has to unpack some of them;
/// * npm's directories, if the working directory or a directory in it has a `package.json`: npm writes to its cache when it
///   installs an archive of the project.
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
/// let caches = ProjectCaches::create(state.path().join("caches"), user).await?;
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
    user: Arc<CacheVariables>,
    /// The variables that commands need, once the caches are filled.
    filled: Arc<OnceCell<BTreeMap<OsString, OsString>>>,
    /// Held while the caches are filled, also by a thread whose future was dropped.
    filling: Arc<Mutex<()>>,
}

impl ProjectCaches {
    /// Creates caches below `directory`, which must be absolute and is created; nothing else may
    /// be there. `host_env` holds the variables of the user, of which `HOME`, `CARGO_HOME`, `GOPATH`,
    /// `GOMODCACHE`, `GOPROXY`, `GOFLAGS`, `npm_config_cache` and the variables for work without network are read.
    ///
    /// [`SandboxedEnvironment::fill_caches`](crate::SandboxedEnvironment::fill_caches) or the first command fills them. Create
    /// them at the start of each session, so that they have the packages that the user has fetched since. Sandboxed commands of
    /// other sessions may run meanwhile; they cannot redirect it.
    ///
    /// # Errors
    ///
    /// [`EnvError::InvalidPath`] if the directory is not absolute; otherwise errors of the file system.
    pub async fn create<N: Into<OsString>, V: Into<OsString>>(
        directory: impl Into<PathBuf>,
        host_env: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, EnvError> {
        let directory = directory.into();
        if !directory.is_absolute() {
            let source = std::io::Error::other("the directory of the caches must be absolute");
            return Err(EnvError::InvalidPath { path: directory, source });
        }
        let caches = Self::new(directory, Arc::new(CacheVariables::new(host_env)));
        let directory = caches.directory.clone();
        blocking(move || create_directory(&directory)).await??;
        Ok(caches)
    }

    fn new(directory: PathBuf, user: Arc<CacheVariables>) -> Self {
        Self { directory, user, filled: Arc::default(), filling: Arc::default() }
    }

    /// Returns the directory of the caches.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the variables that commands need. The first call fills the caches. Dropping its future stops that, and the
    /// next call completes it.
    async fn variables(&self, rules: &Arc<Rules>) -> Result<&BTreeMap<OsString, OsString>, EnvError> {
        self.filled.get_or_try_init(|| self.fill(Arc::clone(rules))).await
    }

    async fn fill(&self, rules: Arc<Rules>) -> Result<BTreeMap<OsString, OsString>, EnvError> {
        let (directory, user) = (self.directory.clone(), Arc::clone(&self.user));
        let filling = Arc::clone(&self.filling).lock_owned().await;
        let cancelled = CancelFlag::default();
        let _guard = cancelled.on_drop();
        blocking(move || {
            let _filling = filling;
            fill(&directory, &user, &rules.seeding(), &cancelled)
        })
        .await?
    }

    /// Waits for a thread whose future was dropped while it filled the caches.
    async fn settle(&self) {
        drop(self.filling.lock().await);
    }
}

/// User variables with the locations of caches.
#[derive(Debug)]
struct CacheVariables(BTreeMap<OsString, OsString>);

impl CacheVariables {
    fn new<N: Into<OsString>, V: Into<OsString>>(host_env: impl IntoIterator<Item = (N, V)>) -> Self {
        let variables = host_env.into_iter().map(|(name, value)| (name.into(), value.into()));
        let is_read = |name: &OsString| {
            let offline = OFFLINE_VARIABLES.iter().map(|(read, _)| read);
            USER_VARIABLES.iter().chain(offline).any(|read| name == *read)
        };
        Self(variables.filter(|(name, _)| is_read(name)).collect())
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
    /// Caches of commands that start while the switch is off.
    copies: ProjectCaches,
}

impl SwitchedCaches {
    pub(super) fn new(lasting: ProjectCaches, copies: PathBuf, switch: WriteSwitch) -> Self {
        let copies = ProjectCaches::new(copies, Arc::clone(&lasting.user));
        Self { lasting, switch, copies }
    }

    /// Returns the directory that a command that starts now can write to for them. Copies are in another directory.
    pub(super) fn root(&self) -> Option<&Path> {
        self.switch.is_on().then(|| self.lasting.directory())
    }

    /// Returns the variables of a command that starts now, once its caches are filled. If the lasting ones cannot be filled,
    /// these are the variables of the copies.
    pub(super) async fn variables(
        &self,
        rules: &Arc<Rules>,
    ) -> Result<&BTreeMap<OsString, OsString>, EnvError> {
        if self.switch.is_on() {
            match self.lasting.variables(rules).await {
                Ok(variables) => return Ok(variables),
                Err(error) => tracing::warn!(%error, "the caches of the project cannot be filled"),
            }
        }
        self.copies.variables(rules).await
    }

    /// Waits for threads whose futures were dropped while they filled caches.
    pub(super) async fn settle(&self) {
        self.lasting.settle().await;
        self.copies.settle().await;
    }

    /// Returns both directories.
    pub(super) fn directories(&self) -> [&Path; 2] {
        [self.lasting.directory(), self.copies.directory()]
    }
}

fn create_directory(directory: &Path) -> Result<(), EnvError> {
    fs::create_dir_all(directory).map_err(|error| EnvError::from_io("create", directory, error))
}

fn fill(
    directory: &Path,
    user: &CacheVariables,
    seeding: &Seeding,
    cancelled: &CancelFlag,
) -> Result<BTreeMap<OsString, OsString>, EnvError> {
    create_directory(directory)?;
    let seed = Seed::open(directory, seeding, cancelled)?;
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
        accept_limit(seed_cargo(&seed.directory("cargo")?, &home))?;
    }
    if let Some(cache) = user.directory("npm_config_cache", ".npm") {
        let own = seed.directory("npm")?.directory("_cacache")?;
        accept_limit(seed_npm(&own, &cache.join("_cacache"), seeding))?;
    }
    let modules = user.go_modules().map(|modules| modules.join("cache/download"));
    let remote = user.get("GOPROXY").unwrap_or(match seeding.downloads {
        true => GO_PROXY.as_ref(),
        false => NO_GO_PROXY.as_ref(),
    });
    if let Some(modules) = modules.filter(|modules| modules.is_dir()) {
        let mut proxy = OsString::from("file://");
        proxy.push(modules);
        proxy.push(",");
        proxy.push(remote);
        variables.insert("GOPROXY".into(), proxy);
    } else if remote == NO_GO_PROXY {
        variables.insert("GOPROXY".into(), remote.into());
    }
    if !seeding.downloads {
        let unset = OFFLINE_VARIABLES.iter().filter(|(name, _)| user.get(name).is_none());
        variables.extend(unset.map(|(name, value)| (name.into(), value.into())));
    }
    // Go makes modules read-only, directories too, which keeps the cache from being removed.
    let mut flags = user.get("GOFLAGS").map(OsStr::to_os_string).unwrap_or_default();
    flags.push(if flags.is_empty() { "-modcacherw" } else { " -modcacherw" });
    variables.insert("GOFLAGS".into(), flags);
    Ok(variables)
}

/// Accepts that a cache with too many entries was filled in part. Tools download the other packages.
fn accept_limit(seeded: Result<(), EnvError>) -> Result<(), EnvError> {
    match seeded {
        Err(EnvError::TooManyEntries { path, limit }) => {
            tracing::warn!(path = %path.display(), limit, "a package cache has too many entries: the rest is left out");
            Ok(())
        }
        seeded => seeded,
    }
}

/// Cargo locks and writes files beside the registry. With network it also adds crates, sources and checkouts.
fn seed_cargo(own: &Seed<'_>, home: &Path) -> Result<(), EnvError> {
    for name in ["config.toml", "config"] {
        let path = home.join(name);
        let Ok(text) = fs::read_to_string(&path) else { continue };
        match config::without_secrets(&text) {
            Some(text) => own.replace(name, text.as_bytes())?,
            None => tracing::warn!(path = %path.display(), "the configuration may hold secrets: not copied"),
        }
    }
    let (registry, git) = (own.directory("registry")?, own.directory("git")?);
    let (of_user, git_of_user) = (home.join("registry"), home.join("git"));
    let (archives, sources, index) = (of_user.join("cache"), of_user.join("src"), of_user.join("index"));
    if !registry.link_directory("cache", &archives)? {
        registry.directory("cache")?.link_entries_below(&archives)?;
    }
    // Cargo unpacks the archives that have no sources.
    if !is_unpacked(&archives, &sources) || !registry.link_directory("src", &sources)? {
        registry.directory("src")?.link_entries_below(&sources)?;
    }
    git.directory("checkouts")?.link_entries_below(&git_of_user.join("checkouts"))?;
    let repositories = git_of_user.join("db");
    if !git.link_directory("db", &repositories)? {
        git.directory("db")?.link_entries(&repositories)?;
    }
    if !registry.link_directory("index", &index)? {
        registry.directory("index")?.copy_files(&index)?;
    }
    Ok(())
}

/// Returns whether all archives of crates have sources.
fn is_unpacked(archives: &Path, sources: &Path) -> bool {
    let names = |directory: &Path| -> BTreeSet<OsString> {
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
    };
    names(archives).iter().all(|index| {
        let unpacked = names(&sources.join(index));
        names(&archives.join(index)).iter().map(Path::new).all(|archive| {
            let is_archive = archive.extension() == Some(OsStr::new("crate"));
            !is_archive || archive.file_stem().is_some_and(|name| unpacked.contains(name))
        })
    })
}

/// Npm stores downloads, and archives of the project that it installs.
fn seed_npm(own: &Seed<'_>, cache: &Path, seeding: &Seeding) -> Result<(), EnvError> {
    let (packages, index) = (cache.join("content-v2"), cache.join("index-v5"));
    let can_link = !seeding.installs_archives;
    if !can_link || !own.link_directory("content-v2", &packages)? {
        own.directory("content-v2")?.link_files(&packages)?;
    }
    if !can_link || !own.link_directory("index-v5", &index)? {
        own.directory("index-v5")?.copy_files(&index)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
