//! `cargo xtask consumers`: each library as its users get it.
//!
//! Every library is packaged, unpacked outside the workspace and used by a small program that depends on
//! it alone. This finds files missing from a package, and features that are enabled only because other
//! crates of the workspace ask for them.

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

/// Packages every library, then builds and runs the consumer of each library, or of those named.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let chosen = chosen(metadata, arguments)?;
    let stage = Stage::create(metadata)?;
    stage.unpack_libraries(metadata)?;
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

    fn unpack_libraries(&self, metadata: &Metadata) -> Result<(), Failure> {
        let mut packaging = process::cargo(&metadata.workspace_root);
        packaging.args(["package", "--quiet", "--no-verify", "--allow-dirty"]);
        for package in metadata.libraries() {
            packaging.args(["--package", &package.name]);
        }
        process::run(&mut packaging)?;
        for package in metadata.libraries() {
            let archive = format!("package/{}-{}.crate", package.name, package.version);
            // All files in an archive have the same fixed time; a fresh one lets cargo detect changes.
            process::run(
                Command::new("tar")
                    .args(["--extract", "--gzip", "--touch", "--directory"])
                    .arg(&self.directory)
                    .arg("--file")
                    .arg(metadata.target_directory.join(archive)),
            )?;
        }
        Ok(())
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
        let closure: BTreeSet<&str> = metadata.closure(&package.name);
        let patches: Vec<String> = closure
            .into_iter()
            .filter_map(|name| metadata.package(name))
            .map(|beneath| format!("{} = {{ path = {:?} }}", beneath.name, self.unpacked(beneath)))
            .collect();
        format!(
            "[package]\nname = \"consumer-of-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
             [workspace]\n\n\
             [dependencies]\n{name} = \"{version}\"\n\n\
             [patch.crates-io]\n{patches}\n\n\
             [profile.dev]\ndebug = \"line-tables-only\"\n\n\
             [profile.dev.package.\"*\"]\ndebug = false\n",
            name = package.name,
            version = package.version,
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
