//! Links that lead out of a workspace.

use std::path::{Path, PathBuf};

use crate::environment::ExecutionEnvironment;

/// Returns whether links lead from `path` out of all `roots`.
///
/// The answer applies to a later operation only in an environment that [holds](ExecutionEnvironment::hold) the path. An
/// environment that cannot resolve links is assumed to have none. Dropping the future changes nothing.
pub async fn leads_outside(env: &dyn ExecutionEnvironment, path: &Path, roots: &[PathBuf]) -> bool {
    let Ok(target) = env.canonicalize(path).await else { return false };
    for root in roots {
        if env.canonicalize(root).await.is_ok_and(|root| target.starts_with(root)) {
            return false;
        }
    }
    true
}
