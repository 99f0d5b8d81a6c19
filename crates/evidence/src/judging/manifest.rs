//! Manifests and build files, compared by key: dependencies and new sources may change, all other keys judge.

mod keys;
mod lines;
mod maven;

use self::keys::{KeyRules, KeySyntax};
use self::lines::LineRules;

/// Format of a manifest or a build file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ManifestFormat {
    Cargo,
    PackageJson,
    PyProject,
    Pipfile,
    Composer,
    Deno,
    TsConfig,
    Lerna,
    Make,
    SetupPy,
    Requirements,
    GoMod,
    CMake,
    Meson,
    Bazel,
    Maven,
    Gradle,
    Gemfile,
    Mix,
    Rebar,
    Stack,
    Dune,
    Leiningen,
    Sbt,
    Swift,
    /// Each line judges.
    Frozen,
}

enum Comparison {
    Keys(KeySyntax, &'static KeyRules),
    Lines(&'static LineRules),
    Maven,
}

impl ManifestFormat {
    fn comparison(self) -> Comparison {
        match self {
            Self::Cargo => Comparison::Keys(KeySyntax::Toml, keys::CARGO),
            Self::PyProject => Comparison::Keys(KeySyntax::Toml, keys::PYPROJECT),
            Self::Pipfile => Comparison::Keys(KeySyntax::Toml, keys::PIPFILE),
            Self::PackageJson => Comparison::Keys(KeySyntax::Json, keys::PACKAGE_JSON),
            Self::Composer => Comparison::Keys(KeySyntax::Json, keys::COMPOSER),
            Self::Deno => Comparison::Keys(KeySyntax::CommentedJson, keys::DENO),
            Self::TsConfig => Comparison::Keys(KeySyntax::CommentedJson, keys::TSCONFIG),
            Self::Lerna => Comparison::Keys(KeySyntax::Json, keys::LERNA),
            Self::Maven => Comparison::Maven,
            Self::Make => Comparison::Lines(&lines::MAKE),
            Self::CMake => Comparison::Lines(&lines::CMAKE),
            Self::Meson => Comparison::Lines(&lines::MESON),
            Self::Bazel => Comparison::Lines(&lines::BAZEL),
            Self::SetupPy => Comparison::Lines(&lines::SETUP_PY),
            Self::Requirements => Comparison::Lines(&lines::REQUIREMENTS),
            Self::GoMod => Comparison::Lines(&lines::GO_MOD),
            Self::Gradle => Comparison::Lines(&lines::GRADLE),
            Self::Gemfile => Comparison::Lines(&lines::GEMFILE),
            Self::Mix => Comparison::Lines(&lines::MIX),
            Self::Rebar => Comparison::Lines(&lines::REBAR),
            Self::Stack => Comparison::Lines(&lines::STACK),
            Self::Dune => Comparison::Lines(&lines::DUNE),
            Self::Leiningen => Comparison::Lines(&lines::LEININGEN),
            Self::Sbt => Comparison::Lines(&lines::SBT),
            Self::Swift => Comparison::Lines(&lines::SWIFT),
            Self::Frozen => Comparison::Lines(&lines::FROZEN),
        }
    }

    /// Returns the names of the dependencies that a manifest lists. Only formats with a data syntax and lists of requirements have
    /// names.
    pub(crate) fn dependency_names(self, text: &str) -> Vec<String> {
        let names = match self.comparison() {
            Comparison::Keys(syntax, rules) => keys::dependency_names(syntax, rules, text),
            Comparison::Lines(_) if self == Self::Requirements => {
                text.lines().map(requirement_name).collect()
            }
            Comparison::Lines(_) | Comparison::Maven => Vec::new(),
        };
        names.into_iter().filter(|name| !name.is_empty()).collect()
    }

    /// Returns the names of the parts that judge and differ. `is_test` returns whether a path is a test.
    pub(crate) fn changed_parts(
        self,
        before: &str,
        after: &str,
        is_test: &dyn Fn(&str) -> bool,
    ) -> Vec<String> {
        if before == after {
            return Vec::new();
        }
        match self.comparison() {
            Comparison::Keys(syntax, rules) => keys::changed_keys(syntax, rules, before, after),
            Comparison::Lines(rules) => lines::changed_lines(rules, before, after, is_test),
            Comparison::Maven => maven::changed_elements(before, after),
        }
    }
}

/// Returns the name at the start of a requirement, such as `a` of `a[b]>=2`. Empty for a comment or an option.
fn requirement_name(text: &str) -> String {
    let is_part = |character: &char| character.is_alphanumeric() || matches!(character, '-' | '_' | '.');
    let text = text.trim();
    if text.starts_with(|first: char| first.is_alphanumeric()) {
        text.chars().take_while(is_part).collect()
    } else {
        String::new()
    }
}
