//! The copy of the sources in which mutations are built.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use super::list::Mutation;
use crate::{
    conformance::{TestBinaries, TestOutcome},
    failure::{Context as _, Failure},
    metadata::Metadata,
    package::{at, copy, make_directory},
    process,
    test_run::TestRun,
};

/// A copy of the sources with a target directory, which stays from one run to the next.
pub(super) struct Scratch {
    /// Metadata of the copy.
    metadata: Metadata,
}

/// A test program. Integration tests are built last, because they depend on most packages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TestTarget {
    /// The target of an integration test; `None` for the unit tests of a library.
    integration: Option<String>,
    /// Whether the package is other than the changed one.
    is_other: bool,
    package: String,
}

impl Scratch {
    /// Copies the sources below the target directory of the workspace.
    pub(super) fn create(metadata: &Metadata) -> Result<Self, Failure> {
        let directory = metadata.target_directory.join("mutations");
        let tree = directory.join("tree");
        make_directory(&tree)?;
        synchronize(&metadata.workspace_root, &tree, &process::source_files(&metadata.workspace_root)?)?;
        let mut metadata = Metadata::load(&tree)?;
        metadata.target_directory = directory.join("target");
        Ok(Self { metadata })
    }

    /// Groups tests by their program, in the order in which the programs are built. `changed` is the path of a file.
    pub(super) fn by_target<'a>(
        &self,
        tests: &BTreeSet<&'a str>,
        changed: Option<&str>,
    ) -> Result<BTreeMap<TestTarget, BTreeSet<&'a str>>, Failure> {
        let mut groups: BTreeMap<TestTarget, BTreeSet<&str>> = BTreeMap::new();
        for &test in tests {
            groups.entry(TestTarget::of(&self.metadata, test, changed)?).or_default().insert(test);
        }
        Ok(groups)
    }

    /// Returns those of `tests` that are in the program.
    pub(super) fn tests_in<'a>(
        &self,
        target: &TestTarget,
        tests: impl Iterator<Item = &'a str>,
    ) -> Result<BTreeSet<&'a str>, Failure> {
        let mut found = BTreeSet::new();
        for test in tests {
            if TestTarget::of(&self.metadata, test, None)?.is_same_program(target) {
                found.insert(test);
            }
        }
        Ok(found)
    }

    /// Builds the program and runs the tests.
    pub(super) fn run(
        &self,
        target: &TestTarget,
        tests: &BTreeSet<&str>,
    ) -> Result<BTreeMap<String, TestOutcome>, Failure> {
        let mut build = process::cargo(&self.metadata.workspace_root);
        build.args(["test", "--no-run", "--quiet", TestBinaries::MESSAGES, "--target-dir"]);
        build.arg(&self.metadata.target_directory).args(target.selection());
        // A mutation may leave a variable or an import unused.
        build.env("RUSTFLAGS", "-Awarnings");
        let messages = process::capture(&mut build)?;
        TestBinaries::from_messages(&self.metadata, &messages)?.run(tests, &TestRun::default())
    }

    /// Runs `work` while the mutation is applied.
    pub(super) fn with_mutation<T>(
        &self,
        mutation: &Mutation,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let path = self.metadata.workspace_root.join(&mutation.file);
        let original =
            fs::read_to_string(&path).with_context(|| format!("{} could not be read", mutation.file))?;
        write(&path, &mutation.apply(&original)?)?;
        let result = work();
        write(&path, &original)?;
        result
    }
}

impl TestTarget {
    /// Returns the program of a test, from its name: the package, then the target of an integration test, then the path.
    fn of(metadata: &Metadata, test: &str, changed: Option<&str>) -> Result<Self, Failure> {
        let unknown = || Failure::new(format!("the test `{test}` is in no package"));
        let (name, path) = test.split_once("::").ok_or_else(unknown)?;
        let package = metadata.package(name).ok_or_else(unknown)?;
        let first = path.split("::").next().unwrap_or(path);
        let is_integration = package
            .targets
            .iter()
            .any(|target| target.name == first && target.kind.iter().any(|kind| kind == "test"));
        let is_other =
            changed.is_some_and(|file| !metadata.workspace_root.join(file).starts_with(package.directory()));
        Ok(Self { integration: is_integration.then(|| first.to_owned()), is_other, package: name.to_owned() })
    }

    fn is_same_program(&self, other: &Self) -> bool {
        self.integration == other.integration && self.package == other.package
    }

    /// Returns the arguments of cargo that build this program and no other.
    fn selection(&self) -> Vec<&str> {
        let mut arguments = vec!["--package", self.package.as_str()];
        match &self.integration {
            Some(name) => arguments.extend(["--test", name.as_str()]),
            None => arguments.push("--lib"),
        }
        arguments
    }
}

