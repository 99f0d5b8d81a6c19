//! Transactions: either all changes of a plan are made, or none.

use std::collections::BTreeMap;
use std::path::Path;

use pintle_env::{EnvError, ExecutionEnvironment};
use pintle_patch::{Patch, Plan};

use super::error::{ApplyPlanError, ReadFilesError};
use super::stage;
use super::steps::Steps;

/// Maximum total size of the files of one patch, in bytes: 256 MiB.
pub const MAX_FILES_BYTES: u64 = 256 << 20;

/// Reads the input of [`pintle_patch::plan()`]: the content of every path of the patch that is a file.
///
/// # Errors
///
/// [`ReadFilesError::TooLarge`] above [`MAX_FILES_BYTES`], and the errors of [`ExecutionEnvironment::read`] for paths
/// that exist but cannot be read as a file.
pub async fn read_files(
    env: &dyn ExecutionEnvironment,
    patch: &Patch,
) -> Result<BTreeMap<String, Vec<u8>>, ReadFilesError> {
    read_within(MAX_FILES_BYTES, env, patch).await
}

/// Makes all changes of a plan, or none.
///
/// Before a file is changed, its content is compared with the planned old content. Before the first of several changes,
/// disk space for all new contents is reserved and released, so that a full disk is detected early. If a step fails,
/// all earlier steps are undone in reverse order, and new directories are removed if they are empty. A directory whose
/// last file is deleted stays. Files keep their mode and owner. A symbolic link is followed when its file is updated,
/// is itself removed when it is deleted, and becomes a file when it is moved.
///
/// Independent changes run concurrently, up to a limit. Temporary files have names that start with `.pintle-`. Dropping
/// the future leaves them and the changes made so far.
///
/// # Errors
///
/// [`ApplyPlanError`] with the file that failed, the cause, and the files that could not be restored.
pub async fn apply_plan(env: &dyn ExecutionEnvironment, plan: &Plan) -> Result<(), ApplyPlanError> {
    let stages = Steps::plan_stages(env, plan).await?;
    let mut done = Vec::new();
    for stage in &stages {
        if let Err(stopped) = stage.run(env, &mut done).await {
            let mut left_changed = stopped.left_changed;
            stage::undo(env, &done, &mut left_changed).await;
            return Err(ApplyPlanError::new(stopped.path, stopped.cause, left_changed));
        }
    }
    Ok(())
}

async fn read_within(
    limit: u64,
    env: &dyn ExecutionEnvironment,
    patch: &Patch,
) -> Result<BTreeMap<String, Vec<u8>>, ReadFilesError> {
    let too_large = |path: &str| ReadFilesError::TooLarge { path: path.to_owned(), limit };
    let mut files = BTreeMap::new();
    let mut remaining = limit;
    for path in patch.paths() {
        // One byte more than allowed detects a larger file.
        match env.read(Path::new(path), Some(0..remaining + 1)).await {
            Ok(content) => {
                remaining = remaining.checked_sub(content.len() as u64).ok_or_else(|| too_large(path))?;
                files.insert(path.to_owned(), content);
            }
            Err(EnvError::TooLarge { .. }) => return Err(too_large(path)),
            // The patch may delete a file to create a directory with its name.
            Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
