//! The target directory of cold checks.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
    process,
};

use super::wrapper;

/// A target directory apart from that of the workspace, in which each compiler run is timed.
pub(crate) struct ColdChecks {
    directory: PathBuf,
}

impl ColdChecks {
    /// Empties the directory.
    pub(super) fn fresh(metadata: &Metadata) -> Result<Self, Failure> {
        Self::of(metadata)?.remove()?;
        Self::of(metadata)
    }

    /// Returns an empty directory beside the others.
    pub(super) fn apart(metadata: &Metadata) -> Result<Self, Failure> {
        Self::at(metadata, "weight-again")?.remove()?;
        Self::at(metadata, "weight-again")
    }

    /// Returns an empty directory for one build of the command.
    pub(super) fn for_build(metadata: &Metadata) -> Result<Self, Failure> {
        Self::at(metadata, "weight-build")?.remove()?;
        Self::at(metadata, "weight-build")
    }

    pub(super) fn remove(self) -> Result<(), Failure> {
        std::fs::remove_dir_all(&self.directory).context("the directory of the checks could not be removed")
    }

    /// Returns the directory with what earlier checks have left, if there were any.
    pub(crate) fn of(metadata: &Metadata) -> Result<Self, Failure> {
        Self::at(metadata, "weight")
    }

    fn at(metadata: &Metadata, name: &str) -> Result<Self, Failure> {
        let directory = metadata.target_directory.join(name);
        std::fs::create_dir_all(&directory).context("no directory could be made for the checks")?;
        Ok(Self { directory })
    }

    /// Lets a check of cargo work here. Units of others with the same compilers, features and profile are used again.
    pub(crate) fn with<'a>(&self, check: &'a mut Command) -> Result<&'a mut Command, Failure> {
        let own = self.wrapper()?;
        Ok(check
            .arg("--target-dir")
            .arg(self.target())
            .env("CARGO_INCREMENTAL", "0")
            .env("CC", self.c_compiler(&own)?)
            .env("RUSTC_WRAPPER", own)
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .env(wrapper::LOG, self.log())
            .env(wrapper::REAL_CC, std::env::var_os("CC").unwrap_or_else(|| "cc".into())))
    }

    /// Returns a copy of this program. A build replaces the original, and checks that use the same wrapper share their units.
    fn wrapper(&self) -> Result<PathBuf, Failure> {
        let path = self.directory.join("wrapper");
        if !path.exists() {
            process::copy_own_program(&path)?;
        }
        Ok(path)
    }

    pub(super) fn target(&self) -> PathBuf {
        self.directory.join("target")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.directory.join("compilers.log")
    }

    /// Returns a link to this program whose name tells it that its arguments do not start with a compiler.
    fn c_compiler(&self, own: &Path) -> Result<PathBuf, Failure> {
        let path = self.directory.join(wrapper::CC_NAME);
        if !path.exists() {
            std::os::unix::fs::symlink(own, &path).context("no wrapper of the C compiler could be made")?;
        }
        Ok(path)
    }
}
