//! Writing a plan: all of it, or nothing.

use std::collections::BTreeMap;
use std::path::Path;

use pintle_env::{EnvError, ExecutionEnvironment};
use pintle_patch::{Patch, Plan};

use super::error::{ApplyPlanError, ReadFilesError};
use super::stage;
use super::steps::Steps;

/// The most bytes that the files of one patch may have together: 256 MiB.
pub const MAX_FILES_BYTES: u64 = 256 << 20;

/// Reads what [`pintle_patch::plan()`] must be given: the content of every path of the patch that is a file.
///
/// # Errors
///
/// [`ReadFilesError::TooLarge`] above [`MAX_FILES_BYTES`], and the errors of [`ExecutionEnvironment::read`] for what
/// is there and is no file, or cannot be read.
pub async fn read_files(
    env: &dyn ExecutionEnvironment,
    patch: &Patch,
) -> Result<BTreeMap<String, Vec<u8>>, ReadFilesError> {
    read_within(MAX_FILES_BYTES, env, patch).await
}

/// Makes every change of a plan, or none.
///
/// Each file is compared with what the plan was made for before it is changed. Before the first change of several the
/// room for all new contents is taken and given back, so that a full disk is noticed in time. If a step fails, all
/// before it are undone in reverse order, and directories that were made for new files are removed if they are empty.
/// A directory whose last file is deleted stays. Mode and owner of a file stay; a symbolic link is followed when its
/// file is updated, goes alone when it is deleted, and becomes a file when it is moved.
///
/// Changes that do not depend on each other are made side by side, some at a time. Files that are needed for a while
/// have names that begin with `.pintle-`. Dropping the future leaves them and what is written by then, as a lost
/// machine would.
///
/// # Errors
///
/// [`ApplyPlanError`] with the file at which it stopped, the cause, and what could not be put back, if anything.
pub async fn apply_plan(env: &dyn ExecutionEnvironment, plan: &Plan) -> Result<(), ApplyPlanError> {
    let stages = Steps::of(env, plan).await?;
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
    let mut room = limit;
    for path in patch.paths() {
        // One byte more than allowed shows that there is more.
        match env.read(Path::new(path), Some(0..room + 1)).await {
            Ok(content) => {
                room = room.checked_sub(content.len() as u64).ok_or_else(|| too_large(path))?;
                files.insert(path.to_owned(), content);
            }
            Err(EnvError::TooLarge { .. }) => return Err(too_large(path)),
            // What is a file now may be a directory once the patch has deleted it.
            Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
