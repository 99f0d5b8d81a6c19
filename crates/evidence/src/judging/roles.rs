//! Roles of files by their names, for the ecosystems that the checks of a task come from.

use std::path::Path;
use std::sync::LazyLock;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::manifest::ManifestFormat;

/// Role of a file in the judgement of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileRole {
    Test,
    Fixture,
    Snapshot,
    /// Settings of runners, toolchains and git.
    Settings,
    ContinuousIntegration,
    Lock,
    /// Manifest or build file, whose keys judge in part.
    Manifest(ManifestFormat),
    /// Settings of a tool. They judge if a command runs one of these programs.
    ToolSettings(&'static [&'static str]),
    /// File that may judge. It does if a command names it or its directory.
    Uncertain,
    Source,
}

impl FileRole {
    /// Returns whether the file must not change.
    pub(crate) fn is_frozen(self) -> bool {
        matches!(
            self,
            Self::Test
                | Self::Fixture
                | Self::Snapshot
                | Self::Settings
                | Self::ContinuousIntegration
                | Self::Lock
        )
    }

    /// Returns whether the file is a manifest of the package manager that writes this lock file.
    pub(crate) fn is_manifest_of(self, lock: &str) -> bool {
        let name = lock.rsplit('/').next().unwrap_or(lock).to_lowercase();
        let formats: &[ManifestFormat] = match name.as_str() {
            "cargo.lock" => &[ManifestFormat::Cargo],
            "package-lock.json"
            | "npm-shrinkwrap.json"
            | "yarn.lock"
            | "pnpm-lock.yaml"
            | "bun.lock"
            | "bun.lockb" => &[ManifestFormat::PackageJson],
            "poetry.lock" | "uv.lock" | "pdm.lock" => &[ManifestFormat::PyProject],
            "pipfile.lock" => &[ManifestFormat::Pipfile],
            "go.sum" | "go.work.sum" => &[ManifestFormat::GoMod],
            "gemfile.lock" => &[ManifestFormat::Gemfile],
            "composer.lock" => &[ManifestFormat::Composer],
            "mix.lock" => &[ManifestFormat::Mix],
            "deno.lock" => &[ManifestFormat::Deno, ManifestFormat::PackageJson],
            "package.resolved" => &[ManifestFormat::Swift],
            "gradle.lockfile" => &[ManifestFormat::Gradle],
            "flake.lock" => {
                return matches!(self, Self::ToolSettings(programs) if programs.contains(&"nix"));
            }
            _ => &[],
        };
        matches!(self, Self::Manifest(format) if formats.contains(&format))
    }

    /// Returns whether the file is a test or its data, but no settings.
    pub(crate) fn is_test(self) -> bool {
        matches!(self, Self::Test | Self::Fixture | Self::Snapshot)
    }
}

/// Patterns of one role. The first row with a matching pattern decides.
struct RoleRow {
    role: FileRole,
    /// Whether names with another case match. Names in camel case are compared with case: `contest.rs` is no `*Test.*`.
    ignores_case: bool,
    patterns: &'static [&'static str],
}

const fn row(role: FileRole, patterns: &'static [&'static str]) -> RoleRow {
    RoleRow { role, ignores_case: true, patterns }
}

const fn manifest(format: ManifestFormat, patterns: &'static [&'static str]) -> RoleRow {
    row(FileRole::Manifest(format), patterns)
}

const fn tool(programs: &'static [&'static str], patterns: &'static [&'static str]) -> RoleRow {
    row(FileRole::ToolSettings(programs), patterns)
}

