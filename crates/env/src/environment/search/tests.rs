//! Searches through the primitives of an environment that becomes unreachable.

use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;

use super::*;
use crate::{Command, DirEntry, ExecutionEnvironmentExt as _, MemoryEnvironment, Metadata, Process};

/// An environment that becomes unreachable after a number of operations.
#[derive(Debug)]
struct FailingEnvironment {
    inner: MemoryEnvironment,
    successes: usize,
    operations: AtomicUsize,
}

impl FailingEnvironment {
    fn count_operation(&self) -> Result<(), EnvError> {
        match self.operations.fetch_add(1, Ordering::Relaxed) {
            operations if operations < self.successes => Ok(()),
            _ => Err(EnvError::Unreachable { environment: "nowhere".to_owned(), source: None }),
        }
    }
}

#[async_trait]
impl ExecutionEnvironment for FailingEnvironment {
    fn working_directory(&self) -> &Path {
        self.inner.working_directory()
    }

    fn platform(&self) -> &str {
        self.inner.platform()
    }

    fn os_version(&self) -> &str {
        self.inner.os_version()
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        self.inner.spawn(command).await
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        self.count_operation()?;
        self.inner.read(path, range).await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        self.inner.write(path, bytes).await
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        self.count_operation()?;
        self.inner.metadata(path).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        self.count_operation()?;
        self.inner.list(path).await
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        self.inner.remove(path).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        self.inner.rename(from, to).await
    }
}

/// Regardless of when the environment becomes unreachable, no file is reported as unreadable and no
/// further operation is tried, since each attempt to reconnect may take long.
#[tokio::test]
async fn a_lost_environment_ends_the_search_at_once() {
    let inner = MemoryEnvironment::new("/w/project")
        .with_file("/w/.ignore", "*.log\n")
        .with_file(".gitignore", "*.tmp\n")
        .with_file("a.txt", "needle\n")
        .with_file("b/c.txt", "needle\n")
        .with_file("b/.gitignore", "")
        .with_file(".git/info/exclude", "");
    let failing =
        |successes| FailingEnvironment { inner: inner.clone(), successes, operations: AtomicUsize::new(0) };
    let request = GrepRequest::new("needle").with_path("/w/project/b");
    for by_name in [true, false] {
        let mut successes = 0;
        loop {
            let env = failing(successes);
            let result = match by_name {
                true => env.glob("**/*.txt", Path::new("b")).await.map(|found| found.len()),
                false => env.grep(&request).await.map(|output| output.files.len()),
            };
            let operations = env.operations.load(Ordering::Relaxed);
            if operations <= successes {
                assert_eq!(result.unwrap(), 1);
                break;
            }
            assert!(
                matches!(result, Err(EnvError::Unreachable { .. })),
                "after {successes} successes: {result:?}"
            );
            assert_eq!(operations, successes + 1, "an operation follows the failure");
            successes += 1;
        }
        assert!(successes > 5, "the search performs operations");
    }
}
