//! `cargo xtask msrv`: the workspace compiles with the oldest Rust that its manifests promise.
//!
//! The gate has only the pinned toolchain; there clippy's `incompatible_msrv` reports newer functions of the standard
//! library, but neither new implementations of traits nor new syntax.
//! A job of its own in `.github/workflows/ci.yml` runs this command.

use std::{collections::BTreeSet, process::Command};

use crate::{
    failure::Failure,
    metadata::{Metadata, Package},
    process,
};

/// Checks the workspace with the first release of the promised version.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    if !arguments.is_empty() {
        return Err(Failure::new("`cargo xtask msrv` takes no arguments"));
    }
    let toolchain = toolchain(&metadata.packages)?;
    let mut rustup = Command::new("rustup");
    rustup.args(["run", &toolchain, "cargo", "check", "--locked", "--workspace"]);
    process::run(rustup.current_dir(&metadata.workspace_root)).map_err(|cause| {
        let advice = format!("rustup toolchain install {toolchain} --profile minimal");
        Failure::new(format!("the workspace does not compile with Rust {toolchain} (`{advice}` installs it)"))
            .with_source(cause)
    })?;
    println!("the workspace compiles with Rust {toolchain}");
    Ok(())
}

/// Returns the toolchain of the promised version, which all packages share.
fn toolchain(packages: &[Package]) -> Result<String, Failure> {
    let versions: BTreeSet<Option<&str>> =
        packages.iter().map(|package| package.rust_version.as_deref()).collect();
    match versions.into_iter().collect::<Vec<_>>().as_slice() {
        // `1.89` would be its newest patch release.
        [Some(version)] if version.matches('.').count() == 1 => Ok(format!("{version}.0")),
        [Some(version)] => Ok((*version).to_owned()),
        _ => Err(Failure::new("the packages do not have one `rust-version`")),
    }
}

#[cfg(test)]
mod tests {
    use super::toolchain;
    use crate::metadata::Package;

    fn package(rust_version: &str) -> Package {
        let json = format!(
            r#"{{"id": "a", "name": "a", "version": "1.0.0", "manifest_path": "Cargo.toml", "dependencies": [],
                 "targets": [], "publish": null, "features": {{}}, "rust_version": {rust_version}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn the_first_release_of_the_version_is_used() {
        assert_eq!(toolchain(&[package("\"1.89\""), package("\"1.89\"")]).unwrap(), "1.89.0");
        assert_eq!(toolchain(&[package("\"1.89.1\"")]).unwrap(), "1.89.1");
    }

    #[test]
    fn packages_without_one_version_are_an_error() {
        assert!(toolchain(&[package("\"1.89\""), package("\"1.90\"")]).is_err());
        assert!(toolchain(&[package("null")]).is_err());
        assert!(toolchain(&[]).is_err());
    }
}
