//! `cargo xtask tidy`: the rules of the tree that no compiler checks.
//!
//! Each rule is a pure function from the [`Tree`] to its violations, so that each has tests of its
//! own on trees made of strings.

mod arrows;
mod cycles;
mod invariants;
mod links;
mod machine_paths;
mod manifests;
mod module_paths;
mod readmes;
mod rust_code;
mod sources;
mod spec_map;
mod test_names;
mod tree;

use std::fmt;

use self::tree::Tree;
use crate::{failure::Failure, metadata::Metadata};

/// A rule and what it asks.
struct Rule {
    name: &'static str,
    asks: &'static str,
    check: fn(&Tree) -> Vec<Violation>,
}

const RULES: &[Rule] = &[
    Rule { name: "arrows", asks: "crates depend only on what the table allows", check: arrows::check },
    Rule {
        name: "fences",
        asks: "a fenced dependency is used by its owner only",
        check: arrows::check_fences,
    },
    Rule {
        name: "module_cycles",
        asks: "top-level modules form no cycle but those in the table",
        check: cycles::check,
    },
    Rule { name: "manifests", asks: "manifests inherit from the workspace", check: manifests::check },
    Rule {
        name: "module_files",
        asks: "a module is `foo.rs`, never `mod.rs`",
        check: sources::check_module_files,
    },
    Rule { name: "prints", asks: "libraries print nothing", check: sources::check_prints },
    Rule { name: "unfinished", asks: "no placeholder and no ignored test", check: sources::check_unfinished },
    Rule {
        name: "crate_roots",
        asks: "libraries forbid unsafe code and show their README",
        check: sources::check_crate_roots,
    },
    Rule { name: "readmes", asks: "each library's README has an example that runs", check: readmes::check },
    Rule { name: "invariants", asks: "each invariant names a check that exists", check: invariants::check },
    Rule { name: "spec_map", asks: "the map of the specification names what exists", check: spec_map::check },
    Rule { name: "machine_paths", asks: "no path of one machine", check: machine_paths::check },
    Rule { name: "links", asks: "links lead somewhere, and every page is linked", check: links::check },
];

/// One breach of one rule.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    /// A path from the root, with `:LINE` where there is one, or a package.
    place: String,
    message: String,
}

/// Prints each rule with its violations; fails when there is one.
pub(crate) fn run(metadata: &Metadata, _arguments: &[String]) -> Result<(), Failure> {
    let tree = Tree::load(metadata)?;
    let mut count = 0;
    for rule in RULES {
        let violations = (rule.check)(&tree);
        let verdict = if violations.is_empty() { "ok" } else { "BROKEN" };
        println!("{:<14} {verdict:<7} {}", rule.name, rule.asks);
        for violation in &violations {
            println!("    {violation}");
        }
        count += violations.len();
    }
    if count == 0 {
        return Ok(());
    }
    Err(Failure::new(format!("the tree breaks its rules in {count} places")))
}

/// The names of the rules, for the invariants that name one as their check.
fn rule_names() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.name)
}

impl Violation {
    fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }

    fn at_line(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self::new(format!("{path}:{line}"), message)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.message)
    }
}
