//! Metadata of the workspace, from cargo.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::{
    failure::{Context as _, Failure},
    process,
};

/// Output of `cargo metadata --no-deps`: the packages of the workspace, without dependencies.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) workspace_root: PathBuf,
    pub(crate) target_directory: PathBuf,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
    /// Registries to which the package may be published: `None` is any, an empty list is none.
    pub(crate) publish: Option<Vec<String>>,
    /// The oldest supported Rust.
    pub(crate) rust_version: Option<String>,
    /// Features, each with those that it enables.
    #[serde(default)]
    pub(crate) features: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
    /// Whether `cargo test` runs it.
    pub(crate) test: bool,
    /// Whether `cargo test` runs the examples in its documentation.
    pub(crate) doctest: bool,
}

impl Metadata {
    /// Loads the metadata of the workspace that contains `directory`.
    pub(crate) fn load(directory: &Path) -> Result<Self, Failure> {
        let json = process::capture(process::cargo(directory).args([
            "metadata",
            "--no-deps",
            "--format-version=1",
        ]))?;
        serde_json::from_str(&json).context("cargo's metadata could not be parsed")
    }

    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// Returns the packages that a registry may receive.
    pub(crate) fn published(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.is_published())
    }

    /// Returns the packages that others use: published ones with a library target.
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.is_library())
    }

    /// Returns the number of binaries that the test command runs, counting each library's doctests as one.
    pub(crate) fn test_binaries(&self) -> u64 {
        let targets = self.packages.iter().flat_map(|package| &package.targets);
        targets.map(|target| u64::from(target.test) + u64::from(target.doctest)).sum()
    }

    /// Returns `name` and its direct and indirect normal dependencies in the workspace.
    pub(crate) fn closure<'a>(&'a self, name: &'a str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut open = vec![name];
        while let Some(next) = open.pop() {
            let Some(package) = self.package(next) else { continue };
            if found.insert(package.name.as_str()) {
                open.extend(package.normal_dependencies());
            }
        }
        found
    }
}

impl Package {
    pub(crate) fn is_published(&self) -> bool {
        self.publish.as_ref().is_none_or(|registries| !registries.is_empty())
    }

    pub(crate) fn is_library(&self) -> bool {
        self.is_published() && self.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "lib"))
    }

    pub(crate) fn normal_dependencies(&self) -> impl Iterator<Item = &str> {
        self.dependencies
            .iter()
            .filter(|dependency| dependency.kind.is_none())
            .map(|dependency| dependency.name.as_str())
    }

    pub(crate) fn directory(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }
}
