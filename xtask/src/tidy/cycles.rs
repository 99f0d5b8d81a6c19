//! Cycles between the top-level modules of a crate.
//!
//! A module depends on another one if its sources, without tests, contain a path to it: `use crate::other::Item`,
//! `super::other::item()`, or `crate::Item` where the root re-exports the item. Modules that depend on each other can
//! only be understood together, so a cycle must be in the table of those allowed, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Violation,
    module_paths::{self, ModulePaths},
    tree::{Package, Tree},
};

/// Modules of one package that may depend on each other.
struct Allowed {
    package: &'static str,
    modules: &'static [&'static str],
    reason: &'static str,
}

const ALLOWED: &[Allowed] = &[
    Allowed {
        package: "pintle-agent",
        modules: &["driver", "session", "subagent"],
        reason: "a session starts its driver, which drives subagents, which are sessions",
    },
    Allowed {
        package: "xtask",
        modules: &["ci", "tidy"],
        reason: "`ci` runs `tidy`, which checks that the steps of `ci` named by invariants exist",
    },
];

/// The first path found from one module to another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Witness {
    file: String,
    line: usize,
    path: String,
}

/// Dependencies between the top-level modules of a crate.
type Graph = BTreeMap<(String, String), Witness>;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    check_with(tree, ALLOWED)
}

fn check_with(tree: &Tree, allowed: &[Allowed]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in &tree.packages {
        let graph = graph(tree, package);
        let entries: Vec<&Allowed> = allowed.iter().filter(|entry| entry.package == package.name).collect();
        let mut in_cycles = BTreeSet::new();
        for cycle in cycles(&graph) {
            let is_allowed =
                |entry: &&Allowed| cycle.iter().all(|module| entry.modules.contains(&module.as_str()));
            if !entries.iter().any(is_allowed) {
                violations.push(Violation::new(&package.directory, describe(&cycle, &graph)));
            }
            in_cycles.extend(cycle);
        }
        violations.extend(entries.iter().flat_map(|entry| unneeded(entry, &in_cycles)));
    }
    let is_member = |entry: &&Allowed| tree.packages.iter().any(|package| package.name == entry.package);
    for entry in allowed.iter().filter(|entry| !is_member(entry)) {
        violations.push(Violation::new(
            entry.package,
            "is in the table of module cycles, but not in the workspace",
        ));
    }
    violations
}

/// Reports the modules of an entry that are in no cycle any more.
fn unneeded(entry: &Allowed, in_cycles: &BTreeSet<String>) -> Vec<Violation> {
    let free = entry.modules.iter().filter(|module| !in_cycles.contains(**module));
    free.map(|module| {
        let message = format!(
            "`{module}` is in no cycle; remove it from the table of module cycles, where the reason is: {}",
            entry.reason
        );
        Violation::new(entry.package, message)
    })
    .collect()
}

fn describe(cycle: &BTreeSet<String>, graph: &Graph) -> String {
    let modules: Vec<&str> = cycle.iter().map(String::as_str).collect();
    let mut message = format!("modules depend on each other: {}", modules.join(", "));
    for ((from, to), Witness { file, line, path }) in graph {
        if cycle.contains(from) && cycle.contains(to) {
            message.push_str(&format!("\n        {from} -> {to}: {file}:{line}: {path}"));
        }
    }
    message
}

/// Returns the strongly connected components of more than one module.
fn cycles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let modules: BTreeSet<&str> = graph.keys().flat_map(|(from, to)| [from.as_str(), to.as_str()]).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        modules.iter().map(|module| (*module, reachable(module, graph))).collect();
    let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|found| found.contains(to));
    let mut cycles: Vec<BTreeSet<String>> = Vec::new();
    for module in &modules {
        if reaches(module, module) && !cycles.iter().any(|cycle| cycle.contains(*module)) {
            let others = modules.iter().filter(|other| reaches(module, other) && reaches(other, module));
            cycles.push(others.map(|other| (*other).to_owned()).collect());
        }
    }
    cycles
}

/// Returns the modules that `start` depends on, directly or indirectly.
fn reachable<'g>(start: &str, graph: &'g Graph) -> BTreeSet<&'g str> {
    let targets = |module: &str| -> Vec<&'g str> {
        graph.keys().filter(|(from, _)| from == module).map(|(_, to)| to.as_str()).collect()
    };
    let mut found = BTreeSet::new();
    let mut open = targets(start);
    while let Some(module) = open.pop() {
        if found.insert(module) {
            open.extend(targets(module));
        }
    }
    found
}

/// Returns the dependencies between the top-level modules of `package`.
fn graph(tree: &Tree, package: &Package) -> Graph {
    let sources = format!("{}/src", package.directory);
    let files: Vec<(&str, Vec<String>, ModulePaths)> = tree
        .files_under(&sources)
        .filter_map(|file| {
            let module = module_of(file.path.strip_prefix(&sources)?)?;
            let paths = module_paths::find(&file.text, &module);
            Some((file.path.as_str(), module, paths))
        })
        .collect();
    let modules: BTreeSet<&str> =
        files.iter().filter_map(|(_, module, _)| Some(module.first()?.as_str())).collect();
    let imports: BTreeMap<&str, &str> = files
        .iter()
        .flat_map(|(.., paths)| &paths.root_imports)
        .filter_map(|(name, path)| Some((name.as_str(), path.first()?.as_str())))
        .collect();
    let is_test = |module: &[String]| {
        files.iter().flat_map(|(.., paths)| &paths.test_modules).any(|test| module.starts_with(test))
    };
    let mut graph = Graph::new();
    for (file, _, paths) in files.iter().filter(|(_, module, _)| !is_test(module)) {
        for reference in &paths.references {
            let (Some(from), Some(to)) = (reference.from.first(), reference.path.first()) else { continue };
            let to = if modules.contains(to.as_str()) {
                to.as_str()
            } else {
                imports.get(to.as_str()).copied().unwrap_or_default()
            };
            if from.as_str() != to && modules.contains(to) {
                let path = format!("crate::{}", reference.path.join("::"));
                let witness = Witness { file: (*file).to_owned(), line: reference.line, path };
                graph.entry((from.clone(), to.to_owned())).or_insert(witness);
            }
        }
    }
    graph
}

