//! Allowed dependencies between crates.

use super::{Violation, tree::Tree};

/// Allowed dependencies of one package on others of the workspace.
struct Arrows {
    from: &'static str,
    /// Normal dependencies.
    to: &'static [&'static str],
    /// Additional dependencies of its tests. A crate's fakes are part of the crate itself, so that its own tests
    /// never see two copies of its types. `pintle-testkit` is therefore for crates beside or above it.
    to_in_tests: &'static [&'static str],
}

const ARROWS: &[Arrows] = &[
    Arrows { from: "pintle-patch", to: &[], to_in_tests: &["pintle-test-conditions"] },
    Arrows { from: "pintle-llm", to: &[], to_in_tests: &[] },
    Arrows { from: "pintle-middleware", to: &["pintle-llm"], to_in_tests: &[] },
    Arrows { from: "pintle-egress", to: &[], to_in_tests: &[] },
    Arrows { from: "pintle-env", to: &[], to_in_tests: &["pintle-test-conditions"] },
    Arrows {
        from: "pintle-providers",
        to: &["pintle-llm"],
        to_in_tests: &["pintle-test-conditions", "pintle-testkit"],
    },
    Arrows {
        from: "pintle-tools",
        to: &["pintle-env", "pintle-llm", "pintle-patch"],
        to_in_tests: &["pintle-test-conditions"],
    },
    Arrows {
        from: "pintle-agent",
        to: &["pintle-env", "pintle-llm", "pintle-middleware", "pintle-tools"],
        to_in_tests: &["pintle-test-conditions", "pintle-testkit"],
    },
    Arrows {
        from: "pintle-governance",
        to: &["pintle-agent", "pintle-egress", "pintle-env", "pintle-tools"],
        to_in_tests: &["pintle-test-conditions", "pintle-llm"],
    },
    Arrows {
        from: "pintle-compat",
        to: &["pintle-agent", "pintle-env", "pintle-llm", "pintle-tools"],
        to_in_tests: &["pintle-providers", "pintle-testkit"],
    },
    Arrows {
        from: "pintle-store",
        to: &["pintle-agent", "pintle-env"],
        to_in_tests: &["pintle-test-conditions"],
    },
    Arrows { from: "pintle-postgres", to: &["pintle-store"], to_in_tests: &["pintle-test-conditions"] },
    Arrows {
        from: "pintle-evidence",
        to: &["pintle-agent", "pintle-env"],
        to_in_tests: &["pintle-test-conditions"],
    },
    // The feature `host` adds the optional ones.
    Arrows {
        from: "pintle-workflow",
        to: &[
            "pintle-agent",
            "pintle-env",
            "pintle-evidence",
            "pintle-governance",
            "pintle-host",
            "pintle-llm",
            "pintle-store",
        ],
        to_in_tests: &["pintle-test-conditions"],
    },
    Arrows {
        from: "pintle-eval",
        to: &["pintle-env", "pintle-host", "pintle-llm", "pintle-workflow"],
        to_in_tests: &["pintle-test-conditions"],
    },
    Arrows {
        from: "pintle-restate",
        to: &["pintle-store", "pintle-workflow"],
        to_in_tests: &["pintle-test-conditions", "pintle-postgres"],
    },
    Arrows { from: "pintle-testkit", to: &["pintle-env", "pintle-llm"], to_in_tests: &[] },
    Arrows {
        from: "pintle-web",
        to: &["pintle-egress", "pintle-llm", "pintle-tools"],
        to_in_tests: &["pintle-test-conditions"],
    },
    Arrows { from: "pintle-mcp", to: &["pintle-env", "pintle-llm", "pintle-tools"], to_in_tests: &[] },
    // The feature `host` adds the optional ones.
    Arrows {
        from: "pintle-acp",
        to: &[
            "pintle-agent",
            "pintle-env",
            "pintle-governance",
            "pintle-host",
            "pintle-llm",
            "pintle-mcp",
            "pintle-store",
            "pintle-tools",
        ],
        to_in_tests: &[],
    },
    // The features `host` and `tasks` add the optional ones.
    Arrows {
        from: "pintle-server",
        to: &[
            "pintle-agent",
            "pintle-governance",
            "pintle-host",
            "pintle-llm",
            "pintle-store",
            "pintle-tools",
            "pintle-workflow",
        ],
        to_in_tests: &["pintle-test-conditions", "pintle-env"],
    },
    Arrows {
        from: "pintle-client",
        to: &["pintle-agent", "pintle-llm"],
        to_in_tests: &["pintle-env", "pintle-server", "pintle-store", "pintle-tools", "pintle-workflow"],
    },
    // The features `mcp` and `postgres` add the optional ones.
    Arrows {
        from: "pintle-host",
        to: &[
            "pintle-agent",
            "pintle-egress",
            "pintle-env",
            "pintle-governance",
            "pintle-llm",
            "pintle-mcp",
            "pintle-middleware",
            "pintle-postgres",
            "pintle-providers",
            "pintle-store",
            "pintle-tools",
            "pintle-web",
        ],
        to_in_tests: &["pintle-test-conditions"],
    },
    // The feature `client` adds the optional one.
    Arrows {
        from: "pintle-tui",
        to: &[
            "pintle-agent",
            "pintle-client",
            "pintle-env",
            "pintle-governance",
            "pintle-host",
            "pintle-llm",
            "pintle-patch",
            "pintle-store",
            "pintle-tools",
        ],
        to_in_tests: &["pintle-test-conditions"],
    },
    Arrows { from: FACADE, to: LAYERS, to_in_tests: &[] },
    Arrows { from: "pintle-cli", to: LIBRARIES, to_in_tests: &["pintle-test-conditions"] },
    Arrows { from: "pintle-tests", to: LIBRARIES, to_in_tests: &["pintle-test-conditions"] },
    Arrows { from: "pintle-benches", to: LIBRARIES, to_in_tests: &[] },
    Arrows { from: "pintle-examples", to: LIBRARIES, to_in_tests: &[] },
    Arrows { from: "pintle-test-conditions", to: &[], to_in_tests: &[] },
    Arrows { from: "xtask", to: &[], to_in_tests: &["pintle-test-conditions"] },
];

