#![expect(clippy::disallowed_methods, reason = "the test reads the files of the repository")]

use std::path::Path;

use pintle_env::LocalEnvironment;
use pintle_host::provider::Provider;
use pintle_testkit::Script;

use super::*;
use crate::testkit_models::dialect_of;

#[test]
fn every_project_file_is_embedded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/roman");
    let mut found = Vec::new();
    let mut directories = vec![root.clone()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let name = if name == "manifest.toml" { "Cargo.toml".to_owned() } else { name };
            if path.is_dir() { directories.push(path) } else { found.push(name) }
        }
    }
    found.sort_unstable();
    assert_eq!(found, FILES.map(|(path, _)| path.to_owned()));
}

#[test]
fn script_has_turns_for_every_dialect() {
    let script = Script::parse(SCRIPT).unwrap();
    for provider in Provider::BY_KEY.into_iter().chain([Provider::OpenAiCompatible]) {
        assert!(script.turns_for(dialect_of(provider)).count() >= 5, "{}", provider.name());
    }
}

#[tokio::test]
async fn diff_lists_only_changes() {
    let directory = tempfile::tempdir().unwrap();
    let env = LocalEnvironment::builder(directory.path()).build().unwrap();
    copy_to(&env).await.unwrap();
    assert_eq!(diff(&env).await.unwrap(), "");

    env.write_file("target/debug/x".as_ref(), "built").await.unwrap();
    env.write_file("new.txt".as_ref(), "one\n").await.unwrap();
    env.remove("README.md".as_ref()).await.unwrap();
    let manifest = FILES[2].1.replace("2021", "2024");
    env.write_file("Cargo.toml".as_ref(), &manifest).await.unwrap();
    let shown = diff(&env).await.unwrap();
    let headers: Vec<&str> =
        shown.lines().filter(|line| line.starts_with("--- ") || line.starts_with("+++ ")).collect();
    let expected = [
        "--- a/Cargo.toml",
        "+++ b/Cargo.toml",
        "--- a/README.md",
        "+++ /dev/null",
        "--- /dev/null",
        "+++ b/new.txt",
    ];
    assert_eq!(headers, expected);
    assert!(shown.contains("-edition = \"2021\"\n+edition = \"2024\"\n"), "{shown}");
}
