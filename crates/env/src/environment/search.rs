//! Search on top of the primitives, for environments that cannot walk faster.

mod tree;
pub(crate) mod walk;

use std::path::{Path, PathBuf};

pub(crate) use self::tree::walk as walk_tree;
use self::walk::Walk;
use crate::{
    environment::ExecutionEnvironment,
    error::EnvError,
    search::{
        GlobRequest, GrepOutput, GrepRequest, newest_first,
        pattern::GlobPattern,
        query::{FileOutcome, Query},
        results::Results,
    },
};

/// Implements [`ExecutionEnvironment::find_files`] on top of the primitives.
pub(crate) async fn find_files<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    request: &GlobRequest,
) -> Result<Vec<PathBuf>, EnvError> {
    let root = env.resolve(request.directory());
    env.metadata(&root).await?;
    let mut pattern = GlobPattern::parse(&request.pattern, &root, env.home_directory())?;
    // The glob may have an absolute path.
    pattern.base = env.resolve(&pattern.base);
    let scope = pattern.scope(request.scope);
    let mut walk = Walk::new(env, &pattern.base, pattern.max_depth, scope).await?;
    let mut found = Vec::new();
    while let Some(file) = walk.next().await? {
        if !pattern.matches(&file.path) {
            continue;
        }
        match env.metadata(&file.path).await {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(metadata) => found.push((metadata.modified, file.path)),
            Err(lost) if lost.is_environment_failure() => return Err(lost),
            // A dangling link is not a file.
            Err(_gone) => {}
        }
        pattern.check_count(found.len())?;
    }
    Ok(newest_first(found))
}

/// Implements [`ExecutionEnvironment::grep`] on top of the primitives.
pub(crate) async fn grep<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    request: &GrepRequest,
) -> Result<GrepOutput, EnvError> {
    let query = Query::compile(request)?;
    let root = env.resolve(request.path.as_deref().unwrap_or(Path::new("")));
    let mut results = Results::new(request);
    if env.metadata(&root).await?.is_file() {
        let bytes = env.read(&root, None).await?;
        results.add(root.clone(), query.search_bytes(root, bytes).await?);
        return Ok(results.finish(0));
    }
    let mut walk = Walk::new(env, &root, None, request.scope).await?;
    while let Some(file) = walk.next().await? {
        if file.is_symlink || !query.admits(&root, &file.path) || !results.wants(&file.path) {
            continue;
        }
        let outcome = match env.read(&file.path, None).await {
            Ok(bytes) => query.search_bytes(file.path.clone(), bytes).await?,
            Err(lost) if lost.is_environment_failure() => return Err(lost),
            Err(_unreadable) => FileOutcome::Unreadable,
        };
        results.add(file.path, outcome);
    }
    Ok(results.finish(walk.ignored()))
}

#[cfg(test)]
mod tests;
