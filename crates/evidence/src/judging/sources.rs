//! Sources of a change, and the files beside them.

use std::collections::BTreeSet;

use super::facts::JudgingFacts;
use super::manifest::ManifestFormat;
use super::path_rules::PathRules;
use super::roles::FileRole;
use crate::diff::{ChangeKind, ChangedFile};
use crate::source_languages::language_of;

/// Modules of runners, and of the standard libraries that they use, that a file at an import root would replace.
const RUNNERS: [&str; 24] = [
    "_pytest",
    "assert",
    "ava",
    "chai",
    "doctest",
    "exceptiongroup",
    "faulthandler",
    "iniconfig",
    "jest",
    "json",
    "mocha",
    "nose",
    "os",
    "pluggy",
    "py",
    "pytest",
    "re",
    "site",
    "sys",
    "tap",
    "types",
    "typing",
    "unittest",
    "vitest",
];

/// Modules of the standard library of Python.
const PYTHON_LIBRARY: &str = "\
    abc aifc argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect \
    builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys \
    compileall concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses \
    dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum errno \
    faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt \
    getpass gettext glob graphlib grp gzip hashlib heapq hmac html http imaplib imghdr imp importlib \
    inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox mailcap \
    marshal math mimetypes mmap modulefinder msvcrt multiprocessing netrc nis nntplib nturl2path numbers \
    opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform \
    plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pyexpat queue \
    quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve \
    shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile \
    sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys \
    sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap threading time timeit tkinter \
    token tokenize tomllib trace traceback tracemalloc tty types typing unicodedata unittest urllib uu \
    uuid venv warnings wave weakref webbrowser wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib \
    zoneinfo";

/// Packages of Python whose modules have other names.
const PYTHON_PACKAGES: [(&str, &str); 9] = [
    ("attrs", "attr"),
    ("beautifulsoup4", "bs4"),
    ("opencv_python", "cv2"),
    ("pillow", "PIL"),
    ("protobuf", "google"),
    ("python_dateutil", "dateutil"),
    ("pyyaml", "yaml"),
    ("scikit_learn", "sklearn"),
    ("setuptools", "pkg_resources"),
];

/// Modules that a new file at an import root would replace: the standard library, and the packages that the manifests of the
/// project list.
#[derive(Debug, Default)]
pub struct InstalledModules {
    /// Words of the goal. A module that the goal names is expected.
    goal: BTreeSet<String>,
    python: BTreeSet<String>,
    javascript: BTreeSet<String>,
    /// Modules of the project. A new file in one of them replaces nothing.
    existing: BTreeSet<String>,
}

impl InstalledModules {
    /// Creates the modules of the standard library, without those that the goal names.
    #[must_use]
    pub fn new(goal: &str) -> Self {
        let words = goal.split(|character: char| !(character.is_alphanumeric() || character == '_'));
        Self { goal: words.map(str::to_owned).collect(), ..Self::default() }
    }

    /// Returns whether a file is a manifest of the project, whose text [`add_file`](Self::add_file) needs.
    #[must_use]
    pub fn needs_text(rules: &PathRules, path: &str) -> bool {
        manifest_format(rules, path).is_some()
    }

    /// Adds a file of the project: its module, and the packages that the text of a manifest lists as dependencies.
    pub fn add_file(&mut self, rules: &PathRules, path: &str, text: Option<&str>) {
        let name = rules.without_directory(path);
        if module_extension(name).is_some() {
            self.existing.insert(module_name(name).to_owned());
        }
        if let (Some(format), Some(text)) = (manifest_format(rules, path), text) {
            self.add_manifest(format, text);
        }
    }

    fn add_manifest(&mut self, format: ManifestFormat, text: &str) {
        for name in format.dependency_names(text) {
            if matches!(format, ManifestFormat::PackageJson | ManifestFormat::Deno) {
                self.javascript.insert(name);
                continue;
            }
            let name = name.to_lowercase().replace(['-', '.'], "_");
            let module = PYTHON_PACKAGES.iter().find(|(package, _)| *package == name);
            self.python.extend(module.map(|(_, module)| (*module).to_owned()));
            self.python.insert(name);
        }
    }

