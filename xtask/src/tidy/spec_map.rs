//! `docs/project/spec-map.md`, the map from names of the client specification to our items and tests.
//!
//! A row reads `| specification | here | test |`. The names in backticks in the second column are items of our crates
//! (`pintle_llm::Type`, `pintle_llm::Type::member`). Those in the third are tests as named in the conformance data,
//! with `*` for a module that a macro generates per provider. Each must exist. A cell without a name must say `none`
//! and the reason.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Violation, test_names,
    tree::{File, Package, Tree},
};

const PAGE: &str = "docs/project/spec-map.md";

/// Start of a cell without a name.
const NONE: &str = "none";

const DEFINING: [&str; 7] = ["struct", "enum", "trait", "type", "fn", "const", "static"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let Some(page) = tree.file(PAGE) else {
        return vec![Violation::new(PAGE, "is missing")];
    };
    let mut index = Index::new(tree);
    let mut violations = Vec::new();
    let mut rows = 0;
    for (number, row) in page.lines().filter_map(|(number, line)| Some((number, row(line)?))) {
        rows += 1;
        let problems = problems(&row, &mut index);
        violations.extend(problems.into_iter().map(|message| Violation::at_line(PAGE, number, message)));
    }
    if rows == 0 {
        violations.push(Violation::new(PAGE, "has no row (`| specification | here | test |`)"));
    }
    violations
}

/// Returns the cells of a row; `None` for other lines and for the header of a table.
fn row(line: &str) -> Option<Vec<&str>> {
    let cells = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
    let first = *cells.first()?;
    (first != "specification" && !first.starts_with("--")).then_some(cells)
}

fn problems(row: &[&str], index: &mut Index<'_>) -> Vec<String> {
    let [_, here, test] = row else {
        return vec![format!("a row has 3 cells, this one has {}", row.len())];
    };
    let items: Vec<&str> = names(here).collect();
    let tests: Vec<&str> = names(test).collect();
    let mut problems = Vec::new();
    for (cell, found, what) in [(here, &items, "item"), (test, &tests, "test")] {
        if found.is_empty() && !cell.starts_with(NONE) {
            problems
                .push(format!("the row names no {what}; if there is none, write `{NONE}` and the reason"));
        }
    }
    let unknown = items.into_iter().filter(|name| !index.has_item(name));
    problems.extend(unknown.map(|name| format!("there is no item `{name}`")));
    let unknown = tests.into_iter().filter(|name| !index.has_test(name));
    problems.extend(unknown.map(|name| format!("there is no test `{name}`")));
    problems
}

/// Returns the paths in backticks.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2).filter(|name| name.contains("::"))
}

/// Names defined in the packages, each read on first use.
struct Index<'a> {
    tree: &'a Tree,
    packages: BTreeMap<String, PackageNames>,
}

/// Names defined in a package.
#[derive(Default)]
struct PackageNames {
    items: BTreeSet<String>,
    /// For each file, the types that it mentions and the members that it defines.
    members: Vec<(BTreeSet<String>, BTreeSet<String>)>,
    tests: BTreeSet<String>,
}

impl<'a> Index<'a> {
    fn new(tree: &'a Tree) -> Self {
        Self { tree, packages: BTreeMap::new() }
    }

    fn has_item(&mut self, name: &str) -> bool {
        let Some((package, path)) = name.split_once("::") else { return false };
        let Some(package_names) = self.package_names(&package.replace('_', "-")) else { return false };
        // Modules are for readers: an item is found by its name, wherever its crate defines it.
        let is_module =
            |part: &&str| part.starts_with(char::is_lowercase) && path.contains(&format!("{part}::"));
        match path.split("::").skip_while(is_module).collect::<Vec<_>>().as_slice() {
            [item] => package_names.items.contains(*item),
            [item, member] => {
                let defines = |(types, members): &(BTreeSet<String>, BTreeSet<String>)| {
                    types.contains(*item) && members.contains(*member)
                };
                package_names.items.contains(*item) && package_names.members.iter().any(defines)
            }
            _ => false,
        }
    }

    fn has_test(&mut self, name: &str) -> bool {
        let Some((package, path)) = name.split_once("::") else { return false };
        let function = path.rsplit("::").next().unwrap_or(path);
        self.package_names(package).is_some_and(|package_names| package_names.tests.contains(function))
    }

