//! Which crate may know which.

use super::{Violation, tree::Tree};

/// The arrows of one package to others of the workspace.
struct Arrows {
    from: &'static str,
    /// Normal dependencies.
    to: &'static [&'static str],
    /// More that its tests may use. A crate's fakes live in the crate itself, so that its own tests
    /// never see two copies of its types; `pintle-testkit` therefore is for crates beside or above it.
    to_in_tests: &'static [&'static str],
}

const ARROWS: &[Arrows] = &[
    Arrows { from: "pintle-patch", to: &[], to_in_tests: &[] },
    Arrows { from: "pintle-llm", to: &[], to_in_tests: &[] },
    Arrows { from: "pintle-env", to: &[], to_in_tests: &[] },
    Arrows { from: "pintle-providers", to: &["pintle-llm"], to_in_tests: &["pintle-testkit"] },
    Arrows { from: "pintle-tools", to: &["pintle-env", "pintle-llm", "pintle-patch"], to_in_tests: &[] },
    Arrows {
        from: "pintle-agent",
        to: &["pintle-env", "pintle-llm", "pintle-tools"],
        to_in_tests: &["pintle-testkit"],
    },
    Arrows { from: "pintle-testkit", to: &["pintle-env", "pintle-llm", "pintle-tools"], to_in_tests: &[] },
    Arrows { from: "pintle-web", to: &["pintle-llm", "pintle-tools"], to_in_tests: &[] },
    Arrows { from: "pintle", to: LAYERS, to_in_tests: &["pintle-testkit"] },
    Arrows { from: "pintle-cli", to: LIBRARIES, to_in_tests: &[] },
    Arrows { from: "pintle-tests", to: LIBRARIES, to_in_tests: &[] },
    Arrows { from: "pintle-benches", to: LIBRARIES, to_in_tests: &[] },
    Arrows { from: "pintle-examples", to: LIBRARIES, to_in_tests: &[] },
    Arrows { from: "xtask", to: &[], to_in_tests: &[] },
];

/// The layers that the library `pintle` re-exports.
const LAYERS: &[&str] = &[
    "pintle-agent",
    "pintle-env",
    "pintle-llm",
    "pintle-patch",
    "pintle-providers",
    "pintle-tools",
    "pintle-web",
];

const LIBRARIES: &[&str] = &[
    "pintle-agent",
    "pintle-env",
    "pintle-llm",
    "pintle-patch",
    "pintle-providers",
    "pintle-testkit",
    "pintle-tools",
    "pintle-web",
];

/// A dependency from outside that only some packages may have, because a layer is defined by not
/// having it.
struct Fence {
    dependency: &'static str,
    owners: &'static [&'static str],
}

const FENCES: &[Fence] = &[
    Fence { dependency: "reqwest", owners: &["pintle-providers", "pintle-web"] },
    Fence { dependency: "hyper", owners: &["pintle-benches", "pintle-examples"] },
    Fence { dependency: "rustls", owners: &["pintle-providers", "pintle-web"] },
    Fence { dependency: "eventsource-stream", owners: &["pintle-providers"] },
    Fence { dependency: "httparse", owners: &["pintle-testkit"] },
    Fence {
        dependency: "nix",
        owners: &["pintle-env", "pintle-cli", "pintle-tests", "pintle-benches", "xtask"],
    },
    Fence { dependency: "grep-searcher", owners: &["pintle-env"] },
    Fence { dependency: "ignore", owners: &["pintle-env"] },
    Fence { dependency: "clap", owners: &["pintle-cli"] },
    Fence { dependency: "anyhow", owners: &["pintle-cli", "pintle-tests", "xtask"] },
];

