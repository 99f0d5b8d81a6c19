//! Which files are in a scope, and which are protected.

use super::*;

#[test]
fn files_that_judge_are_protected() {
    let scope = TaskScope {
        paths: vec!["src/**".to_owned(), "lib/".to_owned()],
        except: vec!["src/generated/**".to_owned()],
        protected: vec!["src/frozen.rs".to_owned()],
        unprotected: vec!["**/Cargo.lock".to_owned()],
        ..TaskScope::default()
    };
    let rules = PathRules::new(&scope).unwrap();
    for (path, in_scope, protected, test) in [
        ("src/main.rs", true, false, false),
        ("src/deep/down.rs", true, false, false),
        ("lib/a/b.py", true, false, false),
        ("src/generated/a.rs", false, false, false),
        ("docs/a.md", false, false, false),
        ("src/frozen.rs", true, true, false),
        ("src/parse_test.go", true, true, true),
        ("tests/it/main.rs", false, true, true),
        ("crates/a/tests/x.rs", false, true, true),
        ("web/a.test.ts", false, true, true),
        ("conftest.py", false, true, false),
        (".github/workflows/ci.yml", false, true, false),
        ("sub/.gitattributes", false, true, false),
        ("Cargo.lock", false, false, false),
        ("package-lock.json", false, true, false),
        ("src/contest.rs", true, false, false),
    ] {
        let found = (rules.is_in_scope(path), rules.is_protected(path), rules.is_test(path));
        assert_eq!(found, (in_scope, protected, test), "{path}");
    }
}

#[test]
fn patterns_are_relative_to_the_directory_of_the_task() {
    let scope = TaskScope {
        paths: vec!["src/".to_owned(), "*.md".to_owned()],
        unprotected: vec!["tests/data/".to_owned()],
        ..TaskScope::default()
    };
    let rules = PathRules::in_directory(&scope, "apps/a[1]").unwrap();
    for (path, in_scope, protected) in [
        ("apps/a[1]/src/main.rs", true, false),
        ("apps/a[1]/notes.md", true, false),
        ("src/main.rs", false, false),
        ("apps/a1/src/main.rs", false, false),
        ("apps/a[1]/tests/data/x.json", false, false),
        ("tests/data/x.json", false, true),
        ("apps/a[1]/tests/b.rs", false, true),
    ] {
        assert_eq!((rules.is_in_scope(path), rules.is_protected(path)), (in_scope, protected), "{path}");
    }
}

/// A tool that reads a protected file reads one of these instead, or besides.
#[test]
fn files_read_instead_of_protected_ones_are_protected() {
    let rules = PathRules::new(&TaskScope::default()).unwrap();
    for path in [
        "GNUmakefile",
        "makefile",
        "sub/GNUmakefile",
        "justfile",
        ".justfile",
        "Justfile",
        "Taskfile.yml",
        "taskfile.dist.yaml",
        "CMakeUserPresets.json",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.toml",
        "uv.toml",
        ".coveragerc",
        ".mypy.ini",
        ".ruff.toml",
        ".npmrc",
        ".yarnrc.yml",
        "jest.config.cjs",
        "jest.config.mjs",
        "vitest.config.mts",
        "vitest.workspace.ts",
        ".cargo/config",
        ".cargo/config.toml",
        ".config/nextest.toml",
        "rust-toolchain",
        "npm-shrinkwrap.json",
        "go.work",
        ".gitea/workflows/ci.yml",
    ] {
        assert!(rules.is_protected(path), "{path}");
        assert!(!rules.is_test(path), "{path}");
    }
    for path in ["src/makefile.rs", "src/taskfile.rs", "Taskfile.md", "docs/justfile.md", "src/ruff.py"] {
        assert!(!rules.is_protected(path), "{path}");
    }
}
