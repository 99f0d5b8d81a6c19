//! `cargo xtask tidy`: rules of the tree that no compiler checks.
//!
//! Each rule is a pure function from the [`Tree`] to its violations, so that it can be tested on a tree of strings.

mod arrows;
mod attacks;
mod cycles;
mod examples;
mod invariants;
pub(crate) mod lines;
mod links;
mod machine_paths;
mod manifests;
mod module_paths;
mod product;
mod readmes;
mod rust_code;
mod sources;
mod spec_map;
mod test_names;
mod tree;
mod words;

use std::fmt;

use self::tree::Tree;
use crate::{failure::Failure, metadata::Metadata};

/// A rule.
struct Rule {
    name: &'static str,
    summary: &'static str,
    check: fn(&Tree) -> Vec<Violation>,
}

const RULES: &[Rule] = &[
    Rule { name: "arrows", summary: "crates depend only on what the table allows", check: arrows::check },
    Rule {
        name: "fences",
        summary: "restricted dependencies are used only by their owners",
        check: arrows::check_fences,
    },
    Rule {
        name: "module_cycles",
        summary: "top-level modules form no cycles except those in the table",
        check: cycles::check,
    },
    Rule {
        name: "manifests",
        summary: "manifests inherit from the workspace, and packages carry licences",
        check: manifests::check,
    },
    Rule {
        name: "module_files",
        summary: "modules are `foo.rs`, never `mod.rs`",
        check: sources::check_module_files,
    },
    Rule { name: "prints", summary: "libraries do not print", check: sources::check_prints },
    Rule {
        name: "unfinished",
        summary: "no placeholders and no ignored tests",
        check: sources::check_unfinished,
    },
    Rule {
        name: "crate_roots",
        summary: "libraries forbid unsafe code and include their README",
        check: sources::check_crate_roots,
    },
    Rule {
        name: "readmes",
        summary: "each library's README has an example that runs",
        check: readmes::check,
    },
    Rule {
        name: "examples",
        summary: "the types of a first program have an example that runs",
        check: examples::check,
    },
    Rule { name: "invariants", summary: "each invariant names an existing check", check: invariants::check },
    Rule {
        name: "spec_map",
        summary: "the specification map names existing items and tests",
        check: spec_map::check,
    },
    Rule { name: "attacks", summary: "the page on attacks names existing tests", check: attacks::check },
    Rule { name: "machine_paths", summary: "no paths of one machine", check: machine_paths::check },
    Rule { name: "words", summary: "few idioms in comments and strings, per crate", check: words::check },
    Rule { name: "links", summary: "no broken links, and every page is linked", check: links::check },
];

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    /// A path from the root, with `:LINE` if known, or a package.
    location: String,
    message: String,
}

/// Prints each rule with its violations. Fails if there are any.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    crate::require_no_arguments("tidy", arguments)?;
    let tree = Tree::load(metadata)?;
    let mut count = 0;
    for rule in RULES {
        let violations = (rule.check)(&tree);
        let verdict = if violations.is_empty() { "ok" } else { "BROKEN" };
        println!("{:<14} {verdict:<7} {}", rule.name, rule.summary);
        for violation in &violations {
            println!("    {violation}");
        }
        count += violations.len();
    }
    if count == 0 {
        return Ok(());
    }
    Err(Failure::new(format!("{count} violations of the rules of the tree")))
}

/// Returns the names of the rules, for the invariants whose check is a rule.
fn rule_names() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.name)
}

impl Violation {
    fn new(location: impl Into<String>, message: impl Into<String>) -> Self {
        Self { location: location.into(), message: message.into() }
    }

    fn at_line(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self::new(format!("{path}:{line}"), message)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.location, self.message)
    }
}
