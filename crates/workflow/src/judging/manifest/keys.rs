//! Manifests in TOML and JSON.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeySyntax {
    Toml,
    Json,
}

/// Permitted change of a key. Keys without a rule judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyRule {
    /// Any change.
    Free,
    /// Additions. Existing values stay.
    Additive,
    /// Any change, except that an existing dependency comes from another source, such as a local directory.
    Dependencies,
}

use KeyRule::{Additive, Dependencies, Free};

/// Keys with dots between them, and their permitted changes. `*` matches any key.
pub(super) type KeyRules = [(&'static str, KeyRule)];

pub(super) const CARGO: &KeyRules = &[
    ("dependencies", Dependencies),
    ("dev-dependencies", Dependencies),
    ("build-dependencies", Dependencies),
    ("target.*.dependencies", Dependencies),
    ("target.*.dev-dependencies", Dependencies),
    ("target.*.build-dependencies", Dependencies),
    ("workspace.dependencies", Dependencies),
    ("workspace.members", Additive),
    ("features", Additive),
    ("bin", Additive),
    ("example", Additive),
    ("package.version", Free),
    ("package.description", Free),
    ("package.authors", Free),
    ("package.license", Free),
    ("package.readme", Free),
    ("package.repository", Free),
    ("package.homepage", Free),
    ("package.documentation", Free),
    ("package.keywords", Free),
    ("package.categories", Free),
];

pub(super) const PACKAGE_JSON: &KeyRules = &[
    ("dependencies", Dependencies),
    ("devDependencies", Dependencies),
    ("peerDependencies", Dependencies),
    ("optionalDependencies", Dependencies),
    ("version", Free),
    ("description", Free),
    ("keywords", Free),
    ("author", Free),
    ("contributors", Free),
    ("license", Free),
    ("repository", Free),
    ("homepage", Free),
    ("bugs", Free),
    ("files", Free),
    ("bin", Additive),
    ("exports", Additive),
];

pub(super) const PYPROJECT: &KeyRules = &[
    ("project.dependencies", Dependencies),
    ("project.optional-dependencies.*", Dependencies),
    ("dependency-groups.*", Dependencies),
    ("build-system.requires", Dependencies),
    ("tool.poetry.dependencies", Dependencies),
    ("tool.poetry.dev-dependencies", Dependencies),
    ("tool.poetry.group.*.dependencies", Dependencies),
    ("tool.poetry.version", Free),
    ("tool.poetry.description", Free),
    ("tool.poetry.authors", Free),
    ("tool.uv.dev-dependencies", Dependencies),
    ("project.version", Free),
    ("project.description", Free),
    ("project.readme", Free),
    ("project.license", Free),
    ("project.authors", Free),
    ("project.maintainers", Free),
    ("project.keywords", Free),
    ("project.classifiers", Free),
    ("project.urls", Free),
];

pub(super) const PIPFILE: &KeyRules = &[("packages", Dependencies), ("dev-packages", Dependencies)];

pub(super) const COMPOSER: &KeyRules = &[
    ("require", Dependencies),
    ("require-dev", Dependencies),
    ("version", Free),
    ("description", Free),
    ("keywords", Free),
    ("license", Free),
    ("authors", Free),
    ("homepage", Free),
    ("support", Free),
    ("autoload", Additive),
];

pub(super) const DENO: &KeyRules =
    &[("imports", Dependencies), ("version", Free), ("description", Free), ("exports", Additive)];

pub(super) const TSCONFIG: &KeyRules = &[("include", Additive), ("files", Additive)];

pub(super) const LERNA: &KeyRules = &[("version", Free), ("packages", Additive)];

/// Returns the keys that judge and differ.
pub(super) fn changed_keys(syntax: KeySyntax, rules: &KeyRules, before: &str, after: &str) -> Vec<String> {
    let (Some(before), Some(after)) = (parse(syntax, before), parse(syntax, after)) else {
        return vec!["a file that cannot be parsed".to_owned()];
    };
    let mut comparison = KeyComparison { rules, changed: Vec::new() };
    comparison.compare_tables(&[], &before, &after);
    comparison.changed
}

fn parse(syntax: KeySyntax, text: &str) -> Option<Map<String, Value>> {
    let text = text.trim_start_matches('\u{feff}');
    match syntax {
        KeySyntax::Toml => toml::from_str(text).ok(),
        KeySyntax::Json => serde_json::from_str(text).ok(),
    }
}

struct KeyComparison<'a> {
    rules: &'a KeyRules,
    changed: Vec<String>,
}

impl KeyComparison<'_> {
    fn compare_tables(&mut self, path: &[&str], before: &Map<String, Value>, after: &Map<String, Value>) {
        let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for key in keys {
            let path = [path, &[key.as_str()]].concat();
            self.compare(&path, before.get(key), after.get(key));
        }
    }

    fn compare(&mut self, path: &[&str], before: Option<&Value>, after: Option<&Value>) {
        if before == after {
            return;
        }
        let rule = self.rules.iter().find(|(pattern, _)| is_match(pattern, path, false));
        match rule.map(|(_, rule)| *rule) {
            Some(Free) => {}
            Some(Additive) => {
                if !is_extended(before, after) {
                    self.changed.push(path.join("."));
                }
            }
            Some(Dependencies) => self.compare_dependencies(path, before, after),
            None => self.descend(path, before, after),
        }
    }

    /// Compares the keys below a key without a rule. A table that is new or removed judges as a whole, unless one of its keys
    /// has a rule.
    fn descend(&mut self, path: &[&str], before: Option<&Value>, after: Option<&Value>) {
        let is_partial = self.rules.iter().any(|(pattern, _)| is_match(pattern, path, true));
        let empty = Map::new();
        let table = |value: Option<&'_ Value>| value.and_then(Value::as_object).cloned();
        match (table(before), table(after)) {
            (Some(before), Some(after)) => self.compare_tables(path, &before, &after),
            (None, Some(after)) if is_partial && before.is_none() => {
                self.compare_tables(path, &empty, &after);
            }
            (Some(before), None) if is_partial && after.is_none() => {
                self.compare_tables(path, &before, &empty);
            }
            _ => self.changed.push(path.join(".")),
        }
    }

    /// Finds dependencies with another source: a candidate may replace the test framework that way.
    fn compare_dependencies(&mut self, path: &[&str], before: Option<&Value>, after: Option<&Value>) {
        let known = before.and_then(Value::as_object);
        for (name, value) in after.and_then(Value::as_object).into_iter().flatten() {
            let old = known.and_then(|known| known.get(name));
            if old.is_some_and(|old| has_other_source(old, value)) {
                self.changed.push([path, &[name.as_str()]].concat().join("."));
            }
        }
        let known = before.and_then(Value::as_array);
        for value in after.and_then(Value::as_array).into_iter().flatten() {
            let is_known = known.is_some_and(|known| known.contains(value));
            if !is_known && value.as_str().is_none_or(|text| text.contains('@')) {
                self.changed.push(path.join("."));
            }
        }
    }
}

