//! Errors of reading and writing the files of a patch.

use std::fmt;
use std::path::PathBuf;

use pintle_env::EnvError;

use crate::error::{ToolError, ToolErrorKind};

/// A plan that could not be applied.
///
/// The changes before the failure have been undone, except for [`left_changed`](Self::left_changed).
#[derive(Debug, thiserror::Error)]
#[error("{path} cannot be written, and {}", outcome(.left_changed))]
#[non_exhaustive]
pub struct ApplyPlanError {
    /// The file that could not be written.
    pub path: String,
    /// The files that could not be restored; empty if no file is changed.
    pub left_changed: Vec<UnrestoredFile>,
    /// The cause.
    #[source]
    pub cause: ApplyPlanCause,
}

/// A file that could not be restored. `Display` shows its path and the path of its old content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnrestoredFile {
    /// The file.
    pub path: String,
    /// The path that now has its old content, if any.
    pub kept_at: Option<PathBuf>,
}

/// The causes of an [`ApplyPlanError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyPlanCause {
    /// Another process changed the file after it was read.
    #[error("it is not what it was when it was read")]
    Changed,
    /// Two paths of the patch lead to the same file through symbolic links.
    #[error("it is the same file as {other}")]
    SameFile {
        /// The path that is earlier in the patch.
        other: String,
    },
    /// The path of a new file is a dangling symbolic link.
    #[error("a symbolic link to nothing stands there")]
    LinkToNowhere,
    /// The environment failed, for example because the disk is full.
    #[error(transparent)]
    Environment(#[from] EnvError),
}

/// The files of a patch could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadFilesError {
    /// The files have more than [`MAX_FILES_BYTES`](super::MAX_FILES_BYTES) in total.
    #[error("{path} is too large: the files of a patch may hold {} MiB together", .limit >> 20)]
    TooLarge {
        /// The file that exceeds the limit.
        path: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The environment failed, or a path is not a file.
    #[error(transparent)]
    Environment(#[from] EnvError),
}

impl From<ReadFilesError> for ToolError {
    fn from(error: ReadFilesError) -> Self {
        match error {
            ReadFilesError::TooLarge { .. } => {
                Self::new(ToolErrorKind::Failed, error.to_string()).with_source(error)
            }
            ReadFilesError::Environment(cause) => cause.into(),
        }
    }
}

impl ApplyPlanError {
    pub(super) fn new(path: &str, cause: ApplyPlanCause, left_changed: Vec<UnrestoredFile>) -> Self {
        Self { path: path.to_owned(), left_changed, cause }
    }
}

impl fmt::Display for UnrestoredFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        match &self.kept_at {
            Some(path) => write!(f, " (kept as {})", path.display()),
            None => Ok(()),
        }
    }
}

impl From<ApplyPlanError> for ToolError {
    fn from(error: ApplyPlanError) -> Self {
        let outcome = outcome(&error.left_changed);
        let path = error.path;
        match error.cause {
            ApplyPlanCause::Changed => {
                let message = format!("{path} is not what it was when it was read: read it again; {outcome}");
                Self::new(ToolErrorKind::EditConflict, message).with_source(ApplyPlanCause::Changed)
            }
            cause @ ApplyPlanCause::SameFile { .. } => {
                let message = format!("{path} cannot be written: {cause}; use one path for it; {outcome}");
                Self::new(ToolErrorKind::EditConflict, message).with_source(cause)
            }
            cause @ ApplyPlanCause::LinkToNowhere => {
                let message = format!(
                    "{path} cannot be written: {cause}; remove the link or make its target first; {outcome}"
                );
                Self::new(ToolErrorKind::EditConflict, message).with_source(cause)
            }
            ApplyPlanCause::Environment(cause) => {
                let cause = Self::from(cause);
                let message =
                    format!("The patch fits, but writing {path} failed: {}; {outcome}", cause.for_model());
                Self::new(cause.kind(), message).with_source(cause)
            }
        }
    }
}

fn outcome(left_changed: &[UnrestoredFile]) -> String {
    if left_changed.is_empty() {
        return "no file is changed".to_owned();
    }
    let files: Vec<String> = left_changed.iter().map(UnrestoredFile::to_string).collect();
    format!("the changes before it were taken back, but for {}: look at them", files.join(", "))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_failure_tells_which_files_are_changed() {
        let full = EnvError::from_io("write", Path::new("/b"), std::io::ErrorKind::StorageFull.into());
        let lost = EnvError::EnvironmentLost { environment: "box".into(), source: None };
        let cases = [
            (
                ApplyPlanError::new("b", full.into(), Vec::new()),
                "b cannot be written, and no file is changed",
                ToolErrorKind::Failed,
                "The patch fits, but writing b failed: cannot write /b: no storage space; no file is changed",
            ),
            (
                ApplyPlanError::new(
                    "b",
                    lost.into(),
                    vec![
                        UnrestoredFile { path: "a".into(), kept_at: None },
                        UnrestoredFile { path: "c".into(), kept_at: Some(".pintle-1".into()) },
                    ],
                ),
                "b cannot be written, and the changes before it were taken back, but for a, c (kept as .pintle-1): look at them",
                ToolErrorKind::EnvironmentLost,
                "The patch fits, but writing b failed: the connection to box is lost; \
                 the changes before it were taken back, but for a, c (kept as .pintle-1): look at them",
            ),
            (
                ApplyPlanError::new("b", ApplyPlanCause::Changed, Vec::new()),
                "b cannot be written, and no file is changed",
                ToolErrorKind::EditConflict,
                "b is not what it was when it was read: read it again; no file is changed",
            ),
        ];
        for (error, shown, kind, for_model) in cases {
            assert_eq!(error.to_string(), shown);
            assert!(std::error::Error::source(&error).is_some());
            let error = ToolError::from(error);
            assert_eq!((error.kind(), error.for_model()), (kind, for_model));
        }
    }
}
