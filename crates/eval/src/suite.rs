//! Suites: instances with hidden tests, from files of ours, of SWE-bench, or of cases of cheats.

mod cases;
mod file;
mod jsonl;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use globset::Glob;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{absolute, read_text_if_exists};
use pintle_workflow::contract::Contract;
use pintle_workflow::results::ResultsFormat;
use serde_json::json;
use tempfile::TempDir;

use crate::machine::Machine;

/// Name of the file that defines a suite.
const SUITE_FILE: &str = "suite.toml";

/// Instances that agents are measured on.
#[derive(Debug)]
pub struct Suite {
    /// Name, for reports.
    pub name: String,
    /// Instances, in the order of the suite.
    pub instances: Vec<Instance>,
    /// Files that the suite generated, removed on drop.
    _generated: Option<TempDir>,
}

/// One goal, with the tests that judge it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Instance {
    /// Name, unique in the suite.
    pub id: String,
    /// Goal, for the agent.
    pub prompt: String,
    /// Words that group instances.
    pub tags: Vec<String>,
    /// Files from which an attempt starts.
    pub source: InstanceSource,
    /// Command that prepares each clone.
    pub prepare: Option<String>,
    /// Whether `prepare` and tests may use the network.
    pub network: bool,
    /// Time limit of `prepare` and of each test command.
    pub timeout: Duration,
    /// Tests that judge an attempt.
    pub tests: HiddenTests,
    /// Change that reaches the goal.
    pub gold: Option<GoldChange>,
    /// Contract for `pintle task`, with the prompt as its goal. Without one, a session drafts it.
    pub contract: Option<Contract>,
    /// Change that only appears to reach the goal, for suites of cheats.
    pub cheat: Option<CheatCase>,
}

/// Files from which an attempt starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceSource {
    /// Files of a directory.
    Files(PathBuf),
    /// Files of a commit, without its history.
    Commit {
        /// Repository on this machine.
        repository: PathBuf,
        /// Id of the commit.
        commit: String,
    },
}

/// Tests that an agent does not see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HiddenTests {
    /// Directories whose files are written over the clone before the commands of `fail_to_pass` run.
    pub files: Vec<PathBuf>,
    /// Patch that is applied before tests run.
    pub patch: Option<String>,
    /// Files of the base that replace the agent's versions.
    pub restore: Vec<String>,
    /// Commands, or names of tests, that fail before the change and pass after it.
    pub fail_to_pass: Vec<String>,
    /// Commands, or names of tests, that pass before and after the change.
    pub pass_to_pass: Vec<String>,
    /// Command that runs all tests, if the tests are names.
    pub runner: Option<TestRunner>,
}

/// Command whose output has the results of single tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRunner {
    /// Command of the shell.
    pub command: String,
    /// Format of its output.
    pub results: ResultsFormat,
}

/// Change of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoldChange {
    /// Directory whose files are written over the clone.
    pub files: Option<PathBuf>,
    /// Files that are removed.
    pub delete: Vec<String>,
    /// Patch that is applied.
    pub patch: Option<String>,
    /// Script that runs in the root of the clone.
    pub script: Option<PathBuf>,
}

/// A change that only appears to reach the goal, and the sessions of a task with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheatCase {
    /// The cheating change.
    pub change: GoldChange,
    /// Files that the session for the anchor adds, in the run with the gold change.
    pub anchor: Option<PathBuf>,
    /// Format of the results of the anchor's command, which is the first of `fail_to_pass`.
    pub anchor_results: Option<ResultsFormat>,
    /// File with the results of the anchor's command.
    pub anchor_report: Option<String>,
    /// Files that the session for the anchor adds in the run with the cheat, and its command, if they differ.
    pub cheat_anchor: Option<(PathBuf, String)>,
    /// Files that a second session for an anchor adds.
    pub second_anchor: Option<PathBuf>,
    /// Whether the run with the cheat has the gold change as a second candidate.
    pub has_rival: bool,
    /// Text whose presence in a request makes the scripted reviewer report a finding.
    pub review_finds: Option<String>,
    /// Whether a task that waits for a decision rejects the cheat as well.
    pub may_ask: bool,
    /// Programs that the commands need.
    pub needs: Vec<String>,
}

