//! Links in the paths of rules.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pintle_env::ExecutionEnvironment;

/// Path of a rule that leads through links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// As the rule names it.
    pub(super) named: PathBuf,
    /// With all links resolved.
    pub(super) real: PathBuf,
}

impl Link {
    /// Returns the rule's name for a resolved path; `None` for a path elsewhere.
    pub(super) fn other_name(&self, real: &Path) -> Option<PathBuf> {
        Some(joined(&self.named, real.strip_prefix(&self.real).ok()?))
    }
}

/// Paths of rules that were resolved, until a call runs that may have changed links.
#[derive(Debug, Default)]
pub(crate) struct RuleLinks(Mutex<HashMap<PathBuf, Option<Link>>>);

impl RuleLinks {
    /// Clears the cache.
    pub(crate) fn clear(&self) {
        self.known().clear();
    }

    /// Returns the paths among these that lead through links.
    pub(super) async fn resolve(&self, paths: &[&Path], env: &dyn ExecutionEnvironment) -> Vec<Link> {
        let mut links: Vec<Link> = Vec::new();
        for &path in paths {
            let known = self.known().get(path).cloned();
            let link = match known {
                Some(link) => link,
                None => {
                    let link = link(path, env).await;
                    self.known().insert(path.to_path_buf(), link.clone());
                    link
                }
            };
            links.extend(link.filter(|link| !links.contains(link)));
        }
        links
    }

    fn known(&self) -> MutexGuard<'_, HashMap<PathBuf, Option<Link>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Resolves a path of a rule; `None` if it has no links or cannot be resolved.
async fn link(path: &Path, env: &dyn ExecutionEnvironment) -> Option<Link> {
    let real = env.canonicalize(path).await.ok()?;
    (real != path).then(|| Link { named: path.to_path_buf(), real })
}

/// Joins paths without a slash at the end.
pub(super) fn joined(directory: &Path, relative: &Path) -> PathBuf {
    if relative.as_os_str().is_empty() { directory.to_path_buf() } else { directory.join(relative) }
}
