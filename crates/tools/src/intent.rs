//! Declared changes of files. They describe what an interrupted call intended, so that it can be reconciled with the
//! files.
//!
//! A writing tool calls [`ToolContext::declare`](crate::ToolContext::declare) before its first change. If its process
//! crashes, [`reconcile`] compares the declaration with the files.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use pintle_env::{
    COPIES_DIRECTORY, COPIES_MODE, EnvError, ExecutionEnvironment, FileIdentity, TEMPORARY_PREFIX,
};
use pintle_llm::Fingerprint;
use serde::{Deserialize, Serialize};

use crate::error::ToolError;

/// Intended change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileIntent {
    /// The file, as an absolute path.
    pub path: PathBuf,
    /// The hash of its content before the call; `None` if the file does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Fingerprint>,
    /// The hash of its content after the call; `None` if the file does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Fingerprint>,
    /// The identity of the file before the call, if the file exists and the environment has identities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<FileIdentity>,
}

/// A change that a call is about to make.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredChange<'a> {
    /// The file; relative to the working directory if it is not absolute.
    pub path: &'a Path,
    /// Its content now; `None` if the file does not exist.
    pub before: Option<&'a [u8]>,
    /// Its content afterwards; `None` if the file does not exist then.
    pub after: Option<&'a [u8]>,
}

impl DeclaredChange<'_> {
    /// Returns the change with hashes instead of contents, and with the current identity of the file.
    pub async fn intent(&self, env: &dyn ExecutionEnvironment) -> FileIntent {
        let identity = match self.before {
            // Without an identity, a change by another process cannot be excluded later, which is a conflict.
            Some(_) => env.metadata(self.path).await.ok().and_then(|metadata| metadata.identity),
            None => None,
        };
        FileIntent {
            path: env.resolve(self.path),
            before: self.before.map(Fingerprint::from_bytes),
            after: self.after.map(Fingerprint::from_bytes),
            identity,
        }
    }
}

/// Receives the declarations of calls. A session records them.
#[async_trait]
pub trait IntentSink: Send + Sync {
    /// Returns once the declaration of this call is durable.
    ///
    /// # Errors
    ///
    /// The declaration is not durable. The call must not change anything.
    async fn declare(&self, files: Vec<FileIntent>) -> Result<(), ToolError>;
}

/// The result of comparing a declaration with the files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reconciliation {
    /// Every file has its state after the call.
    Done,
    /// Every file has its state from before the call, and no other process has touched it since.
    Untouched,
    /// Any other state: another process has changed a file, or the call was interrupted between two files.
    Conflict {
        /// Files in their state after the call.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        done: Vec<PathBuf>,
        /// Files in their state from before the call.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        untouched: Vec<PathBuf>,
        /// Files in neither state, and files that may have been touched.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<PathBuf>,
    },
    /// The files cannot be examined.
    Unknown {
        /// Reason.
        reason: String,
    },
}

/// State of one file, compared with its declaration.
enum FileState {
    Done,
    Untouched,
    Changed,
}

impl FileIntent {
    async fn compare(&self, env: &dyn ExecutionEnvironment) -> Result<FileState, EnvError> {
        let found = match env.read(&self.path, None).await {
            Ok(content) => Some(Fingerprint::from_bytes(&content)),
            Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => None,
            // The path has neither of the two states.
            Err(
                EnvError::IsADirectory { .. }
                | EnvError::NotARegularFile { .. }
                | EnvError::TooLarge { .. }
                | EnvError::PermissionDenied { .. },
            ) => return Ok(FileState::Changed),
            Err(error) => return Err(error),
        };
        if found == self.after {
            return Ok(FileState::Done);
        }
        if found != self.before {
            return Ok(FileState::Changed);
        }
        let is_untouched = match found {
            None => true,
            Some(_) => {
                let identity = env.metadata(&self.path).await?.identity;
                identity.is_some() && identity == self.identity
            }
        };
        Ok(if is_untouched { FileState::Untouched } else { FileState::Changed })
    }
}

/// Compares the declaration of an interrupted call with the files. If there are several files, all must be done or all
/// untouched; otherwise there is a conflict. A file whose write in place was interrupted is restored first.
pub async fn reconcile(env: &dyn ExecutionEnvironment, files: &[FileIntent]) -> Reconciliation {
    let (mut done, mut untouched, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        let mut state = file.compare(env).await;
        if matches!(state, Ok(FileState::Changed)) && restore_torn(env, file).await {
            state = Ok(FileState::Untouched);
        }
        let list = match state {
            Ok(FileState::Done) => &mut done,
            Ok(FileState::Untouched) => &mut untouched,
            Ok(FileState::Changed) => &mut changed,
            Err(error) => return Reconciliation::Unknown { reason: error.to_string() },
        };
        list.push(file.path.clone());
    }
    let result = if done.len() == files.len() {
        Reconciliation::Done
    } else if untouched.len() == files.len() {
        Reconciliation::Untouched
    } else {
        Reconciliation::Conflict { done, untouched, changed }
    };
    remove_leftovers(env, files, &result).await;
    result
}