impl Suite {
    /// Loads a suite: a directory with `suite.toml`, such a file, or a directory of cases with `case.toml`. Runs the generator
    /// of the suite, if it has one.
    ///
    /// Dropping the future ends the generator.
    ///
    /// # Errors
    ///
    /// Missing and invalid files, with the line, and a generator that fails.
    pub async fn load(path: &Path, machine: &Machine) -> Result<Self, Failure> {
        let path = absolute(path)?;
        let is_directory = machine.process_env().is_directory(&path);
        let file = if is_directory { path.join(SUITE_FILE) } else { path.clone() };
        let suite = match read_text_if_exists("suite", &file)? {
            Some(text) => file::load(&text, &file, machine).await?,
            None if is_directory => cases::load(&path, machine)?,
            None => return Err(Failure::usage(format!("the suite {} does not exist", path.display()))),
        };
        suite.check()?;
        Ok(suite)
    }

    /// Returns the instances whose names match a glob, or all of them.
    ///
    /// # Errors
    ///
    /// An invalid glob, and one that matches no instance.
    pub fn select(&self, pattern: Option<&str>) -> Result<Vec<&Instance>, Failure> {
        let Some(pattern) = pattern else { return Ok(self.instances.iter().collect()) };
        let matcher = Glob::new(pattern).or_usage("invalid glob of tasks")?.compile_matcher();
        let selected: Vec<&Instance> =
            self.instances.iter().filter(|instance| matcher.is_match(&instance.id)).collect();
        match selected.is_empty() {
            true => Err(Failure::usage(format!("no task of suite {} matches `{pattern}`", self.name))),
            false => Ok(selected),
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let refuse = |id: &str, problem: &str| {
            Err(Failure::usage(format!("suite {}: task `{id}`: {problem}", self.name)))
        };
        if self.instances.is_empty() {
            return Err(Failure::usage(format!("suite {}: expected at least one task", self.name)));
        }
        let mut ids = HashSet::new();
        for Instance { id, prompt, tests, .. } in &self.instances {
            if id.trim().is_empty() || id.contains(char::is_control) {
                return refuse(id, "id: expected a name of one line");
            }
            if !ids.insert(id) {
                return refuse(id, "id: expected a name that no other task has");
            }
            if prompt.trim().is_empty() {
                return refuse(id, "prompt: expected a text");
            }
            if tests.fail_to_pass.iter().all(|test| test.trim().is_empty()) {
                return refuse(id, "fail_to_pass: expected at least one test");
            }
        }
        Ok(())
    }
}

impl Instance {
    /// Creates an instance without tests.
    pub(crate) fn new(id: String, prompt: String, source: InstanceSource) -> Self {
        Self {
            id,
            prompt,
            tags: Vec::new(),
            source,
            prepare: None,
            network: false,
            timeout: Duration::from_secs(600),
            tests: HiddenTests::default(),
            gold: None,
            contract: None,
            cheat: None,
        }
    }

    /// Returns a hash of everything that decides about an attempt: the goal, the files and the tests.
    pub(crate) async fn hash(&self, machine: &Machine) -> Result<String, Failure> {
        let tests = &self.tests;
        let (directory, commit) = match &self.source {
            InstanceSource::Files(directory) => (Some(directory), None),
            InstanceSource::Commit { commit, .. } => (None, Some(commit)),
        };
        let mut trees = Vec::new();
        for directory in directory.into_iter().chain(&tests.files) {
            trees.push(machine.hash_tree(directory).await?);
        }
        let runner = tests.runner.as_ref().map(|runner| (&runner.command, runner.results));
        let definition = json!({
            "id": self.id,
            "prompt": self.prompt,
            "commit": commit,
            "trees": trees,
            "prepare": self.prepare,
            "patch": tests.patch,
            "restore": tests.restore,
            "fail_to_pass": tests.fail_to_pass,
            "pass_to_pass": tests.pass_to_pass,
            "runner": runner,
            "contract": self.contract,
        });
        Ok(blake3::hash(definition.to_string().as_bytes()).to_hex().to_string())
    }
}
