//! Search for the repositories and settings below a workspace, which a sandbox protects.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_env::{EnvError, ExecutionEnvironment as _, LocalEnvironment};
use pintle_governance::{ProtectedPaths, own_protected_paths, protected_paths};
use tokio::sync::OnceCell;

use super::watch_record::WatchRecord;
use crate::process_env::ProcessEnv;

/// Workspace with the limits of its sandbox.
#[derive(Clone, Debug)]
pub(super) struct SearchedWorkspace {
    /// The files, without a sandbox.
    pub(super) environment: LocalEnvironment,
    pub(super) settings_directories: Vec<String>,
    /// Further directories that commands can change.
    pub(super) writable_roots: Vec<PathBuf>,
    /// Whether the workspace is a clone, in which only its own repository is guarded.
    pub(super) is_disposable: bool,
    /// Whether the sandbox keeps commands from changing paths below a writable root.
    pub(super) is_protected: bool,
}

/// Finds the repositories and settings below a workspace before the first change. A large workspace delays no request.
///
/// The paths of the workspace's own repository, and of repositories that an earlier session has found, are known at once.
#[derive(Debug)]
pub(super) struct WorkspaceSearch {
    workspace: SearchedWorkspace,
    /// The working directory, with all links resolved.
    root: PathBuf,
    own: Vec<PathBuf>,
    record: WatchRecord,
    process_env: ProcessEnv,
    found: OnceCell<FoundPaths>,
}

/// Result of a search.
#[derive(Clone, Debug)]
pub(super) struct FoundPaths {
    /// Paths to protect besides the [known ones](WorkspaceSearch::own).
    protected: Arc<[PathBuf]>,
    /// Git directories that commands can change, with all links resolved.
    repositories: Arc<[PathBuf]>,
}

impl WorkspaceSearch {
    /// Determines the known paths.
    pub(super) async fn new(
        workspace: SearchedWorkspace,
        record: &WatchRecord,
        process_env: &ProcessEnv,
    ) -> Result<Self, EnvError> {
        let SearchedWorkspace { environment, settings_directories, .. } = &workspace;
        let root = process_env.real_path(environment.working_directory());
        let own = match workspace.is_protected {
            true => own_protected_paths(environment, settings_directories, record.earlier()).await?,
            false => ProtectedPaths::default(),
        };
        let own = workspace.limited(own, &root).paths;
        let (record, process_env) = (record.clone(), process_env.clone());
        Ok(Self { workspace, root, own, record, process_env, found: OnceCell::new() })
    }

    /// Returns the protected paths that are known without a search.
    pub(super) fn own(&self) -> &[PathBuf] {
        &self.own
    }

    /// Returns the further protected paths; none before the search.
    pub(super) fn found(&self) -> Vec<PathBuf> {
        self.found.get().map(|found| found.protected.to_vec()).unwrap_or_default()
    }

    /// Returns the git directories that commands can change, after the search.
    pub(super) async fn repositories(&self) -> Result<Arc<[PathBuf]>, EnvError> {
        Ok(Arc::clone(&self.run().await?.repositories))
    }

    /// Searches once, and records the repositories for later sessions. Dropping the future ends the search, and the next call
    /// repeats it.
    pub(super) async fn run(&self) -> Result<&FoundPaths, EnvError> {
        self.found.get_or_try_init(|| self.search()).await
    }

    async fn search(&self) -> Result<FoundPaths, EnvError> {
        let SearchedWorkspace { environment, settings_directories, .. } = &self.workspace;
        let all = protected_paths(environment, settings_directories, self.record.earlier()).await?;
        let all = self.workspace.limited(all, &self.root);
        let mut protected = all.paths;
        protected.retain(|path| self.workspace.is_protected && !self.own.contains(path));
        if self.workspace.is_protected {
            self.record.record_repositories(&all.found);
        }
        let writable = all.git_directories.iter().filter(|git| self.is_writable(git));
        let repositories = writable.map(|git| self.process_env.real_path(git)).collect();
        Ok(FoundPaths { protected: protected.into(), repositories })
    }

    /// Returns whether commands can change a git directory.
    fn is_writable(&self, git: &Path) -> bool {
        let mut writable = self.workspace.writable_roots.iter().chain([&self.root]);
        writable.any(|root| git.starts_with(root) || self.process_env.real_path(root).starts_with(git))
    }
}

#[cfg(target_os = "linux")]
#[async_trait::async_trait]
impl pintle_env::ProtectedPathSource for WorkspaceSearch {
    async fn protected_paths(&self) -> Result<Arc<[PathBuf]>, EnvError> {
        Ok(Arc::clone(&self.run().await?.protected))
    }
}

impl SearchedWorkspace {
    /// Returns the paths to guard in this workspace.
    fn limited(&self, mut found: ProtectedPaths, root: &Path) -> ProtectedPaths {
        if self.is_disposable {
            exclude_nested_repositories(&mut found, root);
        }
        found
    }
}

