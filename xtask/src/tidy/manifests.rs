//! What every manifest takes from the workspace.

use toml::{Table, Value};

use super::{
    Violation,
    tree::{Package, Tree},
};

/// Keys of `[package]` that are said once, in the workspace.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license"];
/// Keys that a published crate needs of its own.
const PUBLISHED: &[&str] = &["description", "readme"];
const DEPENDENCY_TABLES: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in &tree.packages {
        let path = format!("{}/Cargo.toml", package.directory);
        let Some(file) = tree.file(&path) else {
            violations.push(Violation::new(path, "is not in the repository"));
            continue;
        };
        match file.text.parse::<Table>() {
            Ok(manifest) => violations.extend(
                complaints(package, &manifest).into_iter().map(|message| Violation::new(&path, message)),
            ),
            Err(_) => violations.push(Violation::new(path, "is not TOML")),
        }
    }
    violations
}

fn complaints(package: &Package, manifest: &Table) -> Vec<String> {
    let section = manifest.get("package").and_then(Value::as_table);
    let key = |name: &str| section.and_then(|section| section.get(name));
    let mut found = Vec::new();
    for name in INHERITED.iter().filter(|name| !key(name).is_some_and(inherits)) {
        found.push(format!("`package.{name}` does not say `workspace = true`"));
    }
    if package.is_library {
        for name in PUBLISHED.iter().filter(|name| key(name).is_none()) {
            found.push(format!("`package.{name}` is missing"));
        }
    }
    if !manifest.get("lints").is_some_and(inherits) {
        found.push(String::from("`[lints]` does not say `workspace = true`"));
    }
    for table in DEPENDENCY_TABLES {
        let dependencies = manifest.get(*table).and_then(Value::as_table).into_iter().flatten();
        for (name, _) in dependencies.filter(|(_, dependency)| !inherits(dependency)) {
            found.push(format!("`{table}.{name}` does not say `workspace = true`"));
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
        let tree = Tree::of(&[("crates/a/Cargo.toml", manifest)]).with_library("a", "crates/a");
        check(&tree).into_iter().map(|violation| violation.message).collect()
    }

    #[test]
    fn a_manifest_inherits() {
        assert_eq!(messages(GOOD), [""; 0]);
        let cases = [
            (
                "edition.workspace = true",
                "edition = \"2021\"",
                "`package.edition` does not say `workspace = true`",
            ),
            ("readme = \"README.md\"", "", "`package.readme` is missing"),
            ("[lints]\nworkspace = true", "", "`[lints]` does not say `workspace = true`"),
            (
                "serde = { workspace = true, features = [\"derive\"] }",
                "serde = \"1\"",
                "`dependencies.serde` does not say `workspace = true`",
            ),
        ];
        for (good, bad, message) in cases {
            assert_eq!(messages(&GOOD.replace(good, bad)), [message]);
        }
    }

    #[test]
    fn a_manifest_is_toml() {
        assert_eq!(messages("[package"), ["is not TOML"]);
    }
}
