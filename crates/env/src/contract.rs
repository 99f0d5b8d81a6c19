//! Contract tests that every environment must pass, as functions for use by any implementation.
//!
//! Each function takes an environment and a directory in it that does not exist yet, works below
//! that directory, and returns the first violated rule. [`all`] is the complete suite; an
//! environment without commands, or without a shell, runs [`files`] and [`search`]. [`wrapper`] checks
//! a wrapper of any environment.
//!
//! The suite requires a tokio runtime with time enabled. It takes some five seconds, mostly for
//! commands that run into their time-out. It leaves only the directory behind.
//!
//! ```
//! use pintle_env::{MemoryEnvironment, contract};
//! use std::path::Path;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), contract::ContractViolation> {
//! let environment = MemoryEnvironment::new("/project");
//! contract::files(&environment, Path::new("/project/files")).await?;
//! contract::search(&environment, Path::new("/project/search")).await
//! # }
//! ```

mod commands;
mod files;
mod search;
mod trees;
mod wrappers;

use std::{
    fmt,
    path::{Path, PathBuf},
};

pub use self::{commands::commands, files::files, search::search, wrappers::wrapper};
use crate::{environment::ExecutionEnvironment, error::EnvError};

/// Checks the complete contract: files, search and commands.
///
/// # Errors
///
/// The first violated rule.
pub async fn all(env: &dyn ExecutionEnvironment, root: &Path) -> Result<(), ContractViolation> {
    files(env, &root.join("files")).await?;
    search(env, &root.join("search")).await?;
    commands(env, &root.join("commands")).await
}

/// A rule of the contract that an environment violates.
#[derive(Debug, thiserror::Error)]
#[error("{rule}: {found}")]
#[non_exhaustive]
pub struct ContractViolation {
    /// The rule, as a sentence.
    pub rule: String,
    /// The value or error found instead.
    pub found: String,
    /// The environment's error, if it failed unexpectedly.
    pub source: Option<EnvError>,
}

type CheckResult<T = ()> = Result<T, ContractViolation>;

/// The environment under test and the directory for a check.
#[derive(Clone, Copy)]
struct Subject<'a> {
    env: &'a dyn ExecutionEnvironment,
    root: &'a Path,
}

impl Subject<'_> {
    fn path(self, name: impl AsRef<Path>) -> PathBuf {
        self.root.join(name)
    }

    async fn write(self, name: &str, content: &str) -> CheckResult {
        let written = self.env.write(&self.path(name), content.as_bytes()).await;
        succeeds("files can be written", written)
    }
}

fn holds(rule: &str, condition: bool, found: impl fmt::Debug) -> CheckResult {
    if condition {
        return Ok(());
    }
    Err(ContractViolation { rule: rule.to_owned(), found: format!("found {found:?}"), source: None })
}

#[expect(clippy::needless_pass_by_value, reason = "rules read better without references")]
fn equals<T: PartialEq<U> + fmt::Debug, U: fmt::Debug>(rule: &str, found: T, expected: U) -> CheckResult {
    let is_equal = found == expected;
    let both = format!("found {found:?}, expected {expected:?}");
    holds(rule, is_equal, both)
}

fn succeeds<T>(rule: &str, result: Result<T, EnvError>) -> CheckResult<T> {
    result.map_err(|source| ContractViolation {
        rule: rule.to_owned(),
        found: "an error".to_owned(),
        source: Some(source),
    })
}

/// Checks that `result` is an error accepted by `is_expected`.
fn fails<T: fmt::Debug>(
    rule: &str,
    result: Result<T, EnvError>,
    is_expected: impl FnOnce(&EnvError) -> bool,
) -> CheckResult {
    match result {
        Ok(value) => holds(rule, false, value),
        Err(error) => holds(rule, is_expected(&error), error),
    }
}

fn is_not_found(error: &EnvError) -> bool {
    matches!(error, EnvError::NotFound { .. })
}

fn is_a_directory(error: &EnvError) -> bool {
    matches!(error, EnvError::IsADirectory { .. })
}

fn is_not_a_directory(error: &EnvError) -> bool {
    matches!(error, EnvError::NotADirectory { .. })
}

// The examples of the guide are checked here, as a reader's environments would be.
#[cfg(test)]
#[cfg(feature = "local")]
#[path = "../examples/own_environment.rs"]
#[expect(dead_code, unreachable_pub, reason = "an example is a program")]
mod own_environment;

#[cfg(test)]
#[cfg(feature = "local")]
#[path = "../examples/logging_environment.rs"]
#[expect(dead_code, unreachable_pub, reason = "an example is a program")]
pub(crate) mod logging_environment;
