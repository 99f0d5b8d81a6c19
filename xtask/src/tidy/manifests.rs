//! Keys and files that every package must have.

use toml::{Table, Value};

use super::{
    Violation,
    tree::{Package, Tree},
};

/// Keys of `[package]` that are inherited from the workspace.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license"];
/// Keys of `[package]` that each published crate sets.
const PUBLISHED: &[&str] = &["description", "readme", "keywords", "categories"];
/// Files that each published crate ships, usually as links to those in the root.
const LICENCES: &[&str] = &["LICENSE-MIT", "LICENSE-APACHE"];
const DEPENDENCY_TABLES: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in &tree.packages {
        let path = format!("{}/Cargo.toml", package.directory);
        let Some(file) = tree.file(&path) else {
            violations.push(Violation::new(path, "is not in the repository"));
            continue;
        };
        if package.is_published {
            let missing = LICENCES.iter().map(|name| format!("{}/{name}", package.directory));
            let missing = missing.filter(|path| tree.file(path).is_none());
            violations.extend(missing.map(|path| Violation::new(path, "is missing")));
        }
        match file.text.parse::<Table>() {
            Ok(manifest) => violations.extend(
                problems(package, &manifest).into_iter().map(|message| Violation::new(&path, message)),
            ),
            Err(_) => violations.push(Violation::new(path, "is not valid TOML")),
        }
    }
    violations
}

fn problems(package: &Package, manifest: &Table) -> Vec<String> {
    let section = manifest.get("package").and_then(Value::as_table);
    let key = |name: &str| section.and_then(|section| section.get(name));
    let mut found = Vec::new();
    for name in INHERITED.iter().filter(|name| !key(name).is_some_and(inherits)) {
        found.push(format!("`package.{name}` does not inherit from the workspace"));
    }
    if package.is_published {
        for name in PUBLISHED.iter().filter(|name| key(name).is_none()) {
            found.push(format!("`package.{name}` is missing"));
        }
    }
    if !manifest.get("lints").is_some_and(inherits) {
        found.push(String::from("`[lints]` does not inherit from the workspace"));
    }
    for table in DEPENDENCY_TABLES {
        let dependencies = manifest.get(*table).and_then(Value::as_table).into_iter().flatten();
        for (name, _) in dependencies.filter(|(_, dependency)| !inherits(dependency)) {
            found.push(format!("`{table}.{name}` does not inherit from the workspace"));
        }
    }
    found
}

fn inherits(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tree::Tree;

    const GOOD: &str = r#"
[package]
name = "a"
description = "d"
readme = "README.md"
keywords = ["k"]
categories = ["c"]
version.workspace = true
edition.workspace = true
rust-version.workspace = true
license.workspace = true
[lints]
workspace = true
[dependencies]
serde = { workspace = true, features = ["derive"] }
"#;

    fn messages(manifest: &str) -> Vec<String> {
        let licences = [("crates/a/LICENSE-MIT", ""), ("crates/a/LICENSE-APACHE", "")];
        let files = [&[("crates/a/Cargo.toml", manifest)], &licences[..]].concat();
        let tree = Tree::of(&files).with_library("a", "crates/a");
        check(&tree).into_iter().map(|violation| violation.message).collect()
    }

    #[test]
    fn a_manifest_inherits_and_is_complete() {
        assert_eq!(messages(GOOD), [""; 0]);
        let cases = [
            (
                "edition.workspace = true",
                "edition = \"2021\"",
                "`package.edition` does not inherit from the workspace",
            ),
            ("readme = \"README.md\"", "", "`package.readme` is missing"),
            ("categories = [\"c\"]", "", "`package.categories` is missing"),
            ("[lints]\nworkspace = true", "", "`[lints]` does not inherit from the workspace"),
            (
                "serde = { workspace = true, features = [\"derive\"] }",
                "serde = \"1\"",
                "`dependencies.serde` does not inherit from the workspace",
            ),
        ];
        for (good, bad, message) in cases {
            assert_eq!(messages(&GOOD.replace(good, bad)), [message]);
        }
    }

    #[test]
    fn a_package_has_its_licences() {
        let tree = Tree::of(&[("crates/a/Cargo.toml", GOOD), ("crates/a/LICENSE-MIT", "")]);
        let found = check(&tree.with_library("a", "crates/a")).into_iter();
        let found: Vec<String> = found.map(|violation| violation.to_string()).collect();
        assert_eq!(found, ["crates/a/LICENSE-APACHE: is missing"]);
    }

    #[test]
    fn a_manifest_is_valid_toml() {
        assert_eq!(messages("[package"), ["is not valid TOML"]);
    }
}