/// The library that re-exports all layers, each as a module.
const FACADE: &str = "pintle";

/// The layers that it re-exports.
const LAYERS: &[&str] = &[
    "pintle-acp",
    "pintle-agent",
    "pintle-client",
    "pintle-compat",
    "pintle-egress",
    "pintle-env",
    "pintle-evidence",
    "pintle-governance",
    "pintle-host",
    "pintle-llm",
    "pintle-mcp",
    "pintle-middleware",
    "pintle-patch",
    "pintle-postgres",
    "pintle-providers",
    "pintle-restate",
    "pintle-server",
    "pintle-store",
    "pintle-testkit",
    "pintle-tools",
    "pintle-web",
    "pintle-workflow",
];

const LIBRARIES: &[&str] = &[
    "pintle",
    "pintle-acp",
    "pintle-agent",
    "pintle-client",
    "pintle-compat",
    "pintle-egress",
    "pintle-env",
    "pintle-eval",
    "pintle-evidence",
    "pintle-governance",
    "pintle-host",
    "pintle-llm",
    "pintle-mcp",
    "pintle-middleware",
    "pintle-patch",
    "pintle-postgres",
    "pintle-providers",
    "pintle-restate",
    "pintle-server",
    "pintle-store",
    "pintle-testkit",
    "pintle-tools",
    "pintle-tui",
    "pintle-web",
    "pintle-workflow",
];

/// External dependency that is reserved to some packages, because other layers are defined by not having it.
struct Fence {
    dependency: &'static str,
    owners: &'static [&'static str],
}

const FENCES: &[Fence] = &[
    Fence {
        dependency: "reqwest",
        owners: &["pintle-client", "pintle-mcp", "pintle-providers", "pintle-web"],
    },
    Fence {
        dependency: "hyper",
        owners: &["pintle-benches", "pintle-egress", "pintle-examples", "pintle-restate", "pintle-server"],
    },
    Fence {
        dependency: "rustls",
        owners: &["pintle-client", "pintle-mcp", "pintle-providers", "pintle-server", "pintle-web"],
    },
    Fence { dependency: "eventsource-stream", owners: &["pintle-client", "pintle-providers"] },
    Fence { dependency: "html5gum", owners: &["pintle-web"] },
    Fence { dependency: "httparse", owners: &["pintle-testkit"] },
    Fence {
        dependency: "nix",
        owners: &[
            "pintle-env",
            "pintle-host",
            "pintle-postgres",
            "pintle-tests",
            "pintle-test-conditions",
            "pintle-benches",
            "xtask",
        ],
    },
    Fence { dependency: "rmcp", owners: &["pintle-benches", "pintle-mcp"] },
    Fence { dependency: "tokio-postgres", owners: &["pintle-postgres"] },
    Fence { dependency: "grep-searcher", owners: &["pintle-env"] },
    Fence { dependency: "ignore", owners: &["pintle-env"] },
    Fence { dependency: "clap", owners: &["pintle-cli"] },
    Fence { dependency: "anyhow", owners: &["pintle-cli", "pintle-tests", "xtask"] },
];

