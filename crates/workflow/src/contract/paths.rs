//! Rules for the files that may change.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use thiserror::Error;

use super::TaskScope;

/// Files that affect the verdict. They must not change unless a contract allows it: tests, their configuration, continuous
/// integration, lock files, and files that change how git treats other files. Files that a tool prefers to one of these are
/// listed as well: a candidate that adds such a file makes the other one ineffective without changing it.
const PROTECTED: [&str; 91] = [
    "**/test/**",
    "**/tests/**",
    "**/__tests__/**",
    "**/testdata/**",
    "**/fixtures/**",
    "**/spec/**",
    "**/test.*",
    "**/tests.*",
    "**/*_test.*",
    "**/*_tests.*",
    "**/test_*.*",
    "**/*.test.*",
    "**/*.spec.*",
    "**/*Test.*",
    "**/*Tests.*",
    "**/conftest.py",
    "**/pytest.ini",
    "**/.pytest.ini",
    "**/pytest.toml",
    "**/.pytest.toml",
    "**/tox.ini",
    "**/tox.toml",
    "**/noxfile.py",
    "**/setup.cfg",
    "**/pyproject.toml",
    "**/uv.toml",
    "**/.coveragerc*",
    "**/mypy.ini",
    "**/.mypy.ini",
    "**/pyrightconfig.json",
    "**/ty.toml",
    "**/ruff.toml",
    "**/.ruff.toml",
    "**/.flake8",
    "**/pylintrc*",
    "**/.pylintrc*",
    "**/package.json",
    "**/.npmrc",
    "**/.yarnrc*",
    "**/bunfig.toml",
    "**/.eslintrc*",
    "**/eslint.config.*",
    "**/jest.config.*",
    "**/vitest.config.*",
    "**/vitest.workspace.*",
    "**/karma.conf.*",
    "**/playwright.config.*",
    "**/cypress.config.*",
    "**/ava.config.*",
    "**/.taprc",
    "**/.nycrc*",
    "**/.mocharc*",
    "**/Makefile",
    "**/GNUmakefile",
    "**/makefile",
    "**/BSDmakefile",
    "**/[jJ]ustfile",
    "**/.[jJ]ustfile",
    "**/[tT]askfile.{yml,yaml}",
    "**/[tT]askfile.dist.{yml,yaml}",
    "**/CMakePresets.json",
    "**/CMakeUserPresets.json",
    "**/.cargo/**",
    "**/.config/nextest.toml",
    "**/build.rs",
    "**/rust-toolchain",
    "**/rust-toolchain.toml",
    "**/Cargo.lock",
    "**/package-lock.json",
    "**/npm-shrinkwrap.json",
    "**/yarn.lock",
    "**/pnpm-lock.yaml",
    "**/bun.lock",
    "**/bun.lockb",
    "**/poetry.lock",
    "**/uv.lock",
    "**/pdm.lock",
    "**/Pipfile.lock",
    "**/go.sum",
    "**/go.work",
    "**/go.work.sum",
    ".github/**",
    ".gitea/**",
    ".forgejo/**",
    ".gitlab-ci.yml",
    ".ci/**",
    ".circleci/**",
    "**/.gitattributes",
    "**/.gitmodules",
    "**/.gitignore",
    "**/.envrc",
];

/// Protected files that contain tests. An anchor may add to them.
const TESTS: [&str; 15] = [
    "**/test/**",
    "**/tests/**",
    "**/__tests__/**",
    "**/testdata/**",
    "**/fixtures/**",
    "**/spec/**",
    "**/test.*",
    "**/tests.*",
    "**/*_test.*",
    "**/*_tests.*",
    "**/test_*.*",
    "**/*.test.*",
    "**/*.spec.*",
    "**/*Test.*",
    "**/*Tests.*",
];

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
/// Tests, their configuration, continuous integration and lock files are protected unless the scope names them as
/// `unprotected`.
#[derive(Clone, Debug)]
pub struct PathRules {
    paths: Option<GlobSet>,
    except: GlobSet,
    protected: GlobSet,
    usual: GlobSet,
    unprotected: GlobSet,
    tests: GlobSet,
}

impl PathRules {
    /// Compiles the patterns of a scope.
    ///
    /// # Errors
    ///
    /// [`InvalidPattern`] for the first invalid pattern.
    pub fn new(scope: &TaskScope) -> Result<Self, InvalidPattern> {
        Ok(Self {
            paths: if scope.paths.is_empty() { None } else { Some(set(&scope.paths)?) },
            except: set(&scope.except)?,
            protected: set(&scope.protected)?,
            usual: set(&PROTECTED)?,
            unprotected: set(&scope.unprotected)?,
            tests: set(&TESTS)?,
        })
    }

    /// Returns whether a file is in the scope. Protected files may be in it as well.
    #[must_use]
    pub fn is_in_scope(&self, path: &str) -> bool {
        let path = Path::new(path);
        self.paths.as_ref().is_none_or(|paths| paths.is_match(path)) && !self.except.is_match(path)
    }

    /// Returns whether the scope names a file, and does not allow all files.
    #[must_use]
    pub fn is_named(&self, path: &str) -> bool {
        self.paths.is_some() && self.is_in_scope(path)
    }

    /// Returns whether a file must not change.
    #[must_use]
    pub fn is_protected(&self, path: &str) -> bool {
        let path = Path::new(path);
        self.protected.is_match(path) || self.usual.is_match(path) && !self.unprotected.is_match(path)
    }

    /// Returns whether a file contains tests.
    #[must_use]
    pub fn is_test(&self, path: &str) -> bool {
        self.tests.is_match(Path::new(path))
    }
}

fn set(patterns: &[impl AsRef<str>]) -> Result<GlobSet, InvalidPattern> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.as_ref();
        let invalid = |reason: String| InvalidPattern { pattern: pattern.to_owned(), reason };
        if pattern.is_empty() || pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
            return Err(invalid("expected a path from the root of the repository".to_owned()));
        }
        // A directory matches all files in it.
        let glob = pattern.strip_suffix('/').map(|directory| format!("{directory}/**"));
        let built = GlobBuilder::new(glob.as_deref().unwrap_or(pattern)).literal_separator(true).build();
        set.add(built.map_err(|error| invalid(error.kind().to_string()))?);
    }
    set.build().map_err(|error| InvalidPattern { pattern: String::new(), reason: error.to_string() })
}