    fn package_names(&mut self, package: &str) -> Option<&PackageNames> {
        if !self.packages.contains_key(package) {
            let found = self.tree.packages.iter().find(|found| found.name == package)?;
            self.packages.insert(package.to_owned(), PackageNames::of(self.tree, found));
        }
        self.packages.get(package)
    }
}

impl PackageNames {
    fn of(tree: &Tree, package: &Package) -> Self {
        let mut package_names = Self::default();
        for file in tree.files_under(&package.directory).filter(|file| file.path.ends_with(".rs")) {
            package_names.read(file);
        }
        package_names
    }

    fn read(&mut self, file: &File) {
        self.tests.extend(test_names::of(file));
        let (mut types, mut members) = (BTreeSet::new(), BTreeSet::new());
        for (_, line) in file.code_lines() {
            types.extend(words(line).filter(|word| word.starts_with(char::is_uppercase)).map(str::to_owned));
            let line = line.trim();
            self.items.extend(defined(line).map(str::to_owned));
            members.extend(member(line).map(str::to_owned));
        }
        self.members.push((types, members));
    }
}

/// Returns the item that a line defines.
fn defined(line: &str) -> Option<&str> {
    let mut before = "";
    words(line).find(|word| DEFINING.contains(&std::mem::replace(&mut before, word)))
}

/// Returns the function, field or variant that starts on a line.
fn member(line: &str) -> Option<&str> {
    if words(line).any(|word| word == "fn") {
        return defined(line);
    }
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let name = words(line).next().filter(|name| line.starts_with(name))?;
    let rest = line.get(name.len()..)?.trim_start();
    let is_field = rest.starts_with(':') && !rest.starts_with("::");
    let is_variant = name.starts_with(char::is_uppercase)
        && (rest.is_empty() || [',', '(', '{', '='].iter().any(|mark| rest.starts_with(*mark)));
    (is_field || is_variant).then_some(name)
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|character: char| character != '_' && !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tree::Tree;

    const SOURCE: &str = "
        /// A word.
        pub struct Word {
            /// Its letters.
            pub letters: String,
        }
        pub enum Kind {
            /// A noun.
            Noun,
            Verb(u8),
        }
        impl Word {
            pub fn first(&self) -> char { helper() }
        }
        #[cfg(test)]
        mod tests {
            #[test]
            fn holds() {}

            #[tokio::test]
            async fn waits() {
                let x = 1;
            }

            fn helper() {}
            per_provider!(each, other);
        }
    ";

    fn messages(rows: &str) -> Vec<String> {
        let page = format!("| specification | here | test |\n|---|---|---|\n{rows}\n");
        let tree = Tree::of(&[("docs/project/spec-map.md", &page), ("crates/a/src/lib.rs", SOURCE)])
            .with_library("a-b", "crates/a");
        check(&tree).into_iter().map(|violation| violation.message).collect()
    }

    #[test]
    fn a_row_names_items_and_tests() {
        let rows = "| word | `a_b::Word`, with `letters` | `a-b::tests::holds`, `a-b::tests::waits` |\n\
                    | letters | `a_b::Word::letters` | `a-b::x::*::each` |\n\
                    | kinds | `a_b::Kind::Noun`, `a_b::Kind::Verb` | `a-b::x::*::other` |\n\
                    | first | `a_b::Word::first` | none: it is a function of one line |\n\
                    | nothing | none: not in Rust | none: see there |";
        assert_eq!(messages(rows), [""; 0]);
    }

    #[test]
    fn names_that_do_not_exist_are_refused() {
        let cases = [
            ("| x | `a_b::Gone` | none |", "there is no item `a_b::Gone`"),
            ("| x | `a_b::Word::gone` | none |", "there is no item `a_b::Word::gone`"),
            ("| x | `a_b::Word::first::x` | none |", "there is no item `a_b::Word::first::x`"),
            ("| x | `c::Word` | none |", "there is no item `c::Word`"),
            ("| x | none | `a-b::tests::gone` |", "there is no test `a-b::tests::gone`"),
            ("| x | none | `a-b::tests::helper` |", "there is no test `a-b::tests::helper`"),
            ("| x | none | `c::tests::holds` |", "there is no test `c::tests::holds`"),
            ("| x | | none |", "the row names no item; if there is none, write `none` and the reason"),
            ("| x | none | yes |", "the row names no test; if there is none, write `none` and the reason"),
            ("| x | none |", "a row has 3 cells, this one has 2"),
            ("", "has no row (`| specification | here | test |`)"),
        ];
        for (rows, message) in cases {
            assert_eq!(messages(rows), [message], "{rows}");
        }
    }
}