/// All dependencies of the patch engine, which only turns text into a plan.
const PATCH_DEPENDENCIES: &[&str] = &["foldhash", "memchr", "similar", "thiserror", "unicode-normalization"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let is_member = |name: &str| tree.packages.iter().any(|package| package.name == name);
    let mut violations = Vec::new();
    for package in &tree.packages {
        let Some(entry) = ARROWS.iter().find(|entry| entry.from == package.name) else {
            violations.push(Violation::new(&package.name, "has no entry in the table of dependencies"));
            continue;
        };
        for name in package.normal.iter().filter(|name| is_member(name)) {
            if !entry.to.contains(&name.as_str()) {
                violations.push(violation(entry, "", name, entry.to));
            }
        }
        if package.name == FACADE {
            let missing = LAYERS
                .iter()
                .filter(|name| is_member(name) && !package.normal.iter().any(|normal| *normal == **name));
            violations.extend(
                missing.map(|name| Violation::new(FACADE, format!("does not re-export the layer {name}"))),
            );
        }
        for name in package.other.iter().filter(|name| is_member(name)) {
            let allowed = [entry.to, entry.to_in_tests].concat();
            if !allowed.contains(&name.as_str()) {
                violations.push(violation(entry, " in its tests", name, &allowed));
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
                    format!("depends on {}, which is reserved to {:?}", fence.dependency, fence.owners),
                ));
            }
        }
        let extra = package.normal.iter().filter(|name| !PATCH_DEPENDENCIES.contains(&name.as_str()));
        if package.name == "pintle-patch" {
            violations.extend(extra.map(|name| {
                Violation::new(
                    &package.name,
                    format!("depends on {name}, allowed are {PATCH_DEPENDENCIES:?}"),
                )
            }));
        }
    }
    violations
}

fn violation(entry: &Arrows, scope: &str, name: &str, allowed: &[&str]) -> Violation {
    Violation::new(entry.from, format!("depends on {name}{scope}, allowed are {allowed:?}"))
}

#[cfg(test)]
mod tests {
    use super::{ARROWS, check, check_fences};
    use crate::tidy::tree::Tree;

    fn messages(tree: &Tree) -> Vec<String> {
        check(tree).into_iter().map(|violation| violation.to_string()).collect()
    }

    #[test]
    fn an_upward_dependency_is_refused() {
        let tree = Tree::default().with_arrows("pintle-llm", &["serde", "pintle-agent"], &[]).with_arrows(
            "pintle-agent",
            &["pintle-llm"],
            &[],
        );
        assert_eq!(messages(&tree), ["pintle-llm: depends on pintle-agent, allowed are []"]);
    }

    #[test]
    fn the_testkit_is_allowed_beside_or_above_it() {
        let testkit = Tree::default().with_arrows("pintle-testkit", &[], &[]);
        let tree = testkit.with_arrows("pintle-providers", &[], &["pintle-testkit"]).with_arrows(
            "pintle-env",
            &[],
            &["pintle-testkit"],
        );
        assert_eq!(
            messages(&tree),
            [r#"pintle-env: depends on pintle-testkit in its tests, allowed are ["pintle-test-conditions"]"#]
        );
    }

    #[test]
    fn the_library_has_every_layer() {
        let layers = Tree::default().with_arrows("pintle-llm", &[], &[]).with_arrows("pintle-env", &[], &[]);
        let tree = layers.with_arrows("pintle", &["pintle-llm"], &["pintle-env"]);
        assert_eq!(messages(&tree), ["pintle: does not re-export the layer pintle-env"]);
    }

    #[test]
    fn a_package_without_an_entry_is_refused() {
        let tree = Tree::default().with_arrows("pintle-new", &[], &[]);
        assert_eq!(messages(&tree), ["pintle-new: has no entry in the table of dependencies"]);
    }

    #[test]
    fn the_table_has_no_cycle() {
        let mut placed: Vec<&str> = Vec::new();
        while placed.len() < ARROWS.len() {
            let next = ARROWS
                .iter()
                .find(|entry| !placed.contains(&entry.from) && entry.to.iter().all(|to| placed.contains(to)));
            placed.push(next.expect("an entry that depends only on earlier ones").from);
        }
    }

    #[test]
    fn a_reserved_dependency_is_refused_elsewhere() {
        let tree = Tree::default()
            .with_arrows("pintle-llm", &["reqwest"], &[])
            .with_arrows("pintle-providers", &["reqwest"], &[])
            .with_arrows("pintle-patch", &["similar", "serde"], &[]);
        let found: Vec<String> =
            check_fences(&tree).into_iter().map(|violation| violation.location).collect();
        assert_eq!(found, ["pintle-llm", "pintle-patch"]);
    }

    #[test]
    fn the_host_has_neither_a_terminal_nor_a_command_line() {
        let tree = Tree::default().with_arrows("pintle-tui", &[], &[]).with_arrows(
            "pintle-host",
            &["clap", "pintle-tui"],
            &[],
        );
        let violations = check(&tree).into_iter().chain(check_fences(&tree));
        let found: Vec<String> = violations.map(|violation| violation.to_string()).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("pintle-host: depends on pintle-tui, "), "{found:?}");
        assert!(found[1].starts_with("pintle-host: depends on clap, "), "{found:?}");
    }
}