/// Returns whether a pattern matches a path, or begins with it and continues.
fn is_match(pattern: &str, path: &[&str], is_prefix: bool) -> bool {
    let mut keys = pattern.split('.');
    let matches =
        path.iter().all(|key| keys.next().is_some_and(|expected| expected == "*" || expected == *key));
    matches && keys.next().is_some() == is_prefix
}

/// Returns whether a value contains all parts of an older value.
fn is_extended(before: Option<&Value>, after: Option<&Value>) -> bool {
    match (before, after) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            before.iter().all(|(key, value)| is_extended(Some(value), after.get(key)))
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            before.iter().all(|value| after.contains(value))
        }
        (Some(before), Some(after)) => before == after,
    }
}

/// Returns whether a dependency comes from another source than before: a directory, a repository or another package.
fn has_other_source(before: &Value, after: &Value) -> bool {
    let is_other_key = |key: &str| after.get(key).is_some_and(|source| before.get(key) != Some(source));
    let source = |value: &Value| value.as_str().and_then(source_of).map(str::to_owned);
    ["path", "file", "git", "url", "package", "registry"].into_iter().any(is_other_key)
        || source(after).is_some_and(|after| source(before) != Some(after))
}

/// Returns the source that a text names instead of a version: its scheme, or the whole text for a path or a short name of a
/// repository.
fn source_of(text: &str) -> Option<&str> {
    match text.split_once(':') {
        Some(("file" | "link" | "portal", _)) => Some(text),
        Some((scheme, _)) => Some(scheme),
        None => text.contains('/').then_some(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judging_keys_are_told_apart() {
        let cargo = "[package]\nname = \"a\"\nversion = \"0.1.0\"\n\n[dependencies]\nserde = \"1\"\n";
        for (added, expected) in [
            ("rand = \"1\"\n", ""),
            ("own = { path = \"own\" }\n", ""),
            ("[features]\nfast = []\n", ""),
            ("[[bin]]\nname = \"tool\"\npath = \"src/tool.rs\"\n", ""),
            ("[target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n", ""),
            ("[lib]\ntest = false\n", "lib"),
            ("[[test]]\nname = \"old\"\npath = \"src/fake.rs\"\n", "test"),
            ("[profile.test]\ndebug-assertions = false\n", "profile"),
            ("[patch.crates-io]\nserde = { path = \"fake\" }\n", "patch"),
        ] {
            let found = changed_keys(KeySyntax::Toml, CARGO, cargo, &format!("{cargo}{added}"));
            assert_eq!(found.join(" "), expected, "{added}");
        }
        for (from, to, expected) in [
            ("version = \"0.1.0\"", "version = \"0.2.0\"", ""),
            ("serde = \"1\"", "serde = \"2\"", ""),
            ("serde = \"1\"", "serde = { path = \"fake\" }", "dependencies.serde"),
            ("serde = \"1\"", "serde = { package = \"fake\", version = \"1\" }", "dependencies.serde"),
            ("name = \"a\"", "name = \"a\"\nautotests = false", "package.autotests"),
            ("name = \"a\"", "name = \"a\"\nbuild = \"src/b.rs\"", "package.build"),
            ("[package]", "[package", "a file that cannot be parsed"),
        ] {
            let found = changed_keys(KeySyntax::Toml, CARGO, cargo, &cargo.replace(from, to));
            assert_eq!(found.join(" "), expected, "{to}");
        }
    }

    #[test]
    fn a_dependency_keeps_its_source() {
        let found = |before: &str, after: &str| {
            let with = |value: &str| format!("[dependencies]\na = {value}\n");
            changed_keys(KeySyntax::Toml, CARGO, &with(before), &with(after)).len()
        };
        for (before, after, expected) in [
            ("{ path = \"a\" }", "{ path = \"a\", features = [\"b\"] }", 0),
            ("{ path = \"a\" }", "{ path = \"b\" }", 1),
            ("{ git = \"g\", rev = \"1\" }", "{ git = \"g\", rev = \"2\" }", 0),
            ("{ version = \"1\" }", "{ git = \"g\" }", 1),
        ] {
            assert_eq!(found(before, after), expected, "{after}");
        }
        let deno = |version: &str| format!(r#"{{"imports": {{"a": "jsr:@std/assert@{version}"}}}}"#);
        assert!(changed_keys(KeySyntax::Json, DENO, &deno("1.0"), &deno("1.1")).is_empty());
    }

    #[test]
    fn scripts_and_runners_of_packages_judge() {
        let package =
            r#"{"scripts": {"test": "jest"}, "devDependencies": {"jest": "29"}, "exports": {".": "./a.js"}}"#;
        for (from, to, expected) in [
            (r#""29"}"#, r#""30", "left-pad": "1"}"#, ""),
            (r#""29""#, r#""~30.1""#, ""),
            (r#""29""#, r#""file:fake""#, "devDependencies.jest"),
            (r#""29""#, r#""npm:fake@29""#, "devDependencies.jest"),
            (r#""29""#, r#""owner/fake""#, "devDependencies.jest"),
            (r#""jest"}"#, r#""true"}"#, "scripts.test"),
            (r#""jest"}"#, r#""jest", "pretest": "true"}"#, "scripts.pretest"),
            (r#"{".""#, r#"{"./b": "./b.js", ".""#, ""),
            (r#""./a.js""#, r#""./fake.js""#, "exports"),
            (r#"{"scripts""#, r#"{"jest": {"testMatch": []}, "scripts""#, "jest"),
            (r#"{"scripts""#, r#"{"type": "module", "scripts""#, "type"),
        ] {
            let found = changed_keys(KeySyntax::Json, PACKAGE_JSON, package, &package.replacen(from, to, 1));
            assert_eq!(found.join(" "), expected, "{to}");
        }
        let project = "[project]\nname = \"a\"\ndependencies = [\"x\"]\n";
        for (added, expected) in [
            ("[project.optional-dependencies]\ndev = [\"pytest\"]\n", ""),
            (
                "[project.optional-dependencies]\ndev = [\"pytest @ file:///fake\"]\n",
                "project.optional-dependencies.dev",
            ),
            ("[project.entry-points.pytest11]\na = \"a\"\n", "project.entry-points"),
            ("[tool.pytest.ini_options]\naddopts = \"--collect-only\"\n", "tool.pytest"),
        ] {
            let found = changed_keys(KeySyntax::Toml, PYPROJECT, project, &format!("{project}{added}"));
            assert_eq!(found.join(" "), expected, "{added}");
        }
    }
}