/// Size in bytes above which a temporary file is not read.
const MAX_LEFTOVER: u64 = 64 << 20;

/// Maximum number of temporary files that are read in a directory, and of their bytes.
const MAX_LEFTOVERS: usize = 64;
const MAX_LEFTOVER_BYTES: u64 = 256 << 20;

/// Returns the directories that can contain temporary files for a file.
fn directories_of_copies(file: &FileIntent) -> impl Iterator<Item = &Path> {
    [file.path.parent(), Some(Path::new(COPIES_DIRECTORY))].into_iter().flatten()
}

/// Returns the temporary files in a directory, within the limits. The directory for copies is shared with other users.
async fn temporary_files(env: &dyn ExecutionEnvironment, directory: &Path) -> Vec<PathBuf> {
    let is_shared = directory == Path::new(COPIES_DIRECTORY);
    let (mut found, mut left) = (Vec::new(), MAX_LEFTOVER_BYTES);
    for entry in env.list(directory).await.unwrap_or_default() {
        let is_temporary = entry.name.to_str().is_some_and(|name| name.starts_with(TEMPORARY_PREFIX));
        let size = entry.size.filter(|size| is_temporary && *size <= MAX_LEFTOVER.min(left));
        let Some(size) = size else { continue };
        let path = directory.join(&entry.name);
        if is_shared && !is_own_copy(env, &path).await {
            continue;
        }
        left -= size;
        found.push(path);
        if found.len() == MAX_LEFTOVERS {
            break;
        }
    }
    found
}

/// Returns whether a file is owned by the user and closed to others, as copies are. False if the owner is unknown.
async fn is_own_copy(env: &dyn ExecutionEnvironment, path: &Path) -> bool {
    let found = env.metadata(path).await;
    found.is_ok_and(|found| found.is_owned == Some(true) && found.mode == Some(COPIES_MODE))
}

/// Restores a file whose write in place was interrupted. Returns false for any other file. Copies of both contents must
/// exist, and the file must consist of bytes of these two.
async fn restore_torn(env: &dyn ExecutionEnvironment, file: &FileIntent) -> bool {
    let (Some(before), Some(after)) = (file.before, file.after) else { return false };
    let (mut old, mut new) = (None, None);
    for directory in directories_of_copies(file) {
        for path in temporary_files(env, directory).await {
            let Ok(content) = env.read(&path, None).await else { continue };
            match Fingerprint::from_bytes(&content) {
                hash if hash == before => old = Some(content),
                hash if hash == after => new = Some(content),
                _ => {}
            }
        }
    }
    let (Some(old), Some(new)) = (old, new) else { return false };
    let Ok(found) = env.read(&file.path, None).await else { return false };
    if !is_torn(&found, &old, &new) {
        return false;
    }
    match env.write(&file.path, &old).await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(path = %file.path.display(), %error, "a file whose write was interrupted cannot be restored");
            false
        }
    }
}

/// Returns whether each byte comes from one of two contents. After a power failure, blocks can be zero.
fn is_torn(found: &[u8], old: &[u8], new: &[u8]) -> bool {
    found.len() <= old.len().max(new.len())
        && found
            .iter()
            .enumerate()
            .all(|(at, byte)| *byte == 0 || old.get(at) == Some(byte) || new.get(at) == Some(byte))
}

/// Removes the temporary files of an interrupted call. A file has a separate name for the instant in which it replaces
/// another one. Only known contents are removed: the contents that the call was to write, and the previous contents
/// unless the files are in conflict. Files that cannot be read stay.
async fn remove_leftovers(env: &dyn ExecutionEnvironment, files: &[FileIntent], result: &Reconciliation) {
    let is_settled = matches!(result, Reconciliation::Done | Reconciliation::Untouched);
    let known: HashSet<Fingerprint> =
        files.iter().flat_map(|file| [file.after, file.before.filter(|_| is_settled)]).flatten().collect();
    let directories: BTreeSet<&Path> = files.iter().flat_map(directories_of_copies).collect();
    for directory in directories {
        for path in temporary_files(env, directory).await {
            let Ok(content) = env.read(&path, None).await else { continue };
            if known.contains(&Fingerprint::from_bytes(&content))
                && let Err(error) = env.remove(&path).await
            {
                tracing::debug!(%error, "a temporary file of an interrupted call stays");
            }
        }
    }
}

#[cfg(test)]
mod tests;
