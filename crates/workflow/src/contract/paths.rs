//! Rules for the files that may change.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use thiserror::Error;

use super::TaskScope;
use crate::judging::{FileRole, JudgingRules, RoleTable, is_source};

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
    roles: RoleTable,
    /// Directory of the task, without a final `/`.
    directory: String,
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
            paths: if scope.paths.is_empty() { None } else { Some(set(&scope.paths)?) },
            except: set(&scope.except)?,
            protected: set(&scope.protected)?,
            unprotected: set(&scope.unprotected)?,
            judges: scope.judges.as_ref().map(set).transpose()?,
            roles: RoleTable::new().map_err(|error| InvalidPattern {
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
    pub(crate) fn is_manifest(&self, path: &str) -> bool {
        matches!(self.role(path), FileRole::Manifest(_))
    }

    /// Returns whether a file is a lock file that follows one of these files.
    pub(crate) fn is_lock_of(&self, path: &str, files: &[String]) -> bool {
        let is_followed = |file: &String| self.role(file).is_manifest_of(path);
        self.role(path) == FileRole::Lock && files.iter().any(is_followed)
    }

    /// Returns whether a file is a source by its name, and neither a test nor a manifest or settings.
    pub(crate) fn is_source(&self, path: &str) -> bool {
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
}

impl JudgingRules for PathRules {
    fn role(&self, path: &str) -> FileRole {
        if self.protected.is_match(Path::new(path)) {
            FileRole::Settings
        } else if self.is_unprotected(path) {
            FileRole::Source
        } else {
            self.roles.role(path)
        }
    }

    fn is_unprotected(&self, path: &str) -> bool {
        let path = Path::new(path);
        self.unprotected.is_match(path) && !self.protected.is_match(path)
    }

    fn is_listed(&self, path: &str) -> bool {
        self.paths.is_some() && self.is_in_scope(path)
    }

    fn is_judge(&self, path: &str) -> Option<bool> {
        self.judges.as_ref().map(|judges| judges.is_match(Path::new(path)))
    }

    fn without_directory<'p>(&self, path: &'p str) -> &'p str {
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
