//! Commands that run the tests of a project, by its manifests. The recognition of runners decides the format of their results.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::judging::{FileRole, ManifestFormat};
use crate::results::{ResultsFormat, recognize};

/// Maximum number of commands.
const MAX_COMMANDS: usize = 20;

/// A command that runs tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TestCommand {
    pub(super) command: String,
    /// Format of its results, if its runner is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<ResultsFormat>,
}

/// Returns the test commands of manifests: path, role and text of each, those near the root first. A manifest below another
/// one with the same command, such as one of a workspace, adds nothing.
pub(super) fn find(paths: &BTreeSet<&str>, manifests: &[(&str, FileRole, &str)]) -> Vec<TestCommand> {
    let mut found: Vec<(&str, String, TestCommand)> = Vec::new();
    for &(path, role, text) in manifests {
        let FileRole::Manifest(manifest) = role else { continue };
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let project = Project { directory, paths, text };
        let Some(line) = project.command(manifest) else { continue };
        let is_known = |known: &str, other: &str| {
            other == line
                && (known.is_empty() || directory == known || directory.starts_with(&format!("{known}/")))
        };
        let is_plain = |character: char| character.is_alphanumeric() || "_-./".contains(character);
        if found.iter().any(|(known, other, _)| is_known(known, other)) || !directory.chars().all(is_plain) {
            continue;
        }
        let package = (manifest == ManifestFormat::PackageJson).then_some(text);
        let format = recognize(&line, package).map(|results| results.format);
        let command = if directory.is_empty() { line.clone() } else { format!("cd {directory} && {line}") };
        found.push((directory, line, TestCommand { command, format }));
    }
    found.truncate(MAX_COMMANDS);
    found.into_iter().map(|(_, _, command)| command).collect()
}

/// Directory with a manifest.
struct Project<'a> {
    directory: &'a str,
    paths: &'a BTreeSet<&'a str>,
    /// Text of the manifest.
    text: &'a str,
}

impl Project<'_> {
    /// Returns the command that runs its tests.
    fn command(&self, manifest: ManifestFormat) -> Option<String> {
        let line = match manifest {
            ManifestFormat::Cargo => "cargo test",
            ManifestFormat::GoMod => "go test ./...",
            ManifestFormat::PackageJson => self.has_script("test").then_some("npm test")?,
            ManifestFormat::PyProject | ManifestFormat::SetupPy | ManifestFormat::Requirements => {
                self.python()?
            }
            ManifestFormat::Make => {
                let has_target =
                    |name: &str| self.text.lines().any(|line| line.starts_with(&format!("{name}:")));
                match (has_target("test"), has_target("check")) {
                    (true, _) => "make test",
                    (false, true) => "make check",
                    (false, false) => return None,
                }
            }
            ManifestFormat::CMake if self.text.contains("enable_testing") => {
                "cmake -B build && cmake --build build && ctest --test-dir build"
            }
            ManifestFormat::Maven => "mvn test",
            ManifestFormat::Gradle if self.has("gradlew") => "./gradlew test",
            ManifestFormat::Gradle => "gradle test",
            ManifestFormat::Gemfile if self.has(".rspec") || self.has_directory("spec") => {
                "bundle exec rspec"
            }
            ManifestFormat::Composer if self.has("phpunit.xml") || self.has("phpunit.xml.dist") => {
                "vendor/bin/phpunit"
            }
            ManifestFormat::Mix => "mix test",
            ManifestFormat::Swift => "swift test",
            ManifestFormat::Sbt => "sbt test",
            ManifestFormat::Dune => "dune test",
            ManifestFormat::Stack => "stack test",
            ManifestFormat::Leiningen => "lein test",
            ManifestFormat::Rebar => "rebar3 eunit",
            ManifestFormat::Deno => "deno test",
            ManifestFormat::Gemfile
            | ManifestFormat::Composer
            | ManifestFormat::CMake
            | ManifestFormat::Pipfile
            | ManifestFormat::TsConfig
            | ManifestFormat::Lerna
            | ManifestFormat::Meson
            | ManifestFormat::Bazel
            | ManifestFormat::Frozen => return None,
        };
        Some(line.to_owned())
    }

    fn python(&self) -> Option<&'static str> {
        let is_pytest = self.text.contains("pytest") || self.has("conftest.py") || self.has("pytest.ini");
        let has_tests = self.has_directory("tests") || self.has_directory("test");
        match (is_pytest, has_tests) {
            (true, _) => Some("python3 -m pytest"),
            (false, true) => Some("python3 -m unittest"),
            (false, false) => None,
        }
    }

    fn has_script(&self, name: &str) -> bool {
        let package: Option<serde_json::Value> = serde_json::from_str(self.text).ok();
        package.is_some_and(|package| package.pointer(&format!("/scripts/{name}")).is_some())
    }

    fn path(&self, name: &str) -> String {
        if self.directory.is_empty() { name.to_owned() } else { format!("{}/{name}", self.directory) }
    }

    fn has(&self, name: &str) -> bool {
        self.paths.contains(self.path(name).as_str())
    }

    fn has_directory(&self, name: &str) -> bool {
        let start = self.path(name) + "/";
        self.paths.range(start.as_str()..).next().is_some_and(|path| path.starts_with(&start))
    }
}
