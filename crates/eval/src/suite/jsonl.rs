//! Instances in the format of SWE-bench: one JSON object per line, and a directory with mirrors of the repositories.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_host::failure::Failure;
use pintle_host::process_env::read_text_within;
use pintle_workflow::results::ResultsFormat;
use serde::Deserialize;
use serde_json::Value;

use super::{GoldChange, HiddenTests, Instance, InstanceSource, TestRunner};
use crate::machine::Machine;

/// Maximum size of a file of instances, in bytes.
const MAX_FILE: u64 = 512 << 20;

/// Table `[instances]` of `suite.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InstanceList {
    file: PathBuf,
    /// Directory of the mirrors, each named `OWNER/NAME` or `OWNER__NAME`, with or without `.git`.
    repositories: PathBuf,
    prepare: Option<String>,
    /// Command that runs the tests; `{files}` are the files of the test patch.
    test: String,
    results: ResultsFormat,
    #[serde(default)]
    network: bool,
    timeout_s: Option<u64>,
}

/// Line of the file. Other fields are ignored.
#[derive(Debug, Deserialize)]
struct InstanceLine {
    instance_id: String,
    repo: String,
    base_commit: String,
    problem_statement: String,
    test_patch: String,
    patch: Option<String>,
    #[serde(rename = "FAIL_TO_PASS")]
    fail_to_pass: Value,
    #[serde(rename = "PASS_TO_PASS")]
    pass_to_pass: Value,
}

/// Parses a list of names of tests, or its JSON text.
fn parse_names(key: &str, names: Value) -> Result<Vec<String>, String> {
    let parsed = if let Value::String(text) = &names {
        serde_json::from_str(text)
    } else {
        serde_json::from_value(names)
    };
    parsed.map_err(|error| format!("{key}: {error}"))
}

/// Loads the instances of a list.
pub(super) fn load(
    list: &InstanceList,
    directory: &Path,
    machine: &Machine,
) -> Result<Vec<Instance>, Failure> {
    let file = directory.join(&list.file);
    let text = read_text_within(MAX_FILE, "file of instances", &file)?;
    let mirrors = directory.join(&list.repositories);
    if list.results.is_file() {
        return Err(Failure::usage("instances.results: expected a format of the output"));
    }
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let built = lines.map(|(number, line)| {
        list.build(line, &mirrors, machine)
            .map_err(|problem| Failure::usage(format!("{}, line {number}: {problem}", file.display())))
    });
    built.collect()
}

impl InstanceList {
    fn build(&self, line: &str, mirrors: &Path, machine: &Machine) -> Result<Instance, String> {
        let line: InstanceLine = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let fail_to_pass = parse_names("FAIL_TO_PASS", line.fail_to_pass)?;
        let pass_to_pass = parse_names("PASS_TO_PASS", line.pass_to_pass)?;
        let repository = find_mirror(mirrors, &line.repo, machine)
            .ok_or_else(|| format!("there is no repository {} in {}", line.repo, mirrors.display()))?;
        let files: Vec<String> = changed_files(&line.test_patch).map(pintle_env::shell_word).collect();
        let source = InstanceSource::Commit { repository, commit: line.base_commit };
        Ok(Instance {
            tags: vec![line.repo],
            prepare: self.prepare.clone(),
            network: self.network,
            timeout: Duration::from_secs(self.timeout_s.unwrap_or(1_800).max(1)),
            tests: HiddenTests {
                patch: Some(line.test_patch),
                fail_to_pass,
                pass_to_pass,
                runner: Some(TestRunner {
                    command: self.test.replace("{files}", &files.join(" ")),
                    results: self.results,
                }),
                ..HiddenTests::default()
            },
            gold: line.patch.map(|patch| GoldChange { patch: Some(patch), ..GoldChange::default() }),
            ..Instance::new(line.instance_id, line.problem_statement, source)
        })
    }
}

/// Returns the mirror of a repository.
fn find_mirror(mirrors: &Path, name: &str, machine: &Machine) -> Option<PathBuf> {
    let names = [name.to_owned(), name.replace('/', "__")];
    let mut paths = names.iter().flat_map(|name| [mirrors.join(name), mirrors.join(format!("{name}.git"))]);
    // A name with `..` could lead out of the directory.
    let is_plain = !name.split('/').any(|part| part.is_empty() || part == "..");
    paths.find(|path| is_plain && machine.process_env().is_directory(path))
}

/// Returns the paths of the files that exist after a patch.
fn changed_files(patch: &str) -> impl Iterator<Item = &str> {
    patch.lines().filter_map(|line| line.strip_prefix("+++ b/")).map(str::trim_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_patch_are_those_that_it_leaves() {
        let patch =
            "diff --git a/x b/x\n--- a/x\n+++ b/tests/x.py\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ /dev/null\n";
        assert_eq!(changed_files(patch).collect::<Vec<_>>(), ["tests/x.py"]);
    }

    #[test]
    fn names_of_tests_are_a_list_or_its_text() {
        for text in [r#"["a", "b"]"#, r#""[\"a\", \"b\"]""#] {
            assert_eq!(parse_names("k", serde_json::from_str(text).unwrap()).unwrap(), ["a", "b"]);
        }
        for wrong in [Value::from("not a list"), Value::Null, serde_json::json!([1])] {
            assert!(parse_names("k", wrong).unwrap_err().starts_with("k: "));
        }
    }
}
