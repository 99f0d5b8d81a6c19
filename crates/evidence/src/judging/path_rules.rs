//! Rules for the files that may change.

#[cfg(test)]
mod tests;

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::roles::{FileRole, RoleTable};
use super::sources::is_source;

/// Files that may change. Patterns are globs, relative to the directory of the task, which is usually the root of the
/// repository: `*` does not match `/`, `**` does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TaskScope {
    /// Files that may change. Empty for all files.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Files among them that must not change.
    #[serde(default)]
    pub except: Vec<String>,
    /// Files that must not change, in addition to [the usual ones](PathRules).
    #[serde(default)]
    pub protected: Vec<String>,
    /// Files that may change although they are usually protected.
    #[serde(default)]
    pub unprotected: Vec<String>,
    /// Files that judge because a command runs, reads or includes them. Default: found in the commands of the contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judges: Option<Vec<String>>,
    /// Maximum number of added and removed lines together. Default 5,000.
    #[serde(default = "default_lines")]
    pub max_lines: u64,
}

/// Invalid pattern.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{pattern}` is no pattern: {reason}")]
#[non_exhaustive]
pub struct InvalidPattern {
    /// The text.
    pub pattern: String,
    /// Reason.
    pub reason: String,
}

/// The compiled patterns of a [`TaskScope`]. Paths have the form of git: relative to the root of the repository, with `/`.
///
/// Tests, their data and settings, continuous integration and lock files are protected unless the scope names them as
/// `unprotected`. Names are compared without case. Manifests and build files are compared by key.
#[derive(Clone, Debug)]
pub struct PathRules {
    paths: Option<GlobSet>,
    except: GlobSet,
    protected: GlobSet,
    unprotected: GlobSet,
    judges: Option<GlobSet>,
    roles: &'static RoleTable,
    /// Directory of the task, without a final `/`.
    directory: String,
    max_lines: u64,
}

impl Default for TaskScope {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            except: Vec::new(),
            protected: Vec::new(),
            unprotected: Vec::new(),
            judges: None,
            max_lines: default_lines(),
        }
    }
}

impl TaskScope {
    /// Sets the files that may change.
    #[must_use]
    pub fn with_paths(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.paths = paths.into_iter().map(Into::into).collect();
        self
    }
}

impl PathRules {
    /// Compiles the patterns of a scope.
    ///
    /// # Errors
    ///
    /// [`InvalidPattern`] for the first invalid pattern.
    pub fn new(scope: &TaskScope) -> Result<Self, InvalidPattern> {
        Self::in_directory(scope, "")
    }

