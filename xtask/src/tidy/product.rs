//! Product code: the sources of a package without its tests, examples and benchmarks.

use std::ops::RangeInclusive;

use super::{
    rust_code::{self, Kind, Part},
    tree::{File, Package, Tree},
};

/// Returns the product files of a package.
pub(super) fn files<'a>(tree: &'a Tree, package: &Package) -> impl Iterator<Item = &'a File> {
    let sources = format!("{}/src/", package.directory);
    tree.rust_files().filter(move |file| file.path.starts_with(&sources) && !is_test(&file.path))
}

/// Returns the parts of a file outside its inline test modules.
pub(super) fn parts(file: &File) -> impl Iterator<Item = Part<'_>> {
    let modules = test_modules(file);
    rust_code::parts(&file.text).filter(move |part| !contain(&modules, part.line))
}

/// Returns the lines of a file outside its inline test modules, with comments and literals replaced by spaces.
pub(super) fn code_lines(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let modules = test_modules(file);
    file.code_lines().filter(move |(number, _)| !contain(&modules, *number))
}

/// Counts the lines with code or a part of a literal, without tests, comments and blank lines.
pub(super) fn count_code_lines(file: &File) -> usize {
    let (mut count, mut last) = (0, 0);
    for part in parts(file).filter(|part| part.kind != Kind::Comment) {
        for (offset, line) in part.text.lines().enumerate() {
            let number = part.line + offset;
            if number > last && !line.trim().is_empty() {
                count += 1;
                last = number;
            }
        }
    }
    count
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

fn contain(modules: &[RangeInclusive<usize>], line: usize) -> bool {
    modules.iter().any(|lines| lines.contains(&line))
}

/// Returns the lines of each inline `mod tests`, with the attributes before it.
fn test_modules(file: &File) -> Vec<RangeInclusive<usize>> {
    let mut modules = Vec::new();
    let (mut first, mut attribute) = (None, None);
    let mut depth = 0_usize;
    for (number, line) in file.code_lines() {
        let code = line.trim();
        if first.is_none() && code.starts_with("mod tests {") {
            first = Some(attribute.unwrap_or(number));
        }
        if code.starts_with("#[") {
            attribute = attribute.or(Some(number));
        } else if !code.is_empty() {
            attribute = None;
        }
        if let Some(start) = first {
            depth = (depth + line.matches('{').count()).saturating_sub(line.matches('}').count());
            if depth == 0 {
                modules.push(start..=number);
                first = None;
            }
        }
    }
    modules
}

#[cfg(test)]
mod tests {
    use super::{code_lines, count_code_lines, files, parts};
    use crate::tidy::tree::Tree;

    const TEXT: &str = r###"//! About.

/* a block /* with another */
*/
fn a() { /* inline */
    let url = "http://example.org"; // trailing
    let text = "two
lines // of a string

and a blank one between";
    let raw = r#"/* no comment "#;
}
// Only prose.
#[cfg(test)]
#[expect(unused, reason = "text")]
mod tests {
    #[test]
    fn t() { let brace = '}'; let text = "}"; }
}

mod tests_of_others {}
"###;

    #[test]
    fn code_lines_have_no_tests_comments_and_blank_lines() {
        let tree = Tree::of(&[("crates/a/src/lib.rs", TEXT)]);
        let file = tree.file("crates/a/src/lib.rs").unwrap();
        // Lines 5 to 8, 10 to 12 and the last one.
        assert_eq!(count_code_lines(file), 8);
        let in_tests = |line: &str| line.contains("#[") || line.contains("fn t()");
        assert!(!code_lines(file).any(|(_, line)| in_tests(line)));
        assert!(!parts(file).any(|part| (14..=19).contains(&part.line)));
        assert!(
            code_lines(file).any(|(number, line)| number == 21 && line.starts_with("mod tests_of_others"))
        );
    }

    #[test]
    fn tests_examples_and_benchmarks_are_no_product() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", ""),
            ("crates/a/src/b/c.rs", ""),
            ("crates/a/src/tests.rs", ""),
            ("crates/a/src/b/tests.rs", ""),
            ("crates/a/src/b/tests/d.rs", ""),
            ("crates/a/src/prompt.md", ""),
            ("crates/a/tests/e.rs", ""),
            ("crates/a/examples/f.rs", ""),
            ("crates/a/benches/g.rs", ""),
            ("crates/a/build.rs", ""),
            ("crates/ab/src/lib.rs", ""),
        ])
        .with_library("a", "crates/a");
        let package = tree.packages.first().unwrap();
        let paths: Vec<&str> = files(&tree, package).map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["crates/a/src/lib.rs", "crates/a/src/b/c.rs"]);
    }
}
