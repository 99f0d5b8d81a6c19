//! `docs/spec-map.md`: what of the client specification is what here, and which test shows it.
//!
//! A row reads `| specification | here | test |`. The names in backticks in the second column are items of our crates
//! (`pintle_llm::Type`, `pintle_llm::Type::member`), those in the third are tests as the conformance list names them,
//! with `*` for a module that a macro makes for each provider. Each exists, and no row is without either, unless it
//! says `none` and why.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Violation, test_names,
    tree::{File, Package, Tree},
};

const PAGE: &str = "docs/spec-map.md";

/// Where a row has nothing to name.
const NOTHING: &str = "none";

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
        let complaints = complaints(&row, &mut index);
        violations.extend(complaints.into_iter().map(|message| Violation::at_line(PAGE, number, message)));
    }
    if rows == 0 {
        violations.push(Violation::new(PAGE, "has no row (`| specification | here | test |`)"));
    }
    violations
}

/// The cells of a row; `None` for a line that is none, and for the head of a table.
fn row(line: &str) -> Option<Vec<&str>> {
    let cells = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
    let first = *cells.first()?;
    (first != "specification" && !first.starts_with("--")).then_some(cells)
}

fn complaints(row: &[&str], index: &mut Index<'_>) -> Vec<String> {
    let [_, here, test] = row else {
        return vec![format!("a row has 3 cells, this one has {}", row.len())];
    };
    let items: Vec<&str> = names(here).collect();
    let tests: Vec<&str> = names(test).collect();
    let mut complaints = Vec::new();
    for (cell, found, what) in [(here, &items, "item"), (test, &tests, "test")] {
        if found.is_empty() && !cell.starts_with(NOTHING) {
            complaints
                .push(format!("the row names no {what}; `{NOTHING}`, and why, says that there is none"));
        }
    }
    let unknown = items.into_iter().filter(|name| !index.has_item(name));
    complaints.extend(unknown.map(|name| format!("`{name}` is no item of ours")));
    let unknown = tests.into_iter().filter(|name| !index.has_test(name));
    complaints.extend(unknown.map(|name| format!("`{name}` is no test of ours")));
    complaints
}

/// The paths in backticks.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2).filter(|name| name.contains("::"))
}

/// What the packages hold, each read when it is first asked for.
struct Index<'a> {
    tree: &'a Tree,
    packages: BTreeMap<String, Held>,
}

/// The words of a package that a name can be made of.
#[derive(Default)]
struct Held {
    items: BTreeSet<String>,
    /// `Type::member`, for each type that the member's file mentions.
    members: BTreeSet<String>,
    tests: BTreeSet<String>,
}

impl<'a> Index<'a> {
    fn new(tree: &'a Tree) -> Self {
        Self { tree, packages: BTreeMap::new() }
    }

    fn has_item(&mut self, name: &str) -> bool {
        let Some((package, path)) = name.split_once("::") else { return false };
        let Some(held) = self.held(&package.replace('_', "-")) else { return false };
        match path.split("::").collect::<Vec<_>>().as_slice() {
            [item] => held.items.contains(*item),
            [item, member] => {
                held.items.contains(*item) && held.members.contains(&format!("{item}::{member}"))
            }
            _ => false,
        }
    }

    fn has_test(&mut self, name: &str) -> bool {
        let Some((package, path)) = name.split_once("::") else { return false };
        let function = path.rsplit("::").next().unwrap_or(path);
        self.held(package).is_some_and(|held| held.tests.contains(function))
    }

    fn held(&mut self, package: &str) -> Option<&Held> {
        if !self.packages.contains_key(package) {
            let found = self.tree.packages.iter().find(|found| found.name == package)?;
            self.packages.insert(package.to_owned(), Held::of(self.tree, found));
        }
        self.packages.get(package)
    }
}

impl Held {
    fn of(tree: &Tree, package: &Package) -> Self {
        let mut held = Self::default();
        for file in tree.files_under(&package.directory).filter(|file| file.path.ends_with(".rs")) {
            held.read(file);
        }
        held
    }

    fn read(&mut self, file: &File) {
        self.tests.extend(test_names::of(file));
        let lines = file.code_lines();
        let words: BTreeSet<&str> = lines.iter().flat_map(|(_, line)| words(line)).collect();
        let types: Vec<&str> =
            words.iter().copied().filter(|word| word.starts_with(char::is_uppercase)).collect();
        for (_, line) in &lines {
            let line = line.trim();
            self.items.extend(defined(line).map(str::to_owned));
            if let Some(member) = member(line) {
                self.members.extend(types.iter().map(|kind| format!("{kind}::{member}")));
            }
        }
    }
}

/// What a line defines.
fn defined(line: &str) -> Option<&str> {
    let mut before = "";
    words(line).find(|word| DEFINING.contains(&std::mem::replace(&mut before, word)))
}

/// The function, the field or the variant that a line begins.
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
        let tree = Tree::of(&[("docs/spec-map.md", &page), ("crates/a/src/lib.rs", SOURCE)])
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
    fn what_is_not_there_is_refused() {
        let cases = [
            ("| x | `a_b::Gone` | none |", "`a_b::Gone` is no item of ours"),
            ("| x | `a_b::Word::gone` | none |", "`a_b::Word::gone` is no item of ours"),
            ("| x | `a_b::Word::first::x` | none |", "`a_b::Word::first::x` is no item of ours"),
            ("| x | `c::Word` | none |", "`c::Word` is no item of ours"),
            ("| x | none | `a-b::tests::gone` |", "`a-b::tests::gone` is no test of ours"),
            ("| x | none | `a-b::tests::helper` |", "`a-b::tests::helper` is no test of ours"),
            ("| x | none | `c::tests::holds` |", "`c::tests::holds` is no test of ours"),
            ("| x | | none |", "the row names no item; `none`, and why, says that there is none"),
            ("| x | none | yes |", "the row names no test; `none`, and why, says that there is none"),
            ("| x | none |", "a row has 3 cells, this one has 2"),
            ("", "has no row (`| specification | here | test |`)"),
        ];
        for (rows, message) in cases {
            assert_eq!(messages(rows), [message], "{rows}");
        }
    }
}