    /// Compiles the patterns of a scope, which are relative to this directory. Paths are relative to the root all the same.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn in_directory(scope: &TaskScope, directory: &str) -> Result<Self, InvalidPattern> {
        let set = |patterns: &Vec<String>| set(directory, patterns);
        Ok(Self {
            directory: directory.to_owned(),
            max_lines: scope.max_lines,
            paths: if scope.paths.is_empty() { None } else { Some(set(&scope.paths)?) },
            except: set(&scope.except)?,
            protected: set(&scope.protected)?,
            unprotected: set(&scope.unprotected)?,
            judges: scope.judges.as_ref().map(set).transpose()?,
            roles: RoleTable::shared().map_err(|error| InvalidPattern {
                pattern: error.glob().unwrap_or_default().to_owned(),
                reason: error.kind().to_string(),
            })?,
        })
    }

    /// Returns whether a file is in the scope. Protected files may be in it as well.
    #[must_use]
    pub fn is_in_scope(&self, path: &str) -> bool {
        let path = Path::new(path);
        self.paths.as_ref().is_none_or(|paths| paths.is_match(path)) && !self.except.is_match(path)
    }

    /// Returns whether a file must not change. Manifests may change in part.
    #[must_use]
    pub fn is_protected(&self, path: &str) -> bool {
        self.role(path).is_frozen()
    }

    /// Returns whether a file is a manifest or a build file, whose keys judge in part.
    #[must_use]
    pub fn is_manifest(&self, path: &str) -> bool {
        matches!(self.role(path), FileRole::Manifest(_))
    }

    /// Returns whether a file is a lock file that follows one of these files.
    #[must_use]
    pub fn is_lock_of(&self, path: &str, files: &[String]) -> bool {
        let is_followed = |file: &String| self.role(file).is_manifest_of(path);
        self.role(path) == FileRole::Lock && files.iter().any(is_followed)
    }

    /// Returns whether a file is a source by its name, and neither a test nor a manifest or settings.
    #[must_use]
    pub fn is_source(&self, path: &str) -> bool {
        is_source(self, path)
    }

    /// Returns whether a file has settings of runners, tools or builds by its name, whatever the scope lists.
    pub(crate) fn is_configuration(&self, path: &str) -> bool {
        matches!(
            self.roles.role(path),
            FileRole::Settings | FileRole::Manifest(_) | FileRole::ToolSettings(_)
        )
    }

    /// Returns whether a file contains tests or their data.
    #[must_use]
    pub fn is_test(&self, path: &str) -> bool {
        self.roles.role(path).is_test()
    }

    /// Returns whether the scope lists its paths and contains this file.
    #[must_use]
    pub fn is_listed(&self, path: &str) -> bool {
        self.paths.is_some() && self.is_in_scope(path)
    }

    /// Returns the directory of the task, without a final `/`. Empty for the root.
    pub(crate) fn directory(&self) -> &str {
        &self.directory
    }

    /// Returns the maximum number of added and removed lines together.
    pub(crate) fn max_lines(&self) -> u64 {
        self.max_lines
    }

    /// Returns the role of a file. Files that the contract protects are settings, and unprotected ones are sources.
    pub(super) fn role(&self, path: &str) -> FileRole {
        if self.protected.is_match(Path::new(path)) {
            FileRole::Settings
        } else if self.is_unprotected(path) {
            FileRole::Source
        } else {
            self.roles.role(path)
        }
    }

    /// Returns whether the contract allows a file to change although it judges.
    pub(super) fn is_unprotected(&self, path: &str) -> bool {
        let path = Path::new(path);
        self.unprotected.is_match(path) && !self.protected.is_match(path)
    }

    /// Returns whether a file judges because a command names it, if the contract has the list.
    pub(super) fn is_judge(&self, path: &str) -> Option<bool> {
        self.judges.as_ref().map(|judges| judges.is_match(Path::new(path)))
    }

    /// Returns a path in the directory of the task without the directory, and any other path unchanged.
    pub(super) fn without_directory<'p>(&self, path: &'p str) -> &'p str {
        let rest = path.strip_prefix(&self.directory).and_then(|rest| rest.strip_prefix('/'));
        rest.filter(|_| !self.directory.is_empty()).unwrap_or(path)
    }
}

fn set(directory: &str, patterns: &[String]) -> Result<GlobSet, InvalidPattern> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let invalid = |reason: String| InvalidPattern { pattern: pattern.clone(), reason };
        if pattern.is_empty() || pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
            return Err(invalid("expected a path from the root of the repository".to_owned()));
        }
        // A directory matches all files in it.
        let glob = pattern.strip_suffix('/').map(|directory| format!("{directory}/**"));
        let mut glob = glob.unwrap_or_else(|| pattern.clone());
        if !directory.is_empty() {
            glob = format!("{}/{glob}", globset::escape(directory));
        }
        let built = GlobBuilder::new(&glob).literal_separator(true).build();
        set.add(built.map_err(|error| invalid(error.kind().to_string()))?);
    }
    set.build().map_err(|error| InvalidPattern { pattern: String::new(), reason: error.to_string() })
}

fn default_lines() -> u64 {
    5_000
}
