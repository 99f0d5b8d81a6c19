//! The [`ExecutionEnvironmentExt`] trait: operations that only call others of an environment.

use std::path::{Path, PathBuf};

use async_trait::async_trait;

use super::{ExecutionEnvironment, listing};
use crate::{error::EnvError, file::DirEntry, search::GlobRequest};

/// Operations of the loop specification that call others of [`ExecutionEnvironment`].
///
/// Every environment has them, trait objects included, and none can replace them: a wrapper that restricts the operations
/// behind them restricts these too. They are as cancel safe as the operations that they call.
#[async_trait]
pub trait ExecutionEnvironmentExt: ExecutionEnvironment {
    /// Writes a text file; see [`write`](ExecutionEnvironment::write).
    ///
    /// # Errors
    ///
    /// Those of [`write`](ExecutionEnvironment::write).
    async fn write_file(&self, path: &Path, content: &str) -> Result<(), EnvError> {
        self.write(path, content.as_bytes()).await
    }

    /// Returns true if the path exists; a dangling link does not.
    ///
    /// # Errors
    ///
    /// Those of [`metadata`](ExecutionEnvironment::metadata), except [`EnvError::NotFound`] and a parent that is a
    /// file, both of which return false.
    async fn file_exists(&self, path: &Path) -> Result<bool, EnvError> {
        match self.metadata(path).await {
            Ok(_) => Ok(true),
            Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Lists a directory recursively, down to `depth` levels (0 counts as 1).
    ///
    /// Each directory precedes its entries, which are sorted by the bytes of their names. Names are
    /// relative to `path`. Links are not followed; nothing is hidden or ignored.
    ///
    /// # Errors
    ///
    /// [`EnvError::TooManyEntries`] above [`MAX_ENTRIES`](crate::MAX_ENTRIES).
    async fn list_directory(&self, path: &Path, depth: usize) -> Result<Vec<DirEntry>, EnvError> {
        listing::list_directory(self, path, depth).await
    }

    /// Finds files by a glob relative to `path`, as [`find_files`](ExecutionEnvironment::find_files) does.
    ///
    /// # Errors
    ///
    /// Those of [`find_files`](ExecutionEnvironment::find_files).
    async fn glob(&self, pattern: &str, path: &Path) -> Result<Vec<PathBuf>, EnvError> {
        self.find_files(&GlobRequest::new(pattern).with_path(path)).await
    }
}

impl<E: ExecutionEnvironment + ?Sized> ExecutionEnvironmentExt for E {}