/// Removes the repositories and worktrees in a workspace, other than its own repository.
fn exclude_nested_repositories(found: &mut ProtectedPaths, workspace: &Path) {
    let own = workspace.join(".git");
    // The entry named `.git` that a path is in.
    let entry_of = |path: &PathBuf| {
        let below = path.strip_prefix(workspace).ok()?;
        below.ancestors().find(|above| above.ends_with(".git")).map(|entry| workspace.join(entry))
    };
    let entries = found.paths.iter().chain(&found.git_directories).filter_map(entry_of);
    let nested =
        entries.filter(|entry| *entry != own).filter_map(|entry| entry.parent().map(Path::to_path_buf));
    let nested: Vec<PathBuf> = nested.chain([own.join("worktrees")]).collect();
    let is_kept = |path: &PathBuf| !nested.iter().any(|tree| path.starts_with(tree));
    found.paths.retain(is_kept);
    found.git_directories.retain(is_kept);
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "fixtures are written before the environment is used")]

    use super::*;
    use crate::environment::{secrets, watch_record};

    /// Creates a workspace with a repository and settings below it, in a repository.
    async fn new_search(root: &Path, is_protected: bool, process_env: &ProcessEnv) -> WorkspaceSearch {
        for name in ["objects", "refs", "hooks"] {
            for git in [".git", "nested/.git"] {
                std::fs::create_dir_all(root.join(git).join(name)).unwrap();
            }
        }
        for file in [".git/config", "nested/.git/config", "crate/.pintle/rules.toml"] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
        }
        let searched = SearchedWorkspace {
            environment: LocalEnvironment::with_host_env(root, []).unwrap(),
            settings_directories: vec![".pintle".to_owned()],
            writable_roots: Vec::new(),
            is_disposable: false,
            is_protected,
        };
        let record = WatchRecord::open(root, true, process_env).unwrap();
        WorkspaceSearch::new(searched, &record, process_env).await.unwrap()
    }

    #[tokio::test]
    async fn paths_below_a_workspace_are_found_by_the_search_only() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap().join("workspace");
        let state = directory.path().join("state");
        let process_env = ProcessEnv::from_variables([("PINTLE_STATE_DIR", state.as_os_str())]);
        let recorded = secrets::workspace_state_path(watch_record::DIRECTORY, &root, &process_env).unwrap();
        let search = new_search(&root, true, &process_env).await;
        let nested = [root.join("crate/.pintle"), root.join("nested/.git/config")];
        let own = root.join(".git/config");
        assert!(search.own().contains(&own), "{search:?}");
        assert!(nested.iter().all(|path| !search.own().contains(path)), "{search:?}");
        assert!(search.found().is_empty() && !recorded.exists(), "{search:?}");
        let repositories = search.repositories().await.unwrap();
        assert_eq!(*repositories, [root.join(".git"), root.join("nested/.git")]);
        let found = search.found();
        assert!(nested.iter().all(|path| found.contains(path)) && !found.contains(&own), "{search:?}");
        assert!(recorded.exists());
        // A repository that is created later is not protected.
        std::fs::create_dir_all(root.join("later/.git/hooks")).unwrap();
        search.run().await.unwrap();
        assert_eq!(search.found(), found);
        drop(search);
        // The next session knows the repositories from the record, even if they are ignored by then.
        std::fs::write(root.join(".gitignore"), "nested\n").unwrap();
        let next = new_search(&root, true, &process_env).await;
        assert!(next.own().contains(&root.join("nested/.git/config")), "{next:?}");
    }

    #[tokio::test]
    async fn histories_are_guarded_without_protected_paths() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap().join("workspace");
        let process_env = ProcessEnv::from_variables([]);
        let search = new_search(&root, false, &process_env).await;
        let repositories = search.repositories().await.unwrap();
        assert_eq!(*repositories, [root.join(".git"), root.join("nested/.git")]);
        assert!(search.own().is_empty() && search.found().is_empty(), "{search:?}");
    }

    #[test]
    fn only_the_own_repository_of_a_disposable_workspace_is_guarded() {
        let files = [
            ("/a/.git/w/.git/config", true),
            ("/a/.git/w/.git/hooks", true),
            ("/a/.git/w/.git/modules/sub/config", true),
            ("/a/.git/w/.git/worktrees/tree/commondir", false),
            ("/a/.git/w/.pintle", true),
            ("/a/.git/w/below/.pintle", true),
            ("/a/.git/w/made/.git/config", false),
            ("/a/.git/w/made/.pintle", false),
            ("/a/.git/w/tree/.git", false),
            ("/elsewhere/.git/config", true),
        ];
        let directories = [
            ("/a/.git/w/.git", true),
            ("/a/.git/w/.git/modules/sub", true),
            ("/a/.git/w/.git/worktrees/tree", false),
            ("/a/.git/w/made/.git", false),
        ];
        let mut found = ProtectedPaths::default();
        found.paths.extend(files.map(|(path, _)| PathBuf::from(path)));
        found.git_directories.extend(directories.map(|(path, _)| PathBuf::from(path)));
        exclude_nested_repositories(&mut found, Path::new("/a/.git/w"));
        for (path, is_kept) in files {
            assert_eq!(found.paths.iter().any(|found| found == Path::new(path)), is_kept, "{path}");
        }
        for (path, is_kept) in directories {
            assert_eq!(found.git_directories.iter().any(|found| found == Path::new(path)), is_kept, "{path}");
        }
    }
}