    /// Returns whether a module of a file with this path replaces an installed one.
    fn has(&self, module: &str, path: &str) -> bool {
        let Some(extension) = module_extension(path) else { return false };
        if RUNNERS.contains(&module) {
            return true;
        }
        let is_installed = match extension {
            ".py" => {
                self.python.contains(module) || PYTHON_LIBRARY.split_whitespace().any(|name| name == module)
            }
            _ => self.javascript.contains(module),
        };
        is_installed && !self.goal.contains(module) && !self.existing.contains(module)
    }
}

/// Returns the format of a manifest in the directory of the task.
fn manifest_format(rules: &PathRules, path: &str) -> Option<ManifestFormat> {
    let name = rules.without_directory(path);
    let format = match rules.role(path) {
        FileRole::Manifest(format) => Some(format),
        // Requirements of tests are settings of runners.
        FileRole::Settings if name.contains("requirements") => Some(ManifestFormat::Requirements),
        FileRole::Test
        | FileRole::Fixture
        | FileRole::Snapshot
        | FileRole::Settings
        | FileRole::ContinuousIntegration
        | FileRole::Lock
        | FileRole::ToolSettings(_)
        | FileRole::Uncertain
        | FileRole::Source => None,
    };
    format.filter(|_| !name.contains('/'))
}

/// Returns the files of a change that are not sources, without the new tests that are kept apart. A file that the contract
/// names as its scope or as unprotected counts as a source, because the fix is expected there. A new module that replaces an
/// installed one is never a source. Empty for a change without sources, which the scope decides about, unless it replaces
/// such a module.
#[must_use]
pub fn files_beside_sources(
    rules: &PathRules,
    modules: &InstalledModules,
    files: &[ChangedFile],
    judging: &JudgingFacts,
) -> Vec<String> {
    let judged = files.iter().filter(|file| !judging.is_apart(&file.path));
    let replaces = |file: &ChangedFile| replaces_module(rules, modules, file);
    let (beside, sources): (Vec<&ChangedFile>, Vec<&ChangedFile>) =
        judged.partition(|file| replaces(file) || !is_expected(rules, &file.path));
    if sources.is_empty() && !beside.iter().any(|file| replaces(file)) {
        return Vec::new();
    }
    beside.into_iter().map(|file| file.path.clone()).collect()
}

/// Returns whether a file is a source by its name, and neither a test nor a manifest or settings.
pub(super) fn is_source(rules: &PathRules, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_settings = name.starts_with('.') || [".config.", ".conf."].iter().any(|part| name.contains(part));
    matches!(rules.role(path), FileRole::Source | FileRole::Uncertain)
        && language_of(path).is_some()
        && !is_settings
}

/// Returns whether the fix of a task is expected in a file.
fn is_expected(rules: &PathRules, path: &str) -> bool {
    is_source(rules, path) || rules.is_listed(path) || rules.is_unprotected(path)
}

/// Returns whether a new file replaces an installed module, or registers a plugin.
fn replaces_module(rules: &PathRules, modules: &InstalledModules, file: &ChangedFile) -> bool {
    let is_plugin = |part: &str| part.ends_with(".dist-info") || part.ends_with(".egg-info");
    let name = module_name(rules.without_directory(&file.path));
    file.kind == ChangeKind::Added
        && (file.path.split('/').any(is_plugin)
            || file.path.ends_with(".pth")
            || modules.has(name, &file.path))
}

/// Returns the module that a file belongs to, whose path starts at the root of the project or at an import root.
fn module_name(path: &str) -> &str {
    let mut parts = path.split('/');
    let first = parts.next().unwrap_or_default();
    let module = match first {
        // The import roots of the usual layouts.
        "src" | "lib" => parts.next().unwrap_or_default(),
        _ => first,
    };
    module.split('.').next().unwrap_or_default()
}

