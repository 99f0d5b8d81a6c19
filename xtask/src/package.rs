//! `cargo xtask package`: each published crate as a registry would store it.
//!
//! Cargo's own verification compiles all dependencies again for every crate. Here the contents of each archive are checked
//! and the command is compiled from the archives alone. `cargo xtask consumers` compiles and runs the libraries.

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

/// The published crate that is not a library.
const COMMAND: &str = "pintle-cli";

/// Files that every package contains.
const REQUIRED: &[&str] = &["Cargo.lock", "Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];
/// Directories in the root of a crate that are not packaged.
const NOT_IN_ROOT: &[&str] = &["benches", "fuzz", "target", "tests"];
/// Directories of test data, which are not packaged wherever they are.
const NOT_ANYWHERE: &[&str] = &["fixtures", "scenarios"];
/// Size limit of a file, in bytes. The largest file is the description of the server's interface.
const FILE_LIMIT: u64 = 128 * 1024;
/// Size limit of a compressed package, in bytes. The largest package is the command: its surfaces have their unit tests beside
/// their code.
const ARCHIVE_LIMIT: u64 = 576 * 1024;

/// Packages every published crate, checks the contents, and checks that the packaged command compiles.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    if !arguments.is_empty() {
        return Err(Failure::new("`cargo xtask package` takes no arguments"));
    }
    let packages: Vec<&Package> = metadata.published().collect();
    let stage = Stage::create(metadata, "package")?;
    stage.unpack(metadata, &packages)?;
    let mut all_problems = Vec::new();
    println!("{:<18} {:>6} {:>14}", "package", "files", "archive (KiB)");
    for package in &packages {
        let files = files_below(&stage.unpacked(package))?;
        let archive = size_of(&archive(metadata, package))?;
        println!("{:<18} {:>6} {:>14}", package.name, files.len(), archive.div_ceil(1024));
        let found = problems(&files, archive).into_iter();
        all_problems.extend(found.map(|problem| format!("{}: {problem}", package.name)));
    }
    if !all_problems.is_empty() {
        return Err(Failure::new(all_problems.join("; ")));
    }
    check_command(metadata, &stage)?;
    stage.remove()
}

/// Checks the packaged command against the packaged libraries.
fn check_command(metadata: &Metadata, stage: &Stage) -> Result<(), Failure> {
    let package = metadata
        .package(COMMAND)
        .ok_or_else(|| Failure::new(format!("the workspace has no package {COMMAND}")))?;
    let root = stage.directory.join("Cargo.toml");
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [{:?}]\n\n{}\n{}",
        stage.unpacked(package),
        stage.patches(metadata, package),
        PROFILE
    );
    fs::write(&root, manifest).map_err(|cause| at(&root, "could not be written").with_source(cause))?;
    stage.copy_lock_file(metadata, &stage.directory)?;
    println!("-- a check of the packaged {COMMAND}");
    process::run(
        process::cargo(&stage.directory)
            .args(["check", "--quiet", "--package", COMMAND, "--target-dir"])
            .arg(&metadata.target_directory),
    )
}

/// Returns what is missing from a package, too large, or not to be packaged.
fn problems(files: &[(String, u64)], archive: u64) -> Vec<String> {
    let has = |name: &str| files.iter().any(|(path, _)| path == name);
    let mut found: Vec<String> =
        REQUIRED.iter().filter(|name| !has(name)).map(|name| format!("{name} is missing")).collect();
    if !has("src/lib.rs") && !has("src/main.rs") {
        found.push(String::from("src/lib.rs or src/main.rs is missing"));
    }
    for (path, size) in files {
        let mut directories = path.split('/').rev().skip(1);
        let in_root = path.split_once('/').is_some_and(|(first, _)| NOT_IN_ROOT.contains(&first));
        if in_root || directories.any(|directory| NOT_ANYWHERE.contains(&directory)) {
            found.push(format!("{path} is for tests and is not to be packaged"));
        }
        if *size > FILE_LIMIT {
            found.push(format!("{path} has {size} bytes; the limit is {FILE_LIMIT}"));
        }
    }
    if archive > ARCHIVE_LIMIT {
        found.push(format!("the archive has {archive} bytes; the limit is {ARCHIVE_LIMIT}"));
    }
    found
}

/// The profile of the workspace, so that equal dependencies are compiled once.
pub(crate) const PROFILE: &str =
    "[profile.dev]\ndebug = \"line-tables-only\"\n\n[profile.dev.package.\"*\"]\ndebug = false\n";

/// A directory outside the workspace, with the same path in every run of one checkout.
pub(crate) struct Stage {
    pub(crate) directory: PathBuf,
}

impl Stage {
    pub(crate) fn create(metadata: &Metadata, name: &str) -> Result<Self, Failure> {
        let mut hasher = DefaultHasher::new();
        metadata.workspace_root.hash(&mut hasher);
        let name = format!("pintle-{name}-{:016x}", hasher.finish());
        let stage = Self { directory: std::env::temp_dir().join(name) };
        if stage.directory.exists() {
            stage.remove()?;
        }
        make_directory(&stage.directory)?;
        Ok(stage)
    }

