//! `cargo xtask consumers`: each library as its users get it.
//!
//! Every library is packaged, unpacked outside the workspace and used by a small program that depends on
//! it alone. This finds files missing from a package, and features that are enabled only because other
//! crates of the workspace ask for them. `cargo xtask ci --full` checks all of these programs, and runs one.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    failure::Failure,
    metadata::{Metadata, Package},
    package::{PROFILE, Stage, at, copy, make_directory},
    process,
    weight::ColdChecks,
};

/// Checks the consumers as `cargo xtask ci --full` does.
const CHECK: &str = "--check";

/// The library above all layers. `ci --full` runs its consumer, and checks the others.
const LIBRARY: &str = "pintle";

/// Packages every library, then builds and runs the consumer of each library, or of those named. With `--check`, does what
/// `cargo xtask ci --full` does.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    if let Some((first, names)) = arguments.split_first()
        && first == CHECK
    {
        return check(metadata, &chosen(metadata, names)?);
    }
    let chosen = chosen(metadata, arguments)?;
    let stage = unpacked(metadata)?;
    for package in &chosen {
        let directory = write_consumer(&stage, metadata, package)?;
        run_alone(metadata, package, &directory)?;
    }
    println!("{} packaged libraries were used alone, outside the workspace", chosen.len());
    stage.remove()
}

/// Packages every library and checks the consumer of each. Runs that of the library above all layers. The checks use what
/// `cargo xtask weight` has left: the same features, one layer at a time.
pub(crate) fn check_all(metadata: &Metadata) -> Result<(), Failure> {
    check(metadata, &chosen(metadata, &[])?)
}

fn check(metadata: &Metadata, packages: &[&Package]) -> Result<(), Failure> {
    let stage = unpacked(metadata)?;
    let cold = ColdChecks::of(metadata)?;
    for package in packages {
        let directory = write_consumer(&stage, metadata, package)?;
        println!("-- a check of a consumer of {} alone", package.name);
        let mut check = process::cargo(&directory);
        process::run(cold.with(check.args(["check", "--quiet"]))?)?;
        if package.name == LIBRARY {
            run_alone(metadata, package, &directory)?;
        }
    }
    println!("{} packaged libraries can be used alone, outside the workspace", packages.len());
    stage.remove()
}

/// Packages every library and unpacks it outside the workspace.
fn unpacked(metadata: &Metadata) -> Result<Stage, Failure> {
    let stage = Stage::create(metadata, "consumers")?;
    let libraries: Vec<&Package> = metadata.libraries().collect();
    stage.unpack(metadata, &libraries)?;
    Ok(stage)
}

fn run_alone(metadata: &Metadata, package: &Package, directory: &Path) -> Result<(), Failure> {
    println!("-- a consumer of {} alone", package.name);
    let mut run = process::cargo(directory);
    // The target directory of the workspace is shared, so that equal dependencies are built once.
    process::run(run.args(["run", "--quiet", "--target-dir"]).arg(&metadata.target_directory))
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

/// Writes the consumer of `package` and returns its directory.
fn write_consumer(stage: &Stage, metadata: &Metadata, package: &Package) -> Result<PathBuf, Failure> {
    let short = package.name.strip_prefix("pintle-").unwrap_or(&package.name);
    let source = metadata.workspace_root.join(format!("xtask/consumers/{short}.rs"));
    let directory = stage.directory.join(format!("consumer-{short}"));
    make_directory(&directory.join("src"))?;
    copy(&source, &directory.join("src/main.rs"))?;
    stage.copy_lock_file(metadata, &directory)?;
    let path = directory.join("Cargo.toml");
    fs::write(&path, manifest(stage, metadata, package))
        .map_err(|cause| at(&path, "could not be written").with_source(cause))?;
    Ok(directory)
}

fn manifest(stage: &Stage, metadata: &Metadata, package: &Package) -> String {
    format!(
        "[package]\nname = \"consumer-of-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
         [workspace]\n\n\
         [dependencies]\n{name} = \"{version}\"\n\n\
         {patches}\n\
         {PROFILE}",
        name = package.name,
        version = package.version,
        patches = stage.patches(metadata, package),
    )
}