/// Settings that programs read without being asked to, and settings that a tool prefers to others. A candidate that adds
/// such a file makes another one ineffective without changing it.
const SETTINGS: &[&str] = &[
    "**/pytest.ini",
    "**/.pytest.ini",
    "**/pytest.toml",
    "**/.pytest.toml",
    "**/tox.ini",
    "**/tox.toml",
    "**/noxfile.py",
    "**/setup.cfg",
    "**/uv.toml",
    "**/.coveragerc*",
    "**/mypy.ini",
    "**/.mypy.ini",
    "**/pyrightconfig.json",
    "**/ty.toml",
    "**/ruff.toml",
    "**/.ruff.toml",
    "**/.flake8",
    "**/pylintrc*",
    "**/.pylintrc*",
    "**/manage.py",
    "**/requirements{-,_}{test,tests,dev}.txt",
    "**/{test,dev}{-,_}requirements.txt",
    "**/.python-version",
    "**/.tool-versions",
    "**/{mise,.mise}.toml",
    "**/{.nvmrc,.node-version}",
    "**/.npmrc",
    "**/.yarnrc*",
    "**/bunfig.toml",
    "**/.eslintrc*",
    "**/eslint.config.*",
    "**/babel.config.*",
    "**/.babelrc*",
    "**/.swcrc",
    "**/{jest,vite,vitest,playwright,cypress,ava}.config.*",
    "**/jest.setup.*",
    "**/setupTests.{js,jsx,ts,tsx}",
    "**/vitest.{setup,workspace}.*",
    "**/karma.conf.*",
    "**/.taprc",
    "**/.nycrc*",
    "**/.mocharc*",
    "**/{GNUmakefile,BSDmakefile}",
    "**/{justfile,.justfile}",
    "**/taskfile{,.dist}.{yml,yaml}",
    "**/CMake{,User}Presets.json",
    "**/gradle.properties",
    "**/gradle/wrapper/**",
    "**/rakefile",
    "**/.rspec",
    "**/phpunit.xml{,.dist}",
    "**/.cargo/**",
    "**/.config/nextest.toml",
    "**/build.rs",
    "**/rust-toolchain{,.toml}",
    "**/go.work",
    "**/.env.test*",
    "**/.gitattributes",
    "**/.gitmodules",
    "**/.gitignore",
    "**/.envrc",
];

const CONTINUOUS_INTEGRATION: &[&str] = &[
    ".github/**",
    ".gitea/**",
    ".forgejo/**",
    ".gitlab-ci.yml",
    ".ci/**",
    ".circleci/**",
    ".buildkite/**",
    ".woodpecker/**",
    ".woodpecker.{yml,yaml}",
    ".travis.yml",
    ".drone.yml",
    "{appveyor,.appveyor}.yml",
    "azure-pipelines.{yml,yaml}",
    "bitbucket-pipelines.yml",
    "Jenkinsfile",
    ".husky/**",
    ".pre-commit-config.yaml",
];

const LOCKS: &[&str] = &[
    "**/Cargo.lock",
    "**/package-lock.json",
    "**/npm-shrinkwrap.json",
    "**/yarn.lock",
    "**/pnpm-lock.yaml",
    "**/bun.{lock,lockb}",
    "**/{poetry,uv,pdm,Pipfile}.lock",
    "**/go.sum",
    "**/go.work.sum",
    "**/Gemfile.lock",
    "**/composer.lock",
    "**/mix.lock",
    "**/deno.lock",
    "**/Package.resolved",
    "**/flake.lock",
    "**/gradle.lockfile",
];

