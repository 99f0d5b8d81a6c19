//! `cargo xtask features`: each provider and each environment compiles without the others, and the other layers without a
//! provider; schemas are checked, and files are in memory, without the crates for any schema and for searches.
//!
//! Providers and environments do not depend on each other, so one combination covers one of each. The layers above them
//! have the same code with each, except for the prelude of the library, which has the local machine. The workspace build
//! covers all features together.

use crate::{
    failure::Failure,
    metadata::{Metadata, Package},
    process,
};

/// The library that forwards the features of all layers.
const LIBRARY: &str = "pintle";

/// The command, of which the tests have all that is shipped.
const COMMAND: &str = "pintle-cli";

/// What the command opens sessions with, which needs neither MCP servers nor a database.
const HOST: &str = "pintle-host";

/// The terminal of the command, which needs no client of a server.
const TUI: &str = "pintle-tui";

/// The server, which needs no host of a user's sessions.
const SERVER: &str = "pintle-server";
/// The tasks, whose sessions a host can open.
const TASKS: &str = "pintle-workflow";
/// Agents for editors, which need no host of sessions.
const ACP: &str = "pintle-acp";

/// The layers that have these features.
const LAYERS: &[&str] = &["pintle-env", "pintle-providers"];

/// The layers that check schemas, which without the feature need no crate for that.
const TOOLS: &[&str] = &["pintle-llm", "pintle-tools"];

/// The benchmarks, three suites of which need crates that the others do not.
const BENCHES: &str = "pintle-benches";

/// Features that replace the default ones of some packages.
struct Combination {
    packages: &'static [&'static str],
    features: &'static [&'static str],
}

const COMBINATIONS: &[Combination] = &[
    Combination { packages: &[LIBRARY], features: &[] },
    Combination { packages: &[LIBRARY], features: &["anthropic", "memory"] },
    Combination { packages: &[LIBRARY], features: &["anthropic", "local"] },
    Combination { packages: &[LIBRARY], features: &["anthropic", "jsonschema", "memory", "search"] },
    Combination { packages: TOOLS, features: &["jsonschema"] },
    Combination {
        packages: &[LIBRARY],
        features: &[
            "acp",
            "client",
            "compat",
            "egress",
            "evidence",
            "governance",
            "host",
            "mcp",
            "middleware",
            "postgres",
            "restate",
            "sandbox",
            "server",
            "store",
            "testkit",
            "web",
            "workflow",
        ],
    },
    Combination { packages: LAYERS, features: &["docker", "openai"] },
    Combination { packages: LAYERS, features: &["gemini", "ssh"] },
    Combination { packages: LAYERS, features: &["compatible"] },
    Combination { packages: &[HOST], features: &[] },
    Combination { packages: &[HOST], features: &["mcp"] },
    Combination { packages: &[HOST], features: &["mcp", "postgres"] },
    Combination { packages: &[SERVER], features: &[] },
    Combination { packages: &[SERVER], features: &["host"] },
    Combination { packages: &[TASKS], features: &["host"] },
    Combination { packages: &[ACP], features: &[] },
    Combination { packages: &[ACP], features: &["host"] },
    Combination { packages: &[TUI], features: &[] },
    Combination { packages: &[TUI], features: &["client"] },
    Combination { packages: &[COMMAND], features: &["default"] },
    Combination { packages: &[BENCHES], features: &["durable", "protocols", "server"] },
];

/// Lints the packages of each combination, and all crates of the workspace below them.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    crate::require_no_arguments("features", arguments)?;
    let missing = missing(metadata.package(LIBRARY), COMBINATIONS);
    if !missing.is_empty() {
        return Err(Failure::new(format!(
            "no combination in xtask/src/features.rs has the feature {} of {LIBRARY}",
            missing.join(", ")
        )));
    }
    for Combination { packages, features } in COMBINATIONS {
        let features = features.join(",");
        let shown = if features.is_empty() { "no features" } else { &features };
        println!("-- {} with {shown}", packages.join(" and "));
        let mut clippy = process::cargo(&metadata.workspace_root);
        clippy.args(["clippy", "--locked", "--quiet", "--no-default-features", "--features", &features]);
        clippy.args(packages.iter().flat_map(|package| ["--package", *package]));
        process::run(clippy.args(["--", "-D", "warnings"]))?;
    }
    println!("{} combinations of features compile without warnings", COMBINATIONS.len());
    Ok(())
}

/// Returns the features of `package` that are in no combination.
fn missing<'a>(package: Option<&'a Package>, combinations: &[Combination]) -> Vec<&'a str> {
    let features = package.into_iter().flat_map(|package| package.features.keys());
    let names = features.map(String::as_str).filter(|name| *name != "default");
    names.filter(|name| !combinations.iter().any(|combination| combination.features.contains(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::{COMBINATIONS, Combination, missing};
    use crate::metadata::Package;

    fn package(features: &str) -> Package {
        let json = format!(
            r#"{{"id": "a", "name": "a", "version": "1.0.0", "manifest_path": "Cargo.toml", "dependencies": [],
                 "targets": [], "publish": null, "features": {features}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn a_feature_without_a_combination_is_reported() {
        let package = package(r#"{"default": ["a", "b"], "a": [], "b": [], "c": []}"#);
        let one = Combination { packages: &["a"], features: &["a"] };
        let two = Combination { packages: &["a"], features: &["b", "c"] };
        assert_eq!(missing(Some(&package), std::slice::from_ref(&one)), ["b", "c"]);
        assert_eq!(missing(Some(&package), &[one, two]), [""; 0]);
    }

    #[test]
    fn one_combination_has_no_features() {
        assert!(COMBINATIONS.iter().any(|combination| combination.features.is_empty()));
    }
}
