//! `cargo xtask consumers`: each published package as its users get it.
//!
//! Every library is packaged, unpacked outside the workspace and used by a small program that depends on
//! it alone; the command is packaged, built from its package and run. This finds files missing from a package, and
//! features that are enabled only because other crates of the workspace ask for them.

use std::{
    collections::BTreeSet,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    failure::Failure,
    metadata::{Metadata, Package},
    process,
};

/// The package of the command.
const COMMAND: &str = "pintle-cli";

/// Packages everything that is published, then builds and runs the consumer of each library, or of those named, and
/// without names the command.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let chosen = chosen(metadata, arguments)?;
    let stage = Stage::create(metadata)?;
    stage.unpack_packages(metadata)?;
    for package in &chosen {
        let directory = stage.write_consumer(metadata, package)?;
        println!("-- a consumer of {} alone", package.name);
        // The target directory of the workspace is shared, so that equal dependencies are built once.
        process::run(
            process::cargo(&directory)
                .args(["run", "--quiet", "--target-dir"])
                .arg(&metadata.target_directory),
        )?;
    }
    println!("{} packaged libraries were used alone, outside the workspace", chosen.len());
    if arguments.is_empty() {
        stage.run_command(metadata)?;
    }
    stage.remove()
}

fn chosen<'a>(metadata: &'a Metadata, names: &[String]) -> Result<Vec<&'a Package>, Failure> {
    let libraries: Vec<&Package> = metadata.libraries().collect();
    if libraries.is_empty() {
        return Err(Failure::new("the workspace has no library that may be published"));
    }
    for name in names {
        if !libraries.iter().any(|library| library.name == *name) {
            let known: Vec<&str> = libraries.iter().map(|library| library.name.as_str()).collect();
            return Err(Failure::new(format!(
                "unknown library `{name}`; the libraries are {}",
                known.join(", ")
            )));
        }
    }
    Ok(libraries.into_iter().filter(|library| names.is_empty() || names.contains(&library.name)).collect())
}

/// A directory outside the workspace, with the same path in every run of one checkout.
struct Stage {
    directory: PathBuf,
}

impl Stage {
    fn create(metadata: &Metadata) -> Result<Self, Failure> {
        let mut hasher = DefaultHasher::new();
        metadata.workspace_root.hash(&mut hasher);
        let name = format!("pintle-consumers-{:016x}", hasher.finish());
        let stage = Self { directory: std::env::temp_dir().join(name) };
        if stage.directory.exists() {
            stage.remove()?;
        }
        make_directory(&stage.directory)?;
        Ok(stage)
    }

    fn remove(&self) -> Result<(), Failure> {
        fs::remove_dir_all(&self.directory)
            .map_err(|cause| at(&self.directory, "could not be removed").with_source(cause))
    }

    fn unpacked(&self, package: &Package) -> PathBuf {
        self.directory.join(format!("{}-{}", package.name, package.version))
    }

    fn unpack_packages(&self, metadata: &Metadata) -> Result<(), Failure> {
        let mut packaging = process::cargo(&metadata.workspace_root);
        packaging.args(["package", "--quiet", "--no-verify", "--allow-dirty"]);
        for package in metadata.published() {
            packaging.args(["--package", &package.name]);
        }
        process::run(&mut packaging)?;
        for package in metadata.published() {
            let archive = format!("package/{}-{}.crate", package.name, package.version);
            // All files in an archive have the same fixed time; a fresh one lets cargo detect changes.
            process::run(
                Command::new("tar")
                    .args(["--extract", "--gzip", "--touch", "--directory"])
                    .arg(&self.directory)
                    .arg("--file")
                    .arg(metadata.target_directory.join(archive)),
            )?;
            self.require_contents(package)?;
        }
        Ok(())
    }

    /// Fails if an unpacked package lacks its README or a licence, or contains the scenarios and fixtures of tests.
    fn require_contents(&self, package: &Package) -> Result<(), Failure> {
        let unpacked = self.unpacked(package);
        for name in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            if !unpacked.join(name).is_file() {
                return Err(Failure::new(format!("the package {} lacks {name}", package.name)));
            }
        }
        if unpacked.join("tests").exists() {
            return Err(Failure::new(format!("the package {} contains tests/", package.name)));
        }
        Ok(())
    }

    /// Builds the command from its package and runs it.
    fn run_command(&self, metadata: &Metadata) -> Result<(), Failure> {
        let Some(package) = metadata.package(COMMAND) else {
            return Err(Failure::new(format!("the workspace has no package {COMMAND}")));
        };
        let directory = self.unpacked(package);
        copy(&metadata.workspace_root.join("Cargo.lock"), &directory.join("Cargo.lock"))?;
        let path = directory.join(".cargo/config.toml");
        make_directory(&directory.join(".cargo"))?;
        let mut beneath = metadata.closure(COMMAND);
        beneath.remove(COMMAND);
        fs::write(&path, self.overrides(metadata, &beneath))
            .map_err(|cause| at(&path, "could not be written").with_source(cause))?;
        println!("-- the command from its package");
        process::run(
            process::cargo(&directory)
                .args(["run", "--quiet", "--target-dir"])
                .arg(&metadata.target_directory)
                .args(["--", "--version"]),
        )
    }

    /// Writes the consumer of `package` and returns its directory.
    fn write_consumer(&self, metadata: &Metadata, package: &Package) -> Result<PathBuf, Failure> {
        let short = package.name.strip_prefix("pintle-").unwrap_or(&package.name);
        let source = metadata.workspace_root.join(format!("xtask/consumers/{short}.rs"));
        let directory = self.directory.join(format!("consumer-{short}"));
        make_directory(&directory.join("src"))?;
        copy(&source, &directory.join("src/main.rs"))?;
        // The lock file of the workspace, so that the same versions are used.
        copy(&metadata.workspace_root.join("Cargo.lock"), &directory.join("Cargo.lock"))?;
        let path = directory.join("Cargo.toml");
        fs::write(&path, self.manifest(metadata, package))
            .map_err(|cause| at(&path, "could not be written").with_source(cause))?;
        Ok(directory)
    }

    fn manifest(&self, metadata: &Metadata, package: &Package) -> String {
        format!(
            "[package]\nname = \"consumer-of-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
             [workspace]\n\n\
             [dependencies]\n{name} = \"{version}\"\n\n{overrides}",
            name = package.name,
            version = package.version,
            overrides = self.overrides(metadata, &metadata.closure(&package.name)),
        )
    }

    /// Returns the tables, of a manifest or of cargo's configuration, that take `names` from their unpacked packages
    /// and build with the profile of the workspace.
    fn overrides(&self, metadata: &Metadata, names: &BTreeSet<&str>) -> String {
        let patches: Vec<String> = names
            .iter()
            .filter_map(|name| metadata.package(name))
            .map(|package| format!("{} = {{ path = {:?} }}", package.name, self.unpacked(package)))
            .collect();
        format!(
            "[patch.crates-io]\n{patches}\n\n\
             [profile.dev]\ndebug = \"line-tables-only\"\n\n\
             [profile.dev.package.\"*\"]\ndebug = false\n",
            patches = patches.join("\n"),
        )
    }
}

fn make_directory(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|cause| at(path, "could not be created").with_source(cause))
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::copy(from, to).map(|_| ()).map_err(|cause| at(from, "could not be copied").with_source(cause))
}

fn at(path: &Path, what: &str) -> Failure {
    Failure::new(format!("{} {what}", path.display()))
}