/// Returns the module in the file at `path`, which starts below `src`. `None` for a program in `src/bin`.
fn module_of(path: &str) -> Option<Vec<String>> {
    let names = path.strip_prefix('/')?.strip_suffix(".rs")?;
    match names {
        "lib" | "main" => Some(Vec::new()),
        _ if names.starts_with("bin/") => None,
        _ => Some(names.split('/').map(str::to_owned).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Allowed, check_with};
    use crate::tidy::tree::Tree;

    fn messages(files: &[(&str, &str)], allowed: &[Allowed]) -> Vec<String> {
        let tree = Tree::of(files).with_library("a", "crates/a");
        check_with(&tree, allowed).into_iter().map(|violation| violation.to_string()).collect()
    }

    const CYCLE: &[(&str, &str)] = &[
        ("crates/a/src/lib.rs", "mod one;\nmod two;\nmod three;\npub use three::deep::Item;\n"),
        ("crates/a/src/one.rs", "\nuse crate::two::Two;\nuse crate::two::Other;\n"),
        ("crates/a/src/two.rs", "fn f() { crate::Item::new() }\n"),
        ("crates/a/src/three.rs", "pub mod deep;\nuse crate::two::Two;\n"),
        ("crates/a/src/three/deep.rs", "use super::super::one::f;\nuse super::Three;\n"),
    ];

    #[test]
    fn a_cycle_is_reported_with_a_witness_for_each_edge() {
        let expected = "crates/a: modules depend on each other: one, three, two
        one -> two: crates/a/src/one.rs:2: crate::two::Two
        three -> one: crates/a/src/three/deep.rs:1: crate::one::f
        three -> two: crates/a/src/three.rs:2: crate::two::Two
        two -> three: crates/a/src/two.rs:1: crate::Item::new";
        assert_eq!(messages(CYCLE, &[]), [expected]);
    }

    #[test]
    fn separate_cycles_are_reported_separately() {
        let files = [
            ("crates/a/src/lib.rs", ""),
            ("crates/a/src/one.rs", "use crate::two::A;\nuse crate::three::A;"),
            ("crates/a/src/two.rs", "use crate::one::A;"),
            ("crates/a/src/three.rs", "use crate::four::A;"),
            ("crates/a/src/four.rs", "use crate::three::A;"),
        ];
        let found = messages(&files, &[]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("other: four, three\n") && found[1].contains("other: one, two\n"),
            "{found:?}"
        );
    }

    #[test]
    fn tests_programs_and_inner_modules_make_no_cycle() {
        let files = [
            ("crates/a/src/lib.rs", "mod one;\nmod two;\n#[cfg(test)]\nmod checks;\nuse crate::two::B;\n"),
            (
                "crates/a/src/one.rs",
                "mod inner;\n#[cfg(test)]\nmod tests;\nuse crate::two::B;\nuse crate::one::inner::C;\n",
            ),
            ("crates/a/src/one/inner.rs", "use super::D;\nuse crate::one::D;\n"),
            ("crates/a/src/one/tests.rs", "use super::D;\n"),
            (
                "crates/a/src/two.rs",
                "#[cfg(test)]\nmod tests { use crate::one::D; }\n#[cfg(test)]\nmod more;\n",
            ),
            ("crates/a/src/two/more.rs", "use crate::one::D;\n"),
            ("crates/a/src/two/more/below.rs", "use crate::one::D;\n"),
            ("crates/a/src/checks.rs", "use crate::one::D;\n"),
            ("crates/a/src/bin/two.rs", "use crate::one::D;\n"),
        ];
        assert_eq!(messages(&files, &[]), [""; 0]);
    }

    #[test]
    fn an_allowed_cycle_is_accepted() {
        let allowed =
            [Allowed { package: "a", modules: &["one", "three", "two"], reason: "they drive each other" }];
        assert_eq!(messages(CYCLE, &allowed), [""; 0]);
    }

    #[test]
    fn a_cycle_larger_than_allowed_is_reported() {
        let allowed = [Allowed { package: "a", modules: &["one", "two"], reason: "they drive each other" }];
        assert_eq!(messages(CYCLE, &allowed).len(), 1);
    }

    #[test]
    fn an_entry_that_is_not_needed_is_reported() {
        let allowed = [
            Allowed {
                package: "a",
                modules: &["one", "three", "two", "four"],
                reason: "they drive each other",
            },
            Allowed { package: "gone", modules: &["one"], reason: "none" },
        ];
        assert_eq!(
            messages(CYCLE, &allowed),
            [
                "a: `four` is in no cycle; remove it from the table of module cycles, where the reason is: they drive each other",
                "gone: is in the table of module cycles, but not in the workspace",
            ]
        );
    }
}
