//! What every environment must do, as functions that anybody can run on theirs.
//!
//! Each function takes an environment and a directory in it that does not exist yet, works below
//! that directory, and returns the first rule that is broken. [`all`] is the whole suite; an
//! environment that has no commands, or none that a shell runs, keeps [`files`] and [`search`].
//!
//! The suite needs a tokio runtime with time enabled and takes some ten seconds, most of them in
//! commands that are left to time out. It leaves the directory behind, and nothing else.
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

use std::{
    fmt,
    path::{Path, PathBuf},
};

pub use self::{commands::commands, files::files, search::search};
use crate::{environment::ExecutionEnvironment, error::EnvError};

/// The whole contract: files, search and commands.
///
/// # Errors
///
/// The first rule that is broken.
pub async fn all(env: &dyn ExecutionEnvironment, root: &Path) -> Result<(), ContractViolation> {
    files(env, &root.join("files")).await?;
    search(env, &root.join("search")).await?;
    commands(env, &root.join("commands")).await
}

/// A rule of the contract that an environment breaks.
#[derive(Debug, thiserror::Error)]
#[error("{rule}: {found}")]
#[non_exhaustive]
pub struct ContractViolation {
    /// The rule, as a sentence.
    pub rule: String,
    /// What was found instead.
    pub found: String,
    /// The error of the environment, if there was one where none should be.
    pub source: Option<EnvError>,
}

type Checked<T = ()> = Result<T, ContractViolation>;

/// The environment under test with the directory that a check may use.
#[derive(Clone, Copy)]
struct Subject<'a> {
    env: &'a dyn ExecutionEnvironment,
    root: &'a Path,
}

impl Subject<'_> {
    fn at(self, name: impl AsRef<Path>) -> PathBuf {
        self.root.join(name)
    }

    async fn write(self, name: &str, content: &str) -> Checked {
        let written = self.env.write(&self.at(name), content.as_bytes()).await;
        succeeds("files can be written", written)
    }
}

fn holds(rule: &str, condition: bool, found: impl fmt::Debug) -> Checked {
    if condition {
        return Ok(());
    }
    Err(ContractViolation { rule: rule.to_owned(), found: format!("found {found:?}"), source: None })
}

#[expect(clippy::needless_pass_by_value, reason = "rules read better without references")]
fn equals<T: PartialEq<U> + fmt::Debug, U: fmt::Debug>(rule: &str, found: T, expected: U) -> Checked {
    let is_equal = found == expected;
    let both = format!("found {found:?}, expected {expected:?}");
    holds(rule, is_equal, both)
}

fn succeeds<T>(rule: &str, result: Result<T, EnvError>) -> Checked<T> {
    result.map_err(|source| ContractViolation {
        rule: rule.to_owned(),
        found: "an error".to_owned(),
        source: Some(source),
    })
}

/// Expects a failure that `is_expected` accepts.
fn fails<T: fmt::Debug>(
    rule: &str,
    result: Result<T, EnvError>,
    is_expected: impl FnOnce(&EnvError) -> bool,
) -> Checked {
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

// The example of the guide is held to the contract by its own test, as a reader's environment would be.
#[cfg(test)]
#[path = "../examples/own_environment.rs"]
#[expect(dead_code, unreachable_pub, reason = "an example is a program")]
mod own_environment;