/// Returns the end of a path that is a module of Python or JavaScript.
fn module_extension(path: &str) -> Option<&'static str> {
    [".py", ".js", ".cjs", ".mjs"].into_iter().find(|extension| path.ends_with(extension))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judging::TaskScope;
    use crate::testing::{added, modified};

    fn beside(scope: &TaskScope, files: &[ChangedFile], apart: &[&str]) -> Vec<String> {
        let apart = apart.iter().map(|path| (*path).to_owned()).collect();
        let judging = JudgingFacts { apart, ..JudgingFacts::default() };
        files_beside_sources(&PathRules::new(scope).unwrap(), &InstalledModules::default(), files, &judging)
    }

    fn scope(paths: &[&str]) -> TaskScope {
        TaskScope { paths: paths.iter().map(|path| (*path).to_owned()).collect(), ..TaskScope::default() }
    }

    #[test]
    fn files_beside_the_sources_are_told_apart() {
        let change = [
            modified("src/money.py", 1, 1),
            modified("testing/tools.py", 1, 1),
            added("vite.config.js", 3),
            added("own.config.js", 3),
            added("pytest.py", 3),
            added("src/unittest/__init__.py", 3),
            added("evil-1.dist-info/entry_points.txt", 3),
            modified("src/json.py", 1, 1),
            modified("Cargo.toml", 1, 1),
            added("tests/test_new.py", 3),
            modified("data/rates.json", 1, 1),
        ];
        let all = [
            "vite.config.js",
            "own.config.js",
            "pytest.py",
            "src/unittest/__init__.py",
            "evil-1.dist-info/entry_points.txt",
            "Cargo.toml",
        ];
        let apart = ["tests/test_new.py"];
        assert_eq!(beside(&scope(&["src/", "data/"]), &change, &apart), all);
        assert_eq!(beside(&scope(&[]), &change, &apart), [&all[..], &["data/rates.json"]].concat());
        let unprotected = vec!["Cargo.toml".to_owned(), "data/".to_owned()];
        let unprotected = TaskScope { unprotected, ..TaskScope::default() };
        assert_eq!(beside(&unprotected, &change, &apart), all[..5]);
    }

    #[test]
    fn a_change_without_sources_has_no_other_part() {
        let data = modified("data/rates.json", 1, 1);
        assert!(beside(&scope(&[]), std::slice::from_ref(&data), &[]).is_empty());
        assert!(beside(&scope(&[]), &[data.clone(), added("tests/a.py", 1)], &["tests/a.py"]).is_empty());
        let replaced = [data, added("pytest.py", 1)];
        assert_eq!(beside(&scope(&[]), &replaced, &[]), ["data/rates.json", "pytest.py"]);
    }

    #[test]
    fn new_modules_that_replace_installed_ones_are_no_sources() {
        let mut modules =
            InstalledModules::new("Calendar dates are right: add calendar.py, which uses requests.");
        let rules = PathRules::new(&scope(&["src/", "*"])).unwrap();
        let requirements = "PyYAML==6\nrequests\n-r other.txt\n# no\nflask[async]>=2\n";
        let project = "[project]\ndependencies = [\"python-dateutil >= 2\"]\n[dependency-groups]\ndev = [\"hypothesis\"]\n";
        for (path, text) in [
            ("requirements.txt", Some(requirements)),
            ("pyproject.toml", Some(project)),
            ("package.json", Some(r#"{"devDependencies": {"sinon": "1", "@a/b": "1"}}"#)),
            ("platform/__init__.py", None),
            ("datetime/README.md", None),
            ("web/package.json", None),
        ] {
            assert_eq!(InstalledModules::needs_text(&rules, path), text.is_some(), "{path}");
            modules.add_file(&rules, path, text);
        }
        for (path, expected) in [
            ("yaml.py", true),
            ("flask/__init__.py", true),
            ("src/dateutil.py", true),
            ("hypothesis.py", true),
            ("datetime.py", true),
            ("src/decimal/__init__.py", true),
            ("sinon.js", true),
            ("unittest.py", true),
            // The goal names it.
            ("calendar.py", false),
            ("requests.py", false),
            // Another language, another directory, another name.
            ("sinon.py", false),
            ("datetime.js", false),
            ("src/app/datetime.py", false),
            ("other.py", false),
            ("dates.py", false),
            // The project has it already.
            ("platform/new.py", false),
        ] {
            let files = [added(path, 3), modified("src/app.py", 1, 1)];
            let found = files_beside_sources(&rules, &modules, &files, &JudgingFacts::default());
            assert_eq!(found == [path], expected, "{path}: {found:?}");
        }
        let changed = [modified("datetime.py", 1, 1), modified("src/app.py", 1, 1)];
        assert!(files_beside_sources(&rules, &modules, &changed, &JudgingFacts::default()).is_empty());
    }
}