    pub(crate) fn remove(&self) -> Result<(), Failure> {
        fs::remove_dir_all(&self.directory)
            .map_err(|cause| at(&self.directory, "could not be removed").with_source(cause))
    }

    /// Returns the directory into which `package` is unpacked.
    fn unpacked(&self, package: &Package) -> PathBuf {
        self.directory.join(format!("{}-{}", package.name, package.version))
    }

    /// Packages the crates, which resolve each other without a registry, and unpacks the archives.
    pub(crate) fn unpack(&self, metadata: &Metadata, packages: &[&Package]) -> Result<(), Failure> {
        let mut packaging = process::cargo(&metadata.workspace_root);
        packaging.args(["package", "--quiet", "--no-verify", "--allow-dirty"]);
        for package in packages {
            packaging.args(["--package", &package.name]);
        }
        process::run(&mut packaging)?;
        for package in packages {
            // All files in an archive have the same fixed time; a fresh one lets cargo detect changes.
            process::run(
                Command::new("tar")
                    .args(["--extract", "--gzip", "--touch", "--directory"])
                    .arg(&self.directory)
                    .arg("--file")
                    .arg(archive(metadata, package)),
            )?;
        }
        Ok(())
    }

    /// Returns the section of a manifest that replaces `package` and what it depends on by the unpacked crates.
    pub(crate) fn patches(&self, metadata: &Metadata, package: &Package) -> String {
        let closure: BTreeSet<&str> = metadata.closure(&package.name);
        let libraries =
            closure.into_iter().filter_map(|name| metadata.package(name)).filter(|found| found.is_library());
        let lines = libraries
            .map(|library| format!("{} = {{ path = {:?} }}\n", library.name, self.unpacked(library)));
        format!("[patch.crates-io]\n{}", lines.collect::<String>())
    }

    /// Copies the lock file of the workspace, so that the same versions are used.
    pub(crate) fn copy_lock_file(&self, metadata: &Metadata, directory: &Path) -> Result<(), Failure> {
        copy(&metadata.workspace_root.join("Cargo.lock"), &directory.join("Cargo.lock"))
    }
}

fn archive(metadata: &Metadata, package: &Package) -> PathBuf {
    metadata.target_directory.join(format!("package/{}-{}.crate", package.name, package.version))
}

/// Returns the files below `root`, as paths relative to it with their sizes.
fn files_below(root: &Path) -> Result<Vec<(String, u64)>, Failure> {
    let mut files = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        let unreadable = || at(&directory, "could not be read");
        for entry in fs::read_dir(&directory).map_err(|cause| unreadable().with_source(cause))? {
            let path = entry.map_err(|cause| unreadable().with_source(cause))?.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            files.push((relative, size_of(&path)?));
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn size_of(path: &Path) -> Result<u64, Failure> {
    fs::metadata(path)
        .map(|metadata| metadata.len())
        .map_err(|cause| at(path, "could not be read").with_source(cause))
}

pub(crate) fn make_directory(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|cause| at(path, "could not be created").with_source(cause))
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::copy(from, to).map(|_| ()).map_err(|cause| at(from, "could not be copied").with_source(cause))
}

pub(crate) fn at(path: &Path, what: &str) -> Failure {
    Failure::new(format!("{} {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{ARCHIVE_LIMIT, FILE_LIMIT, REQUIRED, problems};

    fn complete() -> Vec<(String, u64)> {
        REQUIRED.iter().chain(&["src/lib.rs", "src/a/tests/b.rs"]).map(|path| (path.to_string(), 1)).collect()
    }

    #[test]
    fn a_complete_package_has_no_problems() {
        assert_eq!(problems(&complete(), ARCHIVE_LIMIT), [""; 0]);
    }

    #[test]
    fn a_missing_file_is_reported() {
        for name in REQUIRED {
            let files: Vec<_> = complete().into_iter().filter(|(path, _)| path != name).collect();
            assert_eq!(problems(&files, 1), [format!("{name} is missing")]);
        }
        let files: Vec<_> = complete().into_iter().filter(|(path, _)| !path.starts_with("src")).collect();
        assert_eq!(problems(&files, 1), ["src/lib.rs or src/main.rs is missing"]);
    }

    #[test]
    fn test_data_is_reported() {
        for path in ["tests/it/main.rs", "benches/a.rs", "src/a/fixtures/b.json", "src/scenarios/c"] {
            let mut files = complete();
            files.push((path.to_owned(), 1));
            assert_eq!(problems(&files, 1), [format!("{path} is for tests and is not to be packaged")]);
        }
    }

    #[test]
    fn a_large_file_and_a_large_archive_are_reported() {
        let mut files = complete();
        files.push((String::from("src/big.json"), FILE_LIMIT + 1));
        assert_eq!(problems(&files, ARCHIVE_LIMIT + 1).len(), 2);
    }
}