/// Makes `tree` equal to the files of `root`. Files with equal contents keep their times, so that builds reuse them.
fn synchronize(root: &Path, tree: &Path, files: &BTreeSet<String>) -> Result<(), Failure> {
    let mut expected = BTreeSet::new();
    for file in files {
        let (from, to) = (root.join(file), tree.join(file));
        // Deleted files are still listed.
        let Ok(metadata) = from.symlink_metadata() else { continue };
        if let Some(parent) = to.parent() {
            make_directory(parent)?;
        }
        if metadata.is_symlink() {
            copy_link(&from, &to)?;
        } else if metadata.is_file() && fs::read(&from).ok() != fs::read(&to).ok() {
            copy(&from, &to)?;
        }
        expected.insert(to);
    }
    remove_others(tree, &expected)
}

fn copy_link(from: &Path, to: &Path) -> Result<(), Failure> {
    let target = fs::read_link(from).map_err(|cause| at(from, "could not be read").with_source(cause))?;
    if fs::read_link(to).is_ok_and(|found| found == target) {
        return Ok(());
    }
    let failed = |cause: std::io::Error| at(to, "could not be created").with_source(cause);
    if to.symlink_metadata().is_ok() {
        fs::remove_file(to).map_err(failed)?;
    }
    std::os::unix::fs::symlink(target, to).map_err(failed)
}

/// Removes files that are not expected: cargo builds every file of a directory of tests.
fn remove_others(tree: &Path, expected: &BTreeSet<PathBuf>) -> Result<(), Failure> {
    let mut open = vec![tree.to_owned()];
    while let Some(directory) = open.pop() {
        let unreadable = |cause: std::io::Error| at(&directory, "could not be read").with_source(cause);
        for entry in fs::read_dir(&directory).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            if entry.file_type().map_err(unreadable)?.is_dir() {
                open.push(path);
            } else if !expected.contains(&path) {
                fs::remove_file(&path)
                    .map_err(|cause| at(&path, "could not be removed").with_source(cause))?;
            }
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|cause| at(path, "could not be written").with_source(cause))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::PathBuf};

    use super::{Metadata, TestTarget, synchronize};

    #[test]
    fn tests_select_their_program() {
        let metadata: Metadata = serde_json::from_str(
            r#"{"packages": [
                {"id": "a", "name": "a", "version": "1.0.0", "manifest_path": "/x/a/Cargo.toml", "dependencies": [],
                 "publish": null, "targets": [
                    {"name": "a", "kind": ["lib"], "test": true, "doctest": true},
                    {"name": "it", "kind": ["test"], "test": true, "doctest": false}]},
                {"id": "b", "name": "b", "version": "1.0.0", "manifest_path": "/x/b/Cargo.toml", "dependencies": [],
                 "publish": null, "targets": [{"name": "b", "kind": ["lib"], "test": true, "doctest": true}]}],
                "workspace_root": "/x", "target_directory": "/x/t"}"#,
        )
        .expect("metadata");
        let target = |test: &str| TestTarget::of(&metadata, test, Some("a/src/lib.rs"));
        for (test, expected) in [
            ("a::it::case", "--package a --test it"),
            ("a::item::tests::case", "--package a --lib"),
            ("b::it::case", "--package b --lib"),
        ] {
            assert_eq!(target(test).expect("a program").selection().join(" "), expected, "{test}");
        }
        assert!(target("c::tests::case").is_err());
        let mut order = ["a::it::case", "b::tests::case", "a::tests::case"];
        order.sort_by_key(|test| target(test).expect("a program"));
        assert_eq!(order, ["a::tests::case", "b::tests::case", "a::it::case"]);
    }

    #[test]
    fn a_copy_is_brought_up_to_date() {
        let directory = std::env::temp_dir().join(format!("pintle-mutations-{}", std::process::id()));
        let (root, tree) = (directory.join("root"), directory.join("tree"));
        for (path, text) in [
            (root.join("same"), "same"),
            (root.join("a/changed"), "after"),
            (tree.join("same"), "same"),
            (tree.join("a/changed"), "before"),
            (tree.join("b/old"), "old"),
        ] {
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, text).expect("a file");
        }
        std::os::unix::fs::symlink("same", root.join("link")).expect("a link");
        let time = fs::metadata(tree.join("same")).and_then(|file| file.modified()).expect("a time");
        let files: BTreeSet<String> =
            ["a/changed", "deleted", "link", "same"].iter().map(|path| (*path).to_owned()).collect();
        synchronize(&root, &tree, &files).expect("a copy");
        synchronize(&root, &tree, &files).expect("a second copy");
        assert_eq!(fs::read_to_string(tree.join("a/changed")).expect("the file"), "after");
        assert_eq!(fs::read_link(tree.join("link")).expect("the link"), PathBuf::from("same"));
        assert_eq!(fs::metadata(tree.join("same")).and_then(|file| file.modified()).expect("a time"), time);
        assert!(!tree.join("b/old").exists());
        fs::remove_dir_all(directory).expect("the directory goes");
    }
}
