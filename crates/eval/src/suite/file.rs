//! Suites of the form `suite.toml`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_host::failure::Failure;
use pintle_host::process_env::{read_text, read_text_if_exists};
use pintle_workflow::contract::{CandidatePlan, Contract, describe_toml_error};
use serde::Deserialize;

use super::jsonl::{self, InstanceList};
use super::{GoldChange, HiddenTests, Instance, InstanceSource, SUITE_FILE, Suite};
use crate::machine::Machine;

/// Content of `suite.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteFile {
    name: String,
    /// Command that writes another `suite.toml` with its files to the directory `$OUT`.
    generate: Option<String>,
    /// Instances in the format of SWE-bench.
    instances: Option<InstanceList>,
    #[serde(default, rename = "task")]
    tasks: Vec<TaskEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskEntry {
    id: String,
    prompt: String,
    files: Option<PathBuf>,
    repository: Option<PathBuf>,
    commit: Option<String>,
    prepare: Option<String>,
    #[serde(default)]
    network: bool,
    timeout_s: Option<u64>,
    #[serde(default)]
    tags: Vec<String>,
    hidden: Option<PathBuf>,
    #[serde(default)]
    restore: Vec<String>,
    fail_to_pass: Vec<String>,
    #[serde(default)]
    pass_to_pass: Vec<String>,
    gold: Option<GoldEntry>,
    /// Contract without its goal.
    contract: Option<toml::Table>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GoldEntry {
    files: Option<PathBuf>,
    #[serde(default)]
    delete: Vec<String>,
    patch: Option<PathBuf>,
    script: Option<PathBuf>,
}

/// Loads the suite of a file.
pub(super) async fn load(text: &str, file: &Path, machine: &Machine) -> Result<Suite, Failure> {
    let parsed = parse(text, file)?;
    let directory = file.parent().unwrap_or(Path::new("/"));
    let Some(command) = &parsed.generate else { return build(parsed, directory, machine) };
    if parsed.instances.is_some() || !parsed.tasks.is_empty() {
        return Err(refuse(file, "expected either `generate` or tasks"));
    }
    let generated = tempfile::tempdir()
        .map_err(|error| Failure::failed("cannot create a temporary directory").caused_by(&error))?;
    machine.run_trusted(directory, command, &[("OUT", generated.path())]).await?;
    let file = generated.path().join(SUITE_FILE);
    let Some(text) = read_text_if_exists("suite", &file)? else {
        return Err(Failure::usage(format!("`{command}` wrote no {SUITE_FILE} to $OUT")));
    };
    let inner = parse(&text, &file)?;
    if inner.generate.is_some() {
        return Err(refuse(&file, "a generated suite has no `generate`"));
    }
    let suite = build(inner, generated.path(), machine)?;
    Ok(Suite { name: parsed.name, _generated: Some(generated), ..suite })
}

fn parse(text: &str, file: &Path) -> Result<SuiteFile, Failure> {
    toml::from_str(text).map_err(|error| refuse(file, &describe_toml_error(&error, text)))
}

fn refuse(file: &Path, problem: &str) -> Failure {
    Failure::usage(format!("{}: {problem}", file.display()))
}

fn build(parsed: SuiteFile, directory: &Path, machine: &Machine) -> Result<Suite, Failure> {
    let mut instances = match &parsed.instances {
        Some(list) => jsonl::load(list, directory, machine)?,
        None => Vec::new(),
    };
    for task in parsed.tasks {
        instances.push(task.build(directory, machine)?);
    }
    Ok(Suite { name: parsed.name, instances, _generated: None })
}

impl TaskEntry {
    fn build(self, directory: &Path, machine: &Machine) -> Result<Instance, Failure> {
        let refuse = |problem: String| Failure::usage(format!("task `{}`: {problem}", self.id));
        let existing = |key: &str, path: &Path| {
            let path = directory.join(path);
            match machine.process_env().is_directory(&path) {
                true => Ok(path),
                false => Err(refuse(format!("{key}: {} is no directory", path.display()))),
            }
        };
        let source = match (&self.files, &self.repository, &self.commit) {
            (Some(files), None, None) => InstanceSource::Files(existing("files", files)?),
            (None, Some(repository), Some(commit)) => InstanceSource::Commit {
                repository: existing("repository", repository)?,
                commit: commit.clone(),
            },
            (_, _, _) => return Err(refuse("expected `files`, or `repository` and `commit`".to_owned())),
        };
        let hidden = self.hidden.as_deref().map(|path| existing("hidden", path)).transpose()?;
        let gold = self.gold.as_ref().map(|gold| gold.build(directory)).transpose()?;
        let contract = self.contract.clone().map(|table| contract(table, &self.prompt).map_err(refuse));
        Ok(Instance {
            tags: self.tags,
            prepare: self.prepare,
            network: self.network,
            timeout: Duration::from_secs(self.timeout_s.unwrap_or(600).max(1)),
            tests: HiddenTests {
                files: hidden.into_iter().collect(),
                restore: self.restore,
                fail_to_pass: self.fail_to_pass,
                pass_to_pass: self.pass_to_pass,
                ..HiddenTests::default()
            },
            gold,
            contract: contract.transpose()?,
            ..Instance::new(self.id, self.prompt, source)
        })
    }
}

impl GoldEntry {
    fn build(&self, directory: &Path) -> Result<GoldChange, Failure> {
        let patch = self.patch.as_ref().map(|path| read_text("patch", &directory.join(path))).transpose()?;
        Ok(GoldChange {
            files: self.files.as_ref().map(|path| directory.join(path)),
            delete: self.delete.clone(),
            patch,
            script: self.script.as_ref().map(|path| directory.join(path)),
        })
    }
}

/// Returns a contract with the prompt as its goal.
fn contract(mut table: toml::Table, prompt: &str) -> Result<Contract, String> {
    table.insert("goal".to_owned(), toml::Value::String(prompt.to_owned()));
    let contract: Contract = toml::Value::Table(table)
        .try_into()
        // The message has the keys, and the text has no lines.
        .map_err(|error: toml::de::Error| {
            format!("contract: {}", error.to_string().trim_end().replace('\n', ", "))
        })?;
    let contract = match contract.candidates.is_empty() {
        true => contract.with_candidates([CandidatePlan::default()]),
        false => contract,
    };
    contract.check().map_err(|error| error.to_string())?;
    Ok(contract)
}
