//! The packages and files that the rules check.

use std::{cell::OnceCell, fs, path::Path};

use super::rust_code;
use crate::{failure::Failure, metadata::Metadata, process};

/// Packages and files of the repository.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) packages: Vec<Package>,
    pub(super) files: Vec<File>,
}

#[derive(Debug, Default)]
pub(super) struct Package {
    pub(super) name: String,
    /// Path from the root, without a trailing slash.
    pub(super) directory: String,
    pub(super) is_published: bool,
    pub(super) is_library: bool,
    pub(super) normal: Vec<String>,
    /// Dependencies of tests and build scripts.
    pub(super) other: Vec<String>,
}

#[derive(Debug)]
pub(super) struct File {
    /// Path from the root, with slashes.
    pub(super) path: String,
    /// Text; empty if the file is binary.
    pub(super) text: String,
    /// The text with comments and literals replaced by spaces, once a rule has asked for it.
    code: OnceCell<String>,
}

impl Tree {
    /// Reads the source files, so that rules apply before a commit.
    pub(super) fn load(metadata: &Metadata) -> Result<Self, Failure> {
        let root = &metadata.workspace_root;
        let mut files = Vec::new();
        for path in process::source_files(root)? {
            // Binary files have no text, but pages show them.
            if let Ok(bytes) = fs::read(root.join(&path)) {
                let text = String::from_utf8(bytes).unwrap_or_default();
                files.push(File::new(&path, text));
            }
        }
        let packages = metadata.packages.iter().map(|package| Package::new(package, root)).collect();
        Ok(Self { packages, files })
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(super) fn libraries(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.is_library)
    }

    pub(super) fn rust_files(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    pub(super) fn files_under<'a>(&'a self, directory: &'a str) -> impl Iterator<Item = &'a File> {
        self.files
            .iter()
            .filter(move |file| file.path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/')))
    }
}

impl Package {
    fn new(package: &crate::metadata::Package, root: &Path) -> Self {
        let directory = package.directory();
        Self {
            name: package.name.clone(),
            directory: directory.strip_prefix(root).unwrap_or(directory).to_string_lossy().into_owned(),
            is_published: package.is_published(),
            is_library: package.is_library(),
            normal: package.normal_dependencies().map(str::to_owned).collect(),
            other: package
                .dependencies
                .iter()
                .filter(|dependency| dependency.kind.is_some())
                .map(|dependency| dependency.name.clone())
                .collect(),
        }
    }
}

impl File {
    fn new(path: &str, text: String) -> Self {
        Self { path: path.to_owned(), text, code: OnceCell::new() }
    }

    /// Returns the lines, numbered from 1, with comments and literals replaced by spaces.
    pub(super) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let code = self.code.get_or_init(|| rust_code::without_comments_and_literals(&self.text));
        code.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

#[cfg(test)]
impl Tree {
    /// Creates a tree of files from strings.
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| File::new(path, (*text).to_owned())).collect();
        Self { packages: Vec::new(), files }
    }

    pub(super) fn with_library(mut self, name: &str, directory: &str) -> Self {
        self.packages.push(Package {
            name: name.to_owned(),
            directory: directory.to_owned(),
            is_published: true,
            is_library: true,
            ..Package::default()
        });
        self
    }

    pub(super) fn with_arrows(mut self, name: &str, normal: &[&str], other: &[&str]) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        self.packages.push(Package {
            name: name.to_owned(),
            normal: owned(normal),
            other: owned(other),
            ..Package::default()
        });
        self
    }
}
