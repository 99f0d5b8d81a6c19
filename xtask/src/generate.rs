//! `cargo xtask generate`: writes the committed files that are generated from code: the schemas of the configuration, of
//! events and of grants, the OpenAPI description of the server, its compressed console, the table of keys in the reference,
//! and the index of the model catalog.
//!
//! Tests compare these files with the code. With a variable they write them instead, so that no product code depends
//! on a generator.

use crate::{failure::Failure, metadata::Metadata, process};

/// A test that writes files.
struct Generator {
    package: &'static str,
    features: &'static str,
    /// The kind of target that has the test.
    target: &'static str,
    /// Source file of the test.
    source: &'static str,
    /// Part of the test's path.
    test: &'static str,
    /// Variable with which the test writes.
    variable: &'static str,
}

const GENERATORS: &[Generator] = &[
    Generator {
        package: "pintle-cli",
        features: "",
        target: "--bins",
        source: "crates/cli/src/commands/config/schema/tests.rs",
        test: "commands::config::schema::tests::the_",
        variable: "WRITE_CONFIG_REFERENCE",
    },
    Generator {
        package: "pintle-server",
        features: "tasks",
        target: "--lib",
        source: "crates/server/src/api/openapi.rs",
        test: "the_checked_in_description",
        variable: "WRITE_OPENAPI",
    },
    Generator {
        package: "pintle-server",
        features: "",
        target: "--lib",
        source: "crates/server/src/console.rs",
        test: "the_compressed_files",
        variable: "WRITE_CONSOLE",
    },
    Generator {
        package: "pintle-agent",
        features: "",
        target: "--lib",
        source: "crates/agent/src/protocol/event/schema/tests.rs",
        test: "the_checked_in_schema",
        variable: "WRITE_EVENT_SCHEMA",
    },
    Generator {
        package: "pintle-governance",
        features: "",
        target: "--lib",
        source: "crates/governance/src/grant/schema.rs",
        test: "the_checked_in_schema",
        variable: "WRITE_GRANT_SCHEMA",
    },
    Generator {
        package: "pintle-llm",
        features: "",
        target: "--lib",
        source: "crates/llm/src/catalog/entry.rs",
        test: "the_checked_in_index",
        variable: "WRITE_CATALOG_INDEX",
    },
];

/// Runs all generators.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    crate::require_no_arguments("generate", arguments)?;
    for Generator { package, features, target, source, test, variable } in GENERATORS {
        println!("-- {source}");
        let mut cargo = process::cargo(&metadata.workspace_root);
        cargo.args([
            "test",
            "--locked",
            "--quiet",
            "--package",
            package,
            "--features",
            features,
            target,
            test,
        ]);
        process::run(cargo.env(variable, "1"))?;
    }
    println!(
        "the files are written; `npm run generate` in clients/typescript writes the types of that client"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::GENERATORS;

    #[test]
    fn each_source_has_the_test_and_its_variable() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for generator in GENERATORS {
            let text = std::fs::read_to_string(root.join(generator.source)).unwrap();
            let test = generator.test.rsplit("::").next().unwrap();
            assert!(text.contains(&format!("fn {test}")), "{}: {test}", generator.source);
            assert!(text.contains(&format!("\"{}\"", generator.variable)), "{}", generator.source);
        }
    }
}
