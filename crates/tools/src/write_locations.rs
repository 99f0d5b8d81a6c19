//! Locations that a change of a path affects.

use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment};

/// Returns the locations that a write to `path` may affect, with links resolved: the file to which it leads and, if
/// `path` is a link, the link itself. Removing or renaming a link affects the link; writing through it affects its
/// target.
///
/// # Errors
///
/// As [`ExecutionEnvironment::canonicalize`].
pub async fn write_locations(env: &dyn ExecutionEnvironment, path: &Path) -> Result<Vec<PathBuf>, EnvError> {
    let target = env.canonicalize(path).await?;
    // A path without links is its own location.
    if target == path {
        return Ok(vec![target]);
    }
    let mut locations = vec![target];
    if let (Some(directory), Some(name)) = (path.parent(), path.file_name()) {
        let own = env.canonicalize(directory).await?.join(name);
        if !locations.contains(&own) {
            locations.push(own);
        }
    }
    Ok(locations)
}
