//! Rules about Rust files.

use super::{
    Violation, product,
    tree::{File, Tree},
};

const PRINTS: &[&str] = &["print!", "println!", "eprint!", "eprintln!", "dbg!"];
const UNFINISHED: &[&str] = &["todo!", "unimplemented!", "#[ignore"];
const FORBID_UNSAFE: &str = "#![forbid(unsafe_code)]";
const INCLUDE_README: &str = "#![doc = include_str!(\"../README.md\")]";

pub(super) fn check_module_files(tree: &Tree) -> Vec<Violation> {
    tree.rust_files()
        .filter(|file| file.path.ends_with("/mod.rs"))
        .map(|file| Violation::new(&file.path, "a module file must have the name of the module"))
        .collect()
}

/// Reports printing in libraries. Test modules may print.
pub(super) fn check_prints(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for library in tree.libraries() {
        for file in product::files(tree, library) {
            violations.extend(uses(file, product::code_lines(file), PRINTS, "a library must not print"));
        }
    }
    violations
}

pub(super) fn check_unfinished(tree: &Tree) -> Vec<Violation> {
    tree.rust_files()
        .flat_map(|file| uses(file, file.code_lines(), UNFINISHED, "unfinished code must not be merged"))
        .collect()
}

pub(super) fn check_crate_roots(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for library in tree.libraries() {
        let path = format!("{}/src/lib.rs", library.directory);
        let text = tree.file(&path).map_or("", |file| file.text.as_str());
        for line in [FORBID_UNSAFE, INCLUDE_README] {
            if !text.lines().any(|found| found.trim() == line) {
                violations.push(Violation::new(&path, format!("lacks `{line}`")));
            }
        }
    }
    violations
}

fn uses<'a>(
    file: &File,
    lines: impl Iterator<Item = (usize, &'a str)>,
    words: &[&str],
    why: &str,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, line) in lines {
        for word in words.iter().filter(|word| has_word(line, word)) {
            violations.push(Violation::at_line(&file.path, number, format!("`{word}`: {why}")));
        }
    }
    violations
}

/// Returns whether `line` contains `word`, not as the end of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(index, _)| {
        let before = line.get(..index).and_then(|before| before.chars().next_back());
        !before.is_some_and(|character| character == '_' || character.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::{check_crate_roots, check_module_files, check_prints, check_unfinished};
    use crate::tidy::{Violation, tree::Tree};

    fn shown(violations: Vec<Violation>) -> Vec<String> {
        violations.into_iter().map(|violation| violation.to_string()).collect()
    }

    #[test]
    fn a_module_file_has_the_modules_name() {
        let tree = Tree::of(&[("crates/a/src/b/mod.rs", ""), ("crates/a/src/model.rs", "")]);
        assert_eq!(check_module_files(&tree).len(), 1);
    }

    #[test]
    fn only_library_code_must_not_print() {
        let text = "fn f() { println!(\"x\"); }\n// dbg!(1)\nfn g() { my_print!(); \"print!\"; }\nmod tests {\n    fn t() { eprintln!(); }\n}\n";
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", text),
            ("crates/a/src/b/tests.rs", text),
            ("crates/command/src/main.rs", text),
        ])
        .with_library("a", "crates/a");
        assert_eq!(
            shown(check_prints(&tree)),
            ["crates/a/src/lib.rs:1: `println!`: a library must not print"]
        );
    }

    #[test]
    fn placeholders_and_ignored_tests_are_found_in_code_only() {
        let text = "// todo!\n#[ignore = \"later\"]\nfn f() { unimplemented!() }\nconst T: &str = \"todo!()\";\nfn g() { todo!() }\n";
        let lines: Vec<String> = check_unfinished(&Tree::of(&[("a.rs", text)]))
            .into_iter()
            .map(|violation| violation.location)
            .collect();
        assert_eq!(lines, ["a.rs:2", "a.rs:3", "a.rs:5"]);
    }

    #[test]
    fn a_crate_root_forbids_unsafe_code_and_includes_the_readme() {
        let root = "#![doc = include_str!(\"../README.md\")]\n#![forbid(unsafe_code)]\n";
        let tree = |text: &str| Tree::of(&[("crates/a/src/lib.rs", text)]).with_library("a", "crates/a");
        assert_eq!(shown(check_crate_roots(&tree(root))), [""; 0]);
        assert_eq!(check_crate_roots(&tree("//! Words.\n")).len(), 2);
    }
}
