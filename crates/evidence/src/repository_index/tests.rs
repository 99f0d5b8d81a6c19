//! The index of small trees in each language, and of large ones.

use proptest::prelude::*;

use super::*;

/// Returns the index of files with these texts.
fn index(files: &[(&str, &str)]) -> RepositoryIndex {
    let tree = files.iter().map(|(path, text)| file(path, text.len() as u64)).collect();
    let plan = IndexPlan::new(tree).unwrap();
    let needed: BTreeSet<String> = plan.needed().map(|file| file.path.clone()).collect();
    let texts = files.iter().filter(|(path, _)| needed.contains(*path));
    let texts = texts.map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    plan.build(&texts)
}

fn file(path: &str, bytes: u64) -> TreeFile {
    TreeFile { path: path.to_owned(), bytes, blob: "00".to_owned() }
}

#[test]
fn a_tree_is_described() {
    let index = index(&[
        ("Cargo.toml", "[package]\nname = \"sums\"\n"),
        (
            "src/lib.rs",
            "//! Sums.\n\n/// Adds.\npub fn add(a: i32) -> i32 {\n    a\n}\n\npub(crate) struct Sum;\n",
        ),
        ("tests/add.rs", "#[test]\nfn adds() {}\n"),
        ("web/package.json", "{\"scripts\": {\"test\": \"node --test\"}}"),
        ("web/index.js", "export async function main() {}\n"),
        ("README.md", "# Sums\n"),
    ]);
    insta::assert_snapshot!(index.render(4_000), @"
    Repository: 6 files, 1 KiB, 1 file of tests.
    Test commands:
    - `cargo test` (cargo)
    - `cd web && npm test` (tap)
    Manifests:
    - `Cargo.toml`
    - `web/package.json`
    Languages:
    - Rust: 2 files, 1 KiB
    - JavaScript: 1 file, 1 KiB
    Directories:
    - src: 1 file, 1 KiB
    - tests: 1 file, 1 KiB
    - web: 2 files, 1 KiB
    Symbols, with their lines:
    - `src/lib.rs`: 4 fn add, 8 struct Sum
    - `web/index.js`: 1 function main
    ");
    let json = serde_json::to_string(&index).unwrap();
    assert_eq!(serde_json::from_str::<RepositoryIndex>(&json).unwrap(), index);
}

#[test]
fn symbols_are_found_in_each_language() {
    for (path, text, expected) in [
        (
            "a.rs",
            "pub(crate) async fn f<T>(a: T) {\n    const fn g() {}\n        fn deep() {}\nconst X: u8 = 1;",
            "1 fn f, 2 fn g",
        ),
        (
            "a.py",
            "class A(B):\n    async def f(self):\n        pass\n\ndef g():\n    x = f(1)",
            "1 class A, 2 def f, 5 def g",
        ),
        (
            "a.go",
            "type T struct {\nfunc (t *T) Add(a int) int {\nfunc main() {",
            "1 type T, 2 func Add, 3 func main",
        ),
        (
            "a.ts",
            "export default class A {\ninterface B {}\nexport type C = string;",
            "1 class A, 2 interface B, 3 type C",
        ),
        ("a.js", "function* gen() {}\nexport default function () {}", "1 function* gen"),
        (
            "a.c",
            "static int add(int a)\n{\n  if (a) return b(a);\n}\nint f(void);\n#define M(x) x\nenum e { A };",
            "1 function add, 7 enum e",
        ),
        (
            "a.cpp",
            "namespace n {\nclass A {};\nint A::f(int b) {\n",
            "1 namespace n, 2 class A, 3 function A::f",
        ),
        (
            "A.java",
            "public class A {\n    public int add(int a) {\n    int b = f(1);\n",
            "1 class A, 2 function add",
        ),
        ("a.cs", "internal sealed class A\n    public async Task<int> F(int a)\n", "1 class A, 2 function F"),
        ("a.kt", "data class A(val b: Int)\nsuspend fun f() {}", "1 class A, 2 fun f"),
        ("a.rb", "module A\n  def self.f?(a)\n", "1 module A, 2 def self.f?"),
        ("a.php", "final class A {\n    public static function f() {", "1 class A, 2 function f"),
        ("a.ex", "defmodule A.B do\n  def f(a), do: a\n", "1 defmodule A.B, 2 def f"),
        ("a.swift", "public struct A {\n    static func f() {}", "1 struct A, 2 func f"),
        ("a.scala", "case class A(b: Int)\n  def f = 1", "1 class A, 2 def f"),
        ("a.sh", "add() {\nfunction f {\necho \"$(g)\"\n", "1 function add, 2 function f"),
        ("a.lua", "local function f()\nfunction M.g()", "1 function f, 2 function M.g"),
        ("a.clj", "(defn add-all [a]\n", "1 defn add-all"),
        ("a.hs", "data A = B\n", "1 data A"),
        ("a.sql", "CREATE TABLE sums (a int);\n", "1 TABLE sums"),
        ("a.zig", "pub fn add(a: i32) i32 {\n", "1 fn add"),
        ("a.css", "a { b: c; }\n", ""),
    ] {
        let outline = FileOutline::find(path, text).map(|outline| outline.symbols).unwrap_or_default();
        let found: Vec<String> = outline.iter().map(|(line, symbol)| format!("{line} {symbol}")).collect();
        assert_eq!(found.join(", "), expected, "{path}");
    }
}

#[test]
fn test_commands_follow_from_manifests() {
    let package = "{\"scripts\": {\"test\": \"vitest run\"}}";
    for (files, expected) in [
        (&[("Cargo.toml", ""), ("crates/a/Cargo.toml", "")][..], "cargo test: Cargo"),
        (&[("go.mod", "module a")][..], "go test ./...: Go"),
        (&[("package.json", package)][..], "npm test: Vitest"),
        (&[("package.json", "{}"), ("deno.json", "{}")][..], "deno test: none"),
        (&[("pyproject.toml", "[tool.pytest.ini_options]")][..], "python3 -m pytest: Pytest"),
        (
            &[("setup.py", ""), ("requirements.txt", ""), ("tests/a.py", "")][..],
            "python3 -m unittest: Unittest",
        ),
        (&[("setup.py", "")][..], ""),
        (&[("Makefile", "all:\n\ncheck: all\n")][..], "make check: none"),
        (&[("pom.xml", "")][..], "mvn test: Junit"),
        (&[("build.gradle", ""), ("gradlew", "")][..], "./gradlew test: Junit"),
        (&[("Gemfile", ""), ("spec/a_spec.rb", "")][..], "bundle exec rspec: Rspec"),
        (&[("mix.exs", "")][..], "mix test: Mix"),
        (&[("a/go.mod", ""), ("b/go.mod", "")][..], "cd a && go test ./...: Go, cd b && go test ./...: Go"),
        (&[("a b; x/go.mod", "")][..], ""),
    ] {
        let found = index(files).commands.into_iter().map(|TestCommand { command, format }| {
            format!("{command}: {}", format.map_or("none".to_owned(), |format| format!("{format:?}")))
        });
        assert_eq!(found.collect::<Vec<_>>().join(", "), expected, "{files:?}");
    }
}

#[test]
fn a_huge_tree_has_a_clear_cut() {
    let files =
        (0..MAX_FILES + 7).map(|number| file(&format!("d{}/s/f{number}.rs", number % 300), 10)).collect();
    let plan = IndexPlan::new(files).unwrap();
    assert_eq!(plan.needed().count(), MAX_OUTLINED);
    let index = plan.build(&BTreeMap::new());
    let text = index.render(2_000);
    let expected = "(The index has the 200000 files nearest to the root, and leaves out 7.)\n\
                    (Tests, manifests and symbols are from the 10000 files nearest to the root.)\n";
    assert!(text.contains(expected), "{text}");
    assert!(text.ends_with(" more lines are left out.)\n"), "{text}");
    assert_eq!((index.directories.len(), index.sum.bytes), (MAX_DIRECTORIES, 2_000_000));
}

#[test]
fn large_files_are_not_read() {
    let plan = IndexPlan::new(vec![file("a.rs", MAX_FILE_BYTES + 1), file("b.rs", 5)]).unwrap();
    assert_eq!(plan.needed().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["b.rs"]);
    assert!(plan.build(&BTreeMap::new()).render(1_000).contains("(1 sources are not listed here.)"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(pintle_test_conditions::cases(32, 64)))]

    /// The text fits its limit, has whole lines, and does not depend on the order of the files.
    #[test]
    fn the_text_is_bounded_and_deterministic(
        files in prop::collection::btree_map("[a-d]{1,2}(/[a-d`\n]{1,3}){0,3}\\.(rs|py|js|md)", "(fn [a-zé]{1,90}|def x)\n{0,2}", 0..30),
        limit in 0_usize..3_000,
        turn in 0_usize..30,
    ) {
        let mut listed: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let text = index(&listed).render(limit);
        prop_assert!(text.len() <= limit);
        prop_assert!(text.is_empty() || text.ends_with('\n'));
        let middle = turn.min(listed.len());
        listed.rotate_left(middle);
        prop_assert_eq!(index(&listed).render(limit), text);
    }
}