const ROWS: &[RoleRow] = &[
    // Python loads these files from any directory on its path.
    row(
        FileRole::Settings,
        &[
            "**/conftest.py",
            "**/{sitecustomize,usercustomize}.py",
            "**/*.pth",
            "**/*.dist-info/**",
            "**/*.egg-info/**",
        ],
    ),
    row(
        FileRole::Snapshot,
        &[
            "**/__snapshots__/**",
            "**/*.snap",
            "**/*.snap.new",
            "**/*.pending-snap",
            "**/{golden,goldens,expected}/**",
            "**/*.golden",
            "**/*.approved.*",
            "**/tests/**/*.{stderr,stdout}",
        ],
    ),
    row(
        FileRole::Fixture,
        &[
            "**/{fixtures,__fixtures__,__mocks__}/**",
            "**/{testdata,test_data,test-data}/**",
            "**/{test_utils,testutils}/**",
        ],
    ),
    row(FileRole::ContinuousIntegration, CONTINUOUS_INTEGRATION),
    row(FileRole::Lock, LOCKS),
    row(FileRole::Settings, SETTINGS),
    // Make prefers `makefile` to `Makefile`.
    RoleRow { role: FileRole::Settings, ignores_case: false, patterns: &["**/makefile"] },
    manifest(ManifestFormat::Make, &["**/makefile"]),
    manifest(ManifestFormat::Cargo, &["**/Cargo.toml"]),
    manifest(ManifestFormat::PackageJson, &["**/package.json"]),
    manifest(ManifestFormat::PyProject, &["**/pyproject.toml"]),
    manifest(ManifestFormat::Pipfile, &["**/Pipfile"]),
    manifest(ManifestFormat::SetupPy, &["**/setup.py"]),
    manifest(ManifestFormat::Requirements, &["**/requirements*.{txt,in}"]),
    manifest(ManifestFormat::Composer, &["**/composer.json"]),
    manifest(ManifestFormat::Deno, &["**/deno.{json,jsonc}"]),
    manifest(ManifestFormat::TsConfig, &["**/tsconfig*.json"]),
    manifest(
        ManifestFormat::Frozen,
        &["**/{nx,turbo}.json", "**/pnpm-workspace.yaml", "**/settings.gradle{,.kts}"],
    ),
    manifest(ManifestFormat::Lerna, &["**/lerna.json"]),
    manifest(ManifestFormat::GoMod, &["**/go.mod"]),
    manifest(ManifestFormat::CMake, &["**/CMakeLists.txt"]),
    manifest(ManifestFormat::Meson, &["**/meson.build"]),
    manifest(ManifestFormat::Bazel, &["**/{BUILD,WORKSPACE,MODULE}.bazel", "**/WORKSPACE"]),
    manifest(ManifestFormat::Maven, &["**/pom.xml"]),
    manifest(ManifestFormat::Gradle, &["**/build.gradle{,.kts}"]),
    manifest(ManifestFormat::Gemfile, &["**/Gemfile"]),
    manifest(ManifestFormat::Mix, &["**/mix.exs"]),
    manifest(ManifestFormat::Rebar, &["**/rebar.config"]),
    manifest(ManifestFormat::Stack, &["**/stack.yaml"]),
    manifest(ManifestFormat::Dune, &["**/dune-project", "**/dune"]),
    manifest(ManifestFormat::Leiningen, &["**/project.clj"]),
    manifest(ManifestFormat::Sbt, &["**/build.sbt"]),
    manifest(ManifestFormat::Swift, &["**/Package.swift"]),
    tool(&["clippy"], &["**/{clippy,.clippy}.toml"]),
    tool(&["fmt", "rustfmt"], &["**/{rustfmt,.rustfmt}.toml"]),
    tool(&["deny", "cargo-deny"], &["**/deny.toml"]),
    tool(&["biome"], &["**/biome.{json,jsonc}"]),
    tool(&["prettier"], &["**/.prettierrc*", "**/prettier.config.*"]),
    tool(&["hatch"], &["**/hatch.toml"]),
    tool(&["docker", "podman"], &["**/Dockerfile", "**/Containerfile"]),
    tool(&["earthly"], &["**/Earthfile"]),
    tool(&["nix"], &["**/flake.nix"]),
    tool(&["webpack"], &["**/webpack.config.*"]),
    tool(&["rollup"], &["**/rollup.config.*"]),
    row(
        FileRole::Test,
        &[
            "**/{test,tests,__tests__,spec,e2e,unit_tests,integration_tests}/**",
            "**/*.tests/**",
            "**/{test,tests}.*",
            "**/*{_,-,.}{test,tests,spec}.*",
            "**/test{_,-}*.*",
            "**/*.cy.*",
            "**/*.{feature,bats,t}",
            "**/features/steps/**",
            "**/step_definitions/**",
        ],
    ),
    RoleRow {
        role: FileRole::Test,
        ignores_case: false,
        patterns: &[
            "**/*{Test,Tests,TestCase}.*",
            "**/*Tests/**",
            "**/*IT.{java,kt}",
            "**/Test[A-Z]*.{java,kt,cs,php,py,swift}",
            "**/*Spec.{scala,hs,java,kt,groovy,js,ts}",
        ],
    },
    row(FileRole::Uncertain, &["**/{testing,integration}/**", "**/*.mk", "**/.env"]),
];

/// The only table. Each task and each index needs one, and its hundreds of patterns take long to compile.
static TABLE: LazyLock<Result<RoleTable, globset::Error>> = LazyLock::new(RoleTable::compile);

/// Compiled patterns of all roles.
#[derive(Debug)]
pub(crate) struct RoleTable {
    set: GlobSet,
    /// Role of each pattern, in the order of the set.
    roles: Vec<FileRole>,
}

impl RoleTable {
    /// Returns the table. The first call in a process compiles the patterns.
    ///
    /// # Errors
    ///
    /// The first pattern that is no glob.
    pub(crate) fn shared() -> Result<&'static Self, globset::Error> {
        TABLE.as_ref().map_err(Clone::clone)
    }

    fn compile() -> Result<Self, globset::Error> {
        let mut set = GlobSetBuilder::new();
        let mut roles = Vec::new();
        for RoleRow { role, ignores_case, patterns } in ROWS {
            for pattern in *patterns {
                let mut glob = GlobBuilder::new(pattern);
                glob.literal_separator(true).case_insensitive(*ignores_case);
                glob.empty_alternates(true);
                set.add(glob.build()?);
                roles.push(*role);
            }
        }
        Ok(Self { set: set.build()?, roles })
    }

    /// Returns the role of a file by its path.
    pub(crate) fn role(&self, path: &str) -> FileRole {
        let matches = self.set.matches(Path::new(path));
        let first = matches.iter().min().and_then(|index| self.roles.get(*index));
        first.copied().unwrap_or(FileRole::Source)
    }
}