/// The patch engine is text in and a plan out: this is all that it may need.
const PATCH_DEPENDENCIES: &[&str] = &["foldhash", "memchr", "similar", "thiserror", "unicode-normalization"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let is_member = |name: &str| tree.packages.iter().any(|package| package.name == name);
    let mut violations = Vec::new();
    for package in &tree.packages {
        let Some(row) = ARROWS.iter().find(|row| row.from == package.name) else {
            violations.push(Violation::new(&package.name, "has no row in the table of arrows"));
            continue;
        };
        for name in package.normal.iter().filter(|name| is_member(name)) {
            if !row.to.contains(&name.as_str()) {
                violations.push(refused(row, "", name, row.to));
            }
        }
        for name in package.other.iter().filter(|name| is_member(name)) {
            let allowed = [row.to, row.to_in_tests].concat();
            if !allowed.contains(&name.as_str()) {
                violations.push(refused(row, " in its tests", name, &allowed));
            }
        }
    }
    violations
}

pub(super) fn check_fences(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in &tree.packages {
        for fence in FENCES {
            let owns = fence.owners.contains(&package.name.as_str());
            if !owns && package.normal.iter().any(|name| name == fence.dependency) {
                violations.push(Violation::new(
                    &package.name,
                    format!("depends on {}, which belongs to {:?}", fence.dependency, fence.owners),
                ));
            }
        }
        let beyond = package.normal.iter().filter(|name| !PATCH_DEPENDENCIES.contains(&name.as_str()));
        if package.name == "pintle-patch" {
            violations.extend(beyond.map(|name| {
                Violation::new(
                    &package.name,
                    format!("depends on {name}, allowed are {PATCH_DEPENDENCIES:?}"),
                )
            }));
        }
    }
    violations
}

fn refused(row: &Arrows, whereabouts: &str, name: &str, allowed: &[&str]) -> Violation {
    Violation::new(row.from, format!("depends on {name}{whereabouts}, allowed are {allowed:?}"))
}

#[cfg(test)]
mod tests {
    use super::{ARROWS, check, check_fences};
    use crate::tidy::tree::Tree;

    fn places(tree: &Tree) -> Vec<String> {
        check(tree).into_iter().map(|violation| violation.to_string()).collect()
    }

    #[test]
    fn an_arrow_up_is_refused() {
        let tree = Tree::default().with_arrows("pintle-llm", &["serde", "pintle-agent"], &[]).with_arrows(
            "pintle-agent",
            &["pintle-llm"],
            &[],
        );
        assert_eq!(places(&tree), ["pintle-llm: depends on pintle-agent, allowed are []"]);
    }

    #[test]
    fn the_testkit_is_for_tests_beside_or_above_it() {
        let testkit = Tree::default().with_arrows("pintle-testkit", &[], &[]);
        let tree = testkit.with_arrows("pintle-providers", &[], &["pintle-testkit"]).with_arrows(
            "pintle-env",
            &[],
            &["pintle-testkit"],
        );
        assert_eq!(places(&tree), ["pintle-env: depends on pintle-testkit in its tests, allowed are []"]);
    }

    #[test]
    fn a_package_without_a_row_is_refused() {
        let tree = Tree::default().with_arrows("pintle-new", &[], &[]);
        assert_eq!(places(&tree), ["pintle-new: has no row in the table of arrows"]);
    }

    #[test]
    fn the_table_has_no_circle() {
        let mut placed: Vec<&str> = Vec::new();
        while placed.len() < ARROWS.len() {
            let next = ARROWS
                .iter()
                .find(|row| !placed.contains(&row.from) && row.to.iter().all(|to| placed.contains(to)));
            placed.push(next.expect("a row whose arrows all lead to rows before it").from);
        }
    }

    #[test]
    fn a_fenced_dependency_is_its_owners_alone() {
        let tree = Tree::default()
            .with_arrows("pintle-llm", &["reqwest"], &[])
            .with_arrows("pintle-providers", &["reqwest"], &[])
            .with_arrows("pintle-patch", &["similar", "serde"], &[]);
        let found: Vec<String> = check_fences(&tree).into_iter().map(|violation| violation.place).collect();
        assert_eq!(found, ["pintle-llm", "pintle-patch"]);
    }
}
