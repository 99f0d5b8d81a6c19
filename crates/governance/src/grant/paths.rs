//! Scopes of paths.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GrantError;

/// Files and directories: those in a root, but not those in an exception.
///
/// Paths are compared by their components, after the environment has resolved their links. They are absolute and have
/// neither `.` nor `..`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PathScope {
    /// Roots; `/` is everything.
    pub roots: BTreeSet<String>,
    /// Excluded files and directories.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub except: BTreeSet<String>,
}

impl PathScope {
    /// Creates a scope without any file.
    #[must_use]
    pub fn none() -> Self {
        Self { roots: BTreeSet::new(), except: BTreeSet::new() }
    }

    /// Creates the scope of all files.
    #[must_use]
    pub fn all() -> Self {
        Self::within(["/"])
    }

    /// Creates a scope with these roots.
    #[must_use]
    pub fn within<T: Into<String>>(roots: impl IntoIterator<Item = T>) -> Self {
        Self { roots: roots.into_iter().map(Into::into).collect(), except: BTreeSet::new() }
    }

    /// Excludes these files and directories.
    #[must_use]
    pub fn except<T: Into<String>>(mut self, paths: impl IntoIterator<Item = T>) -> Self {
        self.except.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Returns whether the scope contains a resolved path.
    #[must_use]
    pub fn contains(&self, path: &Path) -> bool {
        is_canonical(path) && below(path, &self.roots) && !below(path, &self.except)
    }

    /// Returns whether a path is an exception, or below one.
    #[must_use]
    pub fn excludes(&self, path: &Path) -> bool {
        below(path, &self.except)
    }

    /// Returns an excluded path below `directory`, if there is one: a search of the directory would read it.
    #[must_use]
    pub fn excluded_below(&self, directory: &Path) -> Option<&Path> {
        self.except.iter().map(Path::new).find(|excluded| excluded.starts_with(directory))
    }

    /// Returns whether the scope contains all paths of `other`.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        other.roots.iter().map(Path::new).all(|root| {
            // A root that its own scope excludes contains nothing.
            below(root, &other.except)
                || (below(root, &self.roots)
                    && !below(root, &self.except)
                    && self
                        .except
                        .iter()
                        .map(Path::new)
                        .all(|excluded| !excluded.starts_with(root) || below(excluded, &other.except)))
        })
    }

    pub(super) fn check(&self, field: &'static str) -> Result<(), GrantError> {
        match self.roots.iter().chain(&self.except).find(|path| !is_canonical(Path::new(path))) {
            Some(path) => Err(GrantError::Path { field, path: path.clone() }),
            None => Ok(()),
        }
    }
}

/// Returns whether a path is one of these, or below one.
fn below(path: &Path, of: &BTreeSet<String>) -> bool {
    of.iter().any(|other| path.starts_with(other))
}

fn is_canonical(path: &Path) -> bool {
    // `components` drops `.` that is not the first one, and `starts_with` does so too.
    path.is_absolute()
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}
