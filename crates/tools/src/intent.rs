//! Declared changes of files: what a call is about to do, so that an interrupted call can be reconciled with the files.
//!
//! A writing tool calls [`ToolContext::declare`](crate::ToolContext::declare) before its first change. If its process
//! dies, [`reconcile`] compares the declaration with the files.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use pintle_env::{EnvError, ExecutionEnvironment, FileIdentity};
use pintle_llm::Fingerprint;
use serde::{Deserialize, Serialize};

use crate::error::ToolError;

/// Intended change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FileIntent {
    /// The file, as an absolute path.
    pub path: PathBuf,
    /// The hash of its content before the call; `None` if there is no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Fingerprint>,
    /// The hash of its content after the call; `None` if there is no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Fingerprint>,
    /// The identity of the file before the call, if there is a file and the environment has identities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<FileIdentity>,
}

/// A change that a call is about to make.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredChange<'a> {
    /// The file; relative to the working directory if it is not absolute.
    pub path: &'a Path,
    /// Its content now; `None` if there is no file.
    pub before: Option<&'a [u8]>,
    /// Its content afterwards; `None` if there is no file then.
    pub after: Option<&'a [u8]>,
}

impl DeclaredChange<'_> {
    /// Returns the change with hashes in place of contents, and with the identity that the file has now.
    pub async fn intent(&self, env: &dyn ExecutionEnvironment) -> FileIntent {
        let identity = match self.before {
            // Without an identity, a change by others cannot be excluded later. That is a conflict then.
            Some(_) => env.metadata(self.path).await.ok().and_then(|metadata| metadata.identity),
            None => None,
        };
        FileIntent {
            path: env.resolve(self.path),
            before: self.before.map(Fingerprint::of),
            after: self.after.map(Fingerprint::of),
            identity,
        }
    }
}

/// Takes the declarations of calls. A session records them.
#[async_trait]
pub trait IntentSink: Send + Sync {
    /// Returns once the declaration of this call is durable.
    ///
    /// # Errors
    ///
    /// The declaration is not durable, so the call must not change anything.
    async fn declare(&self, files: Vec<FileIntent>) -> Result<(), ToolError>;
}

/// The result of comparing a declaration with the files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reconciliation {
    /// Every file is as the call leaves it.
    Done,
    /// Every file is as it was before the call, and nobody has touched it since.
    Untouched,
    /// Anything else: somebody else has changed a file, or the call was interrupted between two files.
    Conflict {
        /// Files that are as the call leaves them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        done: Vec<PathBuf>,
        /// Files that are as they were before the call.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        untouched: Vec<PathBuf>,
        /// Files that are neither, or of which nobody can say whether they were touched.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<PathBuf>,
    },
    /// The files cannot be looked at.
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
            Ok(content) => Some(Fingerprint::of(&content)),
            Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => None,
            // It is neither of the two.
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

/// Compares the declaration of an interrupted call with the files. Of several files, all or none go on: anything else is
/// a conflict.
pub async fn reconcile(env: &dyn ExecutionEnvironment, files: &[FileIntent]) -> Reconciliation {
    let (mut done, mut untouched, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        let list = match file.compare(env).await {
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

/// Beginning of the names of temporary files, of every environment and of `apply_patch`.
const TEMPORARY: &str = ".pintle-";

/// Size in bytes above which a temporary file is not looked at.
const MAX_LEFTOVER: u64 = 64 << 20;

/// Removes the temporary files of an interrupted call: a file gets a name of its own for the instant in which it takes the
/// place of another one. Only contents that are found elsewhere are removed: what the call was to write, and what was there
/// before unless the files are in conflict. Whatever cannot be looked at stays.
async fn remove_leftovers(env: &dyn ExecutionEnvironment, files: &[FileIntent], result: &Reconciliation) {
    let is_settled = matches!(result, Reconciliation::Done | Reconciliation::Untouched);
    let known: HashSet<Fingerprint> =
        files.iter().flat_map(|file| [file.after, file.before.filter(|_| is_settled)]).flatten().collect();
    let directories: BTreeSet<&Path> = files.iter().filter_map(|file| file.path.parent()).collect();
    for directory in directories {
        for entry in env.list(directory).await.unwrap_or_default() {
            let is_temporary = entry.name.to_str().is_some_and(|name| name.starts_with(TEMPORARY));
            if !is_temporary || entry.size.is_none_or(|size| size > MAX_LEFTOVER) {
                continue;
            }
            let path = directory.join(&entry.name);
            let Ok(content) = env.read(&path, None).await else { continue };
            if known.contains(&Fingerprint::of(&content))
                && let Err(error) = env.remove(&path).await
            {
                tracing::debug!(%error, "a temporary file of an interrupted call stays");
            }
        }
    }
}

#[cfg(test)]
mod tests;
