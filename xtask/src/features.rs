//! `cargo xtask features`: each provider and each environment compiles without the others.
//!
//! Providers and environments do not depend on each other, so one combination covers one of each. The workspace build
//! covers all of them together.

use crate::{
    failure::Failure,
    metadata::{Metadata, Package},
    process,
};

/// The library that forwards the features of all layers.
const LIBRARY: &str = "pintle";

/// Features that are checked together, in place of the default ones.
const COMBINATIONS: &[&[&str]] =
    &[&[], &["anthropic", "local"], &["docker", "openai"], &["gemini", "ssh"], &["compatible"]];

/// Lints the library, and the layers below it, with each combination.
pub(crate) fn run(metadata: &Metadata, _arguments: &[String]) -> Result<(), Failure> {
    let missing = missing(metadata.package(LIBRARY), COMBINATIONS);
    if !missing.is_empty() {
        return Err(Failure::new(format!(
            "no combination in xtask/src/features.rs has the default feature {} of {LIBRARY}",
            missing.join(", ")
        )));
    }
    for features in COMBINATIONS {
        let features = features.join(",");
        println!("-- {LIBRARY} with {}", if features.is_empty() { "no features" } else { &features });
        process::run(
            process::cargo(&metadata.workspace_root)
                .args(["clippy", "--locked", "--quiet", "--package", LIBRARY, "--no-default-features"])
                .args(["--features", &features, "--", "-D", "warnings"]),
        )?;
    }
    println!("{LIBRARY} compiles with each of {} combinations of features", COMBINATIONS.len());
    Ok(())
}

/// Returns the default features of `package` that are in no combination.
fn missing<'a>(package: Option<&'a Package>, combinations: &[&[&str]]) -> Vec<&'a str> {
    let default = package.and_then(|package| package.features.get("default"));
    let names = default.into_iter().flatten().map(String::as_str);
    names.filter(|name| !combinations.iter().any(|features| features.contains(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::{COMBINATIONS, missing};
    use crate::metadata::Package;

    fn package(features: &str) -> Package {
        let json = format!(
            r#"{{"id": "a", "name": "a", "version": "1.0.0", "manifest_path": "Cargo.toml", "dependencies": [],
                 "targets": [], "publish": null, "features": {features}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn a_default_feature_without_a_combination_is_reported() {
        let package = package(r#"{"default": ["a", "b"], "a": [], "b": [], "c": []}"#);
        assert_eq!(missing(Some(&package), &[&["a"]]), ["b"]);
        assert_eq!(missing(Some(&package), &[&["a"], &["b", "c"]]), [""; 0]);
    }

    #[test]
    fn one_combination_has_no_features() {
        assert!(COMBINATIONS.iter().any(|features| features.is_empty()));
    }
}
